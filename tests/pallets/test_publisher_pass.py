"""One publisher's part of a pass: what is read of its node cache, and what is swept out of it when."""

import pytest

from pallets.subscriber_invariants import cache_is_exact, hashed_paths
from pallets.subscriber_world import ALPHA, World, disabled, keys, path_key
from relaycast_pallets import Origin, Policies, ReadSource
from relaycast_pallets.subscriber.node_cache import marked_by_base
from relaycast_pallets.subscriber.policies import StructureNodes
from relaycast_pallets.subscriber.publisher_walk import PublisherWalk

ROOT = Origin.root()
W = keys(12)


def write(world: World, number: int) -> None:
    """Give each key a long value of its own."""
    for place, wanted in enumerate(W):
        world.publish(ALPHA, [wanted], bytes([number, place]) * 150)


def following(count: int = 300, *, wanted: int = 40, policies: Policies | None = None) -> World:
    """Return a world whose own state is sealed and whose subscriber has seen the first of many keys."""
    world = World(policies=policies)
    world.subscribe(ALPHA, keys(count)[:wanted])
    world.publish(ALPHA, keys(count), bytes(40))
    world.block(1 << 24)
    world.state.commit()
    return world


def test_the_own_state_is_asked_for_no_cached_nodes_but_those_that_are_charged() -> None:
    """What came and what went says how the cache changes: the rest of it is not looked through."""
    world = following()
    before, prefix = world.cached(ALPHA).keys(), world.storage.cached_trie_nodes.prefix
    world.publish(ALPHA, keys(300)[:1], bytes(41))
    world.state.top.reads = set()
    reads = world.block().result.reads
    asked = {read[-32:] for read in world.state.top.reads if read.startswith(prefix)}
    charged = {read.node_hash for read in reads if read.source is ReadSource.CACHED_NODE}
    assert asked & before == charged
    assert 0 < len(charged) < 5
    cache_is_exact(world)


def test_a_cached_node_that_a_walk_meets_again_is_charged_once() -> None:
    """A branch comes above others: the old node there is looked at for each way that leads to it."""
    world = World()
    world.subscribe(ALPHA, [path_key("00a"), path_key("00b"), path_key("02")])
    world.publish(ALPHA, [path_key("00a"), path_key("00b")], bytes(40))
    world.block()
    world.publish(ALPHA, [path_key("01"), path_key("02")], bytes(40))
    block = world.block()
    cached = [read.node_hash for read in block.result.reads if read.source is ReadSource.CACHED_NODE]
    assert 0 < len(cached) == len(set(cached))
    cache_is_exact(world)


def test_a_publisher_of_hundreds_of_keys_is_finished_with() -> None:
    world = following(400, wanted=400)
    assert world.storage.previous_roots() == {ALPHA: world.root_of(ALPHA)}
    assert ALPHA not in world.storage.unfinished_publishers


@pytest.mark.parametrize("begins", [0, 1, 5, 11])
def test_a_publisher_is_finished_with_when_all_its_keys_are_walked_on_both_sides_of_the_cursor(begins: int) -> None:
    world = World()
    world.subscribe(ALPHA, W)
    write(world, 0)
    world.storage.relay_proof_processing_cursor.put((ALPHA, W[begins]))
    (change,) = world.block().result.changes
    assert (change.keys_walked, change.finished) == (len(W), True)


def test_a_publisher_that_is_gone_or_too_deep_is_finished_with() -> None:
    world = following()
    world.delete(ALPHA, keys(300))
    (gone,) = world.block().result.changes
    deep = disabled()
    deep.subscriber.enable_publisher(ROOT, ALPHA)
    (disabling,) = deep.block().result.changes
    assert (gone.root, disabling.disabled_by is not None) == (None, True)
    assert (gone.finished, disabling.finished) == (True, True)


@pytest.mark.parametrize(
    ("begins", "pubsub_bytes", "sweeps"),
    [
        (0, 2_500, True),  # a round begins
        (1, 2_500, False),  # a round goes on
        (9, 2_500, True),  # a round ends and the next one begins
        (9, 900, True),  # not even the first key is affordable
    ],
)
def test_the_cache_of_an_unfinished_publisher_is_swept_once_in_a_round(
    begins: int, pubsub_bytes: int, *, sweeps: bool
) -> None:
    """A sweep leaves what was just read, and the path of each key in the trie that it was last dealt with against."""
    world, stale = World(), bytes(32)
    world.subscribe(ALPHA, W)
    for number, budget in enumerate((1 << 20, 2_500)):
        write(world, number)
        world.block(budget)
    world.storage.cached_trie_nodes.insert(ALPHA, stale, b"no key needs it")
    world.storage.relay_proof_processing_cursor.put((ALPHA, W[begins]))
    write(world, 2)
    result = world.block(pubsub_bytes).result
    assert result.stopped_at is not None
    assert (0 < begins < W.index(result.stopped_at[1])) is not sweeps
    assert (stale in world.cached(ALPHA)) is not sweeps
    if sweeps:
        bases, root = world.storage.bases(ALPHA, W), world.storage.previous_roots()[ALPHA]
        assert bases is not None
        needed = marked_by_base({key: bases.get(key, root) for key in W}, world.relay_nodes())
        read = {read.node_hash for read in result.reads if read.source is ReadSource.RELAY_NODE}
        assert world.cached(ALPHA).keys() == needed | read
    (change,) = result.changes
    assert not change.cache.remove & change.cache.insert.keys()


def test_neighbours_that_were_dealt_with_against_one_root_are_walked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, walked = PublisherWalk.walk, list[tuple[int, int]]()

    def noted(self: PublisherWalk, low: int, high: int, *, new_root: bytes, old_root: bytes | None) -> None:
        walked.append((low, high))
        walk(self, low, high, new_root=new_root, old_root=old_root)

    world = World()
    world.subscribe(ALPHA, W)
    for number, budget in enumerate((1 << 20, 2_500)):
        write(world, number)
        block = world.block(budget)
    assert block.result.cursor is not None
    at = W.index(block.result.cursor[1])
    monkeypatch.setattr(PublisherWalk, "walk", noted)
    world.seal()
    world.prune()
    assert 0 < at < len(W)
    assert walked == [(at, len(W)), (0, at)]


@pytest.mark.parametrize("most", [100, 300, 512])
def test_nodes_that_are_too_long_are_not_kept(most: int) -> None:
    world = following(policies=Policies(cache=StructureNodes(most)))
    for number in range(3):
        placed = {placement for path in hashed_paths(world, ALPHA) for placement in path}
        nodes = world.relay_nodes()
        assert world.cached(ALPHA).keys() == {it for _, it in placed if len(nodes[it]) <= most}
        world.publish(ALPHA, keys(300)[number:60:3], bytes(41 + number))
        world.block()


def test_a_node_that_grows_too_long_to_be_kept_goes_and_is_not_counted() -> None:
    """The root had fifteen children and comes to have sixteen; nothing else of the cache moves."""
    world = World(policies=Policies(cache=StructureNodes(512)))
    few = [each for each in keys(300) if each[0] < 0xF0]
    world.subscribe(ALPHA, few[:20])
    world.publish(ALPHA, few, bytes(40))
    world.block()
    before, root = world.cached(ALPHA).keys(), world.root_of(ALPHA)
    assert root in before
    world.publish(ALPHA, keys(300)[-1:], bytes(40))
    world.block()
    assert world.cached(ALPHA).keys() == before - {root}
    assert world.storage.shared_nodes(ALPHA) == {}
