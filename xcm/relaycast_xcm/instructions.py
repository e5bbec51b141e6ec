"""Instructions: what a message tells its receiver to do, one after another.

Names, fields and indices are those of XCM V5; ``Publish`` is the one that RFC-0160 adds, at index 52. Every other
instruction of V5 has its name in ``INSTRUCTION_NAMES``, so that it can be refused by name.
"""

from enum import IntEnum

from msgspec import Struct

from relaycast_xcm.assets import Asset, AssetFilter, Assets
from relaycast_xcm.location import Interior, Location
from relaycast_xcm.primitives import U32_MAX, Weight

KEY_BYTES = 32
"""A published key: publishers hash what they call it (RFC-0160)."""

MAX_PUBLISH_VALUE_BYTES = 2_048
"""The longest value of a ``Publish`` (specification of pub-sub; the public draft of xcm v5 had 1,024)."""


class Instruction(Struct, frozen=True):
    """One step of a message; the subclasses are the kinds."""


Xcm = tuple[Instruction, ...]
"""A message."""


class Publish(Instruction, frozen=True):
    """Write ``value`` under ``key`` in the origin's child trie, for ``ttl`` relay blocks; 0 is for ever."""

    key: bytes
    value: bytes
    ttl: int = 0

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, got {len(self.key)}")
        if not 0 <= self.ttl <= U32_MAX:
            raise ValueError(f"a ttl is a u32, got {self.ttl}")


class PublishItem(Struct, frozen=True):
    """One key and its value in a ``PublishItems``."""

    key: bytes
    value: bytes


class PublishItems(Instruction, frozen=True):
    """The ``Publish`` of earlier drafts: several items at once, none of which expires."""

    data: tuple[PublishItem, ...]


class WithdrawAsset(Instruction, frozen=True):
    """Take ``assets`` from the origin's account into holding."""

    assets: Assets


class OriginKind(IntEnum):
    """As what a dispatched call sees its origin."""

    NATIVE = 0
    SOVEREIGN_ACCOUNT = 1
    SUPERUSER = 2
    XCM = 3


class NullResponse(Struct, frozen=True):
    """No response: what tests a channel."""


class AssetsResponse(Struct, frozen=True):
    """Some assets."""

    assets: Assets


class VersionResponse(Struct, frozen=True):
    """An XCM version."""

    version: int


Response = NullResponse | AssetsResponse | VersionResponse


class QueryResponse(Instruction, frozen=True):
    """The answer to the query ``query_id``."""

    query_id: int
    response: Response
    max_weight: Weight
    querier: Location | None


class TransferAsset(Instruction, frozen=True):
    """Move ``assets`` from the origin's account to ``beneficiary``."""

    assets: Assets
    beneficiary: Location


class Transact(Instruction, frozen=True):
    """Dispatch the encoded ``call``; ``fallback_max_weight`` helps receivers that speak V4."""

    origin_kind: OriginKind
    fallback_max_weight: Weight | None
    call: bytes


class ClearOrigin(Instruction, frozen=True):
    """Forget who sent the message."""


class DescendOrigin(Instruction, frozen=True):
    """Let something inside the origin be the origin."""

    interior: Interior


class DepositAsset(Instruction, frozen=True):
    """Move what the filter picks from holding to ``beneficiary``."""

    assets: AssetFilter
    beneficiary: Location


class BuyExecution(Instruction, frozen=True):
    """Pay up to ``fees`` from holding for the weight ``weight_limit``; ``None`` is ``Unlimited``."""

    fees: Asset
    weight_limit: Weight | None


class RefundSurplus(Instruction, frozen=True):
    """Take what was paid for work that was not done back into holding."""


class SetErrorHandler(Instruction, frozen=True):
    """Run ``xcm`` should a later instruction fail."""

    xcm: Xcm


class SetAppendix(Instruction, frozen=True):
    """Run ``xcm`` after the message, failed or not."""

    xcm: Xcm


class ClearError(Instruction, frozen=True):
    """Forget the error that was met."""


class Trap(Instruction, frozen=True):
    """Fail with ``code``."""

    code: int


class SetTopic(Instruction, frozen=True):
    """Give the message an identity."""

    topic: bytes


class ClearTopic(Instruction, frozen=True):
    """Take the message's identity away."""


class UnpaidExecution(Instruction, frozen=True):
    """Ask to be executed without payment; ``weight_limit`` of ``None`` is ``Unlimited``."""

    weight_limit: Weight | None = None
    check_origin: Location | None = None


class PayFees(Instruction, frozen=True):
    """Pay up to ``asset`` for the message's weight, once."""

    asset: Asset


INSTRUCTION_NAMES = (
    "WithdrawAsset",
    "ReserveAssetDeposited",
    "ReceiveTeleportedAsset",
    "QueryResponse",
    "TransferAsset",
    "TransferReserveAsset",
    "Transact",
    "HrmpNewChannelOpenRequest",
    "HrmpChannelAccepted",
    "HrmpChannelClosing",
    "ClearOrigin",
    "DescendOrigin",
    "ReportError",
    "DepositAsset",
    "DepositReserveAsset",
    "ExchangeAsset",
    "InitiateReserveWithdraw",
    "InitiateTeleport",
    "ReportHolding",
    "BuyExecution",
    "RefundSurplus",
    "SetErrorHandler",
    "SetAppendix",
    "ClearError",
    "ClaimAsset",
    "Trap",
    "SubscribeVersion",
    "UnsubscribeVersion",
    "BurnAsset",
    "ExpectAsset",
    "ExpectOrigin",
    "ExpectError",
    "ExpectTransactStatus",
    "QueryPallet",
    "ExpectPallet",
    "ReportTransactStatus",
    "ClearTransactStatus",
    "UniversalOrigin",
    "ExportMessage",
    "LockAsset",
    "UnlockAsset",
    "NoteUnlockable",
    "RequestUnlock",
    "SetFeesMode",
    "SetTopic",
    "ClearTopic",
    "AliasOrigin",
    "UnpaidExecution",
    "PayFees",
    "InitiateTransfer",
    "ExecuteWithOrigin",
    "SetHints",
)
"""The instructions of V5 by index, 0 to 51 (staging-xcm ``v5::Instruction``)."""

PUBLISH_INDEX = len(INSTRUCTION_NAMES)
"""``Publish`` follows the last instruction of V5: 52, the byte 0x34."""
