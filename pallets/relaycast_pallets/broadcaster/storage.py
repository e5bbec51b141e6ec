"""What the broadcaster stores, under the raw keys of a node, and the ways in which all of it changes together.

INVARIANT: a publisher's child trie holds exactly its ``PublishedKeys``; ``TotalStorageSize`` is the sum of 32 and the
value's length over them; ``TtlData`` has an entry for each that expires. A publisher without keys has none of these.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from relaycast_pallets.broadcaster.published_entry import INFINITE, PublishedEntry, value_bytes
from relaycast_pallets.broadcaster.published_keys import KEY_BYTES, PublishedKeys
from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.storage import Storage
from relaycast_pallets.frame.system import (
    BOOL,
    BYTES32,
    PARA_ID,
    TWOX_64_CONCAT,
    U32,
    AccountId,
    StorageCodec,
    StorageDoubleMap,
    StorageHasher,
    StorageMap,
    StorageValue,
)
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_u32, encode_u128
from relaycast_xcm.primitives import Balance, BlockCount, BlockNumber, ParaId

PALLET = "Broadcaster"

TtlEntry = tuple[BlockCount, BlockNumber]
"""A time to live, and the relay block at which it began."""

TtlCursor = tuple[ParaId, bytes]
"""The entry of ``TtlData`` that was scanned last."""


class PublisherInfo(Struct, frozen=True):
    """Who manages a publisher, and the ``deposit`` that is on hold for it."""

    manager: AccountId
    deposit: Balance

    def encode(self) -> bytes:
        return self.manager + encode_u128(self.deposit)

    @classmethod
    def decode(cls, data: bytes) -> "PublisherInfo":
        reader = ScaleReader(data)
        info = cls(reader.take(32), reader.u128())
        reader.done()
        return info


def _encode_ttl(entry: TtlEntry) -> bytes:
    ttl, when_inserted = entry
    return (when_inserted << 32 | ttl).to_bytes(8, "little")


def _decode_ttl(data: bytes) -> TtlEntry:
    if len(data) != 8:
        raise CodecError(f"a TtlData entry has 8 bytes, got {len(data)}")
    both = int.from_bytes(data, "little")
    return both & 0xFFFF_FFFF, both >> 32


def _encode_cursor(cursor: TtlCursor) -> bytes:
    return encode_u32(cursor[0]) + cursor[1]


def _decode_cursor(data: bytes) -> TtlCursor:
    if len(data) != 4 + KEY_BYTES:
        raise CodecError(f"a TTL cursor has {4 + KEY_BYTES} bytes, got {len(data)}")
    return ParaId(int.from_bytes(data[:4], "little")), data[4:]


class BroadcasterStorage:
    """The storage items of the pallet by the names that Rust gives them, in snake case."""

    def __init__(self, state: State, *, ttl_key_hasher: StorageHasher = TWOX_64_CONCAT) -> None:
        para = (TWOX_64_CONCAT, PARA_ID)
        info = StorageCodec("PublisherInfo", PublisherInfo.encode, PublisherInfo.decode)
        keys = StorageCodec("BTreeSet<[u8; 32]>", PublishedKeys.encode, PublishedKeys)
        ttl = StorageCodec("(u32, u32)", _encode_ttl, _decode_ttl, 8)
        cursor = StorageCodec("(ParaId, [u8; 32])", _encode_cursor, _decode_cursor, 36)
        self.state = state
        self._children: dict[ParaId, Storage] = {}
        self.registered_publishers = StorageMap(state, PALLET, "RegisteredPublishers", para, info)
        self.publisher_exists = StorageMap(state, PALLET, "PublisherExists", para, BOOL, default=False)
        self.published_keys = StorageMap(state, PALLET, "PublishedKeys", para, keys, default=PublishedKeys())
        self.total_storage_size = StorageMap(state, PALLET, "TotalStorageSize", para, U32, default=0)
        self.ttl_data = StorageDoubleMap(state, PALLET, "TtlData", (para, (ttl_key_hasher, BYTES32)), ttl)
        self.ttl_scan_cursor = StorageValue(state, PALLET, "TtlScanCursor", cursor)
        self.publish_counts = StorageMap(state, PALLET, "PublishCounts", para, ttl)
        """The last relay block in which a publisher published, and how often; written only under a limit."""

    def child(self, publisher: ParaId) -> Storage:
        """Return the publisher's child trie."""
        child = self._children.get(publisher)
        if child is None:
            child = self._children[publisher] = self.state.child(derive_child_info(publisher))
        return child

    def entry(self, publisher: ParaId, key: bytes) -> PublishedEntry | None:
        """Return what is published under ``key``."""
        data = self.child(publisher).get(key)
        return None if data is None else PublishedEntry.decode(data)

    def entries(self, publisher: ParaId) -> Iterator[tuple[bytes, PublishedEntry]]:
        """Iterate over everything that is published, in the order of the keys."""
        for key, data in self.child(publisher).iter_prefix(b""):
            yield key, PublishedEntry.decode(data)

    def keys_of(self, publisher: ParaId) -> PublishedKeys:
        return self.published_keys.get(publisher) or PublishedKeys()

    def size_of(self, publisher: ParaId) -> int:
        """Return the publisher's sum of 32 and the value's length over its keys."""
        return self.total_storage_size.get(publisher) or 0

    def publishes_in(self, publisher: ParaId, block_number: BlockNumber) -> int:
        """Return how often ``publisher`` has published in this block; counted only under a limit."""
        count, counted_in = self.publish_counts.get(publisher) or (0, 0)
        return count if counted_in == block_number else 0

    def write(self, publisher: ParaId, key: bytes, entry: PublishedEntry, *, total: int) -> None:
        """Store ``entry``; ``total`` is the publisher's storage size with it."""
        child = self.child(publisher)
        if child.get(key) is None:
            self.published_keys.insert(publisher, self.keys_of(publisher).with_key(key))
        child.put(key, entry.encode())
        self.total_storage_size.insert(publisher, total)
        self.publisher_exists.insert(publisher, True)
        if entry.ttl == INFINITE:
            self.ttl_data.remove(publisher, key)
        else:
            self.ttl_data.insert(publisher, key, (entry.ttl, entry.when_inserted))

    def remove(self, publisher: ParaId, keys: Iterable[bytes]) -> int:
        """Remove those of ``keys`` that are there, with all that is known about them; return how many there were."""
        child, left, total = self.child(publisher), self.keys_of(publisher), self.size_of(publisher)
        before = len(left)
        for key in keys:
            data = child.get(key)
            if data is not None:
                total -= KEY_BYTES + value_bytes(data)
                left = left.without_key(key)
                child.kill(key)
                self.ttl_data.remove(publisher, key)
        if len(left) == before:
            return 0
        if len(left):
            self.published_keys.insert(publisher, left)
            self.total_storage_size.insert(publisher, total)
        else:
            self._forget(publisher)
        return before - len(left)

    def clear(self, publisher: ParaId) -> int:
        """Remove everything that ``publisher`` published and return how many keys it had."""
        child = self.child(publisher)
        removed = len(child)
        if removed:
            child.clear_prefix(b"")
            self.ttl_data.clear_prefix(publisher)
            self._forget(publisher)
        return removed

    def _forget(self, publisher: ParaId) -> None:
        self.published_keys.remove(publisher)
        self.total_storage_size.remove(publisher)
        self.publisher_exists.remove(publisher)

    def __repr__(self) -> str:
        return f"<BroadcasterStorage {self.registered_publishers.count()} publishers, {self.ttl_data.count()} expire>"
