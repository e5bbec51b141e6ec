"""A whole trie at a glance: every node as wide as the bytes at and below it, the root on top.

Law: widths are to scale. What would be narrower than a few pixels is left to the node above, which keeps its width.
"""

from collections.abc import Callable, Sequence
from html import escape

from msgspec import Struct, field

from relaycast_ledger.proof_picture import PicturedNode

WIDTH, ROW = 860, 22
NARROWEST = 1.0
"""Pixels of 860 from which a node is drawn, unless a page with many tries asks for more."""

ROOM_FOR_TEXT = 56


class _Tile(Struct):
    node: PicturedNode | None
    prefix: bytes
    depth: int
    total_bytes: int
    below: list["_Tile"] = field(default_factory=list)


def icicle(
    nodes: Sequence[PicturedNode],
    *,
    style: Callable[[PicturedNode], str],
    title: Callable[[PicturedNode], str],
    label: str,
    narrowest: float = NARROWEST,
) -> str:
    """Return the SVG of ``nodes``, parents before what is below them; ``label`` says in words what is to be seen."""
    root = _tree(nodes)
    if not root.total_bytes:
        return ""
    parts: list[str] = []
    deepest = 0
    work = _placed(root, 0)
    scale = WIDTH / root.total_bytes
    while work:
        tile, start = work.pop()
        width = tile.total_bytes * scale
        if width < narrowest or tile.node is None:
            continue
        deepest = max(deepest, tile.depth)
        x, y = start * scale, (tile.depth - 1) * ROW
        told = f"<title>{escape(title(tile.node))}</title>"
        shape = f'x="{x:.1f}" y="{y}" width="{width - min(1.0, width / 4):.1f}" height="{ROW - 2}"'
        parts.append(f'<rect class="t-{style(tile.node)}" {shape}>{told}</rect>')
        if width >= ROOM_FOR_TEXT:
            parts.append(f'<text x="{x + 5:.1f}" y="{y + 14}">{tile.node.node_bytes:,} B</text>')
        work.extend(_placed(tile, start))
    body = "".join(parts)
    box = f'class="icicle" viewBox="0 0 {WIDTH} {deepest * ROW}"'
    return f'<svg {box} role="img" aria-label="{escape(label)}">{body}</svg>'


def _tree(nodes: Sequence[PicturedNode]) -> _Tile:
    """Return the nodes that have bytes of their own below one another; what is inside a parent is part of it."""
    root = _Tile(None, b"", 0, 0)
    stack = [root]
    for node in nodes:
        if node.node_hash is None or node.is_again:
            continue
        while not _leads_to(stack[-1], node):
            stack.pop()
        tile = _Tile(node, node.prefix, len(stack), node.node_bytes)
        stack[-1].below.append(tile)
        for above in stack:
            above.total_bytes += node.node_bytes
        stack.append(tile)
    return root


def _leads_to(above: _Tile, node: PicturedNode) -> bool:
    """Return whether ``node`` stands below a tile: nothing does below a value."""
    return above.node is None or (not above.node.is_value and node.prefix.startswith(above.prefix))


def _placed(tile: _Tile, start: int) -> list[tuple[_Tile, int]]:
    """Return what is below a tile with where it starts, in bytes: the tile's own are at its end."""
    at, found = start, []
    for below in tile.below:
        found.append((below, at))
        at += below.total_bytes
    return found
