"""The depth limit of a publisher's trie: who breaks it is left out until enabled, and nobody else with it."""

import pytest

from pallets.subscriber_invariants import ChangesTold, all_hold, cache_is_exact, hashed_paths
from pallets.subscriber_world import ALPHA, BETA, K, World, disabled, path_key, staircase
from relaycast_pallets import (
    DisableReason,
    Origin,
    PublisherDisabled,
    PublisherEnabled,
    SubscribedKey,
)
from relaycast_pallets.subscriber.publisher_walk import PublisherWalk

A, B, C, D, E = K[:5]
ROOT, SIGNED = Origin.root(), Origin.signed(bytes(32))


@pytest.mark.scenario("Trie Depth Limit / Proof exceeds depth limit")
@pytest.mark.scenario("Proof Processing / Depth limit enforced during processing")
@pytest.mark.upstream("depth_exceeds_limit")
@pytest.mark.upstream("depth_exceeded_disables_publisher")
@pytest.mark.upstream("disable_publisher_function_works")
@pytest.mark.parametrize("depth", [9, 10, 40])
def test_a_path_beyond_the_depth_limit_disables_its_publisher_and_no_other(depth: int) -> None:
    world = World()
    deep, shallow = staircase(depth), path_key("f")
    world.subscribe(ALPHA, [deep[0], shallow])
    world.publish(ALPHA, [*deep, shallow], bytes(40))
    world.subscribe(BETA, K[:3])
    world.publish(BETA, K)
    block = world.block()
    assert block.called == [(BETA, wanted) for wanted in K[:3]]
    assert len({read.node_hash for read in block.result.reads if read.publisher == ALPHA}) == 8
    assert list(world.storage.disabled_publishers.items()) == [(ALPHA, b"\x00")]
    assert world.system.events.of(PublisherDisabled) == [PublisherDisabled(ALPHA, DisableReason.TrieDepthExceeded)]
    assert "has more than 8 nodes" in str(block.result.changes[0].disabled_by)
    assert (world.cached(ALPHA), set(world.storage.previous_roots())) == ({}, {BETA})


def test_keys_read_before_the_deep_one_are_not_told() -> None:
    world = World()
    deep = staircase(12, subscribed=path_key("f"))
    early = path_key("0001")
    world.subscribe(ALPHA, [early, deep[0]])
    world.publish(ALPHA, [early, *deep], bytes(40))
    block = world.block()
    assert [change.disabled_by is not None for change in block.result.changes] == [True]
    assert any(read.source.value == "relay_value" for read in block.result.reads)  # the first key was read
    assert block.calls == ()


def test_a_trie_that_grows_above_unchanged_nodes_does_not_escape_the_limit() -> None:
    """A branch that is put above a branch, level by level, leaves everything below as it was."""
    world = World()
    steps = staircase(20)
    world.subscribe(ALPHA, steps[:1])
    world.publish(ALPHA, [steps[0], *steps[-6:]], bytes(40))
    told = ChangesTold()
    for number in range(14, 1, -1):
        all_hold(world, world.block(), told)
        if ALPHA in world.storage.disabled_publishers:
            break
        assert len(hashed_paths(world, ALPHA)[0]) <= 8
        world.publish(ALPHA, [steps[number - 1]], bytes(40))
    assert ALPHA in world.storage.disabled_publishers
    assert len(hashed_paths(world, ALPHA)[0]) == 9


def crafted(count: int) -> tuple[list[SubscribedKey], list[SubscribedKey]]:
    """Return keys whose paths have eight nodes each, and all keys that it takes to put them there."""
    stairs = [staircase(8, subscribed=path_key(f"{number:02x}")) for number in range(0, 2 * count, 2)]
    return [steps[0] for steps in stairs], [key for steps in stairs for key in steps]


def bounded(world: World) -> None:
    """Check that each key has at most as many cached nodes as a path may have, and all of them together."""
    limit, paths = world.subscriber.config.max_trie_depth, hashed_paths(world, ALPHA)
    cached = world.cached(ALPHA)
    assert all(sum(node_hash in cached for _, node_hash in path) <= limit for path in paths)
    assert len(cached) <= len(paths) * limit


@pytest.mark.scenario("Trie Depth Limit / Depth limit bounds cache size")
@pytest.mark.upstream("depth_limit_bounds_cache")
@pytest.mark.parametrize("count", [1, 16, 100])
def test_the_depth_limit_bounds_the_cache(count: int) -> None:
    """Crafted keys reach the limit on every path, one key even the bound; one level more is not cached at all."""
    world = World()
    wanted, every = crafted(count)
    world.subscribe(ALPHA, wanted)
    for number, written in enumerate(every):
        world.publish(ALPHA, [written], bytes([number % 251, number // 251]) * 20)
    world.block()
    paths = hashed_paths(world, ALPHA)
    assert {len(path) for path in paths} == {8}
    assert len(world.cached(ALPHA)) == len({placement for path in paths for placement in path})
    assert len(world.cached(ALPHA)) >= 6 * count + 2
    bounded(world)
    cache_is_exact(world)
    before = world.cached(ALPHA)
    world.publish(ALPHA, staircase(9, subscribed=wanted[-1])[-1:], bytes(40))
    world.block()
    assert max(map(len, hashed_paths(world, ALPHA))) == 9
    assert ALPHA in world.storage.disabled_publishers
    assert world.cached(ALPHA) == before
    bounded(world)


def test_without_the_limit_the_cache_would_outgrow_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a walk that counts no nodes."""
    read = PublisherWalk._read_new
    monkeypatch.setattr(PublisherWalk, "_read_new", lambda self, low, place: read(self, low, (*place[:2], 0)))
    world = World()
    world.subscribe(ALPHA, staircase(9)[:1])
    world.publish(ALPHA, staircase(9), bytes(40))
    world.block()
    with pytest.raises(AssertionError):
        bounded(world)


@pytest.mark.upstream("disabled_publisher_skipped_in_processing")
@pytest.mark.upstream("process_proof_skips_disabled_publishers")
def test_a_disabled_publisher_is_left_out() -> None:
    world = disabled()
    world.publish(ALPHA, staircase(2), b"new")
    block = world.block()
    assert block.result.is_complete
    assert ALPHA not in {read.publisher for read in block.result.reads}
    assert block.calls == ()


@pytest.mark.scenario("Trie Depth Limit / Re-enable disabled publisher")
@pytest.mark.upstream("enable_publisher_works")
@pytest.mark.upstream("enable_publisher_emits_event")
@pytest.mark.upstream("reenabled_publisher_processed_again")
@pytest.mark.upstream("publisher_disabled_then_enabled")
def test_an_enabled_publisher_is_processed_with_the_next_block() -> None:
    world = disabled()
    world.subscriber.enable_publisher(ROOT, ALPHA)
    assert ALPHA not in world.storage.disabled_publishers
    assert list(world.system.events) == [PublisherEnabled(ALPHA)]
    world.delete(ALPHA, staircase(10)[3:])
    assert world.block().called == [(ALPHA, staircase(10)[0])]
    cache_is_exact(world)


def test_an_enabled_publisher_that_is_still_too_deep_is_disabled_again() -> None:
    world = disabled()
    world.subscriber.enable_publisher(ROOT, ALPHA)
    assert world.block().calls == ()
    assert ALPHA in world.storage.disabled_publishers
