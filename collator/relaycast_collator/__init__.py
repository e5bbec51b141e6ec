"""Off-chain actors under one clock: a relay chain that seals blocks, collators that prove and prune, and facts."""

from relaycast_collator.chains import ChainSimulator
from relaycast_collator.collator import Collation, Collator, Pace, RelayProver, Tamper, collect_relay_storage_proof
from relaycast_collator.facts import (
    BlockBuilt,
    BlockPanicked,
    Fact,
    InboundTotals,
    Listener,
    MessagesQueued,
    MessagesRefused,
    ParachainLeft,
    RelaySealed,
    TickBegan,
    WasmBlockBuilt,
    WasmBlockRefused,
)
from relaycast_collator.header import DigestItem, Header, ordered_root
from relaycast_collator.inbound import MODELLED_SENDER, Messages, Traffic
from relaycast_collator.latest_values import LatestValues
from relaycast_collator.outbox import Outbox, Publication, SentMessage
from relaycast_collator.parachain import Parachain, ParachainBlock
from relaycast_collator.relay_chain import Genesis, RelayBlock, RelayChain, modelled_genesis
from relaycast_collator.upgrades import ParachainUpgrade, RelayUpgrade
from relaycast_collator.wasm_parachain import (
    BlockNotBuilt,
    ExtrinsicLeftOut,
    StorageItemShare,
    WasmBlock,
    WasmParachain,
    WasmParachainDump,
)

__all__ = [
    "MODELLED_SENDER",
    "BlockBuilt",
    "BlockNotBuilt",
    "BlockPanicked",
    "ChainSimulator",
    "Collation",
    "Collator",
    "DigestItem",
    "ExtrinsicLeftOut",
    "Fact",
    "Genesis",
    "Header",
    "InboundTotals",
    "LatestValues",
    "Listener",
    "Messages",
    "MessagesQueued",
    "MessagesRefused",
    "Outbox",
    "Pace",
    "Parachain",
    "ParachainBlock",
    "ParachainLeft",
    "ParachainUpgrade",
    "Publication",
    "RelayBlock",
    "RelayChain",
    "RelayProver",
    "RelaySealed",
    "RelayUpgrade",
    "SentMessage",
    "StorageItemShare",
    "Tamper",
    "TickBegan",
    "Traffic",
    "WasmBlock",
    "WasmBlockBuilt",
    "WasmBlockRefused",
    "WasmParachain",
    "WasmParachainDump",
    "collect_relay_storage_proof",
    "modelled_genesis",
    "ordered_root",
]
