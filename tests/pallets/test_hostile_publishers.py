"""Publishers that mean harm: deep paths, rewriting without end, values at the limit; nobody else is worse off."""

import pytest

from pallets.block_vectors import ALPHA, BETA, OTHER_PUBLIC, PUBLIC, keys, path_key, staircase
from pallets.lying_collators import SEED, SITUATIONS, Situation, subscribed_world, update, verdict
from pallets.subscriber_invariants import ChangesTold, all_hold
from pallets.subscriber_world import Block, World
from relaycast_pallets import (
    ValidationOutcome,
)


@pytest.mark.upstream("publisher_pathological_trie")
def test_a_publisher_of_deep_paths_harms_no_other() -> None:
    """Nine keys break a depth limit of eight; the others get what they get without it, in the same block."""
    with_it, without_it = SITUATIONS["too deep"]().world, subscribed_world()
    without_it.subscribe(BETA, [])
    with_it, without_it = (strip_to(world) for world in (with_it, without_it))
    ours, theirs = with_it.block(seed=SEED), without_it.block(seed=SEED)
    assert ours.called == theirs.called
    wasted = sum(read.size for read in ours.result.reads if read.publisher == BETA)
    assert 0 < wasted < 8 * 750
    assert with_it.storage.previous_roots().keys() == {ALPHA, PUBLIC, OTHER_PUBLIC}
    after = with_it.block(seed=SEED)
    assert {read.publisher for read in after.result.reads} <= {None}


def strip_to(world: World) -> World:
    """Leave only subscriptions that name keys."""
    world.handler.wanted = {publisher: wanted for publisher, wanted in world.handler.wanted.items() if wanted}
    return world


@pytest.mark.upstream("publisher_rapid_changes")
def test_a_publisher_that_rewrites_everything_delays_others_by_blocks_not_for_ever() -> None:
    world, told = subscribed_world(), ChangesTold()
    told.check(world, world.block())
    update(world, (PUBLIC,), b"one change")
    blocks: list[Block] = []
    for number in range(30):
        world.publish(ALPHA, keys(8, prefix=str(ALPHA)), bytes([number]) * 300)
        blocks.append(world.block(2_600, seed=bytes([number])))
        all_hold(world, blocks[-1], told)
        if (PUBLIC, world.handler.wanted[PUBLIC][2]) in blocks[-1].called:
            break
    assert 1 < len(blocks) < 10


def test_heartbeats_cost_paths_of_what_was_rewritten() -> None:
    """The same value written again moves ``when_inserted``: it is told again and costs its path."""
    world = subscribed_world(count=60)
    first = world.block()
    for _ in range(3):
        wanted = world.handler.wanted[ALPHA][:1]
        world.publish(ALPHA, wanted, b"beat")
        block = world.block()
        assert block.called == [(ALPHA, wanted[0])]
        assert block.inherent.proof_bytes * 5 < first.inherent.proof_bytes


def test_values_at_the_limit_fit_into_the_slack_they_define() -> None:
    """A value of the greatest length that does not fit leaves less than ``min_weight``: the honest block stands."""
    world = World()
    world.subscribe(ALPHA, keys(3))
    world.publish(ALPHA, keys(3), bytes(world.subscriber.config.max_value_length))
    world.seal()
    for pubsub_bytes in range(0, 2_000, 37):
        situation = Situation(world, pubsub_bytes)
        assert isinstance(verdict(situation, situation.honest.relay_chain_state), ValidationOutcome)


@pytest.mark.parametrize("depth", [8, 9])
def test_crafted_keys_that_are_not_subscribed_deepen_the_paths_of_others(depth: int) -> None:
    """The limit counts nodes on subscribed paths, whoever put them there."""
    world = World()
    steps = staircase(depth)
    world.subscribe(ALPHA, [steps[0], path_key("f")])
    world.publish(ALPHA, [*steps, path_key("f")], bytes(40))
    world.block()
    assert (ALPHA in world.storage.disabled_publishers) is (depth > 8)
