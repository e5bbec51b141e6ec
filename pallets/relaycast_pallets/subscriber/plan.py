"""What a pass starts from: the publishers wanted, and of each the keys, the root and the cache as they count now.

A subscription that changed since the last block changes what counts before anything is written. If keys were only
added, they have not been processed against any root. If keys were removed, root and cache no longer count at all.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from msgspec import Struct

from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_pallets.subscriber.variants.deletions import NOTHING_DELIVERED, DeliveredKeys
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


Work = list[tuple[PublisherView, int, int]]
"""Publishers with ranges of their keys, in the order in which a pass deals with them."""


class Turn(NamedTuple):
    """How a pass ended, and where the next ones begin."""

    stopped_at: Cursor | None
    """The first key that was not dealt with, ``None`` when the pass is complete."""

    cursor: Cursor | None
    """Where the next pass begins, ``None`` for the beginning of the order."""

    owed: Cursor | None = None
    """Where the next pass with the whole budget begins, if not at the cursor."""

    is_passed_over: bool = False
    """Whether the pass began at its cursor and stopped there."""


class Turns:
    """The turns of one pass over ``order``, which is ``crowded`` when messages take a part of its budget."""

    def __init__(self, plan: SubscriberPlan, order: Sequence[ParaId], *, crowded: bool) -> None:
        self._views = plan.views
        self._crowded = crowded
        self._cursor, self._owed = self._known(plan.cursor), self._known(plan.owed)
        if self._cursor is None:
            self._cursor, self._owed = self._owed, None
        self.begin = self._cursor if crowded or self._owed is None else self._owed
        self.work = self._rotated(order)

    def after(self, stopped_at: Cursor | None) -> Turn:
        """Return where the next passes begin after this one ended at ``stopped_at``."""
        if stopped_at is None:
            return Turn(None, None)
        begin, cursor, owed = self.begin, self._cursor, self._owed
        stuck = stopped_at == begin
        end = self._following() if stuck else stopped_at
        if owed is None:
            owed = begin if stuck and self._crowded and end != begin else None
            return Turn(stopped_at, end, owed, stuck)
        other = cursor if begin == owed else owed
        if other == end or self._is_before(other, stopped_at):
            return Turn(stopped_at, end, None, stuck)
        return Turn(stopped_at, cursor, end, stuck) if begin == owed else Turn(stopped_at, end, owed, stuck)

    def _known(self, cursor: Cursor | None) -> Cursor | None:
        """Return ``cursor`` if its key is still wanted."""
        if cursor is None or cursor[0] not in self._views:
            return None
        keys = self._views[cursor[0]].subscribed.keys
        at = bisect_left(keys, cursor[1])
        return cursor if at < len(keys) and keys[at] == cursor[1] else None

    def _rotated(self, order: Sequence[ParaId]) -> Work:
        """Return all keys of all publishers, those from the beginning's key on first."""
        views = self._views
        work = [(views[para_id], 0, len(views[para_id].subscribed.keys)) for para_id in order]
        if self.begin is None:
            return work
        at = order.index(self.begin[0])
        view, _, count = work[at]
        key = bisect_left(view.subscribed.keys, self.begin[1])
        rotated = [(view, key, count), *work[at + 1 :], *work[:at]]
        return [*rotated, (view, 0, key)] if key else rotated

    def _following(self) -> Cursor:
        """Return the key after the one that the pass begins with; the same where there is no other."""
        view, low, high = self.work[0]
        if low + 1 < high:
            return view.para_id, view.subscribed.keys[low + 1]
        view, low, _ = self.work[1 % len(self.work)]
        return view.para_id, view.subscribed.keys[low]

    def _is_before(self, cursor: Cursor | None, stopped_at: Cursor) -> bool:
        return cursor is not None and self._place(cursor) < self._place(stopped_at)

    def _place(self, cursor: Cursor) -> tuple[int, SubscribedKey]:
        """Return where a key comes in this pass."""
        for place, (view, low, high) in enumerate(self.work):
            keys = view.subscribed.keys
            if view.para_id == cursor[0] and keys[low] <= cursor[1] <= keys[high - 1]:
                return place, cursor[1]
        raise AssertionError(f"{cursor} is not among the keys of this pass")
