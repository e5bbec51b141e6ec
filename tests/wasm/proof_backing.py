"""A state that is nothing but a proof: what a validator runs a block over. Every answer is read from nodes."""

from collections.abc import Iterator, Mapping

from relaycast_pallets.frame.storage import Values
from relaycast_pallets.frame.tries import Keys, Name
from relaycast_trie import MemoryDB, TrieDB, TrieDBMut
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.nibbles import from_nibbles, to_nibbles
from relaycast_trie.node import Branch, Empty
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.plain.trie_db import NodeRecorder


class ProofBacking:
    """The trie with this ``root`` in ``db`` (``Backing``); asking for what is not in it raises ``MissingNode``."""

    def __init__(self, db: MemoryDB, root: bytes) -> None:
        self.db = db
        self.top_root = root

    def get(self, name: Name, key: bytes) -> bytes | None:
        trie = self._trie(name)
        return None if trie is None else trie.get(key)

    def exists(self, name: Name, key: bytes) -> bool:
        trie = self._trie(name)
        return trie is not None and key in trie

    def next_key(self, name: Name, key: bytes) -> bytes | None:
        trie = self._trie(name)
        found = None if trie is None else self._after(trie, trie.root, b"", to_nibbles(key))
        return None if found is None else from_nibbles(found)

    def keys(self, name: Name, prefix: bytes, start: bytes) -> Iterator[bytes]:
        trie = self._trie(name)
        if trie is not None:
            trie.lookup(to_nibbles(prefix))
            trie.lookup(to_nibbles(start))
            for path in self._under(trie, trie.root, b"", to_nibbles(prefix), to_nibbles(start)):
                yield from_nibbles(path)

    def root(self, changes: Mapping[Name, Values], *, state_version: StateVersion) -> bytes:
        written = dict(changes[None])
        for name, values in changes.items():
            if name is not None:
                root = self.child_root(name, values, state_version=state_version)
                written[name.prefixed_storage_key()] = None if root == EMPTY_ROOT else root
        return self._changed(self.top_root, written, state_version)

    def child_root(self, info: ChildInfo, changes: Values, *, state_version: StateVersion) -> bytes:
        trie = self._trie(info)
        return self._changed(EMPTY_ROOT if trie is None else trie.root, changes, state_version)

    def record(self, recorder: NodeRecorder, reads: Keys, seeks: Keys) -> None:
        raise AssertionError("a validator has nothing to record")

    def _trie(self, name: Name) -> TrieDB | None:
        top = TrieDB(self.db, self.top_root)
        if name is None:
            return top
        root = top.get(name.prefixed_storage_key())
        return None if root is None else TrieDB(self.db, root)

    def _changed(self, root: bytes, changes: Values, version: StateVersion) -> bytes:
        trie = TrieDBMut(self.db, root, state_version=version)
        for key, value in sorted(changes.items()):
            if value is None:
                trie.remove(key)
            else:
                trie.insert(key, value)
        return trie.commit(prune=False)

    def _after(self, trie: TrieDB, reference: bytes, above: bytes, path: bytes) -> bytes | None:
        """Return the first path with a value that comes after ``path``, of those below ``above``."""
        node = trie.load(reference, above)
        if isinstance(node, Empty):
            return None
        here = above + node.partial
        if here > path:
            if node.value is not None:
                return here
            path = here
        elif not path.startswith(here):
            return None
        if isinstance(node, Branch):
            for nibble, child in enumerate(node.children):
                below = here + bytes([nibble])
                if child is not None and below >= path[: len(below)]:
                    found = self._after(trie, child, below, path)
                    if found is not None:
                        return found
        return None

    def _under(self, trie: TrieDB, reference: bytes, above: bytes, prefix: bytes, start: bytes) -> Iterator[bytes]:
        """Yield the paths with a value that start with ``prefix`` and do not come before ``start``, in their order."""
        node = trie.load(reference, above)
        if isinstance(node, Empty):
            return
        here = above + node.partial
        if node.value is not None and here.startswith(prefix) and here >= start:
            yield here
        if isinstance(node, Branch):
            for nibble, child in enumerate(node.children):
                below = here + bytes([nibble])
                leads = below.startswith(prefix) or prefix.startswith(below)
                if child is not None and leads and below >= start[: len(below)]:
                    yield from self._under(trie, child, below, prefix, start)
