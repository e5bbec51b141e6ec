"""A small relay chain state with publishers, and one parachain that subscribes: what the subscriber's tests stand on.

Publishers write straight into their child tries. ``block`` lets an honest collator prune and the parachain verify;
what it hands over can be tampered with on the way.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pallets.block_vectors import ALPHA, BETA, key, keys, staircase
from relaycast_pallets import (
    ParachainInherentData,
    ParachainSystem,
    PersistedValidationData,
    Policies,
    ProofProcessingResult,
    PublishedEntry,
    Remaining,
    State,
    SubscribedKey,
    Subscriber,
    SubscriberConfig,
    System,
    TtlState,
    ValidationOutcome,
    derive_child_info,
)
from relaycast_pallets.messaging.relay_queues import Dmp, Hrmp
from relaycast_pallets.parachain_system.inbound_messages import channel_keys
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.storage import PALLET
from relaycast_pallets.subscriber.subscription import SubscribedPaths, Subscriptions
from relaycast_pallets.subscriber.variants.migration import migrate
from relaycast_trie import ChildInfo, StorageProof, blake2_256
from relaycast_trie.hasher import twox_128
from relaycast_xcm.primitives import U64_MAX, ZERO_DB, ParaId, Weight, WeightMeter

SUBSCRIBER = ParaId(2_500)
PLENTY = 1 << 20
MOCK = SubscriberConfig(max_trie_depth=8, max_value_length=1_024)
FREE_READS = SubscriberConfig(max_trie_depth=8, max_value_length=1_024, db_weight=ZERO_DB)
"""The upstream mock: reading the database weighs nothing."""

Tamper = Callable[[ParachainInherentData], ParachainInherentData]
Call = tuple[ParaId, SubscribedKey, bytes, TtlState]


@dataclass
class Recorder:
    """A handler that writes down every call."""

    wanted: dict[ParaId, list[SubscribedKey]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    values: dict[tuple[ParaId, SubscribedKey], bytes] = field(default_factory=dict)
    weight: Weight = Weight.ZERO
    deleted: list[tuple[ParaId, SubscribedKey]] = field(default_factory=list)

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return list(self.wanted.items()), self.weight

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: TtlState) -> Weight:
        self.calls.append((publisher, key, value, ttl_state))
        self.values[publisher, key] = value
        return self.weight

    def on_data_deleted(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        self.deleted.append((publisher, key))
        self.values.pop((publisher, key), None)
        return self.weight

    def take(self) -> list[Call]:
        """Return the calls since the last time."""
        taken, self.calls = self.calls, []
        return taken


@dataclass(frozen=True)
class Block:
    """One block: what was collected, how it was pruned, what was handed over, and what the chain made of it."""

    collected: StorageProof
    pruning: ProofProcessingResult
    inherent: ParachainInherentData
    outcome: ValidationOutcome
    calls: tuple[Call, ...]
    deleted: tuple[tuple[ParaId, SubscribedKey], ...] = ()
    """Keys whose deletion the handler was told."""

    @property
    def result(self) -> ProofProcessingResult:
        return self.outcome.result

    @property
    def nodes(self) -> set[bytes]:
        """Hashes of the nodes that were handed over."""
        return set(map(blake2_256, self.inherent.relay_chain_state))

    @property
    def called(self) -> list[tuple[ParaId, SubscribedKey]]:
        return [call[:2] for call in self.calls]

    def sizes(self, *sources: str) -> list[int]:
        return [read.size for read in self.result.reads if read.source.value in sources]


class World:
    """The relay chain's ``relay`` state, sealed at ``number``, and the parachain with its ``handler``."""

    def __init__(
        self,
        *,
        config: SubscriberConfig = MOCK,
        policies: Policies | None = None,
        budget: BudgetPolicy | None = None,
        ref_time_limit: int = U64_MAX,
        top_entries: int = 20,
        relay: State | None = None,
    ) -> None:
        self.relay = relay or State({key(f"top{number}"): bytes(40) for number in range(top_entries)}, window=8)
        self.state = State(window=2)
        self.system = System(self.state)
        self.handler = Recorder()
        self.subscriber = Subscriber(self.system, self.handler, config, policies=policies)
        self.storage = self.subscriber.storage
        self.parachain = ParachainSystem(
            SUBSCRIBER,
            self.system,
            self.subscriber,
            budget=budget or Remaining(percent=100),
            ref_time_limit=ref_time_limit,
        )
        self.dmp, self.hrmp = Dmp(self.relay), Hrmp(self.relay)
        self.number = 0
        self.deepest_limit = config.max_trie_depth
        self.system.initialize(1)

    def publish(
        self, publisher: ParaId, keys: Iterable[SubscribedKey], value: bytes = b"\x2a", *, ttl: int = 0
    ) -> None:
        """Let ``publisher`` write ``value`` under each key with the next relay block."""
        child = self.relay.child(derive_child_info(publisher))
        for written in keys:
            child.put(written, PublishedEntry(value, ttl, self.number + 1).encode())

    def receive(self, downward: Iterable[bytes] = (), horizontal: Iterable[bytes] = (), *, sender: int = 1) -> None:
        """Queue messages for the parachain with the next relay block, horizontal ones from ``sender``."""
        sent_at = self.number + 1
        self.dmp.queue(SUBSCRIBER, downward, sent_at=sent_at)
        if horizontal := list(horizontal):
            self.hrmp.send(ParaId(sender), SUBSCRIBER, horizontal, sent_at=sent_at)

    def delete(self, publisher: ParaId, keys: Iterable[SubscribedKey]) -> None:
        for deleted in keys:
            self.relay.child(derive_child_info(publisher)).kill(deleted)

    def subscribe(self, publisher: ParaId, keys: Iterable[SubscribedKey]) -> None:
        """Want exactly ``keys`` of ``publisher``; none of it when there are none."""
        self.handler.wanted[publisher] = list(keys)

    def entry(self, publisher: ParaId, key: SubscribedKey) -> bytes | None:
        return self.relay.child(derive_child_info(publisher)).get(key)

    def root_of(self, publisher: ParaId) -> bytes | None:
        """Return the publisher's child root as last sealed."""
        return self.relay.get(derive_child_info(publisher).prefixed_storage_key())

    def upgrade(self, *, policies: Policies | None = None, **constants: Any) -> None:
        """Let the parachain's next block run other code: ``policies``, and ``constants`` of its configuration."""
        subscriber, before = self.subscriber, self.subscriber.policies
        subscriber.config = replace(subscriber.config, **constants)
        subscriber.policies = policies or before
        self.deepest_limit = max(self.deepest_limit, subscriber.config.max_trie_depth)
        migrate(subscriber, before)

    def seal(self) -> bytes:
        self.number += 1
        return self.relay.commit()

    def collect(self) -> StorageProof:
        """Return everything that the parachain asks for, as the sealed relay state proves it."""
        root, request = self.relay.root, self.subscriber.relay_keys()
        proofs = [self.relay.prove_read(root, [*self.static_keys(), *request.top_keys()])]
        proofs += [
            self.relay.prove_child_read(root, ChildInfo(name), wanted)
            for name, wanted in request.by_child_trie().items()
        ]
        return StorageProof.merge(proofs)

    def inherent(self, proof: Iterable[bytes], pubsub_bytes: int = PLENTY) -> ParachainInherentData:
        data = PersistedValidationData(b"", self.number, self.relay.root, pubsub_bytes)
        queues = self.dmp.messages(SUBSCRIBER, up_to=self.number), self.hrmp.messages(SUBSCRIBER, up_to=self.number)
        return replace(self.parachain.create_inherent(data, *queues), relay_chain_state=tuple(proof))

    def prune(
        self, pubsub_bytes: int = PLENTY, *, seed: bytes = b""
    ) -> tuple[ParachainInherentData, ProofProcessingResult]:
        """Return the honest inherent on the sealed relay state, and the pass that it came from."""
        full = self.inherent(self.collect(), pubsub_bytes)
        pruned, result = self.parachain.prune(full, seed)
        return replace(full, relay_chain_state=tuple(pruned)), result

    def block(
        self,
        pubsub_bytes: int = PLENTY,
        *,
        seed: bytes = b"",
        flood: int = 0,
        tamper: Tamper | None = None,
        seal: bool = True,
    ) -> Block:
        """Seal the relay chain, prune and verify; raises ``Panic`` when the inherent does not hold.

        A message takes ``flood`` of the ``pubsub_bytes``; it comes with a relay block of its own.
        """
        if flood:
            self.receive([bytes(flood)])
        if seal or flood:
            self.seal()
        collected = self.collect()
        inherent, pruning = self.prune(pubsub_bytes, seed=seed)
        if tamper is not None:
            inherent = tamper(inherent)
        before, told = len(self.handler.calls), len(self.handler.deleted)
        outcome = self.parachain.set_validation_data(inherent, seed)
        calls, deleted = tuple(self.handler.calls[before:]), tuple(self.handler.deleted[told:])
        return Block(collected, pruning, inherent, outcome, calls, deleted)

    def static_keys(self) -> list[bytes]:
        """Return the static keys, those of open channels among them."""
        channels = channel_keys(lambda keys: {key: self.relay.get(key) for key in keys}, SUBSCRIBER)
        return [*self.parachain.static_keys(), *channels]

    def static_nodes(self) -> set[bytes]:
        """Return the hashes of the nodes that the static keys need."""
        proof = self.relay.prove_read(self.relay.root, self.static_keys())
        return set(map(blake2_256, proof.nodes))

    def relay_nodes(self) -> dict[bytes, bytes]:
        """Return every node of the relay chain's database by its hash."""
        return {node_hash: data for node_hash in self.relay.db if (data := self.relay.db.get(node_hash)) is not None}

    def subscribed(self, publisher: ParaId) -> SubscribedPaths:
        return SubscribedPaths.of(sorted(set(self.handler.wanted.get(publisher, ()))))

    def cached(self, publisher: ParaId) -> dict[bytes, bytes]:
        return self.subscriber.cached_nodes(publisher)

    def kept(self) -> dict[bytes, bytes]:
        """Return all that the subscriber pallet keeps in the parachain's state."""
        prefix, (entries, _) = twox_128(PALLET.encode()), self.state.snapshot()
        return {key: value for key, value in entries.items() if key.startswith(prefix)}

    def everything(self) -> tuple[object, ...]:
        """Return all that a refused block must leave as it is."""
        told = list(self.handler.calls), list(self.handler.deleted)
        return self.state.snapshot(), list(self.system.events), *told, self.subscriber.delivered


def meter(proof_size: int = PLENTY, *, ref_time: int = U64_MAX) -> WeightMeter:
    return WeightMeter(Weight(ref_time, proof_size))


def world_of(*publishers: ParaId, count: int = 10, size: int = 100, policies: Policies | None = None) -> World:
    """Return a world in which each publisher has written its own keys, all subscribed to."""
    world = World(policies=policies)
    for publisher in publishers:
        wanted = keys(count, prefix=str(publisher))
        world.subscribe(publisher, wanted)
        world.publish(publisher, wanted, bytes(size))
    return world


K = keys(10)


def following(*publishers: ParaId, wanted: int = 3, policies: Policies | None = None) -> World:
    """Return a world whose subscriber has seen the first keys of each publisher."""
    world = World(policies=policies)
    for publisher in publishers or (ALPHA,):
        world.subscribe(publisher, K[:wanted])
        world.publish(publisher, K, str(publisher).encode())
    world.block()
    world.handler.take()
    world.system.events.take()
    return world


def disabled(publisher: ParaId = ALPHA) -> World:
    """Return a world in which ``publisher`` is disabled for a path of ten nodes."""
    world = World()
    for number, follow in enumerate((publisher, BETA)):
        world.subscribe(follow, staircase(10)[:1])
        world.publish(follow, staircase(10 - 4 * number), bytes(40))
    world.block()
    world.handler.take()
    world.system.events.take()
    return world
