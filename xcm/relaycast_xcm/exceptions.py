"""Why a message does not run, or fails while it runs.

Before it runs: bytes, barriers and queues.

::

    RelaycastError
    ├── CodecError
    │   ├── UnsupportedVersion     a VersionedXcm of another version than V5
    │   ├── UnknownVariant         an enum index that V5 does not have
    │   ├── UnsupportedVariant     an enum variant that V5 has and this package has not
    │   ├── TooManyInstructions    more than MAX_INSTRUCTIONS_TO_DECODE, nested ones counted
    │   ├── TooDeep                containers nested deeper than MAX_XCM_DECODE_DEPTH
    │   └── BoundExceeded          a bounded sequence with more items than its bound
    ├── ProcessMessageError        why a message is not executed (frame-support ``ProcessMessageError``)
    │   ├── BadFormat  Corrupt  StackLimitReached  Yield
    │   ├── Unsupported
    │   │   └── NoBarrierAllows    the refusals of a whole chain of barriers
    │   └── Overweight
    └── UpwardQueueError           why a queue does not accept a message (runtime-parachains ``AcceptanceCheckErr``)
        ├── MoreMessagesThanPermitted  MessageTooLarge
        └── CapacityExceeded  TotalSizeExceeded

While it runs: the errors of XCM V5 (``XcmError``), each with its index, and ``PublishFailed`` of RFC-0160. ``Trapped``
is V5's ``Trap``, named apart from the instruction. The drafts publish no index for ``PublishFailed``: it has none here.
"""

from typing import Any, ClassVar

from relaycast_trie.exceptions import CodecError, RelaycastError
from relaycast_xcm.primitives import ParaId, Weight


class UnsupportedVersion(CodecError):
    """A versioned value of ``version``, which is not V5."""

    def __init__(self, version: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, version, offset)
        self.version = version
        self.offset = offset
        self.reason = f"version {version} is not supported, only 5"


class UnknownVariant(CodecError):
    """``type_name`` has no variant with this ``index`` in V5."""

    def __init__(self, type_name: str, index: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, type_name, index, offset)
        self.type_name = type_name
        self.index = index
        self.offset = offset
        self.reason = f"{type_name} has no variant {index}"


class UnsupportedVariant(CodecError):
    """``variant`` is a variant of ``type_name`` in V5 that this package does not read."""

    def __init__(self, type_name: str, variant: str, index: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, type_name, variant, index, offset)
        self.type_name = type_name
        self.variant = variant
        self.index = index
        self.offset = offset
        self.reason = f"{type_name} {variant} ({index}) is not supported"


class TooManyInstructions(CodecError):
    """A message that reaches ``count`` instructions, nested ones counted; ``limit`` are decoded."""

    def __init__(self, count: int, limit: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, count, limit, offset)
        self.count = count
        self.limit = limit
        self.offset = offset
        self.reason = f"{count} instructions, at most {limit} are decoded"


class TooDeep(CodecError):
    """Containers nested deeper than ``limit``."""

    def __init__(self, limit: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, limit, offset)
        self.limit = limit
        self.offset = offset
        self.reason = f"nested deeper than {limit} levels"


class BoundExceeded(CodecError):
    """A sequence of ``count`` items where ``limit`` are allowed."""

    def __init__(self, type_name: str, count: int, limit: int, offset: int = 0) -> None:
        RelaycastError.__init__(self, type_name, count, limit, offset)
        self.type_name = type_name
        self.count = count
        self.limit = limit
        self.offset = offset
        self.reason = f"{type_name} of {count}, at most {limit} allowed"


class ProcessMessageError(RelaycastError):
    """Why a message is not executed."""

    @property
    def name(self) -> str:
        """The variant of upstream's enum."""
        return type(self).__name__


class BadFormat(ProcessMessageError):
    """The message is not of the form that the barrier asks for."""


class Corrupt(ProcessMessageError):
    """The bytes do not decode."""


class StackLimitReached(ProcessMessageError):
    """The message has more instructions than are allowed."""


class Yield(ProcessMessageError):
    """The message is to be tried again later."""


class Unsupported(ProcessMessageError):
    """The origin or the message is not supported."""


class NoBarrierAllows(Unsupported):
    """No barrier allows the message; ``refusals`` names each barrier with what it answered, in order."""

    refusals: tuple[tuple[str, ProcessMessageError], ...]

    @property
    def name(self) -> str:
        """A chain answers ``Unsupported``, whatever its barriers answered."""
        return "Unsupported"

    def __str__(self) -> str:
        return f"no barrier allows it: {self._answers()}"

    def _answers(self) -> str:
        return ", ".join(
            f"{barrier} ({error._answers()})" if isinstance(error, NoBarrierAllows) else f"{barrier} says {error.name}"
            for barrier, error in self.refusals
        )


class Overweight(ProcessMessageError, message="the message needs {required}"):
    """The message needs the weight ``required``, more than there is."""

    required: Weight


class UpwardQueueError(RelaycastError):
    """Why a queue of upward messages does not accept one."""


class MoreMessagesThanPermitted(
    UpwardQueueError, message="parachain {para} sends {sent} upward messages in one block, {permitted} are permitted"
):
    """A candidate of ``para`` sends ``sent`` messages where ``permitted`` are allowed."""

    para: ParaId
    sent: int
    permitted: int


class MessageTooLarge(
    UpwardQueueError, message="upward message {index} of parachain {para} has {message_bytes} bytes, limit {limit}"
):
    """Message ``index`` of a candidate has ``message_bytes`` where ``limit`` are allowed."""

    para: ParaId
    index: int
    message_bytes: int
    limit: int


class CapacityExceeded(
    UpwardQueueError, message="the upward queue of parachain {para} would hold {count} messages, limit {limit}"
):
    """The queue of ``para`` would hold ``count`` messages where ``limit`` are allowed."""

    para: ParaId
    count: int
    limit: int


class TotalSizeExceeded(
    UpwardQueueError, message="the upward queue of parachain {para} would hold {total_bytes} bytes, limit {limit}"
):
    """The queue of ``para`` would hold ``total_bytes`` where ``limit`` are allowed."""

    para: ParaId
    total_bytes: int
    limit: int


class XcmError(RelaycastError):
    """An instruction, or the message as a whole, failed."""

    index: ClassVar[int | None] = None

    def __init_subclass__(cls, *, index: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.index = index

    @property
    def name(self) -> str:
        """The variant of upstream's enum."""
        return type(self).__name__


def _v5(name: str, index: int, message: str) -> type[XcmError]:
    return type(name, (XcmError,), {"__doc__": message, "__module__": __name__}, index=index)


Overflow = _v5("Overflow", 0, "An arithmetic overflow.")
Unimplemented = _v5("Unimplemented", 1, "The instruction is intentionally not implemented.")
UntrustedReserveLocation = _v5(
    "UntrustedReserveLocation", 2, "The origin is not trusted to hold the assets in reserve."
)
UntrustedTeleportLocation = _v5("UntrustedTeleportLocation", 3, "The origin is not trusted to teleport the assets.")
LocationFull = _v5("LocationFull", 4, "The location has no room for more junctions.")
LocationNotInvertible = _v5("LocationNotInvertible", 5, "The location has no inverse.")
BadOrigin = _v5("BadOrigin", 6, "The origin is absent or not one that the instruction accepts.")
InvalidLocation = _v5("InvalidLocation", 7, "The location is not valid where it is used.")
AssetNotFound = _v5("AssetNotFound", 8, "The asset is not handled here.")
FailedToTransactAsset = _v5("FailedToTransactAsset", 9, "The asset could not be moved.")
NotWithdrawable = _v5("NotWithdrawable", 10, "The asset cannot be withdrawn.")
LocationCannotHold = _v5("LocationCannotHold", 11, "The location cannot hold assets.")
ExceedsMaxMessageSize = _v5("ExceedsMaxMessageSize", 12, "The message is longer than its transport allows.")
DestinationUnsupported = _v5("DestinationUnsupported", 13, "The destination cannot be reached by this transport.")
Transport = _v5("Transport", 14, "The transport failed.")
Unroutable = _v5("Unroutable", 15, "The destination has no route.")
UnknownClaim = _v5("UnknownClaim", 16, "There is nothing to claim under this ticket.")
FailedToDecode = _v5("FailedToDecode", 17, "A call or value in the message does not decode.")
MaxWeightInvalid = _v5("MaxWeightInvalid", 18, "The call weighs more than the message says.")
NotHoldingFees = _v5("NotHoldingFees", 19, "Holding does not have the fees.")
TooExpensive = _v5("TooExpensive", 20, "The fees do not pay for the weight.")
ExpectationFalse = _v5("ExpectationFalse", 22, "An expectation does not hold.")
PalletNotFound = _v5("PalletNotFound", 23, "The pallet is not there.")
NameMismatch = _v5("NameMismatch", 24, "The pallet has another name.")
VersionIncompatible = _v5("VersionIncompatible", 25, "The pallet has an incompatible version.")
HoldingWouldOverflow = _v5("HoldingWouldOverflow", 26, "Holding has no room for more assets.")
ExportError = _v5("ExportError", 27, "The message cannot be exported.")
ReanchorFailed = _v5("ReanchorFailed", 28, "A location cannot be seen from the destination.")
NoDeal = _v5("NoDeal", 29, "No exchange on these terms.")
FeesNotMet = _v5("FeesNotMet", 30, "The delivery fees are not met.")
LockError = _v5("LockError", 31, "An asset cannot be locked or unlocked.")
NoPermission = _v5("NoPermission", 32, "The origin is not allowed to do this.")
Unanchored = _v5("Unanchored", 33, "The consensus is not anchored to this one.")
NotDepositable = _v5("NotDepositable", 34, "The asset cannot be deposited.")
TooManyAssets = _v5("TooManyAssets", 35, "More assets than are handled.")
UnhandledXcmVersion = _v5("UnhandledXcmVersion", 36, "The message has a version that is not handled.")
Barrier = _v5("Barrier", 38, "The barrier does not allow the message.")
WeightNotComputable = _v5("WeightNotComputable", 39, "The weight of the message cannot be told.")
ExceedsStackLimit = _v5("ExceedsStackLimit", 40, "The message has more instructions than the weigher allows.")


class Trapped(XcmError, index=21, message="the message asked to fail with code {code}"):
    """The message asked to fail with ``code``."""

    code: int

    @property
    def name(self) -> str:
        return "Trap"


class WeightLimitReached(XcmError, index=37, message="the message weighs {required}, more than its limit"):
    """The message weighs ``required``, more than its limit."""

    required: Weight


class PublishFailed(XcmError):
    """The broadcaster refused the publication; its own error is the cause."""


XCM_ERRORS: dict[int, type[XcmError]] = {cls.index: cls for cls in XcmError.__subclasses__() if cls.index is not None}
"""Every error of V5 by its index."""
