"""A proof for a reader who already holds the statement: keys and values are left out, and every hash that follows.

trie-db's ``generate_proof`` and ``verify_proof``. The reader puts the values of its own statement in, hashes upwards,
and believes the statement when the root comes out. Nodes come in the order of a walk, parents first.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from msgspec import Struct, field

from relaycast_trie.exceptions import (
    CodecError,
    DuplicateKey,
    ExtraneousHash,
    ExtraneousNode,
    ExtraneousValue,
    IncompleteProof,
    InvalidChild,
    InvalidNode,
    RootMismatch,
    ValueMismatch,
)
from relaycast_trie.hasher import BLAKE2B_256, HASH_LENGTH, Hasher
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue, Leaf, Node, Value
from relaycast_trie.node_codec import StateVersion, decode_node, encode_branch, encode_leaf
from relaycast_trie.plain.memory_db import NodeSource
from relaycast_trie.plain.trie_db import TrieDB

Statement = Mapping[bytes, bytes | None] | Iterable[tuple[bytes, bytes | None]]
"""Keys and what they are claimed to hold; ``None`` claims absence."""


class _Entry(Struct):
    """A node on the current path; ``slot`` is its place in the proof, ``None`` for an inline node."""

    path: bytes
    node: Node
    slot: int | None
    children: list[bytes | None] = field(default_factory=list)
    child: int = 0
    value: Value | None = None
    value_changed: bool = False

    def encode(self) -> bytes | None:
        """Return the bytes of the node with what was put in or left out, ``None`` when nothing was."""
        if isinstance(self.node, Branch):
            value = self.value if self.value_changed else self.node.value
            return encode_branch(self.node.partial, self.children, value)
        if isinstance(self.node, Leaf) and self.value_changed:
            assert self.value is not None
            return encode_leaf(self.node.partial, self.value)
        return None


def generate_proof(
    db: NodeSource, root: bytes, keys: Iterable[bytes], *, hasher: Hasher = BLAKE2B_256
) -> tuple[bytes, ...]:
    """Return the proof of ``keys`` for a reader who knows their values (trie-db ``generate_proof``)."""
    trie = TrieDB(db, root, hasher=hasher)
    nodes: list[bytes] = []
    stack: list[_Entry] = []
    for key in sorted(set(keys)):
        path = to_nibbles(key)
        while stack and not path.startswith(stack[-1].path):
            _leave(stack, nodes)
        if not stack:
            stack.append(_enter(trie, root, b"", nodes))
        while True:
            step = _leave_out_value(stack[-1], path)
            if step is None:
                break
            stack[-1].child = step[-1]
            reference = stack[-1].children[step[-1]]
            assert reference is not None
            stack.append(_enter(trie, reference, step, nodes))
    while stack:
        _leave(stack, nodes)
    return tuple(nodes)


def verify_proof(
    root: bytes,
    proof: Iterable[bytes],
    statement: Statement,
    *,
    state_version: StateVersion = StateVersion.V1,
    hasher: Hasher = BLAKE2B_256,
) -> None:
    """Return if ``proof`` shows that the trie with this ``root`` holds what ``statement`` says; raise otherwise.

    trie-db ``verify_proof``. Raises a ``StatementError``, ``IncompleteProof``, ``ExtraneousNode``, ``InvalidNode`` or
    ``RootMismatch``.
    """
    items = sorted(statement.items() if isinstance(statement, Mapping) else statement, key=lambda item: item[0])
    for (key, _), (following, _) in pairwise(items):
        if key == following:
            raise DuplicateKey(key)
    given = iter(proof)
    if items:
        computed = _Reader(given, items, state_version, hasher).root()
        if computed != root:
            raise RootMismatch(root, computed)
    extra = next(given, None)
    if extra is not None:
        raise ExtraneousNode(extra)


def _enter(trie: TrieDB, reference: bytes, path: bytes, nodes: list[bytes]) -> _Entry:
    node = trie.load(reference, path)
    slot = None
    if len(reference) == HASH_LENGTH:
        slot = len(nodes)
        data = trie.db.get(reference)
        nodes.append(b"\x00" if data is None else data)
    return _Entry(path, node, slot, list(node.children) if isinstance(node, Branch) else [])


def _leave(stack: list[_Entry], nodes: list[bytes]) -> None:
    """Write the node on top of the stack as the proof shows it, and leave its hash out of its parent."""
    entry = stack.pop()
    encoded = entry.encode()
    if entry.slot is not None:
        if encoded is not None:
            nodes[entry.slot] = encoded
        if stack:
            stack[-1].children[stack[-1].child] = b""
    elif encoded is not None:
        stack[-1].children[stack[-1].child] = encoded


def _leave_out_value(entry: _Entry, path: bytes) -> bytes | None:
    """Leave the value out when ``path`` ends here; return the path of the child it goes on to, if there is one."""
    node = entry.node
    if isinstance(node, Empty):
        return None
    end = len(entry.path) + len(node.partial)
    if path[len(entry.path) : end] != node.partial:
        return None
    if end == len(path):
        if node.value is not None:
            entry.value_changed = True
            entry.value = b"" if isinstance(node, Leaf) else None
        return None
    if isinstance(node, Leaf) or node.children[path[end]] is None:
        return None
    return path[: end + 1]


class _Reader:
    """Walks proof and statement side by side and hashes upwards."""

    def __init__(
        self,
        given: Iterator[bytes],
        items: list[tuple[bytes, bytes | None]],
        state_version: StateVersion,
        hasher: Hasher,
    ) -> None:
        self._given = given
        self._items = items
        self._next_item = 0
        self._state_version = state_version
        self._digest = hasher.digest

    def root(self) -> bytes:
        """Return the root that proof and statement have together."""
        stack = [self._entry(self._take(), b"", inline=False)]
        while True:
            entry = stack[-1]
            step = self._put_in_values(entry)
            if step is not None:
                stack.append(self._child(entry, step))
                continue
            reference = self._close(stack.pop())
            if not stack:
                return reference
            stack[-1].children[stack[-1].child] = reference

    def _take(self) -> bytes:
        node = next(self._given, None)
        if node is None:
            raise IncompleteProof
        return node

    def _entry(self, encoded: bytes, path: bytes, *, inline: bool) -> _Entry:
        try:
            node = decode_node(encoded)
        except CodecError as error:
            raise InvalidNode(b"", error.reason, error.offset) from None
        children = list(node.children) if isinstance(node, Branch) else []
        entry = _Entry(path, node, None if inline else 0, children)
        if isinstance(node, Empty):
            entry.value = encoded
        return entry

    def _child(self, entry: _Entry, path: bytes) -> _Entry:
        entry.child = path[-1]
        reference = entry.children[path[-1]]
        assert reference is not None
        if len(reference) == HASH_LENGTH:
            raise ExtraneousHash(reference)
        if reference:
            return self._entry(reference, path, inline=True)
        return self._entry(self._take(), path, inline=False)

    def _put_in_values(self, entry: _Entry) -> bytes | None:
        """Put the values of the statement into the node; return the path of the child that the next key leads to."""
        while self._next_item < len(self._items):
            key, value = self._items[self._next_item]
            path = to_nibbles(key)
            if not path.startswith(entry.path):
                return None
            step = self._put_in(entry, key, path, value)
            if step is not None:
                return step
            self._next_item += 1
        return None

    def _put_in(self, entry: _Entry, key: bytes, path: bytes, value: bytes | None) -> bytes | None:
        node = entry.node
        partial = b"" if isinstance(node, Empty) else node.partial
        end = len(entry.path) + len(partial)
        if not isinstance(node, Empty) and path[len(entry.path) : end] == partial:
            if end == len(path):
                self._set_value(entry, key, value)
                return None
            if isinstance(node, Branch) and node.children[path[end]] is not None:
                return path[: end + 1]
        if value is not None:
            raise ValueMismatch(key)
        return None

    def _set_value(self, entry: _Entry, key: bytes, value: bytes | None) -> None:
        node = entry.node
        assert not isinstance(node, Empty)
        if node.value is not None and (isinstance(node, Branch) or node.value != b""):
            raise ExtraneousValue(key)
        if value is None and isinstance(node, Leaf):
            raise ValueMismatch(key)
        entry.value_changed = True
        entry.value = value
        if value is not None and self._state_version.is_external(value):
            entry.value = HashedValue(self._digest(value))

    def _close(self, entry: _Entry) -> bytes:
        encoded = entry.encode()
        if encoded is None:
            encoded = entry.value if isinstance(entry.value, bytes) else self._unchanged(entry.node)
        if entry.slot is not None:
            return self._digest(encoded)
        if len(encoded) > HASH_LENGTH:
            raise InvalidChild(encoded)
        return encoded

    @staticmethod
    def _unchanged(node: Node) -> bytes:
        assert isinstance(node, Leaf)
        return encode_leaf(node.partial, node.value)
