"""Types as metadata describes them (scale-info), numbered in a registry.

Law: a type is added once, under its Rust spelling, and never changes its number. A type may contain itself: its number
is given out before its definition is complete.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from relaycast_trie.scale import encode_bytes, encode_compact, encode_option, encode_u8, encode_u32, encode_vec

PRIMITIVES = (
    "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "u256", "i8", "i16", "i32", "i64", "i128", "i256",
)  # fmt: skip
"""The primitives of scale-info, in the order of their variants."""

Docs = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field; ``name`` is ``None`` in tuple-like types."""

    name: str | None
    type: int
    type_name: str = ""
    docs: Docs = ()

    def encode(self) -> bytes:
        named = encode_option(None if self.name is None else encode_text(self.name)) + encode_compact(self.type)
        return named + encode_option(encode_text(self.type_name) if self.type_name else None) + encode_docs(self.docs)


@dataclass(frozen=True, slots=True)
class Case:
    """One variant of an enum."""

    name: str
    index: int
    fields: tuple[Field, ...] = ()
    docs: Docs = ()

    def encode(self) -> bytes:
        fields = encode_vec(field.encode() for field in self.fields)
        return encode_text(self.name) + fields + encode_u8(self.index) + encode_docs(self.docs)


@dataclass(frozen=True, slots=True)
class Composite:
    """A struct."""

    fields: tuple[Field, ...]

    def encode(self) -> bytes:
        return b"\x00" + encode_vec(field.encode() for field in self.fields)


@dataclass(frozen=True, slots=True)
class Variants:
    """An enum."""

    cases: tuple[Case, ...]

    def encode(self) -> bytes:
        return b"\x01" + encode_vec(case.encode() for case in self.cases)


@dataclass(frozen=True, slots=True)
class Sequence:
    """``Vec<T>``."""

    type: int

    def encode(self) -> bytes:
        return b"\x02" + encode_compact(self.type)


@dataclass(frozen=True, slots=True)
class Array:
    """``[T; length]``."""

    length: int
    type: int

    def encode(self) -> bytes:
        return b"\x03" + encode_u32(self.length) + encode_compact(self.type)


@dataclass(frozen=True, slots=True)
class Tuple:
    """``(A, B, ...)``."""

    types: tuple[int, ...]

    def encode(self) -> bytes:
        return b"\x04" + encode_vec(map(encode_compact, self.types))


@dataclass(frozen=True, slots=True)
class Primitive:
    """One of ``PRIMITIVES``."""

    name: str

    def encode(self) -> bytes:
        return b"\x05" + encode_u8(PRIMITIVES.index(self.name))


@dataclass(frozen=True, slots=True)
class Compact:
    """``Compact<T>``."""

    type: int

    def encode(self) -> bytes:
        return b"\x06" + encode_compact(self.type)


Definition = Composite | Variants | Sequence | Array | Tuple | Primitive | Compact


@dataclass(frozen=True, slots=True)
class PortableType:
    """A type: its ``path`` (none for what Rust builds in), the ``params`` it was made with, and its definition."""

    definition: Definition
    path: tuple[str, ...] = ()
    params: tuple[tuple[str, int | None], ...] = ()
    docs: Docs = ()

    def encode(self) -> bytes:
        params = encode_vec(
            encode_text(name) + encode_option(None if number is None else encode_compact(number))
            for name, number in self.params
        )
        path = encode_vec(map(encode_text, self.path))
        return path + params + self.definition.encode() + encode_docs(self.docs)


class PortableRegistry:
    """All types of one metadata, by number."""

    def __init__(self) -> None:
        self._types: list[PortableType | None] = []
        self._numbers: dict[str, int] = {}

    def number(self, spelling: str, make: Callable[[], PortableType]) -> int:
        """Return the number of the type that is spelled like this; ``make`` is asked for it the first time."""
        known = self._numbers.get(spelling)
        if known is not None:
            return known
        number = self._numbers[spelling] = len(self._types)
        self._types.append(None)
        self._types[number] = make()
        return number

    def __getitem__(self, number: int) -> PortableType:
        found = self._types[number]
        assert found is not None, "the type is under way"
        return found

    def __len__(self) -> int:
        return len(self._types)

    def encode(self) -> bytes:
        """SCALE ``PortableRegistry``: each type behind its number."""
        return encode_vec(encode_compact(number) + self[number].encode() for number in range(len(self)))


def encode_text(text: str) -> bytes:
    """Return a ``String``."""
    return encode_bytes(text.encode())


def encode_docs(docs: Iterable[str]) -> bytes:
    """Return a ``Vec<String>``."""
    return encode_vec(map(encode_text, docs))
