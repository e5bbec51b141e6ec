"""Proof X-ray: what each node of a proof or a trie is, where it stands, and what its bytes are spent on.

Nodes are walked from the roots that they have, or from the one that is given; nodes that no root leads to are listed at
the end. Nothing is verified here: a node is what its bytes say.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from relaycast.refusal import BadInput
from relaycast_trie import (
    BLAKE2B_256,
    CHILD_STORAGE_PREFIX,
    Branch,
    CodecError,
    CompactProof,
    HashedValue,
    Hasher,
    InvalidNode,
    Leaf,
    Node,
    ProofError,
    RootMismatch,
    StorageProof,
    UnusedNodes,
    blake2_256,
    decode_node,
    generate_proof,
)
from relaycast_trie.nibbles import digits, from_nibbles, to_nibbles
from relaycast_trie.node import Value

PATH_DIGITS_A_BYTE = 32
MOST_PATH_DIGITS = 1 << 24
"""Digits that the paths of all nodes may have together, beside those for each byte of the proof."""

_CHILD_PATH = to_nibbles(CHILD_STORAGE_PREFIX)


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node: ``path`` and ``partial`` in hexadecimal digits, ``children`` by digit, each a hash or inline bytes."""

    path: str
    kind: str
    node_bytes: int
    hash: str | None
    """``None`` for a node that stands inside its parent."""

    partial: str = ""
    children: dict[str, str] = field(default_factory=dict)
    value: str | None = None
    """The value itself, or the hash of one that is stored outside."""

    value_bytes: int = 0
    """Bytes of this node that are a value; the rest is structure."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What the bytes of a proof are spent on."""

    nodes: int
    proof_bytes: int
    structure_bytes: int
    value_bytes: int
    unreached_bytes: int
    """Bytes of nodes that no root leads to."""

    compact_bytes: int | None
    """As a compact proof; ``None`` without one root, or where nodes are shared: it would repeat each at every place."""

    statement_bytes: int | None = None
    """As a statement proof, for a reader who has the values of ``statement_keys`` keys; ``None`` where not asked for.

    It is one of a single trie: a proof that goes on into child tries has none.
    """

    statement_keys: int = 0


@dataclass(frozen=True, slots=True)
class Xray:
    """The roots, every node in the order of the paths, and the totals."""

    roots: tuple[str, ...]
    nodes: tuple[NodeView, ...]
    totals: Totals


def xray(
    proof: StorageProof,
    *,
    root: bytes | None = None,
    statement: Collection[bytes] | None = None,
    hasher: Hasher = BLAKE2B_256,
) -> Xray:
    """Look through ``proof``, from ``root`` or from every node that no other one leads to.

    Raises ``BadInput`` where the paths of all nodes together are longer than ``PATH_DIGITS_A_BYTE`` allows.

    With a ``statement`` the totals say what a statement proof of its keys takes; without keys in it, of those whose
    values are there.
    """
    blobs = proof.by_hash(hasher)
    roots = [root] if root is not None else _roots(blobs)
    reached: set[bytes] = set()
    found = list(_bounded((place for start in roots for place in _walk(blobs, start, reached)), proof.proof_bytes))
    views = [_view(place) for place in found]
    unreached = sorted(blobs.keys() - reached)
    views.extend(_unreached(blobs[node_hash], node_hash) for node_hash in unreached)
    totals = _totals(proof, roots, views, hasher)
    if statement is not None and len(roots) == 1 and not any(place.label for place in found):
        keys = statement or list(_held_keys(blobs, found))
        size = _statement_bytes(blobs, roots[0], keys, hasher)
        totals = replace(totals, statement_bytes=size, statement_keys=len(keys))
    return Xray(tuple(map(_hex, roots)), tuple(views), totals)


def places(proof: StorageProof, *roots: bytes) -> Iterator["Place"]:
    """Yield every node and external value that the ``roots`` lead to, at its place.

    Raises ``BadInput`` for paths that are too long, as ``xray`` does.
    """
    blobs = proof.by_hash()
    reached: set[bytes] = set()
    return _bounded((place for root in roots for place in _walk(blobs, root, reached)), proof.proof_bytes)


def unused_nodes(proof: StorageProof, root: bytes, keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the hashes of the nodes that reading ``keys`` does not need; raises ``ProofError`` if the proof fails."""
    try:
        StorageProof(proof.nodes).verify(root, keys, strict=True)
    except UnusedNodes as unused:
        return unused.hashes
    return ()


def check_root(nodes: Sequence[bytes], root: bytes | None) -> None:
    """Raise ``RootMismatch`` if no node has the root, and ``InvalidNode`` if that node does not decode.

    Without a root, at least one node must decode: otherwise none of them can be a root.
    """
    if root is None:
        if nodes and not any(_decoded(node) is not None for node in nodes):
            _decode(blake2_256(nodes[0]), nodes[0])
        return
    data = next((node for node in nodes if blake2_256(node) == root), None)
    if data is None:
        raise RootMismatch(root)
    _decode(root, data)


def _decode(node_hash: bytes, data: bytes) -> None:
    try:
        decode_node(data)
    except CodecError as error:
        raise InvalidNode(node_hash, error.reason, error.offset) from None


def _roots(blobs: dict[bytes, bytes]) -> list[bytes]:
    led_to: set[bytes] = set()
    decoded: set[bytes] = set()
    for node_hash, data in blobs.items():
        node = _decoded(data)
        if node is None:
            continue
        decoded.add(node_hash)
        led_to.update(_references(node))
    return sorted(decoded - led_to)


def _references(node: Node) -> Iterator[bytes]:
    """Yield every hash that a node names, and 32-byte values too: they may be the roots of child tries."""
    if isinstance(node, Leaf | Branch):
        if isinstance(node.value, HashedValue):
            yield node.value.hash
        elif node.value is not None and len(node.value) == 32:
            yield node.value
    if isinstance(node, Branch):
        for child in node.children:
            if child is None:
                continue
            inner = _decoded(child) if len(child) < 32 else None
            if inner is None:
                yield child
            else:
                yield from _references(inner)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: ``path`` in nibbles, ``label`` before it in a child trie; ``root`` is its own trie's."""

    root: bytes
    path: bytes
    data: bytes
    node_hash: bytes | None
    is_value: bool = False
    label: str = ""
    is_again: bool = False
    """Whether the same node came before; what is below it is not walked again."""


def _walk(blobs: dict[bytes, bytes], root: bytes, reached: set[bytes]) -> Iterator[Place]:
    if root not in blobs:
        return
    # INVARIANT: what is below a hash is walked once, however many places it stands at: shared nodes do not multiply.
    stack = [Place(root, b"", blobs[root], root)]
    while stack:
        place = stack.pop()
        again = place.node_hash in reached
        if place.node_hash is not None:
            reached.add(place.node_hash)
        yield replace(place, is_again=again)
        node = None if place.is_value else _decoded(place.data)
        if node is not None and not again:
            stack.extend(reversed(list(_next_places(blobs, place, node))))


def _bounded(places: Iterable[Place], proof_bytes: int) -> Iterator[Place]:
    """Give the places while their paths are short: long partial keys one below the other add up to squares."""
    left = most = MOST_PATH_DIGITS + PATH_DIGITS_A_BYTE * proof_bytes
    for place in places:
        left -= len(place.path)
        if left < 0:
            raise BadInput("the proof", f"nodes whose paths have more than {most:,} digits", "a proof of shorter keys")
        yield place


def _next_places(blobs: dict[bytes, bytes], place: Place, node: Node) -> Iterator[Place]:
    if not isinstance(node, Leaf | Branch):
        return
    path = place.path + node.partial
    if isinstance(node.value, HashedValue):
        if node.value.hash in blobs:
            value = node.value.hash
            yield replace(place, path=path, data=blobs[value], node_hash=value, is_value=True)
    elif node.value is not None and node.value in blobs and not place.label and path.startswith(_CHILD_PATH):
        yield Place(node.value, b"", blobs[node.value], node.value, label=f"{digits(path)}:")
    if isinstance(node, Branch):
        for nibble, child in enumerate(node.children):
            if child is None:
                continue
            below = path + bytes([nibble])
            if len(child) < 32:
                yield replace(place, path=below, data=child, node_hash=None)
            elif child in blobs:
                yield replace(place, path=below, data=blobs[child], node_hash=child)


def _view(place: Place) -> NodeView:
    path, node_hash = place.label + digits(place.path), _hash_of(place)
    if place.is_value:
        return NodeView(path, "value", len(place.data), node_hash, value_bytes=len(place.data))
    node = _decoded(place.data)
    if node is None:
        return NodeView(path, "does not decode", len(place.data), node_hash)
    if not isinstance(node, Leaf | Branch):
        return NodeView(path, "empty", len(place.data), node_hash)
    children: dict[str, str] = {}
    if isinstance(node, Branch):
        children = {
            f"{nibble:x}": f"0x{child.hex()}" for nibble, child in enumerate(node.children) if child is not None
        }
    shown, size = _value(node.value)
    kind = "leaf" if isinstance(node, Leaf) else "branch"
    if place.node_hash is None:
        kind = f"inline {kind}"
    return NodeView(path, kind, len(place.data), node_hash, digits(node.partial), children, shown, size)


def _hash_of(place: Place) -> str | None:
    return None if place.node_hash is None else _hex(place.node_hash)


def _value(value: Value | None) -> tuple[str | None, int]:
    if value is None:
        return None, 0
    if isinstance(value, HashedValue):
        return f"external 0x{value.hash.hex()}", 0
    return f"0x{value.hex()}", len(value)


def _unreached(data: bytes, node_hash: bytes) -> NodeView:
    return NodeView("", "unreached", len(data), _hex(node_hash))


def _totals(proof: StorageProof, roots: list[bytes], views: list[NodeView], hasher: Hasher) -> Totals:
    counted: dict[str, NodeView] = {}
    inline_values = 0
    unreached = 0
    for view in views:
        if view.kind == "unreached":
            unreached += view.node_bytes
        elif view.hash is None:
            inline_values += view.value_bytes
        else:
            counted[view.hash] = view
    values = sum(view.value_bytes for view in counted.values()) + inline_values
    structure = sum(view.node_bytes for view in counted.values()) - values
    shared = sum(view.hash is not None and view.kind != "unreached" for view in views) > len(counted)
    compact = _compact_bytes(proof, roots[0], hasher) if len(roots) == 1 and not shared else None
    return Totals(len(proof), proof.proof_bytes, structure, values, unreached, compact)


def _compact_bytes(proof: StorageProof, root: bytes, hasher: Hasher) -> int | None:
    try:
        return CompactProof.encode(proof, root, hasher=hasher).proof_bytes
    except ProofError:
        return None


def _held_keys(blobs: dict[bytes, bytes], found: Iterable[Place]) -> Iterator[bytes]:
    """Yield the keys whose values are there, inside their node or beside it."""
    for place in found:
        node = None if place.is_value else _decoded(place.data)
        if not isinstance(node, Leaf | Branch) or node.value is None:
            continue
        path = place.path + node.partial
        if len(path) % 2 == 0 and (not isinstance(node.value, HashedValue) or node.value.hash in blobs):
            yield from_nibbles(path)


def _statement_bytes(blobs: dict[bytes, bytes], root: bytes, keys: Iterable[bytes], hasher: Hasher) -> int | None:
    try:
        return sum(map(len, generate_proof(blobs, root, keys, hasher=hasher)))
    except ProofError:
        return None


def _decoded(data: bytes) -> Node | None:
    try:
        return decode_node(data)
    except CodecError:
        return None


def _hex(data: bytes) -> str:
    return f"0x{data.hex()}"
