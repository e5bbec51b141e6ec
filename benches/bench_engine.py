"""How fast the engines are: backend by workload, over uniform random tries, warmed and seeded.

Times are best medians of several runs. Each row states what it costs beside hashing alone (the *floor*: the blocks that
must be hashed, at the speed of full lanes in the same run) and beside one ``hashlib`` call for 64 bytes. Where
the Rust peer was measured, its time over ours is the ratio, after ours is brought to the peer's machine: times 311 ns
over what that ``hashlib`` call takes here and now.

    python benches/bench_engine.py --sizes 1000 10000 --values 32 --json engine.json
"""

import argparse
import hashlib
import importlib
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relaycast_trie import ArrayTrie, CompactProof, MemoryDB, StorageProof, TrieDB, TrieDBMut, trie_root, warm_up
from relaycast_trie.array_compact import decode_compact, encode_compact
from relaycast_trie.array_proofs import verify_many
from relaycast_trie.kernels.blake2b import hash_messages, new_lanes

Rows = npt.NDArray[np.uint8]

PEER_HASHLIB_NS = 311.0
SIZES = (1_000, 10_000, 100_000, 1_000_000)

PEER: dict[str, dict[tuple[int, int], float]] = {
    "bulk root, ns/key": {
        (1_000, 32): 340, (10_000, 32): 337, (100_000, 32): 346, (1_000_000, 32): 465,
        (1_000, 100): 500, (1_000_000, 100): 735,
    },
    "get, ns": {
        (1_000, 32): 547, (10_000, 32): 726, (100_000, 32): 1_665, (1_000_000, 32): 2_641,
        (1_000, 100): 572, (1_000_000, 100): 3_031,
    },
    "prove k=100, us": {
        (1_000, 32): 90, (10_000, 32): 124, (100_000, 32): 172, (1_000_000, 32): 362,
        (1_000, 100): 106, (1_000_000, 100): 349,
    },
    "prove k=1000, us": {
        (1_000, 32): 844, (10_000, 32): 1_180, (100_000, 32): 2_320, (1_000_000, 32): 4_320,
        (1_000, 100): 1_030, (1_000_000, 100): 4_020,
    },
    "verify k=100, us": {
        (1_000, 32): 121, (10_000, 32): 195, (100_000, 32): 295, (1_000_000, 32): 431,
        (1_000, 100): 163, (1_000_000, 100): 476,
    },
    "verify k=1000, us": {
        (1_000, 32): 866, (10_000, 32): 1_360, (100_000, 32): 2_300, (1_000_000, 32): 4_450,
        (1_000, 100): 1_120, (1_000_000, 100): 5_170,
    },
    "compact encode k=1000, us": {
        (1_000, 32): 650, (10_000, 32): 1_700, (100_000, 32): 3_540, (1_000_000, 32): 6_070,
        (1_000, 100): 950, (1_000_000, 100): 8_110,
    },
    "compact decode k=1000, us": {
        (1_000, 32): 563, (10_000, 32): 1_310, (100_000, 32): 2_530, (1_000_000, 32): 4_450,
        (1_000, 100): 910, (1_000_000, 100): 5_260,
    },
    "update 1 %, ns/changed key": {
        (1_000, 32): 3_800, (10_000, 32): 3_800, (100_000, 32): 6_000, (1_000_000, 32): 9_100,
        (1_000, 100): 3_800, (1_000_000, 100): 8_500,
    },
}  # fmt: skip
"""Rust trie-db 0.32 with blake2b_simd, Substrate V1 layout, one core: keys of the trie and bytes of a value."""


@dataclass(frozen=True, slots=True)
class Row:
    """One workload on one backend."""

    backend: str
    workload: str
    keys: int
    value_bytes: int
    measured: float
    hashlib_calls: float | None
    """How many ``hashlib`` calls for 64 bytes take as long, for one unit of the workload."""
    over_floor: float | None
    """How many times what hashing alone takes."""
    peer_ratio: float | None


def timed(work: Callable[[], Any], *, budget: float = 0.6, least: int = 3) -> float:
    """Return the best of three medians of the seconds that ``work`` takes."""
    medians = []
    for _ in range(3):
        times: list[float] = []
        end = time.perf_counter() + budget / 3
        while len(times) < least or time.perf_counter() < end:
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return min(medians)


def hashlib_ns() -> float:
    """Return the nanoseconds of one ``hashlib.blake2b`` call, digest included, for 64 bytes."""
    data, blake2b = b"x" * 64, hashlib.blake2b

    def many() -> None:
        for _ in range(2_000):
            blake2b(data, digest_size=32).digest()

    return timed(many, budget=0.06) / 2_000 * 1e9


def lane_block_ns() -> float:
    """Return the nanoseconds of one block when all lanes are full."""
    count = 4_096
    data, out = np.zeros(count * 128, np.uint8), np.zeros(count * 32, np.uint8)
    at, sizes, slots = np.arange(count) * 128, np.full(count, 128), np.arange(count) * 32
    return timed(lambda: hash_messages(new_lanes(), data, at, sizes, count, out, slots), budget=0.1) / count * 1e9


def random_rows(count: int, width: int, seed: int) -> Rows:
    """Return ``count`` rows of random bytes."""
    return np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)


def sorted_keys(count: int, seed: int) -> Rows:
    """Return ``count`` different keys of 32 bytes, ascending."""
    rows = random_rows(count, 32, seed)
    order = np.argsort(rows[:, :8].copy().view(">u8").reshape(-1), kind="stable")
    return np.ascontiguousarray(rows[order])


def blocks_of(nodes: list[bytes]) -> int:
    """Return how many blocks hashing these takes."""
    return sum(max(1, (len(node) + 127) // 128) for node in nodes)


class Bench:
    """Runs workloads over one trie and keeps their rows."""

    def __init__(self, keys: int, value_bytes: int, *, seed: int) -> None:
        self.count, self.width = keys, value_bytes
        self.keys, self.values = sorted_keys(keys, seed), random_rows(keys, value_bytes, seed + 1)
        self.rng = np.random.default_rng(seed + 2)
        self.rows: list[Row] = []

    def add(self, backend: str, workload: str, seconds: float, *, units: float, blocks: float | None = None) -> None:
        """Keep a row: ``units`` is what the time is divided by, ``blocks`` what must be hashed in one unit."""
        scale = 1e9 if ", ns" in workload else 1e6
        measured = seconds / units * scale
        call = hashlib_ns()
        peer = PEER.get(workload, {}).get((self.count, self.width)) if backend == "array" else None
        self.rows.append(
            Row(
                backend,
                workload,
                self.count,
                self.width,
                round(measured, 2),
                round(seconds / units * 1e9 / call, 2),
                None if blocks is None else round(seconds / units * 1e9 / (blocks * lane_block_ns()), 2),
                None if peer is None else round(peer / (measured * PEER_HASHLIB_NS / call), 2),
            )
        )

    def array(self) -> None:
        """Run all workloads on the array engine."""
        keys, values, count = self.keys, self.values, self.count
        seconds = timed(lambda: ArrayTrie.from_arrays(keys, values).root)
        trie = ArrayTrie.from_arrays(keys, values)
        external = 1 if self.width > 32 else 0
        nodes = len(trie._arena.branches.row)
        children = int(np.count_nonzero(trie._arena.branches.row[:, :16], axis=1).sum())
        blocks = count * (1 + external) + (children * 33 + nodes * (3 + 64)) / 128
        self.add("array", "bulk root, ns/key", seconds, units=count, blocks=blocks / count)
        self.rows.append(
            Row("array", "memory, bytes/key", count, self.width, round(trie.memory_bytes / count, 1), None, None, None)
        )
        wanted = np.ascontiguousarray(keys[self.rng.integers(0, count, 10_000)])
        self.add("array", "get, ns", timed(lambda: trie.get_many(wanted)), units=10_000)
        for k in (100, 1_000):
            self._proofs(trie, k)
        for percent in (0.1, 1.0, 10.0):
            self._updates(trie, percent)
        self._removals(trie)

    def _proofs(self, trie: ArrayTrie, k: int) -> None:
        asked = [self.keys[i].tobytes() for i in self.rng.permutation(self.count)[:k]]
        root, proof = trie.root, trie.prove(asked)
        plain = StorageProof(proof.nodes)
        blocks = blocks_of(list(proof.nodes))
        self.add("array", f"prove k={k}, us", timed(lambda: trie.prove(asked)), units=1)
        self.add("array", f"prove k={k} into a set, us", timed(lambda: trie.prove(asked).nodes), units=1)
        verified = timed(lambda: verify_many([root], [proof], [asked]))
        self.add("array", f"verify k={k}, us", verified, units=1, blocks=blocks)
        for name, given in (("from a set", plain), ("into a dict", proof)):
            read = (
                (lambda: verify_many([root], [plain], [asked]))
                if given is plain
                else (
                    lambda: dict(verify_many([root], [proof], [asked])[0].values)  # type: ignore[union-attr]
                )
            )
            self.add("array", f"verify k={k} {name}, us", timed(read), units=1, blocks=blocks)
        if k == 1_000:
            compact = encode_compact(proof, root)
            self.add("array", f"compact encode k={k}, us", timed(lambda: encode_compact(proof, root)), units=1)
            self.add("array", f"compact decode k={k}, us", timed(lambda: decode_compact(compact, root)), units=1)

    def _updates(self, trie: ArrayTrie, percent: float) -> None:
        changed = max(1, round(self.count * percent / 100))
        keys = np.ascontiguousarray(self.keys[self.rng.permutation(self.count)[:changed]])
        fresh = [random_rows(changed, self.width, seed) for seed in (8, 9)]
        turn = 0

        def change() -> None:
            nonlocal turn
            turn += 1
            trie.update(keys, fresh[turn % 2])
            _ = trie.root

        change()
        self.add("array", f"update {percent:g} %, ns/changed key", timed(change), units=changed)

    def _removals(self, trie: ArrayTrie) -> None:
        chosen = self.rng.permutation(self.count)[: max(1, self.count // 100)]
        keys, values = np.ascontiguousarray(self.keys[chosen]), np.ascontiguousarray(self.values[chosen])

        def remove_and_put_back() -> None:
            trie.remove(keys)
            _ = trie.root
            trie.update(keys, values)
            _ = trie.root

        remove_and_put_back()
        seconds = timed(remove_and_put_back)
        self.add("array", "remove 1 % and insert it again, ns/key", seconds, units=2 * len(chosen))

    def plain(self) -> None:
        """Run the workloads on the plain engine."""
        pairs = dict(zip(map(bytes, self.keys), map(bytes, self.values), strict=True))
        self.add(
            "plain", "bulk root, ns/key", timed(lambda: trie_root(pairs, engine="plain"), least=1), units=self.count
        )
        db: MemoryDB = MemoryDB()
        trie = TrieDBMut(db)
        for key, value in pairs.items():
            trie[key] = value
        root = trie.commit()
        asked = [self.keys[i].tobytes() for i in self.rng.permutation(self.count)[:100]]
        reader = TrieDB(db, root)
        self.add("plain", "get, ns", timed(lambda: [reader.get(key) for key in asked]), units=100)
        proof = StorageProof.generate(db, root, asked)
        self.add("plain", "prove k=100, us", timed(lambda: StorageProof.generate(db, root, asked)), units=1)
        self.add("plain", "verify k=100, us", timed(lambda: proof.verify(root, asked)), units=1)
        self.add("plain", "compact encode k=100, us", timed(lambda: CompactProof.encode(proof, root)), units=1)

    def py_trie(self) -> None:
        """Run what Ethereum's ``trie`` package has of the workloads: Keccak-256 and RLP, so nearly the same work."""
        ethereum: Any = importlib.import_module("trie")

        pairs = [(bytes(key), bytes(value)) for key, value in zip(self.keys, self.values, strict=True)]

        def build() -> Any:
            held = ethereum.HexaryTrie({})
            with held.squash_changes() as batch:
                for key, value in pairs:
                    batch[key] = value
            return held

        self.add("trie", "bulk root, ns/key", timed(build, budget=0.1, least=1), units=self.count)
        held = build()
        asked = [key for key, _ in pairs[:: max(1, self.count // 100)]][:100]
        self.add("trie", "get, ns", timed(lambda: [held[key] for key in asked]), units=len(asked))
        self.add("trie", "prove k=100, us", timed(lambda: [held.get_proof(key) for key in asked]), units=1)


def runs(sizes: list[int], widths: list[int], backends: list[str], *, seed: int = 1) -> Iterator[list[Row]]:
    """Yield the rows of one trie after another."""
    for count in sizes:
        for width in widths:
            bench = Bench(count, width, seed=seed)
            if "array" in backends:
                bench.array()
            if "plain" in backends and count <= 10_000:
                bench.plain()
            if "trie" in backends and count <= 10_000 and _has_py_trie():
                bench.py_trie()
            yield bench.rows


def _has_py_trie() -> bool:
    """Return whether ``trie`` is Ethereum's package; a folder of the same name has no file of its own."""
    found = importlib.util.find_spec("trie")
    return found is not None and found.origin is not None


def table(rows: list[Row]) -> str:
    """Return rows as lines of text."""
    heads = ("measured", "hashlib", "floor", "peer")
    lines = [
        f"{'backend':8}{'workload':40}{'keys':>9}{'value':>6}{heads[0]:>13}{heads[1]:>10}{heads[2]:>8}{heads[3]:>8}"
    ]
    for row in rows:
        shown = ["" if x is None else f"{x:.2f}" for x in (row.hashlib_calls, row.over_floor, row.peer_ratio)]
        lines.append(
            f"{row.backend:8}{row.workload:40}{row.keys:>9}{row.value_bytes:>6}{row.measured:>13.2f}"
            f"{shown[0]:>10}{shown[1]:>8}{shown[2]:>8}"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Run what the command line asks for, print the table and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--values", type=int, nargs="+", default=[32, 100])
    parser.add_argument("--backends", nargs="+", default=["array", "plain", "trie"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    first = warm_up()
    second = warm_up()
    call, block = hashlib_ns(), lane_block_ns()
    print(f"first call {first:.2f} s, warm {second * 1e3:.1f} ms")
    print(f"hashlib {call:.0f} ns a call, lanes {block:.1f} ns a block")
    rows: list[Row] = []
    for some in runs(chosen.sizes, chosen.values, chosen.backends, seed=chosen.seed):
        print(table(some), flush=True)
        rows += some
    if chosen.json is not None:
        report = {
            "hashlib_ns": call,
            "lane_block_ns": block,
            "first_call_seconds": first,
            "python": sys.version.split()[0],
            "rows": [asdict(row) for row in rows],
        }
        chosen.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
