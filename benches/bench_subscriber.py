"""Prune and verify, block after block: how fast one subscriber follows its publishers, and in how much memory.

The relay chain's child tries change by a fixed number of keys a block. Timed are PRUNE (the collator's pass over the
collected proof) and VERIFY (``set_validation_data``) alone. Writing and proving the relay state, and sealing the
parachain's state, are timed apart. Prints one JSON object::

    python benches/bench_subscriber.py --keys 1000 --publishers 10 --changed 10 --blocks 500
"""

import argparse
import cProfile
import gc
import json
import platform
import random
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / room) for room in ("trie", "xcm", "pallets")]

from relaycast_pallets import (  # noqa: E402 - the rooms are put on the path above
    ParachainInherentData,
    ParachainSystem,
    PersistedValidationData,
    PublishedEntry,
    State,
    SubscribedKey,
    Subscriber,
    SubscriberConfig,
    System,
    TtlState,
    derive_child_info,
    static_relay_keys,
)
from relaycast_pallets.frame.well_known_keys import (  # noqa: E402
    dmq_mqc_head,
    hrmp_egress_channel_index,
    hrmp_ingress_channel_index,
)
from relaycast_pallets.messaging.inbound_message import PARA_IDS  # noqa: E402
from relaycast_trie import StorageProof, blake2_256  # noqa: E402
from relaycast_xcm.primitives import ParaId, Weight  # noqa: E402

PARA = ParaId(3_000)


class Counting:
    """A handler that counts its calls."""

    def __init__(self, wanted: dict[ParaId, list[SubscribedKey]]) -> None:
        self.wanted = list(wanted.items())
        self.calls = 0

    def subscriptions(self) -> tuple[list[tuple[ParaId, list[SubscribedKey]]], Weight]:
        return self.wanted, Weight.ZERO

    def on_data_updated(self, _publisher: ParaId, _key: SubscribedKey, _value: bytes, _ttl: TtlState) -> Weight:
        self.calls += 1
        return Weight.ZERO


class Bench:
    """The relay chain's state, one subscriber, and a stopwatch for each kind of work."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        publishers = [ParaId(1_000 + number) for number in range(options.publishers)]
        self.keys = {para_id: self._keys(para_id, options.published) for para_id in publishers}
        share = options.keys // options.publishers
        self.handler = Counting({para_id: keys[:share] for para_id, keys in self.keys.items()})
        self.subscribed = [(para_id, key) for para_id, keys in self.handler.wanted for key in keys]
        top = {blake2_256(b"top%d" % number): bytes(64) for number in range(options.top)}
        top |= {key: bytes(40) for key in static_relay_keys(PARA)}
        channels = (hrmp_ingress_channel_index(PARA), hrmp_egress_channel_index(PARA))
        top |= dict.fromkeys(channels, PARA_IDS.encode(())) | {dmq_mqc_head(PARA): bytes(32)}
        self.relay = State(top, window=2)
        self.state = State(window=1)
        self.system = System(self.state)
        self.subscriber = Subscriber(self.system, self.handler, SubscriberConfig())
        self.parachain = ParachainSystem(PARA, self.system, self.subscriber)
        self.seconds = dict.fromkeys(("relay", "prove", "prune", "verify", "seal"), 0.0)
        self.both: list[float] = []
        self.proof_bytes = 0
        self.number = 0
        for para_id, key in [(para_id, key) for para_id, keys in self.keys.items() for key in keys]:
            self._publish(para_id, key)

    def block(self) -> None:
        """Change keys, prove, prune, verify, seal."""
        with self._timed("relay"):
            if self.number:
                for para_id, key in self.random.sample(self.subscribed, self.options.changed):
                    self._publish(para_id, key)
            self.number += 1
            self.relay.put(blake2_256(b"top0"), self.random.randbytes(64))
            root = self.relay.commit()
        with self._timed("prove"):
            request = self.subscriber.relay_keys()
            proofs = [self.relay.prove_read(root, self.parachain.static_keys())]
            names = {derive_child_info(para_id).storage_key: derive_child_info(para_id) for para_id in self.keys}
            for name, keys in request.by_child_trie().items():
                proofs.append(self.relay.prove_child_read(root, names[name], keys))
            collected = StorageProof.merge(proofs)
        data = PersistedValidationData(b"", self.number, root)
        seed = self.number.to_bytes(4, "little")
        with self._timed("prune"):
            pruned, _ = self.parachain.prune(ParachainInherentData(data, ()), seed, collected=collected)
        inherent = ParachainInherentData(data, tuple(pruned))
        with self._timed("verify"):
            outcome = self.parachain.set_validation_data(inherent, seed)
        self.both.append(self.seconds["prune"] + self.seconds["verify"])
        assert outcome.result.is_complete
        self.proof_bytes += inherent.proof_bytes
        with self._timed("seal"):
            self.state.commit()
            self.system.initialize(self.number)

    def run(self, blocks: int) -> None:
        """Run ``blocks`` blocks from zeroed stopwatches."""
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self.proof_bytes = self.handler.calls = 0
        self.both = [0.0]
        for _ in range(blocks):
            self.block()

    def report(self, blocks: int) -> dict[str, object]:
        each = {f"{name}_ms": round(seconds * 1_000 / blocks, 4) for name, seconds in self.seconds.items()}
        both = self.seconds["prune"] + self.seconds["verify"]
        one_by_one = sorted(later - earlier for earlier, later in pairwise(self.both))
        return {
            "bench": "subscriber",
            "options": vars(self.options),
            "python": platform.python_version(),
            "blocks": blocks,
            "callbacks": self.handler.calls,
            "proof_bytes_per_block": round(self.proof_bytes / blocks),
            **each,
            "prune_blocks_per_s": round(blocks / self.seconds["prune"], 1),
            "verify_blocks_per_s": round(blocks / self.seconds["verify"], 1),
            "prune_and_verify_blocks_per_s": round(blocks / both, 1),
            "fastest_tenth_blocks_per_s": round(1 / one_by_one[len(one_by_one) // 10], 1),
            "median_blocks_per_s": round(1 / one_by_one[len(one_by_one) // 2], 1),
        }

    def _keys(self, para_id: ParaId, count: int) -> list[SubscribedKey]:
        return sorted(SubscribedKey.from_data(b"%d/%d" % (para_id, number)) for number in range(count))

    def _publish(self, para_id: ParaId, key: SubscribedKey) -> None:
        entry = PublishedEntry(self.random.randbytes(self.options.value), 0, self.number + 1)
        self.relay.child(derive_child_info(para_id)).put(key, entry.encode())

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.seconds[name] += time.process_time() - began


def memory(bench: Bench, blocks: int) -> dict[str, object]:
    """Return the traced memory, in bytes, after each tenth of ``blocks``."""
    tracemalloc.start()
    sizes = []
    for _ in range(10):
        bench.run(max(blocks // 10, 1))
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return {"memory_blocks": blocks, "memory_bytes": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keys", type=int, default=1_000, help="subscribed keys, over all publishers")
    parser.add_argument("--published", type=int, default=100, help="keys that each publisher has")
    parser.add_argument("--publishers", type=int, default=10)
    parser.add_argument("--changed", type=int, default=10, help="subscribed keys that change in each block")
    parser.add_argument("--value", type=int, default=16, help="bytes of each value")
    parser.add_argument("--top", type=int, default=512, help="other entries of the relay chain's top trie")
    parser.add_argument("--blocks", type=int, default=500)
    parser.add_argument("--warm-up", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--memory", type=int, default=0, metavar="BLOCKS", help="trace memory over this many blocks too"
    )
    parser.add_argument("--profile", metavar="FILE", help="write what cProfile sees of the timed blocks")
    options = parser.parse_args()
    bench = Bench(options)
    bench.run(options.warm_up)
    gc.collect()
    gc.freeze()
    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    bench.run(options.blocks)
    profile.disable()
    report = bench.report(options.blocks)
    if options.profile:
        profile.dump_stats(options.profile)
    if options.memory:
        report |= memory(bench, options.memory)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
