"""Points of a journal from which kept chains go on, so that a start need not build every block again.

Law: a point only saves time. One that is damaged, or was written beside another journal or by another version, counts
for nothing: the one before it serves, or the beginning. Chains that go on from a point keep every block that they kept
before: it stands at blocks that are older than those on all chains.

A point is written every ``TICKS_OF_A_POINT`` ticks to a file that ends in ``.new``. It becomes one to begin with when
all chains have forgotten the blocks before it.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec

from relaycast.scenario.workload_dump import WorkloadDump
from relaycast.version import __version__
from relaycast_gateway.chain_feed import ChainFeed
from relaycast_ledger.segments.checkpoint import packed, unpacked
from relaycast_node.chain_clock import ChainClock
from relaycast_node.chain_clock_dump import ChainClockDump
from relaycast_node.timeline import Tick
from relaycast_xcm.checkpoint import CheckpointRefused, Count, Dump, decoded, encoded

TICKS_OF_A_POINT = 1_024
POINTS = 2
"""Points to begin with that are kept: where the newest is damaged, the other serves."""

DIGEST_BYTES = 16
FILE_MODE = 0o600


class KeptPoint(Dump, frozen=True):
    """Chains behind the first ``position`` bytes of a journal, whose digest is ``journal``.

    ``keep`` is how many blocks each of them kept, ``told`` how many the event feed had told of.
    """

    version: str
    position: Count
    journal: bytes
    keep: Count
    told: Count
    clock: ChainClockDump = msgspec.field(name="live")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A point that the chains may still leave: the ``tick`` it stands behind, and the newest block of each chain."""

    tick: Tick
    file: Path
    numbers: tuple[int, ...]


class KeptPoints:
    """The points of ``clock``, in the folder that holds its journal."""

    def __init__(self, clock: ChainClock, feed: ChainFeed, journal: Path) -> None:
        self._clock = clock
        self._feed = feed
        self._journal = journal
        self._folder = journal.parent
        self._waiting: list[_Waiting] = []
        self._tick: Tick | None = None
        self._next = clock.chains.tick + TICKS_OF_A_POINT
        self._read, self._digest = 0, blake2b(digest_size=DIGEST_BYTES)

    def newest(self, known_blocks: int) -> KeptPoint | None:
        """Return the last point to begin with, before the last known block; later ones are removed."""
        for file in self._folder.glob("*.new"):
            _remove(file)
        for file in sorted(self._folder.glob("*.point"), reverse=True):
            point = _read(file)
            if point is not None and point.told < known_blocks and self._fits(point):
                return point
        return None

    def _fits(self, point: KeptPoint) -> bool:
        keep = self._clock.relay.kept_blocks
        if point.version != __version__ or keep is None or keep > point.keep:
            return False
        with self._journal.open("rb") as handle:
            data = handle.read(point.position)
        return len(data) == point.position and _digest(data) == point.journal

    def begin(self, point: KeptPoint) -> None:
        """Let the chains stand at a point; raises ``CheckpointRefused``."""
        workload = msgspec.convert(point.clock.workload, tuple[int, WorkloadDump])
        self._clock.load(msgspec.structs.replace(point.clock, workload=workload))
        self._feed.told = point.told
        self._next = self._clock.chains.tick + TICKS_OF_A_POINT

    def follow(self) -> None:
        """Take points from now on."""
        self._clock.ticks.connect(self._hear)

    def _hear(self, tick: Tick) -> None:
        if tick.parent is not self._tick or tick.parent is None:
            self._drop_left()
        self._tick = tick
        self._let_begin()
        if tick.number >= self._next:
            self._take(tick)

    def _drop_left(self) -> None:
        """Forget points that the chains have left for another branch."""
        left = [it for it in self._waiting if not self._clock.came_through(it.tick)]
        for point in left:
            _remove(point.file)
        if left:
            self._waiting = [it for it in self._waiting if it not in left]
            self._next = min(point.tick.number for point in left)

    def _let_begin(self) -> None:
        """Let points be such to begin with before which no chain keeps a block."""
        oldest = [chain.oldest_number for chain in self._clock.served()]
        while self._waiting and all(map(int.__le__, self._waiting[0].numbers, oldest)):
            file = self._waiting.pop(0).file
            with suppress(OSError):
                file.rename(file.with_suffix(".point"))
                for old in sorted(self._folder.glob("*.point"))[:-POINTS]:
                    _remove(old)

    def _take(self, tick: Tick) -> None:
        """Write a point; where that cannot be now, or there is no room, the next tick or a later point will do."""
        keep = self._clock.relay.kept_blocks
        if keep is None:
            return
        try:
            clock = self._clock.dump()
        except ValueError:
            return
        self._next = tick.number + TICKS_OF_A_POINT
        position = self._clock.log.position
        file = self._folder / f"{position:020}.new"
        with suppress(OSError):
            journal = self._digest_up_to(position)
            point = KeptPoint(__version__, position, journal, keep, self._feed.told, clock)
            _write(file, encoded(point))
            numbers = tuple(chain.best.number for chain in self._clock.served())
            self._waiting.append(_Waiting(tick, file, numbers))

    def _digest_up_to(self, position: int) -> bytes:
        """Return the digest of the journal's first bytes: what was read before does not change."""
        with self._journal.open("rb") as handle:
            handle.seek(self._read)
            self._digest.update(handle.read(position - self._read))
        self._read = position
        return self._digest.digest()


def _write(file: Path, data: bytes) -> None:
    """Write a file that is safe on disk before it has its name."""
    body, partial = packed(data), file.with_suffix(".tmp")
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        with os.fdopen(handle, "wb") as opened:
            opened.write(_digest(body) + body)
            opened.flush()
            os.fdatasync(handle)
        partial.rename(file)
    except OSError:
        _remove(partial)
        raise


def _read(file: Path) -> KeptPoint | None:
    """Return the point in a file, ``None`` if the file holds anything else."""
    with suppress(OSError, CheckpointRefused):
        data = file.read_bytes()
        if data[:DIGEST_BYTES] == _digest(data[DIGEST_BYTES:]):
            return decoded(unpacked(data[DIGEST_BYTES:]), KeptPoint)
    return None


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()
