"""What calls weigh: benchmarked ``weights.rs`` files of a Substrate runtime, read as data.

Each function keeps its file and line, so that a report can name its source. A weight is linear: a base, database reads
and writes, and the same three again for each unit of every component (``n``, ``k``, ...).
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from relaycast_xcm.primitives import DbWeight, Weight


class WeightSyntaxError(ValueError):
    """A ``weights.rs`` that cannot be read: ``source``, ``line`` and ``reason``."""

    def __init__(self, source: str, line: int, reason: str) -> None:
        super().__init__(source, line, reason)
        self.source = source
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}"


class Term(Struct, frozen=True):
    """A weight with database accesses that are priced when it is used."""

    weight: Weight = Weight.ZERO
    reads: int = 0
    writes: int = 0

    def at(self, db: DbWeight) -> Weight:
        return self.weight + db.reads_writes(self.reads, self.writes)

    def __add__(self, other: "Term") -> "Term":
        return Term(self.weight + other.weight, self.reads + other.reads, self.writes + other.writes)


class CallWeight(Struct, frozen=True):
    """The weight of ``call``: ``base``, and ``slopes`` for each unit of a component; ``source`` tells its origin."""

    call: str
    base: Term
    slopes: Mapping[str, Term] = field(default_factory=dict)
    source: str = ""

    def at(self, db: DbWeight, **components: int) -> Weight:
        """Return the weight with these components; those not given are 0. ``ValueError`` for one it does not have."""
        unknown = components.keys() - self.slopes.keys()
        if unknown:
            raise ValueError(f"{self.call} has no component {sorted(unknown)}, it has {sorted(self.slopes)}")
        total = self.base.at(db)
        for name, count in components.items():
            total += self.slopes[name].at(db) * count
        return total


class WeightTable(Struct, frozen=True):
    """Weights by call; a table may stand on another one, which answers for the calls that it lacks."""

    calls: Mapping[str, CallWeight]

    @classmethod
    def of(cls, *calls: CallWeight) -> "WeightTable":
        return cls({weight.call: weight for weight in calls})

    def __getitem__(self, call: str) -> CallWeight:
        return self.calls[call]

    def __contains__(self, call: str) -> bool:
        return call in self.calls

    def over(self, other: "WeightTable") -> "WeightTable":
        """Return this table completed from ``other``: calls that are missing, and at no cost their components."""
        merged = dict(other.calls)
        for name, weight in self.calls.items():
            known = other.calls[name].slopes if name in other.calls else {}
            free = {component: Term() for component in known if component not in weight.slopes}
            merged[name] = replace(weight, slopes={**weight.slopes, **free})
        return WeightTable(merged)

    def __repr__(self) -> str:
        return f"<WeightTable {', '.join(sorted(self.calls))}>"


_FUNCTION = re.compile(r"\bfn\s+(\w+)\s*\(([^)]*)\)\s*->\s*Weight\s*\{")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = r"\(?(\d[\d_]*)(?:u(?:32|64))?\)?"
_TIMES = r"(?:\.saturating_mul\((\w+)(?:\.into\(\))?\))?"
_FROM_PARTS = re.compile(rf"Weight::from_parts\({_NUMBER},{_NUMBER}\){_TIMES}")
_ACCESS = re.compile(rf"\w*(?:::)?\w*DbWeight::get\(\)\.(reads|writes)\({_NUMBER}{_TIMES}\)")
_ZERO = "Weight::zero()"
"""Summands without their white space, as the benchmark templates write them."""


def parse_weights(text: str, *, source: str = "weights.rs") -> WeightTable:
    """Return the weights of a benchmarked file: ``Weight::from_parts``, reads, writes and their components.

    Where a function is implemented twice (for ``SubstrateWeight<T>`` and for ``()``) the first one counts.
    Raises ``WeightSyntaxError`` at the first body that says anything else.
    """
    code = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)
    calls: dict[str, CallWeight] = {}
    for match in _FUNCTION.finditer(code):
        name, line = match[1], code.count("\n", 0, match.start()) + 1
        if name not in calls:
            calls[name] = _call(name, match[2], _body(code, match.end(), source, line), source, line)
    if not calls:
        raise WeightSyntaxError(source, 1, "no function returns a Weight")
    return WeightTable(calls)


def _body(code: str, start: int, source: str, line: int) -> str:
    depth = 1
    for offset in range(start, len(code)):
        depth += (code[offset] == "{") - (code[offset] == "}")
        if not depth:
            return code[start:offset]
    raise WeightSyntaxError(source, line, "the body has no end")


def _call(name: str, parameters: str, body: str, source: str, line: int) -> CallWeight:
    components = re.findall(r"(\w+)\s*:\s*u32", parameters)
    base = Term()
    slopes = {component.lstrip("_"): Term() for component in components}
    for offset, text in _summands(body):
        where = line + body.count("\n", 0, offset)
        term, component = _summand(text, source, where)
        if component is None:
            base += term
        elif component in slopes:
            slopes[component] += term
        else:
            raise WeightSyntaxError(source, where, f"'{component}' is no parameter of {name}")
    return CallWeight(name, base, slopes, f"{source}:{line}")


def _summands(body: str) -> Iterator[tuple[int, str]]:
    """Split ``first.saturating_add(second).saturating_add(third)`` into its summands with their offsets."""
    marker = ".saturating_add("
    start = end = 0
    while (found := body.find(marker, end)) >= 0:
        if body[end:found].strip():
            yield start, body[end:found]
        start = end = found + len(marker)
        depth = 1
        while depth and end < len(body):
            depth += (body[end] == "(") - (body[end] == ")")
            end += 1
        yield start, body[start : end - 1]
        start = end
    if body[end:].strip():
        yield end, body[end:]


def _summand(text: str, source: str, line: int) -> tuple[Term, str | None]:
    """Return one summand and the component that it is multiplied with."""
    packed = "".join(text.split())
    if found := _FROM_PARTS.fullmatch(packed):
        return Term(Weight(_integer(found[1]), _integer(found[2]))), found[3]
    if found := _ACCESS.fullmatch(packed):
        count = _integer(found[2])
        return (Term(reads=count) if found[1] == "reads" else Term(writes=count)), found[3]
    if packed == _ZERO:
        return Term(), None
    raise WeightSyntaxError(
        source, line, f"expected Weight::from_parts, reads or writes, got '{' '.join(text.split())}'"
    )


def _integer(digits: str) -> int:
    return int(digits.replace("_", ""))
