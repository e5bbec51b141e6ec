"""All changes of a block in one walk: each node on their paths is read once, and written once, from the leaves up.

Law: what a recorder learns is what inserting and removing the keys one after another reads, in the order of the keys. A
removal that leaves a branch with one child reads that child, even where a later key brings the branch back. So it is
what a block must carry of its own state: the nodes that its reads and its changes touch, which Cumulus calls the
storage proof of a block (``witness``). Without a recorder nothing is read that the new root can do without: a trie with
gaps can be changed wherever its new root is known.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import EllipsisType
from typing import cast

from msgspec import Struct, field

from relaycast_trie.exceptions import CodecError, InvalidNode, MissingNode, RootMismatch
from relaycast_trie.hasher import BLAKE2B_256, HASH_LENGTH
from relaycast_trie.nibbles import NIBBLES, all_to_nibbles, shared_length
from relaycast_trie.node import CHILDREN, NO_CHILDREN, Branch, Empty, HashedValue, Leaf, Node, Value
from relaycast_trie.node_codec import (
    EMPTY_NODE,
    KNOWN_NODES,
    StateVersion,
    decode_known_node,
    encode_branch,
    encode_leaf,
)
from relaycast_trie.paths import under, ways
from relaycast_trie.plain.memory_db import MemoryDB, NodeSource
from relaycast_trie.plain.trie_db import NodeRecorder, Recorder, TrieDB
from relaycast_trie.plain.trie_db_mut import TrieDBMut
from relaycast_trie.proofs.storage_proof import StorageProof

LONGEST_KEY = 128
"""Bytes of a key up to which a walk is one of calls: every nibble may be a level of the trie, which takes two."""

Change = bytes | None | EllipsisType
"""What becomes of a key: a value, removed, or left as it is, which ``...`` stands for."""


class TrieUpdate(Struct):
    """A new ``root``; the nodes and external values that came, by hash, and the hashes of those that went.

    What stands where it stood is in neither; what stands at several places comes, or goes, once for each.
    """

    root: bytes
    hashes: list[bytes] = field(default_factory=list)
    nodes: list[bytes] = field(default_factory=list)
    dropped: list[bytes] = field(default_factory=list)


def update_trie(
    db: MemoryDB,
    root: bytes,
    changes: Mapping[bytes, bytes | None],
    *,
    reads: Collection[bytes] = (),
    seeks: Collection[bytes] = (),
    state_version: StateVersion = StateVersion.V1,
    recorder: NodeRecorder | None = None,
) -> TrieUpdate:
    """Return what writing ``changes`` (``None`` removes) makes of the trie with this ``root``; ``db`` stays as it is.

    The ``recorder`` learns of every node that this reads. Before that it learns of what it takes to read the keys
    ``reads``, external values included, and to look for the keys ``seeks`` without their values. Raises
    ``RootMismatch``, ``MissingNode`` and ``InvalidNode``.
    """
    keys, version = sorted({*changes, *reads, *seeks}), StateVersion(state_version)
    if not keys:
        return TrieUpdate(root)
    if max(map(len, keys)) > LONGEST_KEY:
        in_order = {key: changes[key] for key in keys if key in changes}
        if recorder is not None:
            record_witness(db, root, reads, in_order, recorder, seeks=seeks, state_version=version)
        return _one_by_one(db, root, in_order, version)
    return _Walk(db, keys, changes, reads, version, recorder).update(root)


class _Fresh:
    """A node that is not written yet, with the path at which it ends: a leaf (no ``children``) or a branch."""

    __slots__ = ("children", "path", "value")

    def __init__(self, path: bytes, value: Value | None, children: "list[bytes | _Fresh | None] | None" = None) -> None:
        self.path = path
        self.value = value
        self.children = children


Below = bytes | _Fresh | None
"""What became of a child: the reference it had, a node to be written, or nothing."""


class _Walk:
    """One walk; ``keys`` sorted, each once. A method that takes ``low`` and ``high`` deals with the keys in between.

    Those that say what became of a node also say whether it was gone for a while: all of its keys removed before the
    next one came.
    """

    def __init__(
        self,
        db: MemoryDB,
        keys: list[bytes],
        changes: Mapping[bytes, bytes | None],
        reads: Collection[bytes],
        state_version: StateVersion,
        recorder: NodeRecorder | None,
    ) -> None:
        self._find = db.get
        self._keys = keys
        self._paths = all_to_nibbles(keys)
        self._changes: list[Change] = [changes.get(key, ...) for key in keys]
        self._reads = reads
        self._state_version = state_version
        self._recorder = recorder
        self._digest = db.hasher.digest
        self._done = TrieUpdate(b"")

    def update(self, root: bytes) -> TrieUpdate:
        """Walk all keys."""
        done, high = self._done, len(self._paths)
        node = self._load(root, b"")
        below: Below
        if isinstance(node, Empty):
            added = self._added(0, high)
            below = self._joined(added) if added else root
        else:
            below, _ = self._visit(root, node, 0, 0, high)
            if below is not root:
                done.dropped.append(root)
        if isinstance(below, _Fresh):
            encoded = _encoded(below, 0)
            done.root = self._digest(encoded)
            self._emit(done.root, encoded)
        else:
            done.root = self._digest(EMPTY_NODE) if below is None else below
        return done

    def _visit(self, reference: bytes, node: Leaf | Branch, depth: int, low: int, high: int) -> tuple[Below, bool]:
        """Deal with the keys that lead to a ``node`` whose partial key begins at ``depth``."""
        end = self._paths[low][:depth] + node.partial
        first, last = under(self._paths, end, low, high)
        if isinstance(node, Leaf):
            below, gone = self._visit_leaf(reference, node, end, first, last)
        else:
            below, gone = self._visit_branch(reference, node, end, first, last)
        before = self._added(low, first) if low < first else []
        after = self._added(last, high) if last < high else []
        if not before and not after:
            return below, gone
        if below is reference:
            below = _opened(node, end)
        here = [below] if isinstance(below, _Fresh) else []
        return self._joined([*before, *here, *after]), gone and not before

    def _visit_leaf(self, reference: bytes, leaf: Leaf, end: bytes, first: int, last: int) -> tuple[Below, bool]:
        value: Value | None = leaf.value
        if first < last and self._paths[first] == end:
            value = self._value(first, value)
            first += 1
        added = self._added(first, last) if first < last else []
        if value is leaf.value and not added:
            return reference, False
        if value is not None:
            added.insert(0, _Fresh(end, value))
        return self._joined(added) if added else None, value is None

    def _visit_branch(self, reference: bytes, branch: Branch, end: bytes, first: int, last: int) -> tuple[Below, bool]:
        paths, depth, value = self._paths, len(end), branch.value
        children: list[Below] = list(branch.children)
        live, was_gone = CHILDREN - children.count(None), False
        if first < last and len(paths[first]) == depth:
            value = self._value(first, value)
            if value is None and branch.value is not None and live == 1:
                self._read_left(children, end)
            first += 1
        changed: list[int] = []
        for nibble, start, stop in ways(paths, depth, first, last):
            child = branch.children[nibble]
            if child is None:
                added = self._added(start, stop)
                if added:
                    children[nibble] = self._joined(added)
                    changed.append(nibble)
                    live += 1
            else:
                node = self._load(child, paths[start][: depth + 1])
                assert not isinstance(node, Empty)
                below, gone = self._visit(child, node, depth + 1, start, stop)
                if gone and value is None:
                    was_gone |= live == 1
                    if live == 2:
                        self._read_left(children, end)
                if below is not child:
                    children[nibble] = below
                    changed.append(nibble)
                    live -= below is None
        if not changed and value is branch.value:
            return reference, False
        return self._settled(branch, _Fresh(end, value, children), changed, live), was_gone

    def _settled(self, branch: Branch, new: _Fresh, changed: list[int], live: int) -> Below:
        """Return what a ``branch`` is with its ``new`` value and children, ``live`` of which exist."""
        before, children, below = branch.children, new.children, len(new.path) + 1
        assert children is not None
        if live <= 1 and new.value is None:
            only = next((index for index, child in enumerate(children) if child is not None), None)
            self._drop(before[index] for index in {*changed, only} if index is not None)
            return None if only is None else self._moved(children[only], new.path + NIBBLES[only])
        for index in changed:
            child = children[index]
            if isinstance(child, _Fresh):
                children[index] = self._written(child, below, before[index])
            else:
                self._drop((before[index],))
        if not live:
            new.children = None
        return new

    def _moved(self, child: Below, path: bytes) -> _Fresh:
        """Return the node that takes the place of its parent."""
        if isinstance(child, _Fresh):
            return child
        assert child is not None
        node = self._load(child, path)
        assert not isinstance(node, Empty)
        return _opened(node, path + node.partial)

    def _read_left(self, children: Sequence[Below], path: bytes) -> None:
        """Read the only child of a branch that is left, for a recorder; the one that went has been read."""
        if self._recorder is None:
            return
        for index, child in enumerate(children):
            if isinstance(child, bytes):
                self._load(child, path + NIBBLES[index])

    def _added(self, low: int, high: int) -> list[_Fresh]:
        """Return a leaf for each of the keys that is written, none of which is there."""
        changes, paths = self._changes, self._paths
        return [
            _Fresh(paths[index], self._value(index, None))
            for index in range(low, high)
            if isinstance(changes[index], bytes)
        ]

    def _joined(self, parts: list[_Fresh]) -> _Fresh:
        """Return one node that holds these, in the order of their paths; none but the first is above another."""
        first = parts[0]
        if len(parts) == 1:
            return first
        depth = shared_length(first.path, parts[-1].path)
        children: list[Below] = list(NO_CHILDREN)
        joined = _Fresh(first.path[:depth], None, children)
        start = 0
        if len(first.path) == depth:
            joined.value, start = first.value, 1
        while start < len(parts):
            nibble = parts[start].path[depth]
            stop = start + 1
            while stop < len(parts) and parts[stop].path[depth] == nibble:
                stop += 1
            children[nibble] = self._written(self._joined(parts[start:stop]), depth + 1, None)
            start = stop
        return joined

    def _value(self, index: int, old: Value | None) -> Value | None:
        """Return what a node holds for a key from now on: ``old`` itself where that is the same."""
        new = self._changes[index]
        if isinstance(old, HashedValue) and self._recorder is not None and self._keys[index] in self._reads:
            self._recorder.record(old.hash, self._data(old.hash, self._paths[index]))
        if new is ...:
            return old
        value: Value | None = new
        if new is not None and self._state_version.is_external(new):
            value = HashedValue(self._digest(new))
        if value == old:
            return old
        if isinstance(old, HashedValue):
            self._done.dropped.append(old.hash)
        if isinstance(value, HashedValue):
            assert new is not None
            self._emit(value.hash, new)
        return value

    def _written(self, node: _Fresh, depth: int, before: bytes | None) -> bytes:
        """Return how a parent names ``node``, whose partial key begins at ``depth``, in the place of ``before``."""
        reference = encoded = _encoded(node, depth)
        if len(encoded) >= HASH_LENGTH:
            reference = self._digest(encoded)
            self._emit(reference, encoded)
        self._drop((before,))
        return reference

    def _emit(self, node_hash: bytes, data: bytes) -> None:
        self._done.hashes.append(node_hash)
        self._done.nodes.append(data)

    def _drop(self, references: Iterable[bytes | None]) -> None:
        self._done.dropped += [it for it in references if it is not None and len(it) == HASH_LENGTH]

    def _load(self, reference: bytes, path: bytes) -> Node:
        data = reference
        if len(reference) == HASH_LENGTH:
            data = self._data(reference, path)
            if self._recorder is not None:
                self._recorder.record(reference, data)
        try:
            node = decode_known_node(data)
        except CodecError as error:
            raise InvalidNode(reference, error.reason, error.offset) from None
        if path and isinstance(node, Empty):
            raise InvalidNode(reference, "an empty node below the root")
        if isinstance(node, Branch) and node.value is None and node.children.count(None) == CHILDREN - 1:
            raise InvalidNode(reference, "a branch with one child and no value")
        return node

    def _data(self, node_hash: bytes, path: bytes) -> bytes:
        data = self._find(node_hash)
        if data is not None:
            return data
        if path:
            raise MissingNode(node_hash, path)
        if node_hash == self._digest(EMPTY_NODE):
            return EMPTY_NODE
        raise RootMismatch(node_hash)


def _opened(node: Leaf | Branch, end: bytes) -> _Fresh:
    """Return a node to be written again, which ends at the path ``end``."""
    return _Fresh(end, node.value, list(node.children) if isinstance(node, Branch) else None)


def _encoded(fresh: _Fresh, depth: int) -> bytes:
    """Return the bytes of a node, which is remembered as what they decode to: the next block reads it."""
    partial, value, children = fresh.path[depth:], fresh.value, fresh.children
    node: Leaf | Branch
    if children is None:
        assert value is not None
        node, encoded = Leaf(partial, value), encode_leaf(partial, value)
    else:
        references = tuple(cast("list[bytes | None]", children))
        node, encoded = Branch(partial, references, value), encode_branch(partial, references, value)
    KNOWN_NODES.remember(encoded, node)
    return encoded


def _one_by_one(
    db: MemoryDB,
    root: bytes,
    changes: Mapping[bytes, bytes | None],
    state_version: StateVersion,
) -> TrieUpdate:
    """Do what a walk does without calls in calls, which keys of any length may need.

    Removals come last: a branch that a new key keeps does not collapse before.
    """
    trie = TrieDBMut(Overlay(db), root, state_version=state_version)
    for key, value in changes.items():
        if value is not None:
            trie.insert(key, value)
    for key, value in changes.items():
        if value is None:
            trie.remove(key)
    trie.commit(prune=False)
    inserted, removed = trie.journal.inserted, trie.journal.removed
    hashes, nodes = [node_hash for _, node_hash, _ in inserted], [data for _, _, data in inserted]
    return TrieUpdate(trie.root, hashes, nodes, [node_hash for _, node_hash in removed])


def witness(
    db: NodeSource,
    root: bytes,
    reads: Iterable[bytes],
    changes: Mapping[bytes, bytes | None],
    *,
    state_version: StateVersion = StateVersion.V1,
) -> StorageProof:
    """Return the nodes below ``root`` that reading ``reads`` and then writing ``changes`` (``None`` removes) touch.

    ``db`` is left as it is. Raises what ``TrieDB`` raises where nodes are missing.
    """
    recorder = Recorder()
    record_witness(db, root, reads, changes, recorder, state_version=state_version)
    return StorageProof(recorder.nodes.values())


def record_witness(
    db: NodeSource,
    root: bytes,
    reads: Iterable[bytes],
    changes: Mapping[bytes, bytes | None],
    recorder: NodeRecorder,
    *,
    seeks: Iterable[bytes] = (),
    state_version: StateVersion = StateVersion.V1,
) -> None:
    """Record the nodes that ``witness`` returns; nothing is hashed but what removals move.

    Keys of ``seeks`` are looked for without their values.
    """
    TrieDB(db, root, recorder=recorder).get_many(reads)
    paths = _Paths(db, root, recorder=recorder)
    held = paths.get_many({**changes, **dict.fromkeys(seeks)})
    if all(held[key] is None for key, value in changes.items() if value is None):
        return
    changed = TrieDBMut(Overlay(db, recorder), root, state_version=state_version)
    for key, value in changes.items():
        if value is None:
            changed.remove(key)
        else:
            changed.insert(key, value)


class _Paths(TrieDB):
    """Finds which keys there are without reading what stands outside of their nodes: writing over it does not."""

    __slots__ = ()

    def fetch_value(self, value: Value, path: bytes) -> bytes:  # noqa: ARG002
        return b""


class Overlay(MemoryDB):
    """Reads from ``below``, and tells the ``recorder`` what; what is written stays here."""

    __slots__ = ("_below", "_recorder")

    def __init__(self, below: NodeSource, recorder: NodeRecorder | None = None) -> None:
        super().__init__(hasher=below.hasher if isinstance(below, MemoryDB) else BLAKE2B_256)
        self._below = below
        self._recorder = recorder

    def get(self, node_hash: bytes, /) -> bytes | None:
        found = self._below.get(node_hash)
        if found is not None and self._recorder is not None:
            self._recorder.record(node_hash, found)
        return found
