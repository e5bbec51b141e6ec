"""Events, and the log of the current block: what calls tell, rolled back with what they wrote."""

from collections.abc import Iterator
from typing import ClassVar, TypeVar

from msgspec import Struct

E = TypeVar("E", bound="Event")


class Event(Struct, frozen=True):
    """Something that happened in ``pallet``; subclasses have the names and fields that upstream gives them."""

    pallet: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Return the event as explorers show it: ``Pallet.Event``."""
        return f"{self.pallet}.{type(self).__name__}"


class Events:
    """The events of the current block, in their order; part of what a failed transaction takes back."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        self._log: list[Event] = []

    def deposit(self, event: Event) -> None:
        self._log.append(event)

    def take(self) -> list[Event]:
        """Return all events and start anew."""
        taken, self._log = self._log, []
        return taken

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one class."""
        return [event for event in self._log if isinstance(event, kind)]

    def mark(self) -> int:
        return len(self._log)

    def roll_back(self, mark: int, /) -> None:
        del self._log[mark:]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._log)

    def __len__(self) -> int:
        return len(self._log)

    def __repr__(self) -> str:
        return f"Events({self._log!r})"
