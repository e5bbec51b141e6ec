"""The node cache: exactly the structure on the paths of the subscribed keys, filled by the first proof and kept up."""

import pytest

from pallets.subscriber_invariants import cache_is_exact, hashed_paths
from pallets.subscriber_world import ALPHA, BETA, K, World, following, keys
from relaycast_pallets import (
    Origin,
)

A, B, C, D, E = K[:5]
ROOT, SIGNED = Origin.root(), Origin.signed(bytes(32))


@pytest.mark.scenario("Trie Node Caching / Initial proof processing")
@pytest.mark.upstream("cache_populated_on_first_access")
def test_the_first_proof_fills_the_cache_with_the_structure_of_all_paths() -> None:
    world = World()
    wanted = keys(100)
    world.subscribe(ALPHA, wanted)
    world.publish(ALPHA, [*wanted, *keys(100, prefix="x")], bytes(100))
    block = world.block()
    structure = {read.node_hash for read in block.result.reads if read.source.value == "relay_node"}
    assert world.cached(ALPHA).keys() == structure
    for node_hash, node in world.cached(ALPHA).items():
        assert world.storage.cached_trie_nodes.get(ALPHA, node_hash) == node
    cache_is_exact(world)


@pytest.mark.scenario("Trie Node Caching / Partial subscription caching")
def test_paths_of_unsubscribed_keys_are_not_cached() -> None:
    world = World()
    world.publish(ALPHA, K[:5], bytes(40))
    world.subscribe(ALPHA, [C, D, E])
    world.seal()
    unsubscribed = {path[-1][1] for path in hashed_paths(world, ALPHA)}
    world.subscribe(ALPHA, [A, B])
    world.block(seal=False)
    assert len(unsubscribed) == 3
    assert not unsubscribed & world.cached(ALPHA).keys()
    cache_is_exact(world)


@pytest.mark.scenario("Trie Node Caching / Cache synchronization via dual-trie traversal")
@pytest.mark.upstream("cache_updated_on_change")
def test_the_cache_follows_the_new_trie() -> None:
    world = World()
    every = keys(200)
    world.subscribe(ALPHA, every[:50])
    world.publish(ALPHA, every, bytes(40))
    world.block()
    before = world.cached(ALPHA)
    world.publish(ALPHA, every[:1], bytes(41))
    world.delete(ALPHA, every[60:70])
    world.publish(ALPHA, keys(5, prefix="new"), bytes(40))
    block = world.block()
    after = world.cached(ALPHA)
    assert after.keys() - before.keys()
    assert before.keys() - after.keys()
    untouched = before.keys() & after.keys()
    read = {read.node_hash for read in block.result.reads}
    assert len(untouched - read) > len(untouched) * 3 // 4  # below an unchanged node nothing is read
    cache_is_exact(world)


@pytest.mark.upstream("cached_node_size_bounded")
def test_a_full_branch_is_cached() -> None:
    """All sixteen children: 531 bytes, more than the 512 that a draft allows."""
    world = World()
    every = keys(300)
    world.subscribe(ALPHA, every[:5])
    world.publish(ALPHA, every, bytes(40))
    world.block()
    root = world.root_of(ALPHA)
    assert root is not None
    assert len(world.cached(ALPHA)[root]) == 531


@pytest.mark.upstream("cached_trie_nodes_db_get_existing")
@pytest.mark.upstream("cached_trie_nodes_db_get_missing")
def test_cached_nodes_are_found_by_publisher_and_hash() -> None:
    world = following()
    node_hash, node = next(iter(world.cached(ALPHA).items()))
    assert world.storage.cached_node(ALPHA, node_hash) == node
    assert world.storage.cached_node(BETA, node_hash) is None
    assert world.storage.cached_node(ALPHA, bytes(32)) is None
