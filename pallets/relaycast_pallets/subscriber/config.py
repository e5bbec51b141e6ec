"""The subscriber's constants, and the limits that a runtime may set beside them."""

from dataclasses import dataclass

from relaycast_pallets.broadcaster.config import BroadcasterConfig
from relaycast_pallets.subscriber.policies import LARGEST_BRANCH_BYTES, MAX_NODE_BYTES, Policies
from relaycast_pallets.subscriber.subscription import SubscriptionHandler, by_publisher, weigher_of
from relaycast_trie.scale import encode_compact
from relaycast_xcm.primitives import ROCKS_DB, U64_MAX, DbWeight, Weight, u32

CALLBACK_LIMIT = Weight(500_000_000_000, U64_MAX)
"""The most that the callbacks of a block may weigh: a quarter of its two seconds, and any proof size."""


@dataclass(frozen=True, slots=True)
class SubscriberConfig:
    """The pallet's constants; sizes in bytes, depth in nodes that have a hash."""

    max_trie_depth: u32 = 16
    max_publishers: u32 = 100
    max_value_length: u32 = 2_048
    db_weight: DbWeight = ROCKS_DB
    callback_limit: Weight = CALLBACK_LIMIT
    max_subscribed_keys: u32 | None = None
    """Keys of one publisher; this and the next two are unlimited by default, as in RFC-0160."""

    max_total_keys: u32 | None = None
    max_cached_bytes: u32 | None = None
    """Bytes of cached nodes, of all publishers together: see ``variants.cache_limit``."""

    @property
    def max_entry_bytes(self) -> int:
        """The longest encoded entry: a value of ``max_value_length``, its compact length, and eight bytes more."""
        return len(encode_compact(self.max_value_length)) + self.max_value_length + 8

    @property
    def min_weight(self) -> Weight:
        """One read of the largest node or entry: a pass may end incomplete only if this no longer fits.

        Its bytes are also the most that a single read is charged.
        """
        return Weight(self.db_weight.read, max(self.max_entry_bytes, MAX_NODE_BYTES))


def ensure_cache_can_be_limited(config: SubscriberConfig, policies: Policies) -> None:
    """Raise ``ValueError`` for a limit of cached bytes under a metering that removes nodes by their uses."""
    if config.max_cached_bytes is not None and policies.metering.charges_own_state:
        raise ValueError(
            f"max_cached_bytes = {config.max_cached_bytes} needs a metering that does not charge the own state, "
            f"got {type(policies.metering).__name__}: under it a node goes with its last key"
        )


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
