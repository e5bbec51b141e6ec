"""What a subscriber and its relay chain must agree on before the first block, and which budget serves every key."""

from relaycast_pallets.broadcaster.config import BroadcasterConfig
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.policies import LARGEST_BRANCH_BYTES
from relaycast_pallets.subscriber.subscription import SubscriptionHandler, by_publisher, weigher_of


def ensure_values_fit(subscriber: SubscriberConfig, broadcaster: BroadcasterConfig) -> None:
    """Raise ``ValueError`` when the relay chain lets longer values be published than the subscriber reckons with."""
    expected, allowed = subscriber.max_value_length, broadcaster.max_value_length
    if expected < allowed:
        raise ValueError(
            f"max_value_length of the subscriber must be at least {allowed}, "
            f"the longest value that the relay chain lets be published, got {expected}"
        )


def ensure_callbacks_fit(subscriber: SubscriberConfig, handler: SubscriptionHandler) -> None:
    """Raise ``ValueError`` if ``handler`` declares a callback that weighs more than all callbacks of a block may.

    Such a key would be passed over in every round.
    """
    weigher, limit = weigher_of(handler), subscriber.callback_limit
    if weigher is None:
        return
    for publisher, keys in by_publisher(handler.subscriptions()[0]).items():
        for key in keys:
            declared = weigher.callback_weight(publisher, key)
            if declared.any_gt(limit):
                raise ValueError(
                    f"a callback for publisher {publisher}, key 0x{key.hex()} must weigh at most {limit}, "
                    f"the callback_limit of a block, got {declared}"
                )


def budget_for_any_key(config: SubscriberConfig, *, top_path_bytes: int) -> int:
    """Return the bytes that a block without messages needs so that no key is beyond its budget.

    That is the way to a child root of ``top_path_bytes``, then a new and an old path as deep as the configuration
    allows, all full branches, then the longest entry. With less, a deep key may be passed over in every round.
    """
    return top_path_bytes + 2 * config.max_trie_depth * LARGEST_BRANCH_BYTES + config.max_entry_bytes
