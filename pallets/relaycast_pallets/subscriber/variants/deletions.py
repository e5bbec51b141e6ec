"""Deletions that are reported to the handler, and the record of delivered keys that this needs.

A key is delivered if its last callback had a value. Each subscribed key has one bit, set by a callback with a value and
cleared by one without. A deletion is reported if the bit is set and the proof shows that the key is absent. So it is
reported exactly once, whatever happens to roots, node caches and interrupted passes.
"""

from collections.abc import Collection, Sequence, Set
from functools import cache, partial
from itertools import compress
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.subscriber.node_cache import DeliveryRecord
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.result import ProofProcessingResult, PublisherChange
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.exceptions import CodecError
from relaycast_xcm.primitives import ParaId

BITS = 8


class NotifyDeletions(Struct, frozen=True):
    """Each key that was delivered and is deleted, expired or gone with its whole trie is reported once."""

    notifies: ClassVar[bool] = True


class DeliveredKeys(DeliveryRecord):
    """The record of delivered keys, read when a key is found absent, and written by each block that delivers."""

    def view(self, view: PublisherView) -> PublisherView:
        """Return a publisher with its delivered keys, loaded on first use."""
        return replace(view, delivered=cache(partial(self._load, view)))

    def note(self, result: ProofProcessingResult) -> None:
        """Write the delivered keys.

        Keys that the subscription lost are dropped; keys that it gained have not been delivered.
        """
        changes = {change.para_id: change for change in result.changes}
        followed = self.storage.digests()
        for view in result.plan.views.values():
            change = changes.get(view.para_id)
            if view.change is not SubscriptionChange.NONE:
                self._put(view, change)
                if view.para_id in followed:
                    self.storage.subscribed_keys.insert(view.para_id, view.subscribed.keys)
            elif change is not None and (change.changed or change.deleted or not _is_known(view)):
                self._put(view, change)

    def forget(self, para_id: ParaId) -> None:
        """Forget a publisher that is processed anew, but for what was delivered: the handler still has the values."""
        self.storage.forget_publisher(para_id, keeps_delivered=True)

    def leave(self, para_id: ParaId) -> None:
        """Forget a publisher that is no longer subscribed to."""
        self.storage.forget_publisher(para_id)
        self.storage.delivered_keys.remove(para_id)

    def _load(self, view: PublisherView) -> Set[SubscribedKey]:
        storage, para_id, keys = self.storage, view.para_id, view.subscribed.keys
        before = keys if view.change is SubscriptionChange.NONE else storage.subscribed_keys.get(para_id) or ()
        return delivered_of(storage, para_id, before).intersection(keys)

    def _put(self, view: PublisherView, change: PublisherChange | None) -> None:
        """Write the item, or remove it where nothing is delivered and nothing is known of the publisher."""
        delivered = view.delivered()
        if change is not None and change.disabled_by is None:
            updated = {key for key, encoded in change.changed if _is_entry(encoded)}
            delivered = (delivered | updated) - set(change.deleted)
        stored = self.storage.delivered_keys.get(view.para_id)
        if delivered or _is_known_after(view, change):
            bitmap = bitmap_of(view.subscribed.keys, delivered)
            if bitmap != stored:
                self.storage.delivered_keys.insert(view.para_id, bitmap)
        elif stored is not None:
            self.storage.delivered_keys.remove(view.para_id)


def delivered_of(
    storage: SubscriberStorage, para_id: ParaId, keys: Sequence[SubscribedKey]
) -> frozenset[SubscribedKey]:
    """Return the sorted subscribed ``keys`` that are delivered.

    Without a record, no deletion was reported so far: keys that were processed count as delivered.
    """
    bitmap = storage.delivered_keys.get(para_id)
    if bitmap is not None:
        return keys_in(bitmap, keys)
    root, processed = storage.previous_roots().get(para_id), storage.processed_roots(para_id, keys) or {}
    return frozenset(key for key in keys if processed.get(key, root) is not None)


def migrate_delivered(storage: SubscriberStorage, *, notified_before: bool, notifies: bool) -> int:
    """Begin or end the record; return the number of items touched.

    Keys that were processed count as delivered from then on. Call it before roots are forgotten.
    """
    if notified_before == notifies:
        return 0
    if not notifies:
        items = [para_id for para_id, _ in storage.delivered_keys.items()]
        for para_id in items:
            storage.delivered_keys.remove(para_id)
        return len(items)
    followed = sorted(storage.digests())
    for para_id in followed:
        keys = storage.subscribed_keys.get(para_id) or ()
        delivered = delivered_of(storage, para_id, keys)
        if delivered:
            storage.delivered_keys.insert(para_id, bitmap_of(keys, delivered))
    return len(followed)


def bitmap_of(keys: Collection[SubscribedKey], delivered: Set[SubscribedKey]) -> bytes:
    """Return a bit for each of the sorted ``keys``, the first in the lowest bit of the first byte."""
    bits = sum(1 << index for index, key in enumerate(keys) if key in delivered)
    return bits.to_bytes(-(-len(keys) // BITS), "little")


def keys_in(bitmap: bytes, keys: Sequence[SubscribedKey]) -> frozenset[SubscribedKey]:
    """Return the sorted ``keys`` whose bit is set."""
    return frozenset(compress(keys, (byte >> bit & 1 for byte in bitmap for bit in range(BITS))))


def _is_known(view: PublisherView) -> bool:
    """Return whether keys were processed before: without an item, those count as delivered."""
    return view.root is not None or view.processed_roots is not None


def _is_known_after(view: PublisherView, change: PublisherChange | None) -> bool:
    if change is None or change.sweeping or change.disabled_by is not None:
        return _is_known(view)
    return change.root is not None


def _is_entry(encoded: bytes) -> bool:
    try:
        PublishedEntry.decode(encoded)
    except CodecError:
        return False
    return True
