"""What every pallet stands on: who calls, what a call says, what it weighs, and storage with types.

A call checks its origin, then its arguments, then writes, then deposits its events. The event log lives beside the
storage (a node keeps it under ``System::Events``) and rolls back with it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeVar

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
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.primitives import AccountId, BlockNumber, ParaId, Weight, WeightMeter

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

E = TypeVar("E", bound="Event")


class DispatchError(RelaycastError):
    """A call that is refused; the state stays as it was."""


class BadOrigin(DispatchError):
    """The call is not open to this ``origin``; ``expected`` says to whom it is."""

    def __init__(self, origin: "Origin", expected: str) -> None:
        super().__init__(origin, expected)
        self.origin = origin
        self.expected = expected

    def __str__(self) -> str:
        return f"the origin is {self.origin}, expected {self.expected}"


class ExhaustsResources(DispatchError):
    """A call that ``declares`` more weight than the block has ``left`` (``InvalidTransaction::ExhaustsResources``)."""

    def __init__(self, declared: Weight, left: Weight) -> None:
        super().__init__(declared, left)
        self.declared = declared
        self.left = left

    def __str__(self) -> str:
        return f"the call declares {self.declared}, the block has {self.left} left"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who makes a call: governance (``root``), an account, a parachain through XCM, or nobody (an inherent)."""

    kind: str
    account: AccountId | None = None
    para_id: ParaId | None = None

    @classmethod
    def root(cls) -> "Origin":
        return cls("root")

    @classmethod
    def signed(cls, account: AccountId) -> "Origin":
        if len(account) != 32:
            raise ValueError(f"an account id has 32 bytes, got {len(account)}")
        return cls("signed", account=account)

    @classmethod
    def parachain(cls, para_id: int) -> "Origin":
        return cls("parachain", para_id=ParaId(para_id))

    @classmethod
    def none(cls) -> "Origin":
        return cls("none")

    def __str__(self) -> str:
        if self.account is not None:
            return f"account 0x{self.account.hex()}"
        return self.kind if self.para_id is None else f"parachain {self.para_id}"


def ensure_root(origin: Origin) -> None:
    """Refuse every origin but governance with ``BadOrigin``."""
    if origin.kind != "root":
        raise BadOrigin(origin, "root")


def ensure_signed(origin: Origin) -> AccountId:
    """Return the account that signed; ``BadOrigin`` when none did."""
    if origin.account is None:
        raise BadOrigin(origin, "an account")
    return origin.account


def ensure_parachain(origin: Origin) -> ParaId:
    """Return the parachain that calls; ``BadOrigin`` when none does."""
    if origin.para_id is None:
        raise BadOrigin(origin, "a parachain")
    return origin.para_id


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in ``pallet``; subclasses are past participles with their fields."""

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


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """How a call ended: what it weighed, and why it was refused if it was."""

    weight: Weight
    error: DispatchError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


class System:
    """The block that is being built: its number, its parent, its events and the weight used so far (frame-system)."""

    PALLET = "System"

    def __init__(self, state: State, *, max_block: Weight = Weight.MAX) -> None:
        self.state = state
        self.max_block = max_block
        self.events = Events()
        self.meter = WeightMeter(max_block)
        self._number = StorageValue(state, self.PALLET, "Number", U32)
        self._parent_hash = StorageValue(state, self.PALLET, "ParentHash", BYTES32)
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

    def apply(self, call: Callable[[], Weight], *, declared: Weight) -> DispatchResult:
        """Make a call that ``declared`` its worst weight and returns what it used.

        A refused call leaves no trace but its weight. What does not fit into the block any more is refused with
        ``ExhaustsResources`` and weighs nothing.
        """
        if not self.meter.can_consume(declared):
            return DispatchResult(Weight.ZERO, ExhaustsResources(declared, self.meter.remaining()))
        try:
            with self.state.transaction():
                result = DispatchResult(call())
        except DispatchError as refusal:
            result = DispatchResult(declared, refusal)
        self.meter.consume(result.weight)
        return result

    def __repr__(self) -> str:
        return f"<System block {self.block_number}, {len(self.events)} events, {self.meter.consumed} used>"
