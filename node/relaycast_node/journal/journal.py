"""An append-only file of all inputs: chains that are given them again are what they were.

Law: an entry is written before it takes effect, and everything before a tick is safe on disk before the tick passes. So
every answer follows from what is in the file. After the process was killed that is all of it. After a loss of power it
is all blocks with what is in them, but not what came after the last tick. What cannot be written does not happen.
"""

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from relaycast_ledger.staged_file import sync
from relaycast_node.journal.dropped import FILE as DROPPED_FILE
from relaycast_node.journal.dropped import keep_aside
from relaycast_node.journal.entries import NO_INPUTS, BeginEntry, Entry, FeedEntry, TickDoneEntry, TickEntry
from relaycast_node.journal.frames import MARK, Frame, encode_frame, whole_frames
from relaycast_node.journal.input_log import InputLog, TakeBack
from relaycast_trie.exceptions import RelaycastError

FILE_MODE = 0o600

log = logging.getLogger(__name__)


class NotNoted(RelaycastError, message="{place} cannot be written: {reason}"):
    """An input that could not be noted in ``place``, for ``reason``: it did not happen."""

    place: str
    reason: str


class InputJournal(InputLog):
    """Notes inputs in ``file`` behind its ``frames``; ``open`` makes one.

    Time goes on where the last entry stands: while no process runs there is none.
    """

    def __init__(self, file: Path, handle: int, frames: list[Frame], *, clock: Callable[[], float]) -> None:
        self._last = frames[-1].milliseconds if frames else 0
        start = clock() - self._last / 1_000
        super().__init__(lambda: clock() - start)
        self.file = file
        self._handle = handle
        self.position = frames[-1].end if frames else 0
        self._count = self._safe = len(frames)
        self._broken: str | None = None
        self.kept_aside = f"{file.parent.name}/{DROPPED_FILE}"
        self._mark = 0, 0, 0
        """Offset, number of entries and time after the last completed tick."""

        for frame in frames:
            if isinstance(frame.entry, BeginEntry | TickDoneEntry):
                self._mark = frame.end, frame.index + 1, frame.milliseconds

    @classmethod
    def open(cls, file: Path, *, clock: Callable[[], float] = time.monotonic) -> "tuple[InputJournal, list[Frame]]":
        """Open or make the journal in ``file``, whose torn end is cut; return it with its entries.

        Raises ``JournalDamaged``, ``ValueError`` for a file that is no journal, and ``OSError``.
        """
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        try:
            data = file.read_bytes()
            start = data[: len(MARK)]
            if start != MARK[: len(start)]:
                is_other = start[:-1] == MARK[:-1]
                raise ValueError(f"layout {start[-1]}" if is_other else "a file that is no journal")
            frames = list(whole_frames(data))
            os.ftruncate(handle, frames[-1].end if frames else 0)
            os.fsync(handle)
            sync(file.parent)
        except BaseException:
            os.close(handle)
            raise
        return cls(file, handle, frames, clock=clock), frames

    def note(self, entry: Entry) -> TakeBack:
        """Write an entry; raises ``NotNoted``, and nothing is written."""
        if self._broken is not None:
            raise NotNoted(self.file.name, self._broken)
        place, count, safe, last = self.position, self._count, self._safe, self._last
        now = max(last, int(self._clock() * 1_000))
        try:
            self._write(encode_frame(entry, index=count, milliseconds=now, safe=safe))
        except (OSError, ValueError) as error:
            self._cut(place, count, last)
            raise NotNoted(self.file.name, _reason(error)) from None
        self._last, self.now = now, now / 1_000
        if isinstance(entry, TickEntry):
            self._make_safe()
        elif isinstance(entry, BeginEntry | TickDoneEntry):
            self._mark = self.position, self._count, self._last
        return lambda: self._cut(place, count, last)

    def tick_done(self, heads: bytes) -> None:
        """Note that a tick has passed; if that fails, the tick stays and nothing more is noted."""
        try:
            self.note(TickDoneEntry(heads))
        except NotNoted as error:
            self.end(error.reason)

    def drop(self, relay_block: int, reason: str) -> int:
        """Remove the inputs since the last completed tick, and append them to ``kept_aside``.

        They are removed even if that file cannot be written.
        """
        place, count, last = self._mark
        since = [it.entry for it in whole_frames(os.pread(self._handle, self.position - place, place), first=count)]
        dropped = [entry for entry in since if not isinstance(entry, NO_INPUTS)]
        if dropped:
            try:
                keep_aside(self.file.parent, dropped, relay_block=relay_block, reason=reason)
            except OSError as error:
                log.warning("%s cannot be written: %s", self.kept_aside, _reason(error))
        self._cut(place, count, last)
        with suppress(NotNoted):  # if this cannot be recorded, it is recorded at the end, or sent again
            for entry in since:
                if isinstance(entry, FeedEntry):
                    self.note(entry)
        self._mark = self.position, self._count, self._last
        return len(dropped)

    def end(self, reason: str) -> None:
        """Refuse all further entries, for ``reason``."""
        self._broken = self._broken or reason

    def close(self) -> None:
        """Let everything be safe on disk and close the file; a second call does nothing."""
        if self._handle >= 0:
            with suppress(OSError):
                os.fdatasync(self._handle)
            os.close(self._handle)
            self._handle = -1
            self.end("the server has stopped")

    def _write(self, data: bytes) -> None:
        written = 0
        while written < len(data):
            written += os.pwrite(self._handle, data[written:], self.position + written)
        self.position += written
        self._count += 1

    def _make_safe(self) -> None:
        """Wait until everything is on disk; where that fails nobody knows what is, and the journal ends."""
        try:
            os.fdatasync(self._handle)
        except OSError as error:
            self.end(_reason(error))
            raise NotNoted(self.file.name, _reason(error)) from None
        self._safe = self._count

    def _cut(self, place: int, count: int, last: int) -> None:
        """Remove what was written from ``place`` on."""
        try:
            os.ftruncate(self._handle, place)
        except OSError as error:
            self.end(_reason(error))
        self.position, self._count, self._last = place, count, last
        self._safe = min(self._safe, count)

    def __repr__(self) -> str:
        return f"<InputJournal {self.file.name}: {self._count} entries>"


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
