"""A trie at a glance: widths to scale, children below their parents, nothing drawn twice."""

import re

from app.page import parsed
from relaycast.report.icicle import ROW, WIDTH, icicle
from relaycast_ledger.proof_picture import PicturedNode


def node(prefix: bytes, node_bytes: int, *, value: bool = False, again: bool = False) -> PicturedNode:
    return PicturedNode(prefix, prefix + bytes([value]), node_bytes, b"", "new", value, again)


def style(it: PicturedNode) -> str:
    return it.cause


def rects(nodes: list[PicturedNode], *, narrowest: float = 1.0) -> list[tuple[float, int, float, str]]:
    drawn = icicle(nodes, style=style, title=lambda it: it.prefix.hex(), label="<a trie>", narrowest=narrowest)
    parsed(f"<!doctype html><html><body>{drawn}</body></html>")
    found = re.findall(r'x="([\d.]+)" y="(\d+)" width="([\d.]+)" height="\d+"><title>(\w*)<', drawn)
    return sorted((float(x), int(y), float(width), name) for x, y, width, name in found)


TRIE = [
    node(b"", 400),
    node(b"\x01", 100),
    node(b"\x01\x02", 100, value=True),
    node(b"\x01\x03", 100),
    node(b"\x05", 300),
]


def test_every_node_is_as_wide_as_what_is_at_and_below_it() -> None:
    found = {name: (x, y, width) for x, y, width, name in rects(TRIE)}
    assert found[""] == (0.0, 0, WIDTH - 1.0)
    assert found["01"] == (0.0, ROW, 0.3 * WIDTH - 1)
    assert found["0102"] == (0.0, 2 * ROW, 0.1 * WIDTH - 1)
    assert found["0103"] == (0.1 * WIDTH, 2 * ROW, 0.1 * WIDTH - 1)
    assert found["05"] == (0.3 * WIDTH, ROW, 0.3 * WIDTH - 1)


def test_nodes_inside_their_parents_and_nodes_that_came_before_take_no_room() -> None:
    inside = PicturedNode(b"\x09", None, 20, b"", "new")
    assert rects([*TRIE, inside, node(b"\x0a", 100, again=True)]) == rects(TRIE)


def test_what_is_too_narrow_is_left_to_the_node_above() -> None:
    thin = node(b"\x0b", 1)
    assert [name for *_, name in rects([*TRIE, thin], narrowest=1.0)].count("0b") == 0
    assert [name for *_, name in rects([*TRIE, thin], narrowest=0.1)].count("0b") == 1


def test_no_nodes_are_no_drawing() -> None:
    assert rects([]) == []
