"""The chain's own token for messages: withdrawn from accounts, deposited with them (xcm-builder ``FungibleAdapter``).

A withdrawal burns and a deposit mints: what a message has in holding is not issued meanwhile.
"""

from contextlib import AbstractContextManager

from msgspec import Struct

from relaycast_pallets.balances.pallet import Balances
from relaycast_pallets.frame.system import AccountId
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm import Asset, Location, sovereign_account
from relaycast_xcm.exceptions import AssetNotFound

NATIVE = Location.here()
"""What the chain calls its own token."""


class AccountIdConversionFailed(RelaycastError, message="{location} controls no account"):
    """``location`` controls no account of this chain."""

    location: Location


class FungibleAdapter(Struct, frozen=True):
    """Moves the chain's own token; raises ``AssetNotFound`` for another asset.

    ``AccountIdConversionFailed`` and ``InsufficientBalance`` are the causes of ``FailedToTransactAsset``.
    """

    balances: Balances

    def withdraw(self, asset: Asset, who: Location) -> None:
        amount = _amount(asset)
        self.balances.burn_from(_account(who), amount)

    def deposit(self, asset: Asset, who: Location) -> None:
        amount = _amount(asset)
        self.balances.mint_into(_account(who), amount)

    def transfer(self, asset: Asset, source: Location, destination: Location) -> None:
        amount = _amount(asset)
        self.balances.transfer(_account(source), _account(destination), amount)

    def transaction(self) -> AbstractContextManager[None]:
        return self.balances.system.state.transaction()


def _amount(asset: Asset) -> int:
    if asset.id != NATIVE:
        raise AssetNotFound
    return asset.amount


def _account(location: Location) -> AccountId:
    account = sovereign_account(location)
    if account is None:
        raise AccountIdConversionFailed(location)
    return account
