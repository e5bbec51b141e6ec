"""What goes wrong while a message runs: the errors of XCM V5, each with its index, and ``PublishFailed`` of RFC-0160.

``Trapped`` is V5's ``Trap``, named apart from the instruction. The
drafts do not publish an index for ``PublishFailed``: it has none here.
"""

from typing import ClassVar

from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.primitives import Weight


class XcmError(RelaycastError):
    """An instruction, or the message as a whole, failed."""

    index: ClassVar[int | None] = None

    @property
    def name(self) -> str:
        """The variant of upstream's enum."""
        return type(self).__name__


class Overflow(XcmError):
    """An arithmetic overflow."""

    index = 0


class Unimplemented(XcmError):
    """The instruction is intentionally not implemented."""

    index = 1


class UntrustedReserveLocation(XcmError):
    """The origin is not trusted to hold the assets in reserve."""

    index = 2


class UntrustedTeleportLocation(XcmError):
    """The origin is not trusted to teleport the assets."""

    index = 3


class LocationFull(XcmError):
    """The location has no room for more junctions."""

    index = 4


class LocationNotInvertible(XcmError):
    """The location has no inverse."""

    index = 5


class BadOrigin(XcmError):
    """The origin is absent or not one that the instruction accepts."""

    index = 6


class InvalidLocation(XcmError):
    """The location is not valid where it is used."""

    index = 7


class AssetNotFound(XcmError):
    """The asset is not handled here."""

    index = 8


class FailedToTransactAsset(XcmError):
    """The asset could not be moved."""

    index = 9


class NotWithdrawable(XcmError):
    """The asset cannot be withdrawn."""

    index = 10


class LocationCannotHold(XcmError):
    """The location cannot hold assets."""

    index = 11


class ExceedsMaxMessageSize(XcmError):
    """The message is longer than its transport allows."""

    index = 12


class DestinationUnsupported(XcmError):
    """The destination cannot be reached by this transport."""

    index = 13


class Transport(XcmError):
    """The transport failed."""

    index = 14


class Unroutable(XcmError):
    """The destination has no route."""

    index = 15


class UnknownClaim(XcmError):
    """There is nothing to claim under this ticket."""

    index = 16


class FailedToDecode(XcmError):
    """A call or value in the message does not decode."""

    index = 17


class MaxWeightInvalid(XcmError):
    """The call weighs more than the message says."""

    index = 18


class NotHoldingFees(XcmError):
    """Holding does not have the fees."""

    index = 19


class TooExpensive(XcmError):
    """The fees do not pay for the weight."""

    index = 20


class Trapped(XcmError, message="the message asked to fail with code {code}"):
    """The message asked to fail with ``code``."""

    index = 21

    code: int

    @property
    def name(self) -> str:
        return "Trap"


class ExpectationFalse(XcmError):
    """An expectation does not hold."""

    index = 22


class PalletNotFound(XcmError):
    """The pallet is not there."""

    index = 23


class NameMismatch(XcmError):
    """The pallet has another name."""

    index = 24


class VersionIncompatible(XcmError):
    """The pallet has an incompatible version."""

    index = 25


class HoldingWouldOverflow(XcmError):
    """Holding has no room for more assets."""

    index = 26


class ExportError(XcmError):
    """The message cannot be exported."""

    index = 27


class ReanchorFailed(XcmError):
    """A location cannot be seen from the destination."""

    index = 28


class NoDeal(XcmError):
    """No exchange on these terms."""

    index = 29


class FeesNotMet(XcmError):
    """The delivery fees are not met."""

    index = 30


class LockError(XcmError):
    """An asset cannot be locked or unlocked."""

    index = 31


class NoPermission(XcmError):
    """The origin is not allowed to do this."""

    index = 32


class Unanchored(XcmError):
    """The consensus is not anchored to this one."""

    index = 33


class NotDepositable(XcmError):
    """The asset cannot be deposited."""

    index = 34


class TooManyAssets(XcmError):
    """More assets than are handled."""

    index = 35


class UnhandledXcmVersion(XcmError):
    """The message has a version that is not handled."""

    index = 36


class WeightLimitReached(XcmError, message="the message weighs {required}, more than its limit"):
    """The message weighs ``required``, more than its limit."""

    index = 37

    required: Weight


class Barrier(XcmError):
    """The barrier does not allow the message."""

    index = 38


class WeightNotComputable(XcmError):
    """The weight of the message cannot be told."""

    index = 39


class ExceedsStackLimit(XcmError):
    """The message has more instructions than the weigher allows."""

    index = 40


class PublishFailed(XcmError):
    """The broadcaster refused the publication; its own error is the cause."""


XCM_ERRORS: dict[int, type[XcmError]] = {cls.index: cls for cls in XcmError.__subclasses__() if cls.index is not None}
"""Every error of V5 by its index."""
