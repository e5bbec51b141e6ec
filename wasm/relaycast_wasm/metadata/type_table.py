"""The types that metadata from V14 on describes (scale-info's ``PortableRegistry``).

Law: a type's number is its place, and every number that stands in a type leads to one. Types may contain
themselves; who walks through them counts the steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from relaycast_trie.exceptions import CodecError
from relaycast_wasm.metadata.reader import MetadataReader

MAX_TYPES = 1 << 14
"""Ten times what the largest runtimes have."""

MAX_MEMBERS = 1 << 17
"""Fields and variants of all types together: ten times what the largest runtimes have."""

Kind = Literal["composite", "variant", "sequence", "array", "tuple", "primitive", "compact", "bits"]

KINDS: tuple[Kind, ...] = ("composite", "variant", "sequence", "array", "tuple", "primitive", "compact", "bits")
"""``TypeDef``, in the order of its variants."""

PRIMITIVES = (
    "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "u256", "i8", "i16", "i32", "i64", "i128", "i256",
)  # fmt: skip
"""``TypeDefPrimitive``, in the order of its variants."""


@dataclass(frozen=True, slots=True)
class TypeField:
    """A field: its ``type`` by number, and that type as the source spells it."""

    name: str | None
    type: int
    type_name: str | None = None
    docs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeCase:
    """A variant of an enum."""

    name: str
    index: int
    fields: tuple[TypeField, ...] = ()
    docs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedType:
    """A type: a composite has ``fields``, a variant ``cases``, a primitive a ``name``; others what is ``inside``.

    Bits are inside of two types, the store and the order; an array has a ``length``.
    """

    kind: Kind
    path: tuple[str, ...] = ()
    params: tuple[tuple[str, int | None], ...] = ()
    fields: tuple[TypeField, ...] = ()
    cases: tuple[TypeCase, ...] = ()
    inside: tuple[int, ...] = ()
    length: int = 0
    name: str = ""
    docs: tuple[str, ...] = ()

    def numbers(self) -> Iterator[int]:
        """Iterate over the types that stand in this one; the params are only named."""
        yield from self.inside
        for field in chain(self.fields, *(case.fields for case in self.cases)):
            yield field.type


class TypeTable:
    """All types of one metadata, by number."""

    __slots__ = ("_types",)

    def __init__(self, types: tuple[DescribedType, ...]) -> None:
        self._types = types

    def __getitem__(self, number: int) -> DescribedType:
        return self._types[number]

    def __len__(self) -> int:
        return len(self._types)

    def __iter__(self) -> Iterator[DescribedType]:
        return iter(self._types)

    def __repr__(self) -> str:
        return f"<TypeTable of {len(self):,} types>"


def read_type_table(reader: MetadataReader) -> TypeTable:
    """Read a ``PortableRegistry``; raises ``CodecError``."""
    start = reader.offset
    count = reader.length()
    if count > MAX_TYPES:
        raise CodecError(f"at most {MAX_TYPES:,} types expected, got {count:,}", start)
    types, offsets, members = [], [], 0
    for place in range(count):
        offsets.append(reader.offset)
        number = reader.compact()
        if number != place:
            raise CodecError(f"type {place} expected, got {number}", offsets[-1])
        read = _TypeReader(reader)
        types.append(read.type())
        members += read.members
        if members > MAX_MEMBERS:
            raise CodecError(f"at most {MAX_MEMBERS:,} fields and variants expected", offsets[-1])
    for offset, described in zip(offsets, types, strict=True):
        named = (number for _, number in described.params if number is not None)
        for number in chain(described.numbers(), named):
            if number >= count:
                raise CodecError(f"a type below {count:,} expected, got {number}", offset)
    return TypeTable(tuple(types))


class _TypeReader:
    """Reads one type, and counts its ``members``."""

    def __init__(self, reader: MetadataReader) -> None:
        self.reader = reader
        self.members = 0

    def type(self) -> DescribedType:
        reader = self.reader
        path = reader.texts()
        params = reader.items(self._param)
        kind = reader.choice(KINDS, "a type's kind")
        fields: tuple[TypeField, ...] = ()
        cases: tuple[TypeCase, ...] = ()
        inside: tuple[int, ...] = ()
        length, name = 0, ""
        match kind:
            case "composite":
                fields = reader.items(self._field)
            case "variant":
                cases = reader.items(self._case)
            case "sequence" | "compact":
                inside = (reader.compact(),)
            case "array":
                length = reader.u32()
                inside = (reader.compact(),)
            case "tuple":
                inside = reader.items(self._number)
            case "primitive":
                name = reader.choice(PRIMITIVES, "a primitive")
            case "bits":
                inside = (reader.compact(), reader.compact())
        return DescribedType(kind, path, params, fields, cases, inside, length, name, reader.texts())

    def _number(self) -> int:
        self.members += 1
        return self.reader.compact()

    def _param(self) -> tuple[str, int | None]:
        name = self.reader.text()
        return name, self._number() if self.reader.option() else None

    def _field(self) -> TypeField:
        reader = self.reader
        name = reader.optional_text()
        number = self._number()
        return TypeField(name, number, reader.optional_text(), reader.texts())

    def _case(self) -> TypeCase:
        self.members += 1
        reader = self.reader
        name = reader.text()
        fields = reader.items(self._field)
        return TypeCase(name, reader.u8(), fields, reader.texts())
