"""Predicates over records, and what many of them look at, made once for each record.

Law: whether a record is selected depends on the record alone.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from relaycast_gateway.record import EventRecord

RecordPredicate = Callable[[EventRecord], bool]

View = TypeVar("View")

KEPT = 1_024
"""Records whose views are kept; those of later records take their places."""


class SharedView(Generic[View]):
    """What a face makes of a record to look at it, such as its attributes, shared by all subscriptions.

    INVARIANT: the records are of one log, so that ``seq`` stands for the record.
    """

    def __init__(self, make: Callable[[EventRecord], View], *, kept: int = KEPT) -> None:
        self._make = make
        self._places: list[tuple[int, View] | None] = [None] * kept

    def __call__(self, record: EventRecord) -> View:
        place = record.seq % len(self._places)
        found = self._places[place]
        if found is None or found[0] != record.seq:
            found = self._places[place] = record.seq, self._make(record)
        return found[1]
