"""A relay chain with many publishers: what sealing, proving and verifying its child tries takes on each engine.

By default 100 publishers with 1,000 keys each over 1,000 blocks. In each block every publisher gives some of its keys
new values; all child tries are sealed, then the top trie with their roots; a reader has some keys of each publisher
proven, with all child roots, and verifies them. Storage alone: no messages, weights, callbacks or pruning, which are
the same on both engines. ``plain`` is ``State``; ``array`` keeps an ``ArrayTrie`` for each publisher. Both get the same
writes; the digest of all roots shows that they sealed the same states. Times are this process's own, so that
neighbours count little. Prints one JSON object for each engine::

    python benches/bench_many_keys.py --blocks 1000 --engines array plain
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / room) for room in ("trie", "xcm", "pallets")]

from relaycast_pallets import State  # noqa: E402 - the rooms are put on the path above
from relaycast_trie import ArrayTrie, ChildInfo, StorageProof, warm_up  # noqa: E402

Writes = list[tuple[list[bytes], list[bytes]]]
"""For each publisher its keys and their values."""


class World:
    """The keys of all publishers, what each block writes, and what the reader asks for: a function of the seed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rng = np.random.default_rng(options.seed)
        self.names = [
            ChildInfo.new_default(b"pubsub" + (2_000 + n).to_bytes(4, "little")) for n in range(options.publishers)
        ]
        self.keys = [self._some(options.keys, 32) for _ in self.names]
        self.first = [(keys, self._some(len(keys), options.value)) for keys in self.keys]
        self.asked = [keys[: options.read] for keys in self.keys]

    def writes(self) -> Writes:
        """Return what the next block writes."""
        changed = self.options.changed
        picked = self.rng.integers(0, self.options.keys, (len(self.keys), changed)).tolist()
        chosen = [[keys[i] for i in dict.fromkeys(row)] for keys, row in zip(self.keys, picked, strict=True)]
        return [(keys, self._some(len(keys), self.options.value)) for keys in chosen]

    def _some(self, count: int, width: int) -> list[bytes]:
        data = self.rng.bytes(count * width)
        return [data[at : at + width] for at in range(0, len(data), width)]


class Plain:
    """``State`` as the project's chains have it."""

    def __init__(self, world: World) -> None:
        self.world = world
        first = {name: dict(zip(*pairs, strict=True)) for name, pairs in zip(world.names, world.first, strict=True)}
        self.state = State(None, first, window=16)

    def seal(self, writes: Writes) -> bytes:
        for name, (keys, values) in zip(self.world.names, writes, strict=True):
            child = self.state.child(name)
            for key, value in zip(keys, values, strict=True):
                child.put(key, value)
        return self.state.commit()

    def prove(self, root: bytes) -> Any:
        roots = [self.state.get(name.prefixed_storage_key()) for name in self.world.names]
        entries = [name.prefixed_storage_key() for name in self.world.names]
        asked = zip(roots, self.world.asked, strict=True)
        proofs = [StorageProof.generate(self.state.db, root, keys) for root, keys in asked if root is not None]
        return [self.state.prove_read(root, entries), *proofs]

    def verify(self, root: bytes, proof: Any) -> int:
        entries = [name.prefixed_storage_key() for name in self.world.names]
        read = proof[0].verify(root, entries).values
        asked = zip(entries, proof[1:], self.world.asked, strict=True)
        return sum(len(one.verify(read[entry], keys).values) for entry, one, keys in asked)


class Arrays:
    """An ``ArrayTrie`` for each publisher, and one for the top trie."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tries = [ArrayTrie.from_pairs(dict(zip(*pairs, strict=True)), window=16) for pairs in world.first]
        self.entries = [name.prefixed_storage_key() for name in world.names]
        roots = [trie.root for trie in self.tries]
        self.top = ArrayTrie.from_pairs(dict(zip(self.entries, roots, strict=True)), window=16)

    def seal(self, writes: Writes) -> bytes:
        for trie, (keys, values) in zip(self.tries, writes, strict=True):
            trie.update(keys, values)
        self.top.update(self.entries, [trie.commit() for trie in self.tries])
        return self.top.commit()

    def prove(self, root: bytes) -> Any:
        proofs = [trie.prove(keys) for trie, keys in zip(self.tries, self.world.asked, strict=True)]
        return [self.top.prove(self.entries, at=root), *proofs]

    def verify(self, root: bytes, proof: Any) -> int:
        (read,) = StorageProof.verify_many([root], [proof[0]], [self.entries], engine="array")
        assert not isinstance(read, Exception)
        roots = [read.values[entry] or b"" for entry in self.entries]
        found = StorageProof.verify_many(roots, proof[1:], self.world.asked, engine="array")
        return sum(len(one.values) for one in found if not isinstance(one, Exception))


def measured(name: str, make: Callable[[World], Any], options: argparse.Namespace) -> dict[str, Any]:
    """Run all blocks on one engine and return what each kind of work took."""
    world = World(options)
    began = time.process_time()
    engine = make(world)
    seconds = {"build": time.process_time() - began, "seal": 0.0, "prove": 0.0, "verify": 0.0}
    digest = blake2b(digest_size=16)
    for _ in range(options.blocks):
        writes = world.writes()
        start = time.process_time()
        root = engine.seal(writes)
        sealed = time.process_time()
        proof = engine.prove(root)
        proven = time.process_time()
        read = engine.verify(root, proof)
        end = time.process_time()
        assert read == options.read * options.publishers
        digest.update(root)
        for work, took in (("seal", sealed - start), ("prove", proven - sealed), ("verify", end - proven)):
            seconds[work] += took
    each = {f"{work}_ms": round(seconds[work] * 1e3 / options.blocks, 3) for work in ("seal", "prove", "verify")}
    total = seconds["build"] + sum(seconds[work] for work in ("seal", "prove", "verify"))
    built = {"build_ms": round(seconds["build"] * 1e3, 1)}
    return {
        "engine": name,
        "blocks": options.blocks,
        **built,
        **each,
        "seconds": round(total, 2),
        "roots": digest.hexdigest(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--publishers", type=int, default=100)
    parser.add_argument("--keys", type=int, default=1_000, help="keys of each publisher")
    parser.add_argument("--changed", type=int, default=10, help="keys of each publisher that a block writes, at most")
    parser.add_argument("--read", type=int, default=10, help="keys of each publisher that the reader asks for")
    parser.add_argument("--value", type=int, default=32, help="bytes of each value")
    parser.add_argument("--blocks", type=int, default=1_000)
    parser.add_argument("--engines", nargs="+", choices=("array", "plain"), default=["array", "plain"])
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    warm_up()
    for name in options.engines:
        print(json.dumps(measured(name, {"array": Arrays, "plain": Plain}[name], options)), flush=True)


if __name__ == "__main__":
    main()
