"""What a block must carry of its own state: the nodes that its reads and its changes touch.

Reads need the nodes on their paths, and external values. Changes need the paths that they rewrite, and when a removal
leaves a branch with one child, that child too (Cumulus calls it the storage proof of a block).
"""

from collections.abc import Iterable, Mapping

from relaycast_trie.hasher import BLAKE2B_256
from relaycast_trie.node import Value
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.memory_db import MemoryDB, NodeSource
from relaycast_trie.plain.recorder import Recorder
from relaycast_trie.plain.trie_db import NodeRecorder, TrieDB
from relaycast_trie.plain.trie_db_mut import TrieDBMut
from relaycast_trie.proofs.storage_proof import StorageProof


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
    """Let the ``recorder`` learn of the nodes that ``witness`` returns; nothing is hashed but what removals move.

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
