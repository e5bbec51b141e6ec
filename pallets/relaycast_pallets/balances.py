"""The balances pallet: what accounts own freely, and what is held from them for a reason.

What is issued equals what all accounts have, free and held, after every call. Accounts and holds have a node's bytes
(``System::Account``, ``Balances::Holds``).

With an existential deposit an account begins with at least that much free. An account that falls below it is removed:
its nonce is forgotten and what was left is no longer issued. While something is held, the account keeps its deposit.
Without one, the default, an account lives while it has anything or has sent a transaction; no event tells of it.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from relaycast_pallets.frame.account import IS_NEW_LOGIC, AccountData, AccountInfo
from relaycast_pallets.frame.dispatch import (
    ArithmeticOverflow,
    ConsumerRemaining,
    Origin,
    TokenError,
    ensure_root,
    ensure_signed,
)
from relaycast_pallets.frame.system import Event, System
from relaycast_pallets.frame.typed_storage import (
    ACCOUNT_ID,
    BLAKE2_128_CONCAT,
    U128,
    StorageCodec,
    StorageMap,
    StorageValue,
    read_all,
)
from relaycast_pallets.frame.weights import CallWeight, Term, WeightTable
from relaycast_trie.scale import encode_u128, encode_vec
from relaycast_xcm.primitives import ROCKS_DB, U128_MAX, AccountId, Balance, Compact128, Lookup, Rust, Weight


class InsufficientBalance(TokenError, message="account {account} has {available}, needs {needed}"):
    """``account`` has ``available`` where ``needed`` is asked for (``TokenError::FundsUnavailable``)."""

    detail = "FundsUnavailable"

    account: AccountId
    available: int
    needed: int


class BelowMinimum(
    TokenError, message="account {account} would have {free}, the existential deposit is {existential_deposit}"
):
    """``account`` would have ``free``, less than the ``existential_deposit``."""

    detail = "BelowMinimum"

    account: AccountId
    free: int
    existential_deposit: int


class Frozen(TokenError, message="account {account} may spend {spendable}, needs {needed}"):
    """``account`` may spend ``spendable`` of its free funds, and ``needed`` is asked for."""

    detail = "Frozen"

    account: AccountId
    spendable: int
    needed: int


class NotExpendable(
    TokenError, message="account {account} would be left with {left}, less than the existential deposit"
):
    """The call keeps ``account`` alive and would leave it ``left``, less than the existential deposit."""

    detail = "NotExpendable"

    account: AccountId
    left: int


class CannotCreateHold(TokenError, message="account {account} does not exist: nothing of it can be held"):
    """``account`` does not exist."""

    detail = "CannotCreateHold"

    account: AccountId


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


__all__ = ["WEIGHTS", "Balances", "HoldReason", "InsufficientBalance"]

_UPSTREAM = "pallet-balances' weights.rs of May 2024"
WEIGHTS = WeightTable.of(
    CallWeight("transfer_allow_death", Term(Weight(48_363_000, 3_593), 1, 1), {}, _UPSTREAM),
    CallWeight("transfer_keep_alive", Term(Weight(38_159_000, 3_593), 1, 1), {}, _UPSTREAM),
    CallWeight("transfer_all", Term(Weight(47_385_000, 3_593), 1, 1), {}, _UPSTREAM),
    CallWeight("force_set_balance", Term(Weight(19_929_000, 3_593), 1, 1), {}, _UPSTREAM),
)
"""What calls weigh."""


def _encode_holds(holds: Mapping[bytes, int]) -> bytes:
    return encode_vec(reason + encode_u128(amount) for reason, amount in holds.items())


def _decode_holds(data: bytes) -> dict[bytes, int]:
    return read_all(data, lambda reader: {reader.take(2): reader.u128() for _ in range(reader.length(18))})


class Balances:
    """Free funds and holds of every account. Amounts are plain integers in the smallest unit, from 0 to 2**128 - 1."""

    PALLET = "Balances"

    def __init__(self, system: System, *, existential_deposit: Balance = 0) -> None:
        _check_amount(existential_deposit)
        self.system = system
        self.existential_deposit = existential_deposit
        state, pallet = system.state, self.PALLET
        holds = StorageCodec("Vec<IdAmount<RuntimeHoldReason, u128>>", _encode_holds, _decode_holds)
        self.holds = StorageMap(state, pallet, "Holds", (BLAKE2_128_CONCAT, ACCOUNT_ID), holds)
        self._total_issuance = StorageValue(state, pallet, "TotalIssuance", U128, default=0)

    def weight(self, call: str) -> Weight:
        """Return what ``call`` weighs."""
        return WEIGHTS[call].at(ROCKS_DB)

    def transfer_allow_death(self, origin: Origin, dest: Lookup, value: Compact128) -> Weight:
        """Move free funds to ``dest``; the sender's account may be removed by it.

        Raises ``BadOrigin``, ``InsufficientBalance``, ``Frozen`` or ``BelowMinimum``.
        """
        self.transfer(ensure_signed(origin), dest, value)
        return self.weight("transfer_allow_death")

    def transfer_keep_alive(self, origin: Origin, dest: Lookup, value: Compact128) -> Weight:
        """Move free funds to ``dest``; the sender keeps the existential deposit.

        Raises ``BadOrigin``, ``InsufficientBalance``, ``Frozen``, ``NotExpendable`` or ``BelowMinimum``.
        """
        self.transfer(ensure_signed(origin), dest, value, keep_alive=True)
        return self.weight("transfer_keep_alive")

    def transfer_all(self, origin: Origin, dest: Lookup, keep_alive: bool) -> Weight:
        """Move all that the sender can spend to ``dest``, with ``keep_alive`` all but the existential deposit.

        Raises ``BadOrigin`` or ``BelowMinimum``.
        """
        sender = ensure_signed(origin)
        self.transfer(sender, dest, self.spendable(sender, keep_alive=keep_alive), keep_alive=keep_alive)
        return self.weight("transfer_all")

    def force_set_balance(self, origin: Origin, who: Lookup, new_free: Compact128) -> Weight:
        """Give ``who`` another free balance, as governance wants it; less than the existential deposit counts as 0.

        Raises ``BadOrigin``, ``ConsumerRemaining`` or ``ArithmeticOverflow``.
        """
        ensure_root(origin)
        free = 0 if new_free < self.existential_deposit else new_free
        info = self.system.account_info(who)
        data = info.data
        issued = self.total_issuance - data.free + free
        _check_fits(issued)
        if free < self.existential_deposit <= data.free and not info.can_lose_a_provider:
            raise ConsumerRemaining(who)

        self._total_issuance.put(issued)
        self._write(who, replace(data, free=free))
        self.system.deposit_event(BalanceSet(who, free))
        return self.weight("force_set_balance")

    @property
    def total_issuance(self) -> int:
        """What all accounts have together, free and held."""
        return self._total_issuance.get() or 0

    def free(self, account: AccountId) -> int:
        return self._data(account).free

    def total(self, account: AccountId) -> int:
        """Return what the account has, free and held."""
        return self._data(account).total

    def spendable(self, account: AccountId, *, keep_alive: bool = False) -> int:
        """Return how much of the free funds may leave the account (``reducible_balance``)."""
        info = self.system.account_info(account)
        data = info.data
        kept = max(data.frozen - data.reserved, 0)
        if keep_alive or not info.can_lose_a_provider:
            kept = max(kept, self.existential_deposit)
        return max(data.free - kept, 0)

    def held(self, account: AccountId, reason: HoldReason) -> int:
        """Return what is on hold for ``reason``."""
        return (self.holds.get(account) or {}).get(reason.encode(), 0)

    def mint(self, account: AccountId, amount: int) -> None:
        """Issue ``amount`` to ``account``: the genesis, or a faucet of a test network.

        Raises ``BelowMinimum`` where an account would begin below the existential deposit, or ``ArithmeticOverflow``.
        """
        _check_amount(amount)
        data = self._data(account)
        issued = self.total_issuance + amount
        _check_fits(issued)
        self._require_minimum(account, data.free + amount, amount)

        self._total_issuance.put(issued)
        self._write(account, replace(data, free=data.free + amount))

    def mint_into(self, account: AccountId, amount: int) -> None:
        """Issue ``amount`` to ``account`` and say so: what a message deposits (``fungible::Mutate``)."""
        self.mint(account, amount)
        self.system.deposit_event(Minted(account, amount))

    def burn_from(self, account: AccountId, amount: int) -> None:
        """Take free funds out of issuance: what a message withdraws; raises ``InsufficientBalance``."""
        self._take(account, amount, keep_alive=False)
        self.system.deposit_event(Burned(account, amount))

    def withdraw(self, account: AccountId, amount: int) -> None:
        """Take a fee out of issuance; the account keeps the existential deposit. Raises ``InsufficientBalance``."""
        self._take(account, amount, keep_alive=True)
        self.system.deposit_event(Withdraw(account, amount))

    def deposit(self, account: AccountId, amount: int) -> None:
        """Issue ``amount`` to ``account``: what was too much of a fee. Raises what ``mint`` raises."""
        self.mint(account, amount)
        self.system.deposit_event(Deposit(account, amount))

    def deposit_fees(self, account: AccountId, amount: int) -> None:
        """Issue ``amount`` and deposit it with ``account`` (``fungible::Balanced`` ``issue`` and ``resolve``).

        An amount that could not begin the account is lost: nothing is issued then.
        """
        if amount and self.free(account) + amount < self.existential_deposit:
            return
        self.system.deposit_event(Issued(amount))
        self.deposit(account, amount)

    def transfer(self, source: AccountId, destination: AccountId, amount: int, *, keep_alive: bool = False) -> None:
        """Move free funds. Nothing happens from an account to itself, once it is certain that it could.

        Raises ``InsufficientBalance``, ``Frozen``, ``NotExpendable`` with ``keep_alive``, or ``BelowMinimum``.
        """
        _check_amount(amount)
        self._require_spendable(source, amount, keep_alive=keep_alive)
        self._require_minimum(destination, self.free(destination) + amount, amount)
        if source == destination:
            return

        if amount:
            data = self._data(source)
            self._write(source, replace(data, free=data.free - amount))
            data = self._data(destination)
            self._write(destination, replace(data, free=data.free + amount))
        self.system.deposit_event(Transfer(source, destination, amount))

    def hold(self, account: AccountId, reason: HoldReason, amount: int) -> None:
        """Take free funds out of reach of their owner, who keeps the existential deposit free.

        Raises ``InsufficientBalance`` or, without an account, ``CannotCreateHold``.
        """
        _check_amount(amount)
        info = self.system.account_info(account)
        if self.existential_deposit and not info.providers:
            raise CannotCreateHold(account)
        kept = self.existential_deposit if info.providers == 1 else 0
        available = max(info.data.free - kept, 0)
        if available < amount:
            raise InsufficientBalance(account, available, amount)

        data = info.data
        self._write(account, replace(data, free=data.free - amount, reserved=data.reserved + amount))
        self._change_hold(account, reason, amount)
        self.system.deposit_event(Held(reason, account, amount))

    def release(self, account: AccountId, reason: HoldReason, amount: int) -> None:
        """Give held funds back; raises ``InsufficientBalance`` when less is on hold."""
        self._require_held(account, reason, amount)

        data = self._data(account)
        self._change_hold(account, reason, -amount)
        self._write(account, replace(data, free=data.free + amount, reserved=data.reserved - amount))
        self.system.deposit_event(Released(reason, account, amount))

    def slash(self, account: AccountId, reason: HoldReason, amount: int) -> None:
        """Burn held funds; raises ``InsufficientBalance`` when less is on hold."""
        self._require_held(account, reason, amount)

        data = self._data(account)
        self._change_hold(account, reason, -amount)
        self._write(account, replace(data, reserved=data.reserved - amount))
        self._total_issuance.put(self.total_issuance - amount)
        self.system.deposit_event(BurnedHeld(reason, account, amount))

    def _data(self, account: AccountId) -> AccountData:
        return self.system.account_info(account).data

    def _take(self, account: AccountId, amount: int, *, keep_alive: bool) -> None:
        _check_amount(amount)
        spendable = self.spendable(account, keep_alive=keep_alive)
        if spendable < amount:
            raise InsufficientBalance(account, spendable, amount)

        data = self._data(account)
        self._total_issuance.put(self.total_issuance - amount)
        self._write(account, replace(data, free=data.free - amount))

    def _write(self, account: AccountId, data: AccountData) -> None:
        """Store ``data``, and create or remove the account as the existential deposit has it."""
        before = self.system.account_info(account)
        data = replace(data, flags=data.flags | IS_NEW_LOGIC)
        if self.existential_deposit:
            self._write_above_deposit(account, before, data)
        elif data.total or before.nonce:
            consumers = before.consumers + bool(data.reserved) - bool(before.data.reserved)
            kept = replace(before, consumers=max(consumers, 0), providers=max(before.providers, 1), data=data)
            self.system.account.insert(account, kept)
        else:
            self.system.account.remove(account)

    def _write_above_deposit(self, account: AccountId, before: AccountInfo, data: AccountData) -> None:
        """Change the account step by step as ``try_mutate_account`` does, for the order of its events."""
        old, deposit, system = before.data, self.existential_deposit, self.system
        if data == old:
            return
        provided, provides = old.free >= deposit, data.free >= deposit
        consumed, consumes = bool(old.reserved or old.frozen), bool(data.reserved or data.frozen)
        if provides and not provided:
            system.inc_providers(account)
        if consumed and not consumes:
            system.dec_consumers(account)
        if consumes and not consumed:
            system.inc_consumers(account)
        if provided and not provides:
            system.dec_providers(account)
        stays = provides or bool(data.reserved)
        info = system.account_info(account)
        if info.is_kept:
            system.account.insert(account, replace(info, data=data if stays else AccountData()))
        if old == AccountData():
            system.deposit_event(Endowed(account, data.free))
        if data.free and not stays:
            self._total_issuance.put(self.total_issuance - data.free)
            system.deposit_event(DustLost(account, data.free))

    def _change_hold(self, account: AccountId, reason: HoldReason, change: int) -> None:
        holds = dict(self.holds.get(account) or {})
        amount = holds.pop(reason.encode(), 0) + change
        if amount:
            holds[reason.encode()] = amount
        if holds:
            self.holds.insert(account, holds)
        else:
            self.holds.remove(account)

    def _require_spendable(self, account: AccountId, amount: int, *, keep_alive: bool) -> None:
        free = self.free(account)
        if free < amount:
            raise InsufficientBalance(account, free, amount)
        spendable = self.spendable(account)
        if spendable < amount:
            raise Frozen(account, spendable, amount)
        if keep_alive and amount and free - amount < self.existential_deposit:
            raise NotExpendable(account, free - amount)

    def _require_minimum(self, account: AccountId, free: int, amount: int) -> None:
        if amount and free < self.existential_deposit:
            raise BelowMinimum(account, free, self.existential_deposit)

    def _require_held(self, account: AccountId, reason: HoldReason, amount: int) -> None:
        _check_amount(amount)
        held = self.held(account, reason)
        if held < amount:
            raise InsufficientBalance(account, held, amount)

    def __repr__(self) -> str:
        return f"<Balances {self.system.account.count()} accounts, {self.total_issuance} issued>"


def _check_amount(amount: int) -> None:
    if amount < 0:
        raise ValueError(f"an amount is not negative, got {amount}")


def _check_fits(total: int) -> None:
    if total > U128_MAX:
        raise ArithmeticOverflow(total)
