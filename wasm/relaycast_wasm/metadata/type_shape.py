"""What a type's bytes mean: its shape, without the names of types and without wrappers that add no byte.

Law: two types of one digest mean the same bytes, of one runtime or of two. Types of different digests, or without one,
must be compared. Digests of types that contain themselves look ``ROUNDS`` steps deep into the circle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Literal

from relaycast_wasm.metadata.type_table import DescribedType, TypeTable

ROUNDS = 64
"""How far a digest follows types that contain themselves; twice as deep as real types go."""

MAX_CIRCULAR = 2_048
"""Types in circles, or around them, that get digests; real runtimes have a few dozen."""

DIGEST_BYTES = 16

ShapeKind = Literal["product", "sum", "sequence", "array", "primitive", "compact", "bits", "opaque"]


@dataclass(frozen=True, slots=True)
class ShapeCase:
    """A variant: the ``names`` of its fields, and where their types stand among the children of the shape."""

    name: str
    index: int
    names: tuple[str | None, ...]
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TypeShape:
    """A type as its bytes are read: ``label`` tells what children do not, such as a primitive's name or a length."""

    kind: ShapeKind
    label: str = ""
    names: tuple[str | None, ...] = ()
    children: tuple[int, ...] = ()
    cases: tuple[ShapeCase, ...] = ()

    def described(self) -> bytes:
        """Return all of it but the children, for a digest."""
        cases = [(it.name, it.index, it.names) for it in self.cases]
        return repr((self.kind, self.label, self.names, len(self.children), cases)).encode()


class TypeShapes:
    """The shapes of a ``table``; types in ``opaque`` are compared by their label there, and not looked into."""

    def __init__(self, table: TypeTable, opaque: Mapping[int, str]) -> None:
        self._table = table
        self._opaque = opaque
        self._inner = [self._unwrapped(number) for number in range(len(table))]
        self._shapes: dict[int, TypeShape] = {}

    def inner(self, number: int) -> int:
        """Return the type inside all wrappers: structs and tuples around a single type add no byte."""
        return self._inner[number]

    def __getitem__(self, number: int) -> TypeShape:
        inner = self._inner[number]
        known = self._shapes.get(inner)
        if known is None:
            known = self._shapes[inner] = self._made(inner)
        return known

    def digest(self, number: int) -> bytes | None:
        """Return what two types share that mean the same bytes; ``None`` where too many lead into circles."""
        return self._digests.get(self._inner[number])

    def _only(self, number: int) -> int | None:
        """Return the single type that this one wraps."""
        described = self._table[number]
        if number in self._opaque:
            return None
        if described.kind == "composite" and len(described.fields) == 1:
            return described.fields[0].type
        return described.inside[0] if described.kind == "tuple" and len(described.inside) == 1 else None

    def _unwrapped(self, number: int) -> int:
        seen = {number}
        while (inside := self._only(number)) is not None and inside not in seen:
            number = inside
            seen.add(number)
            if len(seen) > ROUNDS:
                break
        return number

    def _made(self, number: int) -> TypeShape:  # noqa: PLR0911 - one for each kind of type
        described = self._table[number]
        if number in self._opaque:
            return TypeShape("opaque", self._opaque[number])
        match described.kind:
            case "composite":
                names = tuple(it.name for it in described.fields)
                return TypeShape("product", "", names, tuple(it.type for it in described.fields))
            case "tuple":
                return TypeShape("product", "", (None,) * len(described.inside), described.inside)
            case "variant":
                return _sum(described)
            case "primitive":
                return TypeShape("primitive", described.name)
            case "array":
                return TypeShape("array", str(described.length), children=described.inside)
            case "sequence" | "compact" | "bits" as kind:
                return TypeShape(kind, children=described.inside)

    @cached_property
    def _digests(self) -> dict[int, bytes]:
        shapes = {number: self[number] for number in set(self._inner)}
        children = {number: tuple(self._inner[it] for it in shape.children) for number, shape in shapes.items()}
        labels = {number: shape.described() for number, shape in shapes.items()}
        found = _straight_digests(labels, children)
        circular = [number for number in shapes if number not in found]
        if len(circular) > MAX_CIRCULAR:
            return found
        rounds = dict.fromkeys(circular, b"")
        for _ in range(ROUNDS if circular else 0):
            known = {**found, **rounds}
            rounds = {number: _digest(labels[number], [known[it] for it in children[number]]) for number in circular}
        return {**found, **rounds}


def _sum(described: DescribedType) -> TypeShape:
    cases = sorted(described.cases, key=lambda it: it.index)
    children = tuple(field.type for case in cases for field in case.fields)
    described_cases = tuple(
        ShapeCase(it.name, it.index, tuple(field.name for field in it.fields), tuple(field.type for field in it.fields))
        for it in cases
    )
    return TypeShape("sum", children=children, cases=described_cases)


def _straight_digests(labels: Mapping[int, bytes], children: Mapping[int, tuple[int, ...]]) -> dict[int, bytes]:
    """Return the digests of all types that lead into no circle, from those without children on."""
    users: dict[int, list[int]] = {number: [] for number in labels}
    waiting = {}
    for number, numbers in children.items():
        distinct = set(numbers)
        waiting[number] = len(distinct)
        for it in distinct:
            users[it].append(number)
    found: dict[int, bytes] = {}
    ready = [number for number, count in waiting.items() if not count]
    while ready:
        number = ready.pop()
        found[number] = _digest(labels[number], [found[it] for it in children[number]])
        for user in users[number]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return found


def _digest(label: bytes, children: list[bytes]) -> bytes:
    own = blake2b(label, digest_size=DIGEST_BYTES)
    own.update(b"".join(children))
    return own.digest()
