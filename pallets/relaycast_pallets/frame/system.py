"""The system pallet: the block that is being built, its events, and the accounts (frame-system).

A call checks its origin, then its arguments, then writes, then deposits its events. The event log lives beside the
storage (a node keeps it under ``System::Events``) and rolls back with it. What calls are made of stands in
``dispatch``, ``events`` and ``typed_storage``; this module gives all of it on.
"""

from collections.abc import Callable, Iterator
from typing import ClassVar, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from relaycast_pallets.frame.account import ACCOUNT_INFO, AccountInfo
from relaycast_pallets.frame.dispatch import (
    AnyDispatchError,
    BadOrigin,
    ConsumerRemaining,
    DispatchError,
    DispatchInfo,
    DispatchResult,
    ExhaustsResources,
    NoProviders,
    Origin,
    PostDispatchInfo,
    ensure_parachain,
    ensure_root,
    ensure_signed,
)
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import (
    ACCOUNT_ID,
    BLAKE2_128_CONCAT,
    BLAKE2_256,
    BOOL,
    BYTES32,
    IDENTITY,
    PARA_ID,
    TWOX_64_CONCAT,
    U32,
    U64,
    U128,
    StorageCodec,
    StorageDoubleMap,
    StorageHasher,
    StorageMap,
    StorageValue,
    storage_prefix,
)
from relaycast_pallets.frame.weights import CallWeight, Term, WeightTable
from relaycast_trie.hasher import blake2_256
from relaycast_xcm.primitives import H256, ROCKS_DB, AccountId, BlockNumber, VecU8, Weight, WeightMeter, u32

E = TypeVar("E", bound="Event")


class Event(Struct, frozen=True):
    """Something that happened in ``pallet``; subclasses have the names and fields that upstream gives them."""

    pallet: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Return the event as explorers show it: ``Pallet.Event``."""
        return f"{self.pallet}.{type(self).__name__}"


class Events:
    """The events of the current block, in their order; part of what a failed transaction takes back."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        self._log: list[Event] = []

    def deposit(self, event: Event) -> None:
        self._log.append(event)

    def take(self) -> list[Event]:
        """Return all events and start anew."""
        taken, self._log = self._log, []
        return taken

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one class."""
        return [event for event in self._log if isinstance(event, kind)]

    def mark(self) -> int:
        return len(self._log)

    def roll_back(self, mark: int, /) -> None:
        del self._log[mark:]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._log)

    def __len__(self) -> int:
        return len(self._log)

    def __repr__(self) -> str:
        return f"Events({self._log!r})"


class SystemEvent(Event, frozen=True):
    """An event of frame-system, with upstream's name, fields and place; the last one is of modelled chains alone."""

    pallet: ClassVar[str] = "System"


class ExtrinsicSuccess(SystemEvent, frozen=True):
    """An extrinsic was applied."""

    dispatch_info: DispatchInfo


class ExtrinsicFailed(SystemEvent, frozen=True):
    """The call of an extrinsic was refused; its fee is paid."""

    dispatch_error: AnyDispatchError
    dispatch_info: DispatchInfo


class CodeUpdated(SystemEvent, frozen=True):
    """``:code`` was replaced."""


class NewAccount(SystemEvent, frozen=True):
    """``account`` exists from now on."""

    account: AccountId


class KilledAccount(SystemEvent, frozen=True):
    """``account`` was removed, its nonce with it."""

    account: AccountId


class Remarked(SystemEvent, frozen=True):
    """``sender`` made a remark with this Blake2b-256 ``hash``."""

    sender: AccountId
    hash: H256


class RuntimeUpgraded(SystemEvent, frozen=True):
    """The block is the first that runs the code with this ``spec_version``; modelled chains begin with 1."""

    spec_version: u32


__all__ = [
    "ACCOUNT_ID",
    "BLAKE2_128_CONCAT",
    "BLAKE2_256",
    "BOOL",
    "BYTES32",
    "IDENTITY",
    "PARA_ID",
    "TWOX_64_CONCAT",
    "U32",
    "U64",
    "U128",
    "AccountId",
    "BadOrigin",
    "DispatchError",
    "DispatchResult",
    "Event",
    "Events",
    "ExhaustsResources",
    "Origin",
    "StorageCodec",
    "StorageDoubleMap",
    "StorageHasher",
    "StorageMap",
    "StorageValue",
    "System",
    "ensure_parachain",
    "ensure_root",
    "ensure_signed",
    "storage_prefix",
]

_UPSTREAM = "frame-system's weights.rs of June 2023"
WEIGHTS = WeightTable.of(
    CallWeight("remark", Term(Weight(2_119_000)), {"b": Term(Weight(390))}, _UPSTREAM),
    CallWeight("remark_with_event", Term(Weight(8_097_000)), {"b": Term(Weight(1_455))}, _UPSTREAM),
)
"""What calls weigh; ``b``: bytes of the remark."""


class System:
    """The block that is being built, its events and the weight used so far, and the accounts of the chain."""

    PALLET = "System"

    def __init__(self, state: State, *, max_block: Weight = Weight.MAX) -> None:
        self.state = state
        self.max_block = max_block
        self.events = Events()
        self.meter = WeightMeter(max_block)
        self._number = StorageValue(state, self.PALLET, "Number", U32, default=0)
        self._parent_hash = StorageValue(state, self.PALLET, "ParentHash", BYTES32, default=bytes(32))
        self.account = StorageMap(
            state, self.PALLET, "Account", (BLAKE2_128_CONCAT, ACCOUNT_ID), ACCOUNT_INFO, default=AccountInfo()
        )
        state.join(self.events)

    def initialize(self, number: BlockNumber, *, parent_hash: bytes = bytes(32)) -> None:
        """Begin block ``number``: no events, no weight used."""
        self._number.put(number)
        self._parent_hash.put(parent_hash)
        self.events.take()
        self.meter = WeightMeter(self.max_block)

    @property
    def block_number(self) -> BlockNumber:
        """The number of the current block, 0 before the first."""
        return self._number.get() or 0

    @property
    def parent_hash(self) -> bytes:
        return self._parent_hash.get() or bytes(32)

    def deposit_event(self, event: Event) -> None:
        self.events.deposit(event)

    def apply(self, call: Callable[[], Weight | PostDispatchInfo], *, declared: Weight) -> DispatchResult:
        """Make a call that ``declared`` its worst weight and returns what it used.

        A refused call leaves no trace but its weight. What no longer fits into the block is refused with
        ``ExhaustsResources`` and weighs nothing.
        """
        if not self.meter.can_consume(declared):
            return DispatchResult(Weight.ZERO, ExhaustsResources(declared, self.meter.remaining()))
        try:
            with self.state.transaction():
                used = PostDispatchInfo.of(call())
                result = DispatchResult(used.weight, pays_fee=used.pays_fee)
        except DispatchError as refusal:
            result = DispatchResult(declared, refusal.as_value())
        self.meter.consume(result.weight)
        return result

    def weight(self, call: str, **components: int) -> Weight:
        """Return what ``call`` weighs."""
        return WEIGHTS[call].at(ROCKS_DB, **components)

    def remark(self, origin: Origin, remark: VecU8) -> Weight:  # noqa: ARG002 - anybody, as upstream has it
        """Carry ``remark`` in the block; nothing is written."""
        return self.weight("remark", b=len(remark))

    def remark_with_event(self, origin: Origin, remark: VecU8) -> Weight:
        """Carry ``remark`` in the block and deposit its hash as an event. Raises ``BadOrigin``."""
        sender = ensure_signed(origin)
        self.deposit_event(Remarked(sender, blake2_256(remark)))
        return self.weight("remark_with_event", b=len(remark))

    def note_applied_extrinsic(self, info: DispatchInfo, error: DispatchError | None = None) -> None:
        """Deposit the last event of an extrinsic: applied, or refused with ``error``."""
        self.deposit_event(ExtrinsicSuccess(info) if error is None else ExtrinsicFailed(error, info))

    def account_info(self, account: AccountId) -> AccountInfo:
        """Return what is stored of ``account``, all zero when nothing is."""
        return self.account.get(account) or AccountInfo()

    def account_nonce(self, account: AccountId) -> int:
        """Return how many transactions ``account`` has sent since it exists."""
        return self.account_info(account).nonce

    def inc_account_nonce(self, account: AccountId) -> None:
        """Count a transaction of ``account``."""
        info = self.account_info(account)
        self.account.insert(account, replace(info, nonce=info.nonce + 1))

    def inc_providers(self, account: AccountId) -> None:
        """Give ``account`` a reason to be kept; the first one creates it."""
        info = self.account_info(account)
        self.account.insert(account, replace(info, providers=info.providers + 1))
        if not info.is_kept:
            self.deposit_event(NewAccount(account))

    def dec_providers(self, account: AccountId) -> None:
        """Take a reason to be kept from ``account``; without the last one it is removed, its nonce with it.

        Raises ``ConsumerRemaining`` when something depends on it.
        """
        info = self.account_info(account)
        assert info.providers, f"account 0x{account.hex()} has no provider to lose"
        if not info.can_lose_a_provider:
            raise ConsumerRemaining(account)
        left = replace(info, providers=info.providers - 1)
        if left.is_kept:
            self.account.insert(account, left)
        else:
            self.account.remove(account)
            self.deposit_event(KilledAccount(account))

    def inc_consumers(self, account: AccountId) -> None:
        """Let something depend on ``account``; raises ``NoProviders`` when it does not exist."""
        info = self.account_info(account)
        if not info.providers:
            raise NoProviders(account)
        self.account.insert(account, replace(info, consumers=info.consumers + 1))

    def dec_consumers(self, account: AccountId) -> None:
        """Let something no longer depend on ``account``."""
        info = self.account_info(account)
        assert info.consumers, f"nothing depends on account 0x{account.hex()}"
        self.account.insert(account, replace(info, consumers=info.consumers - 1))

    def __repr__(self) -> str:
        return f"<System block {self.block_number}, {len(self.events)} events, {self.meter.consumed} used>"
