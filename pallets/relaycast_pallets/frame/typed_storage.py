"""Storage items with types, under the keys that a Substrate node gives them.

A value of ``Pallet::Item`` stands at ``twox_128(pallet) ++ twox_128(item)``; a map appends its hashed key, a double
map two. Hashers that keep the key behind its hash let keys be read back. Iteration follows the raw keys: hash order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from msgspec import Struct

from relaycast_pallets.frame.state import State
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_128_concat, blake2_256, twox_64_concat, twox_128
from relaycast_trie.scale import ScaleReader
from relaycast_xcm.primitives import ParaId

T = TypeVar("T")
K = TypeVar("K")
K2 = TypeVar("K2")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class StorageCodec(Generic[T]):
    """A type's SCALE bytes: ``encode``, and ``decode``, which takes all of the bytes or raises ``CodecError``."""

    name: str
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    size: int | None = None
    """Bytes of every encoded value, ``None`` when they differ."""

    @classmethod
    def reading(cls, name: str, encode: Callable[[T], bytes], read: Callable[[ScaleReader], T]) -> "StorageCodec[T]":
        """Return a codec that decodes by reading all of the bytes."""
        return cls(name, encode, lambda data: read_all(data, read))

    def __repr__(self) -> str:
        return f"StorageCodec({self.name})"


def read_all(data: bytes, read: Callable[[ScaleReader], T]) -> T:
    """Return what ``read`` makes of all of ``data``; raises ``CodecError``."""
    reader = ScaleReader(data)
    found = read(reader)
    reader.done()
    return found


def _unsigned(bits: int) -> StorageCodec[int]:
    size = bits // 8

    def decode(data: bytes) -> int:
        if len(data) != size:
            raise CodecError(f"a u{bits} has {size} bytes, got {len(data)}")
        return int.from_bytes(data, "little")

    return StorageCodec(f"u{bits}", lambda number: number.to_bytes(size, "little"), decode, size)


def _fixed_bytes(size: int) -> StorageCodec[bytes]:
    def check(data: bytes) -> bytes:
        if len(data) != size:
            raise CodecError(f"[u8; {size}] has {size} bytes, got {len(data)}")
        return data

    return StorageCodec(f"[u8; {size}]", check, check, size)


def _decode_bool(data: bytes) -> bool:
    if data not in {b"\x00", b"\x01"}:
        raise CodecError(f"a bool is one byte, 0 or 1, got 0x{data.hex()}")
    return data == b"\x01"


U32 = _unsigned(32)
U64 = _unsigned(64)
U128 = _unsigned(128)
BYTES32 = _fixed_bytes(32)
BOOL: StorageCodec[bool] = StorageCodec("bool", lambda value: b"\x01" if value else b"\x00", _decode_bool, 1)
PARA_ID: StorageCodec[ParaId] = StorageCodec("ParaId", U32.encode, lambda data: ParaId(U32.decode(data)), 4)
ACCOUNT_ID: StorageCodec[bytes] = StorageCodec("AccountId32", BYTES32.encode, BYTES32.decode, 32)
"""Account ids are 32 bytes on every chain that this project knows."""


class StorageHasher(Struct, frozen=True):
    """How a map hashes an encoded key: ``digest``, and how many bytes of hash stand before the key itself."""

    name: str
    digest: Callable[[bytes], bytes]
    hash_bytes: int
    keeps_key: bool = True

    def key_in(self, hashed: bytes) -> bytes:
        """Return the encoded key that ``hashed`` ends with; ``TypeError`` where the hasher does not keep it."""
        if not self.keeps_key:
            raise TypeError(f"keys hashed with {self.name} cannot be read back")
        return hashed[self.hash_bytes :]

    def __repr__(self) -> str:
        return self.name


BLAKE2_128_CONCAT = StorageHasher("Blake2_128Concat", blake2_128_concat, 16)
TWOX_64_CONCAT = StorageHasher("Twox64Concat", twox_64_concat, 8)
IDENTITY = StorageHasher("Identity", lambda data: data, 0)
BLAKE2_256 = StorageHasher("Blake2_256", blake2_256, 32, keeps_key=False)


def storage_prefix(pallet: str, item: str) -> bytes:
    """Return the 32 bytes that every key of a storage item starts with."""
    return twox_128(pallet.encode()) + twox_128(item.encode())


class StorageValue(Generic[V]):
    """A single value; ``default`` is what clients read where there is none (``ValueQuery``)."""

    __slots__ = ("codec", "default", "name", "prefix", "state")

    def __init__(
        self, state: State, pallet: str, item: str, codec: StorageCodec[V], *, default: V | None = None
    ) -> None:
        self.state = state
        self.name = pallet, item
        self.prefix = storage_prefix(pallet, item)
        self.codec = codec
        self.default = default

    def storage_key(self) -> bytes:
        return self.prefix

    def get(self) -> V | None:
        data = self.state.top.get(self.prefix)
        return None if data is None else self.codec.decode(data)

    def put(self, value: V) -> None:
        self.state.top.put(self.prefix, self.codec.encode(value))

    def exists(self) -> bool:
        return self.state.top.exists(self.prefix)

    def kill(self) -> None:
        self.state.top.kill(self.prefix)


def _raw_keys(prefix: bytes, hasher: StorageHasher, codec: StorageCodec[K]) -> Callable[[K], bytes]:
    """Return what makes raw keys of keys: the hashes of some are remembered, since parachains come again and again."""

    @lru_cache(maxsize=4_096)
    def raw_key(key: K) -> bytes:
        return prefix + hasher.digest(codec.encode(key))

    return raw_key


class StorageMap(Generic[K, V]):
    """Values under one key; ``default`` is what clients read where there is none (``ValueQuery``).

    The raw keys begin with ``prefix``, by default that of the item.
    """

    __slots__ = ("codec", "default", "hasher", "key_codec", "name", "prefix", "state", "storage_key")

    def __init__(
        self,
        state: State,
        pallet: str,
        item: str,
        key: tuple[StorageHasher, StorageCodec[K]],
        codec: StorageCodec[V],
        *,
        default: V | None = None,
        prefix: bytes | None = None,
    ) -> None:
        self.state = state
        self.name = pallet, item
        self.default = default
        self.prefix = storage_prefix(pallet, item) if prefix is None else prefix
        self.hasher, self.key_codec = key
        self.codec = codec
        self.storage_key = _raw_keys(self.prefix, *key)

    def get(self, key: K) -> V | None:
        data = self.state.top.get(self.storage_key(key))
        return None if data is None else self.codec.decode(data)

    def insert(self, key: K, value: V) -> None:
        self.state.top.put(self.storage_key(key), self.codec.encode(value))

    def remove(self, key: K) -> None:
        self.state.top.kill(self.storage_key(key))

    def count(self) -> int:
        return self.state.top.count_prefix(self.prefix)

    def __contains__(self, key: K) -> bool:
        return self.state.top.exists(self.storage_key(key))

    def items(self) -> Iterator[tuple[K, V]]:
        """Iterate over keys and values in the order of the raw keys; entries may come and go meanwhile."""
        for raw, data in self.state.top.iter_prefix(self.prefix):
            hashed = raw[len(self.prefix) :]
            yield self.key_codec.decode(self.hasher.key_in(hashed)), self.codec.decode(data)


class StorageDoubleMap(Generic[K, K2, V]):
    """Values under two keys; the first one's codec has a fixed size, so that keys can be read back.

    ``prefix_of`` a first key is what the raw keys of all entries under it start with.
    """

    def __init__(
        self,
        state: State,
        pallet: str,
        item: str,
        keys: tuple[tuple[StorageHasher, StorageCodec[K]], tuple[StorageHasher, StorageCodec[K2]]],
        codec: StorageCodec[V],
    ) -> None:
        self.state = state
        self.name = pallet, item
        self.prefix = storage_prefix(pallet, item)
        (self.first_hasher, self.first_codec), (self.second_hasher, self.second_codec) = keys
        if self.first_codec.size is None:
            raise TypeError(f"the first key of a double map has a fixed size, {self.first_codec} has none")
        self.prefix_of = _raw_keys(self.prefix, *keys[0])
        self.split = len(self.prefix) + self.first_hasher.hash_bytes + self.first_codec.size
        self.codec = codec

    def storage_key(self, first: K, second: K2) -> bytes:
        return self.prefix_of(first) + self.second_hasher.digest(self.second_codec.encode(second))

    def keys_in(self, raw: bytes) -> tuple[K, K2]:
        """Return the two keys of a raw key."""
        first = self.first_hasher.key_in(raw[len(self.prefix) : self.split])
        second = self.second_hasher.key_in(raw[self.split :])
        return self.first_codec.decode(first), self.second_codec.decode(second)

    def get(self, first: K, second: K2) -> V | None:
        data = self.state.top.get(self.storage_key(first, second))
        return None if data is None else self.codec.decode(data)

    def insert(self, first: K, second: K2, value: V) -> None:
        self.state.top.put(self.storage_key(first, second), self.codec.encode(value))

    def remove(self, first: K, second: K2) -> None:
        self.state.top.kill(self.storage_key(first, second))

    def exists(self, first: K, second: K2) -> bool:
        return self.state.top.exists(self.storage_key(first, second))

    def count(self) -> int:
        return self.state.top.count_prefix(self.prefix)

    def has_any(self, first: K) -> bool:
        """Return whether there is any entry under ``first``."""
        return next(self.state.top.iter_prefix(self.prefix_of(first)), None) is not None

    def second_keys(self, first: K) -> list[K2]:
        """Return the second keys of all entries under ``first``, in the order of the raw keys; no value is read."""
        prefix, found = self.prefix_of(first), list[K2]()
        raw = self.state.top.next_key(prefix)
        while raw is not None and raw.startswith(prefix):
            found.append(self.keys_in(raw)[1])
            raw = self.state.top.next_key(raw)
        return found

    def under(self, first: K) -> StorageMap[K2, V]:
        """Return the entries under ``first``, whose place is worked out once."""
        second = self.second_hasher, self.second_codec
        return StorageMap(self.state, *self.name, second, self.codec, prefix=self.prefix_of(first))

    def clear_prefix(self, first: K) -> int:
        """Remove all entries under ``first`` and return how many there were."""
        return self.state.top.clear_prefix(self.prefix_of(first))

    def items(self, *, start_after: bytes | None = None) -> Iterator[tuple[K, K2, V]]:
        """Iterate in the order of the raw keys, after ``start_after`` if given; entries may come and go meanwhile."""
        for raw, data in self.state.top.iter_prefix(self.prefix, start_after=start_after):
            yield *self.keys_in(raw), self.codec.decode(data)

    def items_of(self, first: K) -> Iterator[tuple[K2, V]]:
        """Iterate over the entries under ``first`` in the order of the raw keys."""
        return self.under(first).items()
