"""How notebooks show our objects: a title, a few facts, a short table; markup that needs no style sheet.

Law: whatever is not markup of ours is escaped, and colours work on light and on dark ground.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.nibbles import digits
from relaycast_trie.node import Branch, Empty, HashedValue, Leaf
from relaycast_trie.node_codec import EMPTY_ROOT, decode_node, encode_node

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
"""Of a bar: its name, its size, its colour."""


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


def nodes_card(title: str, nodes: Iterable[bytes], facts: Mapping[str, Cell]) -> str:
    """Return the card of something that is made of nodes, the largest of them first."""
    ordered = sorted(nodes, key=lambda node: (-len(node), node))
    rows: list[Sequence[Cell]] = [(blake2_256(node), _kind(node), len(node)) for node in ordered[:MAX_ROWS]]
    if len(ordered) > MAX_ROWS:
        rows.append((f"and {len(ordered) - MAX_ROWS:,} more", "", sum(map(len, ordered[MAX_ROWS:]))))
    return card(title, facts, columns=("hash", "node", "bytes"), rows=rows)


def trie_card(title: str, root: bytes, data: bytes | None, facts: Mapping[str, Cell]) -> str:
    """Return the card of a trie: what its root node is, and what each of its children leads to."""
    told: dict[str, Cell] = {"root": root, **facts}
    if data is None:
        return card(title, {**told, "root node": "none, it is empty" if root == EMPTY_ROOT else "not there"})
    told["root node"] = _kind(data)
    node = decode_node(data)
    children = node.children if isinstance(node, Branch) else ()
    rows: list[tuple[str, Cell]] = [
        (f"{digits(node.partial)}{nibble:x}" if isinstance(node, Branch) else "", _child(child))
        for nibble, child in enumerate(children)
        if child is not None
    ]
    return card(title, told, columns=("path", "child") if rows else (), rows=rows)


def _child(child: bytes) -> Cell:
    return child if len(child) == HASH_LENGTH else f"inline {_kind(child)}, {len(child)} bytes"


def _kind(data: bytes) -> str:
    """Return what a node is, as its bytes say; bytes that are not all of one are a value."""
    try:
        node = decode_node(data)
    except CodecError:
        return "value"
    if encode_node(node) != data:
        return "value"
    match node:
        case Branch(_, children, value):
            ways = sum(child is not None for child in children)
            return f"branch, {ways} ways{'' if value is None else ', a value'}"
        case Leaf(_, value):
            return "leaf, value outside" if isinstance(value, HashedValue) else f"leaf, {len(value)} bytes of value"
        case Empty():
            return "empty"


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
