"""Chains under a ledger, for tests that look at both."""

from collections.abc import Mapping
from typing import Any

from relaycast_collator import ChainSimulator
from relaycast_ledger import Accounts, BlockRecord, Invariants, Ledger
from relaycast_xcm import ParaId


class Watched(ChainSimulator):
    """Chains with a ledger of their own; the options are those of both."""

    def __init__(
        self, *, accounts: Accounts = Accounts.NONE, pictures: Mapping[ParaId, int] | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.ledger = Ledger(self, accounts=accounts, pictures=pictures)

    @property
    def invariants(self) -> Invariants:
        return self.ledger.invariants

    def recorded_step(self) -> list[BlockRecord]:
        """Let one tick pass and return its records."""
        return self.ledger.step()
