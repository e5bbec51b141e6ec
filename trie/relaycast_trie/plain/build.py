"""A whole trie from sorted pairs in one pass: the plain engine's root, and the start of a database.

The neighbours of a key tell its place: it hangs on the branch where it parts from the closer of the two. Branches
stay open on a stack until a key parts from them higher up. No recursion: keys may be as long as they like.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from relaycast_trie.hasher import BLAKE2B_256, HASH_LENGTH, Hasher
from relaycast_trie.nibbles import shared_key_nibbles, to_nibbles
from relaycast_trie.node import CHILDREN, HashedValue, Value
from relaycast_trie.node_codec import EMPTY_NODE, StateVersion, encode_branch, encode_leaf
from relaycast_trie.plain.memory_db import MemoryDB

Pairs = Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]]
Emit = Callable[[bytes, bytes], None]
"""Takes the hash and the bytes of each node and external value."""


class _OpenBranch(Struct):
    depth: int
    """Nibbles from the root to where its children part."""

    value: Value | None = None
    children: list[bytes | None] = field(default_factory=lambda: [None] * CHILDREN)


def build_root(pairs: Pairs, *, state_version: StateVersion, hasher: Hasher = BLAKE2B_256) -> bytes:
    """Return the root of the trie that holds ``pairs``. If a key repeats, its last value wins."""
    return build_trie(pairs, lambda _hash, _data: None, state_version=state_version, hasher=hasher)


def build_database(
    pairs: Pairs, *, state_version: StateVersion, hasher: Hasher = BLAKE2B_256
) -> tuple[MemoryDB, bytes]:
    """Return a database with the trie that holds ``pairs``, and its root."""
    db = MemoryDB(hasher=hasher)
    root = build_trie(pairs, db.emplace, state_version=state_version, hasher=hasher)
    return db, root


def build_trie(pairs: Pairs, emit: Emit, *, state_version: StateVersion, hasher: Hasher = BLAKE2B_256) -> bytes:
    """Give every node and external value of the trie that holds ``pairs`` to ``emit``, and return the root."""
    entries = sorted(dict(pairs).items())
    if not entries:
        return hasher.digest(EMPTY_NODE)
    return _Builder(emit, state_version, hasher).build(entries)


class _Builder:
    def __init__(self, emit: Emit, state_version: StateVersion, hasher: Hasher) -> None:
        self._emit = emit
        self._state_version = StateVersion(state_version)
        self._digest = hasher.digest
        self._open: list[_OpenBranch] = []

    def build(self, entries: list[tuple[bytes, bytes]]) -> bytes:
        """Return the root; ``entries`` sorted by key, at least one."""
        encoded = b""
        previous_shared = -1
        for index, (key, value) in enumerate(entries):
            is_last = index + 1 == len(entries)
            next_shared = -1 if is_last else shared_key_nibbles(key, entries[index + 1][0])
            if next_shared > previous_shared:
                self._open.append(_OpenBranch(next_shared))
            encoded = self._add(to_nibbles(key), self._stored(value), next_shared)
            previous_shared = next_shared
        root = self._digest(encoded)
        self._emit(root, encoded)
        return root

    def _add(self, path: bytes, value: Value, next_shared: int) -> bytes:
        """Hang one key on the open branches, close those that end with it, return the root's bytes if that was all."""
        if not self._open:
            return encode_leaf(path, value)
        branch = self._open[-1]
        if branch.depth == len(path):
            branch.value = value
        else:
            branch.children[path[branch.depth]] = self._reference(encode_leaf(path[branch.depth + 1 :], value))
        while self._open[-1].depth > next_shared:
            closed = self._open.pop()
            if next_shared >= 0 and (not self._open or self._open[-1].depth < next_shared):
                self._open.append(_OpenBranch(next_shared))
            if not self._open:
                return encode_branch(path[: closed.depth], closed.children, closed.value)
            parent = self._open[-1]
            encoded = encode_branch(path[parent.depth + 1 : closed.depth], closed.children, closed.value)
            parent.children[path[parent.depth]] = self._reference(encoded)
        return b""

    def _reference(self, encoded: bytes) -> bytes:
        if len(encoded) < HASH_LENGTH:
            return encoded
        node_hash = self._digest(encoded)
        self._emit(node_hash, encoded)
        return node_hash

    def _stored(self, value: bytes) -> Value:
        if not self._state_version.is_external(value):
            return value
        value_hash = self._digest(value)
        self._emit(value_hash, value)
        return HashedValue(value_hash)
