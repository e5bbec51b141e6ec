"""The callbacks of one block: which of them fit, what they weigh, and how they are called.

The inherent is mandatory, so the time that callbacks take must be bounded. The callbacks of a block never declare more
than its limit: a changed value is read only if the meter has room for its callback. The pass ends at the first key
without room, and the next pass continues there. A callback for a deletion weighs the same as one with a value.
"""

from msgspec import Struct, field

from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.frame.system import System
from relaycast_pallets.subscriber.events import CallbackOverweight, DataDeleted, DataProcessed, EntryUndecodable
from relaycast_pallets.subscriber.processing_result import PublisherChange
from relaycast_pallets.subscriber.stop import Stop, StopCause
from relaycast_pallets.subscriber.subscription import (
    HearsDeletions,
    SubscribedKey,
    SubscriptionHandler,
    WeighsCallbacks,
    compute_ttl_state,
    weigher_of,
)
from relaycast_trie.exceptions import CodecError
from relaycast_xcm.primitives import BlockNumber, ParaId, Weight


class CallbackMeter:
    """Sum of the weights that ``handler`` declares for the callbacks of one pass: at most ``limit``.

    If a handler declares nothing, its callbacks weigh nothing.
    """

    __slots__ = ("_weigher", "consumed", "limit")

    def __init__(self, handler: SubscriptionHandler, limit: Weight) -> None:
        self._weigher = weigher_of(handler)
        self.limit = limit
        self.consumed = Weight.ZERO

    def admit(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        """Return the weight of one more callback, for ``consume``; raises ``Stop`` if it does not fit."""
        if self._weigher is None:
            return Weight.ZERO
        weight = self._weigher.callback_weight(publisher, key)
        if weight is not Weight.ZERO and not (self.consumed + weight).all_lte(self.limit):
            raise Stop(StopCause.CALLBACKS)
        return weight

    def consume(self, weight: Weight) -> None:
        """Count a callback that was admitted."""
        if weight is not Weight.ZERO:
            self.consumed += weight

    def give_back(self, weight: Weight) -> None:
        """Take back what was counted for callbacks that will not be made."""
        self.consumed -= weight

    def __repr__(self) -> str:
        return f"CallbackMeter(consumed={self.consumed}, limit={self.limit})"


class Delivered(Struct):
    """What one block delivered, for reports, in the order of the calls: values, and keys reported as deleted."""

    updates: list[tuple[ParaId, SubscribedKey, PublishedEntry]] = field(default_factory=list)
    weight: Weight = Weight.ZERO
    """Sum of the weights that callbacks returned; the block is charged with it, whatever they declared."""

    deletions: list[tuple[ParaId, SubscribedKey]] = field(default_factory=list)


def deliver(
    system: System, handler: SubscriptionHandler, delivered: Delivered, change: PublisherChange, now: BlockNumber
) -> None:
    """Call ``handler`` for every changed key of a publisher, then for every deleted one.

    Times to live count from relay block ``now``.
    """
    weigher = weigher_of(handler)
    for key, encoded in change.changed:
        try:
            entry = PublishedEntry.decode(encoded)
        except CodecError:
            system.deposit_event(EntryUndecodable(change.para_id, key))
            continue
        declared = _declared(weigher, change.para_id, key)
        ttl_state = compute_ttl_state(entry.ttl, entry.when_inserted, now)
        used = handler.on_data_updated(change.para_id, key, entry.value, ttl_state)
        delivered.updates.append((change.para_id, key, entry))
        system.deposit_event(DataProcessed(change.para_id, key, len(entry.value)))
        _charge(system, delivered, change.para_id, key, declared, used)
    if not change.deleted:
        return
    assert isinstance(handler, HearsDeletions), "set-up refuses handlers without on_data_deleted"
    for key in change.deleted:
        declared = _declared(weigher, change.para_id, key)
        used = handler.on_data_deleted(change.para_id, key)
        delivered.deletions.append((change.para_id, key))
        system.deposit_event(DataDeleted(change.para_id, key))
        _charge(system, delivered, change.para_id, key, declared, used)


def _declared(weigher: WeighsCallbacks | None, publisher: ParaId, key: SubscribedKey) -> Weight | None:
    return None if weigher is None else weigher.callback_weight(publisher, key)


def _charge(
    system: System, delivered: Delivered, publisher: ParaId, key: SubscribedKey, declared: Weight | None, used: Weight
) -> None:
    """Charge the weight that a callback used; deposits ``CallbackOverweight`` if it is more than ``declared``."""
    if used is not Weight.ZERO:
        delivered.weight += used
    if declared is not None and used.any_gt(declared):
        system.deposit_event(CallbackOverweight(publisher, key, declared, used))
