"""Messages to values: a plan for each pair of a type in the message and a type that is asked for.

A plan is a closure; the plans of the parts of a composite type are made when a value of it is first met. What is
well-formed and does not fit is a mismatch: the innermost ``opt`` around it reads as null. A missing argument or field
reads as null where its type has null.

Source: Candid specification, "Deserialisation", "Coercion of values".
"""

import struct
from functools import lru_cache

from relaycast_gateway.candid.cursor import (
    FORMATS,
    READS,
    SIZES,
    Cursor,
    Read,
    read_blob,
    read_func,
    read_nat,
    read_principal,
)
from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.message_header import LARGEST_HEAD, read_head
from relaycast_gateway.candid.skipping import Skips, descend
from relaycast_gateway.candid.subtyping import Subtyping
from relaycast_gateway.candid.type_graph import (
    DEEPEST,
    EMPTY,
    INT,
    NAT,
    NAT8,
    NULL,
    PRINCIPAL,
    RESERVED,
    CandidTypes,
    FuncType,
    Label,
    Node,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    has_null,
    type_name,
)
from relaycast_gateway.candid.type_parser import parse_types
from relaycast_gateway.candid.values import Present, Variant

DECODING_QUOTA = 50_000
DECODING_QUOTA_PER_BYTE = 16
SKIPPING_QUOTA = 20_000
SKIPPING_QUOTA_PER_BYTE = 4
"""Quotas by default: so much, and so much more for each byte of the message."""

_new_tuple = tuple.__new__
"""Makes a ``Variant`` in half the time of its own constructor."""
_KEPT_HEADS = 16
_LONGEST_KEPT_HEAD = 4_096


def decode(
    data: bytes | bytearray | memoryview,
    types: str,
    *,
    decoding_quota: int | None = None,
    skipping_quota: int | None = None,
    largest_head: int = LARGEST_HEAD,
    is_strict: bool = False,
) -> list[object]:
    """Return the arguments of a message at ``types``: definitions and a list such as ``(nat, opt text)``.

    A quota bounds the values that are kept or skipped: each costs 1, a record 1 more for each field.
    ``largest_head`` bounds the bytes of the message's types. ``is_strict`` refuses a value of another type in an
    ``opt``, and names the field. ``CandidError`` for a message that is malformed, does not fit or exceeds a bound.
    """
    if type(data) is not bytes:
        if not isinstance(data, bytearray | memoryview):
            raise CandidError(f"expected bytes, got {type(data).__name__}")
        data = bytes(data)
    if decoding_quota is None:
        decoding_quota = DECODING_QUOTA + DECODING_QUOTA_PER_BYTE * len(data)
    if skipping_quota is None:
        skipping_quota = SKIPPING_QUOTA + SKIPPING_QUOTA_PER_BYTE * len(data)
    plan = _decoder(types, is_strict).plan_of(data, largest_head)
    cursor = Cursor(data, plan.start, decoding_quota, skipping_quota)
    try:
        found = plan.arguments(cursor)
    except (IndexError, struct.error) as error:
        raise cursor.refused("the message ends too early") from error
    except RecursionError as error:
        raise cursor.too_deep() from error
    if cursor.pos != len(data):
        raise cursor.refused(f"{len(data) - cursor.pos} bytes follow the last argument")
    return found


@lru_cache(maxsize=256)
def _decoder(types: str, is_strict: bool) -> "_Decoder":
    return _Decoder(parse_types(types), is_strict)


class _Decoder:
    """The plans for a list of types, by the heads of messages that came with it."""

    def __init__(self, types: CandidTypes, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._nodes = types.nodes
        self._arguments = types.listed()
        self._plans: dict[bytes, _Plan] = {}

    def plan_of(self, data: bytes, largest_head: int) -> "_Plan":
        """Return the plan for the head of ``data``. No head is the beginning of another."""
        for head, plan in self._plans.items():
            if data.startswith(head):
                return plan
        nodes, given, start = read_head(data, largest_head)
        plan = _Plan(nodes, given, self._nodes, self._arguments, start, self._is_strict)
        if start <= _LONGEST_KEPT_HEAD:
            if len(self._plans) >= _KEPT_HEADS:
                self._plans = {}
            self._plans[data[:start]] = plan
        return plan


class _Plan:
    """How messages with one head are read at one list of types."""

    def __init__(
        self,
        wire: tuple[Node, ...],
        given: tuple[int, ...],
        nodes: tuple[Node, ...],
        arguments: tuple[int, ...],
        start: int,
        is_strict: bool,
    ) -> None:
        self.start = start
        self._is_strict = is_strict
        self._wire = wire
        self._nodes = nodes
        self._skips = Skips(wire)
        self._subtyping = Subtyping(wire, nodes)
        self._known: dict[tuple[int, int], Read] = {}
        self._given = given
        self._missing = [of for of in arguments[len(given) :] if not has_null(nodes, of)]
        self._nulls = max(len(arguments) - len(given), 0)
        self._reads = [self.read_of(of, at) for of, at in zip(given, arguments, strict=False)]
        self._extra = [self._skips.of(of) for of in given[len(arguments) :]]

    def arguments(self, cursor: Cursor) -> list[object]:
        if self._missing:
            name = type_name(self._nodes, self._missing[0])
            raise cursor.refused(f"the message has {len(self._given)} arguments, a further {name} is missing")
        cursor.pay(len(self._reads))
        cursor.pay_skipped(len(self._extra))
        found = [read(cursor) for read in self._reads]
        for skip in self._extra:
            skip(cursor)
        return found + [None] * self._nulls

    def read_of(self, wire: int, at: int) -> Read:
        """Return how a value of type ``wire`` is read at the type ``at``."""
        if at < 0 and (wire == at or (wire == NAT and at == INT)):
            return read_nat if wire == NAT else READS[wire]
        found = self._known.get((wire, at))
        if found is None:
            found = self._known[wire, at] = self._composite(wire, at)
        return found

    def _composite(self, wire: int, at: int) -> Read:  # noqa: PLR0911 - one for each form
        if wire == EMPTY:
            return READS[EMPTY]
        if at == RESERVED:
            return self._reserved(wire)
        left = self._wire[wire] if wire >= 0 else None
        right = self._nodes[at] if at >= 0 else None
        match left, right:
            case _, OptType(of):
                return self._opt(wire, left, of)
            case VecType(of), VecType(other):
                return self._vec(of, other)
            case RecordType(), RecordType():
                return self._record(left, right)
            case VariantType(), VariantType():
                return self._variant(left, right)
            case FuncType(), FuncType():
                return self._reference(wire, at, read_func)
            case ServiceType(), ServiceType():
                return self._reference(wire, at, read_principal)
            case ServiceType(), None if at == PRINCIPAL:
                return read_principal
        return self._mismatch(wire, at)

    def _mismatch(self, wire: int, at: int) -> Read:
        reason = f"expected {type_name(self._nodes, at)}, got {type_name(self._wire, wire)}"

        def read(cursor: Cursor) -> object:
            cursor.pay(4)
            raise CandidError(reason, f"byte {cursor.pos}", True)

        return read

    def _reserved(self, wire: int) -> Read:
        skip = self._skips.of(wire)

        def read(cursor: Cursor) -> None:
            skip(cursor)

        return read

    def _reference(self, wire: int, at: int, accepted: Read) -> Read:
        fits: bool | None = None
        refuse = self._mismatch(wire, at)

        def read(cursor: Cursor) -> object:
            nonlocal fits
            if fits is None:
                fits = self._subtyping.holds(wire, at)
            return accepted(cursor) if fits else refuse(cursor)

        return read

    def _opt(self, wire: int, left: Node | None, of: int) -> Read:
        if wire in {NULL, RESERVED}:
            return READS[NULL]
        optional = isinstance(left, OptType)
        inner = left.of if isinstance(left, OptType) else wire
        wrapped = has_null(self._nodes, of)
        value: Read | None = None

        def read(cursor: Cursor) -> object:
            nonlocal value
            if optional:
                byte = cursor.data[cursor.pos]
                if byte > 1:
                    raise cursor.refused(f"an opt begins with 0 or 1, got {byte}")
                cursor.pos += 1
                if byte == 0:
                    return None
            if value is None:
                value = self.read_of(inner, of)
            cursor.left -= 1
            if cursor.left < 0:
                cursor.pay(0)
            pos, depth = cursor.pos, cursor.depth
            if depth >= DEEPEST:
                raise cursor.too_deep()
            cursor.depth = depth + 1
            try:
                found = value(cursor)
            except CandidError as error:
                if not error.mismatch or self._is_strict:
                    raise
                cursor.pos, cursor.depth = pos, depth
                self._skips.of(inner)(cursor)
                return None
            cursor.depth = depth
            return Present(found) if wrapped else found

        return read

    def _vec(self, of: int, other: int) -> Read:
        if of == other and of in SIZES:
            return read_blob if of == NAT8 else self._numbers(of)
        value: Read | None = None

        def read(cursor: Cursor) -> object:
            nonlocal value
            count = cursor.count()
            cursor.pay(count + 1)
            descend(cursor)
            if value is None:
                value = self.read_of(of, other)
            element = value
            found = [element(cursor) for _ in range(count)]
            cursor.depth -= 1
            return b"" if other == NAT8 else found

        return read

    def _numbers(self, of: int) -> Read:
        size, letter = SIZES[of], FORMATS[of]

        def read(cursor: Cursor) -> object:
            count = cursor.count()
            if count * size > len(cursor.data) - cursor.pos:
                raise cursor.refused(f"a vec of {count} elements goes beyond the end of the message")
            raw = cursor.take(count * size)
            return list(struct.unpack(f"<{count}{letter}", raw))

        return read

    def _record(self, left: RecordType, right: RecordType) -> Read:
        asked = {label.number: label for label in right.labels}
        given = {label.number for label in left.labels}
        missing = [label for label in right.labels if label.number not in given and not has_null(self._nodes, label.of)]
        blank: dict[str | int | None, object] = dict.fromkeys(right.order)
        cost = len(left.labels) + len(right.labels) + 1
        skipping = any(label.number not in asked for label in left.labels)
        steps: list[tuple[str | int | None, Read]] | None = None

        def read(cursor: Cursor) -> object:
            nonlocal steps
            cursor.left -= cost
            if cursor.left < 0:
                cursor.pay(0)
            if missing:
                raise CandidError(f"the field {missing[0].name} is missing", f"byte {cursor.pos}", True)
            if steps is None:
                steps = [
                    (asked[label.number].name, self._field(asked[label.number], label.of))
                    if label.number in asked
                    else (None, self._skips.of(label.of))
                    for label in left.labels
                ]
            depth = cursor.depth
            if depth >= DEEPEST:
                raise cursor.too_deep()
            cursor.depth = depth + 1
            found = blank.copy()
            for name, step in steps:
                found[name] = step(cursor)
            if skipping:
                found.pop(None)
            cursor.depth = depth
            return found

        return read

    def _field(self, asked: Label, wire: int) -> Read:
        """Return how a field is read; a strict reading names an ``opt`` of another type."""
        plain = self.read_of(wire, asked.of)
        if not self._is_strict or not has_null(self._nodes, asked.of):
            return plain

        def read(cursor: Cursor) -> object:
            try:
                return plain(cursor)
            except CandidError as error:
                raise error.within(f"{asked.name}, ") from None

        return read

    def _variant(self, left: VariantType, right: VariantType) -> Read:
        known = {label.number: label for label in right.labels}
        cases: list[tuple[str | int, Read] | None] = [None] * len(left.labels)

        def read(cursor: Cursor) -> object:
            case = cursor.data[cursor.pos]
            if case < 0x80:
                cursor.pos += 1
            else:
                case = cursor.count()
            if case >= len(cases):
                raise cursor.refused(f"the variant has {len(cases)} cases, got number {case}")
            plan = cases[case]
            if plan is None:
                label = left.labels[case]
                if label.number not in known:
                    raise CandidError(f"unknown case {label.number} of a variant", f"byte {cursor.pos}", True)
                plan = cases[case] = (known[label.number].name, self.read_of(label.of, known[label.number].of))
            cursor.left -= 1
            if cursor.left < 0:
                cursor.pay(0)
            depth = cursor.depth
            if depth >= DEEPEST:
                raise cursor.too_deep()
            cursor.depth = depth + 1
            value = plan[1](cursor)
            cursor.depth = depth
            return _new_tuple(Variant, (plan[0], value))

        return read
