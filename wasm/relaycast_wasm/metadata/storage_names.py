"""Storage keys by the names that their pallets give them, out of a runtime's metadata.

Law: every key has a name. A key that no storage item explains is one of the host's, the root of a child trie, or
unknown: then its first bytes stand for it as hex. No key raises.
"""

from dataclasses import dataclass

from relaycast_pallets.frame.typed_storage import storage_prefix
from relaycast_pallets.frame.well_known_keys import host_key
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import twox_128
from relaycast_trie.scale import ScaleReader
from relaycast_wasm.metadata.model import ExtrinsicFormat, HashedBy, Metadata, PalletMetadata, StorageEntry
from relaycast_wasm.metadata.type_skip import TypeSkip

PREFIX_BYTES, ITEM_BYTES = 16, 32
"""Bytes of a storage key: the pallet's hash, and that with the item's behind it."""

HOST, CHILD, UNKNOWN = "(host)", "(child tries)", "(unknown)"
"""What stands for the pallet where there is none."""

VERSION_ITEM = ":__STORAGE_VERSION__:"
"""An item that pallets have without declaring it: the version of their storage."""

HASH_BYTES: dict[HashedBy, tuple[int, bool]] = {
    "Blake2_128": (16, False),
    "Blake2_256": (32, False),
    "Blake2_128Concat": (16, True),
    "Twox128": (16, False),
    "Twox256": (32, False),
    "Twox64Concat": (8, True),
    "Identity": (0, True),
}
"""Bytes of hash that a hasher writes, and whether the key itself follows."""


@dataclass(frozen=True, slots=True)
class StorageKeyName:
    """What a storage key is: the item, and the keys of a map, each SCALE-encoded.

    A key whose hash alone is kept is that hash. ``rest`` are bytes that the item does not explain.
    """

    pallet: str
    item: str
    keys: tuple[bytes, ...] = ()
    rest: bytes = b""

    def __str__(self) -> str:
        parts = [f"0x{it.hex()}" for it in (*self.keys, *([self.rest] if self.rest else []))]
        return f"{self.pallet}.{self.item}" + (f"({', '.join(parts)})" if parts else "")


class StorageNames:
    """The storage items of a ``metadata``, found by key."""

    def __init__(self, metadata: Metadata) -> None:
        self._pallets: dict[bytes, str] = {}
        self._items: dict[bytes, tuple[str, StorageEntry | None, str]] = {}
        self._skip = None if metadata.types is None else TypeSkip(metadata.types)
        for pallet in metadata.pallets:
            self._add(pallet)

    @classmethod
    def none(cls) -> "StorageNames":
        """Return the names of a runtime that gives none."""
        return cls(Metadata(0, (), ExtrinsicFormat((), ())))

    def _add(self, pallet: PalletMetadata) -> None:
        prefix = pallet.prefix or pallet.name
        self._pallets.setdefault(twox_128(prefix.encode()), pallet.name)
        self._items[storage_prefix(prefix, VERSION_ITEM)] = pallet.name, None, VERSION_ITEM
        for entry in pallet.storage:
            self._items[storage_prefix(prefix, entry.name)] = pallet.name, entry, entry.name

    def of(self, key: bytes) -> tuple[str, str]:
        """Return the pallet and the item of a storage key."""
        found = self._items.get(key[:ITEM_BYTES])
        if found is not None:
            return found[0], found[2]
        if key.startswith(CHILD_STORAGE_PREFIX):
            return CHILD, f"0x{key[len(CHILD_STORAGE_PREFIX) :].hex()}"
        host = host_key(key)
        if host:
            return HOST, host
        pallet = self._pallets.get(key[:PREFIX_BYTES], UNKNOWN)
        rest = key if pallet == UNKNOWN else key[PREFIX_BYTES:]
        return pallet, f"0x{rest[:PREFIX_BYTES].hex()}"

    def named(self, key: bytes) -> StorageKeyName:
        """Return the pallet and the item, and the keys of the map that stand in the storage key."""
        pallet, item = self.of(key)
        found = self._items.get(key[:ITEM_BYTES])
        if found is None:
            return StorageKeyName(pallet, item)
        entry, tail = found[1], key[ITEM_BYTES:]
        if entry is None or not entry.keys:
            return StorageKeyName(pallet, item, rest=tail)
        keys, rest = self._keys(entry, tail)
        return StorageKeyName(pallet, item, keys, rest)

    def _keys(self, entry: StorageEntry, tail: bytes) -> tuple[tuple[bytes, ...], bytes]:
        """Return the keys that can be told apart, and what is left: the last one may be of any length."""
        keys: list[bytes] = []
        reader = ScaleReader(tail)
        last = len(entry.hashers) - 1
        for place, hasher in enumerate(entry.hashers):
            hash_bytes, keeps_key = HASH_BYTES[hasher]
            start = reader.offset
            try:
                hashed = reader.take(hash_bytes)
                if not keeps_key:
                    keys.append(hashed)
                    continue
                begin = reader.offset
                self._pass(entry, place, last, reader)
                keys.append(tail[begin : reader.offset])
            except CodecError:
                reader.offset = start
                break
        return tuple(keys), tail[reader.offset :]

    def _pass(self, entry: StorageEntry, place: int, last: int, reader: ScaleReader) -> None:
        """Move the reader behind one key; without a described type only the last key has an end: that of all."""
        number = entry.keys[place].number if len(entry.keys) == len(entry.hashers) else None
        if self._skip is not None and number is not None:
            self._skip.skip(number, reader)
        elif place == last:
            reader.take(reader.remaining)
        else:
            raise CodecError("a key of unknown length", reader.offset)
