"""Bounds of what is kept of publishers, those that leave the subscriptions among them, and what a block is charged."""

import pytest

from pallets.block_vectors import ALPHA, BETA, PUBLIC
from pallets.subscriber_world import MOCK, K, World, following
from relaycast_pallets import NoCachedNodes, Origin, Policies
from relaycast_pallets.subscriber.variants.drafts import NoCache
from relaycast_xcm.primitives import ParaId, Weight

ROOT = Origin.root()


def test_roots_are_bounded_by_the_publishers_that_may_be_subscribed_to() -> None:
    """A subscriber that moves on from publisher to publisher keeps no root of those behind it."""
    world, limit = World(), MOCK.max_publishers
    publishers = [ParaId(3_000 + number) for number in range(2 * limit + 10)]
    for publisher in publishers:
        world.publish(publisher, K[:1])
    for start in range(0, len(publishers), limit // 2):
        world.handler.wanted = dict.fromkeys(publishers[start : start + limit], K[:1])
        world.block(1 << 24)
        assert len(world.storage.previous_roots()) <= limit
        assert world.storage.previous_roots().keys() == world.handler.wanted.keys() == world.storage.digests().keys()


def test_a_publisher_that_is_disabled_has_not_left() -> None:
    world = following(ALPHA, BETA)
    world.storage.disabled_publishers.insert(ALPHA, b"\x00")
    before = world.kept()
    world.block()
    assert world.kept() == before
    world.subscriber.enable_publisher(ROOT, ALPHA)
    assert world.block().calls == ()


@pytest.mark.parametrize("kept", ["nodes alone", "no nodes", "a cursor", "an interrupted pass"])
def test_whatever_is_kept_of_a_publisher_can_be_cleared(kept: str) -> None:
    """Nodes without a root, a digest without either, and what an interrupted pass left: all goes, nodes or not."""
    world = World(policies=Policies(cache=NoCache()) if kept == "an interrupted pass" else None)
    world.block()
    pristine = world.kept()
    world.subscribe(ALPHA, K)
    if kept != "no nodes":
        world.publish(ALPHA, K, bytes(300))
    world.block(1_200 if kept in {"a cursor", "an interrupted pass"} else 1 << 20)
    if kept == "nodes alone":
        world.subscribe(ALPHA, [])
        world.block()
    assert world.kept() != pristine
    assert bool(world.cached(ALPHA)) is (kept in {"nodes alone", "a cursor"})
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)
    assert world.kept() == pristine
    with pytest.raises(NoCachedNodes):
        world.subscriber.clear_publisher_cache(ROOT, ALPHA)


def test_what_subscriptions_declare_is_charged_to_the_block_and_not_to_the_pass() -> None:
    world = following(ALPHA, PUBLIC)
    world.handler.weight = Weight(7_000, 900)
    world.publish(ALPHA, K[:1], b"new")
    world.system.initialize(2)
    world.seal()
    world.prune()
    assert world.system.meter.consumed == Weight.ZERO
    block = world.block(seal=False)
    assert world.system.meter.consumed == Weight(7_000, 900)
    reads = block.result.reads
    assert block.outcome.meter.consumed == block.result.consumed
    assert block.result.consumed.proof_size == sum(read.size for read in reads)


def test_a_block_that_panics_is_not_charged() -> None:
    world = following()
    world.handler.weight = Weight(7_000)
    world.system.initialize(2)
    world.seal()
    with pytest.raises(Exception, match="panicked"):
        world.block(seal=False, tamper=lambda inherent: world.inherent(()))
    assert world.system.meter.consumed == Weight.ZERO
