"""A compact proof: a storage proof whose hashes are left out wherever the reader can compute them.

Nodes come in the order of a walk through the trie, parents first. A child's hash is left empty when the child itself
follows; a value that the proof holds outside of its node follows that node, which then starts with an escape byte.
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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from relaycast_trie.child_info import CHILD_STORAGE_PREFIX
from relaycast_trie.exceptions import (
    CodecError,
    ExtraneousChildProof,
    ExtraneousNode,
    IncompleteProof,
    InvalidChildRoot,
    InvalidNode,
    MissingNode,
    RootMismatch,
    TooManyNodes,
)
from relaycast_trie.hasher import BLAKE2B_256, HASH_LENGTH, Hasher
from relaycast_trie.nibbles import from_nibbles, to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue, Node
from relaycast_trie.node_codec import EMPTY_NODE, ESCAPE, decode_node, encode_branch, encode_leaf
from relaycast_trie.plain.memory_db import NodeSource
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_vec

CHILD_PATH = to_nibbles(CHILD_STORAGE_PREFIX)

MAX_WALKED_NODES = 1 << 20
"""A few nodes that name each other many times spell out more trie than there is time for: the walk ends here."""


@dataclass(frozen=True, slots=True)
class CompactProof:
    """Nodes in walking order with hashes left out (sp-trie ``CompactProof``)."""

    nodes: tuple[bytes, ...]

    @classmethod
    def encode(cls, proof: StorageProof, root: bytes, *, hasher: Hasher = BLAKE2B_256) -> "CompactProof":
        """Return ``proof`` of the trie with this ``root`` in compact form; nodes that no walk meets are lost.

        Raises ``RootMismatch`` when the proof lacks the root, ``InvalidNode``, ``InvalidChildRoot``, ``TooManyNodes``.
        """
        nodes = proof.by_hash(hasher)
        encoded = _encode_trie(nodes, root, hasher)
        for child_root in _child_roots(nodes, root, hasher):
            if child_root in nodes:
                encoded += _encode_trie(nodes, child_root, hasher)
        return cls(tuple(encoded))

    def decode(self, expected_root: bytes | None = None, *, hasher: Hasher = BLAKE2B_256) -> tuple[StorageProof, bytes]:
        """Return the storage proof and the root of its top trie.

        Raises ``RootMismatch`` when that is not the expected root, ``IncompleteProof``, ``InvalidNode`` and
        ``ExtraneousNode``, and for child tries ``InvalidChildRoot`` and ``ExtraneousChildProof``.
        """
        given = iter(self.nodes)
        nodes: dict[bytes, bytes] = {}
        root = _decode_trie(given, nodes, hasher)
        if expected_root is not None and expected_root != root:
            raise RootMismatch(expected_root, root)
        self._decode_children(given, nodes, _child_roots(nodes, root, hasher), hasher)
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


def _child_roots(nodes: NodeSource, root: bytes, hasher: Hasher) -> list[bytes]:
    """Return the roots of the child tries that the known part of the top trie names, in the order of their keys."""
    trie = TrieDB(nodes, root, hasher=hasher)
    roots: list[bytes] = []
    stack = [(b"", root)]
    walked = 0
    while stack:
        path, reference = stack.pop()
        walked += 1
        if walked > MAX_WALKED_NODES:
            raise TooManyNodes(MAX_WALKED_NODES)
        try:
            node = trie.load(reference, path)
        except MissingNode:
            continue
        if isinstance(node, Empty):
            continue
        full = path + node.partial
        if full.startswith(CHILD_PATH) and node.value is not None:
            if len(full) % 2:
                raise InvalidNode(reference, f"a value at {len(full)} nibbles, where no key ends")
            if isinstance(node.value, HashedValue) or len(node.value) != HASH_LENGTH:
                raise InvalidChildRoot(from_nibbles(full))
            roots.append(node.value)
        if isinstance(node, Branch):
            for index in range(15, -1, -1):
                child, deeper = node.children[index], full + bytes([index])
                if child is not None and (deeper.startswith(CHILD_PATH) or CHILD_PATH.startswith(deeper)):
                    stack.append((deeper, child))
    return roots


def _encode_trie(nodes: dict[bytes, bytes], root: bytes, hasher: Hasher) -> list[bytes]:
    trie = TrieDB(nodes, root, hasher=hasher)
    encoded: list[bytes] = []
    stack = [root]
    while stack:
        if len(encoded) > MAX_WALKED_NODES:
            raise TooManyNodes(MAX_WALKED_NODES)
        reference = stack.pop()
        node = trie.load(reference, b"")
        value = b"" if isinstance(node, Empty) else node.value
        detached = nodes.get(value.hash) if isinstance(value, HashedValue) else None
        followed: list[bytes] = []
        if isinstance(node, Branch):
            followed = [child for child in node.children if child is not None and _is_in(child, nodes)]
        encoded.append(_leave_out(node, set(followed), detached is not None))
        if detached is not None:
            encoded.append(detached)
        stack.extend(reversed(followed))
    return encoded


def _is_in(child: bytes, nodes: dict[bytes, bytes]) -> bool:
    return len(child) == HASH_LENGTH and child in nodes


def _leave_out(node: Node, followed: set[bytes], value_follows: bool) -> bytes:
    """Return a node's bytes without the children and the value that come after it."""
    escape = ESCAPE if value_follows else b""
    if isinstance(node, Empty):
        return EMPTY_NODE
    value = b"" if value_follows else node.value
    if isinstance(node, Branch):
        children = [b"" if child in followed else child for child in node.children]
        return escape + encode_branch(node.partial, children, value)
    assert value is not None
    return escape + encode_leaf(node.partial, value)


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
