"""The broadcaster pallet: relay-chain storage that parachains publish into.

Every publisher owns one child trie, named ``(b"pubsub", para_id)`` in SCALE. A call checks everything
first, then writes, then deposits its event: a refused call leaves no trace. It returns the weight that it used.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Annotated

from relaycast_pallets.balances import Balances, HoldReason
from relaycast_pallets.broadcaster.config import POLKADOT, BroadcasterConfig
from relaycast_pallets.broadcaster.errors import (
    AlreadyRegistered,
    NoDataToCleanup,
    NotManager,
    NotOwner,
    NotPublicParachain,
    NotRegistered,
    TooManyKeys,
    TooManyPublishers,
    TooManyPublishes,
    TotalStorageSizeExceeded,
    ValueTooLarge,
)
from relaycast_pallets.broadcaster.events import (
    DataCleanedUp,
    DataPublished,
    KeyExpired,
    KeysDeleted,
    KeysForcedDeleted,
    PublisherDeregistered,
    PublisherRegistered,
)
from relaycast_pallets.broadcaster.storage import (
    INFINITE,
    KEY_BYTES,
    BroadcasterStorage,
    PublishedEntry,
    PublisherInfo,
    derive_child_info,
    expires_at,
    value_bytes,
)
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.system import AccountId, Origin, System, ensure_parachain, ensure_root, ensure_signed
from relaycast_xcm.primitives import (
    LOWEST_PUBLIC_ID,
    U32_MAX,
    Balance,
    BlockCount,
    Bytes32,
    ParaId,
    Rust,
    VecU8,
    Weight,
    WeightMeter,
)


def expire_keys(system: System, storage: BroadcasterStorage, config: BroadcasterConfig, remaining: Weight) -> Weight:
    """Remove what has expired at the current block, within ``remaining``, and return the weight that was used.

    The scan follows the raw keys of ``TtlData``, which is the order of hashes, and pays for every entry. It ends before
    it would exceed ``remaining`` or the cap on scans. The cursor is the last entry that was scanned; it need not exist
    when the scan resumes after it. At the end of the map it is cleared: the next scan begins at the start.
    """
    base = config.weight("on_idle")
    each = config.weight("on_idle", n=1) - base
    meter = WeightMeter(remaining)
    if not meter.try_consume(base):
        return Weight.ZERO
    now = system.block_number
    cursor = last = storage.ttl_scan_cursor.get()
    start_after = None if cursor is None else storage.ttl_data.storage_key(*cursor)
    for scans, (publisher, key, (ttl, when_inserted)) in enumerate(storage.ttl_data.items(start_after=start_after)):
        if scans == config.max_ttl_scans_per_idle or not meter.try_consume(each):
            break
        last = (publisher, key)
        expiry = expires_at(ttl, when_inserted)
        if expiry is not None and now >= expiry:
            storage.remove(publisher, [key])
            system.deposit_event(KeyExpired(publisher, key))
    else:
        last = None
    if last is None:
        storage.ttl_scan_cursor.kill()
    elif last != cursor:
        storage.ttl_scan_cursor.put(last)
    return meter.consumed


__all__ = ["PUBLISHER_DEPOSIT", "Broadcaster", "derive_child_info"]

PUBLISHER_DEPOSIT = HoldReason("Broadcaster", "PublisherDeposit", pallet_index=200, index=0)
"""The pallet's index is assumed: no runtime has given it a lasting one."""

Keys = Annotated[Iterable[bytes], Rust("Vec<[u8; 32]>")]
"""Published keys."""


class Broadcaster:
    """The pallet over one chain's ``system`` and ``balances``; a chain of its own, at block 0, where none is given."""

    def __init__(
        self, system: System | None = None, balances: Balances | None = None, *, config: BroadcasterConfig = POLKADOT
    ) -> None:
        if system is None:
            system = System(State()) if balances is None else balances.system
        self.system = system
        self.balances = Balances(system) if balances is None else balances
        self.config = config
        self.storage = BroadcasterStorage(system.state, ttl_key_hasher=config.ttl_key_hasher)

    def register_publisher(self, origin: Origin, para_id: ParaId) -> Weight:
        """Let ``para_id`` publish, against a deposit from the account that calls and becomes its manager.

        Anyone may register any parachain that ``config.registration`` admits. Raises ``BadOrigin``,
        ``NotPublicParachain``, ``AlreadyRegistered``, ``TooManyPublishers`` or ``InsufficientBalance``.
        """
        manager = ensure_signed(origin)
        if not self.config.registration.admits(para_id):
            raise NotPublicParachain(para_id)
        self._register(para_id, manager, self.config.publisher_deposit)
        return self.config.weight("register_publisher")

    def force_register_publisher(self, origin: Origin, manager: AccountId, deposit: Balance, para_id: ParaId) -> Weight:
        """Let ``para_id`` publish, as governance wants it: any ``deposit``, held from ``manager``.

        Raises ``BadOrigin``, ``AlreadyRegistered``, ``TooManyPublishers`` or ``InsufficientBalance``.
        """
        ensure_root(origin)
        self._register(para_id, manager, deposit)
        return self.config.weight("force_register_publisher")

    def cleanup_published_data(self, origin: Origin, para_id: ParaId) -> Weight:
        """Remove everything that ``para_id`` published; it stays registered. For its manager.

        Raises ``BadOrigin``, ``NotRegistered``, ``NotManager`` or ``NoDataToCleanup``.
        """
        account = ensure_signed(origin)
        self._require_manager(para_id, account)
        if not len(self.storage.child(para_id)):
            raise NoDataToCleanup(para_id)

        removed = self._clear(para_id)
        return self.config.weight("cleanup_published_data", k=removed)

    def deregister_publisher(self, origin: Origin, para_id: ParaId) -> Weight:
        """Remove ``para_id``, everything that it published, and give its manager the deposit back. For its manager.

        One call, where the draft wants ``cleanup_published_data`` first (``MustCleanupDataFirst``).
        Raises ``BadOrigin``, ``NotRegistered`` or ``NotManager``.
        """
        account = ensure_signed(origin)
        info = self._require_manager(para_id, account)

        removed = self._deregister(para_id, info, slash=False)
        return self.config.weight("deregister_publisher", k=removed)

    def force_deregister_publisher(self, origin: Origin, para_id: ParaId) -> Weight:
        """Remove ``para_id`` and everything that it published, as governance wants it.

        The deposit goes back to the manager or, with ``slash_on_force``, is burnt.
        Raises ``BadOrigin`` or ``NotRegistered``.
        """
        ensure_root(origin)
        info = self._require_registered(para_id)

        removed = self._deregister(para_id, info, slash=self.config.slash_on_force)
        return self.config.weight("force_deregister_publisher", k=removed)

    def delete_keys(self, origin: Origin, keys: Keys, *, publisher: ParaId | None = None) -> Weight:
        """Remove ``keys`` of the parachain that calls, or of the ``publisher`` whose manager calls.

        Keys that are not there are skipped; when none is, nothing happens and no event tells of it.
        Raises ``BadOrigin``, ``NotRegistered``, ``NotManager``, or ``NotOwner`` to a parachain that names another one.
        """
        wanted = _checked_keys(keys)
        owner = self._owner(origin, publisher)

        count = self.storage.remove(owner, wanted)
        if count:
            self.system.deposit_event(KeysDeleted(owner, count))
        return self.config.weight("delete_keys", n=len(wanted))

    def force_delete_keys(self, origin: Origin, publisher: ParaId, keys: Keys) -> Weight:
        """Remove ``keys`` of ``publisher``, as governance wants it; those that are not there are skipped.

        Raises ``BadOrigin`` or, for a public parachain, ``NotRegistered``.
        """
        wanted = _checked_keys(keys)
        ensure_root(origin)
        self._require_publisher(publisher)

        count = self.storage.remove(publisher, wanted)
        if count:
            self.system.deposit_event(KeysForcedDeleted(publisher, count))
        return self.config.weight("force_delete_keys", n=len(wanted))

    def handle_publish(self, publisher: ParaId, key: Bytes32, value: VecU8, *, ttl: BlockCount = INFINITE) -> None:
        """Write ``value`` under ``key`` in the publisher's child trie, to expire ``ttl`` relay blocks from now.

        Raises ``NotRegistered``, ``ValueTooLarge``, ``TooManyKeys``, ``TotalStorageSizeExceeded`` or
        ``TooManyPublishes``; each leaves storage untouched. Its weight is ``config.weight("publish")``, charged by the
        XCM weigher.
        """
        if len(key) != KEY_BYTES or not 0 <= ttl <= U32_MAX:
            raise ValueError(f"a key has {KEY_BYTES} bytes and a ttl is a u32, got {len(key)} bytes and {ttl}")
        self._require_publisher(publisher)
        if len(value) > self.config.max_value_length:
            raise ValueTooLarge(len(value), self.config.max_value_length)
        total = self._total_with(publisher, key, value)
        self._count_publish(publisher)

        entry = PublishedEntry(value, ttl, self.system.block_number)
        self.storage.write(publisher, key, entry, total=total)
        self.system.deposit_event(DataPublished(publisher, key))

    def transaction(self) -> AbstractContextManager[None]:
        """Return a ``with`` block that leaves no trace of what was published in it when it raises."""
        return self.system.state.transaction()

    def on_idle(self, remaining: Weight) -> Weight:
        """Remove expired keys within ``remaining`` and return the weight used; see ``expire_keys``."""
        return expire_keys(self.system, self.storage, self.config, remaining)

    def offboard_publishers(self, outgoing: Iterable[ParaId]) -> Weight:
        """Forget parachains that leave the relay chain: all that they published, registered or not, and their deposits.

        For the session change (``OnNewSessionOutgoing``). What is not known is passed over.
        """
        weight = Weight.ZERO
        for para_id in outgoing:
            info = self.storage.registered_publishers.get(para_id)
            removed = self._clear(para_id) if info is None else self._deregister(para_id, info, slash=False)
            self.storage.publish_counts.remove(para_id)  # a system parachain never registered
            weight += self.config.weight("force_deregister_publisher", k=removed)
        return weight

    def _register(self, para_id: ParaId, manager: AccountId, deposit: int) -> None:
        publishers = self.storage.registered_publishers
        if para_id in publishers:
            raise AlreadyRegistered(para_id)
        if publishers.count() >= self.config.max_publishers:
            raise TooManyPublishers(self.config.max_publishers)
        if deposit:
            self.balances.hold(manager, PUBLISHER_DEPOSIT, deposit)

        publishers.insert(para_id, PublisherInfo(manager, deposit))
        self.system.deposit_event(PublisherRegistered(para_id, manager))

    def _deregister(self, para_id: ParaId, info: PublisherInfo, *, slash: bool) -> int:
        if info.deposit:
            settle = self.balances.slash if slash else self.balances.release
            settle(info.manager, PUBLISHER_DEPOSIT, info.deposit)
        removed = self._clear(para_id)
        self.storage.registered_publishers.remove(para_id)
        self.storage.publish_counts.remove(para_id)
        self.system.deposit_event(PublisherDeregistered(para_id))
        return removed

    def _clear(self, para_id: ParaId) -> int:
        removed = self.storage.clear(para_id)
        if removed:
            self.system.deposit_event(DataCleanedUp(para_id))
        return removed

    def _owner(self, origin: Origin, publisher: ParaId | None) -> ParaId:
        """Return whose keys ``origin`` may delete."""
        if origin.account is not None:
            if publisher is None:
                raise ValueError("a manager names the publisher whose keys it deletes")
            self._require_manager(publisher, origin.account)
            return publisher
        parachain = ensure_parachain(origin)
        if publisher is not None and publisher != parachain:
            raise NotOwner(publisher, parachain)
        self._require_publisher(parachain)
        return parachain

    def _require_registered(self, para_id: ParaId) -> PublisherInfo:
        info = self.storage.registered_publishers.get(para_id)
        if info is None:
            raise NotRegistered(para_id)
        return info

    def _require_manager(self, para_id: ParaId, account: AccountId) -> PublisherInfo:
        info = self._require_registered(para_id)
        if info.manager != account:
            raise NotManager(para_id, account)
        return info

    def _require_publisher(self, para_id: ParaId) -> None:
        """Refuse a public parachain that is not registered."""
        if para_id >= LOWEST_PUBLIC_ID and para_id not in self.storage.registered_publishers:
            raise NotRegistered(para_id)

    def _count_publish(self, publisher: ParaId) -> None:
        """Count a publication in this block; raises ``TooManyPublishes`` beyond the limit, if one is set."""
        limit, now = self.config.max_publishes_per_block, self.system.block_number
        if limit is None:
            return
        count = self.storage.publishes_in(publisher, now)
        if count >= limit:
            raise TooManyPublishes(publisher, limit)
        self.storage.publish_counts.insert(publisher, (count + 1, now))

    def _total_with(self, publisher: ParaId, key: bytes, value: bytes) -> int:
        """Return the publisher's storage size with ``value`` under ``key``; refuse it beyond the limits.

        An update that does not grow the size is within the limit, whatever the limit has become.
        """
        config, child = self.config, self.storage.child(publisher)
        old, before = child.get(key), self.storage.size_of(publisher)
        total = before + len(value)
        if old is not None:
            total -= value_bytes(old)
        elif len(child) >= config.max_stored_keys:
            raise TooManyKeys(publisher, config.max_stored_keys)
        else:
            total += KEY_BYTES
        if total > max(config.max_total_storage_size, before):
            raise TotalStorageSizeExceeded(publisher, total, config.max_total_storage_size)
        return total

    def __repr__(self) -> str:
        return f"<Broadcaster {self.config.name}, {self.storage.registered_publishers.count()} publishers>"


def _checked_keys(keys: Keys) -> list[bytes]:
    checked = list(keys)
    for key in checked:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, got {len(key)}")
    return checked
