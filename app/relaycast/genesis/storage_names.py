"""Storage keys of a relay chain by the names that people know them under."""

from functools import cache

from relaycast_trie import CHILD_STORAGE_PREFIX
from relaycast_trie.hasher import twox_128

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

PLAIN = (b":relay_dispatch_queue_remaining_capacity", b":code", b":heappages", b":extrinsic_index")

PUBSUB = b"pubsub"
"""What the name of every publisher's child trie begins with, before the id as u32."""


def storage_name(key: bytes) -> str:
    """Return what ``key`` is called, empty when it is not known; what follows an item's name is left out."""
    if key.startswith(CHILD_STORAGE_PREFIX):
        name = key[len(CHILD_STORAGE_PREFIX) :].removeprefix(b"default:")
        if name.startswith(PUBSUB) and len(name) == len(PUBSUB) + 4:
            return f"child trie of publisher {int.from_bytes(name[len(PUBSUB) :], 'little')}"
        return "child trie"
    plain = next((known for known in PLAIN if key.startswith(known)), None)
    return _items().get(key[:32], "") if plain is None else plain.decode()


@cache
def _items() -> dict[bytes, str]:
    return {
        twox_128(pallet.encode()) + twox_128(item.encode()): f"{pallet}.{item}"
        for pallet, items in ITEMS.items()
        for item in items
    }
