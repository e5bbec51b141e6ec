"""When events were received, in blocks: which stretches of the log can hold a moment.

A clock may be set back, so that times do not grow with places. For each block the earliest and the latest time is
known: most blocks are taken or left whole.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relaycast_gateway.log import EventLog

BLOCK = 4_096
"""Events."""


class Stretch(NamedTuple):
    """Events from ``start`` on, before ``end``; ``is_whole`` where all of them were received at a wanted time."""

    start: int
    end: int
    is_whole: bool


class ReceiptTimes:
    """The earliest and the latest time of each whole block of a log."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._first_block = log.history_start // BLOCK
        self._earliest: NDArray[np.int64] = np.empty(0, np.int64)
        self._latest: NDArray[np.int64] = np.empty(0, np.int64)

    def stretches(self, start: int, end: int, moments: tuple[int, int], *, reverse: bool) -> Iterator[Stretch]:
        """Yield stretches between ``start`` and ``end`` that can hold moments of an interval, in the order asked for.

        The interval begins with its first moment and ends before its second one.
        """
        if start >= end or moments[0] >= moments[1]:
            return
        self._extend(end)
        first = max(start // BLOCK, self._first_block)
        known = slice(first - self._first_block, (end - 1) // BLOCK + 1 - self._first_block)
        earliest, latest = self._earliest[known], self._latest[known]
        kinds = ((latest >= moments[0]) & (earliest < moments[1])).astype(np.int8)
        kinds += (earliest >= moments[0]) & (latest < moments[1])
        edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
        found = [
            Stretch(max(start, (first + left) * BLOCK), min(end, (first + right) * BLOCK), bool(kinds[left] == 2))
            for left, right in pairwise(edges)
            if left < right and kinds[left]
        ]
        rest = max(start, (first + len(kinds)) * BLOCK)
        if rest < end:
            found.append(Stretch(rest, end, False))
        for stretch in reversed(found) if reverse else found:
            yield from _pieces(stretch, reverse=reverse)

    def _extend(self, end: int) -> None:
        """Note the blocks that have become whole."""
        whole = end // BLOCK
        next_block = self._first_block + len(self._latest)
        if whole <= next_block:
            return
        first, rows = self._log.slice(next_block * BLOCK, whole * BLOCK)
        times = rows.received_ns
        if not len(times):
            missing = whole - next_block
            earliest, latest = np.full(missing, np.iinfo(np.int64).max), np.full(missing, np.iinfo(np.int64).min)
        else:
            edges = np.arange(next_block, whole, dtype=np.int64) * BLOCK - first
            empty = edges + BLOCK <= 0
            cuts = np.maximum(edges, 0)
            earliest, latest = np.minimum.reduceat(times, cuts), np.maximum.reduceat(times, cuts)
            earliest[empty], latest[empty] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        self._earliest = np.append(self._earliest, earliest)
        self._latest = np.append(self._latest, latest)


def _pieces(stretch: Stretch, *, reverse: bool) -> Iterator[Stretch]:
    """Cut a stretch that is looked at event by event into blocks: few of them may do."""
    start, end, is_whole = stretch
    if is_whole:
        yield stretch
        return
    edges = [start, *range((start // BLOCK + 1) * BLOCK, end, BLOCK), end]
    pieces = [Stretch(left, right, False) for left, right in pairwise(edges)]
    yield from reversed(pieces) if reverse else pieces
