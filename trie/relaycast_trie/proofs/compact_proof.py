"""A compact proof: a storage proof whose hashes are left out wherever the reader can compute them.

Nodes come in the order of a walk through the trie, parents first. A child's hash is left empty when the child itself
follows. A value that the proof holds outside of its node follows that node, which then starts with an escape byte.
After the top trie come the child tries whose root node is in the proof (sp-trie ``encode_compact``).

>>> from relaycast_trie.plain.build import build_database
>>> from relaycast_trie.node_codec import StateVersion
>>> pairs = {b"dot": b"5.31" * 20, b"dog": b"woof"}
>>> db, root = build_database(pairs, state_version=StateVersion.V1)
>>> proof = StorageProof.generate(db, root, [b"dot"])
>>> compact = CompactProof.encode(proof, root)
>>> proof.proof_bytes, compact.proof_bytes
(160, 98)
>>> compact.decode(root) == (proof, root)
True
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from relaycast_trie.child_info import CHILD_STORAGE_PREFIX
from relaycast_trie.engine import DECODES, FOLDS, UNFOLDS, array_engine, pays_in_arrays
from relaycast_trie.exceptions import (
    CodecError,
    ExtraneousChildProof,
    ExtraneousNode,
    IncompleteProof,
    InvalidChildRoot,
    InvalidNode,
    MissingNode,
    RootMismatch,
    TooManyBytes,
    TooManyNodes,
)
from relaycast_trie.hasher import BLAKE2B_256, HASH_LENGTH, Hasher
from relaycast_trie.nibbles import NIBBLES, from_nibbles, to_nibbles
from relaycast_trie.node import EMPTY, Branch, Empty, HashedValue, Leaf, Node, Value
from relaycast_trie.node_codec import (
    EMPTY_NODE,
    ESCAPE,
    HASH_CHILD_PREFIX,
    MAX_PARTIAL_NIBBLES,
    bytes_before_children,
    decode_node,
    encode_branch,
    encode_leaf,
)
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_vec

CHILD_PATH = to_nibbles(CHILD_STORAGE_PREFIX)

LEFT_OUT = encode_bytes(b"")
"""What stands for a child that comes after its parent."""

MAX_REPEATED_NODES = 1 << 18
"""Places that the nodes of one proof may have, beyond one for each.

A node that several parents name has a place below each of them, and so has all that is below it. 3 kB of nodes that
name each other many times make more places than any machine can walk.
"""

MAX_REPEATED_BYTES = 1 << 26
"""Bytes that a compact proof may have beyond those of its storage proof: it holds a node once for each place."""


@dataclass(frozen=True, slots=True)
class CompactProof:
    """Nodes in walking order with hashes left out (sp-trie ``CompactProof``)."""

    nodes: tuple[bytes, ...]

    @classmethod
    def encode(cls, proof: StorageProof, root: bytes, *, hasher: Hasher = BLAKE2B_256) -> "CompactProof":
        """Return ``proof`` of the trie with this ``root`` in compact form; nodes that no walk meets are lost.

        Raises ``RootMismatch`` when the proof lacks the root, ``InvalidNode``, ``InvalidChildRoot``, ``TooManyNodes``,
        ``TooManyBytes``.
        """
        compact: CompactProof | None = None
        if hasher is BLAKE2B_256 and pays_in_arrays(FOLDS, proof.most_nodes):
            compact = array_engine("array_proofs").encode_compact(proof, root)
        return cls.of_nodes(proof.by_hash(hasher), root, hasher=hasher) if compact is None else compact

    @classmethod
    def of_nodes(cls, nodes: Mapping[bytes, bytes], root: bytes, *, hasher: Hasher = BLAKE2B_256) -> "CompactProof":
        """Do what ``encode`` does with nodes under hashes that are theirs: nobody hashes them again."""
        most = len(nodes) + MAX_REPEATED_NODES
        children = [child for child in _child_roots(nodes, root, hasher, most=most) if child in nodes]
        return cls(_encode_tries(nodes, [root, *children], hasher, most=most))

    def decode(self, expected_root: bytes | None = None, *, hasher: Hasher = BLAKE2B_256) -> tuple[StorageProof, bytes]:
        """Return the storage proof and the root of its top trie.

        Raises ``RootMismatch`` when that is not the expected root, ``IncompleteProof``, ``InvalidNode`` and
        ``ExtraneousNode``, for child tries ``InvalidChildRoot`` and ``ExtraneousChildProof``, and ``TooManyNodes``.
        """
        decoded: tuple[StorageProof, bytes] | None = None
        in_arrays = type(self) is not CompactProof or pays_in_arrays(UNFOLDS, len(self.nodes))
        if hasher is BLAKE2B_256 and in_arrays:
            decoded = array_engine("array_proofs").decode_compact(self)
        if decoded is None:
            return self.decode_plainly(expected_root, hasher=hasher)
        _ensure_root(decoded[1], expected_root)
        return decoded

    def decode_plainly(
        self, expected_root: bytes | None = None, *, hasher: Hasher = BLAKE2B_256
    ) -> tuple[StorageProof, bytes]:
        """``decode`` by the plain engine whatever the size: it says what is wrong with a proof."""
        given = iter(self.nodes)
        nodes: dict[bytes, bytes] = {}
        root = _decode_trie(given, nodes, hasher)
        _ensure_root(root, expected_root)
        child_roots = _child_roots(nodes, root, hasher, most=len(self.nodes) + MAX_REPEATED_NODES)
        self._decode_children(given, nodes, child_roots, hasher)
        return StorageProof(nodes.values()), root

    @staticmethod
    def _decode_children(
        given: Iterator[bytes], nodes: dict[bytes, bytes], child_roots: list[bytes], hasher: Hasher
    ) -> None:
        ahead = next(given, None)
        waiting: bytes | None = None
        for child_root in child_roots:
            if waiting is None and ahead is not None:
                waiting = _decode_trie(_chain(ahead, given), nodes, hasher)
                ahead = next(given, None)
            if child_root == waiting:
                waiting = None
        if waiting is not None:
            raise ExtraneousChildProof(waiting)
        if ahead is not None:
            raise ExtraneousNode(ahead)

    @classmethod
    def from_bytes(cls, data: bytes) -> "CompactProof":
        """Return the proof that ``Vec<Vec<u8>>`` bytes hold; raises ``CodecError``."""
        compact: CompactProof | None = None
        if type(data) is bytes and pays_in_arrays(DECODES, len(data)):
            compact = array_engine("array_proofs").compact_from_bytes(data)
        if compact is not None:
            return compact
        reader = ScaleReader(data)
        nodes = tuple(reader.bytes_() for _ in range(reader.length()))
        reader.done()
        return cls(nodes)

    def to_bytes(self) -> bytes:
        """Return the proof as SCALE ``Vec<Vec<u8>>``, in walking order."""
        return encode_vec(encode_bytes(node) for node in self.nodes)

    @property
    def proof_bytes(self) -> int:
        """Bytes of all nodes, without the lengths that SCALE puts before them."""
        return sum(map(len, self.nodes))

    def __repr__(self) -> str:
        return f"<CompactProof {len(self.nodes)} nodes, {self.proof_bytes} bytes>"


def _ensure_root(root: bytes, expected: bytes | None) -> None:
    if expected is not None and expected != root:
        raise RootMismatch(expected, root)


def _child_roots(nodes: Mapping[bytes, bytes], root: bytes, hasher: Hasher, *, most: int) -> list[bytes]:
    """Return the roots of the child tries that the known part of the top trie names, in the order of their keys.

    Raises ``TooManyNodes`` when the nodes with these keys have more than ``most`` places.
    """
    trie = TrieDB(nodes, root, hasher=hasher)

    @cache
    def load(reference: bytes) -> Node:
        try:
            return trie.load(reference, b"" if reference == root else CHILD_PATH)
        except MissingNode:
            return EMPTY

    def below(reference: bytes) -> list[bytes]:
        node = load(reference)
        return [child for child in node.children if child is not None] if isinstance(node, Branch) else []

    path, start = _at_child_path(load, root)
    if start is None:
        return []
    check_places([start], below, most)
    roots: list[bytes] = []
    stack = [(_Path(None, path, len(path)), start)]
    while stack:
        above, reference = stack.pop()
        node = load(reference)
        if isinstance(node, Empty):
            continue
        full = above.longer(node.partial)
        if node.value is not None:
            roots.append(_child_root(node.value, reference, full))
        if isinstance(node, Branch):
            ways = [(digit, child) for digit, child in zip(NIBBLES, node.children, strict=True) if child is not None]
            stack += [(full.longer(digit), child) for digit, child in reversed(ways)]
    return roots


class _Path(NamedTuple):
    """A path in parts: below long partial keys whole ones would weigh far more than the proof, and few are read."""

    above: "_Path | None"
    part: bytes
    length: int

    def longer(self, part: bytes) -> "_Path":
        return _Path(self, part, self.length + len(part)) if part else self

    def whole(self) -> bytes:
        parts: list[bytes] = []
        path: _Path | None = self
        while path is not None:
            parts.append(path.part)
            path = path.above
        return b"".join(reversed(parts))


def _at_child_path(load: Callable[[bytes], Node], root: bytes) -> tuple[bytes, bytes | None]:
    """Return the first node whose key begins as those of child tries do, and the path before it."""
    path, reference = b"", root
    while True:
        node = load(reference)
        if isinstance(node, Empty):
            return path, None
        full = path + node.partial
        if full.startswith(CHILD_PATH):
            return path, reference
        child = (
            node.children[CHILD_PATH[len(full)]] if isinstance(node, Branch) and CHILD_PATH.startswith(full) else None
        )
        if child is None:
            return path, None
        path, reference = CHILD_PATH[: len(full) + 1], child


def _child_root(value: Value, reference: bytes, path: _Path) -> bytes:
    if path.length % 2:
        raise InvalidNode(reference, f"a value at {path.length} nibbles, where no key ends")
    if isinstance(value, HashedValue) or len(value) != HASH_LENGTH:
        raise InvalidChildRoot(from_nibbles(path.whole()))
    return value


def _encode_tries(nodes: Mapping[bytes, bytes], roots: list[bytes], hasher: Hasher, *, most: int) -> tuple[bytes, ...]:
    trie = TrieDB(nodes, roots[0], hasher=hasher)

    @cache
    def written(reference: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return what stands for a node, and the children that follow it."""
        node = trie.load(reference, b"")
        if isinstance(node, Empty):
            return [EMPTY_NODE], []
        _ensure_writable(reference, node)
        value = node.value
        detached = nodes.get(value.hash) if isinstance(value, HashedValue) else None
        named, followed = _children_left(node, nodes) if isinstance(node, Branch) else ([], [])
        if detached is not None:
            return [ESCAPE + _with_empty_value(node, named), detached], followed
        data = nodes.get(reference, reference)
        return [b"".join((data[: bytes_before_children(data, node)], *named))], followed

    most_bytes = sum(map(len, nodes.values())) + MAX_REPEATED_BYTES
    encoded: list[bytes] = []
    stack, encoded_bytes, once_each = roots[::-1], 0, len(nodes)
    while stack:
        if once_each == 0:  # one stands at two places, and may stand at more than anyone can go to
            check_places(roots, lambda reference: written(reference)[1], most)
        once_each -= 1
        parts, followed = written(stack.pop())
        encoded += parts
        encoded_bytes += sum(map(len, parts))
        if encoded_bytes > most_bytes:
            raise TooManyBytes(most_bytes)
        stack += reversed(followed)
    return tuple(encoded)


def _ensure_writable(reference: bytes, node: Leaf | Branch) -> None:
    """Raise ``InvalidNode`` for a partial key that can be read and not be written."""
    if len(node.partial) > MAX_PARTIAL_NIBBLES:
        raise InvalidNode(reference, f"a partial key of {len(node.partial)} nibbles, {MAX_PARTIAL_NIBBLES} at most")


def _children_left(branch: Branch, nodes: Mapping[bytes, bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return how a branch names its children, those that come after it left out, and the latter."""
    named: list[bytes] = []
    followed: list[bytes] = []
    for child in branch.children:
        if child is None:
            continue
        if len(child) != HASH_LENGTH:
            named.append(encode_bytes(child))
        elif child in nodes:
            named.append(LEFT_OUT)
            followed.append(child)
        else:
            named.append(HASH_CHILD_PREFIX + child)
    return named, followed


def _with_empty_value(node: Leaf | Branch, named: list[bytes]) -> bytes:
    """Return the bytes of a node whose value comes after it."""
    if isinstance(node, Leaf):
        return encode_leaf(node.partial, b"")
    whole = encode_branch(node.partial, node.children, b"")
    return whole[: bytes_before_children(whole, Branch(node.partial, node.children, b""))] + b"".join(named)


@dataclass(slots=True)
class _Open:
    """A node whose children are still to come."""

    node: Node
    value: bytes | None
    children: list[bytes | None] = field(default_factory=list)
    next_child: int = 0

    def needs_child(self) -> bool:
        """Step over the children that are there; return whether one is left out, which then comes next."""
        while self.next_child < len(self.children):
            if self.children[self.next_child] == b"":
                return True
            self.next_child += 1
        return False


def _decode_trie(given: Iterator[bytes], nodes: dict[bytes, bytes], hasher: Hasher) -> bytes:
    """Rebuild one trie into ``nodes``, by hash, and return its root; takes no more from ``given`` than it needs."""
    stack: list[_Open] = []
    for encoded in given:
        entry = _open(encoded, given)
        while not entry.needs_child():
            node_hash = _close(entry, nodes, hasher)
            if not stack:
                return node_hash
            entry = stack.pop()
            entry.children[entry.next_child] = node_hash
        stack.append(entry)
    raise IncompleteProof


def _open(encoded: bytes, given: Iterator[bytes]) -> _Open:
    value_follows = encoded.startswith(ESCAPE)
    try:
        node = decode_node(encoded[1:] if value_follows else encoded)
    except CodecError as error:
        raise InvalidNode(b"", error.reason, error.offset) from None
    if not isinstance(node, Empty):
        _ensure_writable(b"", node)
    value = next(given, None) if value_follows else None
    if value_follows and value is None:
        raise IncompleteProof
    return _Open(node, value, list(node.children) if isinstance(node, Branch) else [])


def _close(entry: _Open, nodes: dict[bytes, bytes], hasher: Hasher) -> bytes:
    node = entry.node
    if isinstance(node, Empty):
        data = EMPTY_NODE
    else:
        value = node.value
        if entry.value is not None:
            value = HashedValue(hasher.digest(entry.value))
            nodes[value.hash] = entry.value
        if isinstance(node, Branch):
            data = encode_branch(node.partial, entry.children, value)
        else:
            assert value is not None
            data = encode_leaf(node.partial, value)
    node_hash = hasher.digest(data)
    nodes[node_hash] = data
    return node_hash


def _chain(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def check_places(roots: Iterable[bytes], below: Callable[[bytes], Sequence[bytes]], most: int) -> None:
    """Raise ``TooManyNodes`` when the tries with these roots have more than ``most`` places; look at each node once.

    ``below`` returns what a node names, itself named by its hash or its inline bytes.
    """
    counts: dict[bytes, int] = {}
    places = 0
    for root in roots:
        stack = [root]
        while stack:
            reference = stack[-1]
            children = below(reference)
            unknown = [] if reference in counts else [child for child in children if child not in counts]
            if unknown:
                stack += unknown
                continue
            counts[reference] = 1 + sum(counts[child] for child in children)
            if counts[reference] > most:
                raise TooManyNodes(most)
            stack.pop()
        places += counts[root]
        if places > most:
            raise TooManyNodes(most)
