"""Why the broadcaster refuses a call: one class for each reason, each with the name that the public draft gives it.

::

    DispatchError
    └── BroadcasterError            everything below; ``upstream`` is the draft's name
        ├── NotRegistered           a public parachain that is no publisher
        ├── NotPublicParachain      an account registers a system parachain
        ├── AlreadyRegistered       a publisher registers again
        ├── TooManyPublishers       no place for another publisher
        ├── NotManager              an account that does not manage the publisher
        ├── NotOwner                a parachain that asks for another one's keys
        ├── NoDataToCleanup         nothing is published
        ├── ValueTooLarge           a value longer than MaxValueLength
        ├── TooManyKeys             a new key beyond MaxStoredKeys
        ├── TotalStorageSizeExceeded  keys and values together beyond MaxTotalStorageSize
        └── TooManyPublishes        more publications in a block than MaxPublishesPerBlock
"""

from typing import ClassVar

from relaycast_pallets.frame.system import AccountId, DispatchError
from relaycast_xcm.primitives import LOWEST_PUBLIC_ID, ParaId


class BroadcasterError(DispatchError):
    """A call that the broadcaster refuses; ``upstream`` is the name in the draft's pallet."""

    upstream: ClassVar[str] = ""


class NotRegistered(BroadcasterError, message="parachain {publisher} is not registered as a publisher"):
    """``publisher`` is a public parachain and not registered; the draft's ``publish`` says ``PublishNotAuthorized``."""

    upstream = "NotRegistered"

    publisher: ParaId


class NotPublicParachain(BroadcasterError):
    """An account asks to register ``publisher``, a system parachain, which governance alone may register."""

    publisher: ParaId

    def __str__(self) -> str:
        return f"an account registers parachains from {LOWEST_PUBLIC_ID} on, got {self.publisher}"


class AlreadyRegistered(BroadcasterError, message="parachain {publisher} is registered already"):
    """``publisher`` is registered."""

    upstream = "AlreadyRegistered"

    publisher: ParaId


class TooManyPublishers(BroadcasterError, message="the limit of {limit} publishers is reached"):
    """There are ``limit`` publishers."""

    upstream = "TooManyPublishers"

    limit: int


class NotManager(BroadcasterError, message="account {account} does not manage parachain {publisher}"):
    """``account`` does not manage ``publisher``."""

    upstream = "NotAuthorized"

    publisher: ParaId
    account: AccountId


class NotOwner(BroadcasterError, message="parachain {parachain} does not own the keys of parachain {publisher}"):
    """``parachain`` asks for what ``publisher`` published."""

    upstream = "NotAuthorized"

    publisher: ParaId
    parachain: ParaId


class NoDataToCleanup(BroadcasterError, message="parachain {publisher} has no data"):
    """``publisher`` has published nothing that is still there."""

    upstream = "NoDataToCleanup"

    publisher: ParaId


class ValueTooLarge(BroadcasterError, message="the value has {value_bytes} bytes, at most {limit} are allowed"):
    """A value of ``value_bytes``, more than ``limit``."""

    upstream = "ValueTooLong"

    value_bytes: int
    limit: int


class TooManyKeys(BroadcasterError, message="parachain {publisher} stores {limit} keys, as many as it may"):
    """``publisher`` stores ``limit`` keys, and this would be a new one."""

    upstream = "TooManyStoredKeys"

    publisher: ParaId
    limit: int


class TotalStorageSizeExceeded(
    BroadcasterError, message="parachain {publisher} would store {total_bytes} bytes, at most {limit} are allowed"
):
    """``publisher`` would store ``total_bytes`` of keys and values, more than ``limit``."""

    upstream = "TotalStorageSizeExceeded"

    publisher: ParaId
    total_bytes: int
    limit: int


class TooManyPublishes(
    BroadcasterError, message="parachain {publisher} has published {limit} times in this block, as often as it may"
):
    """``publisher`` has published ``limit`` times in this relay block."""

    publisher: ParaId
    limit: int
