"""Off-chain actors: a relay chain that seals blocks, collators that prove and prune, and a network with one clock."""

from relaycast_collator.account_records import (
    BlockAccount,
    Ending,
    KeyAccount,
    KeyEnding,
    NodeTotals,
    NodeUse,
    PublisherAccount,
)
from relaycast_collator.collator import Collation, Collator, Pace, Tamper
from relaycast_collator.header import DigestItem, Header, ordered_root
from relaycast_collator.inbound import InboundQueue
from relaycast_collator.network import Network
from relaycast_collator.outbox import Outbox, Publication, SentMessage
from relaycast_collator.parachain import KeptValues, Parachain, ParachainBlock
from relaycast_collator.proof_collection import RelayProver, collect_relay_storage_proof
from relaycast_collator.records import BlockRecord, Delivery, Invariants, ReadTotals, Violation
from relaycast_collator.relay_chain import Genesis, RelayBlock, RelayChain, modelled_genesis

__all__ = [
    "BlockAccount",
    "BlockRecord",
    "Collation",
    "Collator",
    "Delivery",
    "DigestItem",
    "Ending",
    "Genesis",
    "Header",
    "InboundQueue",
    "Invariants",
    "KeptValues",
    "KeyAccount",
    "KeyEnding",
    "Network",
    "NodeTotals",
    "NodeUse",
    "Outbox",
    "Pace",
    "Parachain",
    "ParachainBlock",
    "Publication",
    "PublisherAccount",
    "ReadTotals",
    "RelayBlock",
    "RelayChain",
    "RelayProver",
    "SentMessage",
    "Tamper",
    "Violation",
    "collect_relay_storage_proof",
    "modelled_genesis",
    "ordered_root",
]
