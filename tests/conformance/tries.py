"""Tries and storage proofs, as sections 3 and 4 of the suite's README have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from conformance.scale import Input, Refused, blake2, encode, refuse

Store = dict[bytes, bytes]  # nodes and external values by hash
Fetch = Callable[[bytes], bytes | None]
Weight = dict[str, int]
Checks = Iterator[tuple[str, Any]]  # a field of a vector, and what it must be

EMPTY, CHILD = blake2(b"\0"), b":child_storage:default:"
INVALID = {"CodecError": "InvalidNode"}


class Node(NamedTuple):
    """A leaf has no children. A child is a node's hash, 32 bytes, or the node itself, inline."""

    partial: str = ""  # a hexadecimal digit a nibble
    value: bytes | None = None
    hashed: bool = False  # the value is a hash
    children: tuple[bytes | None, ...] = ()

    def encoded(self) -> bytes:
        if self == Node():
            return b"\0"
        first, most = (32, 31) if self.hashed else (64, 63)
        if self.children:
            first, most = (16, 15) if self.hashed else (128 if self.value is None else 192, 63)
        rest = len(self.partial) - most
        out = bytes([first + min(len(self.partial), most)])
        out += b"" if rest < 0 else b"\xff" * (rest // 255) + bytes([rest % 255])
        out += bytes.fromhex("0" * (len(self.partial) % 2) + self.partial)
        bitmap = sum(1 << nibble for nibble, child in enumerate(self.children) if child is not None)
        out += bitmap.to_bytes(2, "little") if bitmap else b""
        out += b"" if self.value is None else self.value if self.hashed else encode("bytes", self.value)
        return out + b"".join(encode("bytes", child) for child in self.children if child is not None)

    @staticmethod
    def of(data: bytes) -> Node:
        """Decode a node; what follows it is ignored."""
        source = Input(data)
        first = source.take(1)[0]
        if first == 0:
            return Node()
        refuse(first < 16, "CodecError")
        floor, most = next(kind for kind in ((192, 63), (128, 63), (64, 63), (32, 31), (16, 15)) if first >= kind[0])
        size, more, branch, hashed = (
            first - floor,
            255 if first - floor == most else 0,
            floor not in (64, 32),
            floor < 64,
        )
        while more == 255 and size < 65_535:
            more = source.take(1)[0]
            size = min(size + more, 65_535)
        partial = source.take((size + 1) // 2).hex()
        refuse(size % 2 > 0 and partial[0] != "0", "CodecError")
        bitmap = int.from_bytes(source.take(2), "little") if branch else 0
        refuse(branch and not bitmap, "CodecError")
        value = None if floor == 128 else source.take(32) if hashed else source.read("bytes")
        children = [source.read("bytes") if bitmap >> nibble & 1 else None for nibble in range(16 * branch)]
        return Node(partial[size % 2 :], value, hashed, tuple(children))


def put(entries: Store, key: bytes, value: bytes | None) -> None:
    entries.pop(key, None)
    if value is not None:
        entries[key] = value


def pairs(entries: Store) -> list[list[bytes]]:
    return [[key, entries[key]] for key in sorted(entries)]


def fits(weight: Weight, limit: Weight) -> bool:
    return all(weight[name] <= limit[name] for name in weight)


def descend(root: bytes, path: str, fetch: Fetch) -> Iterator[tuple[int, bytes, Node]]:
    """Give the nodes on a path: the nibbles above, the hash or inline bytes, the node."""
    depth = 0
    reference: bytes | None = root
    while reference is not None and (data := fetch(reference) if len(reference) == 32 else reference) is not None:
        node = Node.of(data)
        yield depth, reference, node
        inside, depth = path.startswith(node.partial, depth), depth + len(node.partial) + 1
        reference = node.children[int(path[depth - 1], 16)] if inside and node.children and depth <= len(path) else None


def lookup(root: bytes, key: bytes, fetch: Fetch) -> Node | None:
    """Give the node that holds the key's value."""
    path = key.hex()
    ends = [node for depth, _, node in descend(root, path, fetch) if path[depth:] == node.partial]
    return ends[-1] if ends and ends[-1].value is not None else None


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

    ends = (lookup(root, key, fetch) or Node() for key in keys)
    return [fetch(end.value) if end.hashed and end.value else end.value for end in ends]


def refusal(work: Callable[[], Any], names: dict[str, str] | None = None) -> str | None:
    """Give the name of the error, if there is one."""
    try:
        work()
    except Refused as error:
        return (names or {}).get(error.args[0], str(error.args[0]))
    return None
