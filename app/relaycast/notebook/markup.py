"""What cards are made of: a title, a few facts, a bar, a short table; markup that needs no style sheet.

Law: whatever is not markup of ours is escaped, and colours work on light and on dark ground.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

MAX_ROWS = 12
"""Rows of a table; more are counted."""

SHOWN_DIGITS = 18

_LINE = "1px solid rgba(128,128,140,.35)"
_BOX = f"border:{_LINE};border-radius:8px;padding:8px 12px;display:inline-block;max-width:100%;overflow-x:auto"
_CELL = f"text-align:right;padding:2px 8px;border-bottom:{_LINE};background:none"
_FIRST = _CELL.replace("right", "left")
_CODE = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px"

Cell = str | int | bytes | None
Part = tuple[str, int, str]
"""A part of a bar: its name, its size, its colour."""


def card(
    title: str,
    facts: Mapping[str, Cell],
    *,
    columns: Sequence[str] = (),
    rows: Iterable[Sequence[Cell]] = (),
    figure: str = "",
) -> str:
    """Return the markup of one object; ``figure`` is markup already, the rest is text, numbers and bytes."""
    told = " · ".join(f"{escape(name)} {_shown(value)}" for name, value in facts.items())
    parts = [f"<strong>{escape(title)}</strong>", f'<div style="margin:2px 0 4px">{told}</div>', figure]
    if columns:
        parts.append(_table(columns, [list(row) for row in rows]))
    return f'<div style="{_BOX}">{"".join(parts)}</div>'


def bar(parts: Sequence[Part], *, unit: str = "bytes") -> str:
    """Return sizes side by side, to scale, with their names below."""
    total = sum(size for _, size, _ in parts) or 1
    blocks = "".join(
        f'<span style="display:inline-block;height:14px;width:{100 * size / total:.2f}%;background:{colour}" '
        f'title="{escape(name)}: {size:,} {escape(unit)}"></span>'
        for name, size, colour in parts
        if size
    )
    names = " ".join(
        f'<span style="white-space:nowrap"><span style="color:{colour}">■</span> {escape(name)} {size:,}</span>'
        for name, size, colour in parts
        if size
    )
    return (
        f'<div style="white-space:nowrap;font-size:0;min-width:280px">{blocks}</div>'
        f'<div style="font-size:12px;margin-bottom:4px">{names}</div>'
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    more = ""
    if len(rows) > MAX_ROWS + 4:
        more = f'<div style="font-size:12px">and {len(rows) - MAX_ROWS:,} more</div>'
        rows = rows[:MAX_ROWS]
    head = "".join(
        f'<th scope="col" style="{_FIRST if index == 0 else _CELL}">{escape(name)}</th>'
        for index, name in enumerate(columns)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row, range(len(row))))}</tr>" for row in rows)
    style = "border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}'


def _cell(value: Cell, index: int) -> str:
    return f'<td style="{_CELL if index else _FIRST}">{_shown(value)}</td>'


def _shown(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, bytes):
        text = f"0x{value.hex()}"
        short = text if len(text) <= SHOWN_DIGITS + 8 else f"{text[:SHOWN_DIGITS]}…"
        return f'<code style="{_CODE}" title="{text}">{short}</code>'
    return f"{value:,}" if isinstance(value, int) else escape(value)
