"""What a pass starts from: the publishers wanted, and of each the keys, the root and the cache as they count now.

A subscription that changed since the last block changes what counts before anything is written. If keys were only
added, they have not been processed against any root. If keys were removed, root and cache no longer count at all.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from msgspec import Struct

from relaycast_pallets.subscriber.delivered_keys import NOTHING_DELIVERED, DeliveredKeys
from relaycast_pallets.subscriber.publisher_walk import SubscribedPaths
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm.primitives import ParaId, Weight

Cursor = tuple[ParaId, SubscribedKey]
"""A key at which a pass begins."""

Bases = dict[SubscribedKey, bytes | None]
"""The root against which each key was last dealt with, where that is not the publisher's stored root."""


class SubscriptionChange(Enum):
    """How the keys wanted of a publisher differ from those of the block before."""

    NONE = "none"
    NEW = "new"
    ADDED = "added"
    REMOVED = "removed"


class CachedNodes(Protocol):
    """The stored node cache of one publisher."""

    def get(self, node_hash: bytes, /) -> bytes | None: ...

    def all(self) -> dict[bytes, bytes]: ...

    def shared(self) -> Mapping[bytes, int]: ...


class _Nothing:
    """A cache that no longer counts."""

    def get(self, _node_hash: bytes, /) -> bytes | None:
        return None

    def all(self) -> dict[bytes, bytes]:
        return {}

    def shared(self) -> Mapping[bytes, int]:
        return {}


NO_CACHED_NODES: CachedNodes = _Nothing()


class PublisherView(Struct, frozen=True):
    """One publisher as it counts for the next pass; ``bases`` is ``None`` when its last pass was finished."""

    para_id: ParaId
    subscribed: SubscribedPaths
    root: bytes | None
    bases: Bases | None
    change: SubscriptionChange
    cache: CachedNodes
    delivered: DeliveredKeys = NOTHING_DELIVERED
    """Keys whose deletion is to be told; empty under ``silent``."""

    def cached_node(self, node_hash: bytes) -> bytes | None:
        return self.cache.get(node_hash)

    def cached_nodes(self) -> dict[bytes, bytes]:
        return self.cache.all()

    def shared_nodes(self) -> Mapping[bytes, int]:
        return self.cache.shared()


class SubscriberPlan(Struct, frozen=True):
    """All publishers wanted and not disabled, and where the last pass ended."""

    views: dict[ParaId, PublisherView]
    cursor: Cursor | None
    seed: bytes | None = None
    """What shuffled the publishers when the last pass was cut short: their order stays until a pass is complete."""

    owed: Cursor | None = None
    """Where passes with the whole budget begin, if not at the cursor: see ``turns``."""

    weight: Weight = Weight.ZERO
    """What ``subscriptions()`` declared: the block is charged, the pass is not."""
