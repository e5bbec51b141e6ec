"""Publishers that leave the subscriptions: nothing of them is remembered but their nodes, and they come back as new."""

import pytest

from pallets.subscriber_invariants import ChangesTold, all_hold, cache_is_exact, nothing_is_lost
from pallets.subscriber_world import ALPHA, BETA, MOCK, PUBLIC, K, World, following, keys, world_of
from relaycast_pallets import NoCachedNodes, Origin, Policies
from relaycast_pallets.subscriber.plan import SubscriptionChange
from relaycast_pallets.subscriber.policies import NoCache
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_xcm.primitives import ParaId, Weight

ROOT = Origin.root()


def remembered(storage: SubscriberStorage, publisher: ParaId) -> list[bool]:
    """Return whether root, digest, keys and an interrupted pass of a publisher are remembered."""
    return [
        publisher in storage.previous_roots(),
        publisher in storage.digests(),
        publisher in storage.subscribed_keys,
        publisher in storage.unfinished_publishers,
    ]


def test_current_values_are_delivered_when_a_publisher_comes_back() -> None:
    """Nothing was published meanwhile: what the subscriber once heard counts for nothing."""
    world = following(ALPHA, BETA)
    del world.handler.wanted[ALPHA]
    assert world.block().calls == ()
    world.subscribe(ALPHA, K[:3])
    assert world.subscriber.plan().views[ALPHA].change is SubscriptionChange.NEW
    block = world.block()
    assert block.called == [(ALPHA, wanted) for wanted in K[:3]]
    nothing_is_lost(world)
    cache_is_exact(world)


def test_nothing_is_remembered_of_a_publisher_that_left_but_its_nodes() -> None:
    world = following(ALPHA, BETA)
    cached = world.cached(ALPHA)
    assert remembered(world.storage, ALPHA) == [True, True, True, False]
    world.subscribe(ALPHA, [])
    world.block()
    assert remembered(world.storage, ALPHA) == [False] * 4
    assert remembered(world.storage, BETA) == [True, True, True, False]
    assert world.cached(ALPHA) == cached != {}


@pytest.mark.parametrize("pubsub_bytes", [600, 800, 1_200])
def test_a_publisher_that_leaves_during_an_interrupted_pass_is_served_whole_when_it_comes_back(
    pubsub_bytes: int,
) -> None:
    """Neither the keys that were dealt with nor the cursor inside them outlive the subscription."""
    world = world_of(ALPHA, size=300)
    wanted = keys(10, prefix=str(ALPHA))
    first = world.block(pubsub_bytes)
    assert first.result.cursor is not None
    assert remembered(world.storage, ALPHA)[1:] == [True, True, True]
    world.subscribe(ALPHA, [])
    world.block(pubsub_bytes)
    assert remembered(world.storage, ALPHA) == [False] * 4
    assert not world.storage.relay_proof_processing_cursor.exists()
    world.subscribe(ALPHA, wanted)
    told = ChangesTold()
    block = world.block()
    all_hold(world, block, told)
    assert block.called == [(ALPHA, each) for each in wanted]


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
    world.block()
    assert remembered(world.storage, ALPHA) == [True, True, True, False]
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
