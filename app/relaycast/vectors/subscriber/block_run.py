"""Runs a vector of kind ``subscriber`` through the subscriber pallet: what it must expect, and what PRUNE keeps.

Law: a run starts from the vector alone, in the exported bytes. So the exported vector is the one that is checked.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from msgspec import convert
from msgspec.structs import replace

from relaycast.scenario.policy_choice import PolicyTable, policies_of
from relaycast.vectors.subscriber.block_vector import (
    BlockExpectation,
    BlockPanic,
    BlockVector,
    Callback,
    CallbackWeight,
    PovShare,
    key_of,
)
from relaycast.vectors.vector import VectorWeight, entries, hexed, pairs_of, unhexed
from relaycast_node.metadata.declarations import declare
from relaycast_node.metadata.runtime import Runtime, RuntimeNames
from relaycast_pallets.frame.events import Event
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.system import DispatchError, Origin, System
from relaycast_pallets.parachain_system.pallet import IncompleteBelowLimit, ensure_exhausted
from relaycast_pallets.parachain_system.relay_budget import PovUsage, Remaining
from relaycast_pallets.subscriber import events as subscriber_events
from relaycast_pallets.subscriber.pallet import Subscriber, SubscriberConfig
from relaycast_pallets.subscriber.plan import Cursor
from relaycast_pallets.subscriber.processing_result import ProofProcessingResult
from relaycast_pallets.subscriber.proof_processing import ProcessingMode, process_proof
from relaycast_pallets.subscriber.storage import PALLET
from relaycast_pallets.subscriber.subscription import SubscribedKey, Subscriptions, TtlState
from relaycast_pallets.subscriber.tracked_proof import TrackedProof
from relaycast_trie.exceptions import RelaycastError, UnusedNodes
from relaycast_trie.hasher import blake2_256, twox_128
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.primitives import ParaId, Weight, WeightMeter

CALLS = ("clear_stored_roots", "enable_publisher", "clear_publisher_cache")
"""Calls that the root origin may make in a vector."""


class _Listener:
    """A handler that subscribes to what a vector says and notes every callback."""

    def __init__(self, vector: BlockVector) -> None:
        self._wanted: Subscriptions = [
            (ParaId(publisher), [SubscribedKey(unhexed(key)) for key in keys])
            for publisher, keys in vector.subscriptions
        ]
        self._weight = vector.declared_weight.weight()
        self._declared = _weights(vector.callback_weights)
        self._used = self._declared | _weights(vector.used_weights)
        self.callbacks: list[Callback] = []

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return self._wanted, self._weight

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: TtlState) -> Weight:
        self.callbacks.append((int(publisher), hexed(key), hexed(value), hexed(ttl_state.encode())))
        return self._used.get((publisher, key), Weight.ZERO)

    def on_data_deleted(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        self.callbacks.append((int(publisher), hexed(key), None, None))
        return self._used.get((publisher, key), Weight.ZERO)

    def callback_weight(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        return self._declared.get((publisher, key), Weight.ZERO)


def _weights(given: Iterable[CallbackWeight]) -> dict[Cursor, Weight]:
    return {(ParaId(publisher), SubscribedKey(unhexed(key))): weight.weight() for publisher, key, weight in given}


class BlockRun:
    """The parachain as the vector's ``before`` has it: its pallet, and a handler that records its callbacks."""

    def __init__(self, vector: BlockVector) -> None:
        self._vector = vector
        self.state = State(pairs_of(vector.before), window=1, engine="plain")
        self.system = System(self.state)
        self.listener = _Listener(vector)
        self.subscriber = subscriber_of(vector, self.system, self.listener)

    def process(self, mode: ProcessingMode, proof: TrackedProof) -> ProofProcessingResult:
        """Let a pass read the static keys of the vector and then its subscriptions; raises what it panics with."""
        vector = self._vector
        proof.read_static(map(unhexed, vector.static_keys))
        meter = WeightMeter(vector.budget.weight())

        def demand(result: ProofProcessingResult) -> None:
            proof.ensure_no_unused_nodes()
            ensure_exhausted(result, meter)

        return process_proof(
            mode,
            proof,
            proof.relay_root,
            meter,
            self.subscriber,
            seed=unhexed(vector.seed),
            relay_parent_number=vector.relay_parent_number,
            crowded=vector.crowded,
            demand=demand,
        )

    def call(self, name: str, publisher: int) -> str:
        """Make a call as root; return ``ok`` or the name of the error."""
        if name not in CALLS:
            raise ValueError(f"a call is one of {', '.join(CALLS)}, got {name}")
        try:
            getattr(self.subscriber, name)(Origin.root(), ParaId(publisher))
        except DispatchError as error:
            return type(error).__name__
        return "ok"

    def after(self) -> dict[bytes, bytes]:
        """Return the pallet's storage as it is now."""
        held, _ = self.state.snapshot()
        prefix = twox_128(PALLET.encode())
        return {key: value for key, value in held.items() if key.startswith(prefix)}


def subscriber_of(vector: BlockVector, system: System, listener: _Listener) -> Subscriber:
    """Return the pallet with the vector's constants and policies."""
    given = vector.config
    config = SubscriberConfig(
        max_trie_depth=given.max_trie_depth,
        max_publishers=given.max_publishers,
        max_value_length=given.max_value_length,
        db_weight=given.db_weight,
        callback_limit=Weight.MAX if given.callback_limit is None else given.callback_limit.weight(),
    )
    policies = policies_of(convert(vector.policies, PolicyTable, strict=False))
    return Subscriber(system, listener, config, policies=policies)


def expectation_of(vector: BlockVector) -> BlockExpectation:
    """Return the result of the vector's block (VERIFY), whatever the vector expects."""
    run = BlockRun(vector)
    root = unhexed(vector.relay_root)
    try:
        proof = TrackedProof.without_duplicates(vector.nodes_at(vector.given), root)
        result = run.process(ProcessingMode.VERIFY, proof)
    except RelaycastError as error:
        return BlockExpectation(panic=panic_of(error))
    results = tuple(run.call(name, publisher) for name, publisher in vector.calls)
    return BlockExpectation(
        consumed=VectorWeight.of(result.consumed),
        complete=result.is_complete,
        stopped_at=key_of(result.stopped_at),
        cursor=key_of(result.turn.cursor),
        owed=key_of(result.turn.owed),
        callbacks=tuple(run.listener.callbacks),
        events=tuple(hexed(encode_event(event)) for event in run.system.events),
        after=tuple(entries(run.after())),
        call_results=results,
        callback_weight=VectorWeight.of(result.callback_weight),
    )


def prune(vector: BlockVector) -> tuple[tuple[int, ...], ProofProcessingResult]:
    """Return the indexes of the collected nodes that PRUNE keeps, and its pass; raises what the block panics with."""
    assert vector.collected is not None
    collected = StorageProof(vector.nodes_at(vector.collected))
    proof = TrackedProof(collected, unhexed(vector.relay_root))
    result = BlockRun(vector).process(ProcessingMode.PRUNE, proof)
    kept = proof.read_nodes().nodes
    return tuple(place for place in vector.collected if unhexed(vector.nodes[place]) in kept), result


def recomputed(vector: BlockVector) -> BlockVector:
    """Return the vector with what PRUNE keeps, what is expected and its share of the block worked out anew."""
    if vector.collected is not None:
        pruned, pruning = prune(vector)
        vector = replace(vector, pruned=pruned)
        vector = replace(vector, expect=expectation_of(vector))
        ensure_one_pass(vector, pruning)
    else:
        vector = replace(vector, expect=expectation_of(vector))
    hashed_keys = tuple((data, hexed(blake2_256(unhexed(data)))) for data, _ in vector.hashed_keys)
    return replace(vector, hashed_keys=hashed_keys, share=None if vector.share is None else shared_out(vector.share))


def ensure_one_pass(vector: BlockVector, pruning: ProofProcessingResult) -> None:
    """Raise ``AssertionError`` unless VERIFY consumed, stopped and left cursors where PRUNE did."""
    expect, turn = vector.expect, pruning.turn
    if expect.panic:
        return
    verified = expect.consumed, expect.stopped_at, expect.cursor, expect.owed
    pruned = VectorWeight.of(pruning.consumed), key_of(turn.stopped_at), key_of(turn.cursor), key_of(turn.owed)
    assert verified == pruned, f"{vector.id}: PRUNE {pruned}, VERIFY {verified}"


def shared_out(share: PovShare) -> PovShare:
    """Return a share with its derived fields computed."""
    usage = PovUsage(share.max_pov_size, tuple(map(bytes, share.downward)), tuple(map(bytes, share.horizontal)))
    found = Remaining(share.percent).share_out(usage)
    return replace(
        share,
        downward_full=found.downward_count,
        horizontal_full=found.horizontal_count,
        pubsub_bytes=found.pubsub_bytes,
    )


def panic_of(error: RelaycastError) -> BlockPanic:
    """Return the cause of a panic as a vector has it."""
    cause = type(error).__name__
    if isinstance(error, UnusedNodes):
        return BlockPanic(cause=cause, hashes=tuple(map(hexed, error.hashes)))
    if isinstance(error, IncompleteBelowLimit):
        remaining = VectorWeight.of(error.remaining)
        return BlockPanic(cause=cause, publisher=int(error.publisher), key=hexed(error.key), remaining=remaining)
    return BlockPanic(cause=cause)


def encode_event(event: Event) -> bytes:
    """Return an event of the pallet in SCALE: its index in the pallet, then its fields."""
    runtime = _runtime()
    return runtime.encode(f"{PALLET}Event", event)


@cache
def _runtime() -> Runtime:
    declared = declare(PALLET, 0, modules=[subscriber_events])
    return Runtime(RuntimeNames("relaycast-conformance"), [declared], ())


def event_names() -> Mapping[int, str]:
    """Return the pallet's events by their index."""
    return {index: event.__name__ for index, event in enumerate(_runtime().pallets[0].events)}
