"""One subscriber, block after block: what PRUNE, VERIFY and the seal of its state take.

The relay chain's child tries change by a fixed number of keys a block. Timed are PRUNE (the collator's pass over the
collected proof) and VERIFY (``set_validation_data``) alone. Writing and proving the relay state, and sealing the
parachain's state, are timed apart, and so is hashing the nodes of the proof one by one: no pass does without that.
"""

import gc
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from relaycast_pallets import (
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
    Update,
    derive_child_info,
    static_relay_keys,
)
from relaycast_pallets.frame.well_known_keys import (
    dmq_mqc_head,
    hrmp_egress_channel_index,
    hrmp_ingress_channel_index,
)
from relaycast_pallets.messaging.inbound_message import PARA_IDS
from relaycast_trie import Engine, StorageProof, blake2_256
from relaycast_xcm.primitives import ParaId, Weight

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

    def on_data_updated_many(self, _publisher: ParaId, updates: Sequence[Update]) -> list[Weight]:
        self.calls += len(updates)
        return [Weight.ZERO] * len(updates)


class PassOptions(Struct, frozen=True):
    """One subscriber of ``keys`` over all publishers, each of which has ``published`` keys; ``changed`` a block."""

    keys: int = 1_000
    published: int = 100
    publishers: int = 10
    changed: int = 10
    value: int = 16
    """Bytes of each value."""

    top: int = 512
    """Other entries of the relay chain's top trie."""

    seed: int = 7
    engine: Engine = "auto"


class PassBench:
    """The relay chain's state, one subscriber, and a stopwatch for each kind of work."""

    def __init__(self, options: PassOptions) -> None:
        self.options = options
        self.random = random.Random(options.seed)  # noqa: S311 - to be drawn again
        publishers = [ParaId(1_000 + number) for number in range(options.publishers)]
        self.keys = {para_id: self._keys(para_id, options.published) for para_id in publishers}
        share = options.keys // options.publishers
        self.handler = Counting({para_id: keys[:share] for para_id, keys in self.keys.items()})
        self.subscribed = [(para_id, key) for para_id, keys in self.handler.wanted for key in keys]
        top = {blake2_256(b"top%d" % number): bytes(64) for number in range(options.top)}
        top |= {key: bytes(40) for key in static_relay_keys(PARA)}
        channels = (hrmp_ingress_channel_index(PARA), hrmp_egress_channel_index(PARA))
        top |= dict.fromkeys(channels, PARA_IDS.encode(())) | {dmq_mqc_head(PARA): bytes(32)}
        self.relay = State(top, window=2, engine=options.engine)
        self.state = State(window=1, engine=options.engine)
        self.system = System(self.state)
        self.subscriber = Subscriber(self.system, self.handler, SubscriberConfig())
        self.parachain = ParachainSystem(PARA, self.system, self.subscriber)
        self.seconds = dict.fromkeys(("relay", "prove", "prune", "verify", "seal"), 0.0)
        self.both: list[float] = []
        self.proof_bytes = 0
        self.hashlib_seconds = 0.0
        """Time to hash the nodes of all proofs one by one."""

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
        began = time.process_time()
        for node in inherent.relay_chain_state:
            blake2_256(node)
        self.hashlib_seconds += time.process_time() - began
        with self._timed("seal"):
            self.state.commit()
            self.system.initialize(self.number)

    def run(self, blocks: int) -> None:
        """Run ``blocks`` blocks from zeroed stopwatches."""
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self.proof_bytes = self.handler.calls = 0
        self.hashlib_seconds = 0.0
        self.both = [0.0]
        for _ in range(blocks):
            self.block()

    def each(self, blocks: int) -> dict[str, float]:
        """Return the milliseconds of CPU time that each kind of work takes in a block."""
        taken = {**self.seconds, "hashlib": self.hashlib_seconds}
        return {f"{name}_ms": round(seconds * 1_000 / blocks, 4) for name, seconds in taken.items()}

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


SIZES = ((50, 1, 50), (1_000, 4, 100), (4_000, 1, 2_000))
"""Keys of a subscriber, publishers, and keys that change in a block."""

ENGINES: tuple[Engine, ...] = ("plain", "array")


def measured(keys: int, publishers: int, changed: int, engine: Engine, *, blocks: int, seed: int) -> dict[str, object]:
    """Return what a subscriber takes under one engine; times in milliseconds a block."""
    published = keys // publishers
    bench = PassBench(
        PassOptions(keys=keys, published=published, publishers=publishers, changed=changed, seed=seed, engine=engine)
    )
    bench.run(max(2, blocks // 10))
    gc.collect()
    bench.run(blocks)
    each = bench.each(blocks)
    over = (each["prune_ms"] + each["verify_ms"]) / each["hashlib_ms"]
    proof_bytes = round(bench.proof_bytes / blocks)
    return {
        "keys": keys,
        "publishers": publishers,
        "changed": changed,
        "engine": engine,
        "proof_bytes_per_block": proof_bytes,
        **each,
        "over_hashlib": round(over, 1),
    }
