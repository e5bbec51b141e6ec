"""How an X-ray is printed: a table of nodes and a few lines of totals, or JSON."""

import json
from dataclasses import asdict
from typing import Any

from relaycast.terminal import console, counted, print_table, say
from relaycast.xray.nodes import NodeView, Totals, Xray

SHOWN_DIGITS = 18
"""Digits of long hex that a terminal shows; JSON has all of them."""

COLUMNS = ("path", "kind", "partial", "children", "value", "bytes", "hash")


def print_json(picture: Xray, **more: Any) -> None:
    """Print the whole X-ray as one JSON object."""
    nodes = [
        {name: value for name, value in asdict(view).items() if value is not None and value not in ("", {})}
        for view in picture.nodes
    ]
    print(json.dumps({"roots": picture.roots, "nodes": nodes, "totals": asdict(picture.totals), **more}))


def print_text(picture: Xray, *, limit: int, notes: list[str]) -> None:
    """Print the table, at most ``limit`` rows of it (0: all), the totals and the ``notes``."""
    out = console()
    rows = picture.nodes if limit == 0 else picture.nodes[:limit]
    print_table(out, COLUMNS, map(_row, rows), right=("bytes",))
    if len(rows) < len(picture.nodes):
        print(f"... and {len(picture.nodes) - len(rows)} more (--limit 0 prints all)")
    print()
    for root in picture.roots:
        say(f"root       {root}")
    for line in (*_totals(picture.totals), *notes):
        say(line)


def _row(view: NodeView) -> tuple[str, ...]:
    return (
        _short(view.path) or "-",
        view.kind,
        _short(view.partial),
        "".join(view.children),
        _short(view.value or ""),
        str(view.node_bytes),
        _short(view.hash or "in its parent"),
    )


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_DIGITS + 12 else f"{text[:SHOWN_DIGITS]}...{text[-6:]}"


def _totals(totals: Totals) -> list[str]:
    lines = [
        f"proof      {counted(totals.proof_bytes, 'byte')} in {counted(totals.nodes, 'node')}",
        f"structure  {counted(totals.structure_bytes, 'byte')}",
        f"values     {counted(totals.value_bytes, 'byte')}",
    ]
    if totals.unreached_bytes:
        lines.append(f"unreached  {counted(totals.unreached_bytes, 'byte')} that no root leads to")
    if totals.compact_bytes is not None:
        lines.append(f"compact    {_saving(totals.compact_bytes, totals)}")
    if totals.statement_bytes is not None:
        reader = f"for a reader who has the {counted(totals.statement_keys, 'value')}"
        lines.append(f"statement  {_saving(totals.statement_bytes, totals)}, {reader}")
    return lines


def _saving(size: int, totals: Totals) -> str:
    saved = totals.proof_bytes - size
    share = saved / totals.proof_bytes if totals.proof_bytes else 0.0
    return f"{counted(size, 'byte')}, {saved:,} less ({share:.0%})"
