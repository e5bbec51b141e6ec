"""What the chapters share besides pictures: bytes with their meaning, small tables, help, and verdicts on answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

_CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top;border:0"
_MONO = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says of an answer: whether it is ``right``, and what is right or wrong about it."""

    right: bool
    said: str

    def _repr_html_(self) -> str:
        colour, sign, head = ("#2e7d32", "✔", "Right.") if self.right else ("#a56000", "✘", "Not yet.")
        return (
            f'<div style="border-left:4px solid {colour};padding:6px 12px;margin:6px 0">'
            f'<b style="color:{colour}">{sign} {head}</b> {escape(self.said)}</div>'
        )


@dataclass(frozen=True, slots=True)
class Aid:
    """Help with an exercise: a hint, then the solution with its reason, each hidden until a reader opens it."""

    hint: str
    solution: object
    reason: str

    def _repr_html_(self) -> str:
        solution = f'<code style="{_MONO};overflow-wrap:anywhere">{escape(repr(self.solution))}</code>'
        return (
            f"<details><summary>A hint</summary><p>{escape(self.hint)}</p></details>"
            f"<details><summary>The solution</summary><p>{solution}</p><p>{escape(self.reason)}</p></details>"
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under their ``head``; everything is shown as text."""

    head: Sequence[str]
    rows: Sequence[Sequence[object]]

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="{_CELL};border-bottom:1px solid #90a4ae">{escape(name)}</th>' for name in self.head)
        rows = "".join(
            "<tr>" + "".join(f'<td style="{_CELL};{_MONO}">{escape(_shown(cell))}</td>' for cell in row) + "</tr>"
            for row in self.rows
        )
        return f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


@dataclass(frozen=True, slots=True)
class Listing:
    """Some lines of code, to be read."""

    code: str

    def _repr_html_(self) -> str:
        return f'<pre style="{_MONO};line-height:1.35;margin:0;white-space:pre-wrap">{escape(self.code)}</pre>'


def example(name: str) -> Path:
    """Return where a file of ``docs/examples`` is, for the chapters themselves and for a copy of them in the clone."""
    places = [folder / "docs" / "examples" / name for folder in Path(__file__).resolve().parents]
    found = next((place for place in places if place.exists()), None)
    if found is None:
        raise FileNotFoundError(f"expected docs/examples/{name} above {Path(__file__).resolve().parent}, got nothing")
    return found


def bytes_with_meaning(parts: Iterable[tuple[bytes, str]]) -> Table:
    """Return a line for each part of some bytes: where it begins, the bytes, what they mean."""
    rows: list[tuple[str, str, str]] = []
    offset = 0
    for data, meaning in parts:
        rows.append((str(offset), data.hex(" "), meaning))
        offset += len(data)
    return Table(("at", "bytes", "meaning"), rows)


def cut(data: bytes, sizes: Iterable[tuple[int, str]]) -> Table:
    """Return a line for each part of ``data``, which is as long as the parts together: how long it is, its meaning."""
    parts, offset = [], 0
    for size, meaning in sizes:
        parts.append((data[offset : offset + size], meaning))
        offset += size
    assert offset == len(data), f"the parts have {offset} bytes, got {len(data)}"
    return bytes_with_meaning(parts)


def nibbles(key: bytes) -> str:
    """Return the path of a key as digits, one for each half byte."""
    return " ".join(key.hex())


def _shown(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return cell.hex(" ") if isinstance(cell, bytes) else str(cell)
