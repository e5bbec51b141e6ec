"""Chapter 2. Tries: how a chain commits to its state, and how some of it is proven.

A state is a set of keys and values. Its trie has one node wherever keys part or end. A node names its children by their
hashes, so that the root's hash commits to everything. Paths are nibbles, half bytes: here a text of hexadecimal
digits. A proof is the nodes on the way to some keys. Whoever knows the root can check them.

State version 0 keeps each value in its node. Version 1 keeps a value of more than 32 bytes outside, under its hash.

Source: sp-trie, trie-db's ``NodeCodec`` and compact proofs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple, TypeAlias

from relaycast_spec.scale import Reader, blake2_256, encode, refuse_if

Nodes = dict[bytes, bytes]
"""Nodes and external values by their hashes."""

Fetch = Callable[[bytes], bytes | None]
"""Returns the node or the external value with a hash."""

EMPTY_NODE = b"\0"
EMPTY_ROOT = blake2_256(EMPTY_NODE)

INLINE_LIMIT = 32
"""A node with fewer bytes than a hash stands inside its parent."""

LARGEST_INLINE_VALUE = 32
"""Bytes of the longest value that version 1 keeps in its node.

DECISION: what counts is the encoded entry, so a published value stays in its node up to 23 bytes.
"""

CHILD_STORAGE = b":child_storage:default:"
"""What the keys of child roots in the top trie begin with."""


# Nodes


class Header(NamedTuple):
    """The first byte of a node: its lowest value, and the largest number of nibbles that it holds by itself."""

    lowest: int
    most: int


HEADERS = {  # by: is a branch, has its value inside, has the hash of an external value
    (True, True, False): Header(192, 63),
    (True, False, False): Header(128, 63),
    (False, True, False): Header(64, 63),
    (False, False, True): Header(32, 31),
    (True, False, True): Header(16, 15),
}
"""In descending order of their first bytes."""

MAX_PARTIAL_NIBBLES = 65_535


class Node(NamedTuple):
    """A leaf, or a branch with 16 slots for children; ``Node()`` is the empty trie."""

    partial: str = ""
    """The nibbles that the node covers, after the nibble that selects it in its parent."""

    value: bytes | None = None
    hashed: bool = False
    """Whether ``value`` is the hash of an external value."""

    children: tuple[bytes | None, ...] = ()
    """Empty for a leaf. Each is a hash of 32 bytes, or the child itself, inline."""

    def encoded(self) -> bytes:
        """Encode: header, length of the partial key, partial key, children's bitmap, value, children."""
        if self == Node():
            return EMPTY_NODE
        header = HEADERS[bool(self.children), self.value is not None and not self.hashed, self.hashed]
        length = len(self.partial)
        out = bytes([header.lowest + min(length, header.most)])
        if length >= header.most:
            full, rest = divmod(length - header.most, 255)
            out += b"\xff" * full + bytes([rest])
        out += bytes.fromhex("0" * (length % 2) + self.partial)
        present = [(nibble, child) for nibble, child in enumerate(self.children) if child is not None]
        if self.children:
            out += sum(1 << nibble for nibble, _ in present).to_bytes(2, "little")
        if self.value is not None:
            out += self.value if self.hashed else encode("bytes", self.value)
        return out + b"".join(encode("bytes", child) for _, child in present)

    @staticmethod
    def decode(data: bytes) -> "Node":
        """Decode a node. Bytes that follow it are ignored, as trie-db ignores them."""
        reader = Reader(data, "InvalidNode")
        first = reader.take(1)[0]
        if first == 0:
            return Node()
        refuse_if(first < 16, "InvalidNode")
        (is_branch, has_value, hashed), header = next(it for it in HEADERS.items() if first >= it[1].lowest)
        length = first - header.lowest
        more = 255 if length == header.most else 0
        while more == 255 and length < MAX_PARTIAL_NIBBLES:
            more = reader.take(1)[0]
            length = min(length + more, MAX_PARTIAL_NIBBLES)
        partial = reader.take((length + 1) // 2).hex()
        refuse_if(length % 2 and partial[0] != "0", "InvalidNode")
        bitmap = int.from_bytes(reader.take(2), "little") if is_branch else 0
        refuse_if(is_branch and not bitmap, "InvalidNode")
        value = reader.read("bytes") if has_value else reader.take(32) if hashed else None
        children = [reader.read("bytes") if bitmap >> nibble & 1 else None for nibble in range(16 * is_branch)]
        return Node(partial[length % 2 :], value, hashed, tuple(children))


def is_hash(reference: bytes) -> bool:
    """Return whether a reference to a node is its hash; otherwise it is the node itself."""
    return len(reference) == 32


# Building


def trie(entries: Mapping[bytes, bytes], version: int = 1) -> tuple[bytes, Nodes]:
    """Return the root of the trie of some entries, with all its nodes and external values."""
    nodes: Nodes = {}
    pairs = [(key.hex(), value) for key, value in sorted(entries.items())]
    return _stored(nodes, _built(pairs, version, nodes)), nodes


def _built(pairs: list[tuple[str, bytes]], version: int, nodes: Nodes, depth: int = 0) -> bytes:
    """Return the node above sorted pairs of paths and values that agree in their first ``depth`` nibbles."""
    if not pairs:
        return EMPTY_NODE
    path, value = pairs[0]
    last_path = pairs[-1][0]
    end = next((at for at in range(depth, len(path)) if path[at] != last_path[at]), len(path))
    ends_here = len(path) == end
    hashed = version == 1 and ends_here and len(value) > LARGEST_INLINE_VALUE
    below = pairs[ends_here:]
    children: list[bytes | None] = [None] * (16 if below else 0)
    for digit, group in groupby(below, lambda pair: pair[0][end]):
        child = _built(list(group), version, nodes, end + 1)
        children[int(digit, 16)] = child if len(child) < INLINE_LIMIT else _stored(nodes, child)
    kept = _stored(nodes, value) if hashed else value
    return Node(path[depth:end], kept if ends_here else None, hashed, tuple(children)).encoded()


def _stored(nodes: Nodes, data: bytes) -> bytes:
    """Add a node or an external value, and return its hash."""
    name = blake2_256(data)
    nodes[name] = data
    return name


def child_trie_name(para_id: int) -> bytes:
    """Return the name of a publisher's child trie.

    The scenario writes ``(b"pubsub", ParaId(1000)).encode()``: six bytes as they are, and the id as a ``u32``.

    Scenario: Relay Proof Collection / Child trie key derivation
    """
    return b"pubsub" + encode("u32", para_id)


# Reading


Side: TypeAlias = "Place | Node | None"
"""A place on the way, the node that holds the value, or nothing: the key is absent, or the trie unknown."""


class Place(NamedTuple):
    """A point on the way to a key: the rest of its path, and the node that is next."""

    path: str
    reference: bytes
    above: int = 0
    """Nodes with a hash on the way to it. Inline nodes are part of their parents and do not count."""

    @property
    def depth(self) -> int:
        """Nodes with a hash on the way, this one included."""
        return self.above + is_hash(self.reference)

    def below(self, node: Node) -> "Side":
        """Return where the path goes on: another place, the node that holds the value, or nothing."""
        if node == Node() or not self.path.startswith(node.partial):
            return None
        rest = self.path[len(node.partial) :]
        if not rest:
            return None if node.value is None else node
        if not node.children:
            return None
        child = node.children[int(rest[0], 16)]
        return None if child is None else Place(rest[1:], child, self.depth)


def places(root: bytes, key: bytes, fetch: Fetch) -> Iterator[Side]:
    """Yield the places on the way to a key, then the node that holds its value, or ``None`` if it is absent.

    A node that cannot be fetched ends the way: what is below it is unknown.
    """
    side: Side = Place(key.hex(), root)
    while isinstance(side, Place):
        yield side
        data = fetch(side.reference) if is_hash(side.reference) else side.reference
        side = None if data is None else side.below(Node.decode(data))
    yield side


def lookup(root: bytes, key: bytes, fetch: Fetch) -> Node | None:
    """Return the node that holds the value of a key, ``None`` if it is absent."""
    *_, end = places(root, key, fetch)
    return end if isinstance(end, Node) else None


def read_all(
    nodes: Nodes, root: bytes, keys: Iterable[bytes], touched: set[bytes], *, child: bytes | None = None
) -> list[bytes | None]:
    """Return the values of some keys, of a child trie if one is named; what was read is added to ``touched``.

    A proof of the keys is just that: the nodes and external values that reading them touches.
    """
    keys = list(keys)
    if child is not None:
        (child_root,) = read_all(nodes, root, [CHILD_STORAGE + child], touched)
        if child_root is None:
            return [None] * len(keys)
        refuse_if(len(child_root) != 32, "InvalidChildRoot")
        root = child_root

    def fetch(wanted: bytes) -> bytes:
        if wanted == EMPTY_ROOT and wanted not in nodes:
            return EMPTY_NODE
        refuse_if(wanted not in nodes, "RootMismatch" if wanted == root else "MissingNode")
        touched.add(wanted)
        return nodes[wanted]

    def value(key: bytes) -> bytes | None:
        end = lookup(root, key, fetch)
        if end is None or end.value is None:
            return None
        refuse_if(end.hashed and end.value not in nodes, "MissingNode")
        return fetch(end.value) if end.hashed else end.value

    return [value(key) for key in keys]


def verify(
    proof: list[bytes], root: bytes, keys: Iterable[bytes], *, child: bytes | None = None, strict: bool
) -> list[bytes | None]:
    """Return the values that a proof shows; a ``strict`` one has each node once, and none that is not needed."""
    nodes = {blake2_256(node): node for node in proof}
    touched: set[bytes] = set()
    refuse_if(strict and len(nodes) < len(proof), "DuplicateNode")
    values = read_all(nodes, root, keys, touched, child=child)
    refuse_if(strict and touched < nodes.keys(), "UnusedNodes")
    return values


# Compact proofs: nodes in depth-first order. An empty reference marks a child whose node follows, so that its hash can
# be computed. The proof of each child trie comes after the top trie, in the order of the keys of their roots.

ESCAPE = b"\1"
"""Begins a node whose external value is the next item."""


def compacted(nodes: Nodes, root: bytes) -> list[bytes]:
    """Return a proof as a compact one: the top trie, then each child trie whose root node it has."""
    out: list[bytes] = []
    _compact_trie(nodes, root, out)
    for node in child_roots(nodes, root):
        refuse_if(node.hashed or len(node.value or b"") != 32, "InvalidChildRoot")
        _compact_trie(nodes, node.value or b"", out)
    return out


def _compact_trie(nodes: Nodes, root: bytes, out: list[bytes]) -> bool:
    """Append the nodes from a root down; return whether the root's node is there."""
    if root not in nodes:
        return False
    node = Node.decode(nodes[root])
    place = len(out)
    out.append(b"")
    attached = node.hashed and node.value in nodes
    if attached:
        out.append(nodes[node.value or b""])
    children = tuple(
        b"" if child is not None and is_hash(child) and _compact_trie(nodes, child, out) else child
        for child in node.children
    )
    if attached:
        out[place] = ESCAPE + node._replace(value=b"", hashed=False, children=children).encoded()
    else:
        out[place] = node._replace(children=children).encoded()
    return True


def expanded(items: list[bytes], root: bytes) -> Nodes:
    """Return the nodes of a compact proof under a root."""
    nodes: Nodes = {}
    left = [*items]
    refuse_if(_expand_trie(left, nodes) != root, "RootMismatch")
    parents = list(child_roots(nodes, root))
    refuse_if(any(node.hashed or len(node.value or b"") != 32 for node in parents), "InvalidChildRoot")
    waiting: bytes | None = None
    for node in parents:  # a root without a proof is skipped
        if waiting is None and left:
            waiting = _expand_trie(left, nodes)
        if waiting == node.value:
            waiting = None
    refuse_if(waiting is not None, "ExtraneousChildProof")
    refuse_if(left, "ExtraneousNode")
    return nodes


def _expand_trie(left: list[bytes], nodes: Nodes) -> bytes:
    """Take the items of one trie from the front, and return its root."""
    refuse_if(not left, "IncompleteProof")
    item = left.pop(0)
    node = Node.decode(item.removeprefix(ESCAPE))
    if item.startswith(ESCAPE):
        refuse_if(not left, "IncompleteProof")
        node = node._replace(value=_stored(nodes, left.pop(0)), hashed=True)
    children = tuple(_expand_trie(left, nodes) if child == b"" else child for child in node.children)
    return _stored(nodes, node._replace(children=children).encoded())


def child_roots(nodes: Nodes, reference: bytes, path: str = "") -> Iterator[Node]:
    """Yield the known nodes of a top trie that hold roots of child tries, in the order of their keys."""
    node = Node.decode(nodes.get(reference, EMPTY_NODE) if is_hash(reference) else reference)
    path += node.partial
    if path.startswith(CHILD_STORAGE.hex()) and node.value is not None:
        yield node
    for nibble, child in enumerate(node.children):
        if child is not None:
            yield from child_roots(nodes, child, f"{path}{nibble:x}")
