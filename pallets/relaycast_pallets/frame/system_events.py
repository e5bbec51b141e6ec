"""Events of frame-system with upstream's names, fields and order, and one that only modelled chains deposit."""

from dataclasses import dataclass
from typing import ClassVar

from relaycast_pallets.frame.dispatch import AnyDispatchError, DispatchInfo
from relaycast_pallets.frame.events import Event
from relaycast_xcm.primitives import H256, AccountId, u32


@dataclass(frozen=True, slots=True)
class ExtrinsicSuccess(Event):
    """An extrinsic was applied."""

    pallet: ClassVar[str] = "System"
    dispatch_info: DispatchInfo


@dataclass(frozen=True, slots=True)
class ExtrinsicFailed(Event):
    """The call of an extrinsic was refused; its fee is paid."""

    pallet: ClassVar[str] = "System"
    dispatch_error: AnyDispatchError
    dispatch_info: DispatchInfo


@dataclass(frozen=True, slots=True)
class CodeUpdated(Event):
    """``:code`` was replaced."""

    pallet: ClassVar[str] = "System"


@dataclass(frozen=True, slots=True)
class NewAccount(Event):
    """``account`` exists from now on."""

    pallet: ClassVar[str] = "System"
    account: AccountId


@dataclass(frozen=True, slots=True)
class KilledAccount(Event):
    """``account`` was removed, its nonce with it."""

    pallet: ClassVar[str] = "System"
    account: AccountId


@dataclass(frozen=True, slots=True)
class Remarked(Event):
    """``sender`` made a remark with this Blake2b-256 ``hash``."""

    pallet: ClassVar[str] = "System"
    sender: AccountId
    hash: H256


@dataclass(frozen=True, slots=True)
class RuntimeUpgraded(Event):
    """The block is the first that runs the code with this ``spec_version``; modelled chains begin with 1."""

    pallet: ClassVar[str] = "System"
    spec_version: u32
