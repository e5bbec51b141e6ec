"""Rust types as text: ``BTreeMap<ParaId, Vec<u8>>``, and declarations of structs and enums.

The grammar is the part of Rust's that types of chains need. A declaration names its path in full:
``struct sp_core::crypto::AccountId32([u8; 32]);``
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\s*(?://[^\n]*\n\s*)*([A-Za-z_0-9]+(?:::[A-Za-z_0-9]+)*|[<>()\[\]{},;:=])?")


@dataclass(frozen=True, slots=True)
class Named:
    """A type with a name, such as ``Option<u32>``; of a path the last part counts."""

    name: str
    arguments: "tuple[RustType, ...]" = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.arguments))}>" if self.arguments else self.name


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """``[T; length]``."""

    element: "RustType"
    length: int

    def __str__(self) -> str:
        return f"[{self.element}; {self.length}]"


@dataclass(frozen=True, slots=True)
class TupleOf:
    """``(A, B)``; ``()`` is the empty one."""

    elements: "tuple[RustType, ...]"

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


RustType = Named | ArrayOf | TupleOf


@dataclass(frozen=True, slots=True)
class FieldSyntax:
    """A field; ``name`` is ``None`` in tuple-like types."""

    name: str | None
    type: RustType


@dataclass(frozen=True, slots=True)
class CaseSyntax:
    """A variant of an enum."""

    name: str
    index: int
    fields: tuple[FieldSyntax, ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A struct with ``fields``, or an enum with ``cases``; ``parameters`` are names of type parameters."""

    path: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    fields: tuple[FieldSyntax, ...] = ()
    cases: tuple[CaseSyntax, ...] | None = None

    @property
    def name(self) -> str:
        return self.path[-1]

    def bound(self, arguments: tuple[RustType, ...]) -> dict[str, RustType]:
        """Return what each type parameter stands for; ``ValueError`` unless there are as many ``arguments``."""
        if len(arguments) != len(self.parameters):
            raise ValueError(f"{self.name} takes {len(self.parameters)} types, got {len(arguments)}")
        return dict(zip(self.parameters, arguments, strict=True))


def parse_type(text: str) -> RustType:
    """Return the type that ``text`` spells; raises ``ValueError``."""
    reader = _Reader(text)
    found = reader.type()
    reader.end()
    return found


def parse_declarations(text: str) -> list[Declaration]:
    """Return all structs and enums of ``text``; raises ``ValueError``."""
    reader = _Reader(text)
    found = []
    while not reader.at_end:
        found.append(reader.declaration())
    return found


def substituted(rust_type: RustType, bound: dict[str, RustType]) -> RustType:
    """Return a type with its parameters replaced by what they stand for."""
    if isinstance(rust_type, Named):
        if not rust_type.arguments and rust_type.name in bound:
            return bound[rust_type.name]
        return Named(rust_type.name, tuple(substituted(it, bound) for it in rust_type.arguments))
    if isinstance(rust_type, ArrayOf):
        return ArrayOf(substituted(rust_type.element, bound), rust_type.length)
    return TupleOf(tuple(substituted(it, bound) for it in rust_type.elements))


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._token = ""
        self._advance()

    @property
    def at_end(self) -> bool:
        return not self._token

    def end(self) -> None:
        if not self.at_end:
            self._refuse("the end")

    def type(self) -> RustType:
        if self._skip("("):
            return TupleOf(self._types(")"))
        if self._skip("["):
            element = self.type()
            self._expect(";")
            length = int(self._word())
            self._expect("]")
            return ArrayOf(element, length)
        name = self._word().rpartition("::")[2]
        return Named(name, self._types(">") if self._skip("<") else ())

    def declaration(self) -> Declaration:
        kind = self._word()
        if kind not in {"struct", "enum"}:
            raise ValueError(f"expected struct or enum, got {kind!r}")
        path = tuple(self._word().split("::"))
        parameters = tuple(str(it) for it in self._types(">")) if self._skip("<") else ()
        if kind == "enum":
            return Declaration(path, parameters, cases=self._cases())
        fields = self._fields()
        self._skip(";")
        return Declaration(path, parameters, fields)

    def _cases(self) -> tuple[CaseSyntax, ...]:
        self._expect("{")
        cases: list[CaseSyntax] = []
        while not self._skip("}"):
            name, fields = self._word(), self._fields()
            index = int(self._word()) if self._skip("=") else (cases[-1].index + 1 if cases else 0)
            cases.append(CaseSyntax(name, index, fields))
            if not self._skip(","):
                self._expect("}")
                break
        return tuple(cases)

    def _fields(self) -> tuple[FieldSyntax, ...]:
        if self._skip("("):
            return tuple(FieldSyntax(None, it) for it in self._types(")"))
        if not self._skip("{"):
            return ()
        fields = []
        while not self._skip("}"):
            name = self._word()
            self._expect(":")
            fields.append(FieldSyntax(name, self.type()))
            if not self._skip(","):
                self._expect("}")
                break
        return tuple(fields)

    def _types(self, closing: str) -> tuple[RustType, ...]:
        types = []
        while not self._skip(closing):
            types.append(self.type())
            if not self._skip(","):
                self._expect(closing)
                break
        return tuple(types)

    def _word(self) -> str:
        word = self._token
        if not (word[:1].isalnum() or word[:1] == "_"):
            self._refuse("a name")
        self._advance()
        return word

    def _skip(self, token: str) -> bool:
        if self._token != token:
            return False
        self._advance()
        return True

    def _expect(self, token: str) -> None:
        if not self._skip(token):
            self._refuse(repr(token))

    def _refuse(self, expected: str) -> None:
        raise ValueError(f"expected {expected} before {self._text[self._at - len(self._token) :][:20]!r}")

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        assert match is not None
        self._token = match[1] or ""
        self._at = match.end()
        if not self._token and self._at < len(self._text):
            raise ValueError(f"expected a Rust type, got {self._text[self._at :][:20]!r}")
