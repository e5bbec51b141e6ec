"""What a subscriber declares and receives: keys of publishers, and values with the time they have left."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Protocol, Self, TypeGuard, cast, runtime_checkable

from msgspec import Struct

from relaycast_pallets.broadcaster.storage import INFINITE
from relaycast_trie.hasher import blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_xcm.primitives import U32_MAX, BlockCount, BlockNumber, ParaId, Weight


class SubscribedKey(bytes):
    """The 32 bytes under which a publisher writes (``SubscribedKey(H256)``)."""

    __slots__ = ()

    def __new__(cls, key: bytes) -> Self:
        if len(key) != 32:
            raise ValueError(f"a subscribed key has 32 bytes, got {len(key)}")
        return super().__new__(cls, key)

    @classmethod
    def from_hash(cls, key: bytes) -> Self:
        """Take a hash that was computed before, as it is."""
        return cls(key)

    @classmethod
    def from_data(cls, data: bytes) -> Self:
        """Hash ``data`` with Blake2b-256."""
        return cls(blake2_256(data))

    def __repr__(self) -> str:
        return f"SubscribedKey(0x{self.hex()})"


@cache
def subscribed_key(name: str) -> SubscribedKey:
    """Return the key of a name that is known beforehand, hashed once (the macro ``subscribed_key!``)."""
    return SubscribedKey.from_data(name.encode())


class SubscribedPaths(Struct, frozen=True):
    """Subscribed keys of one publisher in their order, with their nibbles."""

    keys: tuple[SubscribedKey, ...]
    paths: tuple[bytes, ...]

    @classmethod
    def of(cls, keys: Sequence[SubscribedKey]) -> "SubscribedPaths":
        return cls(tuple(keys), tuple(map(to_nibbles, keys)))


class Infinite(Struct, frozen=True):
    """The value never expires."""

    def encode(self) -> bytes:
        return b"\x00"


class ValidFor(Struct, frozen=True):
    """The value expires in ``remaining_blocks`` relay blocks."""

    remaining_blocks: BlockCount

    def encode(self) -> bytes:
        return b"\x01" + self.remaining_blocks.to_bytes(4, "little")


class TimedOut(Struct, frozen=True):
    """The value has expired and waits for its deletion."""

    def encode(self) -> bytes:
        return b"\x02"


TtlState = Infinite | ValidFor | TimedOut


def compute_ttl_state(ttl: BlockCount, when_inserted: BlockNumber, now: BlockNumber) -> TtlState:
    """Return what is left of a time to live at ``now``; all three count blocks of the relay chain."""
    if ttl == INFINITE:
        return Infinite()
    expiry = when_inserted + ttl
    return TimedOut() if now >= expiry else ValidFor(min(expiry - now, U32_MAX))


Subscriptions = Sequence[tuple[ParaId, Sequence[SubscribedKey]]]


class SubscriptionHandler(Protocol):
    """A parachain's own side of the subscriber pallet."""

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        """Return publishers with the keys wanted from them, and what finding that out weighs."""
        ...

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: TtlState) -> Weight:
        """Take the new ``value`` that ``publisher`` gave ``key``; return what that weighed."""
        ...


Update = tuple[SubscribedKey, bytes, TtlState]
"""A key, its new value, and what is left of the value's time to live."""


class TakesMany(SubscriptionHandler, Protocol):
    """A handler that takes all updates of one publisher in a block at once."""

    def on_data_updated_many(self, publisher: ParaId, updates: Sequence[Update]) -> Sequence[Weight]:
        """Take ``updates`` as ``on_data_updated`` would take one after the other; return what each of them weighed."""
        ...


def takes_many(handler: SubscriptionHandler) -> TypeGuard[TakesMany]:
    """Return whether a handler takes many updates at once."""
    return hasattr(handler, "on_data_updated_many")


@runtime_checkable
class WeighsCallbacks(SubscriptionHandler, Protocol):
    """A handler that declares what its callbacks weigh: those of one block stay within ``callback_limit``."""

    def callback_weight(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        """Return the most that one callback for this key weighs; collator and chain must get the same answer."""
        ...


@runtime_checkable
class ChosenSubscriptions(SubscriptionHandler, Protocol):
    """A handler whose subscriptions calls may change; what a refused call changed, it takes back (``RollsBack``)."""

    def subscribe(self, publisher: ParaId, keys: Iterable[SubscribedKey]) -> None:
        """Want more ``keys`` of a publisher."""
        ...

    def unsubscribe(self, publisher: ParaId, keys: Collection[SubscribedKey]) -> None:
        """Want these keys no more."""
        ...


@runtime_checkable
class HearsDeletions(SubscriptionHandler, Protocol):
    """A handler with a callback for deletions; the policy ``NotifyDeletions`` requires it."""

    def on_data_deleted(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        """Handle the deletion of a delivered ``key``; return the weight that this used."""
        ...


class CombinedHandlers:
    """Several handlers as one: every one of them hears of the keys that it subscribes to."""

    def __init__(self, handlers: Iterable[SubscriptionHandler]) -> None:
        self.handlers = tuple(handlers)

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        declared: list[tuple[ParaId, Sequence[SubscribedKey]]] = []
        weight = Weight.ZERO
        for handler in self.handlers:
            wanted, cost = handler.subscriptions()
            declared.extend(wanted)
            weight += cost
        return declared, weight

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: TtlState) -> Weight:
        weight = Weight.ZERO
        for handler in self._subscribed_to(publisher, key):
            weight += handler.on_data_updated(publisher, key, value, ttl_state)
        return weight

    def on_data_deleted(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        weight = Weight.ZERO
        for handler in self._subscribed_to(publisher, key):
            assert isinstance(handler, HearsDeletions), "set-up refuses handlers without on_data_deleted"
            weight += handler.on_data_deleted(publisher, key)
        return weight

    def _subscribed_to(self, publisher: ParaId, key: SubscribedKey) -> Iterator[SubscriptionHandler]:
        for handler in self.handlers:
            if _wants(handler, publisher, key):
                yield handler

    def callback_weight(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        """Return the sum of what the key's subscribers declare; a handler that declares nothing weighs 0."""
        weight = Weight.ZERO
        for handler in self._subscribed_to(publisher, key):
            weigher = weigher_of(handler)
            if weigher is not None:
                weight += weigher.callback_weight(publisher, key)
        return weight


def ensure_hears(handler: SubscriptionHandler, *, deletions: bool) -> None:
    """Raise ``ValueError`` if ``deletions`` are told and a handler, combined or alone, has no callback for them."""
    if not deletions:
        return
    if isinstance(handler, CombinedHandlers):
        for one in handler.handlers:
            ensure_hears(one, deletions=True)
    elif not isinstance(handler, HearsDeletions):
        raise ValueError(f"deletions are told to handlers with on_data_deleted, got {type(handler).__name__}")


def weigher_of(handler: SubscriptionHandler) -> WeighsCallbacks | None:
    """Return the handler if it, or one of those that it combines, declares what its callbacks weigh."""
    if isinstance(handler, CombinedHandlers) and not any(map(weigher_of, handler.handlers)):
        return None
    return cast(WeighsCallbacks, handler) if hasattr(handler, "callback_weight") else None


def _wants(handler: SubscriptionHandler, publisher: ParaId, key: SubscribedKey) -> bool:
    wanted, _ = handler.subscriptions()
    return any(para_id == publisher and key in keys for para_id, keys in wanted)


def by_publisher(subscriptions: Subscriptions) -> dict[ParaId, tuple[SubscribedKey, ...]]:
    """Return the keys of each publisher sorted and each once; publishers without keys are left out."""
    combined: dict[ParaId, set[SubscribedKey]] = {}
    for publisher, keys in subscriptions:
        combined.setdefault(ParaId(publisher), set()).update(map(SubscribedKey, keys))
    return {publisher: tuple(sorted(keys)) for publisher, keys in sorted(combined.items()) if keys}
