"""What the broadcaster tells: its events, with the fields of the public draft.

``DataPublished`` names the key on top of that, so that whoever follows the events need not read the state again.
"""

from typing import ClassVar

from relaycast_pallets.frame.system import AccountId, Event
from relaycast_xcm.primitives import Bytes32, ParaId, u32


class BroadcasterEvent(Event, frozen=True):
    """An event of this pallet."""

    pallet: ClassVar[str] = "Broadcaster"


class DataPublished(BroadcasterEvent, frozen=True):
    """``publisher`` wrote a value under ``key``."""

    items_count: ClassVar[int] = 1
    """A field of the draft's event, from the time when one instruction carried many items."""

    publisher: ParaId
    key: Bytes32


class PublisherRegistered(BroadcasterEvent, frozen=True):
    """``para_id`` may publish; ``manager`` paid its deposit."""

    para_id: ParaId
    manager: AccountId


class PublisherDeregistered(BroadcasterEvent, frozen=True):
    """``para_id`` is no longer a publisher, and its data is gone."""

    para_id: ParaId


class DataCleanedUp(BroadcasterEvent, frozen=True):
    """Everything that ``para_id`` had published was removed."""

    para_id: ParaId


class KeyExpired(BroadcasterEvent, frozen=True):
    """The time to live of ``key`` ran out, and it was removed."""

    publisher: ParaId
    key: Bytes32


class KeysDeleted(BroadcasterEvent, frozen=True):
    """``publisher``, or its manager, removed ``count`` keys that were there."""

    publisher: ParaId
    count: u32


class KeysForcedDeleted(BroadcasterEvent, frozen=True):
    """Governance removed ``count`` keys of ``publisher`` that were there."""

    publisher: ParaId
    count: u32
