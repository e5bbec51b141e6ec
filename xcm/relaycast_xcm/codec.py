"""Codecs: one object for each type of the XCM vocabulary, from SCALE and JSON to values and back.

A codec decodes in one way only; the reader records what each byte means when it is asked to, so that annotated bytes
cannot tell another story than executed ones. Bytes that are wrong raise ``CodecError``; JSON that is wrong is a
caller's slip and raises ``ValueError`` with the path of the place.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from msgspec import Struct

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact
from relaycast_xcm.exceptions import BoundExceeded, TooDeep, TooManyInstructions

MAX_XCM_DECODE_DEPTH = 8
"""Containers inside containers that a message may have (staging-xcm)."""

MAX_INSTRUCTIONS_TO_DECODE = 100
"""Instructions of a message, nested ones counted (staging-xcm)."""

SHOWN_BYTES = 40
"""How many bytes of a blob an annotation shows."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
T = TypeVar("T")


class Span(Struct, frozen=True):
    """Some bytes and what they are: where they stand, the ``path`` of the field, its type and its value as text."""

    offset: int
    data: bytes
    path: str
    type_name: str
    value: str

    @property
    def meaning(self) -> str:
        return f"{self.path}: {self.type_name} = {self.value}"


class XcmReader(ScaleReader):
    """A reader that counts depth and instructions, and records spans when ``spans`` is a list."""

    __slots__ = ("depth", "instructions", "path", "spans")

    def __init__(self, data: bytes, offset: int = 0, *, spans: list[Span] | None = None) -> None:
        super().__init__(data, offset)
        self.depth = 0
        self.instructions = 0
        self.path: list[str] = []
        self.spans = spans

    def descend(self) -> None:
        """Enter a container; parity-scale-codec counts every ``Vec`` of structures and every box."""
        self.depth += 1
        if self.depth > MAX_XCM_DECODE_DEPTH:
            raise TooDeep(MAX_XCM_DECODE_DEPTH, self.offset)

    def ascend(self) -> None:
        self.depth -= 1

    def count_instructions(self, count: int, offset: int) -> None:
        self.instructions += count
        if self.instructions > MAX_INSTRUCTIONS_TO_DECODE:
            raise TooManyInstructions(self.instructions, MAX_INSTRUCTIONS_TO_DECODE, offset)

    def mark(self, start: int, type_name: str, value: str) -> None:
        """Record the bytes from ``start`` to here under the current path."""
        if self.spans is not None:
            self.spans.append(Span(start, self.data[start : self.offset], self.here(), type_name, value))

    def here(self) -> str:
        """Return the path of the field that is being read, as in ``V5[0].Publish.key``."""
        parts = self.path or ["message"]
        return "".join(part if part.startswith("[") or not at else f".{part}" for at, part in enumerate(parts))


class Codec(ABC, Generic[T]):
    """How values of one type are written and read."""

    type_name: str

    @abstractmethod
    def encode(self, value: T) -> bytes: ...

    @abstractmethod
    def decode(self, reader: XcmReader) -> T: ...

    @abstractmethod
    def to_json(self, value: T) -> Json: ...

    @abstractmethod
    def from_json(self, data: Json, path: str) -> T: ...

    def order(self, value: T) -> Any:
        """Return what to sort by, so that order is that of Rust's derived ``Ord``."""
        return value


def decode_all(codec: Codec[T], data: bytes) -> T:
    """Return the value that ``data`` encodes from its first byte to its last."""
    reader = XcmReader(data)
    value = codec.decode(reader)
    reader.done()
    return value


def wrong(path: str, expected: str, got: object) -> ValueError:
    """Return the error for a piece of JSON that is not what its place asks for."""
    shown = repr(got)
    return ValueError(f"{path}: expected {expected}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


def read_hex(data: Json, path: str, expected: str) -> bytes:
    if not isinstance(data, str) or not data.startswith("0x"):
        raise wrong(path, expected, data)
    try:
        return bytes.fromhex(data[2:])
    except ValueError:
        raise wrong(path, expected, data) from None


class UInt(Codec[int]):
    """A number of ``size`` bytes, little-endian."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.limit = 1 << 8 * size
        self.type_name = f"u{8 * size}"

    def encode(self, value: int) -> bytes:
        return self._checked(value).to_bytes(self.size, "little")

    def decode(self, reader: XcmReader) -> int:
        start = reader.offset
        value = int.from_bytes(reader.take(self.size), "little")
        reader.mark(start, self.type_name, str(value))
        return value

    def to_json(self, value: int) -> Json:
        return value

    def from_json(self, data: Json, path: str) -> int:
        """Numbers come as numbers, or as decimal text where JavaScript would round them."""
        if isinstance(data, str) and data.replace(",", "").isdecimal():
            data = int(data.replace(",", ""))
        if isinstance(data, bool) or not isinstance(data, int) or not 0 <= data < self.limit:
            raise wrong(path, f"a {self.type_name}", data)
        return data

    def _checked(self, value: int) -> int:
        if not 0 <= value < self.limit:
            raise ValueError(f"a {self.type_name} is 0 to {self.limit - 1}, got {value}")
        return value


class CompactUInt(UInt):
    """A compact number that fits ``size`` bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.type_name = f"Compact<u{8 * size}>"

    def encode(self, value: int) -> bytes:
        return encode_compact(self._checked(value))

    def decode(self, reader: XcmReader) -> int:
        start = reader.offset
        value = reader.compact()
        if value >= self.limit:
            raise CodecError(f"a {self.type_name} is at most {self.limit - 1}, got {value}", start)
        reader.mark(start, self.type_name, str(value))
        return value


class FixedBytes(Codec[bytes]):
    """Exactly ``size`` bytes, without a length before them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.type_name = f"[u8; {size}]"

    def encode(self, value: bytes) -> bytes:
        if len(value) != self.size:
            raise ValueError(f"{self.size} bytes expected, got {len(value)}")
        return bytes(value)

    def decode(self, reader: XcmReader) -> bytes:
        start = reader.offset
        value = reader.take(self.size)
        reader.mark(start, self.type_name, "0x" + value.hex())
        return value

    def to_json(self, value: bytes) -> Json:
        return "0x" + value.hex()

    def from_json(self, data: Json, path: str) -> bytes:
        expected = f"{self.size} bytes as 0x hex"
        value = read_hex(data, path, expected)
        if len(value) != self.size:
            raise wrong(path, expected, data)
        return value


class Blob(Codec[bytes]):
    """``Vec<u8>``, of at most ``limit`` bytes where there is a limit."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.type_name = "Vec<u8>" if limit is None else f"BoundedVec<u8, {limit}>"

    def encode(self, value: bytes) -> bytes:
        self._check(value)
        return encode_bytes(value)

    def decode(self, reader: XcmReader) -> bytes:
        start = reader.offset
        size = reader.length()
        if self.limit is not None and size > self.limit:
            raise BoundExceeded(self.type_name, size, self.limit, start)
        value = reader.take(size)
        if reader.spans is not None:
            shown = value.hex() if size <= SHOWN_BYTES else f"{value[:SHOWN_BYTES].hex()}..."
            reader.mark(start, self.type_name, f"0x{shown} ({size} byte{'' if size == 1 else 's'})")
        return value

    def to_json(self, value: bytes) -> Json:
        return "0x" + value.hex()

    def from_json(self, data: Json, path: str) -> bytes:
        """Bytes come as 0x hex, or as polkadot.js writes a call: ``{"encoded": "0x.."}``."""
        if isinstance(data, dict) and list(data) == ["encoded"]:
            data = data["encoded"]
        value = read_hex(data, path, "bytes as 0x hex")
        if self.limit is not None and len(value) > self.limit:
            raise wrong(path, f"at most {self.limit} bytes", f"{len(value)} bytes")
        return value

    def _check(self, value: bytes) -> None:
        if self.limit is not None and len(value) > self.limit:
            raise ValueError(f"at most {self.limit} bytes are allowed, got {len(value)}")


U8, U32 = UInt(1), UInt(4)
COMPACT_U32, COMPACT_U64, COMPACT_U128 = CompactUInt(4), CompactUInt(8), CompactUInt(16)
BYTES_4, BYTES_20, BYTES_32 = FixedBytes(4), FixedBytes(20), FixedBytes(32)
BYTES = Blob()
