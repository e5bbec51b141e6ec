"""One pass over a relay state proof: what it reads, pays for, tells and keeps; complete passes with enough budget."""

import pytest

from pallets.subscriber_invariants import cache_is_exact, one_pass_in_both_modes, proof_is_what_was_read
from pallets.subscriber_world import (
    ALPHA,
    BETA,
    FREE_READS,
    GAMMA,
    PLENTY,
    PUBLIC,
    World,
    key,
    keys,
    meter,
    path_key,
    staircase,
)
from relaycast_pallets import (
    Infinite,
    ProcessingMode,
    PublishedEntry,
    ReadSource,
    TrackedProof,
    ValidFor,
    derive_child_info,
    process_proof,
)
from relaycast_trie import EMPTY_ROOT, StorageProof, blake2_256
from relaycast_xcm.primitives import ROCKS_DB, ParaId, Weight

K = keys(10)
RELAY = ("relay_top", "relay_node", "relay_value")


def publishing(*publishers: ParaId, values: bytes = b"\x2a", world: World | None = None) -> World:
    """Return a world in which each publisher has written ten keys, of which the first three are subscribed to."""
    world = world or World()
    for publisher in publishers or (ALPHA,):
        world.subscribe(publisher, K[:3])
        world.publish(publisher, K, values)
    return world


@pytest.mark.upstream("process_relay_proof_keys_with_new_data_calls_handler")
@pytest.mark.upstream("process_proof_with_sufficient_budget_returns_complete")
@pytest.mark.upstream("new_publisher_processed_on_first_appearance")
@pytest.mark.upstream("published_entry_decoded_correctly")
@pytest.mark.upstream("basic_publish_subscribe_flow")
def test_a_published_value_reaches_the_handler() -> None:
    world = World()
    world.subscribe(ALPHA, [path_key("1234")])
    world.publish(ALPHA, [path_key("1234")], b"\xaa\xbb")
    block = world.block()
    assert block.result.is_complete
    assert block.calls == ((ALPHA, path_key("1234"), b"\xaa\xbb", Infinite()),)


@pytest.mark.scenario("Subscription Handler / Data update callback")
@pytest.mark.upstream("value_change_detected")
def test_an_update_is_told_with_the_raw_value_and_its_time_to_live() -> None:
    world = publishing()
    world.block()
    world.publish(ALPHA, K[1:2], b"new", ttl=30)
    assert world.block().calls == ((ALPHA, K[1], b"new", ValidFor(30)),)


def test_a_pass_alone_counts_from_block_zero_and_has_its_budget_to_itself() -> None:
    """No relay parent is named, and no messages: what a key still has to live, and who is owed a turn, tell."""
    world = World()
    world.subscribe(ALPHA, K[:3])
    world.publish(ALPHA, K[:3], ttl=30)
    root = world.seal()
    process_proof(ProcessingMode.VERIFY, world.collect(), root, meter(), world.subscriber)
    assert [call[3] for call in world.handler.calls] == [ValidFor(31)] * 3
    world.storage.put_turn((ALPHA, K[1]), None)
    stuck = process_proof(ProcessingMode.PRUNE, world.collect(), root, meter(0), world.subscriber)
    assert (stuck.turn.is_passed_over, stuck.turn.owed) == (True, None)


def test_what_a_meter_consumed_before_is_not_the_passs() -> None:
    world = publishing()
    root = world.seal()
    fresh, used = meter(), meter()
    assert used.try_consume(Weight(5, 7))
    first, second = (
        process_proof(ProcessingMode.PRUNE, world.collect(), root, it, world.subscriber) for it in (fresh, used)
    )
    assert first.consumed == second.consumed == fresh.consumed
    assert used.consumed == fresh.consumed + Weight(5, 7)


@pytest.mark.scenario("Change Detection / Root unchanged")
@pytest.mark.scenario("Proof Processing / Unchanged child tries skipped")
@pytest.mark.upstream("unchanged_root_skips_processing")
@pytest.mark.upstream("cache_survives_no_changes")
def test_an_unchanged_child_trie_is_not_read() -> None:
    """The way to its root in the top trie stays in the proof: it is what proves that nothing changed."""
    world = publishing()
    world.block()
    cached, roots = world.cached(ALPHA), world.storage.previous_roots()
    for _ in range(3):
        block = world.block()
        assert block.calls == ()
        assert {read.source for read in block.result.reads} <= {ReadSource.RELAY_TOP}
        assert not block.nodes & cached.keys()
        assert (world.cached(ALPHA), world.storage.previous_roots()) == (cached, roots)


@pytest.mark.scenario("Change Detection / Root changed")
@pytest.mark.upstream("root_change_triggers_processing")
@pytest.mark.upstream("process_proof_updates_previous_roots_in_verify_mode")
def test_a_changed_root_is_processed_and_remembered() -> None:
    world = publishing()
    first = world.block()
    assert set(first.called) == {(ALPHA, wanted) for wanted in K[:3]}
    before = world.root_of(ALPHA)
    world.publish(ALPHA, K[:3], b"new")
    second = world.block()
    assert set(second.called) == {(ALPHA, wanted) for wanted in K[:3]}
    assert world.storage.previous_roots() == {ALPHA: world.root_of(ALPHA)} != {ALPHA: before}


@pytest.mark.upstream("multiple_publishers_mixed_changes")
def test_only_the_publisher_that_changed_is_told() -> None:
    world = publishing(ALPHA, PUBLIC)
    world.block()
    world.publish(ALPHA, K[:1], b"new")
    block = world.block()
    assert block.called == [(ALPHA, K[0])]
    assert world.storage.previous_roots() == {publisher: world.root_of(publisher) for publisher in (ALPHA, PUBLIC)}


@pytest.mark.upstream("process_empty_subscriptions")
@pytest.mark.upstream("process_proof_empty_subscriptions_returns_complete")
@pytest.mark.upstream("noop_extender_process_proof_complete")
@pytest.mark.parametrize("mode", list(ProcessingMode))
def test_without_subscriptions_a_pass_is_complete_on_an_empty_proof(mode: ProcessingMode) -> None:
    world = World()
    result = process_proof(mode, StorageProof(), bytes(32), meter(0), world.subscriber)
    assert result.is_complete
    assert (result.reads, result.consumed) == ([], Weight.ZERO)


@pytest.mark.upstream("key_not_in_trie_no_callback")
def test_a_key_that_is_not_there_is_not_told() -> None:
    world = World()
    world.subscribe(ALPHA, [K[0], key("absent")])
    world.publish(ALPHA, K)
    assert world.block().called == [(ALPHA, K[0])]
    cache_is_exact(world)


@pytest.mark.upstream("multiple_keys_same_publisher")
@pytest.mark.upstream("process_proof_large_budget_processes_all_keys")
def test_all_keys_of_a_publisher_are_told() -> None:
    world = World()
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K, bytes(32))
    assert world.block().called == [(ALPHA, wanted) for wanted in K]


@pytest.mark.upstream("empty_child_trie_no_data")
@pytest.mark.upstream("subscription_to_non_existent_publisher")
def test_a_publisher_without_a_child_trie_is_proven_absent() -> None:
    world = World()
    world.subscribe(ALPHA, K)
    block = world.block()
    assert block.result.is_complete
    assert block.calls == ()
    assert world.storage.previous_roots() == {}


def test_a_child_trie_that_goes_takes_cache_and_root_with_it() -> None:
    world = publishing(ALPHA, PUBLIC)
    world.block()
    world.delete(ALPHA, K)
    block = world.block()
    assert (block.calls, world.cached(ALPHA)) == ((), {})
    assert world.storage.previous_roots() == {PUBLIC: world.root_of(PUBLIC)}
    world.publish(ALPHA, K)
    assert world.block().called == [(ALPHA, wanted) for wanted in K[:3]]


def test_a_deleted_key_is_not_told_and_comes_back_as_new() -> None:
    world = publishing()
    world.block()
    world.delete(ALPHA, K[:1])
    assert world.block().calls == ()
    cache_is_exact(world)
    world.publish(ALPHA, K[:1])
    assert world.block().called == [(ALPHA, K[0])]


@pytest.mark.upstream("value_exactly_32_bytes_inline_storage")
@pytest.mark.upstream("value_exactly_33_bytes_external_storage")
@pytest.mark.upstream("external_data_not_cached")
@pytest.mark.parametrize(
    ("size", "external"),
    [
        (0, False),  # nine bytes of entry: all of the trie may be inline
        (23, False),  # 32 bytes of entry: the longest that stays in its node
        (24, True),  # 33 bytes of entry
        (32, True),  # the value is 32 bytes long, its entry is not
        (33, True),
        (1_024, True),
    ],
)
def test_values_inside_and_outside_of_their_node(size: int, external: bool) -> None:
    world = World()
    world.subscribe(ALPHA, K[:2])
    world.publish(ALPHA, K[:2], bytes(size))
    block = world.block()
    assert [call[2] for call in block.calls] == [bytes(size)] * 2
    entry = PublishedEntry(bytes(size), 0, 1).encode()
    assert (blake2_256(entry) in block.nodes) is external
    assert block.sizes("relay_value") == ([len(entry)] if external else [])  # equal values are one node
    assert entry not in world.cached(ALPHA).values()
    cache_is_exact(world)


@pytest.mark.scenario("PoV Budget Constraint / WeightMeter tracks ref_time and proof_size")
@pytest.mark.upstream("weight_tracks_ref_time")
@pytest.mark.upstream("weight_tracks_proof_size")
@pytest.mark.upstream("weight_combined_tracking")
@pytest.mark.upstream("relay_proof_reads_manual")
@pytest.mark.upstream("cache_reads_tracked_by_host")
@pytest.mark.upstream("process_proof_weight_tracking_consumes_proof_size")
def test_every_read_weighs_one_database_read_and_its_bytes() -> None:
    world = publishing(ALPHA, BETA, values=bytes(100))
    world.block()
    world.publish(ALPHA, K[:1], bytes(99))
    block = world.block()
    reads = block.result.reads
    every = set(ReadSource) - {ReadSource.OWN_PATH}  # top trie, new nodes, values, cached nodes
    assert {read.source for read in reads} == every
    assert block.result.consumed == Weight(len(reads) * ROCKS_DB.read, sum(read.size for read in reads))
    assert block.outcome.meter.remaining() == block.outcome.meter.limit - block.result.consumed
    assert block.pruning.reads == reads


def test_a_node_is_paid_for_once_a_block() -> None:
    """Three publishers with equal contents: one child trie's nodes serve them all."""
    world = publishing(ALPHA, BETA, GAMMA)
    reads = world.block().result.reads
    relay = [read.node_hash for read in reads if read.source.is_relay]
    assert len(relay) == len(set(relay))
    assert {read.publisher for read in reads if read.source is ReadSource.RELAY_NODE} == {ALPHA}
    assert set(world.cached(ALPHA)) == set(world.cached(BETA)) == set(world.cached(GAMMA))


def test_nodes_of_static_keys_are_free() -> None:
    world = publishing()
    block = world.block()
    paid = {read.node_hash for read in block.result.reads}
    assert world.static_nodes()
    assert not paid & world.static_nodes()
    proof_is_what_was_read(world, block)


@pytest.mark.upstream("process_proof_prune_and_verify_consume_similar_weight")
@pytest.mark.upstream("prune_verify_same_weight")
@pytest.mark.upstream("prune_verify_same_cursor")
@pytest.mark.parametrize("pubsub_bytes", [0, 700, 1_500, 3_000, PLENTY])
def test_pruning_and_verifying_read_and_consume_the_same(pubsub_bytes: int) -> None:
    world = publishing(ALPHA, PUBLIC, values=bytes(64))
    for _ in range(3):
        one_pass_in_both_modes(world.block(pubsub_bytes))


@pytest.mark.upstream("process_proof_prune_mode_does_not_call_handler")
@pytest.mark.upstream("process_proof_prune_mode_does_not_cache_nodes")
@pytest.mark.upstream("process_proof_prune_mode_does_not_update_roots")
@pytest.mark.upstream("prune_no_state_changes")
@pytest.mark.upstream("prune_no_cache_writes")
@pytest.mark.upstream("prune_no_root_updates")
@pytest.mark.upstream("prune_no_cursor_writes")
@pytest.mark.parametrize("pubsub_bytes", [700, PLENTY])
def test_pruning_writes_nothing(pubsub_bytes: int) -> None:
    world = publishing()
    world.storage.relay_proof_processing_cursor.put((ALPHA, K[1]))
    world.seal()
    before = world.everything()
    _, result = world.prune(pubsub_bytes)
    assert result.changes or not result.is_complete
    assert world.everything() == before


@pytest.mark.upstream("verify_applies_state_changes")
@pytest.mark.upstream("process_proof_verify_mode_caches_nodes")
def test_verifying_calls_the_handler_and_writes_root_cache_and_no_cursor() -> None:
    world = publishing()
    world.seal()
    proof = TrackedProof(world.collect(), world.relay.root)
    result = process_proof(ProcessingMode.VERIFY, proof, world.relay.root, meter(), world.subscriber)
    assert result.is_complete
    assert len(world.handler.calls) == 3
    assert world.storage.previous_roots() == {ALPHA: world.root_of(ALPHA)}
    assert world.cached(ALPHA)
    assert not world.storage.relay_proof_processing_cursor.exists()


@pytest.mark.scenario("Proof Processing / Unsubscribed key paths not accessed")
def test_paths_of_unsubscribed_keys_are_pruned() -> None:
    world = World()
    world.subscribe(ALPHA, K[:2])
    for number, written in enumerate(K):
        world.publish(ALPHA, [written], bytes([number]) * 40)
    world.seal()
    everything = world.relay.prove_child_read(world.relay.root, derive_child_info(ALPHA), K)
    block = world.block(seal=False, tamper=None)
    others = {blake2_256(PublishedEntry(bytes([number]) * 40, 0, 1).encode()) for number in range(2, 10)}
    assert others <= {blake2_256(node) for node in everything.nodes}
    assert not others & block.nodes
    pruned, _ = world.parachain.prune(world.inherent(StorageProof.merge([block.collected, everything])), b"")
    assert not others & set(map(blake2_256, pruned.nodes))


@pytest.mark.scenario("Proof Processing / Cached nodes read from storage")
@pytest.mark.scenario("Trie Node Caching / Subsequent proof with cached nodes")
@pytest.mark.upstream("composite_hash_db_checks_cache_first")
@pytest.mark.upstream("cache_reduces_proof_size")
@pytest.mark.upstream("unchanged_subtree_skipped")
def test_cached_nodes_are_read_from_storage_and_left_out_of_the_proof() -> None:
    world = World()
    every = keys(200)
    world.subscribe(ALPHA, every[:60])
    world.publish(ALPHA, every, bytes(40))
    first = world.block()
    cached = world.cached(ALPHA)
    world.publish(ALPHA, [every[7], every[150]], bytes(41))
    second = world.block()
    from_cache = {read.node_hash for read in second.result.reads if read.source is ReadSource.CACHED_NODE}
    assert from_cache
    assert from_cache <= cached.keys()
    assert not second.nodes & cached.keys()
    collected = set(map(blake2_256, second.collected.nodes))
    assert collected & cached.keys()  # the collator was given them and pruned them
    new = {read.node_hash for read in second.result.reads if read.source is ReadSource.RELAY_NODE}
    assert new == world.cached(ALPHA).keys() - cached.keys()
    assert second.inherent.proof_bytes * 4 < first.inherent.proof_bytes
    assert second.called == [(ALPHA, every[7])]


@pytest.mark.upstream("depth_within_limit")
@pytest.mark.scenario("Trie Depth Limit / Proof within depth limit")
@pytest.mark.parametrize("depth", [1, 2, 6, 8])
def test_a_path_within_the_depth_limit_is_processed(depth: int) -> None:
    """Eight nodes, leaf included, are exactly the limit."""
    world = World()
    steps = staircase(depth)
    world.subscribe(ALPHA, steps[:1])
    world.publish(ALPHA, steps, bytes(40))
    block = world.block()
    assert len(block.sizes("relay_node")) == depth
    assert block.called == [(ALPHA, steps[0])]
    assert len(world.cached(ALPHA)) == depth


def test_an_empty_relay_state_has_no_publishers() -> None:
    world = World()
    world.subscribe(ALPHA, K[:1])
    result = process_proof(ProcessingMode.PRUNE, StorageProof([b"\x00"]), EMPTY_ROOT, meter(), world.subscriber)
    assert result.is_complete
    assert [change.root for change in result.changes] == [None]


def test_reads_are_free_where_the_database_is() -> None:
    world = publishing(world=World(config=FREE_READS))
    block = world.block()
    assert block.result.consumed == Weight(0, sum(block.sizes(*RELAY)))


def test_a_result_shows_how_it_ended() -> None:
    world = publishing()
    assert repr(world.block(0).result) == "<ProofProcessingResult incomplete at publisher 1000, 0 reads, (0 ps, 0 B)>"
    assert repr(world.block().result).startswith("<ProofProcessingResult complete, ")
