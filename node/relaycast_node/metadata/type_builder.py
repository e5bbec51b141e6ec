"""From Rust types to numbered ones: declarations, classes of pallets, and what Rust builds in."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import get_type_hints

from msgspec import Struct

from relaycast_node.metadata.portable_types import (
    PRIMITIVES,
    Array,
    Case,
    Compact,
    Composite,
    Field,
    PortableRegistry,
    PortableType,
    Primitive,
    Sequence,
    Tuple,
    Variants,
)
from relaycast_node.metadata.python_types import docs_of, field_name, rust_type_of
from relaycast_node.metadata.rust_syntax import (
    ArrayOf,
    Declaration,
    FieldSyntax,
    Named,
    RustType,
    TupleOf,
    parse_type,
    substituted,
)

VECTORS = frozenset({"Vec", "BoundedVec", "WeakBoundedVec"})
"""A bounded vector has the bytes of one without a bound, which is known to the pallet alone."""

ALIASES = {"String": "str", "Text": "str", "Bytes": "Vec<u8>"}


class TypeBuilder:
    """Numbers types in a ``registry``: declared ones, classes of pallets by their names, and built-in ones."""

    def __init__(self, declarations: Iterable[Declaration] = ()) -> None:
        self.registry = PortableRegistry()
        self._declared = {it.name: it for it in declarations}
        self._classes: dict[str, type] = {}
        self._defined: dict[str, Callable[[], PortableType]] = {}

    def define(self, name: str, make: Callable[[], PortableType]) -> None:
        """Let ``name`` stand for a type that is made when it is first asked for."""
        self._defined[name] = make

    def add_class(self, cls: type) -> None:
        """Let the name of a dataclass stand for a struct with its fields; ``ValueError`` where the name is taken."""
        known = self._classes.setdefault(cls.__name__, cls)
        if known is not cls:
            raise ValueError(f"two classes are called {cls.__name__}: in {known.__module__} and {cls.__module__}")

    def spelled(self, text: str) -> int:
        """Return the number of the type that is spelled like this; raises ``ValueError`` for one that is unknown."""
        return self.number(parse_type(ALIASES.get(text, text)))

    def annotated(self, annotation: object) -> int:
        """Return the number of the type that a Python annotation stands for; raises ``TypeError``, ``ValueError``."""
        return self.number(self._rust_type(annotation))

    def field(self, name: str, annotation: object) -> Field:
        """Return a field of the type that an annotation stands for; raises ``TypeError``, ``ValueError``."""
        rust_type = self._rust_type(annotation)
        return Field(field_name(name), self.number(rust_type), str(rust_type))

    def fields_of(self, cls: type) -> tuple[Field, ...]:
        """Return the fields of a struct, a dataclass or a named tuple."""
        hints = get_type_hints(cls, include_extras=True)
        return tuple(self._field_of(cls, name, hints[name]) for name in _field_names(cls, hints))

    def _field_of(self, cls: type, name: str, hint: object) -> Field:
        try:
            return self.field(name, hint)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}.{name}: {error}") from error

    def number(self, rust_type: RustType) -> int:
        """Return the number of a type, which is made when it is first asked for."""
        if isinstance(rust_type, Named):
            if rust_type.name in {"Box", "BTreeSet"} or rust_type.name in VECTORS:
                return self._wrapped(rust_type)
            if rust_type.name in ALIASES:
                return self.spelled(ALIASES[rust_type.name])
        return self.registry.number(str(rust_type), lambda: self._made(rust_type))

    def _rust_type(self, annotation: object) -> RustType:
        return rust_type_of(annotation, self.add_class)

    def _wrapped(self, named: Named) -> int:
        if named.name == "Box":
            return self.number(named.arguments[0])
        spelling = Named("Vec", named.arguments[:1])
        if named.name in VECTORS:
            return self.registry.number(
                str(spelling), lambda: PortableType(Sequence(self.number(spelling.arguments[0])))
            )
        return self.registry.number(str(named), lambda: self._collection(named))

    def _collection(self, named: Named) -> PortableType:
        """Return ``BTreeMap<K, V>`` or ``BTreeSet<T>``: a struct around a vector."""
        arguments = named.arguments
        item = arguments[0] if len(arguments) == 1 else TupleOf(arguments)
        params = tuple(zip("KV" if len(arguments) > 1 else "T", map(self.number, arguments), strict=True))
        vector = Named("Vec", (item,))
        return PortableType(Composite((Field(None, self.number(vector)),)), (named.name,), params)

    def _made(self, rust_type: RustType) -> PortableType:  # noqa: PLR0911 - one for each kind
        if isinstance(rust_type, ArrayOf):
            return PortableType(Array(rust_type.length, self.number(rust_type.element)))
        if isinstance(rust_type, TupleOf):
            return PortableType(Tuple(tuple(map(self.number, rust_type.elements))))
        if rust_type.name in PRIMITIVES:
            return PortableType(Primitive(rust_type.name))
        if rust_type.name == "Compact":
            return PortableType(Compact(self.number(rust_type.arguments[0])))
        if rust_type.name == "BTreeMap":
            return self._collection(rust_type)
        if rust_type.name in self._defined:
            return self._defined[rust_type.name]()
        if rust_type.name in self._declared:
            return self._of_declaration(self._declared[rust_type.name], rust_type.arguments)
        if rust_type.name in self._classes:
            return self._of_class(self._classes[rust_type.name])
        raise ValueError(f"no type is called {rust_type.name}")

    def _of_declaration(self, declared: Declaration, arguments: tuple[RustType, ...]) -> PortableType:
        bound = declared.bound(arguments)
        params = tuple((name, self.number(it)) for name, it in bound.items())
        if declared.cases is None:
            return PortableType(Composite(self._fields(declared.fields, bound)), declared.path, params)
        cases = tuple(Case(it.name, it.index, self._fields(it.fields, bound)) for it in declared.cases)
        return PortableType(Variants(cases), declared.path, params)

    def _fields(self, fields: tuple[FieldSyntax, ...], bound: dict[str, RustType]) -> tuple[Field, ...]:
        rows = [(it.name, substituted(it.type, bound)) for it in fields]
        return tuple(Field(name, self.number(rust_type), str(rust_type)) for name, rust_type in rows)

    def _of_class(self, cls: type) -> PortableType:
        path = (*cls.__module__.split("."), cls.__name__)
        return PortableType(Composite(self.fields_of(cls)), path, docs=docs_of(cls))


def _field_names(cls: type, hints: Iterable[str]) -> Iterable[str]:
    if issubclass(cls, Struct):
        return cls.__struct_fields__
    return (it.name for it in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else hints
