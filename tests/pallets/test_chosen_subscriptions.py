"""Calls that choose what a parachain follows: for a handler that lets them, and up to the limit of publishers."""

from collections.abc import Collection, Iterable
from dataclasses import replace

import pytest

from pallets.block_vectors import ALPHA, BETA, GAMMA
from pallets.subscriber_world import MOCK, K, Recorder, World
from relaycast_pallets import BadOrigin, Origin, SubscribedKey
from relaycast_pallets.subscriber.errors import SubscriptionsFixed, SubscriptionsFull
from relaycast_pallets.subscriber.events import KeysSubscribed, KeysUnsubscribed
from relaycast_xcm.primitives import ParaId

ROOT = Origin.root()


class Choosing(Recorder):
    """A handler whose subscriptions calls may change."""

    def subscribe(self, publisher: ParaId, keys: Iterable[SubscribedKey]) -> None:
        self.wanted[publisher] = [*self.wanted.get(publisher, ()), *keys]

    def unsubscribe(self, publisher: ParaId, keys: Collection[SubscribedKey]) -> None:
        self.wanted[publisher] = [key for key in self.wanted[publisher] if key not in keys]


def choosing() -> World:
    """Return a world with room for two publishers."""
    world = World(config=replace(MOCK, max_publishers=2))
    world.handler = world.subscriber.handler = Choosing()
    return world


def test_keys_are_followed_and_left_by_calls() -> None:
    world = choosing()
    world.subscriber.subscribe(ROOT, ALPHA, K[:2])
    world.subscriber.unsubscribe(ROOT, ALPHA, K[:1])
    assert world.handler.wanted == {ALPHA: K[1:2]}
    assert list(world.system.events) == [KeysSubscribed(ALPHA, 2), KeysUnsubscribed(ALPHA, 1)]


def test_there_is_room_for_as_many_publishers_as_the_limit_says() -> None:
    world = choosing()
    for publisher in (ALPHA, BETA, ALPHA):
        world.subscriber.subscribe(ROOT, publisher, K[:1])
    with pytest.raises(SubscriptionsFull):
        world.subscriber.subscribe(ROOT, GAMMA, K[:1])
    assert world.handler.wanted == {ALPHA: [K[0], K[0]], BETA: K[:1]}


def test_the_calls_are_for_root_and_for_handlers_that_let_them_choose() -> None:
    with pytest.raises(SubscriptionsFixed):
        World().subscriber.subscribe(ROOT, ALPHA, K[:1])
    with pytest.raises(BadOrigin):
        choosing().subscriber.subscribe(Origin.none(), ALPHA, K[:1])
