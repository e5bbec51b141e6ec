"""Numbers of events in order, four bytes each, and what a caller may see of a pattern.

Law: numbers only grow at the end and go at the front.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = (1 << 32) - 1


class SeqList:
    """Increasing numbers, held as distances from the first one."""

    def __init__(self) -> None:
        self._base = 0
        self._start = 0
        self._end = 0
        self._offsets = np.empty(0, np.uint32)

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def memory_bytes(self) -> int:
        return self._offsets.nbytes

    def extend(self, seqs: NDArray[np.int64]) -> None:
        """Append numbers that are larger than those held."""
        if not len(seqs):
            return
        if not len(self):
            self._base, self._start, self._end = int(seqs[0]), 0, 0
        end = self._end + len(seqs)
        if end > len(self._offsets):
            kept = self._offsets[self._start : self._end]
            grown = np.empty(max(256, (len(self) + len(seqs)) * 5 // 4), np.uint32)
            grown[: len(kept)] = kept
            self._offsets, self._start, self._end = grown, 0, len(kept)
            end = self._end + len(seqs)
        self._offsets[self._end : end] = seqs - self._base
        self._end = end

    def replace(self, start: int, end: int, seqs: NDArray[np.int64]) -> None:
        """Hold fewer numbers, ``seqs``, at the places from ``start`` on, before ``end``."""
        removed = end - start - len(seqs)
        self._offsets[self._start + start + removed : self._start + end] = seqs - self._base
        self._offsets[self._start + removed : self._start + start + removed] = self._offsets[
            self._start : self._start + start
        ].copy()
        self._start += removed

    def drop_before(self, seq: int) -> int:
        """Forget numbers below ``seq``, and return how many they were."""
        dropped = self.place(seq)
        self._start += dropped
        if self._start * 2 > len(self._offsets):
            self._offsets = self._offsets[self._start : self._end].copy()
            self._start, self._end = 0, len(self._offsets)
        return dropped

    def place(self, seq: int) -> int:
        """Return how many numbers are below ``seq``."""
        offset = np.uint32(min(max(seq - self._base, 0), _MOST))
        return int(np.searchsorted(self._offsets[self._start : self._end], offset))

    def seqs(self, start: int, end: int) -> NDArray[np.int64]:
        """Return the numbers at places from ``start`` on, before ``end``."""
        found: NDArray[Any] = self._offsets[self._start + start : self._start + end].astype(np.int64)
        found += self._base
        return found

    def at(self, place: int) -> int:
        """Return one number."""
        return self._base + int(self._offsets[self._start + place])
