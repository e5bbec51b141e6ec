"""What balances tell, with the names, the fields and the order of pallet-balances."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from relaycast_pallets.frame.events import Event
from relaycast_xcm.primitives import AccountId, Balance, Rust


@dataclass(frozen=True, slots=True)
class HoldReason:
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


@dataclass(frozen=True, slots=True)
class BalancesEvent(Event):
    """An event of this pallet."""

    pallet: ClassVar[str] = "Balances"


@dataclass(frozen=True, slots=True)
class Endowed(BalancesEvent):
    """``account`` began with ``free_balance``."""

    account: AccountId
    free_balance: Balance


@dataclass(frozen=True, slots=True)
class DustLost(BalancesEvent):
    """``account`` was removed with ``amount``, less than the existential deposit, which is no longer issued."""

    account: AccountId
    amount: Balance


@dataclass(frozen=True, slots=True)
class Transfer(BalancesEvent):
    """``amount`` went ``from`` one account ``to`` another."""

    from_: AccountId
    to: AccountId
    amount: Balance


@dataclass(frozen=True, slots=True)
class BalanceSet(BalancesEvent):
    """Governance gave ``who`` the balance ``free``."""

    who: AccountId
    free: Balance


@dataclass(frozen=True, slots=True)
class Deposit(BalancesEvent):
    """``who`` received ``amount``: a fee, or what was too much of one."""

    who: AccountId
    amount: Balance


@dataclass(frozen=True, slots=True)
class Withdraw(BalancesEvent):
    """``amount`` was taken from ``who``, as a fee for instance."""

    who: AccountId
    amount: Balance


@dataclass(frozen=True, slots=True)
class Minted(BalancesEvent):
    """``amount`` was issued to ``who``."""

    who: AccountId
    amount: Balance


@dataclass(frozen=True, slots=True)
class Burned(BalancesEvent):
    """``amount`` of ``who`` is no longer issued."""

    who: AccountId
    amount: Balance


@dataclass(frozen=True, slots=True)
class Issued(BalancesEvent):
    """``amount`` was issued, to be deposited."""

    amount: Balance


@dataclass(frozen=True, slots=True)
class Held(BalancesEvent):
    """``amount`` of ``who`` went on hold for ``reason``."""

    reason: RuntimeHoldReason
    who: AccountId
    amount: Balance


@dataclass(frozen=True, slots=True)
class BurnedHeld(BalancesEvent):
    """``amount`` of ``who`` that was on hold for ``reason`` is no longer issued."""

    reason: RuntimeHoldReason
    who: AccountId
    amount: Balance


@dataclass(frozen=True, slots=True)
class Released(BalancesEvent):
    """``amount`` of ``who`` that was on hold for ``reason`` is free again."""

    reason: RuntimeHoldReason
    who: AccountId
    amount: Balance
