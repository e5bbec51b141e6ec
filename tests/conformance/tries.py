"""Tries and storage proofs, as sections 3 and 4 of the suite's README have them."""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from conformance.scale import Input, attempt, blake2, encode, refuse

Store = dict[bytes, bytes]  # nodes and external values by hash
EMPTY, CHILD = blake2(b"\0"), b":child_storage:default:"
KINDS = {  # branch, value inside, hash of a value outside: the first byte's lowest value, the largest count in it
    (True, True, False): (192, 63),
    (True, False, False): (128, 63),
    (False, True, False): (64, 63),
    (False, False, True): (32, 31),
    (True, False, True): (16, 15),
}


class Node(NamedTuple):
    """A leaf has no children. A child is a node's hash, 32 bytes, or the node itself, inline."""

    partial: str = ""  # a hexadecimal digit a nibble
    value: bytes | None = None
    hashed: bool = False  # the value is a hash
    children: tuple[bytes | None, ...] = ()

    def encoded(self) -> bytes:
        if self == Node():
            return b"\0"
        first, most = KINDS[bool(self.children), self.value is not None and not self.hashed, self.hashed]
        rest, children = len(self.partial) - most, [child for child in self.children if child is not None]
        out = bytes([first + min(len(self.partial), most)])
        out += b"\xff" * (rest // 255) + bytes([rest % 255]) if rest >= 0 else b""
        out += bytes.fromhex("0" * (len(self.partial) % 2) + self.partial)
        bitmap = sum(1 << nibble for nibble, child in enumerate(self.children) if child is not None)
        out += bitmap.to_bytes(2, "little") if children else b""
        out += b"" if self.value is None else self.value if self.hashed else encode("bytes", self.value)
        return out + b"".join(encode("bytes", child) for child in children)

    @staticmethod
    def of(data: bytes) -> "Node":
        """Decode a node; what follows it is ignored."""
        source = Input(data, "InvalidNode")
        first = source.take(1)[0]
        if first == 0:
            return Node()
        refuse(first < 16, "InvalidNode")
        (branch, inside, hashed), (floor, most) = next(pair for pair in KINDS.items() if first >= pair[1][0])
        count, more = first - floor, 255 if first - floor == most else 0
        while more == 255 and count < 65_535:
            more = source.take(1)[0]
            count = min(count + more, 65_535)
        partial = source.take((count + 1) // 2).hex()
        refuse(count % 2 > 0 and partial[0] != "0", "InvalidNode")
        bitmap = int.from_bytes(source.take(2), "little") if branch else 0
        refuse(branch and not bitmap, "InvalidNode")
        value = source.read("bytes") if inside else source.take(32) if hashed else None
        children = [source.read("bytes") if bitmap >> nibble & 1 else None for nibble in range(16 * branch)]
        return Node(partial[count % 2 :], value, hashed, tuple(children))


class Place(NamedTuple):
    """A node on a path: the rest of the path, the node's hash or inline bytes, the hashed nodes above it."""

    path: str
    reference: bytes
    above: int = 0

    def down_to(self) -> int:
        return self.above + (len(self.reference) == 32)

    def below(self, node: Node) -> "Place | Node | None":
        """Give where the path goes on: a place, the node that holds the path's value, or nothing."""
        rest = self.path.removeprefix(node.partial)
        if node == Node() or not self.path.startswith(node.partial):
            return None
        if not rest or not node.children:
            return node if not rest and node.value is not None else None
        child = node.children[int(rest[0], 16)]
        return None if child is None else Place(rest[1:], child, self.down_to())


def descend(root: bytes, key: bytes, fetch: Callable[[bytes], bytes | None]) -> Iterator[Place | Node | None]:
    """Give the places on a key's path, then the node that holds its value, or nothing."""
    side: Place | Node | None = Place(key.hex(), root)
    while isinstance(side, Place):
        yield side
        data = fetch(side.reference) if len(side.reference) == 32 else side.reference
        side = None if data is None else side.below(Node.of(data))
    yield side


def lookup(root: bytes, key: bytes, fetch: Callable[[bytes], bytes | None]) -> Node:
    """Give the node that holds the key's value, or the empty one."""
    *_, end = descend(root, key, fetch)
    return end if isinstance(end, Node) else Node()


def values(store: Store, touched: set[bytes], root: bytes, keys: list[bytes], child: bytes | None = None) -> list[Any]:
    """Read keys of a trie, or of a child trie below it."""
    if child is not None:
        (inner,) = values(store, touched, root, [CHILD + child])
        if inner is None:
            return [None] * len(keys)
        refuse(len(inner) != 32, "InvalidChildRoot")
        root = inner

    def fetch(wanted: bytes) -> bytes:
        if wanted not in store and wanted == EMPTY:
            return b"\0"
        refuse(wanted not in store, "RootMismatch" if wanted == root else "MissingNode")
        touched.add(wanted)
        return store[wanted]

    ends = [lookup(root, key, fetch) for key in keys]
    return [fetch(end.value) if end.hashed and end.value else end.value for end in ends]


def verified(nodes: list[bytes], v: Any) -> list[Any]:
    store, touched = {blake2(node): node for node in nodes}, set[bytes]()
    refuse(v["strict"] and len(store) < len(nodes), "DuplicateNode")
    found = values(store, touched, v["root"], v["keys"], v.get("child"))
    refuse(v["strict"] and touched < set(store), "UnusedNodes")
    return found


def kept(store: Store, data: bytes, bound: int = 0) -> bytes:
    """Put data of that length or more into the store, and give its hash instead."""
    return data if len(data) < bound else store.setdefault(blake2(data), data) and blake2(data)


def build(pairs: list[tuple[str, bytes]], version: int, store: Store, depth: int = 0) -> bytes:
    """Give the node above sorted pairs of paths and values; what stands outside it goes to the store."""
    if not pairs:
        return b"\0"
    path, value = pairs[0]
    end = next((n for n in range(depth, len(path)) if path[n] != pairs[-1][0][n]), len(path))
    here = len(path) == end
    hashed = version == 1 and here and len(value) > 32
    children: list[bytes | None] = [None for _ in range(16 * (len(pairs) > here))]
    for digit, group in groupby(pairs[here:], lambda pair: pair[0][end]):
        children[int(digit, 16)] = kept(store, build(list(group), version, store, end + 1), 32)
    value = kept(store, value) if hashed else value
    return Node(path[depth:end], value if here else None, hashed, tuple(children)).encoded()


def trie(entries: Store, version: int = 1) -> tuple[bytes, Store]:
    """Give the root, and all nodes and external values."""
    store: Store = {}
    root = kept(store, build([(key.hex(), value) for key, value in sorted(entries.items())], version, store))
    return root, store


def compact(store: Store, root: bytes, out: list[bytes]) -> bool:
    """Append a trie as a compact proof; tell whether its root node is there."""
    if root not in store:
        return False
    node, place = Node.of(store[root]), len(out)
    attached = node.hashed and node.value in store
    out += [b"", store[node.value or b""]] if attached else [b""]
    children = [b"" if child and len(child) == 32 and compact(store, child, out) else child for child in node.children]
    node = node._replace(children=tuple(children))
    out[place] = b"\1" + node._replace(value=b"", hashed=False).encoded() if attached else node.encoded()
    return True


def expand(items: list[bytes], store: Store) -> bytes:
    """Take a trie from the front of a compact proof; give its root."""
    refuse(not items, "IncompleteProof")
    item = items.pop(0)
    node = Node.of(item.removeprefix(b"\1"))
    if item[:1] == b"\1":
        refuse(not items, "IncompleteProof")
        node = node._replace(value=kept(store, items.pop(0)), hashed=True)
    children = [expand(items, store) if child == b"" else child for child in node.children]
    return kept(store, node._replace(children=tuple(children)).encoded())


def child_roots(store: Store, reference: bytes, path: str = "") -> Iterator[Node]:
    """Give the known nodes that hold the roots of child tries, by ascending keys."""
    node = Node.of(store.get(reference, b"\0") if len(reference) == 32 else reference)
    path += node.partial
    if path.startswith(CHILD.hex()) and node.value is not None:
        yield node
    for nibble, child in enumerate(node.children):
        yield from child_roots(store, child, f"{path}{nibble:x}") if child is not None else ()


def unpacked(compacted: list[bytes], root: bytes) -> list[bytes]:
    """Give the nodes of a compact proof."""
    store, waiting, items = Store(), None, [*compacted]
    refuse(expand(items, store) != root, "RootMismatch")
    names = list(child_roots(store, root))
    refuse(any(node.hashed or len(node.value or b"") != 32 for node in names), "InvalidChildRoot")
    for node in names:
        waiting = expand(items, store) if waiting is None and items else waiting
        waiting = None if waiting == node.value else waiting
    refuse(waiting is not None, "ExtraneousChildProof")
    refuse(bool(items), "ExtraneousNode")
    return sorted(store.values())


def shown(node: Node) -> dict[str, Any]:
    """Give a node as JSON has it."""
    return node._asdict() | {"partial": [int(nibble, 16) for nibble in node.partial]}


def expected(v: Any) -> dict[str, Any]:
    """Give the fields of a vector that are to be computed."""
    touched: set[bytes] = set()
    match v["test"]:
        case "root":
            root, nodes = trie(dict(v["pairs"]), v["state_version"])
            return {"root": root, "nodes": sorted(nodes.values())}
        case "proof":
            children = {child["name"]: dict(child["pairs"]) for child in v.get("children", ()) if child["pairs"]}
            tries = {CHILD + name: trie(pairs, v["state_version"]) for name, pairs in children.items()}
            root, store = trie(dict(v["pairs"]) | {name: root for name, (root, _) in tries.items()}, v["state_version"])
            for _, nodes in tries.values():
                store |= nodes
            values(store, touched, root, v["keys"], v.get("child"))
            return {"root": root, "nodes": sorted(store[wanted] for wanted in touched)}
        case "verification":
            return {"expect": attempt("values", lambda: verified(v["nodes"], v))}
        case "compact":
            out, store = list[bytes](), {blake2(node): node for node in v["nodes"]}
            for root in [v["root"], *(node.value or b"" for node in child_roots(store, v["root"]))]:
                compact(store, root, out)
            return {"compact": out, "nodes": unpacked(v["compact"], v["root"])}
        case "compact-error":
            return attempt("nodes", lambda: unpacked(v["compact"], v["root"]))
    return attempt("node", lambda: shown(Node.of(v["encoded"])))
