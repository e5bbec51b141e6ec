"""What a pass starts from: the publishers wanted, the keys, root and cache of each as they count now, and the order.

A subscription that changed since the last block changes what counts before anything is written. If keys were only
added, they have not been processed against any root. If keys were removed, root and cache no longer count at all.

Keys are processed in rounds. A pass that is cut short leaves a cursor at the first key that it did not process, and
the next pass begins there. A pass that begins at its cursor and cannot finish even that key moves the cursor to the
next key. A deep or long key thus costs the others one block a round, and has its turn again in the next round.

Messages may take so much of a block that a key does not fit which would fit without them, and whoever sends messages
chooses when. A pass that is *reduced by messages* moves the cursor on too, but the key is *deferred*. Passes that have
the whole budget continue from there, in a round of their own, until a pass of one round has covered the cursor of the
other.

INVARIANT: the round of passes with the whole budget leaves no key behind, whatever other passes do. It processes each
key, or the key does not fit the whole budget.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence, Set
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from relaycast_pallets.subscriber.policies import OrderPolicy
from relaycast_pallets.subscriber.storage import (
    DEALT_WITH_NONE,
    NO_CACHED_NODES,
    CachedNodes,
    Cursor,
    ProcessedRoots,
    SubscriberStorage,
)
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_xcm.primitives import ParaId, Weight


class SubscriptionChange(Enum):
    """How the keys wanted of a publisher differ from those of the block before."""

    NONE = "none"
    NEW = "new"
    ADDED = "added"
    REMOVED = "removed"


class PublisherView(Struct, frozen=True):
    """One publisher as it counts for the next pass."""

    para_id: ParaId
    subscribed: SubscribedPaths
    root: bytes | None
    processed_roots: ProcessedRoots | None
    """The root against which keys were last processed, if not ``root``; ``None`` when its last pass was finished."""

    change: SubscriptionChange
    cache: CachedNodes
    delivered: Callable[[], Set[SubscribedKey]] = frozenset
    """Returns the keys whose deletion is to be reported: none, unless a policy keeps a record of deliveries."""

    def processed_root(self, key: SubscribedKey) -> bytes | None:
        """Return the root against which ``key`` was last processed."""
        return self.root if self.processed_roots is None else self.processed_roots.get(key, self.root)


def publisher_views(
    storage: SubscriberStorage, wanted: Mapping[ParaId, SubscribedPaths], digests: Mapping[ParaId, bytes]
) -> dict[ParaId, PublisherView]:
    """Return the publishers as storage has them; ``digests`` are those of the keys ``wanted`` of each."""
    roots, before = storage.previous_roots(), storage.digests()
    return {
        para_id: _view(storage, para_id, subscribed, roots.get(para_id), (before.get(para_id), digests[para_id]))
        for para_id, subscribed in wanted.items()
    }


def _view(
    storage: SubscriberStorage,
    para_id: ParaId,
    subscribed: SubscribedPaths,
    root: bytes | None,
    digests: tuple[bytes | None, bytes],
) -> PublisherView:
    """Return one publisher; ``digests`` are those of the keys of the last block and of this one."""
    change = SubscriptionChange.NONE
    cache: CachedNodes = storage.cache_of(para_id)
    processed = storage.processed_roots(para_id, subscribed.keys)
    if digests[0] in (None, DEALT_WITH_NONE):
        change, root, processed = SubscriptionChange.NEW, None, None
    elif digests[0] != digests[1]:
        before = set(storage.subscribed_keys.get(para_id) or ())
        if before <= set(subscribed.keys):
            change = SubscriptionChange.ADDED
            processed = {**(processed or {}), **{key: None for key in subscribed.keys if key not in before}}
        else:
            change, root, processed, cache = SubscriptionChange.REMOVED, None, None, NO_CACHED_NODES
    return PublisherView(para_id, subscribed, root, processed, change, cache)


Views = Mapping[ParaId, PublisherView]

Work = list[tuple[PublisherView, int, int]]
"""Publishers with ranges of their keys, in the order in which a pass processes them."""


class Turn(NamedTuple):
    """How a pass ended, and where the next ones begin."""

    stopped_at: Cursor | None
    """The first key that was not processed, ``None`` when the pass is complete."""

    cursor: Cursor | None
    """Where the next pass begins, ``None`` for the beginning of the order."""

    deferred_key: Cursor | None = None
    """Where the next pass with the whole budget begins, if not at the cursor."""

    is_passed_over: bool = False
    """Whether the pass began at its cursor and stopped there."""


class FairCursor:
    """Where one pass over ``order`` begins, its ``work``, and where the next ones begin ``after`` it."""

    def __init__(
        self,
        views: Views,
        cursor: Cursor | None,
        deferred_key: Cursor | None,
        order: Sequence[ParaId],
        *,
        reduced_by_messages: bool,
    ) -> None:
        self._views = views
        self._reduced_by_messages = reduced_by_messages
        self._cursor, self._deferred = self._known(cursor), self._known(deferred_key)
        if self._cursor is None:
            self._cursor, self._deferred = self._deferred, None
        self.begin = self._cursor if reduced_by_messages or self._deferred is None else self._deferred
        self.work = self._rotated(order)

    def after(self, stopped_at: Cursor | None) -> Turn:
        """Return where the next passes begin after this one ended at ``stopped_at``."""
        if stopped_at is None:
            return Turn(None, None)
        begin, cursor, deferred = self.begin, self._cursor, self._deferred
        stuck = stopped_at == begin
        end = self._following() if stuck else stopped_at
        if deferred is None:
            deferred = begin if stuck and self._reduced_by_messages and end != begin else None
            return Turn(stopped_at, end, deferred, stuck)
        other = cursor if begin == deferred else deferred
        if other == end or self._is_before(other, stopped_at):
            return Turn(stopped_at, end, None, stuck)
        return Turn(stopped_at, cursor, end, stuck) if begin == deferred else Turn(stopped_at, end, deferred, stuck)

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


class SubscriberPlan(Struct, frozen=True):
    """All publishers wanted and not disabled, in the order of the pass."""

    views: dict[ParaId, PublisherView]
    turns: FairCursor
    cursor: Cursor | None
    """Where the last pass was cut short."""

    seed: bytes
    """What shuffled the publishers."""

    weight: Weight
    """What ``subscriptions()`` declared: the block is charged, the pass is not."""


def make_plan(
    storage: SubscriberStorage,
    views: dict[ParaId, PublisherView],
    order: OrderPolicy,
    seed: bytes,
    *,
    reduced_by_messages: bool,
    weight: Weight,
) -> SubscriberPlan:
    """Return the plan of the next pass; after one that was cut short the order stays until a pass is complete."""
    cursor, deferred_key, stored_seed = storage.relay_proof_processing_cursor.get(), None, None
    if cursor is not None:
        deferred_key, stored_seed = storage.deferred_key.get(), storage.publisher_order_seed.get()
    seed = seed if stored_seed is None else stored_seed
    ordered = order.arrange(views, seed)
    turns = FairCursor(views, cursor, deferred_key, ordered, reduced_by_messages=reduced_by_messages)
    return SubscriberPlan(views, turns, cursor, seed, weight)
