"""What the log hands to a table, in a file or in memory, and reads back."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from relaycast_gateway.log.columns import EventColumns
from relaycast_gateway.record import Visibility

KEY_BYTES = 32
"""Length of the random key under which a log makes its publication ids."""


EventRow = tuple[int, int, int, int, int, int, int, int | None, bytes]
"""``seq``; numbers of namespace, topic, visibility; ``occurred_ns``, ``received_ns``; ``event_id``, ``prev_id``; body.

The order of the columns of ``events``. Python's collector of garbage does not visit plain tuples of plain values.
"""


class NamedRow(NamedTuple):
    """A namespace: its number, the id of its newest event, and how many events it has had."""

    number: int
    name: str
    last_event_id: int
    events: int


class Commit(NamedTuple):
    """What is appended together: events, namespaces that they change, topics and visibilities that are new."""

    rows: list[EventRow]
    named: list[NamedRow]
    topics: list[tuple[int, str]]
    visibilities: list[tuple[int, Visibility]]


class Table(Protocol):
    """Where events are kept. One thread writes; any thread reads."""

    key: bytes

    def namespaces(self) -> list[NamedRow]:
        """Return all namespaces, by number from 0 on."""
        ...

    def topics(self) -> list[str]:
        """Return all topics, by number from 0 on."""
        ...

    def visibilities(self) -> list[Visibility]:
        """Return all visibilities, by number from 0 on; the first one is ``EVERYBODY``."""
        ...

    def load(self) -> EventColumns:
        """Return the index of all events."""
        ...

    def write(self, commit: Commit, history_start: int) -> None:
        """Append what is new, and drop what stands before ``history_start``; all of it or nothing."""
        ...

    def range(self, start: int, end: int) -> list[EventRow]:
        """Return the rows from ``start`` on, before ``end``, in order."""
        ...

    def rows(self, seqs: Sequence[int]) -> list[EventRow]:
        """Return the rows with these numbers, in order, without those that are not there."""
        ...

    def close(self) -> None: ...
