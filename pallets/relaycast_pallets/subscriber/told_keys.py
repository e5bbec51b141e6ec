"""The record of delivered keys that a block writes under the policy ``told`` (``DeliveredKeys``)."""

from collections.abc import Set

from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.subscriber.delivered_keys import DeliveredKeys, bitmap_of
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.processing_result import ProofProcessingResult, PublisherChange
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.exceptions import CodecError
from relaycast_xcm.primitives import ParaId


def delivered_keys(
    storage: SubscriberStorage,
    para_id: ParaId,
    keys: tuple[SubscribedKey, ...],
    root: bytes | None,
    *,
    are_same: bool,
) -> DeliveredKeys:
    """Return a publisher's delivered ``keys``, given its stored root; ``are_same``: unchanged since the last block."""

    def load() -> Set[SubscribedKey]:
        before = keys if are_same else storage.subscribed_keys.get(para_id) or ()
        return storage.delivered(para_id, before, root).intersection(keys)

    return DeliveredKeys(load)


def migrate_delivered(storage: SubscriberStorage, *, told_before: bool, tells: bool) -> int:
    """Migrate storage to or from the policy ``told``; return the number of items touched.

    Keys that were dealt with count as delivered from then on. Call it before roots are forgotten.
    """
    if told_before == tells:
        return 0
    if not tells:
        items = [para_id for para_id, _ in storage.delivered_keys.items()]
        for para_id in items:
            storage.delivered_keys.remove(para_id)
        return len(items)
    followed, roots = sorted(storage.digests()), storage.previous_roots()
    for para_id in followed:
        keys = storage.subscribed_keys.get(para_id) or ()
        delivered = storage.delivered(para_id, keys, roots.get(para_id))
        if delivered:
            storage.delivered_keys.insert(para_id, bitmap_of(keys, delivered))
    return len(followed)


def note_told(storage: SubscriberStorage, result: ProofProcessingResult) -> None:
    """Write the delivered keys after the callbacks of a pass, before the rest of the pass is written.

    Keys that the subscription lost are dropped; keys that it gained have not been delivered.
    """
    changes = {change.para_id: change for change in result.changes}
    followed = storage.digests()
    for view in result.plan.views.values():
        change = changes.get(view.para_id)
        if view.change is not SubscriptionChange.NONE:
            _put(storage, view, change)
            if view.para_id in followed:
                storage.subscribed_keys.insert(view.para_id, view.subscribed.keys)
        elif change is not None and (change.changed or change.deleted or not _is_known(view)):
            _put(storage, view, change)


def _put(storage: SubscriberStorage, view: PublisherView, change: PublisherChange | None) -> None:
    """Write the item, or remove it where nothing is delivered and nothing is known of the publisher."""
    delivered: Set[SubscribedKey] = view.delivered.keys
    if change is not None and change.disabled_by is None:
        updated = {key for key, encoded in change.changed if _is_entry(encoded)}
        delivered = (delivered | updated) - set(change.deleted)
    stored = storage.delivered_keys.get(view.para_id)
    if delivered or _is_known_after(view, change):
        bitmap = bitmap_of(view.subscribed.keys, delivered)
        if bitmap != stored:
            storage.delivered_keys.insert(view.para_id, bitmap)
    elif stored is not None:
        storage.delivered_keys.remove(view.para_id)


def _is_known(view: PublisherView) -> bool:
    """Return whether keys were dealt with before: without an item, those count as delivered."""
    return view.root is not None or view.bases is not None


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
