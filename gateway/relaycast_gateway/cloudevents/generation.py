"""Which events a subscription generates, and which of those its filter lets through.

The phases of the text in their order: generation (``source``, ``types``, then ``config.interval``), then filtering.
Law: the answer for an event depends on the log and the subscription alone, however often and in whatever order it is
asked, across restarts: the count behind ``interval`` is taken again from the log where it is not known.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.event import AttributeValue, attributes_of
from relaycast_gateway.record import EventRecord

MARK_EVERY = 4_096
"""Records between two places at which the count is noted."""

MARKS = 8
PAGE = 1_000
ATTRIBUTES_KEPT = 512

ReadPage = Callable[[int, int], list[EventRecord]]
"""Returns records of the log after a ``seq``, at most so many."""


class AttributeCache:
    """The context attributes of the last records: many subscriptions ask about the same ones."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, AttributeValue]] = {}

    def of(self, record: EventRecord) -> dict[str, AttributeValue]:
        """Return the attributes of a record; they must not be changed."""
        found = self._known.get(record.seq)
        if found is None:
            if len(self._known) >= ATTRIBUTES_KEPT:
                self._known.clear()
            found = self._known[record.seq] = attributes_of(record)
        return found


class Generation:
    """Asked for each record of the log, in order; an order that goes back costs a look into the log."""

    def __init__(self, members: Mapping[str, Any], cache: AttributeCache, counting: "Counting | None" = None) -> None:
        self._source: str | None = members.get("source")
        self._types = frozenset(members["types"]) if "types" in members else None
        expression = members.get("filter") or members.get("filters")
        self._filter = compile_filter(expression) if expression else None
        self._cache = cache
        self._interval = int(members["config"]["interval"])
        self._counting = counting if self._interval > 1 else None

    def selects(self, record: EventRecord) -> bool:
        """Return whether the event is to be delivered."""
        generated = self.generates(record)
        if self._counting is not None:
            ordinal = self._counting.ordinal(record, generated, self.generates)
            generated = generated and ordinal % self._interval == 0
        if not generated:
            return False
        return self._filter is None or self._filter(self._cache.of(record))

    def generates(self, record: EventRecord) -> bool:
        """Return whether source and types are the subscription's."""
        if self._types is not None and record.namespace not in self._types:
            return False
        return self._source is None or self._cache.of(record)["source"] == self._source


class Counting:
    """Numbers the events that a subscription generates, from 1 behind the place ``start``."""

    def __init__(
        self,
        start: int,
        read: ReadPage,
        *,
        marks: Iterable[tuple[int, int]] = (),
        note: Callable[[list[tuple[int, int]]], None] = lambda _: None,
    ) -> None:
        self._start = start
        self._read = read
        self._note = note
        self._marks = sorted(marks)
        self._seq, self._count = start, 0
        """Where the count stands: so many events up to this place."""

    def ordinal(self, record: EventRecord, generated: bool, generates: Callable[[EventRecord], bool]) -> int:
        """Return how many events were generated up to ``record``, itself included."""
        if record.seq <= self._start:
            return 0
        if record.seq != self._seq + 1:
            self._go_to(record.seq - 1, generates)
        self._step(record.seq, generated)
        return self._count

    def _go_to(self, seq: int, generates: Callable[[EventRecord], bool]) -> None:
        """Count up to ``seq``, from the nearest place that is known."""
        known = [(self._start, 0), *self._marks, *([(self._seq, self._count)] if self._seq <= seq else [])]
        self._seq, self._count = max(mark for mark in known if mark[0] <= seq)
        while self._seq < seq:
            page = [record for record in self._read(self._seq, PAGE) if record.seq <= seq]
            for record in page:
                self._step(record.seq, generates(record))
            if not page:
                self._seq = seq  # what lies between is no longer kept

    def _step(self, seq: int, generated: bool) -> None:
        self._seq = seq
        self._count += generated
        if seq % MARK_EVERY == 0 and bisect_right(self._marks, (seq, self._count)) == len(self._marks):
            self._marks = [*(mark for mark in self._marks if mark[0] < seq), (seq, self._count)][-MARKS:]
            self._note(self._marks)
