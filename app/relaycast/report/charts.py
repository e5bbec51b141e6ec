"""Charts as SVG text: they need no script, and scale with the page.

Law: a chart is drawn from at most a few hundred columns however long the run, and nothing is smoothed. Of the points
that share a column a line shows the median, with a band from the lowest to the highest. A stack shows the one with the
largest sum, all of it. Points of one x stand side by side in its width, in their order: a parachain may build several
blocks in one relay block.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct

_Point = TypeVar("_Point")

WIDTH, HEIGHT = 860, 260
LEFT, RIGHT, TOP, BOTTOM = 80, 16, 12, 36
MAX_COLUMNS = 400

NO_MARKS: Mapping[int, str] = MappingProxyType({})

Shaded = tuple[int, int]
"""Part of an x axis: the first x, and the x at which the shade ends."""

LEAST_SHADE = 3.0
"""Width of the narrowest shade that can be seen."""

HALF_DIGIT = 5.4
"""Half the width of a digit in the largest type that a page gives to a chart."""

COLOURS = ("var(--r0)", "var(--r1)", "var(--r2)", "var(--r3)", "var(--r4)", "var(--r5)")
"""Colours of readers; the page sets their values, for light and for dark."""


class Series(Struct, frozen=True):
    """A named line: points ``(x, y)`` in the order of x, of which several may have the same."""

    name: str
    points: Sequence[tuple[int, int]]


class Band(Struct, frozen=True):
    """A named line with its surroundings: points ``(x, lowest, middle, highest)`` in the order of x."""

    name: str
    points: Sequence[tuple[float, int, int, int]]


def band_chart(
    bands: Sequence[Band],
    *,
    unit: str,
    x_name: str,
    label: str,
    top: int | None = None,
    marks: Mapping[int, str] = NO_MARKS,
    shaded: Shaded | None = None,
) -> str:
    """Return a line for each middle, over a pale band from the lowest to the highest where they differ.

    The scale ends at ``top`` if given, which is at least the largest value. ``marks`` are x and meaning of upright
    lines. ``shaded`` is the start-up.
    """
    xs = [point[0] for band in bands for point in band.points]
    if not xs:
        return ""
    low, high = int(min(xs)), max(xs)
    top = top or nice_ceiling(max(point[3] for band in bands for point in band.points))
    parts = [_shade(shaded, low, high), _frame(top, unit), _x_axis(low, int(high), x_name, last=high)]
    parts += [_mark(x, meaning, low, high) for x, meaning in marks.items() if low <= x <= high]
    for index, band in enumerate(bands):
        colour = COLOURS[index % len(COLOURS)]
        title = f"<title>{escape(band.name)}</title>"
        if any(lowest < highest for _, lowest, _, highest in band.points):
            over = [_point(x, highest, low, high, top) for x, _, _, highest in band.points]
            under = [_point(x, lowest, low, high, top) for x, lowest, _, _ in reversed(band.points)]
            area = " ".join([*over, *under])
            parts.append(f'<polygon points="{area}" style="fill:{colour}" fill-opacity=".22">{title}</polygon>')
        path = _line(band, low, high, top)
        if len(band.points) == 1:
            x, y = path[0].split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" style="fill:{colour}">{title}</circle>')
        line = f'points="{" ".join(path)}" fill="none" style="stroke:{colour}" stroke-width="1.8"'
        dashes = ' stroke-dasharray="7 4"' if index % 2 else ""
        parts.append(f"<polyline {line}{dashes}>{title}</polyline>")
    return _svg(parts, label)


def stacked_chart(
    layers: Sequence[Series],
    *,
    unit: str,
    x_name: str,
    label: str,
    colours: Sequence[str] = COLOURS,
    top: int | None = None,
    shaded: Shaded | None = None,
) -> str:
    """Return layers on top of one another over a common x, the first at the bottom, in steps: no value is made up.

    Where columns share a place, the one with the largest sum is kept whole. ``shaded`` is the start-up.
    """
    sums = [sum(y for _, y in column) for column in zip(*(layer.points for layer in layers), strict=True)]
    if not sums:
        return ""
    kept = [index for index, _ in thinned(list(enumerate(sums)))]
    places = side_by_side([x for x, _ in layers[0].points])
    low, high, top = layers[0].points[0][0], layers[0].points[-1][0] + 1, top or nice_ceiling(max(sums))
    edges = [_x(x, low, high) for x in [*(places[index] for index in kept), high]]
    parts = [_shade(shaded, low, high), _frame(top, unit), _x_axis(low, high - 1, x_name, last=high)]
    floor = [0] * len(kept)
    for index, layer in enumerate(layers):
        ceiling = [below + layer.points[column][1] for below, column in zip(floor, kept, strict=True)]
        if ceiling != floor:
            path = "M" + "L".join([*_steps(edges, ceiling, top), *reversed(_steps(edges, floor, top))]) + "Z"
            title = f"<title>{escape(layer.name)}</title>"
            parts.append(f'<path d="{path}" style="fill:{colours[index % len(colours)]}">{title}</path>')
        floor = ceiling
    return _svg(parts, label)


def bar_chart(groups: Mapping[str, Mapping[int, int]], *, unit: str, x_name: str, label: str, step: int = 1) -> str:
    """Return one bar for each value of each group, side by side; with a ``step``, each stands for that many."""
    values = sorted({value for counts in groups.values() for value in counts})
    if not values:
        return ""
    top = nice_ceiling(max(count for counts in groups.values() for count in counts.values()))
    slot = (WIDTH - LEFT - RIGHT) / len(values)
    bar = min(48.0, slot * 0.8 / len(groups))
    parts = [_frame(top, unit)]
    for position, value in enumerate(values):
        middle = LEFT + slot * (position + 0.5)
        named = f"{value:,}" if step == 1 else f"{value:,}-{value + step - 1:,}"
        if position % max(1, len(values) // 10) == 0:
            parts.append(_text(middle, HEIGHT - BOTTOM + 16, named, "middle"))
        for index, (name, counts) in enumerate(groups.items()):
            y = _y(counts.get(value, 0), top)
            x = middle + bar * (index - len(groups) / 2)
            title = f"<title>{escape(name)}: {counts.get(value, 0):,} at {named}</title>"
            shape = f'x="{x:.1f}" y="{y:.1f}" width="{bar * 0.92:.1f}" height="{HEIGHT - BOTTOM - y:.1f}"'
            parts.append(f'<rect {shape} style="fill:{COLOURS[index % len(COLOURS)]}" rx="2">{title}</rect>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, x_name, "middle"))
    return _svg(parts, label)


def thinned(points: Sequence[tuple[int, int]], *, columns: int = MAX_COLUMNS) -> list[tuple[int, int]]:
    """Return at most ``columns`` points: of those that share a column the one with the largest y."""
    if len(points) <= columns:
        return list(points)
    return [max(part, key=lambda point: point[1]) for part in _slices(points, columns)]


def banded(line: Series, *, columns: int = MAX_COLUMNS) -> Band:
    """Return ``line`` with at most ``columns`` points, each with the lowest, median and highest y of its column."""
    xs = side_by_side([x for x, _ in line.points])
    placed = [(x, y) for x, (_, y) in zip(xs, line.points, strict=True)]
    if len(placed) <= columns:
        return Band(line.name, [(x, y, y, y) for x, y in placed])
    points = []
    for part in _slices(placed, columns):
        ys = sorted(y for _, y in part)
        points.append((part[0][0], ys[0], ys[(len(ys) - 1) // 2], ys[-1]))
    points[-1] = (placed[-1][0], *points[-1][1:])
    return Band(line.name, points)


def across(name: str, series: Sequence[Series], *, columns: int = MAX_COLUMNS) -> Band:
    """Return all of ``series`` as one band: in each column the lowest, the median and the highest of all points."""
    found: dict[int, list[int]] = {}
    for line in series:
        for x, y in line.points:
            found.setdefault(x, []).append(y)
    places = sorted(found)
    points = []
    for part in _slices([(x, 0) for x in places], min(columns, len(places))):
        ys = sorted(y for x, _ in part for y in found[x])
        points.append((part[0][0], ys[0], ys[(len(ys) - 1) // 2], ys[-1]))
    return Band(name, points)


def side_by_side(xs: Sequence[int]) -> list[float]:
    """Return places for values in ascending order: those that are the same share the room up to the next whole one."""
    return [x + index / count for x, count in Counter(xs).items() for index in range(count)]


def nice_ceiling(value: int) -> int:
    """Return the next of 4, 8, 12, 20 or 32 times a power of ten: grid lines stand at its quarters."""
    power = 1
    while True:
        for factor in (4, 8, 12, 20, 32):
            if factor * power >= value:
                return factor * power
        power *= 10


def round_ticks(low: int, high: int) -> list[int]:
    """Return both ends and, between them, multiples of a round number: at most ten, none close to an end."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if (high - low) / step <= 8:
                inner = range(-(-low // step) * step, high + 1, step)
                return [low, *(tick for tick in inner if min(tick - low, high - tick) * 2 > step), *{high} - {low}]
        power *= 10


def _slices(points: Sequence[_Point], columns: int) -> list[Sequence[_Point]]:
    """Return the points in ``columns`` parts, no part empty."""
    step = len(points) / max(1, columns)
    return [points[int(index * step) : int((index + 1) * step)] for index in range(columns)]


def _steps(edges: Sequence[float], heights: Sequence[int], top: int) -> list[str]:
    """Return the corners of a line that keeps its height from each edge to the next."""
    corners: list[str] = []
    for index, height in enumerate(heights):
        y = f"{_y(height, top):.1f}"
        if index and height == heights[index - 1]:
            corners[-1] = f"{edges[index + 1]:.1f},{y}"
        else:
            corners += [f"{edges[index]:.1f},{y}", f"{edges[index + 1]:.1f},{y}"]
    return corners


def _line(band: Band, low: int, high: float, top: int) -> list[str]:
    """Return the corners of the middle: steps, for nothing lies between two blocks, where there is room for them."""
    path: list[str] = []
    before: int | None = None
    for x, _, middle, _ in band.points:
        if before is not None and before != middle and len(band.points) < MAX_COLUMNS:
            path.append(_point(x, before, low, high, top))
        path.append(_point(x, middle, low, high, top))
        before = middle
    return path


def _point(x: float, y: int, low: int, high: float, top: int) -> str:
    return f"{_x(x, low, high):.1f},{_y(y, top):.1f}"


def _svg(parts: Sequence[str], label: str) -> str:
    body = "".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{body}</svg>'


def _frame(top: int, unit: str) -> str:
    parts = []
    for quarter in range(5):
        value = top * quarter / 4
        y = _y(value, top)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{value:,.0f}", "end"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    place = f'x="12" y="{middle}" transform="rotate(-90 12 {middle})" text-anchor="middle"'
    parts.append(f"<text {place}>{escape(unit)}</text>")
    return "".join(parts)


def _x_axis(low: int, high: int, name: str, *, last: float | None = None) -> str:
    """Return the numbers below, all of them inside; ``last`` is where the scale ends, if not with the last number."""
    end = high if last is None else last
    marks = []
    for tick in round_ticks(low, high):
        text = f"{tick:,}"
        x = min(_x(tick, low, end), WIDTH - HALF_DIGIT * len(text))
        marks.append(_text(x, HEIGHT - BOTTOM + 16, text, "middle"))
    return "".join(marks) + _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, name, "middle")


def _shade(shaded: Shaded | None, low: int, high: float) -> str:
    """Return a pale field behind the start-up, and its name beside it."""
    if shaded is None:
        return ""
    left, right = _x(shaded[0], low, high), _x(min(shaded[1], high), low, high)
    width = max(LEAST_SHADE, right - left)
    field = f'x="{left:.1f}" y="{TOP}" width="{width:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
    title = "<title>start-up: the first values of each key</title>"
    name = f'<text class="start" x="{left + width + 4:.1f}" y="{TOP + 11}">start-up</text>'
    return f'<rect class="start" {field}>{title}</rect>{name}'


def _mark(x: int, meaning: str, low: int, high: float) -> str:
    place = f"{_x(x, low, high):.1f}"
    line = f'class="grid" x1="{place}" x2="{place}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke-dasharray="3 3"'
    return f'<line {line} style="stroke:currentColor"><title>{escape(meaning)}</title></line>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _x(value: float, low: int, high: float) -> float:
    return LEFT + (value - low) / max(1, high - low) * (WIDTH - LEFT - RIGHT)


def _y(value: float, top: int) -> float:
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)
