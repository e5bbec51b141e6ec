"""Writing a trie: changes gather in memory, ``commit`` hashes them into the database from the leaves up.

Nodes are read when a path first needs them and kept; a node that changes forgets its reference, and all nodes above
it do. What a commit replaces goes into its journal, so that a database can drop it at once or when no block needs
it.
"""

from collections import Counter

from relaycast_trie.exceptions import CodecError, InvalidNode, MissingNode, RootMismatch
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import NIBBLES, shared_length, to_nibbles
from relaycast_trie.node import CHILDREN, Branch, Empty, HashedValue, Value
from relaycast_trie.node_codec import StateVersion, decode_known_node, encode_branch, encode_leaf
from relaycast_trie.plain.memory_db import MemoryDB, PruningJournal


class _NewValue:
    """An external value that is not in the database yet."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class _MutableNode:
    """A leaf (``children`` is ``None``) or a branch; ``reference`` is ``None`` once it differs from the database."""

    __slots__ = ("children", "partial", "reference", "value")

    def __init__(
        self,
        partial: bytes,
        value: "Value | _NewValue | None",
        children: "list[bytes | _MutableNode | None] | None" = None,
        reference: bytes | None = None,
    ) -> None:
        self.partial = partial
        self.value = value
        self.children = children
        self.reference = reference


class TrieDBMut:
    """A trie that can be changed (trie-db ``TrieDBMut``): ``trie[key] = value``, ``del trie[key]``, ``commit()``.

    ``root`` is the last root committed to ``db``, ``None`` to begin with an empty trie. ``state_version`` decides how
    values written from now on are stored; those already there stay as they are until they are written again.
    Reads and writes raise ``RootMismatch``, ``MissingNode`` and ``InvalidNode`` like ``TrieDB``.

    >>> trie = TrieDBMut(MemoryDB())
    >>> trie[b"dot"] = b"5.31"
    >>> trie[b"dog"] = b"woof"
    >>> root = trie.commit()
    >>> del trie[b"dog"]
    >>> trie[b"dot"], b"dog" in trie, trie.commit() == root
    (b'5.31', False, False)
    """

    def __init__(
        self, db: MemoryDB, root: bytes | None = None, *, state_version: StateVersion = StateVersion.V1
    ) -> None:
        if root is not None and len(root) != HASH_LENGTH:
            raise ValueError(f"a root has {HASH_LENGTH} bytes, got {len(root)}")
        self.db = db
        self.state_version = StateVersion(state_version)
        self.root = db.null_hash if root is None else root
        self.journal = PruningJournal()
        self._digest = db.hasher.digest
        self._top: bytes | _MutableNode | None = None if self.root == db.null_hash else self.root
        self._removed: list[tuple[bytes, bytes]] = []

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key`` with all changes so far, ``None`` when there is none."""
        _, node = self._walk(to_nibbles(key))
        value = None if node is None else node.value
        if isinstance(value, _NewValue):
            return value.data
        if isinstance(value, HashedValue):
            data = self.db.get(value.hash)
            if data is None:
                raise MissingNode(value.hash, to_nibbles(key))
            return data
        return value

    def __getitem__(self, key: bytes) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: bytes) -> bool:
        _, node = self._walk(to_nibbles(key))
        return node is not None and node.value is not None

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self.insert(key, value)

    def __delitem__(self, key: bytes) -> None:
        """Remove ``key``; one that is not there is no error, as in Substrate's storage."""
        self.remove(key)

    def insert(self, key: bytes, value: bytes) -> None:
        """Write ``value`` under ``key``; the same value again changes nothing but, under V1, an inline large value."""
        path = to_nibbles(key)
        if not isinstance(value, bytes):
            raise TypeError(f"a value is bytes, got {type(value).__name__}")
        stored: bytes | _NewValue = _NewValue(value) if self.state_version.is_external(value) else value
        if self._top is None:
            self._top = _MutableNode(path, stored)
            return
        trail: list[tuple[_MutableNode, int]] = []
        node, depth = self._top_node(), 0
        while True:
            partial = node.partial
            if not path.startswith(partial, depth):
                rest = path[depth:]
                shared = shared_length(partial, rest)
                self._touch([*trail, (node, depth)], path)
                branch = self._split(node, shared, rest, stored)
                if not trail:
                    self._top = branch
                else:
                    parent, _ = trail[-1]
                    assert parent.children is not None
                    parent.children[path[depth - 1]] = branch
                return
            trail.append((node, depth))
            end = depth + len(partial)
            if end == len(path):
                self._overwrite(trail, path, value, stored)
                return
            children = node.children
            child = None if children is None else children[path[end]]
            if child is None:
                self._touch(trail, path)
                if node.children is None:
                    node.children = [None] * CHILDREN
                node.children[path[end]] = _MutableNode(path[end + 1 :], stored)
                return
            depth = end + 1
            node = child if isinstance(child, _MutableNode) else self._child(node, path[end], path[:depth])

    def remove(self, key: bytes) -> None:
        """Remove ``key`` if it is there."""
        path = to_nibbles(key)
        trail, node = self._walk(path)
        if node is None or node.value is None:
            return
        self._load_what_merges(trail, path)
        self._touch(trail, path)
        self._release(node.value, path)
        node.value = None
        if node.children is not None:
            self._normalise(*trail[-1], path)
            return
        trail.pop()
        if not trail:
            self._top = None
            return
        parent, depth = trail[-1]
        assert parent.children is not None
        parent.children[path[depth + len(parent.partial)]] = None
        self._normalise(parent, depth, path)

    def commit(self, *, prune: bool = True) -> bytes:
        """Hash what changed, write it to the database, and return the new root.

        With ``prune=False`` the trie before stays readable until ``db.prune(trie.journal)``.
        """
        inserted = self._encode_changes()
        self.journal = _net(inserted, self._removed)
        self._removed = []
        self.db.insert_all(self.journal)
        if prune:
            self.db.prune(self.journal)
        return self.root

    def _encode_changes(self) -> list[tuple[bytes, bytes, bytes]]:
        inserted: list[tuple[bytes, bytes, bytes]] = []
        if self._top is None:
            self.root = self.db.null_hash
        if not isinstance(self._top, _MutableNode):
            return inserted
        for node, path in reversed(self._changed_nodes(self._top)):
            encoded = self._encode(node, path, inserted)
            if len(encoded) < HASH_LENGTH and node is not self._top:
                node.reference = encoded
            else:
                node.reference = self._digest(encoded)
                inserted.append((path, node.reference, encoded))
        assert self._top.reference is not None
        self.root = self._top.reference
        return inserted

    @staticmethod
    def _changed_nodes(top: _MutableNode) -> list[tuple[_MutableNode, bytes]]:
        """Return the changed nodes with their paths, parents before children."""
        changed: list[tuple[_MutableNode, bytes]] = []
        stack = [(top, b"")] if top.reference is None else []
        while stack:
            node, path = stack.pop()
            changed.append((node, path))
            if node.children is not None:
                below = path + node.partial
                stack += [
                    (child, below + NIBBLES[index])
                    for index, child in enumerate(node.children)
                    if type(child) is _MutableNode and child.reference is None
                ]
        return changed

    def _encode(self, node: _MutableNode, path: bytes, inserted: list[tuple[bytes, bytes, bytes]]) -> bytes:
        if isinstance(node.value, _NewValue):
            value_hash = self._digest(node.value.data)
            inserted.append((path + node.partial, value_hash, node.value.data))
            node.value = HashedValue(value_hash)
        if node.children is None:
            assert node.value is not None
            return encode_leaf(node.partial, node.value)
        references = [child.reference if isinstance(child, _MutableNode) else child for child in node.children]
        return encode_branch(node.partial, references, node.value)

    def _walk(self, path: bytes) -> tuple[list[tuple[_MutableNode, int]], _MutableNode | None]:
        """Follow ``path``; return the nodes on it with their depths, and the node where it ends, if there is one."""
        trail: list[tuple[_MutableNode, int]] = []
        if self._top is None:
            return trail, None
        node, depth = self._top_node(), 0
        while True:
            trail.append((node, depth))
            end = depth + len(node.partial)
            if path[depth:end] != node.partial:
                return trail, None
            if end == len(path):
                return trail, node
            if node.children is None or node.children[path[end]] is None:
                return trail, None
            depth = end + 1
            node = self._child(node, path[end], path[:depth])

    def _top_node(self) -> _MutableNode:
        if not isinstance(self._top, _MutableNode):
            assert self._top is not None
            self._top = self._load(self._top, b"")
        return self._top

    def _child(self, node: _MutableNode, index: int, path: bytes) -> _MutableNode:
        assert node.children is not None
        child = node.children[index]
        if not isinstance(child, _MutableNode):
            assert child is not None
            child = self._load(child, path)
            node.children[index] = child
        return child

    def _load(self, reference: bytes, path: bytes) -> _MutableNode:
        data = self.db.get(reference) if len(reference) == HASH_LENGTH else reference
        if data is None:
            raise MissingNode(reference, path) if path else RootMismatch(reference)
        try:
            node = decode_known_node(data)
        except CodecError as error:
            raise InvalidNode(reference, error.reason, error.offset) from None
        if isinstance(node, Empty):
            raise InvalidNode(reference, "an empty node below the root")
        children: list[bytes | _MutableNode | None] | None = None
        if isinstance(node, Branch):
            children = list(node.children)
            if node.value is None and children.count(None) == CHILDREN - 1:
                raise InvalidNode(reference, "a branch with one child and no value")
        return _MutableNode(node.partial, node.value, children, reference)

    def _touch(self, trail: list[tuple[_MutableNode, int]], path: bytes) -> None:
        """Mark the nodes on a path as changed, and what stands for them in the database as removed."""
        for node, depth in trail:
            if node.reference is not None:
                self._forget(node, path[:depth])

    def _forget(self, node: _MutableNode, path: bytes) -> None:
        if node.reference is not None and len(node.reference) == HASH_LENGTH:
            self._removed.append((path, node.reference))
        node.reference = None

    def _release(self, value: Value | _NewValue | None, path: bytes) -> None:
        if isinstance(value, HashedValue):
            self._removed.append((path, value.hash))

    def _overwrite(
        self, trail: list[tuple[_MutableNode, int]], path: bytes, value: bytes, stored: bytes | _NewValue
    ) -> None:
        node, _ = trail[-1]
        old = node.value
        if isinstance(old, _NewValue):
            node.value = stored
            return
        if isinstance(old, HashedValue):
            if isinstance(stored, _NewValue) and self._digest(value) == old.hash:
                return
        elif old == stored:
            return
        self._touch(trail, path)
        self._release(old, path)
        node.value = stored

    @staticmethod
    def _split(node: _MutableNode, shared: int, rest: bytes, stored: bytes | _NewValue) -> _MutableNode:
        """Return a branch where ``rest`` leaves the partial key of ``node``, above ``node`` and the new value."""
        children: list[bytes | _MutableNode | None] = [None] * CHILDREN
        branch = _MutableNode(node.partial[:shared], None, children)
        children[node.partial[shared]] = node
        node.partial = node.partial[shared + 1 :]
        if shared == len(rest):
            branch.value = stored
        else:
            children[rest[shared]] = _MutableNode(rest[shared + 1 :], stored)
        return branch

    def _load_what_merges(self, trail: list[tuple[_MutableNode, int]], path: bytes) -> None:
        """Load the only child that a removal at ``path`` leaves behind: if it is missing, nothing has changed yet."""
        node, depth = trail[-1]
        gone: int | None = None
        if node.children is None:
            if len(trail) == 1 or trail[-2][0].value is not None:
                return
            node, depth = trail[-2]
            gone = path[depth + len(node.partial)]
        assert node.children is not None
        left = [index for index, child in enumerate(node.children) if child is not None and index != gone]
        if len(left) == 1:
            self._child(node, left[0], path[:depth] + node.partial + bytes(left))

    def _normalise(self, node: _MutableNode, depth: int, path: bytes) -> None:
        """Turn a branch that lost something into what it must be now: a leaf, or one node with its only child."""
        assert node.children is not None
        left = [index for index, child in enumerate(node.children) if child is not None]
        if not left:
            node.children = None
        elif len(left) == 1 and node.value is None:
            child_path = path[:depth] + node.partial + bytes(left)
            child = self._child(node, left[0], child_path)
            self._forget(child, child_path)
            node.partial += bytes(left) + child.partial
            node.value, node.children = child.value, child.children

    @property
    def is_committed(self) -> bool:
        """Whether ``root`` is the root of all that was written."""
        if isinstance(self._top, _MutableNode):
            return self._top.reference == self.root
        return self.root == (self._top or self.db.null_hash)

    def __repr__(self) -> str:
        return f"<TrieDBMut 0x{self.root.hex()}{'' if self.is_committed else ', changed'}>"


def _net(inserted: list[tuple[bytes, bytes, bytes]], removed: list[tuple[bytes, bytes]]) -> PruningJournal:
    """Return the changes without what is both removed and inserted at the same path."""
    taken = Counter(removed)
    kept = []
    for change in inserted:
        path, node_hash, _ = change
        count = taken.get((path, node_hash), 0)
        if count:
            taken[path, node_hash] = count - 1
        else:
            kept.append(change)
    return PruningJournal(tuple(kept), tuple(taken.elements()))
