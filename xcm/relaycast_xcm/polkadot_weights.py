"""What instructions weigh on Polkadot's relay chain: its benchmarks of 21 June 2025, with RocksDB's accesses.

Source: polkadot-fellows/runtimes, relay/polkadot/src/weights/xcm (``pallet_xcm_benchmarks`` fungible and generic).
``Publish`` has no benchmark anywhere: its weight is Westend's placeholder. The relay chain knows one asset, its own;
a message that moves another one weighs more than any block has.
"""

from relaycast_xcm.instructions import (
    BuyExecution,
    ClearError,
    ClearOrigin,
    ClearTopic,
    DepositAsset,
    DescendOrigin,
    Instruction,
    PayFees,
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
from relaycast_xcm.weigher import WESTEND_WEIGHTS, Weigher

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
