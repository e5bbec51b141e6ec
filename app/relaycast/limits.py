"""Limits of a reader, as ``rc.Network.subscriber`` takes them: checked before a chain is touched."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from relaycast.callback_time import allowed
from relaycast.feed import Feed, whole_number
from relaycast_pallets.broadcaster.config import BroadcasterConfig
from relaycast_pallets.subscriber.config import SubscriberConfig, ensure_cache_can_be_limited
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.subscription import SubscribedKey, by_publisher
from relaycast_pallets.subscriber.variants.subscription_limits import key_excess
from relaycast_xcm import ParaId
from relaycast_xcm.primitives import U32_MAX

MAY_BE_ZERO = ("max_cached_bytes",)


def limited_config(
    limits: Mapping[str, int | None],
    broadcaster: BroadcasterConfig,
    policies: Policies | None,
    *,
    callback_limit_us: int | None = None,
) -> SubscriberConfig:
    """Return the configuration with these limits; ``None`` leaves a default.

    Raises ``TypeError`` or ``ValueError`` for a limit that is no number, out of range, or at odds with the metering.
    """
    given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    for name, limit in given.items():
        least = 0 if name in MAY_BE_ZERO else 1
        if not least <= whole_number(limit, name) <= U32_MAX:
            raise ValueError(f"{name} is from {least} to {U32_MAX}, got {limit}")
    if callback_limit_us is not None:
        given["callback_limit"] = allowed(callback_limit_us)
    config = replace(SubscriberConfig(max_value_length=broadcaster.max_value_length), **given)
    ensure_cache_can_be_limited(config, policies or Policies())
    return config


def ensure_within(
    config: SubscriberConfig, already: Mapping[ParaId, list[SubscribedKey]], wanted: Iterable[Feed]
) -> None:
    """Raise ``ValueError`` if a reader of these keys exceeds a limit with more feeds."""
    before = by_publisher(list(already.items()))
    added = [(ParaId(feed.publisher), [SubscribedKey(feed.key)]) for feed in wanted]
    after = by_publisher([*already.items(), *added])
    if len(after) > max(config.max_publishers, len(before)):
        raise ValueError(f"a parachain reads at most {config.max_publishers} publishers")
    excess = key_excess(config, after, before=before)
    if excess is not None:
        raise ValueError(f"keys that a parachain reads: {excess}")
