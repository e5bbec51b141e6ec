"""What balances tell, with the names, the fields and the order of pallet-balances."""

from typing import Annotated, ClassVar

from msgspec import Struct

from relaycast_pallets.frame.events import Event
from relaycast_xcm.primitives import AccountId, Balance, Rust


class HoldReason(Struct, frozen=True):
    """Why a pallet holds funds; encoded as the two indices of ``RuntimeHoldReason``."""

    pallet: str
    name: str
    pallet_index: int
    index: int

    def encode(self) -> bytes:
        return bytes([self.pallet_index, self.index])

    def __str__(self) -> str:
        return f"{self.pallet}::{self.name}"


RuntimeHoldReason = Annotated[HoldReason, Rust("RuntimeHoldReason")]


class BalancesEvent(Event, frozen=True):
    """An event of this pallet."""

    pallet: ClassVar[str] = "Balances"


class Endowed(BalancesEvent, frozen=True):
    """``account`` began with ``free_balance``."""

    account: AccountId
    free_balance: Balance


class DustLost(BalancesEvent, frozen=True):
    """``account`` was removed with ``amount``, less than the existential deposit, which is no longer issued."""

    account: AccountId
    amount: Balance


class Transfer(BalancesEvent, frozen=True):
    """``amount`` went ``from`` one account ``to`` another."""

    from_: AccountId
    to: AccountId
    amount: Balance


class BalanceSet(BalancesEvent, frozen=True):
    """Governance gave ``who`` the balance ``free``."""

    who: AccountId
    free: Balance


class Deposit(BalancesEvent, frozen=True):
    """``who`` received ``amount``: a fee, or what was too much of one."""

    who: AccountId
    amount: Balance


class Withdraw(BalancesEvent, frozen=True):
    """``amount`` was taken from ``who``, as a fee for instance."""

    who: AccountId
    amount: Balance


class Minted(BalancesEvent, frozen=True):
    """``amount`` was issued to ``who``."""

    who: AccountId
    amount: Balance


class Burned(BalancesEvent, frozen=True):
    """``amount`` of ``who`` is no longer issued."""

    who: AccountId
    amount: Balance


class Issued(BalancesEvent, frozen=True):
    """``amount`` was issued, to be deposited."""

    amount: Balance


class Held(BalancesEvent, frozen=True):
    """``amount`` of ``who`` went on hold for ``reason``."""

    reason: RuntimeHoldReason
    who: AccountId
    amount: Balance


class BurnedHeld(BalancesEvent, frozen=True):
    """``amount`` of ``who`` that was on hold for ``reason`` is no longer issued."""

    reason: RuntimeHoldReason
    who: AccountId
    amount: Balance


class Released(BalancesEvent, frozen=True):
    """``amount`` of ``who`` that was on hold for ``reason`` is free again."""

    reason: RuntimeHoldReason
    who: AccountId
    amount: Balance
