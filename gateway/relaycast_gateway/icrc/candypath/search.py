"""Filters with ``*`` or brackets: they follow many values, within a bound."""

from relaycast_gateway.icrc.candypath.comparisons import holds, unwrapped
from relaycast_gateway.icrc.candypath.steps import child, items, width
from relaycast_gateway.icrc.candypath.syntax import Condition, Every, Literal, Name, Path, PathComparison, Step
from relaycast_gateway.icrc16 import NOTHING, Icrc16

MOST_LOOKS = 100_000
"""Entries and items that one evaluation looks at; with more it selects nothing.

In a comparison each value counts by its length: one for every 256 characters, bytes, or bytes of a number.
"""


class OutOfLooks(Exception):
    """An evaluation came to its bound."""


class Search:
    """One evaluation of one filter."""

    __slots__ = ("_left", "_root")

    def __init__(self, root: Icrc16) -> None:
        self._root = root
        self._left = MOST_LOOKS

    def satisfies(self, condition: Condition, current: Icrc16) -> bool:
        """Return whether one of the alternatives holds; ``OutOfLooks`` at the bound."""
        return any(all(self._compare(each, current) for each in alternative) for alternative in condition)

    def values(self, path: Path, current: Icrc16) -> list[Icrc16]:
        """Return all values that a path finds, or null alone; ``OutOfLooks`` at the bound."""
        found = [self._root if path.from_root else current]
        for step in path.steps:
            found = [each for value in found for each in self._next(value, step)]
        return found or [NOTHING]

    def _compare(self, comparison: PathComparison, current: Icrc16) -> bool:
        target = comparison.target
        values = self.values(comparison.path, current)
        targets = self.values(target, current) if isinstance(target, Path) else target
        self._spend(sum(map(_weight, values)) * len(targets) + sum(map(_weight, targets)) * len(values))
        return holds(comparison.operator, values, targets)

    def _next(self, value: Icrc16, step: Step) -> list[Icrc16]:
        self._spend(width(value))
        if isinstance(step, Name):
            found = child(value, step)
            return [] if found is None else [found]
        result = []
        for item in items(value):
            self._spend(1)
            if isinstance(step, Every) or self.satisfies(step.condition, item):
                result.append(item)
        return result

    def _spend(self, looks: int) -> None:
        self._left -= looks
        if self._left < 0:
            raise OutOfLooks


def _weight(value: Icrc16 | Literal) -> int:
    if isinstance(value, Literal):
        return 1
    content = unwrapped(value).content
    if content.__class__ is int:
        return 1 + (content.bit_length() >> 11)
    return 1 + (len(content) >> 8 if content.__class__ in (str, bytes) else 0)
