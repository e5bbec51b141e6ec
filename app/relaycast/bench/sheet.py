"""One random trie, the same for all backends, and what they took with it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaycast.bench.peer import ratio
from relaycast.bench.yardstick import Yardstick
from relaycast_trie.kernels.blake2b import BLOCK

Rows = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class MeasuredWorkload:
    """One workload on one backend."""

    backend: str
    workload: str
    keys: int
    value_bytes: int
    measured: float
    hashlib_calls: float | None
    """How many ``hashlib`` calls for 64 bytes take as long, for one unit of the workload."""
    over_floor: float | None
    """How many times what hashing alone takes: the blocks that must be hashed, at the speed of full lanes."""
    peer_ratio: float | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a workload took: seconds of one unit, and how many blocks one unit must hash."""

    backend: str
    workload: str
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
        self, backend: str, workload: str, seconds: float, *, units: float = 1, blocks: float | None = None
    ) -> None:
        """Note what ``units`` units took together; ``blocks`` is what one unit must hash."""
        self.yardstick.look()
        self.taken.append(Taken(backend, workload, seconds / units, blocks))

    def add_size(self, backend: str, what: str, measured: float) -> None:
        """Note something that is not a time."""
        self.sizes.append(MeasuredWorkload(backend, what, self.count, self.width, round(measured, 1), None, None, None))

    def rows(self) -> list[MeasuredWorkload]:
        """Return what was added, measured by the yardstick as it is now."""
        return [*map(self._row, self.taken), *self.sizes]

    def _row(self, taken: Taken) -> MeasuredWorkload:
        ns = taken.seconds * 1e9
        measured = ns if ", ns" in taken.workload else ns / 1e3
        call, block = self.yardstick.hashlib_ns, self.yardstick.lane_block_ns
        peer = ratio(taken.workload, self.count, self.width, measured, call) if taken.backend == "array" else None
        return MeasuredWorkload(
            taken.backend,
            taken.workload,
            self.count,
            self.width,
            round(measured, 2),
            round(ns / call, 2),
            None if taken.blocks is None else round(ns / (taken.blocks * block), 2),
            None if peer is None else round(peer, 2),
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
