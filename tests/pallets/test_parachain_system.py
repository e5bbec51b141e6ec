"""The parachain's side of the inherent: tracked reads, what a proof must and must not hold, and how a block panics."""

import gc
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pallets.block_vectors import ALPHA, BETA, PUBLIC, BlockVector, K, executes, key, of_bytes, values
from pallets.subscriber_invariants import ChangesTold, all_hold, nothing_is_lost, refused
from pallets.subscriber_world import MOCK, PLENTY, SUBSCRIBER, Block, World
from relaycast_pallets import (
    MAX_POV_BYTES,
    IncompleteBelowLimit,
    Panic,
    ParachainInherentData,
    PersistedValidationData,
    PovUsage,
    SubscriberConfig,
    TrackedProof,
    derive_child_info,
)
from relaycast_pallets.frame.well_known_keys import CURRENT_SLOT
from relaycast_pallets.messaging.inbound_message import AbridgedMessages, InboundMessage
from relaycast_trie import (
    DuplicateNode,
    MemoryDB,
    MissingNode,
    RootMismatch,
    StorageProof,
    TrieDBMut,
    UnusedNodes,
    blake2_256,
)
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.primitives import ROCKS_DB, ParaId, Weight, WeightMeter
from yielded_vectors import yields


def publishing(*, size: int = 100) -> World:
    world = World()
    for publisher in (ALPHA, BETA):
        world.subscribe(publisher, K)
        world.publish(publisher, K, str(publisher).encode() * (size // 4))
    world.seal()
    return world


def without(inherent: ParachainInherentData, *gone: bytes) -> ParachainInherentData:
    left = tuple(node for node in inherent.relay_chain_state if node not in gone)
    assert len(left) == len(inherent.relay_chain_state) - len(gone)
    return replace(inherent, relay_chain_state=left)


@pytest.mark.upstream("proof_with_unused_nodes_is_rejected")
def test_a_tracker_refuses_nodes_that_nobody_read() -> None:
    """The upstream vector: three values outside of their nodes."""
    db = MemoryDB()
    trie = TrieDBMut(db)
    held = {b"key%d" % number: bytes([number]) * 64 for number in (1, 2, 3)}
    for name, value in held.items():
        trie[name] = value
    root = trie.commit()
    proof = StorageProof.generate(db, root, held)
    whole = TrackedProof(proof, root)
    assert whole.read_static(held) == held
    whole.ensure_no_unused_nodes()
    partial = TrackedProof(proof, root)
    partial.read_static([b"key1", b"key2"])
    with pytest.raises(UnusedNodes) as error:
        partial.ensure_no_unused_nodes()
    assert blake2_256(held[b"key3"]) in error.value.hashes
    assert partial.read_nodes() == StorageProof.generate(db, root, [b"key1", b"key2"])


@pytest.mark.upstream("all_nodes_accessed_valid")
@pytest.mark.upstream("all_proof_nodes_accessed_complete_processing")
@pytest.mark.upstream("extraneous_nodes_invalid")
@yields("subscriber/budget-scenarios")
def test_one_node_too_many_panics_the_block() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Proof validation - all nodes accessed",
        "all-accessed",
        "one node too many: the block panics",
    )
    network = values()
    network.also = {ALPHA: K}
    honest = network.honest(about, seal=False)
    assert honest.collected is not None
    nodes = honest.nodes_at(honest.given)
    unneeded = [node for node in honest.nodes_at(honest.collected) if node not in nodes]
    yield network.lie(honest, about, [*nodes, unneeded[0]])
    yield network.lie(honest, about.at("foreign", "a node of no trie"), [*nodes, b"foreign"])
    yield network.lie(honest, about.at("order", "nodes are a set: their order is free"), nodes[::-1])


@pytest.mark.upstream("incomplete_at_limit_valid")
@pytest.mark.upstream("missing_node_at_limit_valid")
@yields("subscriber/budget-scenarios")
def test_an_incomplete_pass_is_valid_where_one_read_of_the_largest_entry_does_not_fit() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Proof validation - incomplete at weight limit",
        "incomplete-at-limit",
        "less than min_weight is left: an incomplete pass is valid, even where more would have fitted",
    )
    network = values()
    honest = network.honest(about, budget=of_bytes(MOCK.min_weight.proof_size - 1), seal=False)
    static = network.honest(about, budget=of_bytes(0), seal=False)
    yield network.lie(honest, about, static.nodes_at(static.given))
    time = about.at("time", "bytes are ample, and the time of one read is not left")
    yield network.honest(time, budget=Weight(ROCKS_DB.read - 1, PLENTY), seal=False)


@pytest.mark.upstream("incomplete_below_limit_invalid")
@pytest.mark.upstream("missing_node_below_limit_invalid")
@yields("subscriber/budget-scenarios")
def test_leaving_out_what_would_have_fitted_panics_the_block() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Proof validation - incomplete below weight limit",
        "incomplete-below-limit",
        "exactly min_weight is left and the proof ends: the block panics",
    )
    network = values()
    honest = network.honest(about, budget=of_bytes(MOCK.min_weight.proof_size), seal=False)
    static = network.honest(about, budget=of_bytes(0), seal=False)
    yield network.lie(honest, about, static.nodes_at(static.given))
    ample = network.honest(about, seal=False)
    value = max(ample.nodes_at(ample.given), key=len)
    rest = [node for node in ample.nodes_at(ample.given) if node != value]
    yield network.lie(ample, about.at("value", "one value is left out of a block with ample budget"), rest)


def test_a_refused_block_with_8_000_hostile_nodes_leaves_few_of_their_bytes_in_memory() -> None:
    """Nodes as long as are remembered at all, 31 MiB of them."""

    def padded(honest: ParachainInherentData) -> ParachainInherentData:
        padding = tuple(number.to_bytes(4, "little") * 1_024 for number in range(1, 8_001))
        return replace(honest, relay_chain_state=(*honest.relay_chain_state, *padding))

    world = publishing()
    tracemalloc.start()
    try:
        assert isinstance(refused(world, padded).cause, UnusedNodes)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_node_that_comes_twice_panics_the_block() -> None:
    panic = refused(
        publishing(),
        lambda honest: replace(honest, relay_chain_state=(*honest.relay_chain_state, honest.relay_chain_state[0])),
    )
    assert isinstance(panic.cause, DuplicateNode)


def test_a_static_node_that_is_missing_panics_the_block_whatever_the_budget() -> None:
    for pubsub_bytes in (0, PLENTY):
        world = publishing()
        for node_hash in world.static_nodes():
            node = world.relay_nodes()[node_hash]
            cause = refused(world, lambda honest, gone=node: without(honest, gone), pubsub_bytes=pubsub_bytes).cause  # type: ignore[misc]
            assert isinstance(cause, MissingNode | RootMismatch)


@pytest.mark.parametrize("slack", [0, 1])
def test_the_limit_is_exact(slack: int) -> None:
    """An omission passes while one read of the largest entry does not fit, and not a byte further."""
    world = publishing()
    _, result = world.prune()
    nodes = world.relay_nodes()
    last = result.reads[-1]
    before = sum(read.size for read in result.reads[:-1])
    budget = before + MOCK.min_weight.proof_size - slack

    def omit(inherent: ParachainInherentData) -> ParachainInherentData:
        return without(inherent, nodes[last.node_hash])

    assert last.size < MOCK.min_weight.proof_size - 1
    if slack:
        assert not world.block(budget, tamper=omit, seal=False).result.is_complete
        assert world.block(seal=False).result.is_complete
        nothing_is_lost(world)
    else:
        assert isinstance(refused(world, omit, pubsub_bytes=budget).cause, IncompleteBelowLimit)


def test_a_proof_of_another_state_panics_the_block() -> None:
    world = publishing()
    stale = world.prune()[0].relay_chain_state
    world.publish(ALPHA, K, b"new")
    world.seal()
    assert isinstance(refused(world, lambda honest: replace(honest, relay_chain_state=stale)).cause, RootMismatch)


def test_a_collator_meets_the_panic_while_it_prunes() -> None:
    world = publishing()
    full = world.inherent(world.collect())
    for broken in (replace(full, relay_chain_state=()), replace(full, relay_chain_state=(b"junk",))):
        with pytest.raises(RelaycastError):
            world.parachain.prune(broken, b"")


def test_events_of_a_refused_block_are_taken_back() -> None:
    world = publishing()
    world.block(seal=False)
    world.publish(ALPHA, K, b"new")
    world.seal()
    events = list(world.system.events)
    panic = refused(world, lambda honest: replace(honest, relay_chain_state=(*honest.relay_chain_state, b"junk")))
    assert list(world.system.events) == events != []
    assert str(panic).startswith("the block panicked: UnusedNodes: unused node 0x")


def test_a_handler_that_fails_takes_the_block_back_too() -> None:
    world = publishing()
    before = world.state.snapshot()

    class Broken(Exception):
        pass

    def fail(*_given: object) -> Weight:
        raise Broken

    world.handler.on_data_updated = fail  # type: ignore[assignment]
    with pytest.raises(Broken):
        world.block(seal=False)
    assert world.state.snapshot() == before


def test_panics_pickle_with_their_cause() -> None:
    panic = Panic(IncompleteBelowLimit(ALPHA, bytes(32), Weight(1, 2)))
    assert f"the proof ends at publisher 1000, key 0x{'00' * 32}, with (" in str(panic)
    again = pickle.loads(pickle.dumps(panic))
    assert str(again) == str(panic)
    assert again.cause.remaining == Weight(1, 2)


def test_validation_data_has_these_bytes() -> None:
    data = PersistedValidationData(b"head", 258, bytes(range(32)), 5 << 20)
    assert data.encode() == b"\x10head" + b"\x02\x01\x00\x00" + bytes(range(32)) + b"\x00\x00\x50\x00"
    assert PersistedValidationData(b"", 0, bytes(32)).max_pov_size == MAX_POV_BYTES == 10 << 20


def test_an_inherent_knows_its_bytes() -> None:
    data, sender = PersistedValidationData(b"", 1, bytes(32)), ParaId(7)
    downward = AbridgedMessages.of([InboundMessage(1, b"d"), InboundMessage(1, b"hashed")], 1)
    horizontal = AbridgedMessages.of([InboundMessage(1, it, sender) for it in (b"e", b"f", b"hashed")], 2)
    inherent = ParachainInherentData(data, (b"ab", b"c"), downward, horizontal)
    assert inherent.proof_bytes == 3
    assert inherent.message_bytes == 3 + 36 + 40
    assert inherent.usage() == PovUsage(MAX_POV_BYTES, (b"d",), (b"e", b"f"), hashed_bytes=36 + 40)


def test_static_keys_are_read_where_they_stand() -> None:
    world = publishing()
    world.relay.put(CURRENT_SLOT, b"slot")
    world.seal()
    proof = TrackedProof(world.collect(), world.relay.root)
    values = proof.read_static(world.parachain.static_keys())
    assert values[CURRENT_SLOT] == b"slot"
    assert list(values) == list(world.parachain.static_keys())
    assert world.parachain.para_id == SUBSCRIBER


@pytest.mark.parametrize(
    ("steps", "remaining"),
    [([(5, 0)], (5, 20)), ([(5, 0), (2, 10)], (3, 10)), ([(5, 0), (2, 10), (3, 10)], (0, 0))],
)
def test_a_meter_counts_both_dimensions(steps: list[tuple[int, int]], remaining: tuple[int, int]) -> None:
    """The example of sp-weights."""
    meter = WeightMeter(Weight(10, 20))
    for step in steps:
        assert meter.try_consume(Weight(*step))
    assert meter.remaining() == Weight(*remaining)


def test_a_meter_refuses_when_one_dimension_is_short() -> None:
    meter = WeightMeter(Weight(1, 1))
    assert meter.can_consume(Weight(1, 1))
    assert not meter.try_consume(Weight(0, 2))
    assert meter.consumed == Weight.ZERO


# The size model: bytes of state version 1 for keys that are hashes.

RING_ROOT = 384
LEAF_BYTES = 64
"""A leaf of 5,000 hashed keys: two bytes of header, some thirty of partial key, and the hash of its value."""


def expected_bytes(total: int, proven: int, entry_bytes: int) -> float:
    """Return what a proof of ``proven`` out of ``total`` random keys takes on average, branch by branch."""

    def branch(count: int, share: float) -> float:
        none = (1 - share) ** count
        one = 16 * ((1 - 15 * share / 16) ** count - none)
        children = 16 * (1 - (1 - share / 16) ** count) - one
        return 5 * (1 - none - one) + 33 * children

    levels = [(16.0**depth, 16.0**-depth) for depth in range(12)]
    structure = sum(
        places * (branch(total, share) - (1 - share) ** proven * branch(total - proven, share))
        for places, share in levels
    )
    return structure + proven * (LEAF_BYTES + entry_bytes)


def child_bytes(block: Block) -> int:
    """Return the bytes that a block's proof holds of child tries."""
    return sum(block.sizes("relay_node", "relay_value"))


@pytest.fixture(scope="module")
def ring_roots() -> tuple[World, Block]:
    """5,000 keys with values of 384 bytes, 500 of them subscribed to, and the first block."""
    world = World(config=SubscriberConfig())
    for number in range(5_000):
        world.publish(ALPHA, [key(number)], number.to_bytes(4, "little") * (RING_ROOT // 4))
    world.subscribe(ALPHA, [key(number) for number in range(500)])
    return world, world.block()


@pytest.mark.upstream("e2e_large_dataset")
def test_the_first_proof_of_500_out_of_5_000_keys_has_the_bytes_of_the_size_model(
    ring_roots: tuple[World, Block],
) -> None:
    """One draw of random keys has 154,913 bytes of structure and 197,000 of entries: 351,913 in all."""
    _, first = ring_roots
    assert sum(first.sizes("relay_value")) == 500 * (RING_ROOT + 2 + 8) == 197_000
    assert child_bytes(first) == pytest.approx(351_913, rel=0.01)
    assert child_bytes(first) == pytest.approx(expected_bytes(5_000, 500, 394), rel=0.01)


def test_ten_changed_keys_cost_their_ten_paths_to_the_byte(ring_roots: tuple[World, Block]) -> None:
    """Some 13 KB: single draws lie between 12 and 16 KB, and their mean where the model has it."""
    world, _ = ring_roots
    sizes: list[int] = []
    for start in range(50):
        changed = [key(number) for number in range(start, 500, 50)]
        for number, written in enumerate(changed):
            world.publish(ALPHA, [written], bytes([start, number]) * (RING_ROOT // 2))
        block = world.block()
        paths = world.relay.prove_child_read(world.relay.root, derive_child_info(ALPHA), changed)
        new = [node for node in paths.nodes if blake2_256(node) not in world.static_nodes()]
        assert child_bytes(block) + sum(block.sizes("relay_top")) == sum(map(len, new))
        assert sorted(block.called) == sorted((ALPHA, written) for written in changed)
        sizes.append(child_bytes(block))
    assert min(sizes) < 13_173 < max(sizes)
    assert sum(sizes) / len(sizes) == pytest.approx(expected_bytes(5_000, 10, 394), rel=0.01)


@pytest.mark.upstream("single_publisher_multiple_subscribers")
def test_two_subscribers_of_one_publisher_do_not_meet() -> None:
    ours, theirs = World(), World()
    theirs.relay = ours.relay
    ours.subscribe(ALPHA, K[:3])
    theirs.subscribe(ALPHA, K[2:5])
    ours.publish(ALPHA, K)
    told = ChangesTold()
    all_hold(ours, ours.block(), told)
    theirs.number = ours.number
    all_hold(theirs, theirs.block(seal=False), ChangesTold())
    assert [called for _, called, *_ in ours.handler.calls] == K[:3]
    assert [called for _, called, *_ in theirs.handler.calls] == K[2:5]


def test_a_public_publisher_is_followed_like_any_other() -> None:
    world = World()
    world.subscribe(PUBLIC, K)
    world.publish(PUBLIC, K, ttl=10)
    all_hold(world, world.block(), ChangesTold())
    assert len(world.handler.calls) == len(K)
