"""One pass over a relay state proof: what it reads, pays for, tells and keeps; complete passes with enough budget."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from pallets.block_vectors import (
    ALPHA,
    AMPLE,
    BETA,
    GAMMA,
    PUBLIC,
    A,
    BlockVector,
    D,
    K,
    SmallNetwork,
    executes,
    following,
    prune,
    values,
)
from pallets.subscriber_invariants import cache_is_exact
from pallets.subscriber_world import PLENTY, World, meter
from relaycast_pallets import ProcessingMode, PublishedEntry, ReadSource, ValidFor, process_proof
from relaycast_trie import EMPTY_ROOT, StorageProof, blake2_256
from relaycast_xcm.primitives import ROCKS_DB, ParaId, Weight
from vector_fields import VectorWeight
from yielded_vectors import yields


def publishing(*publishers: ParaId) -> World:
    """Return a world in which each publisher has written six keys, of which the first three are subscribed to."""
    world = World()
    for publisher in publishers or (ALPHA,):
        world.subscribe(publisher, K[:3])
        world.publish(publisher, K)
    return world


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
    assert (stuck.turn.is_passed_over, stuck.turn.deferred_key) == (True, None)


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


@pytest.mark.upstream("unchanged_root_skips_processing")
@pytest.mark.upstream("cache_survives_no_changes")
@pytest.mark.upstream("multiple_publishers_mixed_changes")
@yields("subscriber/scenarios")
def test_an_unchanged_root_is_found_through_the_top_trie_and_nothing_more_is_read() -> Iterator[BlockVector]:
    about = executes(
        "Change Detection / Root unchanged",
        "root-unchanged",
        "an unchanged child root is found through the top trie, and nothing more is read",
    )
    network = following(ALPHA, PUBLIC)
    block = network.block(about)
    assert {read.source for read in prune(block)[1].reads} == {ReadSource.RELAY_TOP}
    yield block
    yield network.block(about.at("again", "roots of unchanged publishers stay: callbacks do not alternate"))
    network.publish(PUBLIC, [A], b"other")
    yield network.block(about.at("beside", "one publisher changed: the other is not read"))


@yields("subscriber/budget-scenarios")
def test_the_child_trie_of_an_unchanged_publisher_is_pruned() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Unchanged child tries skipped",
        "unchanged-skipped",
        "the child trie of an unchanged publisher is pruned from the proof",
    )
    network = following(ALPHA, BETA)
    network.publish(BETA, [A], b"moved")
    yield network.block(about)


@pytest.mark.upstream("root_change_triggers_processing")
@pytest.mark.upstream("process_proof_updates_previous_roots_in_verify_mode")
@yields("subscriber/scenarios")
def test_a_changed_root_is_processed_and_remembered() -> Iterator[BlockVector]:
    about = executes(
        "Change Detection / Root changed",
        "root-changed",
        "a changed root has its changed keys told, and is remembered",
    )
    network = following()
    network.publish(ALPHA, K[:2], b"changed")
    yield network.block(about)
    network.publish(ALPHA, [D], b"unsubscribed")
    yield network.block(about.at("elsewhere", "another key changed: the root moves on and nothing is told"))
    network.publish(ALPHA, [A], b"changed")
    yield network.block(about.at("same-value", "the same value published again is a change: when_inserted moved"))


@pytest.mark.upstream("process_empty_subscriptions")
@pytest.mark.upstream("process_proof_empty_subscriptions_returns_complete")
@pytest.mark.upstream("noop_extender_process_proof_complete")
@pytest.mark.parametrize("mode", list(ProcessingMode))
def test_without_subscriptions_a_pass_is_complete_on_an_empty_proof(mode: ProcessingMode) -> None:
    world = World()
    result = process_proof(mode, StorageProof(), bytes(32), meter(0), world.subscriber)
    assert result.is_complete
    assert (result.reads, result.consumed) == ([], Weight.ZERO)


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


@pytest.mark.upstream("weight_tracks_ref_time")
@pytest.mark.upstream("weight_tracks_proof_size")
@pytest.mark.upstream("weight_combined_tracking")
@pytest.mark.upstream("relay_proof_reads_manual")
@pytest.mark.upstream("cache_reads_tracked_by_host")
@pytest.mark.upstream("process_proof_weight_tracking_consumes_proof_size")
@pytest.mark.upstream("budget_accounts_for_ref_time")
@pytest.mark.upstream("budget_respects_both_dimensions")
@yields("subscriber/budget-scenarios")
def test_every_read_weighs_one_database_read_and_its_bytes() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / WeightMeter tracks ref_time and proof_size",
        "meter",
        "every node, value and cached node takes one database read and its bytes",
    )
    network = following(ALPHA, BETA)
    network.publish(ALPHA, [A], bytes(30))
    block = network.block(about)
    reads = prune(block)[1].reads
    assert {read.source for read in reads} == set(ReadSource) - {ReadSource.OWN_PATH}
    assert block.expect.consumed == VectorWeight(len(reads) * ROCKS_DB.read, sum(read.size for read in reads))
    yield block
    network = SmallNetwork(static_keys=())
    network.subscribe(ALPHA, K[:2])
    network.publish(ALPHA, K[:3], bytes(30))
    yield network.block(about.at("no-static-keys", "without static keys the root of the top trie is paid for too"))
    network = SmallNetwork(config=replace(network.config, read_ref_time=0, write_ref_time=0))
    network.subscribe(ALPHA, K[:2])
    network.publish(ALPHA, K[:3], bytes(30))
    yield network.block(about.at("free-database", "a database that takes no time: bytes alone are charged"))
    network = values(ALPHA, BETA)
    count_of_reads = len(prune(network.honest(about, seal=False))[1].reads)
    for count in (0, 1, count_of_reads - 1, count_of_reads):
        time = about.at(f"time-{count}", f"ref_time for {count} reads")
        yield network.honest(time, budget=Weight(count * ROCKS_DB.read, AMPLE.proof_size), seal=False)
    unlimited = about.at("unlimited", "the largest weight of all")
    yield network.honest(unlimited, budget=Weight.MAX, seal=False)


def test_a_node_is_paid_for_once_a_block() -> None:
    """Three publishers with equal contents: one child trie's nodes serve them all."""
    world = publishing(ALPHA, BETA, GAMMA)
    reads = world.block().result.reads
    relay = [read.node_hash for read in reads if read.source.is_relay]
    assert len(relay) == len(set(relay))
    assert {read.publisher for read in reads if read.source is ReadSource.RELAY_NODE} == {ALPHA}
    assert set(world.cached(ALPHA)) == set(world.cached(BETA)) == set(world.cached(GAMMA))


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


@yields("subscriber/budget-scenarios")
def test_paths_of_unsubscribed_keys_are_pruned() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Unsubscribed key paths not accessed",
        "unsubscribed-paths",
        "of five keys two are subscribed to: nodes that lead to the others alone are pruned",
    )
    network = SmallNetwork(also={ALPHA: K[:5]})
    network.subscribe(ALPHA, K[:2])
    for each in K[:5]:
        network.publish(ALPHA, [each], each)
    yield network.block(about)


def test_an_empty_relay_state_has_no_publishers() -> None:
    world = World()
    world.subscribe(ALPHA, K[:1])
    result = process_proof(ProcessingMode.PRUNE, StorageProof([b"\x00"]), EMPTY_ROOT, meter(), world.subscriber)
    assert result.is_complete
    assert [change.root for change in result.changes] == [None]


def test_a_result_shows_how_it_ended() -> None:
    world = publishing()
    assert repr(world.block(0).result) == "<ProofProcessingResult incomplete at publisher 1000, 0 reads, (0 ps, 0 B)>"
    assert repr(world.block().result).startswith("<ProofProcessingResult complete, ")
