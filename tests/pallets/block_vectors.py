"""Vectors of a block, the run of one through the subscriber pallet, and a small network that makes them.

Law: a run starts from the vector alone, in the exported bytes. Publishers write straight into their child tries.
``block`` seals the relay chain, collects, prunes and verifies; the next block continues from its state. ``lie`` runs a
block on other nodes and leaves everything as it was.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, convert
from msgspec.structs import replace

from relaycast.scenario.policy_choice import PolicyTable, policies_of
from relaycast_node.metadata.declarations import declare
from relaycast_node.metadata.runtime import Runtime, RuntimeNames
from relaycast_pallets.broadcaster.storage import PublishedEntry, derive_child_info
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.system import DispatchError, Event, Origin, System
from relaycast_pallets.parachain_system.pallet import IncompleteBelowLimit, ensure_exhausted
from relaycast_pallets.parachain_system.relay_budget import PovUsage, Remaining
from relaycast_pallets.subscriber import events as subscriber_events
from relaycast_pallets.subscriber.pallet import ProcessingMode, Subscriber, SubscriberConfig, process_proof
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_pallets.subscriber.result import ProofProcessingResult
from relaycast_pallets.subscriber.storage import PALLET, Cursor
from relaycast_pallets.subscriber.subscription import SubscribedKey, Subscriptions, TtlState
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.exceptions import RelaycastError, UnusedNodes
from relaycast_trie.hasher import blake2_256, twox_128
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.primitives import ROCKS_DB, DbWeight, ParaId, Weight, WeightMeter
from vector_fields import (
    Entry,
    Hash,
    Hex,
    ParaNumber,
    U32Number,
    Vector,
    VectorSource,
    VectorWeight,
    entries,
    hexed,
    pairs_of,
    scenario,
    unhexed,
)

Place = Annotated[int, Meta(ge=0, description="an index into nodes")]
Bytes = Annotated[int, Meta(ge=0, description="a number of bytes")]

KeyOf = tuple[ParaNumber, Hash]
"""A publisher and one of its keys."""

Callback = tuple[ParaNumber, Hash, Hex | None, Hex | None]
"""Publisher, key, value, and the time to live that is left, in SCALE; both are ``None`` for a told deletion."""

CallbackWeight = tuple[ParaNumber, Hash, VectorWeight]
"""Publisher, key, and what a callback for it weighs."""

PalletCall = tuple[str, ParaNumber]
"""A call by the root origin, and the publisher that it is about."""


class BlockConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits in nodes on a path, in publishers and in bytes, and what a database read and write take (picoseconds)."""

    max_trie_depth: U32Number
    max_publishers: U32Number
    max_value_length: U32Number
    read_ref_time: int
    write_ref_time: int
    callback_limit: VectorWeight | None = None
    """The limit of a block's callbacks together; present if callbacks declare a weight."""

    @property
    def db_weight(self) -> DbWeight:
        return DbWeight(self.read_ref_time, self.write_ref_time)


class PovShare(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the budget of a block follows from its largest proof and from the messages that wait.

    The first four are given: bytes of the largest proof, percent of it that may be used, and the lengths of downward
    and horizontal messages. The others are what follows: how many are in full, and what pub-sub may use.
    """

    max_pov_size: Bytes
    percent: int
    downward: tuple[Bytes, ...]
    horizontal: tuple[Bytes, ...]
    downward_full: int
    horizontal_full: int
    pubsub_bytes: Bytes


class BlockPanic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a block is refused.

    ``publisher`` and ``key`` say where an omission shows and ``remaining`` what was left of the budget there
    (``IncompleteBelowLimit``); ``hashes`` are those of the nodes that were not used, sorted (``UnusedNodes``).
    """

    cause: str
    publisher: ParaNumber | None = None
    key: Hash | None = None
    remaining: VectorWeight | None = None
    hashes: tuple[Hash, ...] | None = None


class BlockExpectation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is expected of a block: a ``panic`` and nothing else, or all the others.

    ``call_results`` has ``ok`` or the name of an error for each of the vector's calls.
    """

    panic: BlockPanic | UnsetType = UNSET
    consumed: VectorWeight | UnsetType = UNSET
    complete: bool | UnsetType = UNSET
    stopped_at: KeyOf | UnsetType | None = UNSET
    cursor: KeyOf | UnsetType | None = UNSET
    owed: KeyOf | UnsetType | None = UNSET
    callbacks: tuple[Callback, ...] | UnsetType = UNSET
    events: tuple[Hex, ...] | UnsetType = UNSET
    after: tuple[Entry, ...] | UnsetType = UNSET
    call_results: tuple[str, ...] | UnsetType = UNSET
    callback_weight: VectorWeight | UnsetType = UNSET
    """The declared weight of all callbacks."""


class BlockVector(Vector, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One block: what its pass starts from, what it is given, and what is expected.

    ``collected`` and ``pruned`` are absent where the nodes given are not an honest collator's.
    """

    config: BlockConfig
    subscriptions: tuple[tuple[ParaNumber, tuple[Hash, ...]], ...]
    declared_weight: VectorWeight
    before: tuple[Entry, ...]
    relay_root: Hash
    relay_parent_number: U32Number
    seed: Hex
    crowded: bool
    budget: VectorWeight
    static_keys: tuple[Hex, ...]
    nodes: tuple[Hex, ...]
    given: tuple[Place, ...]
    collected: tuple[Place, ...] | None = None
    pruned: tuple[Place, ...] | None = None
    calls: tuple[PalletCall, ...] = ()
    """``clear_stored_roots``, ``enable_publisher`` and ``clear_publisher_cache``, made after the pass."""

    callback_weights: tuple[CallbackWeight, ...] = ()
    """Declared weights of callbacks; those that are not listed weigh nothing."""

    used_weights: tuple[CallbackWeight, ...] = ()
    """Weights that callbacks return instead of the declared ones."""

    share: PovShare | None = None
    hashed_keys: tuple[tuple[Hex, Hash], ...] = ()
    """Data, and the subscribed key that is its Blake2b-256 hash."""

    expect: BlockExpectation = BlockExpectation()

    def nodes_at(self, places: Iterable[int]) -> list[bytes]:
        """Return the nodes that indexes stand for, in their order."""
        return [unhexed(self.nodes[place]) for place in places]


def key_of(cursor: Cursor | None) -> KeyOf | None:
    """Return a publisher and its key as vectors spell them."""
    return None if cursor is None else (int(cursor[0]), hexed(cursor[1]))


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
            reduced_by_messages=vector.crowded,
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
        owed=key_of(result.turn.deferred_key),
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
    pruned = VectorWeight.of(pruning.consumed), key_of(turn.stopped_at), key_of(turn.cursor), key_of(turn.deferred_key)
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


ALPHA, BETA, GAMMA = ParaId(1_000), ParaId(1_001), ParaId(1_002)
"""System parachains."""

PUBLIC, OTHER_PUBLIC = ParaId(2_000), ParaId(3_001)

AMPLE = Weight(2_000_000_000_000, 1 << 20)
"""A budget that every small network fits."""

SMALL = BlockConfig(
    max_trie_depth=8,
    max_publishers=100,
    max_value_length=1_024,
    read_ref_time=ROCKS_DB.read,
    write_ref_time=ROCKS_DB.write,
)

Names = Iterable[SubscribedKey]
Nodes = Sequence[bytes]


def key(name: str | int) -> SubscribedKey:
    """Return the key that is the hash of a name."""
    return SubscribedKey.from_data(str(name).encode())


def keys(count: int, *, prefix: str = "") -> list[SubscribedKey]:
    """Return keys in ascending order."""
    return sorted(key(f"{prefix}{number}") for number in range(count))


def path_key(nibbles: str) -> SubscribedKey:
    """Return the key whose path begins with these hexadecimal digits and goes on with zeros."""
    return SubscribedKey(bytes.fromhex(nibbles.ljust(64, "0")))


def staircase(depth: int, *, subscribed: SubscribedKey | None = None) -> list[SubscribedKey]:
    """Return ``depth`` keys that put as many nodes on the path of the first of them, its leaf included.

    The others part from it after 0, 1, 2, ... nibbles.
    """
    path = (subscribed or path_key("0")).hex()
    others = (path[:at] + f"{int(path[at], 16) ^ 1:x}" + path[at + 1 :] for at in range(depth - 1))
    return [SubscribedKey.fromhex(path), *map(SubscribedKey.fromhex, others)]


STATIC_KEYS = (bytes(key("top0")), bytes(key("no such top")))
"""Relay keys that every block reads first: one that exists, and one that does not."""


@dataclass(frozen=True)
class About:
    """Which vector: its path-like ``name``, ``why`` it exists in one line, and its ``source``."""

    name: str
    why: str
    source: VectorSource

    def at(self, part: object, why: str | None = None) -> "About":
        """Return the same for a part of it."""
        return About(f"{self.name}/{part}", self.why if why is None else why, self.source)


def executes(title: str, name: str, why: str) -> About:
    """Return name, reason and source of a vector that executes ``Requirement / Scenario`` of the specification."""
    return About(f"scenarios/{name}", why, scenario(title))


def trap(name: str, why: str) -> About:
    """Return name, reason and source of a vector of a trap that implementations fall into."""
    return About(f"traps/{name}", why, VectorSource(trap=name))


@dataclass
class SmallNetwork:
    """The relay chain's state sealed at ``number``, what the subscriber keeps, and what it wants.

    ``wanted`` is what ``subscriptions()`` returns, in its order and with its repeats; ``also`` are keys that the
    collector proves besides.
    """

    config: BlockConfig = SMALL
    policies: Mapping[str, str] = field(default_factory=dict)
    static_keys: tuple[bytes, ...] = STATIC_KEYS
    relay: State = field(
        default_factory=lambda: State({key(f"top{it}"): bytes(8) for it in range(4)}, window=4, engine="plain")
    )
    declared_weight: Weight = Weight.ZERO
    callback_weights: dict[Cursor, Weight] = field(default_factory=dict)
    used_weights: dict[Cursor, Weight] = field(default_factory=dict)
    number: int = 0
    kept: dict[bytes, bytes] = field(default_factory=dict)
    wanted: list[tuple[ParaId, list[SubscribedKey]]] = field(default_factory=list)
    also: dict[ParaId, list[SubscribedKey]] = field(default_factory=dict)

    def publish(self, publisher: ParaId, written: Names, value: bytes = b"\x2a", *, ttl: int = 0) -> None:
        """Let ``publisher`` write ``value`` under each key with the next relay block."""
        entry = PublishedEntry(value, ttl, self.number + 1).encode()
        for each in written:
            self.write(publisher, each, entry)

    def write(self, publisher: ParaId, written: SubscribedKey, entry: bytes) -> None:
        """Put bytes as they are into a publisher's child trie."""
        self.relay.child(derive_child_info(publisher)).put(written, entry)

    def entry(self, publisher: ParaId, written: SubscribedKey) -> bytes | None:
        return self.relay.child(derive_child_info(publisher)).get(written)

    def delete(self, publisher: ParaId, deleted: Names) -> None:
        for each in deleted:
            self.relay.child(derive_child_info(publisher)).kill(each)

    def subscribe(self, publisher: ParaId, wanted: Names) -> None:
        """Want exactly these keys of a publisher; none of it when there are none."""
        chosen = list(wanted)
        held = dict(self.wanted)
        if publisher in held or chosen:
            held[publisher] = chosen
        self.wanted = [(para_id, some) for para_id, some in held.items() if some]

    def put_turn(self, cursor: Cursor, owed: Cursor | None = None) -> None:
        """Let the next pass begin at ``cursor``, and one with the whole budget at ``owed``."""
        for item, at in (("RelayProofProcessingCursor", cursor), ("OwedKey", owed)):
            if at is not None:
                self.kept[twox_128(PALLET.encode()) + twox_128(item.encode())] = at[0].encode() + at[1]

    def seal(self) -> None:
        self.number += 1
        self.relay.commit()

    def collect(self, asked: BlockVector) -> list[bytes]:
        """Return what an honest collator fetches for the block, sorted."""
        root = self.relay.root
        proofs = [self.relay.prove_read(root, list(self.static_keys))]
        for name, wanted in BlockRun(asked).subscriber.relay_keys().by_child_trie().items():
            proofs.append(self.relay.prove_child_read(root, ChildInfo(name), wanted))
        for publisher, more in self.also.items():
            proofs.append(self.relay.prove_child_read(root, derive_child_info(publisher), more))
        return sorted(StorageProof.merge(proofs).nodes)

    def asked(
        self,
        about: About,
        *,
        budget: Weight = AMPLE,
        seed: bytes = b"seed",
        crowded: bool = False,
        calls: Iterable[PalletCall] = (),
    ) -> BlockVector:
        """Return the vector of a block on the sealed relay state, without nodes."""
        return BlockVector(
            id=f"subscriber/{about.name}",
            why=about.why,
            policies=dict(self.policies),
            source=about.source,
            config=self.config,
            subscriptions=tuple((int(para_id), tuple(map(hexed, some))) for para_id, some in self.wanted),
            declared_weight=VectorWeight.of(self.declared_weight),
            before=tuple(entries(self.kept)),
            relay_root=hexed(self.relay.root),
            relay_parent_number=self.number,
            seed=hexed(seed),
            crowded=crowded,
            budget=VectorWeight.of(budget),
            static_keys=tuple(map(hexed, self.static_keys)),
            nodes=(),
            given=(),
            calls=tuple(calls),
            callback_weights=_written(self.callback_weights),
            used_weights=_written(self.used_weights),
        )

    def honest(
        self,
        about: About,
        *,
        budget: Weight = AMPLE,
        seed: bytes = b"seed",
        crowded: bool = False,
        calls: Iterable[PalletCall] = (),
        seal: bool = True,
    ) -> BlockVector:
        """Return the vector of an honest collator's block; what the subscriber keeps stays as it is."""
        if seal:
            self.seal()
        asked = self.asked(about, budget=budget, seed=seed, crowded=crowded, calls=calls)
        return honest_vector(asked, self.collect(asked))

    def block(
        self,
        about: About,
        *,
        budget: Weight = AMPLE,
        seed: bytes = b"seed",
        crowded: bool = False,
        calls: Iterable[PalletCall] = (),
        seal: bool = True,
    ) -> BlockVector:
        """Return the vector of an honest collator's block, and go on from what it leaves."""
        vector = self.honest(about, budget=budget, seed=seed, crowded=crowded, calls=calls, seal=seal)
        self.follow(vector)
        return vector

    def follow(self, vector: BlockVector) -> None:
        """Go on from what a block leaves; one that panics leaves nothing."""
        if isinstance(vector.expect.after, tuple):
            self.kept = pairs_of(vector.expect.after)

    def lie(self, honest: BlockVector, about: About, nodes: Nodes) -> BlockVector:
        """Return the vector of the same block with other nodes."""
        return lying_vector(replace(honest, id=f"subscriber/{about.name}", why=about.why, source=about.source), nodes)


def _written(weights: Mapping[Cursor, Weight]) -> tuple[CallbackWeight, ...]:
    return tuple((int(publisher), hexed(key), VectorWeight.of(it)) for (publisher, key), it in weights.items())


def honest_vector(asked: BlockVector, collected: Nodes) -> BlockVector:
    """Return the vector with collected nodes, what PRUNE keeps of them, and what VERIFY makes of that.

    Raises ``AssertionError`` where the two modes differ, or where the block panics.
    """
    table = tuple(map(hexed, collected))
    kept, _ = prune(replace(asked, nodes=table, collected=tuple(range(len(table)))))
    vector = recomputed(replace(asked, nodes=table, collected=tuple(range(len(table))), given=kept))
    assert not vector.expect.panic, f"{vector.id}: an honest block panics: {vector.expect.panic}"
    return vector


def lying_vector(honest: BlockVector, nodes: Nodes) -> BlockVector:
    """Return the vector of a block that is given ``nodes``, with what VERIFY makes of them."""
    table = sorted(set(nodes))
    places = {node: place for place, node in enumerate(table)}
    vector = replace(
        honest,
        nodes=tuple(map(hexed, table)),
        given=tuple(places[node] for node in nodes),
        collected=None,
        pruned=None,
    )
    return replace(vector, expect=expectation_of(vector))


def version_0(top: Mapping[bytes, bytes] | None = None) -> State:
    """Return a relay chain state of version 0: values stand inside their nodes, however long they are."""
    held = {bytes(key(f"top{it}")): bytes(8) for it in range(4)}
    return State({**held, **(top or {})}, state_version=StateVersion.V0, window=4, engine="plain")


# Keys, budgets and networks of many scenes

K = keys(6)
A, B, C, D, E, F = K


def of_bytes(proof_size: int) -> Weight:
    """Return a budget of ``proof_size`` bytes and ample time."""
    return Weight(AMPLE.ref_time, proof_size)


def costs(vector: BlockVector) -> list[int]:
    """Return the bytes charged after each read of a pass over the collected nodes."""
    _, result = prune(vector)
    return list(accumulate(read.weight.proof_size for read in result.reads))


def following(*publishers: ParaId, wanted: int = 2, value: bytes = bytes(24)) -> SmallNetwork:
    """Return a network whose subscriber has seen the first keys of each publisher."""
    network = SmallNetwork()
    for publisher in publishers or (ALPHA,):
        network.subscribe(publisher, K[:wanted])
        network.publish(publisher, K[:4], value)
    network.block(executes(" / ", "before", "what comes first"))
    return network


def values(*publishers: ParaId, wanted: int = 2, size: int = 60) -> SmallNetwork:
    """Return a network in which the first keys of each publisher are subscribed to and not seen yet."""
    network = SmallNetwork()
    for publisher in publishers or (ALPHA,):
        network.subscribe(publisher, K[:wanted])
        for each in K[:4]:
            network.publish(publisher, [each], (str(publisher).encode() + each) * 2 + bytes(size))
    network.seal()
    return network


def cut_short(network: SmallNetwork, about: About, *, reads: int = 1, seal: bool = False) -> BlockVector:
    """Return a block that lacks room for the last ``reads`` reads of its pass, and go on from it."""
    if seal:
        network.seal()
    paid = costs(network.honest(about, seal=False))
    return network.block(about, budget=of_bytes(paid[-reads] - 1), seal=False)


def aside(network: SmallNetwork) -> SmallNetwork:
    """Return a network on the same relay chain whose subscriber goes its own way."""
    return SmallNetwork(
        config=network.config,
        policies=network.policies,
        relay=network.relay,
        number=network.number,
        kept=dict(network.kept),
        wanted=list(network.wanted),
    )


def stopped_at(network: SmallNetwork, name: About, key: bytes) -> BlockVector:
    """Return the first block that a budget stops at this key of 1000, and go on from it."""
    for proof_size in costs(network.honest(name, seal=False)):
        vector = network.honest(name, budget=of_bytes(proof_size), seal=False)
        if vector.expect.stopped_at == (int(ALPHA), hexed(key)):
            network.follow(vector)
            return vector
    raise AssertionError(f"no budget stops at 0x{key.hex()}")


def told(vector: BlockVector) -> list[bytes]:
    """Return the keys of a block's callbacks with a value, in their order."""
    return [unhexed(key) for _, key, value, _ in vector.expect.callbacks or () if value is not None]


def deleted(vector: BlockVector) -> list[bytes]:
    """Return the keys of a block's callbacks without a value, in their order."""
    return [unhexed(key) for _, key, value, _ in vector.expect.callbacks or () if value is None]
