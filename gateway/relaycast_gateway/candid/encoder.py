"""Values to messages: the head of a list of types, written once, and a plan that appends values.

The plans of the parts of a composite type are made when a value of it is first written.
Source: Candid specification, "Serialisation", "Memory".
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

from relaycast_gateway.candid.cursor import FORMATS
from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.leb128 import signed, unsigned
from relaycast_gateway.candid.message_header import written_head
from relaycast_gateway.candid.type_graph import (
    BOOL,
    DEEPEST,
    EMPTY,
    FLOAT32,
    FLOAT64,
    INT,
    NAT,
    NAT8,
    NULL,
    PRINCIPAL,
    RESERVED,
    TEXT,
    CandidTypes,
    FuncType,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    has_null,
    type_name,
)
from relaycast_gateway.candid.type_parser import parse_types
from relaycast_gateway.candid.values import FuncReference, Present, Principal, Variant

Write = Callable[[object, bytearray, int], None]


def encode(types: str, values: Sequence[object]) -> bytes:
    """Return the message of ``values`` at ``types``: definitions and a list such as ``(nat, opt text)``.

    ``CandidError`` names the argument and the path to a value that is none of its type.
    """
    return _encoder(types).encoded(values)


@lru_cache(maxsize=256)
def _encoder(types: str) -> "_Encoder":
    return _Encoder(parse_types(types))


class _Encoder:
    """How the values of one list of types are written."""

    def __init__(self, types: CandidTypes) -> None:
        arguments = types.listed()
        self._nodes = types.nodes
        self._head = written_head(types.nodes, arguments)
        self._known: dict[int, Write] = {}
        self._writes = [self.write_of(of) for of in arguments]

    def encoded(self, values: Sequence[object]) -> bytes:
        """Return the message of the values."""
        if not isinstance(values, list | tuple):
            raise CandidError(f"expected a list of arguments, got {type(values).__name__}")
        if len(values) != len(self._writes):
            raise CandidError(f"expected {len(self._writes)} arguments, got {len(values)}")
        out = bytearray(self._head)
        for at, write in enumerate(self._writes):
            try:
                write(values[at], out, 0)
            except CandidError as error:
                raise error.within(f"argument {at}") from None
            except RecursionError as error:
                raise CandidError(f"values nest at most {DEEPEST} deep", f"argument {at}") from error
        return bytes(out)

    def write_of(self, of: int) -> Write:
        """Return how a value of a type is written."""
        if of < 0:
            return WRITES[of]
        found = self._known.get(of)
        if found is None:
            found = self._known[of] = self._composite(of)
        return found

    def _composite(self, of: int) -> Write:  # noqa: PLR0911 - one for each form
        match self._nodes[of]:
            case OptType(inner):
                return self._opt(inner)
            case VecType(inner) if inner == NAT8:
                return _write_blob
            case VecType(inner) if inner in FORMATS:
                return _numbers(inner)
            case VecType(inner):
                return self._vec(inner)
            case RecordType() as node:
                return self._record(node)
            case VariantType() as node:
                return self._variant(node)
            case FuncType():
                return _write_func
            case ServiceType():
                return _write_principal
        raise AssertionError(type_name(self._nodes, of))

    def _opt(self, of: int) -> Write:
        wrapped = has_null(self._nodes, of)
        inner: Write | None = None

        def write(value: object, out: bytearray, depth: int) -> None:
            nonlocal inner
            if value is None:
                out.append(0)
                return
            if wrapped:
                if type(value) is not Present:
                    raise _unfit("None or Present(...)", value)
                value = value.value
            if depth >= DEEPEST:
                raise _too_deep()
            if inner is None:
                inner = self.write_of(of)
            out.append(1)
            inner(value, out, depth + 1)

        return write

    def _vec(self, of: int) -> Write:
        inner: Write | None = None

        def write(value: object, out: bytearray, depth: int) -> None:
            nonlocal inner
            if not isinstance(value, list | tuple):
                raise _unfit("a list", value)
            if depth >= DEEPEST:
                raise _too_deep()
            if inner is None:
                inner = self.write_of(of)
            size = len(value)
            if size < 0x80:
                out.append(size)
            else:
                out += unsigned(size)
            depth += 1
            at = 0
            try:
                for at, element in enumerate(value):  # noqa: B007 - a refusal names it
                    inner(element, out, depth)
            except CandidError as error:
                raise error.within(f"[{at}]") from None

        return write

    def _record(self, node: RecordType) -> Write:
        steps: list[tuple[str | int, Write, bool]] | None = None
        names = {label.name for label in node.labels}
        positional = [label.name for label in node.labels] == list(range(len(node.labels)))

        def write(value: object, out: bytearray, depth: int) -> None:
            nonlocal steps
            fields: dict[str | int, object]
            if type(value) is dict:
                fields = value
            elif positional and type(value) is tuple:
                fields = dict(enumerate(value))
            else:
                raise _unfit("a dict", value)
            if depth >= DEEPEST:
                raise _too_deep()
            if steps is None:
                steps = [
                    (label.name, self.write_of(label.of), has_null(self._nodes, label.of)) for label in node.labels
                ]
            depth += 1
            found = 0
            for name, inner, optional in steps:
                try:
                    if name in fields:
                        found += 1
                        inner(fields[name], out, depth)
                    elif optional:
                        inner(None, out, depth)
                    else:
                        raise CandidError("the field is missing")
                except CandidError as error:
                    raise error.within(f".{name}") from None
            if found != len(fields):
                raise CandidError(f"unknown field {next(name for name in fields if name not in names)!r}")

        return write

    def _variant(self, node: VariantType) -> Write:
        labels = {label.name: (unsigned(at), label.of) for at, label in enumerate(node.labels)}
        known: dict[str | int, tuple[bytes, Write]] = {}

        def write(value: object, out: bytearray, depth: int) -> None:
            if type(value) is not Variant:
                raise _unfit("a Variant", value)
            tag = value.tag
            if type(tag) is not str and type(tag) is not int:
                raise CandidError(f"unknown case {tag!r}")
            if depth >= DEEPEST:
                raise _too_deep()
            case = known.get(tag)
            if case is None:
                if tag not in labels:
                    raise CandidError(f"unknown case {tag!r}")
                index, of = labels[tag]
                case = known[tag] = (index, self.write_of(of))
            out += case[0]
            try:
                case[1](value.value, out, depth + 1)
            except CandidError as error:
                raise error.within(f".{tag}") from None

        return write


def _unfit(expected: str, value: object) -> CandidError:
    return CandidError(f"expected {expected}, got {type(value).__name__}")


def _too_deep() -> CandidError:
    return CandidError(f"values nest at most {DEEPEST} deep")


def _write_nat(value: object, out: bytearray, _depth: int) -> None:
    if type(value) is not int:
        raise _unfit("a natural number", value)
    if value < 0:
        raise CandidError("expected a natural number, got a negative one")
    if value < 0x80:
        out.append(value)
    else:
        out += unsigned(value)


def _write_int(value: object, out: bytearray, _depth: int) -> None:
    if type(value) is not int:
        raise _unfit("an integer", value)
    if -0x40 <= value < 0x40:
        out.append(value & 0x7F)
    else:
        out += signed(value)


def _write_bool(value: object, out: bytearray, _depth: int) -> None:
    if type(value) is not bool:
        raise _unfit("a bool", value)
    out.append(value)


def _write_null(value: object, _out: bytearray, _depth: int) -> None:
    if value is not None:
        raise _unfit("None", value)


def _write_reserved(_value: object, _out: bytearray, _depth: int) -> None:
    """Any value may stand where the type is reserved: nothing of it is written."""


def _write_empty(_value: object, _out: bytearray, _depth: int) -> None:
    raise CandidError("there is no value of the type empty")


def _write_text(value: object, out: bytearray, _depth: int) -> None:
    if type(value) is not str:
        raise _unfit("a text", value)
    try:
        raw = value.encode()
    except UnicodeEncodeError as error:
        raise CandidError("a text holds a lone surrogate") from error
    size = len(raw)
    if size < 0x80:
        out.append(size)
    else:
        out += unsigned(size)
    out += raw


def _write_blob(value: object, out: bytearray, _depth: int) -> None:
    if not isinstance(value, bytes | bytearray | memoryview):
        if not isinstance(value, list | tuple):
            raise _unfit("bytes", value)
        for at, byte in enumerate(value):
            if type(byte) is not int or not 0 <= byte < 256:
                raise CandidError("expected an integer from 0 to 255", f"[{at}]")
    raw = value if type(value) is bytes else bytes(value)
    size = len(raw)
    if size < 0x80:
        out.append(size)
    else:
        out += unsigned(size)
    out += raw


def _write_principal(value: object, out: bytearray, _depth: int) -> None:
    if type(value) is not Principal:
        raise _unfit("a Principal", value)
    out.append(1)
    out.append(len(value.raw))
    out += value.raw


def _write_func(value: object, out: bytearray, depth: int) -> None:
    if type(value) is not FuncReference:
        raise _unfit("a FuncReference", value)
    out.append(1)
    _write_principal(value.service, out, depth)
    _write_text(value.method, out, depth)


def _number(of: int) -> Write:
    pack = struct.Struct("<" + FORMATS[of]).pack
    name = type_name((), of)
    floating = of in {FLOAT32, FLOAT64}

    def write(value: object, out: bytearray, _depth: int) -> None:
        if type(value) is not int and not (floating and type(value) is float):
            raise _unfit(f"a {name}", value)
        try:
            out += pack(value)
        except (struct.error, OverflowError) as error:
            raise CandidError(f"the number is out of the range of {name}") from error

    return write


def _numbers(of: int) -> Write:
    one = _number(of)

    def write(value: object, out: bytearray, depth: int) -> None:
        if not isinstance(value, list | tuple):
            raise _unfit("a list", value)
        out += unsigned(len(value))
        for at, number in enumerate(value):
            try:
                one(number, out, depth)
            except CandidError as error:
                raise error.within(f"[{at}]") from None

    return write


WRITES: dict[int, Write] = {
    **{of: _number(of) for of in FORMATS},
    NULL: _write_null,
    BOOL: _write_bool,
    NAT: _write_nat,
    INT: _write_int,
    TEXT: _write_text,
    RESERVED: _write_reserved,
    EMPTY: _write_empty,
    PRINCIPAL: _write_principal,
}
