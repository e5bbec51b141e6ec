"""Candid types as a graph: nodes in a list, and references between them.

A reference is an integer, as in a message: a negative one is a primitive type by its code, any other the index of a
node. So recursive types need no special care, and types from a text and types from a message have one form.
Source: Candid specification, "Types" and "Binary Format".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from relaycast_gateway.candid.errors import CandidError

PRIMITIVES = {
    "null": -1,
    "bool": -2,
    "nat": -3,
    "int": -4,
    "nat8": -5,
    "nat16": -6,
    "nat32": -7,
    "nat64": -8,
    "int8": -9,
    "int16": -10,
    "int32": -11,
    "int64": -12,
    "float32": -13,
    "float64": -14,
    "text": -15,
    "reserved": -16,
    "empty": -17,
    "principal": -24,
}
NAMES = {code: name for name, code in PRIMITIVES.items()}
NULL, BOOL, NAT, INT, NAT8 = (PRIMITIVES[name] for name in ("null", "bool", "nat", "int", "nat8"))
FLOAT32, FLOAT64, TEXT = PRIMITIVES["float32"], PRIMITIVES["float64"], PRIMITIVES["text"]
RESERVED, EMPTY, PRINCIPAL = PRIMITIVES["reserved"], PRIMITIVES["empty"], PRIMITIVES["principal"]
OPT, VEC, RECORD, VARIANT, FUNC, SERVICE = -18, -19, -20, -21, -22, -23
ANNOTATIONS = {"query": 1, "oneway": 2, "composite_query": 3}

DEEPEST = 200
"""Types, values and texts nest at most this deep."""


class Label(NamedTuple):
    """A field of a record or variant: the hash that messages carry, the name or number, the type."""

    number: int
    name: str | int
    of: int


@dataclass(frozen=True, slots=True)
class OptType:
    """``opt``: null or a value."""

    of: int


@dataclass(frozen=True, slots=True)
class VecType:
    """``vec``: a sequence; of ``nat8`` it is a blob."""

    of: int


@dataclass(frozen=True, slots=True)
class RecordType:
    """``record``; the fields ascend by hash, ``order`` are their names as written."""

    labels: tuple[Label, ...]
    order: tuple[str | int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class VariantType:
    """``variant``; the cases ascend by hash."""

    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class FuncType:
    """``func``: the types of arguments and results, the codes of annotations in ascending order."""

    arguments: tuple[int, ...]
    results: tuple[int, ...]
    annotations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceType:
    """``service``: methods in ascending order of their names, as bytes in UTF-8."""

    methods: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class FutureType:
    """A type of a later version: its values can be skipped."""


Node = OptType | VecType | RecordType | VariantType | FuncType | ServiceType | FutureType


@dataclass(frozen=True)
class CandidTypes:
    """What a text of types says: definitions, a list of types and a service, each where it has one.

    ``arguments`` is the list in parentheses, ``service`` the type of the main service and ``init`` what creating it
    takes.
    """

    nodes: tuple[Node, ...]
    names: Mapping[str, int]
    arguments: tuple[int, ...] | None = None
    service: int | None = None
    init: tuple[int, ...] | None = None

    def listed(self) -> tuple[int, ...]:
        """Return ``arguments``; ``CandidError`` where the text has no list of types."""
        if self.arguments is None:
            raise CandidError("expected a list of types in parentheses")
        return self.arguments


def label_number(name: str | int) -> int:
    """Return the number that stands for a field in messages: of a name its hash."""
    if isinstance(name, int):
        return name
    number = 0
    for byte in name.encode():
        number = (number * 223 + byte) & 0xFFFFFFFF
    return number


def has_null(nodes: tuple[Node, ...], of: int) -> bool:
    """Tell whether null is a value of the type: a missing field or argument reads as null there."""
    return of in {NULL, RESERVED} or (of >= 0 and isinstance(nodes[of], OptType))


def type_name(nodes: tuple[Node, ...], of: int) -> str:
    """Return what a message calls the type: ``nat``, ``record``."""
    return NAMES[of] if of < 0 else type(nodes[of]).__name__.removesuffix("Type").lower()


def redirected(node: Node, refs: dict[int, int]) -> Node:  # noqa: PLR0911 - one for each form
    """Return the node with references replaced where ``refs`` names another."""

    def new(of: int) -> int:
        return refs.get(of, of)

    match node:
        case OptType(of):
            return OptType(new(of))
        case VecType(of):
            return VecType(new(of))
        case RecordType(labels, order):
            return RecordType(tuple(Label(it.number, it.name, new(it.of)) for it in labels), order)
        case VariantType(labels):
            return VariantType(tuple(Label(it.number, it.name, new(it.of)) for it in labels))
        case FuncType(arguments, results, annotations):
            return FuncType(tuple(map(new, arguments)), tuple(map(new, results)), annotations)
        case ServiceType(methods):
            return ServiceType(tuple((name, new(of)) for name, of in methods))
        case FutureType():
            return node


def references(node: Node) -> tuple[int, ...]:
    """Return the types that a node is made of, in the order in which a message lists them."""
    match node:
        case OptType(of) | VecType(of):
            return (of,)
        case RecordType(labels) | VariantType(labels):
            return tuple(label.of for label in labels)
        case FuncType(arguments, results):
            return arguments + results
        case ServiceType(methods):
            return tuple(of for _, of in methods)
        case FutureType():
            return ()
