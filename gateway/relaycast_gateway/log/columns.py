"""The index of the log: for each event kept, in memory, its numbers, times and size.

Law: one thread writes. Rows are only appended, so that a slice stays true while the columns go on; readers take
slices up to the newest durable event and need no lock.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROWS_A_LOOK = 65_536
"""Rows compared at once."""


class ColumnSlice(NamedTuple):
    """Rows in order: numbers of namespace, topic and visibility, times, bytes up to and with the row, ordinal."""

    namespace: NDArray[Any]
    topic: NDArray[Any]
    visibility: NDArray[Any]
    occurred_ns: NDArray[Any]
    received_ns: NDArray[Any]
    bytes_so_far: NDArray[Any]
    ordinal: NDArray[Any]
    """The 1-based position of the event in its namespace, purged events counted."""


_NO_ROWS = ColumnSlice(*[np.empty(0, np.uint32)] * 3, *[np.empty(0, np.int64)] * 4)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows are wanted: from a bound on, before a bound; ``None`` is no bound."""

    namespaces: tuple[int, ...] | None = None
    occurred_from: int | None = None
    occurred_before: int | None = None
    received_from: int | None = None
    received_before: int | None = None

    def mask(self, rows: ColumnSlice) -> NDArray[np.bool_]:
        """Return for each row whether it is wanted."""
        wanted = np.ones(len(rows.namespace), np.bool_)
        if self.namespaces is not None:
            wanted &= np.isin(rows.namespace, np.array(self.namespaces, np.uint32))
        for column, start, end in (
            (rows.occurred_ns, self.occurred_from, self.occurred_before),
            (rows.received_ns, self.received_from, self.received_before),
        ):
            if start is not None:
                wanted &= column >= start
            if end is not None:
                wanted &= column < end
        return wanted


class EventColumns:
    """The columns of a log whose first event kept has the number ``first_seq``."""

    def __init__(self, first_seq: int = 1) -> None:
        self._first_seq = first_seq
        self._length = 0
        self._arrays: tuple[int, ColumnSlice] = (first_seq, _NO_ROWS)

    @property
    def first_seq(self) -> int:
        return self._first_seq

    @property
    def end_seq(self) -> int:
        """The number that the next event gets."""
        return self._arrays[0] + self._length

    @property
    def memory_bytes(self) -> int:
        """Bytes that the columns take, with the room that is kept free for growth."""
        return sum(array.nbytes for array in self._arrays[1])

    def extend(
        self,
        namespace: Any,
        topic: Any,
        visibility: Any,
        occurred_ns: Any,
        received_ns: Any,
        sizes: Any,
        ordinals: Any = 0,
    ) -> None:
        """Append rows; all arguments have one length. Ordinals may be given later, by ``count_up_to``."""
        added = len(namespace)
        before, arrays = self._arrays
        end = self._length + added
        if end > len(arrays.namespace):
            room = max(1_024, end + end // 2)
            arrays = ColumnSlice(*(_grown(array, self._length, room) for array in arrays))
            self._arrays = before, arrays
        at = slice(self._length, end)
        total = int(arrays.bytes_so_far[self._length - 1]) if self._length else 0
        arrays.namespace[at] = namespace
        arrays.topic[at] = topic
        arrays.visibility[at] = visibility
        arrays.occurred_ns[at] = occurred_ns
        arrays.received_ns[at] = received_ns
        arrays.bytes_so_far[at] = total + np.cumsum(np.asarray(sizes, np.int64))
        arrays.ordinal[at] = ordinals
        self._length = end

    def count_up_to(self, totals: NDArray[np.int64]) -> None:
        """Give each row its ordinal; ``totals`` has the number of events that each namespace has had.

        ``ValueError`` where there are more rows of a namespace than that.
        """
        rows = self._arrays[1]
        names = rows.namespace[: self._length]
        kept = np.bincount(names, minlength=len(totals))
        if (kept > totals).any():
            raise ValueError("fewer events counted in a namespace than there are")
        in_groups = np.argsort(names, kind="stable")
        groups = names[in_groups]
        places = np.arange(self._length) - (np.cumsum(kept) - kept)[groups]
        rows.ordinal[in_groups] = (totals - kept)[groups] + places + 1

    def ordinal(self, seq: int) -> int | None:
        """Return the ordinal of an event; ``None`` where its row is not there."""
        base, arrays = self._arrays
        return int(arrays.ordinal[seq - base]) if base <= seq < self.end_seq else None

    def truncate(self, end_seq: int) -> None:
        """Take back the rows from ``end_seq`` on, which nobody has seen."""
        self._length = end_seq - self._arrays[0]

    def drop_before(self, seq: int) -> None:
        """Forget the rows before ``seq``; memory is given back when they are half of all."""
        self._first_seq = seq
        base, arrays = self._arrays
        dropped = seq - base
        if dropped * 2 > len(arrays.namespace):
            kept = self._length - dropped
            sum_before = self._sum_before(seq)
            shorter = ColumnSlice(*(_grown(array[dropped:], kept, kept + kept // 2) for array in arrays))
            shorter.bytes_so_far[:kept] -= sum_before
            self._arrays, self._length = (seq, shorter), kept

    def slice(self, start: int, end: int) -> tuple[int, ColumnSlice]:
        """Return the rows of the events from ``start``, or the first kept, to ``end``, and the first one's number."""
        base, arrays = self._arrays
        start = max(start, base)
        rows = slice(start - base, max(end, start) - base)
        return start, ColumnSlice(*[array[rows] for array in arrays])

    def sizes(self, start: int, end: int) -> tuple[int, NDArray[np.int64]]:
        """Return the stored bytes of each of those events, and the first one's number."""
        base, arrays = self._arrays
        start = max(start, base)
        before = int(arrays.bytes_so_far[start - base - 1]) if start > base else 0
        return start, np.diff(arrays.bytes_so_far[start - base : max(end, start) - base], prepend=before)

    def select(self, start: int, end: int, limit: int, wanted: RowFilter) -> list[int]:
        """Return the numbers of the first ``limit`` wanted events from ``start`` on, before ``end``."""
        found: list[int] = []
        while start < end and len(found) < limit:
            first, rows = self.slice(start, min(end, start + ROWS_A_LOOK))
            hits = np.flatnonzero(wanted.mask(rows))[: limit - len(found)]
            found += (hits + first).tolist()
            start = max(first + len(rows.namespace), start + 1)
        return found

    def first_within(self, start: int, end: int, most_bytes: int) -> int:
        """Return the first event from which on at most ``most_bytes`` are stored."""
        first, rows = self.slice(start, end)
        sums = rows.bytes_so_far
        if not len(sums):
            return end
        surplus = int(sums[-1]) - most_bytes
        return first + int(np.searchsorted(sums, surplus, "left")) + 1 if surplus > self._sum_before(first) else first

    def first_received_since(self, start: int, end: int, moment_ns: int) -> int:
        """Return the first event that was received at ``moment_ns`` or later."""
        while start < end:
            first, rows = self.slice(start, min(end, start + ROWS_A_LOOK))
            young = rows.received_ns >= moment_ns
            if young.any():
                return first + int(young.argmax())
            start = first + len(young)
        return end

    def _sum_before(self, seq: int) -> int:
        base, arrays = self._arrays
        return int(arrays.bytes_so_far[seq - base - 1]) if seq > base else 0


def _grown(array: NDArray[Any], length: int, room: int) -> NDArray[Any]:
    grown = np.empty(room, array.dtype)
    grown[:length] = array[:length]
    return grown
