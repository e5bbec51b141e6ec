"""What a pass starts from: the publishers wanted, and of each the keys, the root and the cache as they count now.

A subscription that changed since the last block changes what counts before anything is written: keys that were only
added have not been dealt with against any root; after keys were removed, root and cache no longer count at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from relaycast_pallets.publisher_walk import SubscribedPaths
from relaycast_pallets.subscription import SubscribedKey
from relaycast_xcm.primitives import ParaId

Bases = dict[SubscribedKey, bytes | None]
"""The root against which each key was last dealt with, where that is not the publisher's stored root."""


class SubscriptionChange(Enum):
    """How the keys wanted of a publisher differ from those of the block before."""

    NONE = "none"
    NEW = "new"
    ADDED = "added"
    REMOVED = "removed"


class CacheReader(Protocol):
    """The stored cache of publishers."""

    def cached_node(self, para_id: ParaId, node_hash: bytes, /) -> bytes | None: ...

    def cached_nodes(self, para_id: ParaId, /) -> dict[bytes, bytes]: ...

    def shared_nodes(self, para_id: ParaId, /) -> Mapping[bytes, int]: ...


@dataclass(frozen=True, slots=True)
class PublisherView:
    """One publisher as it counts for the next pass; ``bases`` is ``None`` when its last pass was finished."""

    para_id: ParaId
    subscribed: SubscribedPaths
    root: bytes | None
    bases: Bases | None
    change: SubscriptionChange
    cache: CacheReader

    def cached_node(self, node_hash: bytes) -> bytes | None:
        if self.change is SubscriptionChange.REMOVED:
            return None
        return self.cache.cached_node(self.para_id, node_hash)

    def cached_nodes(self) -> dict[bytes, bytes]:
        return {} if self.change is SubscriptionChange.REMOVED else self.cache.cached_nodes(self.para_id)

    def shared_nodes(self) -> Mapping[bytes, int]:
        return {} if self.change is SubscriptionChange.REMOVED else self.cache.shared_nodes(self.para_id)


@dataclass(frozen=True, slots=True)
class SubscriberPlan:
    """All publishers wanted and not disabled, and where the last pass ended."""

    views: dict[ParaId, PublisherView]
    cursor: tuple[ParaId, SubscribedKey] | None
    seed: bytes | None = None
    """What shuffled the publishers when the last pass was cut short: their order stays until a pass is complete."""
