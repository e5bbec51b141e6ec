"""The depth limit of a publisher's trie: who breaks it is left out until enabled, and nobody else with it."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from pallets.block_vectors import (
    ALPHA,
    BETA,
    PUBLIC,
    SMALL,
    A,
    B,
    BlockVector,
    SmallNetwork,
    executes,
    path_key,
    prune,
    staircase,
    told,
)
from pallets.subscriber_invariants import ChangesTold, all_hold, cache_is_exact, hashed_paths
from pallets.subscriber_world import World
from relaycast_pallets import SubscribedKey
from relaycast_pallets.subscriber.walk import PublisherWalk
from yielded_vectors import yields


@pytest.mark.upstream("depth_within_limit")
@pytest.mark.parametrize("depth", [6, 7, 8])
@yields("subscriber/scenarios")
def test_a_path_within_the_depth_limit_is_told(depth: int) -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Proof within depth limit", "within-depth-limit", "a path of 6 nodes with a limit of 8"
    )
    network, steps = SmallNetwork(), staircase(depth)
    network.subscribe(ALPHA, steps[:1])
    network.publish(ALPHA, steps, b"deep")
    part = about if depth == 6 else about.at(depth, f"a path of {depth} nodes with a limit of 8, the leaf included")
    yield network.block(part)


def too_deep(depth: int = 9) -> SmallNetwork:
    """Return a network with a publisher whose path is ``depth`` nodes long, and another one within the limit."""
    network, steps = SmallNetwork(), staircase(depth)
    network.subscribe(ALPHA, [steps[0], path_key("f")])
    network.publish(ALPHA, [*steps, path_key("f")], b"deep")
    network.subscribe(BETA, [A])
    network.publish(BETA, [A, B], b"beta")
    return network


@pytest.mark.upstream("depth_exceeds_limit")
@pytest.mark.upstream("depth_exceeded_disables_publisher")
@pytest.mark.upstream("disable_publisher_function_works")
@yields("subscriber/scenarios")
def test_a_path_beyond_the_depth_limit_disables_its_publisher_and_no_other() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Proof exceeds depth limit",
        "exceeds-depth-limit",
        "a path of 10 nodes disables its publisher, with all of its keys; the other publisher is served",
    )
    block = too_deep(10).block(about)
    assert told(block) == [A]
    yield block
    yield too_deep(9).block(about.at("nine", "the first node beyond the limit is neither read nor paid for"))
    network, deep = SmallNetwork(), staircase(9, subscribed=path_key("f"))
    network.subscribe(ALPHA, [path_key("0"), deep[0]])
    network.publish(ALPHA, [path_key("0"), *deep], bytes(30))
    yield network.block(about.at("dropped", "a key that was read before the deep one is not told"))


@yields("subscriber/budget-scenarios")
def test_a_path_is_read_down_to_the_depth_limit() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Depth limit enforced during processing",
        "depth-enforced",
        "a path of 10 nodes is read down to node 8, then the publisher is disabled",
    )
    network, steps = SmallNetwork(), staircase(10)
    network.subscribe(PUBLIC, steps[:1])
    network.publish(PUBLIC, steps, b"deep")
    block = network.block(about)
    assert len({read.node_hash for read in prune(block)[1].reads if read.publisher == PUBLIC}) == 8
    yield block


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


@yields("subscriber/scenarios")
def test_the_cache_of_two_keys_at_the_depth_limit_holds_both_paths() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Depth limit bounds cache size",
        "depth-bounds-cache",
        "two keys with paths of the full depth: at most max_trie_depth nodes a key are cached",
    )
    network = SmallNetwork(config=replace(SMALL, max_trie_depth=4))
    first, second = staircase(4, subscribed=path_key("0")), staircase(4, subscribed=path_key("2"))
    network.subscribe(ALPHA, [first[0], second[0]])
    network.publish(ALPHA, [*first, *second], bytes(30))
    yield network.block(about)


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
@pytest.mark.upstream("disabled_publisher_skipped_in_proof_requests")
@yields("subscriber/scenarios")
def test_a_disabled_publisher_is_left_out() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Disabled publisher is skipped",
        "disabled-is-skipped",
        "a disabled publisher is not asked for: not even its child root is looked up",
    )
    network = too_deep()
    network.block(about)
    network.publish(ALPHA, [path_key("f")], b"unheard")
    yield network.block(about)
    network.subscribe(BETA, ())
    yield network.block(about.at("alone", "where every publisher is disabled the pass is complete and reads nothing"))


@pytest.mark.upstream("enable_publisher_works")
@pytest.mark.upstream("enable_publisher_emits_event")
@pytest.mark.upstream("enable_publisher_fails_if_not_disabled")
@pytest.mark.upstream("reenabled_publisher_processed_again")
@pytest.mark.upstream("publisher_disabled_then_enabled")
@yields("subscriber/scenarios")
def test_an_enabled_publisher_is_processed_with_the_next_block() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Re-enable disabled publisher",
        "re-enable",
        "enable_publisher takes effect in the next block; enabling twice is refused",
    )
    enable = ("enable_publisher", int(ALPHA))
    network = too_deep()
    network.block(about)
    block = network.block(about, calls=(enable, enable))
    assert block.expect.call_results == ("ok", "PublisherNotDisabled")
    yield block
    yield network.block(about.at("still-deep", "an enabled publisher that is still too deep is disabled again"))
    network.block(about, calls=(enable,))
    network.delete(ALPHA, staircase(9)[5:])
    yield network.block(about.at("shallow", "an enabled publisher within the limit is served"))
