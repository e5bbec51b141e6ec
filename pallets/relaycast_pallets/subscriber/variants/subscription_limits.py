"""Limits of the publishers and keys that a parachain subscribes to.

Law: a limit is checked when a subscription is made or grows: at chain set-up, and in the call that adds. Blocks do not
check it, so lowering a limit later makes no block panic; subscriptions above the limit stay and may shrink.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.subscription import (
    SubscribedKey,
    SubscriptionHandler,
    Subscriptions,
    by_publisher,
)
from relaycast_xcm.primitives import ParaId

Wanted = Mapping[ParaId, Collection[SubscribedKey]]
"""The wanted keys by publisher, each once."""


class KeyExcess(NamedTuple):
    """More ``keys`` than the limit called ``name`` allows, of all publishers if ``publisher`` is ``None``."""

    name: str
    limit: int
    keys: int
    publisher: ParaId | None = None

    def __str__(self) -> str:
        whose = "in all" if self.publisher is None else f"of publisher {self.publisher}"
        return f"at most {self.name} = {self.limit}, got {self.keys} {whose}"


def key_excess(limits: SubscriberConfig, wanted: Wanted, *, before: Wanted | None = None) -> KeyExcess | None:
    """Return the first limit that ``wanted`` exceeds; a number of keys that is not above ``before`` exceeds none."""
    known = before or {}
    most, total = limits.max_subscribed_keys, limits.max_total_keys
    if most is not None:
        for publisher, keys in wanted.items():
            if len(keys) > max(most, len(known.get(publisher, ()))):
                return KeyExcess("max_subscribed_keys", most, len(keys), publisher)
    if total is not None:
        count = sum(map(len, wanted.values()))
        if count > max(total, sum(map(len, known.values()))):
            return KeyExcess("max_total_keys", total, count)
    return None


def excess_with(
    limits: SubscriberConfig, subscriptions: Subscriptions, publisher: ParaId, keys: Iterable[SubscribedKey]
) -> KeyExcess | None:
    """Return the first limit that ``subscriptions`` exceed once ``keys`` of a publisher are added, if any is new."""
    if limits.max_subscribed_keys is None and limits.max_total_keys is None:
        return None
    before = by_publisher(subscriptions)
    after: Wanted = {**before, publisher: {*before.get(publisher, ()), *keys}}
    return key_excess(limits, after, before=before)


def has_room_for(max_publishers: int, subscriptions: Subscriptions, publisher: ParaId) -> bool:
    """Return whether ``publisher`` is already subscribed, or fits within the limit."""
    wanted = by_publisher(subscriptions)
    return publisher in wanted or len(wanted) < max_publishers


def ensure_subscriptions_fit(config: SubscriberConfig, handler: SubscriptionHandler) -> None:
    """Raise ``ValueError`` if a handler starts with more publishers or keys than the limits allow."""
    wanted = by_publisher(handler.subscriptions()[0])
    if len(wanted) > config.max_publishers:
        raise ValueError(f"at most {config.max_publishers} publishers, got {len(wanted)} in subscriptions()")
    excess = key_excess(config, wanted)
    if excess is not None:
        raise ValueError(f"subscriptions(): {excess}")
