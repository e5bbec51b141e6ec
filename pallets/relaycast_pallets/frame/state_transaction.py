"""Transactions over a state: a ``with`` block that leaves no trace when it raises."""

from types import TracebackType
from typing import Protocol

from relaycast_pallets.frame.storage import Journal


class RollsBack(Protocol):
    """Something beside the storage that a failed transaction takes back, such as an event log."""

    def mark(self) -> int: ...

    def roll_back(self, mark: int, /) -> None: ...


class Transaction:
    """One ``with`` block over a state, see ``State.transaction``."""

    __slots__ = ("_companions", "_journal", "_marks", "_outer")

    def __init__(self, journal: Journal, companions: list[RollsBack]) -> None:
        self._journal = journal
        self._companions = companions

    def __enter__(self) -> None:
        self._outer = self._journal.frame
        self._marks = [(companion, companion.mark()) for companion in self._companions]
        self._journal.frame = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        frame = self._journal.frame
        assert frame is not None
        self._journal.frame = self._outer
        if kind is not None:
            for (storage, key), (old, was_unsealed) in frame.items():
                storage.restore(key, old, was_unsealed=was_unsealed)
            for companion, mark in self._marks:
                companion.roll_back(mark)
        elif self._outer is not None:
            for change, before in frame.items():
                self._outer.setdefault(change, before)
