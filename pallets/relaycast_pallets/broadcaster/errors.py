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


class NotRegistered(BroadcasterError):
    """``publisher`` is a public parachain and not registered; the draft's ``publish`` says ``PublishNotAuthorized``."""

    upstream = "NotRegistered"

    def __init__(self, publisher: ParaId) -> None:
        super().__init__(publisher)
        self.publisher = publisher

    def __str__(self) -> str:
        return f"parachain {self.publisher} is not registered as a publisher"


class NotPublicParachain(BroadcasterError):
    """An account asks to register ``publisher``, a system parachain, which governance alone may register."""

    def __init__(self, publisher: ParaId) -> None:
        super().__init__(publisher)
        self.publisher = publisher

    def __str__(self) -> str:
        return f"an account registers parachains from {LOWEST_PUBLIC_ID} on, got {self.publisher}"


class AlreadyRegistered(BroadcasterError):
    """``publisher`` is registered."""

    upstream = "AlreadyRegistered"

    def __init__(self, publisher: ParaId) -> None:
        super().__init__(publisher)
        self.publisher = publisher

    def __str__(self) -> str:
        return f"parachain {self.publisher} is registered already"


class TooManyPublishers(BroadcasterError):
    """There are ``limit`` publishers."""

    upstream = "TooManyPublishers"

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"the limit of {self.limit} publishers is reached"


class NotManager(BroadcasterError):
    """``account`` does not manage ``publisher``."""

    upstream = "NotAuthorized"

    def __init__(self, publisher: ParaId, account: AccountId) -> None:
        super().__init__(publisher, account)
        self.publisher = publisher
        self.account = account

    def __str__(self) -> str:
        return f"account 0x{self.account.hex()} does not manage parachain {self.publisher}"


class NotOwner(BroadcasterError):
    """``parachain`` asks for what ``publisher`` published."""

    upstream = "NotAuthorized"

    def __init__(self, publisher: ParaId, parachain: ParaId) -> None:
        super().__init__(publisher, parachain)
        self.publisher = publisher
        self.parachain = parachain

    def __str__(self) -> str:
        return f"parachain {self.parachain} does not own the keys of parachain {self.publisher}"


class NoDataToCleanup(BroadcasterError):
    """``publisher`` has published nothing that is still there."""

    upstream = "NoDataToCleanup"

    def __init__(self, publisher: ParaId) -> None:
        super().__init__(publisher)
        self.publisher = publisher

    def __str__(self) -> str:
        return f"parachain {self.publisher} has no data"


class ValueTooLarge(BroadcasterError):
    """A value of ``value_bytes``, more than ``limit``."""

    upstream = "ValueTooLong"

    def __init__(self, value_bytes: int, limit: int) -> None:
        super().__init__(value_bytes, limit)
        self.value_bytes = value_bytes
        self.limit = limit

    def __str__(self) -> str:
        return f"the value has {self.value_bytes} bytes, at most {self.limit} are allowed"


class TooManyKeys(BroadcasterError):
    """``publisher`` stores ``limit`` keys, and this would be a new one."""

    upstream = "TooManyStoredKeys"

    def __init__(self, publisher: ParaId, limit: int) -> None:
        super().__init__(publisher, limit)
        self.publisher = publisher
        self.limit = limit

    def __str__(self) -> str:
        return f"parachain {self.publisher} stores {self.limit} keys, as many as it may"


class TotalStorageSizeExceeded(BroadcasterError):
    """``publisher`` would store ``total_bytes`` of keys and values, more than ``limit``."""

    upstream = "TotalStorageSizeExceeded"

    def __init__(self, publisher: ParaId, total_bytes: int, limit: int) -> None:
        super().__init__(publisher, total_bytes, limit)
        self.publisher = publisher
        self.total_bytes = total_bytes
        self.limit = limit

    def __str__(self) -> str:
        return f"parachain {self.publisher} would store {self.total_bytes} bytes, at most {self.limit} are allowed"


class TooManyPublishes(BroadcasterError):
    """``publisher`` has published ``limit`` times in this relay block."""

    def __init__(self, publisher: ParaId, limit: int) -> None:
        super().__init__(publisher, limit)
        self.publisher = publisher
        self.limit = limit

    def __str__(self) -> str:
        return f"parachain {self.publisher} has published {self.limit} times in this block, as often as it may"
