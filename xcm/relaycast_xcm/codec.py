"""Codecs: one object for each type of the XCM vocabulary, from SCALE and JSON to values and back.

A codec decodes in one way only; the reader records what each byte means when it is asked to, so that annotated bytes
cannot tell another story than executed ones. Bytes that are wrong raise ``CodecError``; JSON that is wrong is a
caller's slip and raises ``ValueError`` with the path of the place.
"""

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Generic, TypeVar, cast

import msgspec

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact
from relaycast_xcm.exceptions import BoundExceeded, TooDeep, TooManyInstructions, UnknownVariant, UnsupportedVariant

MAX_XCM_DECODE_DEPTH = 8
"""Containers inside containers that a message may have (staging-xcm)."""

MAX_INSTRUCTIONS_TO_DECODE = 100
"""Instructions of a message, nested ones counted (staging-xcm)."""

SHOWN_BYTES = 40
"""How many bytes of a blob an annotation shows."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
T = TypeVar("T")


class Span(msgspec.Struct, frozen=True):
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


class Struct(Codec[T]):
    """A dataclass whose fields are written one after another, in the order of ``fields``."""

    def __init__(
        self, cls: type[T], fields: Mapping[str, Codec[Any]], *, name: str | None = None, transparent: bool = False
    ) -> None:
        self.cls = cls
        self.fields = dict(fields)
        self.type_name = name or cls.__name__
        self.transparent = transparent
        if transparent and len(self.fields) != 1:
            raise ValueError(f"{self.type_name} is transparent and has {len(self.fields)} fields")

    def encode(self, value: T) -> bytes:
        return b"".join(codec.encode(getattr(value, name)) for name, codec in self.fields.items())

    def decode(self, reader: XcmReader) -> T:
        found = []
        for name, codec in self.fields.items():
            if self.transparent:
                found.append(codec.decode(reader))
                continue
            reader.path.append(name)
            found.append(codec.decode(reader))
            reader.path.pop()
        return self.cls(**dict(zip(self.fields, found, strict=True)))

    def to_json(self, value: T) -> Json:
        shown: dict[str, Json] = {name: codec.to_json(getattr(value, name)) for name, codec in self.fields.items()}
        return next(iter(shown.values())) if self.transparent else shown

    def from_json(self, data: Json, path: str) -> T:
        """Field names come in Python's case or in JavaScript's; each must be there, and nothing else."""
        if self.transparent:
            name, codec = next(iter(self.fields.items()))
            return self.cls(**{name: codec.from_json(data, path)})
        if not self.fields and data in (None, [], {}):
            return self.cls()
        if not isinstance(data, dict):
            raise wrong(path, f"an object with {', '.join(self.fields) or 'nothing'}", data)
        given = {_snake_case(name): item for name, item in data.items()}
        for name in given:
            if name not in self.fields:
                raise ValueError(f"{path}: {self.type_name} has no field {name!r}{_nearest(name, self.fields)}")
        for name in self.fields:
            if name not in given:
                raise ValueError(f"{path}: {self.type_name} lacks its field {name!r}")
        return self.cls(**{name: codec.from_json(given[name], f"{path}.{name}") for name, codec in self.fields.items()})

    def order(self, value: T) -> Any:
        return tuple(codec.order(getattr(value, name)) for name, codec in self.fields.items())


class Tagged(Codec[T]):
    """An enum: an index byte, then the variant's fields.

    ``variants`` are structures by index; ``units`` is an ``IntEnum`` of those that hold nothing; ``known`` names by
    index those that the type has and this package does not read.
    """

    def __init__(
        self,
        type_name: str,
        variants: Mapping[int, Struct[Any]],
        *,
        units: type[IntEnum] | None = None,
        known: Mapping[int, str] | None = None,
    ) -> None:
        self.type_name = type_name
        self.variants = dict(variants)
        self.units: dict[int, IntEnum] = {} if units is None else {int(unit): unit for unit in units}
        self.known = known or {}
        self.indices = {struct.cls: index for index, struct in self.variants.items()}
        self.labels = {struct.type_name: index for index, struct in self.variants.items()}
        self.labels |= {_label(unit): index for index, unit in self.units.items()}

    def index_of(self, value: T) -> int:
        """Return the variant's index; ``TypeError`` for what is no value of this enum."""
        if isinstance(value, IntEnum) and self.units.get(int(value)) is value:
            return int(value)
        try:
            return self.indices[type(value)]
        except KeyError:
            raise TypeError(f"{self.type_name} expected, got {value!r}") from None

    def encode(self, value: T) -> bytes:
        index = self.index_of(value)
        tag = index.to_bytes(1, "little")
        return tag + self.variants[index].encode(value) if index in self.variants else tag

    def decode(self, reader: XcmReader) -> T:
        start = reader.offset
        index = reader.u8()
        if index in self.units:
            unit = self.units[index]
            reader.mark(start, self.type_name, _label(unit))
            return cast("T", unit)
        struct = self.variants.get(index)
        if struct is None:
            raise self._refusal(index, start)
        reader.mark(start, self.type_name, struct.type_name)
        reader.path.append(struct.type_name)
        value = struct.decode(reader)
        reader.path.pop()
        return cast("T", value)

    def to_json(self, value: T) -> Json:
        index = self.index_of(value)
        if index not in self.variants:
            return _label(self.units[index])
        struct = self.variants[index]
        return {struct.type_name: struct.to_json(value)} if struct.fields else struct.type_name

    def from_json(self, data: Json, path: str) -> T:
        """Return the variant that a name tells, or an object with a name as its only key."""
        if isinstance(data, str):
            data = {data: None}
        if not isinstance(data, dict) or len(data) != 1:
            raise wrong(path, f"{self.type_name} as a name, or as an object with one name", data)
        label, content = next(iter(data.items()))
        index = self.labels.get(label)
        if index is None:
            known = " (known, not supported)" if label in self.known.values() else _nearest(label, self.labels)
            raise ValueError(f"{path}: {self.type_name} has no variant {label!r}{known}")
        if index in self.variants:
            return cast("T", self.variants[index].from_json(content, f"{path}.{label}"))
        if content is not None:
            raise wrong(f"{path}.{label}", "nothing", content)
        return cast("T", self.units[index])

    def order(self, value: T) -> Any:
        index = self.index_of(value)
        return (index, self.variants[index].order(value) if index in self.variants else ())

    def _refusal(self, index: int, offset: int) -> CodecError:
        if index in self.known:
            return UnsupportedVariant(self.type_name, self.known[index], index, offset)
        return UnknownVariant(self.type_name, index, offset)


class Optional(Codec[T | None]):
    """``Option<T>``, and enums of the same form under the names of ``labels``."""

    def __init__(self, item: Codec[T], *, labels: tuple[str, str] | None = None, name: str | None = None) -> None:
        self.item = item
        self.labels = labels
        self.type_name = name or f"Option<{item.type_name}>"

    def encode(self, value: T | None) -> bytes:
        return b"\x00" if value is None else b"\x01" + self.item.encode(value)

    def decode(self, reader: XcmReader) -> T | None:
        start = reader.offset
        present = reader.option()
        reader.mark(start, self.type_name, (self.labels or ("None", "Some"))[present])
        return self.item.decode(reader) if present else None

    def to_json(self, value: T | None) -> Json:
        if self.labels is None:
            return None if value is None else self.item.to_json(value)
        return self.labels[0] if value is None else {self.labels[1]: self.item.to_json(value)}

    def from_json(self, data: Json, path: str) -> T | None:
        if self.labels is None:
            return None if data is None else self.item.from_json(data, path)
        if data == self.labels[0] or data == {self.labels[0]: None}:
            return None
        if isinstance(data, dict) and list(data) == [self.labels[1]]:
            return self.item.from_json(data[self.labels[1]], f"{path}.{self.labels[1]}")
        raise wrong(path, f"{self.labels[0]!r} or an object with {self.labels[1]!r}", data)

    def order(self, value: T | None) -> Any:
        return (0, ()) if value is None else (1, self.item.order(value))


class ListOf(Codec[tuple[T, ...]]):
    """A vector of structures, of at most ``limit`` items."""

    def __init__(self, item: Codec[T], *, limit: int, name: str | None = None) -> None:
        self.item = item
        self.limit = limit
        self.type_name = name or f"BoundedVec<{item.type_name}, {limit}>"

    def encode(self, value: Sequence[T]) -> bytes:
        if len(value) > self.limit:
            raise ValueError(f"{self.type_name} holds at most {self.limit}, got {len(value)}")
        return encode_compact(len(value)) + b"".join(map(self.item.encode, value))

    def decode(self, reader: XcmReader) -> tuple[T, ...]:
        start = reader.offset
        count = reader.length()
        if count > self.limit:
            raise BoundExceeded(self.type_name, count, self.limit, start)
        reader.mark(start, self.type_name, f"count {count}")
        return read_items(self.item, count, reader)

    def to_json(self, value: tuple[T, ...]) -> Json:
        return [self.item.to_json(item) for item in value]

    def from_json(self, data: Json, path: str) -> tuple[T, ...]:
        if not isinstance(data, list) or len(data) > self.limit:
            raise wrong(path, f"a list of at most {self.limit}", data)
        return tuple(self.item.from_json(item, f"{path}[{at}]") for at, item in enumerate(data))

    def order(self, value: tuple[T, ...]) -> Any:
        return tuple(map(self.item.order, value))


def read_items(item: Codec[T], count: int, reader: XcmReader) -> tuple[T, ...]:
    """Read ``count`` items of a container, one level deeper."""
    reader.descend()
    items = []
    for at in range(count):
        reader.path.append(f"[{at}]")
        items.append(item.decode(reader))
        reader.path.pop()
    reader.ascend()
    return tuple(items)


def _label(unit: IntEnum) -> str:
    return "".join(part.capitalize() for part in unit.name.split("_"))


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _nearest(name: str, names: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f", did you mean {close[0]!r}?" if close else ""
