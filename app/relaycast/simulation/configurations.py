"""The configurations of a scenario's chains: constants and limits of their pallets."""

from msgspec import UnsetType

from relaycast.scenario.scenario import ParachainTable, Scenario
from relaycast_pallets.broadcaster.config import REGISTRATIONS, BroadcasterConfig
from relaycast_pallets.subscriber.config import SubscriberConfig


def broadcaster_config(scenario: Scenario) -> BroadcasterConfig:
    """Return the limits of the relay chain."""
    relay = scenario.relaychain
    return BroadcasterConfig(
        name=scenario.name,
        source="scenario",
        max_publishers=relay.max_publishers,
        max_stored_keys=relay.max_stored_keys,
        max_value_length=relay.max_value_bytes,
        max_total_storage_size=relay.max_total_bytes,
        max_publishes_per_block=_given(relay.max_publishes_per_block),
        registration=REGISTRATIONS[relay.registration],
    )


def subscriber_config(chain: ParachainTable, scenario: Scenario) -> SubscriberConfig:
    """Return the limits of one parachain."""
    return SubscriberConfig(
        max_trie_depth=chain.max_trie_depth,
        max_publishers=_given(chain.max_publishers) or SubscriberConfig().max_publishers,
        max_value_length=scenario.relaychain.max_value_bytes,
        max_subscribed_keys=_given(chain.max_subscribed_keys),
        max_total_keys=_given(chain.max_total_keys),
        max_cached_bytes=_given(chain.max_cached_bytes),
        callback_limit=chain.callback_limit,
    )


def _given(limit: int | UnsetType) -> int | None:
    return limit if isinstance(limit, int) else None
