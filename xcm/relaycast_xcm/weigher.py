"""What messages weigh before they run: a price for each instruction, summed up (xcm-builder ``FixedWeightBounds``).

Weights are parameters, since nobody has benchmarked ``Publish``: Westend charges a placeholder, upstream's tests
charge ten of each for any instruction. A nested message weighs what its instructions weigh, a ``Transact`` what it
says itself.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from relaycast_xcm.assets import Definite, Wild
from relaycast_xcm.codec import MAX_INSTRUCTIONS_TO_DECODE
from relaycast_xcm.exceptions import ExceedsStackLimit, WeightNotComputable
from relaycast_xcm.instructions import (
    BuyExecution,
    ClearError,
    ClearOrigin,
    ClearTopic,
    DepositAsset,
    DescendOrigin,
    Instruction,
    PayFees,
    Publish,
    PublishItems,
    QueryResponse,
    RefundSurplus,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    Transact,
    TransferAsset,
    Trap,
    UnpaidExecution,
    WithdrawAsset,
)
from relaycast_xcm.location import Location
from relaycast_xcm.primitives import ROCKS_DB, Weight


class PublishWeight(Struct, frozen=True):
    """What a ``Publish`` weighs: ``base``, and more for each item and for each byte of its values."""

    base: Weight
    per_item: Weight = Weight.ZERO
    per_byte: Weight = Weight.ZERO

    def weigh(self, items: int, value_bytes: int) -> Weight:
        return self.base + self.per_item * items + self.per_byte * value_bytes


class Weigher(Struct, frozen=True):
    """Prices: ``base`` for any instruction but those in ``prices``, ``publish`` for ``Publish`` where given.

    An instruction in ``per_asset`` weighs that much for each asset it names, once for a wildcard. One that names
    another asset than ``known_asset`` weighs all there is (``WeighAssets`` of the runtimes).
    """

    base: Weight
    publish: PublishWeight | None = None
    prices: Mapping[type[Instruction], Weight] = field(default_factory=dict)
    max_instructions: int = MAX_INSTRUCTIONS_TO_DECODE
    per_asset: Mapping[type[Instruction], Weight] = field(default_factory=dict)
    known_asset: Location | None = None

    def weigh(self, message: Sequence[Instruction]) -> Weight:
        """Return what the message weighs at most.

        Raises ``ExceedsStackLimit`` for too many instructions, nested ones counted, and ``WeightNotComputable`` for a
        ``Transact`` that does not say what its call weighs.
        """
        weight, _ = self._weigh(message, self.max_instructions)
        return weight

    def weigh_instruction(self, instruction: Instruction) -> Weight:
        weight, _ = self._weigh((instruction,), self.max_instructions)
        return weight

    def _weigh(self, message: Sequence[Instruction], left: int) -> tuple[Weight, int]:
        left -= len(message)
        if left < 0:
            raise ExceedsStackLimit
        ref_time = proof_size = 0
        for instruction in message:
            weight = self._price(instruction)
            if isinstance(instruction, SetErrorHandler | SetAppendix):
                nested, left = self._weigh(instruction.xcm, left)
                weight += nested
            ref_time += weight.ref_time
            proof_size += weight.proof_size
        return Weight(min(ref_time, Weight.MAX.ref_time), min(proof_size, Weight.MAX.proof_size)), left

    def _price(self, instruction: Instruction) -> Weight:
        kind = type(instruction)
        if self.publish is not None and isinstance(instruction, Publish):
            return self.publish.weigh(1, len(instruction.value))
        if self.publish is not None and isinstance(instruction, PublishItems):
            return self.publish.weigh(len(instruction.data), sum(len(item.value) for item in instruction.data))
        if kind in self.per_asset:
            return self._price_of_assets(instruction, self.per_asset[kind])
        price = self.prices.get(kind, self.base)
        if isinstance(instruction, Transact):
            if instruction.fallback_max_weight is None:
                raise WeightNotComputable
            return price + instruction.fallback_max_weight
        return price

    def _price_of_assets(self, instruction: Instruction, price: Weight) -> Weight:
        assert isinstance(instruction, WithdrawAsset | TransferAsset | DepositAsset), "INVARIANT: these name assets"
        named = instruction.assets
        if isinstance(named, Wild):
            return price
        listed = named.assets if isinstance(named, Definite) else named
        if self.known_asset is not None and any(asset.id != self.known_asset for asset in listed):
            return Weight.MAX
        return price * len(listed)


TEST_WEIGHTS = Weigher(Weight(10, 10))
"""Ten of each for any instruction: the ``UnitWeightCost`` of upstream's tests (xcm-builder)."""

WESTEND_WEIGHTS = Weigher(
    Weight(10_000_000),
    PublishWeight(base=Weight(10_000_000), per_item=Weight(5_000_000)),
)
"""Westend's placeholder for ``Publish``: 10,000,000 and 5,000,000 for each item; the base of the others is assumed."""


_PRICES: dict[type[Instruction], Weight] = {
    QueryResponse: Weight(8_200_000, 3_465) + ROCKS_DB.reads(1),
    Transact: Weight(9_520_000),
    ClearOrigin: Weight(900_000),
    DescendOrigin: Weight(870_000),
    BuyExecution: Weight(970_000),
    RefundSurplus: Weight(1_560_000),
    SetErrorHandler: Weight(940_000),
    SetAppendix: Weight(920_000),
    ClearError: Weight(880_000),
    Trap: Weight(5_350_000),
    SetTopic: Weight(870_000),
    ClearTopic: Weight(900_000),
    UnpaidExecution: Weight(880_000),
    PayFees: Weight(5_360_000),
}
_PER_ASSET: dict[type[Instruction], Weight] = {
    WithdrawAsset: Weight(47_110_000, 3_593) + ROCKS_DB.reads_writes(1, 1),
    TransferAsset: Weight(65_530_000, 6_196) + ROCKS_DB.reads_writes(2, 2),
    DepositAsset: Weight(33_660_000, 3_593) + ROCKS_DB.reads_writes(1, 1),
}

POLKADOT_WEIGHTS = Weigher(
    WESTEND_WEIGHTS.base, WESTEND_WEIGHTS.publish, _PRICES, per_asset=_PER_ASSET, known_asset=Location.here()
)
"""The relay chain's prices."""
