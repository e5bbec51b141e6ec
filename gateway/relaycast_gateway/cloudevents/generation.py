"""Which events a subscription generates, and which of those its filter lets through.

The phases of the text in their order: generation (``source``, ``types``, then ``config.interval``), then filtering.
Law: the answer for an event depends on the log and the subscription alone, however often and in whatever order it is
asked; what its owner may not see counts, and is left out. That holds across restarts: where the count behind
``interval`` is not known, the log is counted again. Only where a killed process left no count and the log has dropped
the events since does the count begin elsewhere.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.event import Attributes
from relaycast_gateway.cloudevents.selection import is_public, selects
from relaycast_gateway.matching.predicate import RecordPredicate
from relaycast_gateway.record import EventRecord

MARK_EVERY = 4_096
"""Records between two places at which the count is noted."""

MARKS = 8
PAGE = 1_000

ReadPage = Callable[[int, int], list[EventRecord]]
"""Returns records of the log after a ``seq``, at most the given number."""


def selection_of(
    members: Mapping[str, Any],
    attributes: Callable[[EventRecord], Attributes],
    counting: "Counting | None",
    may_see: RecordPredicate = is_public,
) -> RecordPredicate:
    """Return what selects records for a subscription with these members.

    ``may_see`` says what its owner may see. ``attributes`` is shared by all subscriptions; ``counting`` is used where
    an interval is asked for.
    """
    expression = members.get("filter") or members.get("filters")
    condition = compile_filter(expression) if expression else None
    types, source, interval = members.get("types"), members.get("source"), int(members["config"]["interval"])
    if interval == 1 or counting is None:
        return selects(may_see=may_see, types=types, source=source, condition=condition, attributes=attributes)
    generates = selects(types=types, source=source, attributes=attributes)

    def selected(record: EventRecord) -> bool:
        ordinal = counting.ordinal(record, generates)
        if ordinal is None or ordinal % interval or not may_see(record):
            return False
        return condition is None or condition(attributes(record))

    return selected


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
        """Where the count stands: the number of events up to this place."""

    def ordinal(self, record: EventRecord, generates: RecordPredicate) -> int | None:
        """Return the number of an event that is generated, ``None`` for another."""
        if record.seq <= self._start:
            return None
        if record.seq != self._seq + 1:
            self._go_to(record.seq - 1, generates)
        generated = _counts(record, generates)
        self._step(record.seq, generated)
        return self._count if generated else None

    def keep(self) -> None:
        """Note where the count stands, for the next start."""
        if self._seq > self._start and all(seq < self._seq for seq, _ in self._marks):
            self._note([*self._marks, (self._seq, self._count)][-MARKS:])

    def _go_to(self, seq: int, generates: RecordPredicate) -> None:
        """Count up to ``seq``, from the place before it that is known, or back from one behind it."""
        known = [(self._start, 0), *self._marks, *([(self._seq, self._count)] if self._seq <= seq else [])]
        self._seq, self._count = max(mark for mark in known if mark[0] <= seq)
        behind = next((mark for mark in self._marks if mark[0] > seq), None)
        kept = self._read(self._seq, 1)
        if behind is not None and kept and kept[0].seq > self._seq + 1:  # the log has dropped what comes between
            self._seq, self._count = (
                seq,
                behind[1] - sum(_counts(it, generates) for it in self._between(seq, behind[0])),
            )
            return
        for record in self._between(self._seq, seq):
            self._step(record.seq, _counts(record, generates))
        self._seq = seq

    def _between(self, after: int, last: int) -> Iterator[EventRecord]:
        """Yield the records behind ``after`` up to ``last``, as far as the log has them."""
        while page := self._read(after, PAGE) if after < last else []:
            for record in page:
                if record.seq <= last:
                    yield record
            after = page[-1].seq

    def _step(self, seq: int, generated: bool) -> None:
        self._seq = seq
        self._count += generated
        if seq % MARK_EVERY == 0 and bisect_right(self._marks, (seq, self._count)) == len(self._marks):
            self._marks = [*(mark for mark in self._marks if mark[0] < seq), (seq, self._count)][-MARKS:]
            self._note(self._marks)


def _counts(record: EventRecord, generates: RecordPredicate) -> bool:
    """Return whether an event is generated; one whose attributes cannot be read is, and becomes a dead letter."""
    try:
        return generates(record)
    except ValueError:
        return True
