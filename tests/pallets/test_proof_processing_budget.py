"""Passes that the budget cuts short: where they stop, and who comes first."""

from collections.abc import Iterator

import pytest

from pallets.block_vectors import (
    ALPHA,
    BETA,
    GAMMA,
    OTHER_PUBLIC,
    PUBLIC,
    A,
    B,
    BlockVector,
    C,
    K,
    SmallNetwork,
    cut_short,
    executes,
    following,
    keys,
    of_bytes,
    path_key,
    prune,
    values,
)
from pallets.subscriber_invariants import cache_is_exact, one_pass_in_both_modes
from pallets.subscriber_world import Block, World, world_of
from relaycast_pallets import Policies, ReadSource
from relaycast_pallets.subscriber.variants.drafts import SystemFirstNumeric
from relaycast_xcm.primitives import ParaId, Weight
from vector_fields import hexed
from yielded_vectors import yields

NUMERIC = Policies(order=SystemFirstNumeric())


def whole_cost(world: World) -> Weight:
    """Return what an unbounded pass over the relay state as it will be sealed consumes."""
    world.seal()
    return world.prune()[1].consumed


@pytest.mark.upstream("exact_budget_processes_all")
@pytest.mark.upstream("budget_accounts_for_proof_size")
@pytest.mark.upstream("processing_stops_before_next_read_exceeds")
@pytest.mark.upstream("consumed_weight_never_exceeds_limit")
@pytest.mark.upstream("meter_state_consistent_after_incomplete")
def test_a_budget_of_exactly_the_cost_is_enough_and_a_byte_less_is_not() -> None:
    exact = whole_cost(world_of(ALPHA)).proof_size
    world = world_of(ALPHA)
    block = world.block(exact)
    assert block.result.is_complete
    assert block.outcome.meter.remaining().proof_size == 0
    world = world_of(ALPHA)
    block = world.block(exact - 1)
    last = block.result.cursor
    assert last == (ALPHA, keys(10, prefix="1000")[-1])
    assert len(block.calls) == 9
    assert block.result.consumed == block.outcome.meter.consumed
    assert block.result.consumed.all_lte(block.outcome.meter.limit)


@pytest.mark.upstream("budget_exhausted_sets_cursor")
@pytest.mark.upstream("processing_stops_at_weight_limit")
@pytest.mark.upstream("small_budget_processes_partial")
@pytest.mark.upstream("process_proof_with_limited_budget_stops_early")
@yields("subscriber/budget-scenarios")
def test_an_exhausted_budget_stops_at_a_key_and_the_next_block_begins_with_it() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Weight exhausted mid-processing",
        "exhausted",
        "the first read that does not fit stops the pass at its key, which becomes the cursor",
    )
    network = values(wanted=3)
    block = cut_short(network, about)
    assert block.expect.cursor == (int(ALPHA), hexed(C))
    yield block
    yield network.block(about.at("goes-on", "the next block begins with the key that was not dealt with"), seal=False)


def test_the_cursor_walks_through_every_place_where_a_pass_can_stop() -> None:
    """Every budget from nothing to enough: the cursor never goes back, and it visits every key."""
    count = 6
    world = world_of(ALPHA, count=count)
    world.seal()
    wanted = keys(count, prefix="1000")
    cursors = [world.prune(budget)[1].cursor for budget in range(whole_cost(world).proof_size + 1)]
    places = [count if cursor is None else wanted.index(cursor[1]) for cursor in cursors]
    assert places == sorted(places)
    assert set(places) == set(range(count + 1))


@pytest.mark.upstream("budget_exhausted_mid_key")
@pytest.mark.upstream("budget_exhausted_between_keys")
@pytest.mark.parametrize("short", [0, 1], ids=["between keys", "mid key"])
def test_the_cursor_is_the_first_key_not_dealt_with(short: int) -> None:
    """Stopped inside a key it is that key; stopped right after a key it is the next one."""
    world = world_of(ALPHA, size=200)
    world.seal()
    reads = world.prune()[1].reads
    first_value = next(index for index, read in enumerate(reads) if read.source is ReadSource.RELAY_VALUE)
    through_first = sum(read.size for read in reads[: first_value + 1])
    wanted = keys(10, prefix="1000")
    block = world.block(through_first - short)
    assert block.result.cursor == (ALPHA, wanted[1 - short])
    assert len(block.calls) == 1 - short


@pytest.mark.upstream("budget_exhausted_between_publishers")
@pytest.mark.upstream("process_proof_multiple_publishers_partial_processing")
def test_the_cursor_between_publishers_is_the_next_ones_first_key() -> None:
    world = world_of(ALPHA, BETA)
    world.seal()
    reads = world.prune()[1].reads
    of_alpha = [index for index, read in enumerate(reads) if read.publisher == ALPHA]
    block = world.block(sum(read.size for read in reads[: of_alpha[-1] + 1]))
    assert block.result.cursor == (BETA, keys(10, prefix="1001")[0])
    assert {publisher for publisher, _ in block.called} == {ALPHA}
    assert world.storage.previous_roots() == {ALPHA: world.root_of(ALPHA)}


@yields("subscriber/budget-scenarios")
def test_proof_and_cache_reads_share_one_budget() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Budget limit enforced with combined tracking",
        "combined-budget",
        "proof and cache together exceed the budget, neither does alone",
    )
    network = following(wanted=4, value=bytes(30))
    network.publish(ALPHA, K[:2], bytes(31))
    network.seal()
    reads = prune(network.honest(about, seal=False))[1].reads
    proven, cached = (sum(read.size for read in reads if read.source.is_relay is it) for it in (True, False))
    limit = proven + cached - 1
    assert max(proven, cached) <= limit
    yield network.block(about, budget=of_bytes(limit), seal=False)
    yield network.block(about.at("resumed", "what is left of the pass"), seal=False)


@pytest.mark.upstream("process_proof_prioritizes_system_chains")
@pytest.mark.upstream("system_parachains_processed_first")
@yields("subscriber/scenarios")
def test_system_parachains_come_first_and_the_others_are_shuffled() -> Iterator[BlockVector]:
    about = executes(
        "Publisher Prioritization / System parachain first",
        "system-first",
        "1000 is processed before 3000, in whatever order they are declared",
    )
    network, public = SmallNetwork(), ParaId(3_000)
    network.wanted = [(public, [A]), (ALPHA, [A])]
    for publisher in (public, ALPHA):
        network.publish(publisher, [A, B])
    block = network.block(about)
    assert [publisher for publisher, *_ in block.expect.callbacks or ()] == [1_000, 3_000]
    yield block
    for number in range(3):
        network = SmallNetwork()
        network.wanted = [(ParaId(publisher), [A]) for publisher in (2_002, 1_999, 2_000, 2_001, 7)]
        for publisher, _ in network.wanted:
            network.publish(publisher, [A], str(publisher).encode())
        shuffled = about.at(f"shuffled-{number}", "system parachains by number, the others shuffled by the seed")
        yield network.block(shuffled, seed=bytes([number]))


@pytest.mark.upstream("priority_under_budget_constraint")
def test_a_small_budget_goes_to_system_parachains() -> None:
    world = world_of(PUBLIC, ALPHA, BETA)
    block = world.block(2_500)
    assert not block.result.is_complete
    assert {publisher for publisher, _ in block.called} <= {ALPHA, BETA}


def test_publishers_after_the_cursor_get_their_turn_under_load() -> None:
    """The cursor outweighs the order: a busy system parachain does not starve a public one."""
    world = world_of(ALPHA, PUBLIC, policies=NUMERIC)
    wanted = keys(10, prefix="1000")
    blocks: list[Block] = []
    for number in range(12):
        world.publish(ALPHA, wanted, bytes([number]) * 100)
        blocks.append(world.block(1_400))
    assert {publisher for block in blocks for publisher, _ in block.called} == {ALPHA, PUBLIC}


@pytest.mark.upstream("overlapping_subscriptions")
@pytest.mark.upstream("multiple_publishers_single_subscriber")
def test_five_publishers_with_the_same_keys_are_kept_apart() -> None:
    world = World()
    publishers = [ALPHA, BETA, GAMMA, PUBLIC, OTHER_PUBLIC]
    for publisher in publishers:
        world.subscribe(publisher, [*K, *K[:3]])
        world.publish(publisher, K, str(publisher).encode())
    block = world.block()
    assert len(block.calls) == 5 * len(K)
    assert world.handler.values == {(publisher, k): str(publisher).encode() for publisher in publishers for k in K}
    cache_is_exact(world)


@pytest.mark.upstream("process_proof_prune_and_verify_consume_similar_weight")
@pytest.mark.upstream("prune_verify_same_weight")
@pytest.mark.upstream("prune_verify_same_cursor")
@pytest.mark.parametrize("step", [97, 331])
def test_both_modes_agree_wherever_the_budget_ends(step: int) -> None:
    world = world_of(ALPHA, PUBLIC, count=8, size=60)
    budgets = range(0, whole_cost(world).proof_size + step, step)
    for budget in budgets:
        fresh = world_of(ALPHA, PUBLIC, count=8, size=60)
        one_pass_in_both_modes(fresh.block(budget))


def test_keys_with_one_leaf_in_common_are_all_told() -> None:
    """Keys that part in their first nibble and have equal values have one leaf: what is cached is not what is known."""
    wanted = sorted(path_key(f"{nibble:x}") for nibble in range(4))
    world = World()
    world.subscribe(ALPHA, wanted)
    world.publish(ALPHA, wanted[:2], bytes(40))
    world.publish(ALPHA, wanted[2:], bytes(41))
    assert len(world.block().calls) == 4
    assert list(world.storage.cache_of(ALPHA).shared().values()) == [2, 2]
    for wrote in (wanted[2], wanted[3]):
        child = world.entry(ALPHA, wanted[0])
        assert child is not None
        world.relay.child(world.relay.children()[0]).put(wrote, child)
        assert world.block().called == [(ALPHA, wrote)]
        cache_is_exact(world)
    assert list(world.storage.cache_of(ALPHA).shared().values()) == [4]


def test_a_key_that_nobody_can_afford_stops_its_publisher_and_the_chain_goes_on() -> None:
    world = world_of(ALPHA, size=1_000)
    for _ in range(3):
        assert not world.block(900).result.is_complete
    assert world.handler.calls == []
    assert world.block(seal=False).result.is_complete
