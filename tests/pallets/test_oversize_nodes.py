"""Relay nodes longer than any read is charged for: no honest block panics at any budget, and what is over is counted.

A version 0 trie has its values inside its nodes. Before a publisher has published, the leaf of ``:code`` stands on the
way to its child root. In a child trie of version 0, an entry of the greatest length makes a leaf longer than any entry.
"""

import random
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from genesis_states import GENESIS_ROOTS, genesis
from pallets.block_vectors import (
    ALPHA,
    BETA,
    PUBLIC,
    SMALL,
    A,
    B,
    BlockVector,
    C,
    SmallNetwork,
    costs,
    keys,
    of_bytes,
    path_key,
    trap,
    version_0,
)
from pallets.lying_collators import Situation, omit, omit_from_the_end, verdict
from pallets.subscriber_invariants import ChangesTold, all_hold, nothing_is_lost
from pallets.subscriber_world import World
from relaycast_pallets import (
    PublishedEntry,
    State,
    SubscriberConfig,
    ValidationOutcome,
    derive_child_info,
)
from relaycast_trie import StateVersion
from relaycast_trie.node import Leaf
from relaycast_trie.node_codec import encode_node
from yielded_vectors import yields

CODE_BYTES = 1_100_000
CONFIG = SubscriberConfig(max_trie_depth=8)
MOST = CONFIG.min_weight.proof_size
CODE = random.Random(1).randbytes(CODE_BYTES)


def with_code() -> World:
    """Return a world on a version 0 genesis with ``:code``, whose publishers have published nothing."""
    top = {b":code": CODE, b":grandpa_authorities": bytes(40)} | {
        bytes([number]) * 32: bytes(40) for number in range(20)
    }
    world = World(config=CONFIG, relay=State(top, state_version=StateVersion.V0, window=8))
    for publisher in (ALPHA, PUBLIC):
        world.subscribe(publisher, keys(2))
    world.seal()
    return world


def with_long_entries() -> World:
    """Return a world on a version 0 genesis whose child trie has two entries of the greatest length in its leaves."""
    entries = {
        bytes(wanted): PublishedEntry(bytes([number]) * 2_048, 0, 0).encode() for number, wanted in enumerate(keys(2))
    }
    top = {bytes([number]) * 32: bytes(40) for number in range(20)}
    children = {
        derive_child_info(ALPHA): entries,
        derive_child_info(BETA): {bytes(path_key("1")): PublishedEntry(b"x", 0, 0).encode()},
    }
    world = World(config=CONFIG, relay=State(top, children, state_version=StateVersion.V0, window=8))
    world.subscribe(ALPHA, keys(2))
    world.subscribe(BETA, [path_key("1"), path_key("2")])
    world.seal()
    return world


def holds(world: World, pubsub_bytes: int) -> ValidationOutcome:
    """Return what an honest block at this budget comes to; fails when it panics."""
    situation = Situation(world, pubsub_bytes)
    outcome = verdict(situation, situation.honest.relay_chain_state)
    assert isinstance(outcome, ValidationOutcome), f"{pubsub_bytes} bytes: {outcome}"
    assert outcome.meter.consumed.all_lte(outcome.meter.limit)
    assert outcome.result.chargeable_bytes <= pubsub_bytes
    return outcome


def around(*places: int) -> list[int]:
    return sorted({max(0, place + near) for place in places for near in (-1, 0, 1)})


FEW = around(0, 100, 500, MOST, 2 * MOST, 3 * MOST, 100_000, CODE_BYTES, CODE_BYTES + MOST, 4 * CODE_BYTES)


@pytest.mark.parametrize("shape", [with_code, with_long_entries])
def test_an_honest_block_stands_at_these_budgets(shape: Callable[[], World]) -> None:
    world = shape()
    assert {holds(world, pubsub_bytes).result.is_complete for pubsub_bytes in FEW} == {False, True}


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "budgets"), [(with_code, range(0, 7_000, 2)), (with_long_entries, range(7_000))])
def test_an_honest_block_stands_at_any_budget(shape: Callable[[], World], budgets: range) -> None:
    """Were nodes charged in full, honest blocks would panic at most of these budgets."""
    world = shape()
    for pubsub_bytes in budgets:
        holds(world, pubsub_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("chain", GENESIS_ROOTS)
def test_an_honest_block_stands_on_a_real_genesis(chain: str) -> None:
    relay = State(genesis(chain), state_version=StateVersion.V0, window=8)
    assert relay.root.hex() == GENESIS_ROOTS[chain]
    world = World(config=CONFIG, relay=relay)
    world.subscribe(ALPHA, keys(2))
    world.number = 1
    seen = [holds(world, pubsub_bytes) for pubsub_bytes in [*range(0, 7_000, 23), *FEW]]
    assert {it.name for outcome in seen for it in outcome.result.oversize} == {":code"}
    assert {outcome.result.is_complete for outcome in seen} == {False, True}


def test_an_entry_of_the_greatest_length_is_not_over() -> None:
    world = World(config=CONFIG)
    world.subscribe(ALPHA, keys(1))
    world.publish(ALPHA, keys(1), bytes(CONFIG.max_value_length))
    result = world.block().result
    assert max(read.size for read in result.reads) == MOST
    assert result.oversize == ()


def test_what_is_over_is_counted_and_named() -> None:
    world = with_code()
    outcome = holds(world, 100_000)
    (over,) = outcome.result.oversize
    assert outcome.result.is_complete
    assert (over.publisher, over.key, over.name, over.charged_bytes) == (None, b":code", ":code", MOST)
    assert over.size == len(encode_node(Leaf(bytes(6), CODE)))
    assert outcome.result.oversize_bytes == over.excess_bytes == over.size - MOST
    assert outcome.result.overshoot_bytes == sum(read.size for read in outcome.result.reads) - 100_000
    assert str(over) == f":code: {over.size:,} bytes, {MOST:,} of them charged"
    assert holds(world, 4 * CODE_BYTES).result.overshoot_bytes == 0


def test_entries_that_are_over_are_named_by_their_key() -> None:
    world = with_long_entries()
    result = world.prune()[1]
    assert [(it.publisher, it.key) for it in result.oversize] == [(ALPHA, wanted) for wanted in keys(2)]
    assert result.oversize[0].name == f"0x{keys(2)[0].hex()}"
    assert result.oversize_bytes == sum(read.size - MOST for read in result.reads if read.size > MOST)


def test_values_outside_of_their_nodes_are_named_by_their_key_too() -> None:
    """A relay chain that lets longer values be published than the subscriber reckons with."""
    world = World(config=SubscriberConfig(max_value_length=100))
    world.subscribe(ALPHA, keys(3))
    world.publish(ALPHA, keys(3)[1:2], bytes(5_000))
    world.seal()
    for pubsub_bytes in range(0, 2_000, 50):
        holds(world, pubsub_bytes)
    (over,) = world.prune()[1].oversize
    assert (over.publisher, over.key, over.charged_bytes) == (ALPHA, keys(3)[1], 750)


@pytest.mark.parametrize("version", list(StateVersion))  # version 0 has the values inside of their nodes
def test_each_of_many_long_entries_is_named_by_its_own_key(version: StateVersion) -> None:
    wanted = keys(8)
    world = World(config=SubscriberConfig(max_value_length=100), relay=State(state_version=version, window=8))
    world.subscribe(ALPHA, wanted)
    for number, each in enumerate(wanted):
        world.publish(ALPHA, [each], bytes(5_000 + 100 * number))
    over = world.block().result.oversize
    assert [it.key for it in sorted(over, key=lambda it: it.size)] == wanted


def test_a_node_without_an_entry_is_named_by_its_hash() -> None:
    world = with_code()
    (over,) = world.prune()[1].oversize
    assert type(over)(None, over.node_hash, 3, 2).name == f"node 0x{over.node_hash.hex()}"


@yields("subscriber/traps")
def test_a_block_over_a_leaf_of_code_is_honest_at_any_budget() -> Iterator[BlockVector]:
    about = trap("code-on-the-way", "a version 0 leaf of :code stands where a child root would: charged min_weight")
    network = SmallNetwork(relay=version_0({b":code": b"wasm" * 400}))
    network.subscribe(ALPHA, [A])
    network.seal()
    yield network.block(about, seal=False)
    for proof_size, reads in ((0, 0), (1_033, 1), (1_034, 1), (1_200, 2)):
        part = about.at(proof_size, f"the same with a budget of {proof_size} bytes: an honest block never panics")
        block = network.honest(part, budget=of_bytes(proof_size), seal=False)
        assert len(costs(block)) == reads
        yield block


@yields("subscriber/traps")
def test_long_leaves_are_charged_min_weight_and_not_cached() -> Iterator[BlockVector]:
    about = trap("long-leaves", "version 0 leaves longer than 750 bytes are charged at most min_weight and not cached")
    network = SmallNetwork(relay=version_0(), config=replace(SMALL, max_value_length=800))
    network.subscribe(ALPHA, [A, B])
    for number, each in enumerate((A, B, C)):
        network.publish(ALPHA, [each], bytes([number]) * 800)
    yield network.block(about)
    network.publish(ALPHA, [A], b"short")
    yield network.block(about.at("short", "one of them becomes short"))
    network.publish(ALPHA, [C], b"short")
    yield network.block(about.at("beside", "the long leaf is not cached; its hash did not change, so it is not read"))


def test_an_omission_stays_below_the_slack() -> None:
    """Whatever is left out of a proof with nodes that are over: refused, or inside the last ``min_weight``."""
    world = with_long_entries()
    for pubsub_bytes in (3_000, 4_500, 6_000):
        situation = Situation(world, pubsub_bytes)
        for nodes in [*omit(situation), *omit_from_the_end(situation)]:
            outcome = verdict(situation, nodes)
            if isinstance(outcome, ValidationOutcome) and not outcome.result.is_complete:
                assert not outcome.meter.can_consume(CONFIG.min_weight)


def test_invariants_hold_while_such_a_genesis_is_written_anew() -> None:
    world, told = with_long_entries(), ChangesTold()
    world.relay.migrate(StateVersion.V1)
    for number in range(12):
        told.note(world)
        all_hold(world, world.block((900, 2_500, 5_000)[number % 3]), told)
        if number == 4:
            world.publish(ALPHA, keys(2), b"short")
    assert world.block().result.is_complete
    nothing_is_lost(world)
