"""The chain's own token for messages: accounts pay and receive it, and weight is bought with it (xcm-builder).

A withdrawal burns and a deposit mints: what a message has in holding is not issued meanwhile. Time has a price, proof
size has none: Polkadot maps the base weight of an extrinsic to a tenth of a cent. The block's author earns what was
paid.

>>> WeightToFee().fee(Weight(97_251_000))
10000000
"""

from contextlib import AbstractContextManager

from msgspec import Struct, field

from relaycast_pallets.balances import Balances
from relaycast_pallets.frame.system import AccountId
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm import Asset, Assets, Location, Weight, sovereign_account
from relaycast_xcm.exceptions import AssetNotFound, TooExpensive

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


CENT = 100_000_000
"""A hundredth of a DOT, in planck."""

EXTRINSIC_BASE = Weight(97_251_000)
"""What an extrinsic that does nothing weighs (paritytech/polkadot runtime constants of 30 September 2022)."""

BILLION = 1_000_000_000
"""A ``Perbill`` counts parts of this."""


class WeightToFee(Struct, frozen=True):
    """A price for ``ref_time``, as the polynomial of degree 1 that Polkadot has."""

    extrinsic_base: Weight = EXTRINSIC_BASE
    fee_of_ten: int = CENT
    """Planck for ten times the base weight."""

    def fee(self, weight: Weight) -> int:
        """Return the planck that ``weight`` costs; the fraction is a ``Perbill``, rounded as upstream rounds it."""
        whole, rest = divmod(self.fee_of_ten, 10 * self.extrinsic_base.ref_time)
        parts = rest * BILLION // (10 * self.extrinsic_base.ref_time)
        quotient, remainder = divmod(weight.ref_time * parts, BILLION)
        return weight.ref_time * whole + quotient + (remainder > BILLION // 2)


class FeesToAuthor(Struct, frozen=True):
    """Makes a trader for each message, whose fees go to ``author``."""

    balances: Balances
    author: AccountId
    prices: WeightToFee = field(default_factory=WeightToFee)

    def __call__(self) -> "UsingComponents":
        return UsingComponents(self)


class UsingComponents(Struct):
    """Sells weight to one message; what was paid and not refunded goes to the author of ``fees``."""

    fees: FeesToAuthor
    bought: Weight = Weight.ZERO
    paid: int = 0

    def buy_weight(self, weight: Weight, payment: Asset) -> Assets:
        fee = self.fees.prices.fee(weight)
        if payment.id != NATIVE or payment.amount < fee:
            raise TooExpensive
        self.bought += weight
        self.paid += fee
        left = payment.amount - fee
        return (Asset.fungible(NATIVE, left),) if left else ()

    def refund_weight(self, weight: Weight) -> Asset | None:
        weight = weight.min(self.bought)
        fee = min(self.fees.prices.fee(weight), self.paid)
        self.bought -= weight
        self.paid -= fee
        return Asset.fungible(NATIVE, fee) if fee else None

    def settle(self) -> None:
        """Deposit the fees with the author."""
        if self.paid:
            self.fees.balances.deposit_fees(self.fees.author, self.paid)
            self.paid = 0
