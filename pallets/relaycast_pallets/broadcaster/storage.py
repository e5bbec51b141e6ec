"""What the broadcaster stores, under the raw keys of a node, and the ways in which all of it changes together.

INVARIANT: a publisher's child trie holds exactly its ``PublishedKeys``; ``TotalStorageSize`` is the sum of 32 and the
value's length over them; ``TtlData`` has an entry for each that expires. A publisher without keys has none of these.
"""

from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct

from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.storage import OverlayStorage
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
from relaycast_pallets.frame.typed_storage import read_all
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact, encode_u32, encode_u128, length_prefix
from relaycast_xcm.primitives import U32_MAX, Balance, BlockCount, BlockNumber, ParaId

INFINITE = 0
"""The time to live of what never expires."""


class PublishedEntry(Struct, frozen=True):
    """SCALE ``PublishedEntry { value: Vec<u8>, ttl: u32, when_inserted: u32 }``; ``ttl`` in relay blocks, 0 for ever.

    Eight bytes behind the value and the length before it make an entry longer than its value. Up to 23 bytes of value
    stay inside a node of state version 1.

    >>> entry = PublishedEntry(b"5.31", ttl=100, when_inserted=7)
    >>> entry.encode().hex()
    '10352e33316400000007000000'
    >>> entry.expires_at()
    107
    """

    value: bytes
    ttl: BlockCount
    when_inserted: BlockNumber

    def encode(self) -> bytes:
        return encode_bytes(self.value) + (self.when_inserted << 32 | self.ttl).to_bytes(8, "little")

    @classmethod
    def decode(cls, data: bytes) -> "PublishedEntry":
        """Return the entry that all of ``data`` encodes; raises ``CodecError``."""
        prefix = length_prefix(len(data) - 8)
        if prefix is not None and data.startswith(prefix):
            numbers = int.from_bytes(data[-8:], "little")
            return cls(data[len(prefix) : -8], numbers & U32_MAX, numbers >> 32)
        return read_all(data, lambda reader: cls(reader.bytes_(), reader.u32(), reader.u32()))

    def expires_at(self) -> BlockNumber | None:
        """Return the first relay block at which the entry is expired, ``None`` when it never is."""
        return expires_at(self.ttl, self.when_inserted)


def expires_at(ttl: BlockCount, when_inserted: BlockNumber) -> BlockNumber | None:
    """Return ``when_inserted + ttl``, saturating at the last u32 block number; ``None`` for an infinite ``ttl``."""
    return None if ttl == INFINITE else min(when_inserted + ttl, U32_MAX)


def value_bytes(encoded: bytes) -> int:
    """Return the length of the value in an encoded entry, without copying it."""
    reader = ScaleReader(encoded)
    length = reader.length()
    if reader.remaining != length + 8:
        raise CodecError(f"an entry has 8 bytes after its value, got {reader.remaining - length}", reader.offset)
    return length


KEY_BYTES = 32


class PublishedKeys:
    """SCALE ``BTreeSet<[u8; 32]>``: ``encoded`` is a compact count and the keys in ascending order. Never changes."""

    __slots__ = ("_count", "_start", "encoded")

    def __init__(self, encoded: bytes = b"\x00") -> None:
        reader = ScaleReader(encoded)
        self._count = reader.length(KEY_BYTES)
        self._start = reader.offset
        self.encoded = encoded
        if reader.remaining != self._count * KEY_BYTES:
            raise CodecError(f"{self._count} keys announced, {reader.remaining} bytes left", self._start)

    def encode(self) -> bytes:
        return self.encoded

    def with_key(self, key: bytes) -> "PublishedKeys":
        """Return the set with ``key``, which may be there already."""
        offset = self._place(key)
        if self.encoded[offset : offset + KEY_BYTES] == key:
            return self
        view = memoryview(self.encoded)
        return PublishedKeys(
            b"".join((encode_compact(self._count + 1), view[self._start : offset], key, view[offset:]))
        )

    def without_key(self, key: bytes) -> "PublishedKeys":
        """Return the set without ``key``, which need not be there."""
        offset = self._place(key)
        if self.encoded[offset : offset + KEY_BYTES] != key:
            return self
        view = memoryview(self.encoded)
        after = view[offset + KEY_BYTES :]
        return PublishedKeys(b"".join((encode_compact(self._count - 1), view[self._start : offset], after)))

    def _place(self, key: bytes) -> int:
        """Return the offset of ``key``, or where it would stand."""
        encoded, start = self.encoded, self._start
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            offset = start + middle * KEY_BYTES
            if encoded[offset : offset + KEY_BYTES] < key:
                low = middle + 1
            else:
                high = middle
        return start + low * KEY_BYTES

    def __contains__(self, key: bytes) -> bool:
        offset = self._place(key)
        return self.encoded[offset : offset + KEY_BYTES] == key

    def __iter__(self) -> Iterator[bytes]:
        for offset in range(self._start, len(self.encoded), KEY_BYTES):
            yield self.encoded[offset : offset + KEY_BYTES]

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return self.encoded == other.encoded if isinstance(other, PublishedKeys) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.encoded)

    def __repr__(self) -> str:
        return f"<PublishedKeys {len(self)} keys>"


PUBSUB = b"pubsub"
"""The first bytes of the name of every publisher's child trie. The id follows as a u32."""


@cache
def derive_child_info(publisher: int) -> ChildInfo:
    """Return the child trie of a publisher: ``(b"pubsub", para_id)`` in SCALE, ten bytes without a length."""
    return ChildInfo.new_default(PUBSUB + ParaId(publisher).encode())


def publisher_of(child_info: ChildInfo) -> ParaId | None:
    """Return the publisher whose child trie this is, ``None`` if it is another kind of child trie."""
    name = child_info.storage_key
    if len(name) != len(PUBSUB) + 4 or not name.startswith(PUBSUB):
        return None
    return ParaId(int.from_bytes(name[len(PUBSUB) :], "little"))


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
        return read_all(data, lambda reader: cls(reader.take(32), reader.u128()))


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
        self._children: dict[ParaId, OverlayStorage] = {}
        self.registered_publishers = StorageMap(state, PALLET, "RegisteredPublishers", para, info)
        self.publisher_exists = StorageMap(state, PALLET, "PublisherExists", para, BOOL, default=False)
        self.published_keys = StorageMap(state, PALLET, "PublishedKeys", para, keys, default=PublishedKeys())
        self.total_storage_size = StorageMap(state, PALLET, "TotalStorageSize", para, U32, default=0)
        self.ttl_data = StorageDoubleMap(state, PALLET, "TtlData", (para, (ttl_key_hasher, BYTES32)), ttl)
        self.ttl_scan_cursor = StorageValue(state, PALLET, "TtlScanCursor", cursor)
        self.publish_counts = StorageMap(state, PALLET, "PublishCounts", para, ttl)
        """The last relay block in which a publisher published, and how often; written only under a limit."""

    def child(self, publisher: ParaId) -> OverlayStorage:
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
