"""``max_subscribed_keys`` and ``max_total_keys``: limits of the followed keys, of one publisher and in all."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from pallets.block_vectors import ALPHA, BETA, GAMMA, key, keys
from pallets.subscriber_world import MOCK, K, Recorder, World
from pallets.test_chosen_subscriptions import ROOT, Choosing
from relaycast_pallets import Policies, SubscribedKey, Subscriber, SubscriberConfig
from relaycast_pallets.subscriber import pallet as subscriber_pallet
from relaycast_pallets.subscriber.errors import SubscriptionsFull, TooManySubscribedKeys
from relaycast_pallets.subscriber.subscription import Subscriptions, by_publisher
from relaycast_pallets.subscriber.variants import subscription_limits
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_pallets.subscriber.variants.subscription_limits import (
    KeyExcess,
    Wanted,
    excess_with,
    key_excess,
)
from relaycast_xcm.primitives import ParaId

LIMITED = replace(MOCK, max_subscribed_keys=3, max_total_keys=5)


def choosing(config: SubscriberConfig = LIMITED) -> World:
    """Return a world in which calls choose what is followed."""
    world = World(config=config)
    world.handler = world.subscriber.handler = Choosing()
    return world


def refuses(world: World, publisher: ParaId, keys: Sequence[bytes], excess: KeyExcess) -> None:
    """Expect the call to be refused and to leave everything as it was."""
    before, wanted = world.everything(), {para: list(keys) for para, keys in world.handler.wanted.items()}
    with pytest.raises(TooManySubscribedKeys) as refusal:
        world.subscriber.subscribe(ROOT, publisher, keys)  # type: ignore[arg-type]
    assert refusal.value.excess == excess
    assert (world.everything(), world.handler.wanted) == (before, wanted)


def test_a_publisher_is_followed_for_as_many_keys_as_the_limit_says() -> None:
    world = choosing()
    world.subscriber.subscribe(ROOT, ALPHA, K[:3])
    refuses(world, ALPHA, [K[3]], KeyExcess("max_subscribed_keys", 3, 4, ALPHA))
    refuses(world, BETA, K[:4], KeyExcess("max_subscribed_keys", 3, 4, BETA))
    world.subscriber.unsubscribe(ROOT, ALPHA, K[:1])
    world.subscriber.subscribe(ROOT, ALPHA, [K[3]])
    assert world.handler.wanted == {ALPHA: K[1:4]}


def test_all_publishers_together_are_followed_for_as_many_keys_as_the_limit_says() -> None:
    world = choosing()
    world.subscriber.subscribe(ROOT, ALPHA, K[:3])
    world.subscriber.subscribe(ROOT, BETA, K[:2])
    refuses(world, BETA, [K[2]], KeyExcess("max_total_keys", 5, 6))
    refuses(world, GAMMA, [K[2]], KeyExcess("max_total_keys", 5, 6))


def test_a_key_that_is_followed_already_counts_once() -> None:
    world = choosing()
    world.subscriber.subscribe(ROOT, ALPHA, [*K[:3], *K[:3]])
    world.subscriber.subscribe(ROOT, ALPHA, K[:3])
    assert len(world.subscriber.relay_keys().keys) == 3


def test_what_does_not_grow_is_allowed_above_a_lowered_limit() -> None:
    world = choosing()
    world.subscriber.subscribe(ROOT, ALPHA, K[:3])
    world.subscriber.config = replace(LIMITED, max_subscribed_keys=2, max_total_keys=2)
    world.subscriber.subscribe(ROOT, ALPHA, K[:3])
    refuses(world, ALPHA, [K[3]], KeyExcess("max_subscribed_keys", 2, 4, ALPHA))


def test_a_chain_goes_on_above_a_lowered_limit_and_only_shrinks() -> None:
    world = World(config=LIMITED)
    for publisher, wanted in ((ALPHA, K[:3]), (BETA, K[:2])):
        world.subscribe(publisher, wanted)
        world.publish(publisher, K)
    world.block()
    world.subscriber.config = replace(LIMITED, max_subscribed_keys=1, max_total_keys=2)
    world.subscribe(BETA, K[1:3])  # as many others
    assert len(world.block().called) == 2
    world.subscribe(ALPHA, K[:2])
    world.block()


def chosen_above(policies: Policies | None = None, *, count: int = 3) -> World:
    """Return a world in which calls chose ``count`` keys of two publishers, under limits that were lowered since."""
    world = World(config=MOCK, policies=policies)
    world.handler = world.subscriber.handler = Choosing()
    for publisher in (ALPHA, BETA):
        world.subscriber.subscribe(ROOT, publisher, keys(count))
        world.publish(publisher, keys(count))
    world.block()
    world.state.commit()
    world.upgrade(max_publishers=1, max_subscribed_keys=1, max_total_keys=1)
    return world


def cleared(world: World) -> None:
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)


def sweeping(world: World) -> None:
    """Let the cache of ALPHA go over several blocks, for keys were removed."""
    world.subscriber.unsubscribe(ROOT, ALPHA, keys(60)[:1])
    world.block(static_bytes(world) + 2_000)
    assert world.storage.digests().keys() == {BETA}, "the sweep takes more than one block"


def static_bytes(world: World) -> int:
    return sum(len(world.relay_nodes()[node_hash]) for node_hash in world.static_nodes())


def not_recorded(world: World) -> None:
    """Subscribe and lower the limit before any block has recorded the keys."""
    world.upgrade(max_subscribed_keys=None, max_total_keys=None)
    world.subscriber.subscribe(ROOT, ALPHA, keys(80))
    world.upgrade(max_subscribed_keys=1, max_total_keys=1)


@pytest.mark.parametrize("history", [cleared, not_recorded, sweeping])
def test_what_is_subscribed_above_a_lowered_limit_stays_in_every_history(history: Callable[[World], None]) -> None:
    count = 60 if history is sweeping else 3
    world = chosen_above(Policies(metering=MeterOwnState()) if history is sweeping else None, count=count)
    history(world)
    world.subscriber.unsubscribe(ROOT, ALPHA, keys(count)[1:2])
    reloaded = Subscriber(world.system, Choosing(), MOCK, policies=world.subscriber.policies)
    reloaded.handler, reloaded.config = world.handler, world.subscriber.config
    assert reloaded.relay_keys() == world.subscriber.relay_keys(), "what a block asks for follows from state"
    world.publish(ALPHA, keys(80), b"\x2b")
    for _ in range(60):
        world.block(static_bytes(world) + 4_000)
    left = world.handler.wanted[ALPHA]
    assert {key: world.handler.values[ALPHA, key] for key in left} == dict.fromkeys(left, b"\x2b")
    with pytest.raises(TooManySubscribedKeys):
        world.subscriber.subscribe(ROOT, ALPHA, [key("one more")])


def test_a_publisher_above_a_lowered_limit_may_still_be_read_differently() -> None:
    world = chosen_above()
    world.upgrade(max_subscribed_keys=None, max_total_keys=None)
    world.subscriber.subscribe(ROOT, ALPHA, [key("one more")])
    with pytest.raises(SubscriptionsFull):
        world.subscriber.subscribe(ROOT, GAMMA, [key("one more")])


def test_a_limit_of_publishers_comes_first() -> None:
    world = choosing(replace(LIMITED, max_publishers=1))
    world.subscriber.subscribe(ROOT, ALPHA, K[:3])
    with pytest.raises(SubscriptionsFull):
        world.subscriber.subscribe(ROOT, BETA, K[:4])


def test_keys_are_not_limited_by_default() -> None:
    world = choosing(MOCK)
    for publisher in (ALPHA, BETA):
        world.subscriber.subscribe(ROOT, publisher, K)
    assert world.handler.wanted == {ALPHA: K, BETA: K}


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({ALPHA: K[:4]}, r"subscriptions\(\): at most max_subscribed_keys = 3, got 4 of publisher 1000"),
        ({ALPHA: K[:3], BETA: K[:3]}, r"subscriptions\(\): at most max_total_keys = 5, got 6 in all"),
    ],
)
def test_code_that_subscribes_to_more_is_told_the_limit_and_the_number(
    wanted: dict[ParaId, list[bytes]], told: str
) -> None:
    world = World()
    with pytest.raises(ValueError, match=told):
        Subscriber(world.system, Recorder(wanted), LIMITED)  # type: ignore[arg-type]


def test_a_refusal_says_limit_and_number() -> None:
    told = str(TooManySubscribedKeys(KeyExcess("max_total_keys", 5, 6)))
    assert told == "subscribed keys: at most max_total_keys = 5, got 6 in all"


def without_the_total(patch: pytest.MonkeyPatch) -> None:
    """Only one publisher's keys are limited."""

    def each(
        limits: SubscriberConfig, subscriptions: Subscriptions, publisher: ParaId, keys: list[SubscribedKey]
    ) -> KeyExcess | None:
        return excess_with(replace(limits, max_total_keys=None), subscriptions, publisher, keys)

    patch.setattr(subscriber_pallet, "excess_with", each)


def with_repeated_keys(patch: pytest.MonkeyPatch) -> None:
    """A key that is followed already counts again."""

    def again(
        limits: SubscriberConfig, subscriptions: Subscriptions, publisher: ParaId, keys: list[SubscribedKey]
    ) -> KeyExcess | None:
        before = by_publisher(subscriptions)
        after: Wanted = {**before, publisher: [*before.get(publisher, ()), *keys]}
        return key_excess(limits, after, before=before)

    patch.setattr(subscriber_pallet, "excess_with", again)


def of_the_call_alone(patch: pytest.MonkeyPatch) -> None:
    """Keys that are followed already do not count."""

    def alone(
        limits: SubscriberConfig, _: Subscriptions, publisher: ParaId, keys: list[SubscribedKey]
    ) -> KeyExcess | None:
        return excess_with(limits, [], publisher, keys)

    patch.setattr(subscriber_pallet, "excess_with", alone)


def after_the_change(patch: pytest.MonkeyPatch) -> None:
    """The limit is checked once the keys are there."""

    def late(self: subscriber_pallet.Subscriber, _: object, publisher: ParaId, keys: list[bytes]) -> None:
        self.handler.subscribe(publisher, keys)  # type: ignore[attr-defined]
        excess = subscription_limits.key_excess(self.config, self.handler.wanted)  # type: ignore[attr-defined]
        if excess is not None:
            raise TooManySubscribedKeys(excess)

    patch.setattr(subscriber_pallet.Subscriber, "subscribe", late)


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (without_the_total, test_all_publishers_together_are_followed_for_as_many_keys_as_the_limit_says),
        (with_repeated_keys, test_a_key_that_is_followed_already_counts_once),
        (of_the_call_alone, test_a_publisher_is_followed_for_as_many_keys_as_the_limit_says),
        (after_the_change, test_a_publisher_is_followed_for_as_many_keys_as_the_limit_says),
    ],
)
def test_a_wrong_limit_is_found_out(
    mutant: Callable[[pytest.MonkeyPatch], None], law: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, TooManySubscribedKeys, pytest.fail.Exception)):
        law()
