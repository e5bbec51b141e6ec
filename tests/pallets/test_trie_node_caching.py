"""The node cache: exactly the structure on the paths of the subscribed keys, filled by the first proof and kept up."""

from collections.abc import Iterator

import pytest

from pallets.block_vectors import (
    ALPHA,
    BETA,
    A,
    B,
    BlockVector,
    C,
    D,
    K,
    SmallNetwork,
    executes,
    following,
    keys,
    path_key,
    told,
)
from pallets.subscriber_world import World, world_of
from yielded_vectors import yields


@pytest.mark.upstream("cache_populated_on_first_access")
@pytest.mark.upstream("process_relay_proof_keys_with_new_data_calls_handler")
@pytest.mark.upstream("process_proof_with_sufficient_budget_returns_complete")
@pytest.mark.upstream("process_proof_large_budget_processes_all_keys")
@pytest.mark.upstream("new_publisher_processed_on_first_appearance")
@pytest.mark.upstream("published_entry_decoded_correctly")
@pytest.mark.upstream("basic_publish_subscribe_flow")
@pytest.mark.upstream("multiple_keys_same_publisher")
@pytest.mark.upstream("verify_applies_state_changes")
@pytest.mark.upstream("process_proof_verify_mode_caches_nodes")
@pytest.mark.upstream("subscription_before_publish")
@pytest.mark.upstream("subscription_to_non_existent_publisher")
@pytest.mark.upstream("empty_child_trie_no_data")
@pytest.mark.upstream("key_not_in_trie_no_callback")
@yields("subscriber/scenarios")
def test_the_first_proof_fills_the_cache_whenever_the_first_value_comes() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Initial proof processing",
        "initial-processing",
        "the first proof holds all nodes on the subscribed paths, and all of them are cached without their values",
    )
    network = SmallNetwork()
    network.subscribe(ALPHA, K[:5])
    network.publish(ALPHA, K, bytes(40))
    block = network.block(about)
    assert told(block) == K[:5]
    yield block
    network = SmallNetwork()
    network.subscribe(ALPHA, [A])
    yield network.block(about.at("absent", "without a child trie only the subscribed keys are noted"))
    network.publish(ALPHA, [B])
    yield network.block(about.at("no-entry", "without the key: the path to where it would stand is read"))
    network.publish(ALPHA, [A])
    yield network.block(about.at("first-value", "the first value of a key that was subscribed to before"))


@yields("subscriber/scenarios")
def test_paths_of_unsubscribed_keys_are_not_cached() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Partial subscription caching",
        "partial-caching",
        "of five keys two are subscribed to: only their paths are cached",
    )
    network = SmallNetwork(also={ALPHA: K[:5]})
    network.subscribe(ALPHA, K[:2])
    network.publish(ALPHA, K[:5], bytes(30))
    yield network.block(about)


@pytest.mark.upstream("cache_reduces_proof_size")
@yields("subscriber/scenarios")
def test_cached_nodes_are_left_out_of_the_next_proof() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Subsequent proof with cached nodes",
        "subsequent-proof",
        "cached nodes are pruned from the proof, and so are nodes that lead to other keys alone",
    )
    network = following(wanted=3)
    network.also = {ALPHA: K}
    network.publish(ALPHA, [B, D], bytes(30))
    yield network.block(about)


@pytest.mark.upstream("composite_hash_db_checks_cache_first")
@pytest.mark.upstream("unchanged_subtree_skipped")
@yields("subscriber/budget-scenarios")
def test_cached_nodes_of_the_old_path_are_read_from_storage() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Cached nodes read from storage",
        "cached-read",
        "nodes of the old path are read from CachedTrieNodes and pruned from the proof",
    )
    network = SmallNetwork()
    network.subscribe(ALPHA, [path_key("00"), path_key("01"), path_key("1")])
    network.publish(ALPHA, [path_key("00"), path_key("01"), path_key("1"), path_key("2")], bytes(30))
    network.block(about)
    network.publish(ALPHA, [path_key("1")], b"new")
    yield network.block(about)
    network.publish(ALPHA, [path_key("000001")], b"split")
    yield network.block(about.at("split", "a new key puts a branch above an unchanged node: the old path is compared"))


@pytest.mark.upstream("cache_updated_on_change")
@yields("subscriber/scenarios")
def test_the_cache_follows_the_new_trie() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Cache synchronization via dual-trie traversal",
        "synchronization",
        "new nodes come into the cache, replaced ones go, unchanged ones are not read",
    )
    network = following(wanted=3)
    network.publish(ALPHA, [A], bytes(30))
    yield network.block(about)
    network.delete(ALPHA, [A])
    yield network.block(about.at("deleted", "a deleted key is not told; its nodes go"))
    network.publish(ALPHA, [A], b"back")
    yield network.block(about.at("back", "a key that comes back is told"))
    network.delete(ALPHA, K)
    yield network.block(about.at("emptied", "a child trie that goes takes root, cache and counts with it"))


@pytest.mark.upstream("cache_invalidation_removes_stale_nodes")
@yields("subscriber/scenarios")
def test_removed_keys_clear_the_cache_and_all_is_proven_anew() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Subscription change clears cache",
        "change-clears",
        "keys [A, B] become [C, D]: the cache is cleared and all is proven anew",
    )
    network = following()
    network.subscribe(ALPHA, [C, D])
    yield network.block(about)
    network.subscribe(ALPHA, [C])
    yield network.block(about.at("fewer", "one of two keys is removed: the other is told again"))


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
    world = world_of(ALPHA)
    world.block()
    node_hash, node = next(iter(world.cached(ALPHA).items()))
    assert world.storage.cache_of(ALPHA).get(node_hash) == node
    assert world.storage.cache_of(BETA).get(node_hash) is None
    assert world.storage.cache_of(ALPHA).get(bytes(32)) is None
