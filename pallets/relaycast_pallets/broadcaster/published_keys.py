"""The keys that a publisher has stored: a sorted set, kept as the very bytes that storage holds.

A set of thousands of keys is searched, extended and shortened inside its encoding. One more publish costs one copy of
the bytes, not one object for each key.
"""

from collections.abc import Iterator

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_compact

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
