"""Two runtimes' types side by side: whether bytes of the one mean the same as bytes of the other.

Law: an answer never says less than what changed. Enums of all calls, events and errors are taken as equal here: their
variants are compared where pallets declare them. Types that only have names (before V14) are equal when their text is;
a type with a name alone cannot be compared with a described one.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from relaycast_wasm.metadata.model import Metadata, PalletItem, TypeRef
from relaycast_wasm.metadata.type_shape import ShapeCase, TypeShapes
from relaycast_wasm.metadata.type_table import TypeCase, TypeTable
from relaycast_wasm.metadata.type_text import TypeTexts

MAX_STEPS = 200_000
"""Types, fields and variants that one comparison looks at; far beyond what real types have."""

MAX_PLACE = 200
"""Characters of a place inside a type."""

MAX_NAMES = 8
"""Variants and fields that an answer lists of each kind."""

_TRAIT = re.compile(r"<TasTrait(?:<I>)?>::|<TasConfig(?:<I>)?>::|<TasSystemTrait>::")


@dataclass(frozen=True, slots=True)
class Relation:
    """How a type changed: ``broken`` says what makes its bytes mean something else.

    ``lost`` and ``gained`` are variants that the later type lacks or has in addition; ``renamed`` are fields of another
    name whose bytes stay.
    """

    broken: str = ""
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return not (self.broken or self.lost or self.gained or self.renamed)

    @property
    def told(self) -> str:
        """Say what changed, in one line."""
        parts = [self.broken] if self.broken else []
        for verb, names in (("lost", self.lost), ("gained", self.gained), ("renamed", self.renamed)):
            if names:
                parts.append(f"{verb} {', '.join(names)}")
        return "; ".join(parts)


SAME = Relation()


class TypeComparison:
    """Compares types of ``before`` with types of ``after``."""

    def __init__(self, before: Metadata, after: Metadata) -> None:
        self.comparable = (before.types is None) == (after.types is None)
        """Whether both metadata describe their types, or both only name them."""

        self._described: tuple[_Side, _Side] | None = None
        if before.types is not None and after.types is not None:
            self._described = _Side(before, before.types), _Side(after, after.types)
        self._known: dict[tuple[int, int], Relation] = {}

    def relation(self, before: TypeRef | None, after: TypeRef | None) -> Relation:
        """Return how the type changed; ``SAME`` also where types cannot be compared."""
        if before is None or after is None or not self.comparable:
            return SAME
        if self._described is None or before.number is None or after.number is None:
            same = normalised(before.text) == normalised(after.text)
            return SAME if same else Relation(f"{before.text} became {after.text}")
        pair = before.number, after.number
        known = self._known.get(pair)
        if known is None:
            known = self._known[pair] = _Walk(*self._described).relation(*pair)
        return known


def normalised(text: str) -> str:
    """Return a type's name without what differs between ways to write it."""
    return _TRAIT.sub("T::", "".join(text.split())).replace(",)", ")").replace(",>", ">").removeprefix("T::")


class _Side:
    """One runtime's types."""

    def __init__(self, metadata: Metadata, types: TypeTable) -> None:
        self.shapes = TypeShapes(types, outer_enums(metadata, types))
        self.texts = TypeTexts(types)


def outer_enums(metadata: Metadata, types: TypeTable) -> Mapping[int, str]:
    """Return the enums of all calls, events and errors by number: each variant holds what one pallet declares."""
    found: dict[int, str] = {}
    if metadata.outer_enums is not None:
        outer = metadata.outer_enums
        refs = (("calls", outer.call), ("events", outer.event), ("errors", outer.error))
        found = {ref.number: f"the runtime's {name}" for name, ref in refs if ref.number is not None}
    elif metadata.extrinsic.call is not None and metadata.extrinsic.call.number is not None:
        found = {metadata.extrinsic.call.number: "the runtime's calls"}
    declared = {
        "calls": {it.name: it.calls for it in metadata.pallets if it.calls},
        "events": {it.name: it.events for it in metadata.pallets if it.events},
    }
    for number, described in enumerate(types):
        for what, pallets in declared.items():
            if described.cases and all(_is_declared(types, case, pallets) for case in described.cases):
                found.setdefault(number, f"the runtime's {what}")
    return found


def _is_declared(types: TypeTable, case: TypeCase, pallets: Mapping[str, tuple[PalletItem, ...]]) -> bool:
    """Return whether a variant holds what the pallet of its name declares."""
    items = pallets.get(case.name)
    if items is None or len(case.fields) != 1:
        return False
    declared = [(it.name, it.index) for it in types[case.fields[0].type].cases]
    return declared == [(it.name, it.index) for it in items]


class _Walk:
    """One comparison: goes through all pairs of types that two types lead to, each once."""

    def __init__(self, before: _Side, after: _Side) -> None:
        self.before, self.after = before, after
        self.seen: set[tuple[int, int]] = set()
        self.steps = 0
        self.waiting: deque[tuple[int, int, str]] = deque()
        self.lost: list[str] = []
        self.gained: list[str] = []
        self.renamed: list[str] = []

    def relation(self, before: int, after: int) -> Relation:
        self._ask(before, after, "")
        while self.waiting:
            broken = self._broken(*self.waiting.popleft())
            if not broken and self.steps > MAX_STEPS:
                broken = f"more than {MAX_STEPS:,} fields and variants to compare"
            if broken:
                return Relation(broken)
        return Relation("", *(_few(it) for it in (self.lost, self.gained, self.renamed)))

    def _ask(self, before: int, after: int, place: str) -> None:
        pair = self.before.shapes.inner(before), self.after.shapes.inner(after)
        if pair in self.seen:
            return
        digest = self.before.shapes.digest(pair[0])
        if digest is not None and digest == self.after.shapes.digest(pair[1]):
            return
        self.seen.add(pair)
        self.waiting.append((*pair, place))

    def _broken(self, before: int, after: int, place: str) -> str:
        """Compare one pair, and ask for those inside; return what makes them mean other bytes."""
        old, new = self.before.shapes[before], self.after.shapes[after]
        self.steps += 1 + sum(len(it.children) + len(it.cases) for it in (old, new))
        at = f"at {place}: " if place else ""
        if (old.kind, old.label) != (new.kind, new.label):
            return f"{at}{self.before.texts[before]} became {self.after.texts[after]}"
        if old.kind == "sum":
            return self._broken_cases(old.cases, new.cases, place, self.before.texts[before])
        if old.kind == "product":
            return self._broken_fields(old.names, old.children, new.names, new.children, place)
        for child, other in zip(old.children, new.children, strict=True):
            self._ask(child, other, f"{place}[]"[-MAX_PLACE:] if old.kind in {"sequence", "array"} else place)
        return ""

    def _broken_cases(
        self, before: tuple[ShapeCase, ...], after: tuple[ShapeCase, ...], place: str, called: str
    ) -> str:
        at = f"at {place}: " if place else ""
        old, new = ({it.index: it for it in cases} for cases in (before, after))
        places = {it.name: it.index for it in after}
        for index, case in old.items():
            other = new.get(index)
            moved = places.get(case.name, index)
            if moved != index:
                return f"{at}{called}::{case.name} moved from index {index} to {moved}"
            if other is None:
                self.lost.append(f"{called}::{case.name}")
                continue
            if other.name != case.name:
                return f"{at}index {index} of {called} was {case.name}, is {other.name}"
            inside = _inside(place, case.name)
            broken = self._broken_fields(case.names, case.children, other.names, other.children, inside)
            if broken:
                return broken
        self.gained.extend(f"{called}::{case.name}" for index, case in new.items() if index not in old)
        return ""

    def _broken_fields(
        self,
        names: tuple[str | None, ...],
        types: tuple[int, ...],
        new_names: tuple[str | None, ...],
        new_types: tuple[int, ...],
        place: str,
    ) -> str:
        at = f"at {place}: " if place else ""
        if len(types) != len(new_types):
            return f"{at}{_listed(names)} became {_listed(new_names)}"
        if names != new_names and None not in names and None not in new_names:
            if set(names) & set(new_names) and any(
                name in new_names and new_names.index(name) != here for here, name in enumerate(names)
            ):
                return f"{at}{_listed(names)} reordered to {_listed(new_names)}"
            self.renamed.extend(
                f"{_inside(place, old or '')} to {new}" for old, new in zip(names, new_names, strict=True) if old != new
            )
        for here, (name, old, new) in enumerate(zip(names, types, new_types, strict=True)):
            self._ask(old, new, _inside(place, str(here) if name is None else name))
        return ""


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}"[-MAX_PLACE:] if place else name[-MAX_PLACE:]


def _listed(names: tuple[str | None, ...]) -> str:
    return f"({', '.join(_few([str(here) if name is None else name for here, name in enumerate(names)]))})"


def _few(names: list[str]) -> tuple[str, ...]:
    rest = len(names) - MAX_NAMES
    return (*names[:MAX_NAMES], f"{rest} more") if rest > 0 else tuple(names)
