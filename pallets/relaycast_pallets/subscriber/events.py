"""The subscriber's events, each about one publisher.

An event's position in this file is its index in SCALE: new events are appended.
"""

from enum import Enum
from typing import Annotated, ClassVar

from relaycast_pallets.frame.system import Event
from relaycast_pallets.subscriber.storage import PALLET
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm.primitives import ParaId, Rust, Weight, u32

Key = Annotated[SubscribedKey, Rust("H256")]
"""A subscribed key in an event."""


class SubscriberEvent(Event, frozen=True):
    """An event of this pallet about one ``publisher``."""

    pallet: ClassVar[str] = PALLET
    publisher: ParaId


class DataProcessed(SubscriberEvent, frozen=True):
    """A new value was handed on; ``value_size`` in bytes."""

    key: Key
    value_size: u32


class EntryUndecodable(SubscriberEvent, frozen=True):
    """The relay chain holds something under ``key`` that is no ``PublishedEntry``; it was passed over."""

    key: Key


class KeyBeyondBudget(SubscriberEvent, frozen=True):
    """A pass began with ``key`` and could not finish it within its budget: the next one begins with the next key.

    ``bytes_read`` is what the pass read for it. The key stays pending until the next round.
    """

    key: Key
    bytes_read: u32


class PublisherRootCleared(SubscriberEvent, frozen=True):
    """The publisher's root was forgotten: all its keys will be dealt with anew."""


class DisableReason(Enum):
    """Why a publisher is disabled."""

    TrieDepthExceeded = 0
    """A path of its trie has more nodes than ``max_trie_depth``."""


class PublisherDisabled(SubscriberEvent, frozen=True):
    """The publisher is left out from now on, for this ``reason``."""

    reason: DisableReason


class PublisherEnabled(SubscriberEvent, frozen=True):
    """The publisher is looked at again."""


class PublisherCacheCleared(SubscriberEvent, frozen=True):
    """The publisher's cached nodes and root are gone."""


class KeysSubscribed(SubscriberEvent, frozen=True):
    """``count`` more keys of the publisher are followed from the next block on."""

    count: u32


class KeysUnsubscribed(SubscriberEvent, frozen=True):
    """``count`` keys of the publisher are followed no more from the next block on."""

    count: u32


class DataDeleted(SubscriberEvent, frozen=True):
    """The callback for ``key`` had no value: it was delivered before and is no longer published."""

    key: Key


class CallbackBeyondLimit(SubscriberEvent, frozen=True):
    """A pass began with ``key``, whose callback weighs more than a block allows: the next one begins with the next key.

    The key stays pending until the next round.
    """

    key: Key
    declared: Weight
    limit: Weight


class CallbackOverweight(SubscriberEvent, frozen=True):
    """The callback for ``key`` weighed more than was declared for it; the block is charged with what it ``used``."""

    key: Key
    declared: Weight
    used: Weight
