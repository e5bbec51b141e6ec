"""Vectors of tries and proofs: sections 3 and 4 of the suite's README."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from conformance.scale import blake2, refuse
from conformance.tries import CHILD, INVALID, Checks, Node, Store, refusal, values


def build(pairs: list[tuple[str, bytes]], version: int, store: Store, depth: int = 0) -> bytes:
    """Give the node above sorted pairs of paths and values; what stands outside it goes to the store."""

    def outside(data: bytes, bound: int) -> bytes:
        return data if len(data) < bound else store.setdefault(blake2(data), data) and blake2(data)

    if not pairs:
        return b"\0"
    low, high = pairs[0][0], pairs[-1][0]
    end = next((n for n in range(depth, len(low)) if low[n] != high[n]), len(low))
    value = pairs[0][1] if len(low) == end else None
    hashed = version == 1 and value is not None and len(value) > 32
    rest = {
        int(digit, 16): list(group) for digit, group in groupby(pairs[value is not None :], lambda pair: pair[0][end])
    }
    children = [outside(build(rest[n], version, store, end + 1), 32) if n in rest else None for n in range(16)]
    value = outside(value, 33) if value and hashed else value
    return Node(low[depth:end], value, hashed, tuple(children) if rest else ()).encoded()


def trie(entries: Store, version: int = 1) -> tuple[bytes, Store]:
    """Give the root, and all nodes and external values."""
    store: Store = {}
    top = build([(key.hex(), value) for key, value in sorted(entries.items())], version, store)
    return blake2(top), store | {blake2(top): top}


def compact(store: Store, root: bytes, out: list[bytes]) -> bool:
    """Append a trie as a compact proof; tell whether its root node is there."""
    if root not in store:
        return False
    node, place = Node.of(store[root]), len(out)
    out.append(b"")
    attached = node.hashed and node.value in store
    if attached:
        out.append(store[node.value or b""])
        node = node._replace(value=b"", hashed=False)
    children = [b"" if child and len(child) == 32 and compact(store, child, out) else child for child in node.children]
    out[place] = b"\1" * attached + node._replace(children=tuple(children)).encoded()
    return True


def expand(items: list[bytes], store: Store) -> bytes:
    """Take a trie from the front of a compact proof; give its root."""

    def following() -> bytes:
        refuse(not items, "IncompleteProof")
        return items.pop(0)

    item = following()
    node = Node.of(item.removeprefix(b"\1"))
    if item[:1] == b"\1":
        value = following()
        store[blake2(value)] = value
        node = node._replace(value=blake2(value), hashed=True)
    children = [expand(items, store) if child == b"" else child for child in node.children]
    data = node._replace(children=tuple(children)).encoded()
    store[blake2(data)] = data
    return blake2(data)


def child_roots(store: Store, reference: bytes, path: str = "") -> Iterator[Node]:
    """Give the known nodes that hold the roots of child tries, by ascending keys."""
    node = Node.of(store.get(reference, b"\0") if len(reference) == 32 else reference)
    path += node.partial
    if path.startswith(CHILD.hex()) and node.value is not None:
        yield node
    for nibble, child in enumerate(node.children):
        if child is not None:
            yield from child_roots(store, child, f"{path}{nibble:x}")


def unpacked(compacted: list[bytes], root: bytes) -> Store:
    """Give the nodes of a compact proof."""
    store: Store = {}
    waiting, items = None, [*compacted]
    refuse(expand(items, store) != root, "RootMismatch")
    names = list(child_roots(store, root))
    refuse(any(node.hashed or len(node.value or b"") != 32 for node in names), "InvalidChildRoot")
    for node in names:
        waiting = expand(items, store) if waiting is None and items else waiting
        waiting = None if waiting == node.value else waiting
    refuse(waiting is not None, "ExtraneousChildProof")
    refuse(bool(items), "ExtraneousNode")
    return store


def shown(node: Node) -> dict[str, Any]:
    """Give a node as JSON has it."""
    if node == Node():
        return {"kind": "empty"}
    out: dict[str, Any] = {
        "kind": "branch" if node.children else "leaf",
        "partial": [int(digit, 16) for digit in node.partial],
    }
    out |= {} if node.value is None else {"value_hash" if node.hashed else "value": node.value}
    children = {f"{nibble:x}": child for nibble, child in enumerate(node.children) if child is not None}
    return out | ({"children": children} if children else {})


def check(v: Any) -> Checks:
    store = {blake2(node): node for node in v.get("nodes", ())}
    touched: set[bytes] = set()
    if v["test"] == "root":
        root, nodes = trie(dict(v["pairs"]), v["state_version"])
        yield from (("root", root), ("nodes", sorted(nodes.values())))
    elif v["test"] == "proof":
        top, store = dict(v["pairs"]), {}
        for child in v.get("children", ()):
            root, nodes = trie(dict(child["pairs"]), v["state_version"])
            store, top = store | nodes, top | ({CHILD + child["name"]: root} if child["pairs"] else {})
        root, nodes = trie(top, v["state_version"])
        values(store | nodes, touched, root, v["keys"], v.get("child"))
        yield from (("root", root), ("nodes", sorted((store | nodes)[wanted] for wanted in touched)))
    elif v["test"] == "verification":
        found: list[bytes | None] = []

        def verify() -> None:
            refuse(v["strict"] and len(store) < len(v["nodes"]), "DuplicateNode")
            found.extend(values(store, touched, v["root"], v["keys"], v.get("child")))
            refuse(v["strict"] and touched < set(store), "UnusedNodes")

        error = refusal(verify, INVALID)
        yield "expect", {"error": error} if error else {"values": found}
    elif v["test"] == "compact":
        out: list[bytes] = []
        compact(store, v["root"], out)
        for node in child_roots(store, v["root"]):
            compact(store, node.value or b"", out)
        yield from (("compact", out), ("nodes", sorted(unpacked(v["compact"], v["root"]).values())))
    elif v["test"] == "compact-error":
        yield "error", refusal(lambda: unpacked(v["compact"], v["root"]), INVALID)
    else:
        error = refusal(lambda: Node.of(v["encoded"]))
        yield from (("error", error), ("node", None if error else shown(Node.of(v["encoded"]))))
