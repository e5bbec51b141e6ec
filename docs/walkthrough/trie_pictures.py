"""Pictures of tries, drawn from the nodes themselves: what a database or a proof holds, no more and no less.

A node that its parent names and the source does not hold is a grey stub. Inline nodes have a dashed frame: they are
part of their parent's bytes.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from html import escape

import relaycast_trie as rt

CHARACTER = 7.25
"""Width of a character of the 12-pixel monospaced font."""

FONT = "ui-monospace, Menlo, Consolas, monospace"
LINE = 16
GAP = 14
LEVEL_GAP = 44
DIGITS = "0123456789abcdef"

COLOURS = {
    "node": ("#ffffff", "#607d8b"),
    "marked": ("#fff3cd", "#d39e00"),
    "value": ("#e8f5e9", "#4c8c50"),
    "absent": ("#eceff1", "#b0bec5"),
}
"""Fill and frame by kind."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG picture, which notebooks show as it is."""

    svg: str

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg}</div>'


@dataclass(slots=True)
class _Box:
    lines: list[str]
    kind: str = "node"
    dashed: bool = False
    edge: str = ""
    """The nibble by which its parent leads here."""

    below: list["_Box"] = field(default_factory=list)
    left: float = 0
    top: float = 0

    @property
    def width(self) -> float:
        return max(len(line) for line in self.lines) * CHARACTER + 16

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 12

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    def all(self) -> Iterator["_Box"]:
        yield self
        for box in self.below:
            yield from box.all()


@dataclass(frozen=True, slots=True)
class _Artist:
    source: rt.NodeSource
    marked: Container[bytes]
    numbers: dict[bytes, int]

    def node(self, reference: bytes, edge: str, title: str) -> _Box:
        """Return the box of the node that a parent names by ``reference``, with everything below it."""
        inline = len(reference) != rt.HASH_LENGTH
        data = reference if inline else self.source.get(reference)
        if data is None:
            return _Box(["not here", _short(reference)], "absent", edge=edge)
        node = rt.decode_node(data)
        if isinstance(node, rt.Empty):
            return _Box(["the empty trie"], edge=edge)
        box = _Box([title + _kind(node), f"path {_path(node.partial)}"], edge=edge, dashed=inline)
        if isinstance(node.value, rt.HashedValue):
            box.lines.append(f"value: hash {_short(node.value.hash)}")
        elif node.value is not None:
            box.lines.append(f"value {_text(node.value)}")
        box.lines.append(f"inline, {len(data)} bytes" if inline else f"{_short(reference)}, {len(data)} bytes")
        self._finish(box, reference)
        box.below = self._below(node)
        return box

    def _below(self, node: rt.Leaf | rt.Branch) -> list[_Box]:
        boxes = [self._value(node.value.hash)] if isinstance(node.value, rt.HashedValue) else []
        if isinstance(node, rt.Leaf):
            return boxes
        absent: list[str] = []
        for nibble, child in zip(DIGITS, node.children, strict=True):
            if child is None:
                continue
            if len(child) == rt.HASH_LENGTH and self.source.get(child) is None:
                absent.append(nibble)
            else:
                boxes.append(self.node(child, nibble, ""))
        if absent:
            count = f"{len(absent)} hash{'es' if len(absent) > 1 else ''}"
            boxes.append(_Box([f"{count} only:", "not here"], "absent", edge=_ranges(absent)))
        return boxes

    def _value(self, value_hash: bytes) -> _Box:
        value = self.source.get(value_hash)
        if value is None:
            return _Box(["value not here"], "absent")
        box = _Box(["value", _text(value), f"{_short(value_hash)}, {len(value)} bytes"], "value")
        self._finish(box, value_hash)
        return box

    def _finish(self, box: _Box, node_hash: bytes) -> None:
        if node_hash in self.marked:
            box.kind = "marked"
        if node_hash in self.numbers:
            box.lines[0] = f"[{self.numbers[node_hash]}] {box.lines[0]}"


def draw_trie(
    source: rt.NodeSource, root: bytes, *, marked: Container[bytes] = (), numbers: dict[bytes, int] | None = None
) -> Picture:
    """Draw what ``source`` holds of the trie with this ``root``; nodes whose hashes are ``marked`` are yellow.

    ``numbers`` go before the names of nodes and values, by hash.
    """
    top = _Artist(source, marked, numbers or {}).node(root, "", "root ")
    width = _place(top, 1, 1)
    height = max(box.top + box.height for box in top.all()) + 1
    drawn = "".join(_edges(top)) + "".join(_drawn(box) for box in top.all())
    label = f"A trie from its root down: {len(list(top.all()))} nodes and values"
    return framed(drawn, width + 2, height, label)


def framed(drawn: str, width: float, height: float, label: str) -> Picture:
    """Return a picture of this size, in pixels, which shrinks where there is less room; the label is read aloud."""
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" style="background:#fff;max-width:100%;height:auto" font-family="{FONT}" '
        f'font-size="12" role="img" aria-label="{escape(label)}">{drawn}</svg>'
    )


def _place(box: _Box, left: float, top: float) -> float:
    """Give ``box`` and all below it their places; return the width that they take."""
    box.top = top
    below, right = top + box.height + LEVEL_GAP, left
    for child in box.below:
        right += _place(child, right, below) + GAP
    taken = right - left - GAP if box.below else 0
    if taken < box.width:
        shift = (box.width - taken) / 2
        for child in box.below:
            for moved in child.all():
                moved.left += shift
        box.left = left
        return box.width
    box.left = (box.below[0].middle + box.below[-1].middle) / 2 - box.width / 2
    box.left = min(max(box.left, left), left + taken - box.width)
    return taken


def _edges(box: _Box) -> Iterator[str]:
    for child in box.below:
        x1, y1, x2, y2 = box.middle, box.top + box.height, child.middle, child.top
        dash = ' stroke-dasharray="4 3"' if child.kind == "value" else ""
        yield f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#90a4ae"{dash}/>'
        if child.edge:
            x, y = x1 + (x2 - x1) * 0.62, y1 + (y2 - y1) * 0.62
            half = len(child.edge) * CHARACTER / 2 + 4
            yield (
                f'<rect x="{x - half:.1f}" y="{y - 9:.1f}" width="{2 * half:.1f}" height="18" rx="9" fill="#37474f"/>'
                f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="#fff">{child.edge}</text>'
            )
        yield from _edges(child)


def _drawn(box: _Box) -> str:
    fill, frame = COLOURS[box.kind]
    dash = ' stroke-dasharray="5 3"' if box.dashed else ""
    colour = "#455a64" if box.kind == "absent" else "#263238"
    weights = ["normal" if box.kind == "absent" else "bold"] + ["normal"] * len(box.lines)
    lines = [
        f'<text x="{box.left + 8:.1f}" y="{box.top + 18 + index * LINE:.1f}" fill="{colour}" '
        f'font-weight="{weights[index]}">{escape(line)}</text>'
        for index, line in enumerate(box.lines)
    ]
    return (
        f'<rect x="{box.left:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5" '
        f'fill="{fill}" stroke="{frame}"{dash}/>{"".join(lines)}'
    )


def _kind(node: rt.Leaf | rt.Branch) -> str:
    return "leaf" if isinstance(node, rt.Leaf) else "branch"


def _path(partial: bytes) -> str:
    digits = "".join(DIGITS[nibble] for nibble in partial)
    if len(digits) > 12:
        return f"{digits[:4]}…, {len(digits)} long"
    return digits or "(none)"


def _text(value: bytes) -> str:
    text = value.decode("ascii", "replace")
    if not text.isprintable() or not text.isascii():
        return f"0x{value.hex()}" if len(value) <= 8 else f"0x{value[:6].hex()}… ({len(value)} bytes)"
    return f"“{text}”" if len(text) <= 20 else f"“{text[:14]}…” ({len(value)} bytes)"


def _short(digest: bytes) -> str:
    return f"0x{digest[:4].hex()}…"


def _ranges(nibbles: list[str]) -> str:
    """Return nibbles with runs of three and more as ``0-4``."""
    runs: list[list[str]] = []
    for nibble in nibbles:
        if runs and DIGITS.index(nibble) == DIGITS.index(runs[-1][-1]) + 1:
            runs[-1].append(nibble)
        else:
            runs.append([nibble])
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(run) for run in runs)
