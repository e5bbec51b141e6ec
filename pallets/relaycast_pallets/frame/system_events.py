"""Events of frame-system with upstream's names, fields and order, and one that only modelled chains deposit."""

from typing import ClassVar

from relaycast_pallets.frame.dispatch import AnyDispatchError, DispatchInfo
from relaycast_pallets.frame.events import Event
from relaycast_xcm.primitives import H256, AccountId, u32


class ExtrinsicSuccess(Event, frozen=True):
    """An extrinsic was applied."""

    pallet: ClassVar[str] = "System"
    dispatch_info: DispatchInfo


class ExtrinsicFailed(Event, frozen=True):
    """The call of an extrinsic was refused; its fee is paid."""

    pallet: ClassVar[str] = "System"
    dispatch_error: AnyDispatchError
    dispatch_info: DispatchInfo


class CodeUpdated(Event, frozen=True):
    """``:code`` was replaced."""

    pallet: ClassVar[str] = "System"


class NewAccount(Event, frozen=True):
    """``account`` exists from now on."""

    pallet: ClassVar[str] = "System"
    account: AccountId


class KilledAccount(Event, frozen=True):
    """``account`` was removed, its nonce with it."""

    pallet: ClassVar[str] = "System"
    account: AccountId


class Remarked(Event, frozen=True):
    """``sender`` made a remark with this Blake2b-256 ``hash``."""

    pallet: ClassVar[str] = "System"
    sender: AccountId
    hash: H256


class RuntimeUpgraded(Event, frozen=True):
    """The block is the first that runs the code with this ``spec_version``; modelled chains begin with 1."""

    pallet: ClassVar[str] = "System"
    spec_version: u32
