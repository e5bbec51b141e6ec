"""The transaction payment pallet: what an extrinsic costs (pallet-transaction-payment).

A fee is the base fee, a fee for each byte, a fee for the weight, and the tip. Weight is priced as on Polkadot
(``WeightToFee``). The base fee, a tenth of a cent, is the price of the base weight. A byte costs ten thousandths of a
cent, and proof size is free. The multiplier is 1 and stays so: blocks that fill up do not raise the price.

The sender pays what the call declares before it runs. What the call did not use is given back afterwards, if the
account still exists. The fee goes to the author of the block, or is no longer issued where none is named.

>>> from relaycast_pallets import State, System, Balances
>>> payment = TransactionPayment(Balances(System(State())))
>>> payment.fee_details(140, Weight(200_000_000))
FeeDetails(base_fee=10000000, len_fee=140000000, adjusted_weight_fee=20565341)
"""

from typing import ClassVar

from msgspec import Struct

from relaycast_pallets.balances import Balances
from relaycast_pallets.frame.dispatch import Pays, PostDispatchInfo
from relaycast_pallets.frame.system import Event
from relaycast_pallets.frame.typed_storage import U128, StorageCodec, StorageValue
from relaycast_pallets.xcm import CENT, WeightToFee
from relaycast_trie.exceptions import CodecError
from relaycast_xcm.primitives import AccountId, Balance, Weight, u8

BYTE_FEE = CENT // 100
"""Ten thousandths of a cent for a byte of an extrinsic, in planck (Polkadot's ``TransactionByteFee``)."""

ONE = 10**18
"""1 as a ``FixedU128``."""

FIXED_U128 = StorageCodec("FixedU128", U128.encode, U128.decode, 16)

V2 = 1
"""``Releases::V2``, the storage version of every chain whose fees are weighed in two dimensions."""

OPERATIONAL_FEE_MULTIPLIER = 5
"""By how much an operational call's priority exceeds a normal one's."""


class TransactionFeePaid(Event, frozen=True):
    """``who`` paid ``actual_fee``, the ``tip`` in it."""

    pallet: ClassVar[str] = "TransactionPayment"
    who: AccountId
    actual_fee: Balance
    tip: Balance


class FeeDetails(Struct, frozen=True):
    """The parts of a fee, without the tip (``InclusionFee``)."""

    base_fee: Balance
    len_fee: Balance
    adjusted_weight_fee: Balance

    @property
    def total(self) -> int:
        return self.base_fee + self.len_fee + self.adjusted_weight_fee


class WithdrawnFee(Struct, frozen=True):
    """What ``who`` paid before its call ran, for an extrinsic of ``length`` bytes."""

    who: AccountId
    length: int
    fee: int
    tip: int


def _decode_release(data: bytes) -> int:
    if data not in {b"\x00", b"\x01"}:
        raise CodecError(f"Releases is one byte, 0 or 1, got 0x{data.hex()}")
    return data[0]


class TransactionPayment:
    """Fees in the token of ``balances``, for the block's ``author`` if one is named."""

    PALLET = "TransactionPayment"

    def __init__(
        self,
        balances: Balances,
        *,
        author: AccountId | None = None,
        prices: WeightToFee | None = None,
        byte_fee: Balance = BYTE_FEE,
        operational_fee_multiplier: u8 = OPERATIONAL_FEE_MULTIPLIER,
    ) -> None:
        self.balances = balances
        self.author = author
        self.prices = prices or WeightToFee()
        self.byte_fee = byte_fee
        self.operational_fee_multiplier = operational_fee_multiplier
        state = balances.system.state
        releases = StorageCodec("Releases", lambda release: bytes([release]), _decode_release, 1)
        self.next_fee_multiplier = StorageValue(state, self.PALLET, "NextFeeMultiplier", FIXED_U128, default=ONE)
        self.storage_version = StorageValue(state, self.PALLET, "StorageVersion", releases, default=0)

    def build_genesis(self) -> None:
        """Store the multiplier and the version, as the genesis of a chain does."""
        self.next_fee_multiplier.put(ONE)
        self.storage_version.put(V2)

    @property
    def multiplier(self) -> int:
        """What the fee for weight is multiplied with, as a ``FixedU128``."""
        known = self.next_fee_multiplier.get()
        return ONE if known is None else known

    def weight_to_fee(self, weight: Weight) -> int:
        """Return the price of ``weight``, without the multiplier."""
        return self.prices.fee(weight)

    def length_to_fee(self, length: int) -> int:
        """Return the price of ``length`` bytes."""
        return length * self.byte_fee

    def fee_details(self, length: int, weight: Weight) -> FeeDetails:
        """Return the parts of the fee for an extrinsic of ``length`` bytes whose call weighs ``weight``."""
        weight_fee = self.weight_to_fee(weight) * self.multiplier // ONE
        return FeeDetails(self.weight_to_fee(self.prices.extrinsic_base), self.length_to_fee(length), weight_fee)

    def compute_fee(self, length: int, weight: Weight, tip: int, *, pays_fee: Pays = Pays.Yes) -> int:
        """Return the fee with the tip; a call that does not pay costs its tip alone."""
        return tip if pays_fee is Pays.No else self.fee_details(length, weight).total + tip

    def can_withdraw_fee(self, who: AccountId, fee: int) -> bool:
        """Return whether ``who`` can pay ``fee`` and keep the existential deposit."""
        return self.balances.spendable(who, keep_alive=True) >= fee

    def withdraw_fee(self, who: AccountId, length: int, weight: Weight, tip: int) -> WithdrawnFee:
        """Take the fee for the declared ``weight`` from ``who``; raises ``InsufficientBalance``."""
        fee = self.compute_fee(length, weight, tip)
        if fee:
            self.balances.withdraw(who, fee)
        return WithdrawnFee(who, length, fee, tip)

    def refund(self, withdrawn: WithdrawnFee, used: PostDispatchInfo) -> int:
        """Give back what the call did not use, hand the fee to the author, and return it.

        A call never costs more than was withdrawn. An account that is gone gets nothing back. What could not begin the
        author's account is no longer issued.
        """
        who = withdrawn.who
        fee = min(self.compute_fee(withdrawn.length, used.weight, withdrawn.tip, pays_fee=used.pays_fee), withdrawn.fee)
        if fee < withdrawn.fee and self.balances.total(who):
            self.balances.deposit(who, withdrawn.fee - fee)
        else:
            fee = withdrawn.fee
        author = self.author
        if author is not None and fee and self.balances.free(author) + fee >= self.balances.existential_deposit:
            self.balances.deposit(author, fee)
        self.balances.system.deposit_event(TransactionFeePaid(who, fee, withdrawn.tip))
        return fee

    def __repr__(self) -> str:
        return f"<TransactionPayment, {self.byte_fee} a byte, multiplier {self.multiplier / ONE:g}>"
