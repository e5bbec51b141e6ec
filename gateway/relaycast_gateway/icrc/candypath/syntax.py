"""What a CandyPath text says: paths, literals and comparisons, and the error of a text that says nothing."""

import math
import re
from typing import NamedTuple

MOST_CHARACTERS = 1_024
DEEPEST_BRACKETS = 8

_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_SHOWN = 40


class CandyPathError(ValueError):
    """A filter's text is no CandyPath: it stops being one at the character at the 0-based position ``place``."""

    def __init__(self, text: str, place: int, expected: str) -> None:
        super().__init__(text, place, expected)
        self.text = text
        self.place = place
        self.expected = expected

    def __str__(self) -> str:
        rest = self.text[self.place : self.place + _SHOWN]
        got = repr(rest + "..." * (len(self.text) > self.place + _SHOWN)) if rest else "the end"
        return f"filter, character {self.place + 1}: expected {self.expected}, got {got}"


class Name(NamedTuple):
    """A step to the value under a name, or to the item at ``position`` where the name is a number."""

    name: str
    position: int | None


class Every(NamedTuple):
    """The step ``*``: to all items."""


class Where(NamedTuple):
    """The step ``[condition]``: to all items for which it holds."""

    condition: "Condition"


Step = Name | Every | Where


class Path(NamedTuple):
    """Steps from the root of the tree or from the current item."""

    from_root: bool
    steps: tuple[Step, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it leads to one value at most."""
        return all(isinstance(step, Name) for step in self.steps)


class Literal(NamedTuple):
    """A literal by each type that it can be compared with: ``None`` where it is no such literal."""

    text: str | None
    whole: int | None
    real: float | None
    flag: bool | None

    @property
    def is_null(self) -> bool:
        return self.text is None


class PathComparison(NamedTuple):
    """A path, an operator and what it is compared with: any of some literals, or a reference."""

    path: Path
    operator: str
    target: "tuple[Literal, ...] | Path"

    @property
    def is_plain(self) -> bool:
        return self.path.is_plain and (not isinstance(self.target, Path) or self.target.is_plain)


Condition = tuple[tuple[PathComparison, ...], ...]
"""Alternatives, of each of which all comparisons must hold."""

NULL = Literal(None, None, None, None)


def literal(text: str, *, escaped: bool) -> Literal:
    """Return what ``text`` stands for; an ``escaped`` one is text alone."""
    if escaped:
        return Literal(text, None, None, None)
    number = float(text) if _NUMBER.fullmatch(text) else None
    return Literal(
        text,
        int(text) if _WHOLE.fullmatch(text) else None,
        number if number is not None and math.isfinite(number) else None,
        {"true": True, "false": False}.get(text),
    )


def name_step(text: str, *, escaped: bool) -> Name:
    """Return the step to ``text``, an index too where it is a whole number without an escape."""
    return Name(text, int(text) if not escaped and _WHOLE.fullmatch(text) else None)
