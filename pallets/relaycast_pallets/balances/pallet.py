"""The balances pallet: what accounts own freely, and what is held from them for a reason.

What is issued equals what all accounts have, free and held, after every call. Accounts and holds have a node's bytes
(``System::Account``, ``Balances::Holds``). There is no existential deposit: an account lives while it has anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from relaycast_pallets.frame.system import (
    ACCOUNT_ID,
    BLAKE2_128_CONCAT,
    U128,
    AccountId,
    DispatchError,
    Event,
    StorageCodec,
    StorageMap,
    StorageValue,
    System,
)
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_u32, encode_u128, encode_vec

IS_NEW_LOGIC = 1 << 127
"""The flag that pallet-balances sets on every account it writes (``ExtraFlags``)."""


class InsufficientBalance(DispatchError):
    """``account`` has ``available`` where ``needed`` is asked for (``TokenError::FundsUnavailable``)."""

    upstream = "FundsUnavailable"

    def __init__(self, account: AccountId, available: int, needed: int) -> None:
        super().__init__(account, available, needed)
        self.account = account
        self.available = available
        self.needed = needed

    def __str__(self) -> str:
        return f"account 0x{self.account.hex()} has {self.available}, needs {self.needed}"


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


@dataclass(frozen=True, slots=True)
class Held(Event):
    """``amount`` of ``account`` went on hold for ``reason``."""

    pallet: ClassVar[str] = "Balances"
    reason: HoldReason
    account: AccountId
    amount: int


@dataclass(frozen=True, slots=True)
class Released(Event):
    """``amount`` of ``account`` that was on hold for ``reason`` is free again."""

    pallet: ClassVar[str] = "Balances"
    reason: HoldReason
    account: AccountId
    amount: int


@dataclass(frozen=True, slots=True)
class Slashed(Event):
    """``amount`` of ``account`` that was on hold for ``reason`` is no longer issued."""

    pallet: ClassVar[str] = "Balances"
    reason: HoldReason
    account: AccountId
    amount: int


@dataclass(frozen=True, slots=True)
class Transferred(Event):
    """``amount`` went from ``source`` to ``destination``."""

    pallet: ClassVar[str] = "Balances"
    source: AccountId
    destination: AccountId
    amount: int


@dataclass(frozen=True, slots=True)
class Burned(Event):
    """``amount`` of ``account`` is no longer issued."""

    pallet: ClassVar[str] = "Balances"
    account: AccountId
    amount: int


@dataclass(frozen=True, slots=True)
class Minted(Event):
    """``amount`` was issued to ``account``."""

    pallet: ClassVar[str] = "Balances"
    account: AccountId
    amount: int


@dataclass(frozen=True, slots=True)
class Issued(Event):
    """``amount`` was issued, to be deposited."""

    pallet: ClassVar[str] = "Balances"
    amount: int


@dataclass(frozen=True, slots=True)
class Deposited(Event):
    """``account`` received ``amount``, as a fee for instance."""

    pallet: ClassVar[str] = "Balances"
    account: AccountId
    amount: int


@dataclass(frozen=True, slots=True)
class AccountData:
    """An account's ``free`` funds and the ``reserved`` sum of what is held from it."""

    free: int = 0
    reserved: int = 0

    def encode(self) -> bytes:
        """SCALE ``AccountInfo``: nonce, consumers, providers, sufficients; free, reserved, frozen, flags."""
        references = encode_u32(0) + encode_u32(1 if self.reserved else 0) + encode_u32(1) + encode_u32(0)
        return references + b"".join(map(encode_u128, (self.free, self.reserved, 0, IS_NEW_LOGIC)))

    @classmethod
    def decode(cls, data: bytes) -> "AccountData":
        if len(data) != 80:
            raise CodecError(f"an AccountInfo has 80 bytes, got {len(data)}")
        reader = ScaleReader(data, 16)
        return cls(reader.u128(), reader.u128())


def _encode_holds(holds: Mapping[bytes, int]) -> bytes:
    return encode_vec(reason + encode_u128(amount) for reason, amount in holds.items())


def _decode_holds(data: bytes) -> dict[bytes, int]:
    reader = ScaleReader(data)
    holds = {reader.take(2): reader.u128() for _ in range(reader.length(18))}
    reader.done()
    return holds


class Balances:
    """Free funds and holds of every account. Amounts are plain integers in the smallest unit, from 0 to 2**128 - 1."""

    PALLET = "Balances"

    def __init__(self, system: System) -> None:
        self.system = system
        state, pallet = system.state, self.PALLET
        account_key = (BLAKE2_128_CONCAT, ACCOUNT_ID)
        accounts = StorageCodec("AccountInfo", AccountData.encode, AccountData.decode)
        self.account = StorageMap(state, System.PALLET, "Account", account_key, accounts)
        self.holds = StorageMap(
            state, pallet, "Holds", account_key, StorageCodec("Holds", _encode_holds, _decode_holds)
        )
        self._total_issuance = StorageValue(state, pallet, "TotalIssuance", U128)

    @property
    def total_issuance(self) -> int:
        """What all accounts have together, free and held."""
        return self._total_issuance.get() or 0

    def free(self, account: AccountId) -> int:
        return self._data(account).free

    def held(self, account: AccountId, reason: HoldReason) -> int:
        """Return what is on hold for ``reason``."""
        return (self.holds.get(account) or {}).get(reason.encode(), 0)

    def mint(self, account: AccountId, amount: int) -> None:
        """Issue ``amount`` to ``account``: the genesis, or a faucet of a test network."""
        _check_amount(amount)
        data = self._data(account)
        self._total_issuance.put(self.total_issuance + amount)
        self._write(account, AccountData(data.free + amount, data.reserved))

    def mint_into(self, account: AccountId, amount: int) -> None:
        """Issue ``amount`` to ``account`` and say so: what a message deposits (``fungible::Mutate``)."""
        self.mint(account, amount)
        self.system.deposit_event(Minted(account, amount))

    def burn_from(self, account: AccountId, amount: int) -> None:
        """Take free funds out of issuance: what a message withdraws; raises ``InsufficientBalance``."""
        _check_amount(amount)
        data = self._require_free(account, amount)

        self._write(account, AccountData(data.free - amount, data.reserved))
        self._total_issuance.put(self.total_issuance - amount)
        self.system.deposit_event(Burned(account, amount))

    def deposit_fees(self, account: AccountId, amount: int) -> None:
        """Issue ``amount`` and deposit it with ``account`` (``fungible::Balanced`` ``issue`` and ``resolve``)."""
        self.mint(account, amount)
        self.system.deposit_event(Issued(amount))
        self.system.deposit_event(Deposited(account, amount))

    def transfer(self, source: AccountId, destination: AccountId, amount: int) -> None:
        """Move free funds; raises ``InsufficientBalance``."""
        _check_amount(amount)
        data = self._require_free(source, amount)

        self._write(source, AccountData(data.free - amount, data.reserved))
        other = self._data(destination)
        self._write(destination, AccountData(other.free + amount, other.reserved))
        self.system.deposit_event(Transferred(source, destination, amount))

    def hold(self, account: AccountId, reason: HoldReason, amount: int) -> None:
        """Take free funds out of reach of their owner; raises ``InsufficientBalance``."""
        _check_amount(amount)
        data = self._require_free(account, amount)

        self._write(account, AccountData(data.free - amount, data.reserved + amount))
        self._change_hold(account, reason, amount)
        self.system.deposit_event(Held(reason, account, amount))

    def release(self, account: AccountId, reason: HoldReason, amount: int) -> None:
        """Give held funds back; raises ``InsufficientBalance`` when less is on hold."""
        self._require_held(account, reason, amount)

        data = self._data(account)
        self._change_hold(account, reason, -amount)
        self._write(account, AccountData(data.free + amount, data.reserved - amount))
        self.system.deposit_event(Released(reason, account, amount))

    def slash(self, account: AccountId, reason: HoldReason, amount: int) -> None:
        """Burn held funds; raises ``InsufficientBalance`` when less is on hold."""
        self._require_held(account, reason, amount)

        data = self._data(account)
        self._change_hold(account, reason, -amount)
        self._write(account, AccountData(data.free, data.reserved - amount))
        self._total_issuance.put(self.total_issuance - amount)
        self.system.deposit_event(Slashed(reason, account, amount))

    def _data(self, account: AccountId) -> AccountData:
        return self.account.get(account) or AccountData()

    def _write(self, account: AccountId, data: AccountData) -> None:
        if data.free or data.reserved:
            self.account.insert(account, data)
        else:
            self.account.remove(account)

    def _change_hold(self, account: AccountId, reason: HoldReason, change: int) -> None:
        holds = dict(self.holds.get(account) or {})
        amount = holds.pop(reason.encode(), 0) + change
        if amount:
            holds[reason.encode()] = amount
        if holds:
            self.holds.insert(account, holds)
        else:
            self.holds.remove(account)

    def _require_free(self, account: AccountId, amount: int) -> AccountData:
        data = self._data(account)
        if data.free < amount:
            raise InsufficientBalance(account, data.free, amount)
        return data

    def _require_held(self, account: AccountId, reason: HoldReason, amount: int) -> None:
        _check_amount(amount)
        held = self.held(account, reason)
        if held < amount:
            raise InsufficientBalance(account, held, amount)

    def __repr__(self) -> str:
        return f"<Balances {self.account.count()} accounts, {self.total_issuance} issued>"


def _check_amount(amount: int) -> None:
    if amount < 0:
        raise ValueError(f"an amount is not negative, got {amount}")
