"""Checks of a subscriber's limits: its subscriptions are within them, and its policies allow them."""

from collections.abc import Callable

from relaycast.refusal import BadInput
from relaycast.scenario.policy_choice import PolicyTable, policies_of
from relaycast.scenario.scenario import ParachainTable, Scenario, SubscriptionTable
from relaycast_pallets.subscriber.config import SubscriberConfig

KeyCount = Callable[[SubscriptionTable], int]
"""Number of keys that a subscription wants at a time."""


def check_limits(chain: ParachainTable, count_of: KeyCount, place: str) -> None:
    """Raise ``BadInput`` if a parachain reads more publishers or keys at a time than its limits allow."""
    most = chain.max_publishers if isinstance(chain.max_publishers, int) else SubscriberConfig().max_publishers
    starts = {it.starts_at for it in chain.subscribe}
    at_a_time = [[it for it in chain.subscribe if holds(it, block)] for block in starts]
    publishers = max(map(len, at_a_time), default=0)
    if publishers > most:
        limit = f"max_publishers = {most}" if isinstance(chain.max_publishers, int) else str(most)
        raise BadInput(f"{place}.subscribe", f"{publishers} publishers at a time", f"at most {limit}")
    if isinstance(chain.max_subscribed_keys, int):
        for number, subscription in enumerate(chain.subscribe):
            keys = count_of(subscription)
            if keys > chain.max_subscribed_keys:
                here = f"{place}.subscribe[{number}].keys"
                raise BadInput(here, f"{keys} keys", f"at most max_subscribed_keys = {chain.max_subscribed_keys}")
    if isinstance(chain.max_total_keys, int):
        total = max((sum(map(count_of, some)) for some in at_a_time), default=0)
        if total > chain.max_total_keys:
            got = f"{total} keys at a time"
            raise BadInput(f"{place}.subscribe", got, f"at most max_total_keys = {chain.max_total_keys}")


def check_cache_limits(scenario: Scenario, place: str) -> Scenario:
    """Return the scenario; raise ``BadInput`` if the metering rules out a limit of cached bytes."""
    for index, chain in enumerate(scenario.parachains):
        check_cache_limit(chain, scenario.policies, f"{place} at parachains[{index}]")
    return scenario


def check_cache_limit(chain: ParachainTable, policies: PolicyTable, place: str) -> None:
    """Raise ``BadInput`` if the metering rules out a limit of cached bytes."""
    if isinstance(chain.max_cached_bytes, int) and policies_of(policies).metering.charges_own_state:
        got = f"{chain.max_cached_bytes} with metering = {policies.metering!r}"
        raise BadInput(f"{place}.max_cached_bytes", got, "another metering: here a node goes with its last key")


def holds(subscription: SubscriptionTable, block: int) -> bool:
    """Return whether a subscription holds in a relay block."""
    return subscription.starts_at <= block and (subscription.stops_at is None or block < subscription.stops_at)
