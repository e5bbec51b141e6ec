"""Passes that the budget cuts short: where they stop, and who comes first."""

import pytest

from pallets.subscriber_invariants import (
    cache_is_exact,
    one_pass_in_both_modes,
)
from pallets.subscriber_world import (
    ALPHA,
    BETA,
    FREE_READS,
    GAMMA,
    OTHER_PUBLIC,
    PLENTY,
    PUBLIC,
    Block,
    World,
    keys,
    path_key,
    whole_cost,
    world_of,
)
from relaycast_pallets import Policies, ReadSource
from relaycast_pallets.subscriber.policies import SystemFirstNumeric
from relaycast_xcm.primitives import ROCKS_DB, Weight

K = keys(10)
NUMERIC = Policies(order=SystemFirstNumeric())


@pytest.mark.upstream("process_proof_with_zero_budget_returns_incomplete")
@pytest.mark.upstream("process_proof_stores_cursor_on_incomplete")
@pytest.mark.upstream("process_proof_zero_budget_graceful_skip")
@pytest.mark.upstream("zero_budget_processes_nothing")
@pytest.mark.upstream("zero_budget_only_static_keys")
def test_without_a_budget_the_proof_holds_the_static_keys_alone() -> None:
    world = world_of(ALPHA, BETA)
    block = world.block(0)
    assert block.nodes == world.static_nodes() != set()
    assert (block.calls, block.result.consumed) == ((), Weight.ZERO)
    assert (
        block.result.cursor == world.storage.relay_proof_processing_cursor.get() == (ALPHA, keys(10, prefix="1000")[0])
    )
    assert world.storage.previous_roots() == {}


@pytest.mark.upstream("process_proof_with_limited_budget_stops_early")
@pytest.mark.upstream("process_proof_tiny_budget_returns_incomplete_immediately")
@pytest.mark.upstream("incomplete_at_budget_limit_sets_cursor")
def test_a_budget_of_one_byte_stops_at_the_first_key() -> None:
    world = World(config=FREE_READS)
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K)
    block = world.block(1)
    assert block.result.cursor == world.storage.relay_proof_processing_cursor.get() == (ALPHA, K[0])


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


@pytest.mark.upstream("budget_accounts_for_ref_time")
@pytest.mark.upstream("budget_respects_both_dimensions")
def test_time_is_a_budget_too() -> None:
    reads = 7
    world = World(ref_time_limit=reads * ROCKS_DB.read + ROCKS_DB.read - 1)
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K, bytes(100))
    block = world.block()
    assert len(block.result.reads) == reads
    assert not block.result.is_complete
    assert block.result.consumed.ref_time == reads * ROCKS_DB.read


@pytest.mark.scenario("PoV Budget Constraint / Weight exhausted mid-processing")
@pytest.mark.upstream("budget_exhausted_sets_cursor")
@pytest.mark.upstream("processing_stops_at_weight_limit")
@pytest.mark.upstream("small_budget_processes_partial")
def test_an_exhausted_budget_stops_at_a_key_and_prunes_the_rest() -> None:
    world = world_of(ALPHA)
    wanted = keys(10, prefix="1000")
    block = world.block(1_000)
    stopped = len(block.calls)
    assert 0 < stopped < 10
    assert block.result.cursor == world.storage.relay_proof_processing_cursor.get() == (ALPHA, wanted[stopped])
    assert block.called == [(ALPHA, told) for told in wanted[:stopped]]
    assert block.inherent.proof_bytes < block.collected.proof_bytes
    assert world.storage.previous_roots() == {}  # the old root stays until all keys are dealt with
    assert world.cached(ALPHA)  # what was read is kept


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


@pytest.mark.scenario("Proof Processing / Budget limit enforced with combined tracking")
def test_proof_and_cache_reads_share_one_budget() -> None:
    """1 MiB for a pass that would read about 600 KB from the proof and 600 KB from the cache."""
    world = World()
    every = keys(1_000)
    world.subscribe(ALPHA, every)
    world.publish(ALPHA, every, bytes(10))
    assert world.block(8 * PLENTY).result.is_complete
    world.publish(ALPHA, every[::2], bytes(11))
    world.seal()
    _, unlimited = world.prune(8 * PLENTY)
    cached = sum(read.size for read in unlimited.reads if read.source is ReadSource.CACHED_NODE)
    proven = unlimited.consumed.proof_size - cached
    limit = (cached + proven) * 5 // 6
    assert cached < limit
    assert proven < limit
    block = world.block(limit, seal=False)
    assert block.result.cursor == world.storage.relay_proof_processing_cursor.get() is not None
    assert block.result.consumed.proof_size <= limit
    assert block.inherent.proof_bytes - block.outcome.meter.consumed.proof_size < 0
    rest = world.block(8 * PLENTY, seal=False)
    assert rest.result.is_complete
    assert not set(rest.called) & set(block.called)


@pytest.mark.scenario("Publisher Prioritization / System parachain first")
@pytest.mark.upstream("process_proof_prioritizes_system_chains")
@pytest.mark.upstream("system_parachains_processed_first")
@pytest.mark.parametrize("policies", [Policies(), NUMERIC], ids=["shuffled", "numeric"])
def test_system_parachains_come_first(policies: Policies) -> None:
    world = world_of(PUBLIC, ALPHA, policies=policies)
    for seed in (b"", b"1", b"2"):
        world.seal()
        assert world.prune(0, seed=seed)[1].cursor == (ALPHA, keys(10, prefix="1000")[0])
    assert [publisher for publisher, _ in world.block().called] == [ALPHA] * 10 + [PUBLIC] * 10


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
    assert len(block.calls) == 50
    assert world.handler.values == {(publisher, k): str(publisher).encode() for publisher in publishers for k in K}
    cache_is_exact(world)


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
    assert list(world.storage.shared_nodes(ALPHA).values()) == [2, 2]
    for wrote in (wanted[2], wanted[3]):
        child = world.entry(ALPHA, wanted[0])
        assert child is not None
        world.relay.child(world.relay.children()[0]).put(wrote, child)
        assert world.block().called == [(ALPHA, wrote)]
        cache_is_exact(world)
    assert list(world.storage.shared_nodes(ALPHA).values()) == [4]


def test_a_key_that_nobody_can_afford_stops_its_publisher_and_the_chain_goes_on() -> None:
    world = world_of(ALPHA, size=1_000)
    for _ in range(3):
        assert not world.block(900).result.is_complete
    assert world.handler.calls == []
    assert world.block(seal=False).result.is_complete
