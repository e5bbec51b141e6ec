"""What the broadcaster tells: its events, with the fields of the public draft.

``DataPublished`` names the key on top of that, so that whoever follows the events need not read the state again.
"""

from dataclasses import dataclass
from typing import ClassVar

from relaycast_pallets.frame.system import AccountId, Event
from relaycast_xcm.primitives import Bytes32, ParaId, u32


@dataclass(frozen=True, slots=True)
class DataPublished(Event):
    """``publisher`` wrote a value under ``key``."""

    pallet: ClassVar[str] = "Broadcaster"
    items_count: ClassVar[int] = 1
    """A field of the draft's event, from the time when one instruction carried many items."""

    publisher: ParaId
    key: Bytes32


@dataclass(frozen=True, slots=True)
class PublisherRegistered(Event):
    """``para_id`` may publish; ``manager`` paid its deposit."""

    pallet: ClassVar[str] = "Broadcaster"
    para_id: ParaId
    manager: AccountId


@dataclass(frozen=True, slots=True)
class PublisherDeregistered(Event):
    """``para_id`` is no longer a publisher, and its data is gone."""

    pallet: ClassVar[str] = "Broadcaster"
    para_id: ParaId


@dataclass(frozen=True, slots=True)
class DataCleanedUp(Event):
    """Everything that ``para_id`` had published was removed."""

    pallet: ClassVar[str] = "Broadcaster"
    para_id: ParaId


@dataclass(frozen=True, slots=True)
class KeyExpired(Event):
    """The time to live of ``key`` ran out, and it was removed."""

    pallet: ClassVar[str] = "Broadcaster"
    publisher: ParaId
    key: Bytes32


@dataclass(frozen=True, slots=True)
class KeysDeleted(Event):
    """``publisher``, or its manager, removed ``count`` keys that were there."""

    pallet: ClassVar[str] = "Broadcaster"
    publisher: ParaId
    count: u32


@dataclass(frozen=True, slots=True)
class KeysForcedDeleted(Event):
    """Governance removed ``count`` keys of ``publisher`` that were there."""

    pallet: ClassVar[str] = "Broadcaster"
    publisher: ParaId
    count: u32
