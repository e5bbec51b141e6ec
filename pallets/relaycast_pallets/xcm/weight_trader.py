"""Weight for the chain's own token, at the price of transactions (xcm-builder ``UsingComponents``).

Time has a price, proof size has none: Polkadot maps the base weight of an extrinsic to a tenth of a cent. The block's
author earns what was paid.

>>> WeightToFee().fee(Weight(97_251_000))
10000000
"""

from msgspec import Struct, field

from relaycast_pallets.balances.pallet import Balances
from relaycast_pallets.frame.system import AccountId
from relaycast_pallets.xcm.fungible_adapter import NATIVE
from relaycast_xcm import Asset, Assets, Weight
from relaycast_xcm.exceptions import TooExpensive

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
