"""Why the pool does not take an extrinsic: codes, messages and data of Substrate's ``author`` methods (sc-rpc-api).

::

    RelaycastError
    └── PoolError
        ├── BadExtrinsicFormat    1001  the bytes are no extrinsic: their length does not fit
        ├── VerificationFailed    1002  the runtime cannot decode what is inside
        ├── InvalidInPool         1010  the runtime says that it is invalid, and why
        ├── UnknownValidity       1011  the runtime cannot say
        ├── TemporarilyBanned     1012  it was removed, or included, a while ago
        ├── AlreadyImported       1013  the pool holds it
        ├── TooLowPriority        1014  it would replace another that pays as much or more
        ├── CycleDetected         1015  it would depend on itself
        ├── ImmediatelyDropped    1016  the pool is full of better ones
        └── NoTagsProvided        1019  it provides no tag by which the pool could know it
"""

from typing import ClassVar

from relaycast_node.extrinsic.validity_errors import Invalid, InvalidTransaction, UnknownTransaction
from relaycast_trie.exceptions import RelaycastError


class PoolError(RelaycastError):
    """An extrinsic that the pool does not take: a JSON-RPC ``code``, ``message`` and ``data``."""

    code: ClassVar[int]
    text: ClassVar[str]
    details: ClassVar[str | None] = None

    @property
    def message(self) -> str:
        return self.text

    @property
    def data(self) -> str | None:
        return self.details

    def __str__(self) -> str:
        return self.message if self.data is None else f"{self.message}: {self.data}"


class BadExtrinsicFormat(PoolError):
    """Bytes that are no extrinsic, for ``reason``."""

    code = 1001

    reason: str

    @property
    def message(self) -> str:
        return f"Extrinsic has invalid format: {self.reason}"


class VerificationFailed(PoolError):
    """An extrinsic that the runtime cannot decode, for ``reason``."""

    code = 1002

    reason: str

    @property
    def message(self) -> str:
        return f"Verification Error: {self.reason}"


class InvalidInPool(PoolError):
    """An extrinsic that the runtime calls invalid, for ``reason``."""

    code = 1010
    text = "Invalid Transaction"

    reason: InvalidTransaction

    @property
    def data(self) -> str:
        return f"Custom error: {self.reason.custom}" if self.reason.reason is Invalid.CUSTOM else str(self.reason)


class UnknownValidity(PoolError):
    """An extrinsic whose validity the runtime cannot tell, for ``reason``."""

    code = 1011
    text = "Unknown Transaction Validity"

    reason: UnknownTransaction

    @property
    def data(self) -> str:
        return self.reason.rust_name


class TemporarilyBanned(PoolError):
    """An extrinsic that must wait before it may come again."""

    code = 1012
    text = "Transaction is temporarily banned"


class AlreadyImported(PoolError):
    """An extrinsic that the pool holds, by its ``extrinsic_hash``."""

    code = 1013
    text = "Transaction Already Imported"

    extrinsic_hash: bytes

    @property
    def data(self) -> str:
        return f"0x{self.extrinsic_hash.hex()}"


class TooLowPriority(PoolError):
    """An extrinsic of priority ``new`` that would replace others of priority ``old`` together."""

    code = 1014
    details = "The transaction has too low priority to replace another transaction already in the pool."

    old: int
    new: int

    @property
    def message(self) -> str:
        return f"Priority is too low: ({self.old} vs {self.new})"


class CycleDetected(PoolError):
    """An extrinsic that depends on itself by others; ``lost`` are the hashes of those that leave the pool with it."""

    code = 1015
    text = "Cycle Detected"

    lost: tuple[bytes, ...] = ()


class ImmediatelyDropped(PoolError):
    """An extrinsic that is worse than all others in a full pool."""

    code = 1016
    text = "Immediately Dropped"
    details = "The transaction couldn't enter the pool because of the limit"


class NoTagsProvided(PoolError):
    """An extrinsic that provides no tag."""

    code = 1019
    text = "No tags provided"
    details = "Transaction does not provide any tags, so the pool can't identify it"
