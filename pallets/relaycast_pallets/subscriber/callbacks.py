"""The callbacks of one block: which of them fit, what they weigh, and what they are told.

The inherent is mandatory, so the time that callbacks take must have a bound. A handler that declares what a callback
weighs is never called for more than the limit of a block: before a changed value is read, the meter has to have room
for its callback. The pass ends at the first key for which it has not, and the next one goes on there. A callback that
tells of a deletion weighs what one with a value does.
"""

from dataclasses import dataclass, field

from relaycast_pallets.broadcaster.published_entry import PublishedEntry
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
    """What the callbacks of one pass weigh together, as ``handler`` declares it: at most ``limit``.

    A handler that declares nothing has callbacks of no weight.
    """

    __slots__ = ("_weigher", "consumed", "limit")

    def __init__(self, handler: SubscriptionHandler, limit: Weight) -> None:
        self._weigher = weigher_of(handler)
        self.limit = limit
        self.consumed = Weight.ZERO

    def admit(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        """Return what one more callback weighs, for ``consume``; raises ``Stop`` where the limit has no room for it."""
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


@dataclass(slots=True)
class Delivered:
    """What one block handed on, for reports, in the order of the calls: values, and keys that were told as deleted."""

    updates: list[tuple[ParaId, SubscribedKey, PublishedEntry]] = field(default_factory=list)
    weight: Weight = Weight.ZERO
    """What the callbacks returned; the block is charged with it, whatever they declared."""

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
    assert isinstance(handler, HearsDeletions), "a handler that is not told is refused at set-up"
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
    """Count what a callback weighed, and tell where that is more than was ``declared``."""
    if used is not Weight.ZERO:
        delivered.weight += used
    if declared is not None and used.any_gt(declared):
        system.deposit_event(CallbackOverweight(publisher, key, declared, used))
