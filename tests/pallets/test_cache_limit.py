"""``max_cached_bytes``: which nodes a subscriber keeps under a limit, and that no update is lost by those left out.

Where a limit binds, a value may be told again; every other invariant holds. The machine of ``test_subscriber_machine``
runs under random limits that come, change and go.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from pallets.block_vectors import ALPHA, BETA, keys
from pallets.cache_limit_mutants import (
    kept_from_the_leaves,
    leaves_no_nodes_out,
    left_out_by_the_chain_alone,
    never_less,
    no_shares,
    others_do_not_count,
    settled_when_pruned,
    unseen_is_unchanged,
)
from pallets.limited_network import LimitedNetwork, holds, kept_nodes_hang_together, sizes_are_those_of_the_nodes
from pallets.subscriber_invariants import hashed_paths
from pallets.subscriber_world import MOCK, World
from pallets.test_subscriber_machine import CONFIG, ROOT, STOCK, networks
from relaycast_pallets import Panic, Policies, SubscribedKey
from relaycast_pallets.subscriber.storage import CachedSize
from relaycast_pallets.subscriber.variants.cache_limit import nearest
from relaycast_pallets.subscriber.variants.drafts import NoCache
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_xcm.primitives import ParaId
from searches import examples

LIMITED = replace(MOCK, max_cached_bytes=1_200)


def cached_bytes(world: World, publisher: ParaId) -> int:
    return sum(map(len, world.cached(publisher).values()))


def test_all_other_invariants_hold_under_any_limit() -> None:
    run_state_machine_as_test(LimitedNetwork, settings=networks(examples(40)))


@pytest.mark.slow
def test_all_other_invariants_hold_under_any_limit_for_long() -> None:
    run_state_machine_as_test(LimitedNetwork, settings=networks(300))


def limited(most: int | None, *publishers: ParaId, count: int = 10, others: int = 0) -> World:
    """Return a world that keeps ``most`` bytes after its first block: keys of each publisher, and ``others`` unread."""
    world = World(config=replace(MOCK, max_cached_bytes=most))
    for publisher in publishers or (ALPHA,):
        world.subscribe(publisher, keys(count))
        world.publish(publisher, keys(count + others), bytes(40))
    world.block()
    return world


def structure(world: World, publisher: ParaId = ALPHA) -> list[tuple[bytes, bytes]]:
    """Return prefix and hash of the nodes on the subscribed paths, nearest to the root first."""
    placed = {place for path in hashed_paths(world, publisher) for place in path}
    return sorted(placed, key=lambda place: (len(place[0]), place[0]))


@pytest.mark.parametrize("most", [0, 100, 600, 800, 1_000])
def test_nodes_nearest_to_the_root_are_kept_first(most: int) -> None:
    world = limited(most)
    nodes, expected, size = world.relay_nodes(), set[bytes](), 0
    for _, node_hash in structure(world):
        size += len(nodes[node_hash])
        if size > most - most // 8:
            break
        expected.add(node_hash)
    whole = sum(len(nodes[node_hash]) for _, node_hash in structure(world))
    assert most < whole  # else nothing would be left out
    assert world.cached(ALPHA).keys() == expected
    kept_nodes_hang_together(world, ALPHA)
    sizes_are_those_of_the_nodes(world)


@given(
    written=st.lists(st.lists(st.sampled_from(STOCK), min_size=1, max_size=8), max_size=6),
    values=st.lists(st.binary(max_size=60), min_size=7, max_size=7),
    budget=st.sampled_from([900, 2_500, 1 << 20]),
)
def test_a_limit_above_what_is_kept_changes_nothing(
    written: list[list[SubscribedKey]], values: list[bytes], budget: int
) -> None:
    worlds = [World(config=replace(CONFIG, max_cached_bytes=most)) for most in (None, 1 << 20)]
    seen: list[list[object]] = [[], []]
    for world, log in zip(worlds, seen, strict=True):
        world.subscribe(ALPHA, STOCK[::2])
        world.publish(ALPHA, STOCK, values[0])
        for some, value in zip([[], *written], values, strict=False):
            world.publish(ALPHA, some, value)
            block = world.block(budget)
            log.append((block.result.reads, block.result.turn, block.calls, world.cached(ALPHA)))
            log.append(world.storage.cache_of(ALPHA).shared())
    assert seen[0] == seen[1]


def test_without_room_a_subscriber_does_as_one_without_a_cache() -> None:
    none, cacheless = limited(0), World(policies=Policies(cache=NoCache()))
    cacheless.subscribe(ALPHA, keys(10))
    cacheless.publish(ALPHA, keys(10), bytes(40))
    cacheless.block()
    for world in (none, cacheless):
        world.publish(ALPHA, keys(1), b"new")
    one, other = none.block(), cacheless.block()
    assert (one.calls, one.result.reads) == (other.calls, other.result.reads)
    assert len(one.calls) == 10  # one changed; nine are told again
    assert not none.cached(ALPHA)


def test_what_is_told_again_stands_below_the_cut() -> None:
    world = limited(1_400, count=40)
    cut = world.storage.cached_sizes_or_counted()[ALPHA].cut
    assert cut is not None
    changed = keys(40)[7]
    world.publish(ALPHA, [changed], b"new")
    called = {key for _, key in world.block().called}
    unknown = {
        path[-1][0]: wanted
        for wanted, path in zip(world.subscribed(ALPHA).keys, hashed_paths(world, ALPHA), strict=True)
        if any((len(prefix), prefix) >= (len(cut), cut) for prefix, _ in path)
    }
    assert called <= {changed, *unknown.values()}
    assert changed in called


def test_every_publisher_has_its_share() -> None:
    """A trie of 60 keys leaves as much room to its neighbour as one of 3 does."""
    kept = []
    for first in (3, 60):
        world = World(config=replace(MOCK, max_cached_bytes=3_000))
        for publisher, some in ((ALPHA, keys(first)), (BETA, keys(60))):
            world.subscribe(publisher, some)
            world.publish(publisher, some, bytes(40))
        world.block()
        kept.append(world.cached(BETA))
        assert cached_bytes(world, ALPHA) <= 1_500
    assert kept[0] == kept[1]
    assert 1_000 < sum(map(len, kept[0].values())) <= 1_500


def test_nodes_of_a_publisher_that_was_left_count_until_they_are_cleared() -> None:
    world = limited(2_000, ALPHA, count=60)
    world.subscribe(ALPHA, [])
    world.subscribe(BETA, keys(60))
    world.publish(BETA, keys(60), bytes(40))
    world.block()
    left = cached_bytes(world, ALPHA)
    assert left > 1_000
    assert cached_bytes(world, BETA) <= 2_000 - left
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)
    sizes_are_those_of_the_nodes(world)
    world.subscriber.clear_stored_roots(ROOT, BETA)
    world.block()
    assert cached_bytes(world, BETA) > 1_000


def test_another_publisher_shrinks_the_shares_when_the_first_one_changes() -> None:
    world = limited(2_000, ALPHA, count=60)
    world.subscribe(BETA, keys(60))
    world.publish(BETA, keys(60), bytes(40))
    for number in range(3):
        world.publish(ALPHA, keys(60), bytes([number]) * 40)
        world.publish(BETA, keys(60), bytes([number]) * 40)
        world.block()
        sizes_are_those_of_the_nodes(world)
        assert cached_bytes(world, ALPHA) + cached_bytes(world, BETA) <= 2_000
    assert cached_bytes(world, ALPHA) <= 1_000
    assert cached_bytes(world, BETA) > 500


@pytest.mark.parametrize("before", [None, 1_000])
def test_a_limit_that_comes_or_rises_in_mid_run_counts_what_is_there(before: int | None) -> None:
    world = limited(before, count=40)
    world.subscriber.config = replace(MOCK, max_cached_bytes=1_600)
    for number in range(3):
        world.publish(ALPHA, keys(40), bytes([number]) * 40)
        world.block()
        sizes_are_those_of_the_nodes(world)
    assert 1_000 < cached_bytes(world, ALPHA) <= 1_600


def test_a_limit_that_goes_leaves_nothing_counted_and_the_cache_fills_again() -> None:
    world = limited(1_000, count=40)
    world.subscriber.config = MOCK
    world.block()
    assert world.storage.cached_sizes.get() is None
    world.publish(ALPHA, keys(40), b"new")
    world.block()
    assert world.cached(ALPHA).keys() == {node_hash for _, node_hash in structure(world)}


def test_without_a_limit_nothing_is_counted() -> None:
    world = limited(None)
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)
    assert not world.storage.cached_sizes.exists()


def test_a_change_below_the_cut_reads_no_other_nodes_of_the_cache() -> None:
    """Else a limit would cost more than the cache itself: all of it would be in the block's own proof."""
    world = limited(16_000, count=200)
    changed = keys(200)[100]
    world.publish(ALPHA, [changed], b"new")
    world.seal()
    reads: set[bytes] = set()
    world.state.top.reads = reads
    world.block(seal=False)
    world.state.top.reads = None
    under = world.storage.cached_trie_nodes.prefix_of(ALPHA)
    stored = {world.storage.cached_trie_nodes.storage_key(ALPHA, node_hash) for node_hash in world.cached(ALPHA)}
    read = {raw for raw in reads if raw.startswith(under)} & stored
    assert len(stored) > 20
    assert len(read) < 10


def test_the_cut_goes_when_there_is_room_and_the_cache_fills_with_what_is_read() -> None:
    world = limited(2_000, count=60)
    assert world.storage.cached_sizes_or_counted()[ALPHA].cut is not None
    world.delete(ALPHA, keys(60)[3:])
    world.block()
    assert world.storage.cached_sizes_or_counted()[ALPHA].cut is None
    world.publish(ALPHA, keys(3), b"new")
    world.block()
    assert world.cached(ALPHA).keys() == {node_hash for _, node_hash in structure(world)}


def test_pruning_counts_and_keeps_nothing() -> None:
    world = limited(1_000, count=40)
    world.publish(ALPHA, keys(40), b"new")
    world.seal()
    before = world.everything()
    world.prune()
    assert world.everything() == before


def test_metering_that_counts_uses_takes_no_limit() -> None:
    with pytest.raises(ValueError, match=r"max_cached_bytes = 1200 needs a metering .* got MeterOwnState"):
        World(config=LIMITED, policies=Policies(metering=MeterOwnState()))


def test_sizes_have_the_bytes_of_the_chain() -> None:
    storage = World().storage
    storage.put_cached_sizes({BETA: CachedSize(5, b"\x01\x0f"), ALPHA: CachedSize(2**32 - 1)})
    assert storage.state.get(storage.cached_sizes.prefix) == bytes.fromhex(
        "08e8030000ffffffff00e9030000050000000108010f"
    )
    assert storage.cached_sizes.get() == {ALPHA: CachedSize(2**32 - 1), BETA: CachedSize(5, b"\x01\x0f")}


@given(
    placed=st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 9)), max_size=12),
    lengths=st.lists(st.integers(1, 40), min_size=10, max_size=10),
    room=st.integers(0, 120),
)
def test_the_nearest_nodes_agree_with_their_definition(
    placed: list[tuple[bytes, int]], lengths: list[int], room: int
) -> None:
    nodes = {bytes([index]): bytes(length) for index, length in enumerate(lengths)}
    placements = {(prefix, bytes([index])) for prefix, index in placed}
    kept, cut = nearest(placements, nodes, room)
    assert sum(map(len, kept.values())) <= room
    order = sorted(placements, key=lambda place: (len(place[0]), place[0]))
    if cut is None:
        assert kept.keys() == {node_hash for _, node_hash in placements}
    else:
        assert kept.keys() == {node_hash for prefix, node_hash in order if (len(prefix), prefix) < (len(cut), cut)} | (
            kept.keys() & {node_hash for prefix, node_hash in order if prefix == cut}
        )


def all_laws() -> None:
    """One history under a limit, with every invariant checked."""
    world = limited(1_500, ALPHA, count=40)
    for number in range(6):
        if number == 2:
            world.subscribe(BETA, keys(20))
        if number == 4:
            world.delete(ALPHA, keys(40))
        some = keys(40)[number::3] if number != 4 else []
        world.publish(ALPHA, some, bytes([number]) * 40)
        world.publish(BETA, keys(20)[number::2], bytes([number]) * 40)
        holds(world, world.block())
        assert sum(cached_bytes(world, publisher) for publisher in (ALPHA, BETA)) <= 1_500


def test_one_life_under_a_limit_keeps_every_law() -> None:
    all_laws()


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (unseen_is_unchanged, all_laws),
        (leaves_no_nodes_out, all_laws),
        (never_less, all_laws),
        (left_out_by_the_chain_alone, all_laws),
        (settled_when_pruned, test_pruning_counts_and_keeps_nothing),
        (kept_from_the_leaves, partial(test_nodes_nearest_to_the_root_are_kept_first, 800)),
        (no_shares, test_every_publisher_has_its_share),
        (others_do_not_count, test_nodes_of_a_publisher_that_was_left_count_until_they_are_cleared),
    ],
)
def test_a_wrong_limit_is_found_out(
    mutant: Callable[[pytest.MonkeyPatch], None], law: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, Panic)):
        law()


def test_a_cache_that_is_cleared_behind_a_removed_limit_is_not_counted_when_a_limit_comes_back() -> None:
    world = limited(900)
    assert world.storage.cached_sizes.get()
    world.subscriber.config = replace(MOCK, max_cached_bytes=None)
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)
    world.subscriber.config = replace(MOCK, max_cached_bytes=900)
    assert world.storage.cached_sizes_or_counted() == {}
