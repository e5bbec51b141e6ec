"""A relay chain with many publishers on each trie engine: its state alone, and the whole run with a reader.

By default 100 publishers with 1,000 keys each over 1,000 blocks, in which every publisher gives ten keys new values and
a parachain reads ten keys of each. ``--what state`` writes the values into a ``State``, seals it, proves what is read
and verifies that. ``--what run`` is a scenario: messages, XCM, pallets, 100 publishers' own blocks, collecting, pruning
and verifying proofs, callbacks, invariants. The blocks that fill the tries come first and are counted apart. Both get
the same writes on either engine, and the digest of all state roots shows that they sealed the same. Times are this
process's own, so that neighbours count little. Prints one JSON object for each engine::

    python benches/bench_many_keys.py --what state run --engines auto plain --blocks 1000
"""

import argparse
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / room) for room in ("trie", "xcm", "pallets", "collator", "spark", "app")]

from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable  # noqa: E402
from relaycast.simulation.simulation import Simulation  # noqa: E402 - the rooms are put on the path above
from relaycast_pallets import State, derive_child_info  # noqa: E402
from relaycast_trie import ChildInfo, StorageProof, warm_up  # noqa: E402
from relaycast_trie.engine import Engine  # noqa: E402

PER_BLOCK = 3_000
"""About as many publications as a relay block's weight allows."""


class Clock:
    """Seconds of this process by what they were spent on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``work`` that counts its time under ``name``."""

        def counted(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return work(*given, **named)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began

        return counted

    def each(self, blocks: int) -> dict[str, float]:
        return {f"{name}_ms": round(spent * 1e3 / blocks, 3) for name, spent in self.seconds.items()}


class Publishers:
    """The keys of all publishers and what each block writes: a function of the seed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rng = np.random.default_rng(options.seed)
        numbers = range(2_000, 2_000 + options.publishers)
        self.names = [derive_child_info(number) for number in numbers]
        self.keys = [self._some(options.keys, 32) for _ in self.names]

    def first(self) -> dict[ChildInfo, dict[bytes, bytes]]:
        values = ((name, keys, self._some(len(keys), self.options.value)) for name, keys in self._named())
        return {name: dict(zip(keys, some, strict=True)) for name, keys, some in values}

    def write(self, state: State) -> None:
        """Give some keys of each publisher new values."""
        options = self.options
        picked = self.rng.integers(0, options.keys, (len(self.keys), options.changed)).tolist()
        for (name, keys), row in zip(self._named(), picked, strict=True):
            child = state.child(name)
            for index, value in zip(row, self._some(len(row), options.value), strict=True):
                child.put(keys[index], value)

    def asked(self) -> list[list[bytes]]:
        return [keys[: self.options.read] for keys in self.keys]

    def _named(self) -> "zip[tuple[ChildInfo, list[bytes]]]":
        return zip(self.names, self.keys, strict=True)

    def _some(self, count: int, width: int) -> list[bytes]:
        data = self.rng.bytes(count * width)
        return [data[at : at + width] for at in range(0, len(data), width)]


def state_alone(engine: Engine, options: argparse.Namespace) -> dict[str, Any]:
    """Seal, prove and verify on a ``State``."""
    publishers, clock, digest = Publishers(options), Clock(), blake2b(digest_size=16)
    first, asked = publishers.first(), publishers.asked()
    state = clock.timed("build", lambda: State(None, first, window=16, engine=engine))()
    built = clock.seconds.pop("build")

    def prove() -> list[StorageProof]:
        return [
            state.prove_child_read(state.root, name, keys) for name, keys in zip(publishers.names, asked, strict=True)
        ]

    def verify(proofs: list[StorageProof]) -> int:
        roots = [state.get(name.prefixed_storage_key()) or b"" for name in publishers.names]
        found = StorageProof.verify_many(roots, proofs, asked, engine=engine)
        return sum(len(one.values) for one in found if not isinstance(one, Exception))

    for _ in range(options.blocks):
        publishers.write(state)
        digest.update(clock.timed("seal", state.commit)())
        assert clock.timed("verify", verify)(clock.timed("prove", prove)()) == options.read * options.publishers
    return {"build_ms": round(built * 1e3, 1), **clock.each(options.blocks), "roots": digest.hexdigest()}


def whole_run(engine: Engine, options: argparse.Namespace) -> dict[str, Any]:
    """Run the scenario; what the relay chain's tries take of it is told apart."""
    ids = range(2_000, 2_000 + options.publishers)
    publish = PublishTable(keys=options.keys, value_bytes=options.value, changed=options.changed)
    reads = [SubscriptionTable(publisher=number, keys=options.read) for number in ids]
    chains = [
        *(ParachainTable(id=number, publish=publish) for number in ids),
        ParachainTable(id=9_000, subscribe=reads),
    ]
    scenario = Scenario(name="many keys", parachains=chains, seed=options.seed)
    simulation = Simulation.prepare(scenario, trie_engine=engine)
    network = simulation.network.chains
    clock, digest = Clock(), blake2b(digest_size=16)
    filling = 4 + options.publishers * (options.keys + 10 * options.changed) // PER_BLOCK
    began = time.process_time()
    deque(simulation.blocks(last=filling), maxlen=0)
    filled = time.process_time() - began
    state: Any = network.relay_chain.state
    state.commit = clock.timed("seal", state.commit)
    for name in ("prove_read", "prove_child_read"):
        setattr(state, name, clock.timed("prove", getattr(state, name)))
    blocks = simulation.blocks(last=filling + options.blocks)
    for _ in range(options.blocks):
        clock.timed("block", next)(blocks)
        digest.update(state.root)
    assert simulation.network.ledger.invariants.ok
    return {
        "fill_blocks": filling,
        "fill_s": round(filled, 1),
        **clock.each(options.blocks),
        "roots": digest.hexdigest(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--what", nargs="+", choices=("state", "run"), default=["state"])
    parser.add_argument("--publishers", type=int, default=100)
    parser.add_argument("--keys", type=int, default=1_000, help="keys of each publisher")
    parser.add_argument("--changed", type=int, default=10, help="keys of each publisher that a block writes, at most")
    parser.add_argument("--read", type=int, default=10, help="keys of each publisher that the reader asks for")
    parser.add_argument("--value", type=int, default=32, help="bytes of each value")
    parser.add_argument("--blocks", type=int, default=1_000)
    parser.add_argument("--engines", nargs="+", choices=("auto", "array", "plain"), default=["auto", "plain"])
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    if options.engines != ["plain"]:
        warm_up()
    for what in options.what:
        for engine in options.engines:
            figures = {"state": state_alone, "run": whole_run}[what](engine, options)
            print(json.dumps({"what": what, "engine": engine, "blocks": options.blocks, **figures}), flush=True)


if __name__ == "__main__":
    main()
