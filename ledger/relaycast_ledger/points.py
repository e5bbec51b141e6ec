"""The points of a subscriber's charts, one for each of its blocks, kept as plain numbers.

A point as an object takes half a kilobyte, and a long run has a million. Here it takes eight bytes a number, and the
object is made when it is read.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, overload

from relaycast_ledger.outcome import Point

NAMES = tuple(name for name in Point.__struct_fields__ if name != "by_cause")
FLAGS = frozenset(name for name in NAMES if Point.__annotations__[name] is bool)


class Line(Sequence[tuple[int, int]]):
    """Points ``(x, y)`` of a line as plain numbers, 16 bytes each."""

    def __init__(self, xs: "array[int]", ys: "array[int]") -> None:
        self._xs, self._ys = xs, ys

    @classmethod
    def of(cls, points: Sequence[Point], name: str) -> "Line":
        """Return one number of every point over the blocks."""
        if isinstance(points, Points):
            return points.line(name)
        return cls(array("q", (it.block for it in points)), array("q", (getattr(it, name) for it in points)))

    def __len__(self) -> int:
        return len(self._xs)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...

    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, int]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, int] | list[tuple[int, int]]:
        if isinstance(index, slice):
            return list(zip(self._xs[index], self._ys[index], strict=True))
        return self._xs[index], self._ys[index]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._xs, self._ys, strict=True)

    def __repr__(self) -> str:
        return f"<Line of {len(self)} points>"


class Points(Sequence[Point]):
    """A sequence of points that only grows."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._causes = array("q")
        self._ends = array("q", [0])

    def append(self, point: Point) -> None:
        """Add a point at the end."""
        self._numbers.extend(int(getattr(point, name)) for name in NAMES)
        self._causes.extend(point.by_cause)
        self._ends.append(len(self._causes))

    def extend(self, later: "Points") -> None:
        """Add the points of another sequence at the end."""
        before = len(self._causes)
        self._numbers.extend(later._numbers)
        self._causes.extend(later._causes)
        self._ends.extend(before + end for end in later._ends[1:])

    def dump(self) -> tuple[bytes, bytes, bytes]:
        """Return the points as bytes."""
        return self._numbers.tobytes(), self._causes.tobytes(), self._ends.tobytes()

    @classmethod
    def of_dump(cls, dumped: Sequence[bytes]) -> "Points":
        """Return the points that were dumped; raises ``ValueError`` where they are not whole."""
        if {type(held) for held in dumped} != {bytes} or len(dumped) != 3:
            raise ValueError("points of a chart are three strings of bytes")
        points = cls()
        points._numbers, points._causes, points._ends = (array("q", held) for held in dumped)
        ends = points._ends
        whole = len(points._numbers) == len(NAMES) * (len(ends) - 1) and list(ends) == sorted(ends)
        if not whole or ends[0] != 0 or ends[-1] != len(points._causes):
            raise ValueError("points of a chart are not whole")
        return points

    def column(self, name: str) -> Sequence[int]:
        """Return one number of every point."""
        return self._numbers[NAMES.index(name) :: len(NAMES)]

    def after(self, index: int) -> "Points":
        """Return the points from number ``index`` on."""
        if index == 0:
            return self
        points = Points()
        points._numbers = self._numbers[index * len(NAMES) :]
        points._causes = self._causes[self._ends[index] :]
        points._ends = array("q", (end - self._ends[index] for end in self._ends[index:]))
        return points

    def line(self, name: str) -> Line:
        """Return one number of every point over the blocks."""
        return Line(self._numbers[NAMES.index("block") :: len(NAMES)], self._numbers[NAMES.index(name) :: len(NAMES)])

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Point: ...

    @overload
    def __getitem__(self, index: slice) -> list[Point]: ...

    def __getitem__(self, index: int | slice) -> Point | list[Point]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(index)
        row = self._numbers[number * len(NAMES) : (number + 1) * len(NAMES)]
        values: dict[str, Any] = {
            name: bool(value) if name in FLAGS else value for name, value in zip(NAMES, row, strict=True)
        }
        return Point(**values, by_cause=tuple(self._causes[self._ends[number] : self._ends[number + 1]]))

    def __iter__(self) -> Iterator[Point]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Points of {len(self)} blocks>"
