"""Passes that the budget cuts short: where they stop, what they keep, and where the next one begins."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.subscriber_invariants import (
    ChangesTold,
    all_hold,
    cache_is_exact,
    hashed_paths,
    nothing_is_lost,
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
)
from relaycast_pallets import Policies, ReadSource, SubscribedKey, SubscriberConfig
from relaycast_pallets.policies import SystemFirstNumeric
from relaycast_pallets.publisher_walk import SubscribedPaths
from relaycast_xcm.primitives import ROCKS_DB, U32_MAX, ParaId, Weight

K = keys(10)
NUMERIC = Policies(order=SystemFirstNumeric())


def world_of(*publishers: ParaId, count: int = 10, size: int = 100, policies: Policies | None = None) -> World:
    """Return a world in which each publisher has written its own keys, all subscribed to."""
    world = World(policies=policies)
    for publisher in publishers:
        wanted = keys(count, prefix=str(publisher))
        world.subscribe(publisher, wanted)
        world.publish(publisher, wanted, bytes(size))
    return world


def whole_cost(world: World) -> Weight:
    """Return what an unbounded pass over the relay state as it will be sealed consumes."""
    world.seal()
    return world.prune()[1].consumed


def stops_at(world: World, pubsub_bytes: int) -> tuple[ParaId, SubscribedKey] | None:
    world.seal()
    return world.prune(pubsub_bytes)[1].cursor


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


@pytest.mark.scenario("PoV Budget Constraint / Cursor resumption with wrap-around")
@pytest.mark.upstream("cursor_wrap_around")
@pytest.mark.upstream("cursor_cleared_on_complete")
@pytest.mark.upstream("process_proof_cursor_resumes_from_correct_position")
@pytest.mark.upstream("wrap_around_maintains_order")
def test_a_pass_begins_at_the_cursor_and_goes_once_around() -> None:
    world = World()
    subscriptions = {ALPHA: keys(2, prefix="a"), BETA: keys(3, prefix="b"), GAMMA: keys(1, prefix="c")}
    for publisher, wanted in subscriptions.items():
        world.subscribe(publisher, wanted)
        world.publish(publisher, wanted)
    (a1, a2), (b1, b2, b3), (c1,) = subscriptions.values()
    world.storage.relay_proof_processing_cursor.put((BETA, b2))
    block = world.block()
    turns = groupby(read.publisher for read in block.result.reads if read.publisher is not None)
    assert [publisher for publisher, _ in turns] == [BETA, GAMMA, ALPHA, BETA]
    # callbacks of a publisher wait for its last key, since a path too deep takes them all back
    assert block.called == [(BETA, b2), (BETA, b3), (BETA, b1), (GAMMA, c1), (ALPHA, a1), (ALPHA, a2)]
    assert block.result.is_complete
    assert not world.storage.relay_proof_processing_cursor.exists()


@pytest.mark.parametrize("pubsub_bytes", range(150, 1_300, 50))
def test_around_the_cursor_keys_are_dealt_with_in_this_order(pubsub_bytes: int) -> None:
    """The keys before the cursor come last, wherever the pass is cut short."""
    world = World()
    subscriptions = {ALPHA: keys(2, prefix="a"), BETA: keys(3, prefix="b"), GAMMA: keys(1, prefix="c")}
    for publisher, wanted in subscriptions.items():
        world.subscribe(publisher, wanted)
        world.publish(publisher, wanted, str(publisher).encode() * 10)
    (a1, a2), (b1, b2, b3), (c1,) = subscriptions.values()
    world.storage.relay_proof_processing_cursor.put((BETA, b2))
    block = world.block(pubsub_bytes)
    order = [(BETA, b2), (BETA, b3), (GAMMA, c1), (ALPHA, a1), (ALPHA, a2), (BETA, b1)]
    done = order if block.result.cursor is None else order[: order.index(block.result.cursor)]
    assert set(block.called) == set(done)


@pytest.mark.upstream("cursor_with_subscription_change")
@pytest.mark.parametrize("gone", ["key", "publisher", "disabled"])
def test_a_cursor_that_leads_nowhere_means_the_beginning(gone: str) -> None:
    world = world_of(ALPHA, BETA)
    wanted = keys(10, prefix="1001")
    world.storage.relay_proof_processing_cursor.put((BETA, wanted[4]))
    if gone == "key":
        world.subscribe(BETA, wanted[:4])
    elif gone == "publisher":
        world.subscribe(BETA, [])
    else:
        world.storage.disabled_publishers.insert(BETA, b"\x00")
    assert stops_at(world, 0) == (ALPHA, keys(10, prefix="1000")[0])
    block = world.block(seal=False)
    assert block.result.is_complete
    nothing_is_lost(world)


@pytest.mark.upstream("cursor_recovery_after_restart")
@pytest.mark.upstream("e2e_collator_restart")
@pytest.mark.upstream("e2e_validator_restart")
def test_all_that_a_pass_goes_on_from_is_in_storage() -> None:
    """A pallet made anew over the same state goes on where the old one stopped."""
    world = world_of(ALPHA, size=300)
    world.block(2_000)
    world.state.commit()
    restarted = World()
    restarted.relay, restarted.number, restarted.handler.wanted = world.relay, world.number, world.handler.wanted
    for storage_key, data in world.state.snapshot()[0].items():
        restarted.state.put(storage_key, data)
    ours, theirs = world.block(2_000), restarted.block(2_000, seal=False)
    assert ours.result.reads == theirs.result.reads
    assert ours.result.cursor == theirs.result.cursor
    assert ours.calls == theirs.calls


@pytest.mark.upstream("budget_split_across_blocks")
@pytest.mark.upstream("multi_block_processing")
@pytest.mark.parametrize("pubsub_bytes", [1_200, 2_000, 4_000])
def test_a_pass_over_several_blocks_tells_every_key_once(pubsub_bytes: int) -> None:
    world = world_of(ALPHA, PUBLIC, count=12, size=300)
    told = ChangesTold()
    blocks: list[Block] = []
    while not blocks or not blocks[-1].result.is_complete:
        blocks.append(world.block(pubsub_bytes))
        all_hold(world, blocks[-1], told)
        assert len(blocks) < 40
    called = [wanted for block in blocks for wanted in block.called]
    assert len(called) == len(set(called)) == 24


def test_a_root_that_moves_while_a_pass_is_cut_short_loses_nothing() -> None:
    world = world_of(ALPHA, count=12, size=300)
    told = ChangesTold()
    for number in range(8):
        all_hold(world, world.block(1_500), told)
        world.publish(ALPHA, [keys(12, prefix="1000")[number]], bytes([number]) * 300)
    for _ in range(12):
        all_hold(world, world.block(1_500), told)
    assert world.block().result.is_complete
    nothing_is_lost(world)


@pytest.mark.parametrize(("pubsub_bytes", "others"), [(4_000, ()), (1_300, ()), (6_000, (BETA,))])
def test_the_cache_of_a_publisher_that_is_never_done_stays_within_its_bound(
    pubsub_bytes: int, others: tuple[ParaId, ...]
) -> None:
    """Everything is rewritten in every block, faster than the budget follows, even where no key is affordable."""
    world = world_of(ALPHA, *others, count=16, policies=NUMERIC)
    told = ChangesTold()
    for number in range(60):
        for publisher in (ALPHA, *others):
            for each in keys(16, prefix=str(publisher)):
                world.publish(publisher, [each], each + bytes([number]) * 300)
        block = world.block(pubsub_bytes)
        all_hold(world, block, told)
        assert not block.result.is_complete
        for publisher in (ALPHA, *others):
            most = 2 * max(1, sum(map(len, hashed_paths(world, publisher))))
            assert len(world.cached(publisher)) <= most


@given(st.lists(st.integers(-1, 3), max_size=12), st.integers(-1, 3))
def test_what_is_remembered_of_each_key_is_read_back(of_keys: list[int], of_publisher: int) -> None:
    """Keys with one base are one range; another subscription may have keys before, between and behind the ranges."""
    roots = {-1: None} | {number: bytes([number]) * 32 for number in range(4)}
    every = keys(2 * len(of_keys) + 1)
    known, unknown, root = every[1::2], every[::2], roots[of_publisher]
    bases = {each: roots[number] for each, number in zip(known, of_keys, strict=True)}
    storage = World().storage
    assert storage.bases(ALPHA, every) is None
    storage.put_bases(ALPHA, SubscribedPaths.of(known), bases, root)
    found = storage.bases(ALPHA, every)
    assert found is not None
    assert {each: found.get(each, root) for each in known} == bases
    for before, each, after in zip([None, *known], unknown, [*known, None], strict=True):
        around = {bases[next_to] if next_to is not None else root for next_to in (before, after)}
        assert found.get(each, root) in {root, *around}


def test_the_longest_entry_is_reckoned_without_being_made() -> None:
    most = SubscriberConfig(max_value_length=U32_MAX)
    assert most.max_entry_bytes == 5 + U32_MAX + 8
    assert most.min_weight == Weight(ROCKS_DB.read, most.max_entry_bytes)


def test_what_a_short_pass_told_is_told_back_when_it_is_undone() -> None:
    world = world_of(ALPHA, count=12, size=300)
    told = ChangesTold()
    all_hold(world, world.block(), told)
    wanted = keys(12, prefix="1000")
    before = [world.entry(ALPHA, each) for each in wanted]
    for number, each in enumerate(wanted):
        world.publish(ALPHA, [each], bytes([number + 1]) * 300)
    first = world.block(3_000)
    all_hold(world, first, told)
    assert 0 < len(first.calls) < 12
    for each, entry in zip(wanted, before, strict=True):
        assert entry is not None
        world.relay.child(next(iter(world.relay.children()))).put(each, entry)
    second = world.block()
    all_hold(world, second, told)
    assert sorted(second.called) == sorted(first.called)


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
