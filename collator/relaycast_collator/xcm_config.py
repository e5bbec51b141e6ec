"""The relay chain's XCM configuration: which messages run, what they pay with, and where it goes (``xcm_config.rs``).

A message of ``Publish`` alone is free. Any other message pays for its weight first, with the tokens of its sender's
sovereign account; system parachains may ask for execution without payment. What a message leaves in holding is trapped.
"""

from msgspec.structs import replace

from relaycast_pallets.asset_traps import AssetTraps
from relaycast_pallets.balances import Balances
from relaycast_pallets.broadcaster.pallet import Broadcaster
from relaycast_pallets.frame.system import System
from relaycast_pallets.xcm import FeesToAuthor, FungibleAdapter
from relaycast_trie import blake2_256
from relaycast_xcm import (
    POLKADOT_WEIGHTS,
    AllowExplicitUnpaidExecutionFrom,
    AllowPublishFrom,
    AllowTopLevelPaidExecutionFrom,
    BarrierChain,
    Everything,
    IsChildSystemParachain,
    OnlyParachains,
    ParachainBroadcastAdapter,
    PublishWeight,
    TakeWeightCredit,
    TrailingSetTopicAsId,
    WithComputedOrigin,
    XcmExecutor,
)

BARRIER = TrailingSetTopicAsId(
    BarrierChain(
        TakeWeightCredit(),
        AllowPublishFrom(OnlyParachains()),
        WithComputedOrigin(
            BarrierChain(
                AllowTopLevelPaidExecutionFrom(Everything()),
                AllowExplicitUnpaidExecutionFrom(IsChildSystemParachain()),
            )
        ),
    )
)
"""Polkadot's barriers around the one that lets publications in."""

BLOCK_AUTHOR = blake2_256(b"block author")
"""The account that earns fees: one author is modelled for all blocks."""


def relay_executor(system: System, balances: Balances, broadcaster: Broadcaster) -> XcmExecutor:
    """Return what executes messages on a relay chain with these pallets."""
    return XcmExecutor(
        BARRIER,
        broadcast=ParachainBroadcastAdapter(OnlyParachains(), broadcaster),
        weigher=replace(POLKADOT_WEIGHTS, publish=PublishWeight(broadcaster.config.weight("publish"))),
        assets=FungibleAdapter(balances),
        trader=FeesToAuthor(balances, BLOCK_AUTHOR),
        trap=AssetTraps(system),
    )
