"""SCALE primitives, written and read by hand where speed counts.

Encoding is by function, decoding by a reader that knows where it stands. Only canonical bytes decode: a compact
integer in more bytes than it needs is refused, as parity-scale-codec does.
"""

from collections.abc import Iterable
from functools import lru_cache

from relaycast_trie.exceptions import CodecError


def encode_u8(number: int) -> bytes:
    return number.to_bytes(1, "little")


def encode_u16(number: int) -> bytes:
    return number.to_bytes(2, "little")


def encode_u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def encode_u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def encode_u128(number: int) -> bytes:
    return number.to_bytes(16, "little")


def encode_compact(number: int) -> bytes:
    """``Compact<T>``: 1, 2 or 4 bytes with the mode in the low two bits, or a length byte and 4 to 67 bytes."""
    if number < 0:
        raise ValueError(f"a compact integer is not negative, got {number}")
    if number < 1 << 6:
        return encode_u8(number << 2)
    if number < 1 << 14:
        return encode_u16(number << 2 | 1)
    if number < 1 << 30:
        return encode_u32(number << 2 | 2)
    size = max(4, (number.bit_length() + 7) // 8)
    if size > 67:
        raise ValueError(f"a compact integer has at most 536 bits, got {number.bit_length()}")
    return encode_u8(size - 4 << 2 | 3) + number.to_bytes(size, "little")


_compact_length = lru_cache(maxsize=1 << 12)(encode_compact)


def encode_bytes(data: bytes) -> bytes:
    """``Vec<u8>``."""
    return _compact_length(len(data)) + data


def encode_vec(items: Iterable[bytes]) -> bytes:
    """``Vec<T>`` of items that are encoded already."""
    encoded = list(items)
    return encode_compact(len(encoded)) + b"".join(encoded)


def encode_option(encoded: bytes | None) -> bytes:
    """``Option<T>`` of an item that is encoded already."""
    return b"\x00" if encoded is None else b"\x01" + encoded


@lru_cache(maxsize=1 << 12)
def length_prefix(size: int) -> bytes | None:
    """Return the compact length with which ``size`` bytes start that are a ``Vec<u8>``; ``None`` when none can."""
    for prefix_bytes in (1, 2, 4, 5):
        if size >= prefix_bytes and len(prefix := encode_compact(size - prefix_bytes)) == prefix_bytes:
            return prefix
    return None


class ScaleReader:
    """Reads SCALE values one after another; every method raises ``CodecError`` with the offset where the bytes fail."""

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data = data
        self.offset = offset

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self.data) - self.offset

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes as they are."""
        end = self.offset + size
        if end > len(self.data):
            raise CodecError(f"{size} bytes expected, {self.remaining} left", self.offset)
        taken = self.data[self.offset : end]
        self.offset = end
        return taken

    def u8(self) -> int:
        return self.take(1)[0]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def u128(self) -> int:
        return int.from_bytes(self.take(16), "little")

    def compact(self) -> int:
        """Return a canonical compact integer of any width up to 536 bits."""
        start = self.offset
        mode = self.u8()
        if mode & 3 == 0:
            return mode >> 2
        if mode & 3 == 3:
            return self._big_compact(start, (mode >> 2) + 4)
        self.offset = start
        size, smallest = (2, 1 << 6) if mode & 3 == 1 else (4, 1 << 14)
        number = int.from_bytes(self.take(size), "little") >> 2
        if number < smallest:
            raise CodecError(f"compact {number} takes more bytes than it needs", start)
        return number

    def _big_compact(self, start: int, size: int) -> int:
        number = int.from_bytes(self.take(size), "little")
        if number < (1 << 30 if size == 4 else 1 << 8 * (size - 1)):
            raise CodecError(f"compact {number} takes more bytes than it needs", start)
        return number

    def length(self, item_size: int = 1) -> int:
        """Return the compact length of a sequence of items of ``item_size`` bytes or more; refuse what cannot fit."""
        start = self.offset
        count = self.compact()
        if count * item_size > self.remaining:
            raise CodecError(f"{count} items announced, {self.remaining} bytes left", start)
        return count

    def bytes_(self) -> bytes:
        """``Vec<u8>``."""
        return self.take(self.length())

    def option(self) -> bool:
        """Return whether an ``Option`` holds something; its value comes next."""
        start = self.offset
        byte = self.u8()
        if byte > 1:
            raise CodecError(f"an Option starts with 0 or 1, got {byte}", start)
        return byte == 1

    def done(self) -> None:
        """Refuse bytes that are left over."""
        if self.remaining:
            raise CodecError(f"{self.remaining} bytes left over", self.offset)
