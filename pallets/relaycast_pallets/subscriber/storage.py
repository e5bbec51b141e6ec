"""The subscriber pallet's storage items, under the keys and with the bytes that the chain gives them.

The first four are the draft's. The others serve the invariants: which publishers are followed for which keys, how far
an interrupted pass came, and which cached nodes stand at several places.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.storage import OverlayStorage
from relaycast_pallets.frame.typed_storage import (
    BLAKE2_128_CONCAT,
    BYTES32,
    PARA_ID,
    StorageCodec,
    StorageDoubleMap,
    StorageMap,
    StorageValue,
)
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_trie.engine import array_engine
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_128_concat
from relaycast_trie.scale import (
    ScaleReader,
    encode_bytes,
    encode_compact,
    encode_option,
    encode_u32,
    encode_vec,
    length_prefix,
)
from relaycast_xcm.primitives import ParaId

T = TypeVar("T")
K = TypeVar("K", bound=ParaId | bytes)
V = TypeVar("V")

PALLET = "Subscriber"

DEALT_WITH_NONE = bytes(32)
"""The digest of a publisher that stays followed while its roots are forgotten."""

TRIE_DEPTH_EXCEEDED = b"\x00"
"""``DisableReason::TrieDepthExceeded``."""


@lru_cache(maxsize=1 << 15)
def _of_node_hash(node_hash: bytes) -> bytes:
    return blake2_128_concat(BYTES32.encode(node_hash))


_OF_NODE_HASHES = replace(BLAKE2_128_CONCAT, digest=_of_node_hash)
"""The hasher for nodes: each is looked for in both modes, written, compared with later, and removed."""

_NODE_HASH = StorageCodec("H256", bytes, BYTES32.decode, 32)
"""The hasher checks its length."""

CACHES_KEPT = 1 << 10
"""Publishers whose part of the node cache is remembered, as a place; then all are forgotten."""

Cursor = tuple[ParaId, SubscribedKey]
"""A key at which a pass begins."""

ProcessedRoots = dict[SubscribedKey, bytes | None]
"""The root against which each key was last processed, where that is not the publisher's stored root."""

Range = tuple[bytes, bytes, bytes | None]
"""First key, last key, and the root that they were processed against."""

_NO_RANGE: Range = (b"\xff" * 33, b"\xff" * 33, None)
"""Stands behind every key."""


class CachedSize(NamedTuple):
    """The cached nodes of one publisher: ``size`` bytes, none at the nibbles ``cut`` or beyond."""

    size: int = 0
    cut: bytes | None = None


class CachedNodes(Protocol):
    """The stored node cache of one publisher."""

    def get(self, node_hash: bytes, /) -> bytes | None: ...

    def all(self) -> dict[bytes, bytes]: ...

    def shared(self) -> Mapping[bytes, int]: ...


class SubscriberStorage:
    """Typed access to one parachain's subscriber storage."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.previous_published_data_roots = StorageValue(state, PALLET, "PreviousPublishedDataRoots", _ROOTS)
        self.disabled_publishers = StorageMap(
            state, PALLET, "DisabledPublishers", (BLAKE2_128_CONCAT, PARA_ID), _DISABLE_REASON
        )
        self.cached_trie_nodes = StorageDoubleMap(
            state, PALLET, "CachedTrieNodes", ((BLAKE2_128_CONCAT, PARA_ID), (_OF_NODE_HASHES, _NODE_HASH)), _NODE
        )
        self.relay_proof_processing_cursor = StorageValue(state, PALLET, "RelayProofProcessingCursor", _CURSOR)
        self.deferred_key = StorageValue(state, PALLET, "OwedKey", _CURSOR)
        self.publisher_order_seed = StorageValue(state, PALLET, "PublisherOrderSeed", _NODE)
        self.subscribed_keys_digests = StorageValue(state, PALLET, "SubscribedKeysDigests", _DIGESTS)
        self.subscribed_keys = StorageMap(state, PALLET, "SubscribedKeys", (BLAKE2_128_CONCAT, PARA_ID), _KEYS)
        self.unfinished_publishers = StorageMap(
            state, PALLET, "UnfinishedPublishers", (BLAKE2_128_CONCAT, PARA_ID), _RANGES
        )
        self.shared_trie_nodes = StorageMap(state, PALLET, "SharedTrieNodes", (BLAKE2_128_CONCAT, PARA_ID), _COUNTS)
        self.cached_sizes = StorageValue(state, PALLET, "CachedSizes", _SIZES)
        self.delivered_keys = StorageMap(state, PALLET, "DeliveredKeys", (BLAKE2_128_CONCAT, PARA_ID), _NODE)
        self.tables = NodeTables(state, self.cached_trie_nodes.prefix, self.cached_trie_nodes.split)
        self._caches: dict[ParaId, PublisherNodes] = {}

    def cache_of(self, para_id: ParaId) -> "PublisherNodes":
        """Return the cached nodes of a publisher."""
        known = self._caches.get(para_id)
        if known is None:
            if len(self._caches) >= CACHES_KEPT:
                self._caches.clear()
            known = self._caches[para_id] = PublisherNodes(self, para_id)
        return known

    def previous_roots(self) -> dict[ParaId, bytes]:
        return self.previous_published_data_roots.get() or {}

    def digests(self) -> dict[ParaId, bytes]:
        """Return the digest of the subscribed keys of every publisher that is followed."""
        return self.subscribed_keys_digests.get() or {}

    def put_digests(self, digests: Mapping[ParaId, bytes]) -> None:
        if digests:
            self.subscribed_keys_digests.put(dict(digests))
        else:
            self.subscribed_keys_digests.kill()

    def processed_roots(self, para_id: ParaId, keys: Iterable[SubscribedKey]) -> ProcessedRoots | None:
        """Return what is remembered of an interrupted pass over sorted ``keys``, ``None`` when none was interrupted."""
        ranges = self.unfinished_publishers.get(para_id)
        if ranges is None:
            return None
        found: ProcessedRoots = {}
        ahead = iter(ranges)
        first, last, base = next(ahead, _NO_RANGE)
        for key in keys:
            while key > last:
                first, last, base = next(ahead, _NO_RANGE)
            if first <= key:
                found[key] = base
        return found

    def put_processed_roots(
        self, para_id: ParaId, subscribed: SubscribedPaths, processed: ProcessedRoots, root: bytes | None
    ) -> None:
        """Remember an interrupted pass: ``processed`` roots of all subscribed keys, as ranges, without ``root``."""
        ranges: list[Range] = []
        for base, group in groupby(subscribed.keys, key=lambda key: processed.get(key, root)):
            keys = list(group)
            if base != root:
                ranges.append((keys[0], keys[-1], base))
        self.unfinished_publishers.insert(para_id, ranges)

    def clear_cache(self, para_id: ParaId) -> int:
        """Remove all cached nodes of a publisher and return how many there were."""
        self.shared_trie_nodes.remove(para_id)
        return self.cached_trie_nodes.clear_prefix(para_id)

    def cached_sizes_or_counted(self) -> dict[ParaId, CachedSize]:
        """Return the cached nodes by publisher; if no limit was set before, all nodes are read and counted."""
        sizes = self.cached_sizes.get()
        if sizes is None:
            sizes = {}
            for para_id, _, node in self.cached_trie_nodes.items():
                sizes[para_id] = CachedSize(sizes.get(para_id, CachedSize()).size + len(node))
        return sizes

    def put_cached_sizes(self, sizes: Mapping[ParaId, CachedSize]) -> None:
        self.cached_sizes.put(dict(sizes))

    def forget_cached_size(self, para_id: ParaId) -> None:
        """Forget the cached size of a publisher whose nodes are gone."""
        self.put_cached_sizes({known: it for known, it in self.cached_sizes_or_counted().items() if known != para_id})

    def drop_cached_sizes(self) -> None:
        """Forget the sizes that a former limit left, as a migration does; reads nothing if there are none."""
        if self.cached_sizes.prefix in self.state.top.values:
            self.cached_sizes.kill()

    def forget_root(self, para_id: ParaId) -> bool:
        """Forget what was dealt with of a publisher; return whether a root was known."""
        self.unfinished_publishers.remove(para_id)
        roots = self.previous_roots()
        if roots.pop(para_id, None) is None:
            return False
        self.put_roots(roots)
        return True

    def forget_publisher(self, para_id: ParaId, *, keeps_delivered: bool = False) -> None:
        """Forget everything about a publisher but its nodes, and a cursor that stands at one of its keys.

        With ``keeps_delivered`` a followed publisher stays followed and keeps its delivered keys.
        """
        self.forget_root(para_id)
        digests = self.digests()
        if keeps_delivered and para_id in digests:
            self.put_digests({**digests, para_id: DEALT_WITH_NONE})
        else:
            if digests.pop(para_id, None) is not None:
                self.put_digests(digests)
            self.subscribed_keys.remove(para_id)
        cursor, deferred = self.relay_proof_processing_cursor.get(), self.deferred_key.get()
        if deferred is not None and deferred[0] == para_id:
            self.put_turn(cursor, None)
        if cursor is not None and cursor[0] == para_id:
            self.put_turn(self.deferred_key.get(), None)

    def keeps_anything_of(self, para_id: ParaId) -> bool:
        """Return whether anything is kept of a publisher: what is remembered, or a node."""
        digest = self.digests().get(para_id, DEALT_WITH_NONE)
        return (
            digest != DEALT_WITH_NONE
            or para_id in self.previous_roots()
            or para_id in self.unfinished_publishers
            or para_id in self.shared_trie_nodes
            or self.cached_trie_nodes.has_any(para_id)
        )

    def put_turn(self, cursor: Cursor | None, deferred: Cursor | None) -> None:
        """Remember where the next passes begin; without a cursor the order of the publishers is drawn anew."""
        if cursor is None:
            self.relay_proof_processing_cursor.kill()
            self.publisher_order_seed.kill()
        else:
            self.relay_proof_processing_cursor.put(cursor)
        if deferred is None:
            self.deferred_key.kill()
        else:
            self.deferred_key.put(deferred)

    def put_roots(self, roots: Mapping[ParaId, bytes]) -> None:
        if roots:
            self.previous_published_data_roots.put(dict(roots))
        else:
            self.previous_published_data_roots.kill()


class PublisherNodes:
    """The cached nodes of one publisher (``CachedNodes``), read and written by hash."""

    __slots__ = ("_para_id", "_storage", "_under", "get")

    def __init__(self, storage: SubscriberStorage, para_id: ParaId) -> None:
        self._storage, self._para_id = storage, para_id
        self._under = storage.cached_trie_nodes.under(para_id)
        self.get = self._under.get

    def change(self, removed: Sequence[bytes], inserted: Mapping[bytes, bytes]) -> None:
        """Remove nodes, then insert some."""
        tables = self._storage.tables
        table = tables.known(self._para_id)
        prefix = self._under.prefix
        changes: dict[bytes, bytes | None] = {prefix + _of_node_hash(node_hash): None for node_hash in removed}
        changes |= {prefix + _of_node_hash(node_hash): encode_bytes(data) for node_hash, data in inserted.items()}
        self._storage.state.top.write_all(changes)
        if table is not None:
            table.remove(list(removed))
            table.insert(list(inserted), list(inserted.values()))
            tables.note_writes()

    def table(self) -> Any | None:
        """Return the nodes in arrays (``array.side_by_side.NodeTable``), ``None`` where they cannot be had so."""
        return self._storage.tables.of(self._para_id)

    def note_reads(self, hashes: Iterable[bytes]) -> None:
        """Note that these were looked for, as ``get`` does."""
        reads = self._storage.state.top.reads
        if reads is not None:
            reads.update(map(self._under.storage_key, hashes))

    def all(self) -> dict[bytes, bytes]:
        return dict(self._storage.cached_trie_nodes.items_of(self._para_id))

    def shared(self) -> Mapping[bytes, int]:
        return self._storage.shared_trie_nodes.get(self._para_id) or {}


class NodeTables:
    """The cached nodes of all publishers in arrays, made of what is stored, for as long as nobody else writes there."""

    def __init__(self, state: State, prefix: bytes, split: int) -> None:
        self._state, self._prefix, self._split = state, prefix, split
        self._tables: dict[ParaId, Any] | None = None
        self._top: OverlayStorage | None = None
        self._writes = -1

    def of(self, para_id: ParaId) -> Any | None:
        """Return the table of a publisher; ``None`` in a state with gaps, and where what is stored is no node."""
        table = self.known(para_id)
        if table is None and type(self._state.top) is OverlayStorage:
            try:
                self._load()
            except CodecError:
                return None
            table = self.known(para_id)
        return table

    def known(self, para_id: ParaId) -> Any | None:
        """Return the table of a publisher, if tables were made and are true."""
        top = self._state.top
        if self._tables is None or self._top is not top or self._writes != top.watched_writes:
            self._tables = None
            return None
        table = self._tables.get(para_id)
        if table is None:
            table = self._tables[para_id] = array_engine("side_by_side").NodeTable()
        return table

    def note_writes(self) -> None:
        """Take the writes up to now for those that the tables have too."""
        self._writes = self._state.top.watched_writes

    def _load(self) -> None:
        found: dict[ParaId, tuple[list[bytes], list[bytes]]] = {}
        top = self._top = self._state.top
        for raw, data in top.values.items():
            if raw.startswith(self._prefix):
                hashes, nodes = found.setdefault(PARA_ID.decode(raw[self._split - 4 : self._split]), ([], []))
                hashes.append(raw[-32:])
                nodes.append(_decode_bytes(data))
        table_of = array_engine("side_by_side").NodeTable
        self._tables = {para_id: table_of(*nodes) for para_id, nodes in found.items()}
        top.watched = self._prefix
        self.note_writes()


class _NoNodes:
    """A cache that no longer counts."""

    def get(self, _node_hash: bytes, /) -> bytes | None:
        return None

    def all(self) -> dict[bytes, bytes]:
        return {}

    def shared(self) -> Mapping[bytes, int]:
        return {}


NO_CACHED_NODES: CachedNodes = _NoNodes()


def _list_of(
    name: str, encode: Callable[[T], bytes], read: Callable[[ScaleReader], T], least: int
) -> StorageCodec[Sequence[T]]:
    """Return the codec of ``Vec<T>``; ``read`` takes an item, of ``least`` bytes or more."""

    def decode(data: bytes) -> tuple[T, ...]:
        reader = ScaleReader(data)
        items = tuple(read(reader) for _ in range(reader.length(least)))
        reader.done()
        return items

    return StorageCodec(name, lambda items: encode_vec(map(encode, items)), decode)


def _map_of(
    name: str, encode: Callable[[tuple[K, V]], bytes], read: Callable[[ScaleReader], tuple[K, V]], least: int
) -> StorageCodec[dict[K, V]]:
    """Return the codec of ``BTreeMap<K, V>``: entries are decoded once for the times that a block asks for them."""
    items = _list_of(name, encode, read, least)
    decoded = lru_cache(maxsize=64)(items.decode)
    return StorageCodec(name, lambda found: items.encode(sorted(found.items())), lambda data: dict(decoded(data)))


def _read_id(reader: ScaleReader) -> ParaId:
    return ParaId(reader.u32())


def _read_root(reader: ScaleReader) -> bytes | None:
    return reader.take(32) if reader.option() else None


def _read_size(reader: ScaleReader) -> CachedSize:
    return CachedSize(reader.u32(), reader.bytes_() if reader.option() else None)


def _encode_size(size: CachedSize) -> bytes:
    return encode_u32(size.size) + encode_option(None if size.cut is None else encode_bytes(size.cut))


def _decode_cursor(data: bytes) -> tuple[ParaId, SubscribedKey]:
    reader = ScaleReader(data)
    cursor = ParaId(reader.u32()), SubscribedKey(reader.take(32))
    reader.done()
    return cursor


def _decode_reason(data: bytes) -> bytes:
    if data != TRIE_DEPTH_EXCEEDED:
        raise CodecError(f"DisableReason is TrieDepthExceeded (0), got 0x{data.hex()}")
    return data


def _decode_bytes(data: bytes) -> bytes:
    """Return what follows the one canonical compact length that these many bytes can start with."""
    prefix = length_prefix(len(data))
    if prefix is None or not data.startswith(prefix):
        raise CodecError(f"{len(data)} bytes do not start with their compact length")
    return data[len(prefix) :]


_ROOTS = _map_of(
    "BTreeMap<ParaId, BoundedVec<u8>>",
    lambda it: it[0].encode() + encode_bytes(it[1]),
    lambda reader: (_read_id(reader), reader.bytes_()),
    5,
)
_DIGESTS = _map_of(
    "BTreeMap<ParaId, H256>", lambda it: it[0].encode() + it[1], lambda reader: (_read_id(reader), reader.take(32)), 36
)
_CURSOR = StorageCodec("(ParaId, SubscribedKey)", lambda cursor: cursor[0].encode() + cursor[1], _decode_cursor)
_DISABLE_REASON = StorageCodec("DisableReason", lambda reason: reason, _decode_reason)
_NODE = StorageCodec("BoundedVec<u8>", encode_bytes, _decode_bytes)
_KEYS = _list_of("Vec<SubscribedKey>", bytes, lambda reader: SubscribedKey(reader.take(32)), 32)
_RANGES: StorageCodec[Sequence[Range]] = _list_of(
    "Vec<(SubscribedKey, SubscribedKey, Option<H256>)>",
    lambda it: it[0] + it[1] + encode_option(it[2]),
    lambda reader: (reader.take(32), reader.take(32), _read_root(reader)),
    65,
)
_SIZES = _map_of(
    "BTreeMap<ParaId, (u32, Option<Vec<u8>>)>",
    lambda it: it[0].encode() + _encode_size(it[1]),
    lambda reader: (_read_id(reader), _read_size(reader)),
    9,
)
_COUNTS = _map_of(
    "BTreeMap<H256, Compact<u32>>",
    lambda it: it[0] + encode_compact(it[1]),
    lambda reader: (reader.take(32), reader.compact()),
    33,
)
