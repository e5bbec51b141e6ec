"""What a parachain asks its collator to prove of the relay chain's state (cumulus ``RelayProofRequest``)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_vec


@dataclass(frozen=True, slots=True)
class Top:
    """A key of the relay chain's top trie."""

    key: bytes

    def encode(self) -> bytes:
        return b"\x00" + encode_bytes(self.key)


@dataclass(frozen=True, slots=True)
class Child:
    """A key of a child trie; ``storage_key`` names the trie without its prefix."""

    storage_key: bytes
    key: bytes

    def encode(self) -> bytes:
        return b"\x01" + encode_bytes(self.storage_key) + encode_bytes(self.key)


RelayStorageKey = Top | Child


@dataclass(frozen=True, slots=True)
class RelayProofRequest:
    """All keys that the next relay state proof is to cover."""

    keys: tuple[RelayStorageKey, ...] = ()
    _by_child_trie: dict[bytes, list[bytes]] | None = field(default=None, init=False, compare=False, repr=False)

    def encode(self) -> bytes:
        return encode_vec(key.encode() for key in self.keys)

    @classmethod
    def decode(cls, data: bytes) -> "RelayProofRequest":
        """Return the request that all of ``data`` encodes; raises ``CodecError``."""
        reader = ScaleReader(data)
        keys = tuple(_read_key(reader) for _ in range(reader.length(2)))
        reader.done()
        return cls(keys)

    def by_child_trie(self) -> dict[bytes, list[bytes]]:
        """Return the keys wanted of each child trie, each once, in the order of the request."""
        if self._by_child_trie is None:
            groups: dict[bytes, dict[bytes, None]] = {}
            for key in self.keys:
                if isinstance(key, Child):
                    groups.setdefault(key.storage_key, {})[key.key] = None
            grouped = {storage_key: list(keys) for storage_key, keys in groups.items()}
            object.__setattr__(self, "_by_child_trie", grouped)
        assert self._by_child_trie is not None
        return {storage_key: list(keys) for storage_key, keys in self._by_child_trie.items()}

    def top_keys(self) -> list[bytes]:
        """Return the keys wanted of the top trie, each once."""
        return list(dict.fromkeys(key.key for key in self.keys if isinstance(key, Top)))

    def __iter__(self) -> Iterator[RelayStorageKey]:
        return iter(self.keys)

    def __len__(self) -> int:
        return len(self.keys)


def _read_key(reader: ScaleReader) -> RelayStorageKey:
    start = reader.offset
    variant = reader.u8()
    if variant == 0:
        return Top(reader.bytes_())
    if variant == 1:
        return Child(reader.bytes_(), reader.bytes_())
    raise CodecError(f"RelayStorageKey is Top (0) or Child (1), got {variant}", start)
