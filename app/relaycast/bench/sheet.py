"""One random trie, the same for all backends, and what they took with it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from relaycast.bench.peer import figure
from relaycast.bench.yardstick import Yardstick
from relaycast_trie.kernels.multibuffer_hash import BLOCK

Rows = npt.NDArray[np.uint8]
Path = Literal["user", "kernel"]
"""From what a user has to what a user wants, or what lies in arrays already."""


@dataclass(frozen=True, slots=True)
class MeasuredWorkload:
    """One workload on one backend."""

    backend: str
    workload: str
    path: Path
    keys: int
    value_bytes: int
    measured: float
    hashlib_calls: float | None
    """How many ``hashlib`` calls for 64 bytes take as long, for one unit of the workload."""
    blocks: float | None
    """Blocks that one unit must hash."""
    floor: float | None
    """What hashing these takes alone, at the speed of full lanes, in the unit of ``measured``."""
    over_floor: float | None
    """How many times that long it took."""
    peer: float | None
    """What the peer took on its own CPU."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a workload took: seconds of one unit, and how many blocks one unit must hash."""

    backend: str
    workload: str
    path: Path
    seconds: float
    blocks: float | None


class Sheet:
    """Keys of 32 random bytes, ascending, with random values; backends add what they took."""

    def __init__(self, keys: int, value_bytes: int, yardstick: Yardstick, *, seed: int) -> None:
        self.count, self.width, self.yardstick = keys, value_bytes, yardstick
        self.keys, self.values = _sorted_keys(keys, seed), random_rows(keys, value_bytes, seed + 1)
        self.taken: list[Taken] = []
        self.sizes: list[MeasuredWorkload] = []
        self._seed = seed

    @property
    def pairs(self) -> dict[bytes, bytes]:
        return dict(zip(map(bytes, self.keys), map(bytes, self.values), strict=True))

    def order(self) -> npt.NDArray[np.int64]:
        """Return the numbers of all keys in random order; the same in every call."""
        return np.random.default_rng(self._seed + 2).permutation(self.count)

    def some_keys(self, count: int) -> list[bytes]:
        """Return that many keys in random order, or all; the same in every call."""
        return [self.keys[i].tobytes() for i in self.order()[:count]]

    def add(
        self,
        backend: str,
        workload: str,
        seconds: float,
        *,
        units: float = 1,
        blocks: float | None = None,
        path: Path = "kernel",
    ) -> None:
        """Note what ``units`` units took together; ``blocks`` is what one unit must hash."""
        self.yardstick.look()
        self.taken.append(Taken(backend, workload, path, seconds / units, blocks))

    def add_size(self, backend: str, what: str, measured: float) -> None:
        """Note something that is not a time."""
        size = round(measured, 1)
        self.sizes.append(
            MeasuredWorkload(backend, what, "kernel", self.count, self.width, size, None, None, None, None, None)
        )

    def rows(self) -> list[MeasuredWorkload]:
        """Return what was added, measured by the yardstick as it is now."""
        return [*map(self._row, self.taken), *self.sizes]

    def _row(self, taken: Taken) -> MeasuredWorkload:
        ns = taken.seconds * 1e9
        measured = ns if ", ns" in taken.workload else ns / 1e3
        call, block = self.yardstick.hashlib_ns, self.yardstick.lane_block_ns
        floor_ns = None if taken.blocks is None else taken.blocks * block
        return MeasuredWorkload(
            taken.backend,
            taken.workload,
            taken.path,
            self.count,
            self.width,
            round(measured, 2),
            round(ns / call, 2),
            None if taken.blocks is None else round(taken.blocks, 2),
            None if floor_ns is None else round(floor_ns * measured / ns, 2),
            None if floor_ns is None else round(ns / floor_ns, 2),
            figure(taken.workload, self.count, self.width) if taken.backend == "array" else None,
        )


def random_rows(count: int, width: int, seed: int) -> Rows:
    """Return ``count`` rows of random bytes."""
    return np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)


def blocks_of(nodes: Iterable[bytes]) -> int:
    """Return how many blocks hashing these takes."""
    return sum(max(1, (len(node) + BLOCK - 1) // BLOCK) for node in nodes)


def _sorted_keys(count: int, seed: int) -> Rows:
    rows = random_rows(count, 32, seed)
    order = np.argsort(rows[:, :8].copy().view(">u8").reshape(-1), kind="stable")
    return np.ascontiguousarray(rows[order])
