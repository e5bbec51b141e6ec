"""Codecs made of codecs: structures, enums, options and bounded sequences.

A structure of one field may be transparent: its JSON is that of its field, as with Rust's tuple structs. An enum
knows the names of the variants that it does not read, and refuses them by name.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar, cast

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import encode_compact
from relaycast_xcm.codec import Codec, Json, XcmReader, wrong
from relaycast_xcm.exceptions import BoundExceeded, UnknownVariant, UnsupportedVariant

T = TypeVar("T")


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
