"""The rows of a log without a file: a list, from which retention cuts the front."""

import os
from collections.abc import Sequence

from relaycast_gateway.log.columns import EventColumns
from relaycast_gateway.log.rows import KEY_BYTES, Commit, EventRow, NamedRow
from relaycast_gateway.record import EVERYBODY, Visibility


class MemoryTable:
    """Holds the events of one process. The log itself knows names, topics and visibilities."""

    def __init__(self) -> None:
        self.key = os.urandom(KEY_BYTES)
        self._kept: tuple[int, list[EventRow]] = (1, [])
        """The number of the first row, and rows: replaced together, so that a reader needs no lock."""

        self._start = 1

    def namespaces(self) -> list[NamedRow]:
        return []

    def topics(self) -> list[str]:
        return []

    def visibilities(self) -> list[Visibility]:
        return [EVERYBODY]

    def load(self) -> EventColumns:
        return EventColumns()

    def write(self, commit: Commit, history_start: int) -> None:
        base, rows = self._kept
        rows += commit.rows
        dropped = history_start - base
        self._start = history_start
        if dropped * 2 > len(rows):
            self._kept = history_start, rows[dropped:]

    def range(self, start: int, end: int) -> list[EventRow]:
        base, rows = self._kept
        return rows[max(start, self._start, base) - base : max(end - base, 0)]

    def rows(self, seqs: Sequence[int]) -> list[EventRow]:
        base, rows = self._kept
        first, end = max(base, self._start), base + len(rows)
        return [rows[seq - base] for seq in sorted(seqs) if first <= seq < end]

    def close(self) -> None:
        """Keep nothing back: the memory goes with the log."""
