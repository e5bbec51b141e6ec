"""Storage keys of a relay chain by the names that people know them under."""

from functools import cache

from relaycast_pallets.broadcaster.storage import publisher_of
from relaycast_pallets.frame.typed_storage import storage_prefix
from relaycast_pallets.frame.well_known_keys import host_key
from relaycast_trie import CHILD_STORAGE_PREFIX, ChildInfo

ITEMS = {
    "Babe": ("AuthorVrfRandomness", "NextRandomness", "Randomness", "CurrentSlot", "EpochIndex", "Authorities"),
    "Configuration": ("ActiveConfig", "PendingConfigs"),
    "Dmp": ("DownwardMessageQueueHeads", "DownwardMessageQueues"),
    "Hrmp": ("HrmpIngressChannelsIndex", "HrmpEgressChannelsIndex", "HrmpChannels", "HrmpWatermarks"),
    "Paras": ("Heads", "UpgradeGoAheadSignal", "UpgradeRestrictionSignal", "Parachains", "ParaLifecycles"),
    "System": ("Account", "Number", "ParentHash", "BlockHash", "Digest", "Events", "LastRuntimeUpgrade"),
    "Timestamp": ("Now",),
    "Ump": ("RelayDispatchQueueSize",),
    "Balances": ("TotalIssuance", "InactiveIssuance"),
    "Session": ("Validators", "CurrentIndex"),
    "ParaInclusion": ("V1", "PendingAvailability"),
    "Broadcaster": ("RegisteredPublishers", "PublisherExists", "PublishedKeys"),
}
"""Pallets and their items, as metadata names them; those that relay proofs are about."""


def storage_name(key: bytes) -> str:
    """Return what ``key`` is called, empty when it is not known; what follows an item's name is left out."""
    if key.startswith(CHILD_STORAGE_PREFIX):
        publisher = publisher_of(ChildInfo.from_prefixed_key(key))
        return "child trie" if publisher is None else f"child trie of publisher {publisher}"
    return host_key(key) or _items().get(key[:32], "")


@cache
def _items() -> dict[bytes, str]:
    return {storage_prefix(pallet, item): f"{pallet}.{item}" for pallet, items in ITEMS.items() for item in items}
