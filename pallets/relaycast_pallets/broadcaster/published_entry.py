"""What a child trie holds under a published key: the value, its time to live, and the relay block that wrote it."""

from msgspec import Struct

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, length_prefix
from relaycast_xcm.primitives import U32_MAX, BlockCount, BlockNumber

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
        reader = ScaleReader(data)
        entry = cls(reader.bytes_(), reader.u32(), reader.u32())
        reader.done()
        return entry

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
