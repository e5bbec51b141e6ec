"""Score-keeping: listeners of chains that account for bytes, match deliveries, check invariants and write tables."""

from relaycast_ledger.accounting import (
    BlockAccount,
    Ending,
    KeyAccount,
    KeyEnding,
    NodeTotals,
    NodeUse,
    PublisherAccount,
)
from relaycast_ledger.ledger import Accounts, Ledger
from relaycast_ledger.records import BlockRecord, Delivery, Invariants, ReadTotals, ToldDeletion, Violation

__all__ = [
    "Accounts",
    "BlockAccount",
    "BlockRecord",
    "Delivery",
    "Ending",
    "Invariants",
    "KeyAccount",
    "KeyEnding",
    "Ledger",
    "NodeTotals",
    "NodeUse",
    "PublisherAccount",
    "ReadTotals",
    "ToldDeletion",
    "Violation",
]
