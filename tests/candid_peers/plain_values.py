"""Values as plain JSON by their types, as peers take and give them; ``scripts/interface.mjs`` describes the form."""

import struct
from collections.abc import Sequence
from typing import Any

from relaycast_gateway.candid import FuncReference, Present, Principal, Variant
from relaycast_gateway.candid.cursor import FORMATS
from relaycast_gateway.candid.type_graph import (
    FLOAT32,
    FLOAT64,
    INT,
    NAT,
    NAT8,
    NULL,
    PRINCIPAL,
    RESERVED,
    FuncType,
    Node,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    has_null,
)

Nodes = tuple[Node, ...]
_FLOATS = {FLOAT32, FLOAT64}
_NUMBERS = {NAT, INT, *FORMATS} - _FLOATS


def plain(nodes: Nodes, of: int, value: Any) -> Any:  # noqa: PLR0911 - one for each form
    """Return a value of a type as JSON."""
    if of in _FLOATS:
        return struct.pack(">d", value).hex()
    if of in _NUMBERS:
        return str(value)
    if of == PRINCIPAL:
        return str(value)
    if of in {NULL, RESERVED}:
        return None
    if of < 0:
        return value
    match nodes[of]:
        case OptType(inner):
            if value is None:
                return []
            return [plain(nodes, inner, value.value if has_null(nodes, inner) else value)]
        case VecType(inner):
            return value.hex() if inner == NAT8 else [plain(nodes, inner, each) for each in value]
        case RecordType(labels):
            return [[number, plain(nodes, each, value[name])] for number, name, each in labels]
        case VariantType(labels):
            number, each = next((label.number, label.of) for label in labels if label.name == value.tag)
            return [number, plain(nodes, each, value.value)]
        case FuncType():
            return [str(value.service), value.method]
        case ServiceType():
            return str(value)
    raise AssertionError(of)


def from_plain(nodes: Nodes, of: int, given: Any) -> Any:  # noqa: PLR0911 - one for each form
    """Return the value that JSON stands for at a type."""
    if of in _FLOATS:
        return struct.unpack(">d", bytes.fromhex(given))[0]
    if of in _NUMBERS:
        return int(given)
    if of == PRINCIPAL:
        return Principal.of(given)
    if of < 0:
        return given
    match nodes[of]:
        case OptType(inner):
            if not given:
                return None
            found = from_plain(nodes, inner, given[0])
            return Present(found) if has_null(nodes, inner) else found
        case VecType(inner):
            return bytes.fromhex(given) if inner == NAT8 else [from_plain(nodes, inner, each) for each in given]
        case RecordType(labels):
            values = dict(given)
            return {name: from_plain(nodes, each, values[number]) for number, name, each in labels}
        case VariantType(labels):
            name, each = next((label.name, label.of) for label in labels if label.number == given[0])
            return Variant(name, from_plain(nodes, each, given[1]))
        case FuncType():
            return FuncReference(Principal.of(given[0]), given[1])
        case ServiceType():
            return Principal.of(given)
    raise AssertionError(of)


def plain_list(nodes: Nodes, types: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Return values of a list of types as JSON."""
    return [plain(nodes, of, value) for of, value in zip(types, values, strict=True)]


def values_of(nodes: Nodes, types: Sequence[int], given: Sequence[Any]) -> list[Any]:
    """Return the values that JSON stands for at a list of types."""
    return [from_plain(nodes, of, each) for of, each in zip(types, given, strict=True)]
