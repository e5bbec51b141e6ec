"""Passes over several blocks: where the next one begins, what is remembered of each key, and what is told meanwhile."""

from collections.abc import Iterator
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.block_vectors import (
    ALPHA,
    BETA,
    GAMMA,
    PUBLIC,
    A,
    B,
    BlockVector,
    C,
    K,
    SmallNetwork,
    costs,
    executes,
    keys,
    of_bytes,
    prune,
)
from pallets.subscriber_invariants import ChangesTold, all_hold, hashed_paths, nothing_is_lost
from pallets.subscriber_world import Block, World, world_of
from relaycast_pallets import Policies, SubscriberConfig
from relaycast_pallets.subscriber.subscription import SubscribedPaths
from relaycast_pallets.subscriber.variants.drafts import SystemFirstNumeric
from relaycast_xcm.primitives import ROCKS_DB, U32_MAX, ParaId, Weight
from vector_fields import hexed
from yielded_vectors import yields

NUMERIC = Policies(order=SystemFirstNumeric())


@pytest.mark.upstream("cursor_wrap_around")
@pytest.mark.upstream("cursor_cleared_on_complete")
@pytest.mark.upstream("process_proof_cursor_resumes_from_correct_position")
@pytest.mark.upstream("wrap_around_maintains_order")
@yields("subscriber/budget-scenarios")
def test_a_pass_begins_at_the_cursor_and_goes_once_around() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Cursor resumption with wrap-around",
        "wrap-around",
        "from (B, K2): B K3, C K1, A K1, A K2, B K1, then the cursor is cleared",
    )
    network, subscriptions = SmallNetwork(), ((ALPHA, 2), (BETA, 3), (GAMMA, 1))
    for publisher, count in subscriptions:
        network.subscribe(publisher, K[:count])
        for each in K[:count]:
            network.publish(publisher, [each], (str(publisher).encode() + each) * 2)
    network.seal()
    stop = next(
        proof_size
        for proof_size in costs(network.honest(about, seal=False))
        if network.honest(about, budget=of_bytes(proof_size), seal=False).expect.cursor == (int(BETA), hexed(B))
    )
    yield network.block(about.at("stops", "a pass that stops at (B, K2)"), budget=of_bytes(stop), seal=False)
    for publisher, count in subscriptions:
        network.publish(publisher, K[:count], str(publisher).encode() * 10)
    block = network.block(about)
    turns = groupby(read.publisher for read in prune(block)[1].reads if read.publisher is not None)
    assert [publisher for publisher, _ in turns] == [BETA, GAMMA, ALPHA, BETA]
    # callbacks of a publisher wait for its last key, since a path too deep takes them all back
    order = [(BETA, B), (BETA, C), (BETA, A), (GAMMA, A), (ALPHA, A), (ALPHA, B)]
    assert [call[:2] for call in block.expect.callbacks or ()] == [(int(it), hexed(told)) for it, told in order]
    yield block


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
    stopped_at = block.result.stopped_at
    done = order if stopped_at is None else order[: order.index(stopped_at)]
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
    world.seal()
    assert world.prune(0)[1].cursor == (ALPHA, keys(10, prefix="1000")[0])
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
    assert storage.processed_roots(ALPHA, every) is None
    storage.put_processed_roots(ALPHA, SubscribedPaths.of(known), bases, root)
    found = storage.processed_roots(ALPHA, every)
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
