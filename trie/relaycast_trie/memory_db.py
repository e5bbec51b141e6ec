"""A database of nodes and external values by their hash, each with a count of how often it is used.

Equal subtries share their nodes: what is inserted twice must be removed twice before it is gone. The empty node is
always there and is never counted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from relaycast_trie.hasher import BLAKE2B_256, Hasher
from relaycast_trie.nibbles import prefixed_key
from relaycast_trie.node_codec import EMPTY_NODE


class NodeSource(Protocol):
    """Anything that finds a node or an external value by its hash: a ``MemoryDB``, a proof, a plain ``dict``."""

    def get(self, node_hash: bytes, /) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class PruningJournal:
    """What one commit changes in the database, net: ``(path, hash, data)`` inserted, ``(path, hash)`` removed.

    A node that a commit both removes and inserts at the same path is in neither list.
    """

    inserted: tuple[tuple[bytes, bytes, bytes], ...] = ()
    removed: tuple[tuple[bytes, bytes], ...] = ()

    def changes(self, *, prefixed: bool = False) -> tuple[dict[bytes, tuple[bytes, int]], dict[bytes, int]]:
        """Return the changes by database key: ``{key: (data, count)}`` inserted and ``{key: count}`` removed.

        ``prefixed`` keys hold the path before the hash, as in databases that keep equal nodes apart (memory-db
        ``PrefixedKey``); otherwise insertions and removals of one hash cancel out.
        """
        counts: Counter[bytes] = Counter()
        data: dict[bytes, bytes] = {}
        for path, node_hash, node in self.inserted:
            key = prefixed_key(path, node_hash) if prefixed else node_hash
            counts[key] += 1
            data[key] = node
        for path, node_hash in self.removed:
            counts[prefixed_key(path, node_hash) if prefixed else node_hash] -= 1
        inserted = {key: (data[key], count) for key, count in counts.items() if count > 0}
        return inserted, {key: -count for key, count in counts.items() if count < 0}


class MemoryDB:
    """Hash to data, reference counted (memory-db ``MemoryDB``)."""

    __slots__ = ("_entries", "hasher", "null_hash")

    def __init__(self, nodes: Iterable[bytes] = (), *, hasher: Hasher = BLAKE2B_256) -> None:
        self.hasher = hasher
        self.null_hash = hasher.digest(EMPTY_NODE)
        self._entries: dict[bytes, tuple[bytes, int]] = {}
        for node in nodes:
            self.insert(node)

    def get(self, node_hash: bytes, /) -> bytes | None:
        entry = self._entries.get(node_hash)
        if entry is not None:
            return entry[0]
        return EMPTY_NODE if node_hash == self.null_hash else None

    def insert(self, data: bytes) -> bytes:
        """Count ``data`` once more and return its hash."""
        node_hash = self.hasher.digest(data)
        self.emplace(node_hash, data)
        return node_hash

    def emplace(self, node_hash: bytes, data: bytes) -> None:
        """Count ``data`` once more under a hash that is known to be its own."""
        if node_hash == self.null_hash:
            return
        entry = self._entries.get(node_hash)
        self._entries[node_hash] = (data, 1) if entry is None else (entry[0], entry[1] + 1)

    def remove(self, node_hash: bytes) -> None:
        """Count it once less; the last one takes the data away. Raises ``KeyError`` when it is not there."""
        if node_hash == self.null_hash:
            return
        data, count = self._entries[node_hash]
        if count == 1:
            del self._entries[node_hash]
        else:
            self._entries[node_hash] = (data, count - 1)

    def insert_all(self, journal: PruningJournal) -> None:
        """Insert what a commit inserted; the trie before it stays readable."""
        for _, node_hash, data in journal.inserted:
            self.emplace(node_hash, data)

    def prune(self, journal: PruningJournal) -> None:
        """Remove what a commit removed: the trie before it is no longer readable, and nothing of it is left behind."""
        for _, node_hash in journal.removed:
            self.remove(node_hash)

    def references(self) -> dict[bytes, int]:
        """Return how often each hash is used."""
        return {node_hash: count for node_hash, (_, count) in self._entries.items()}

    def __contains__(self, node_hash: bytes) -> bool:
        return self.get(node_hash) is not None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        size = sum(len(data) for data, _ in self._entries.values())
        return f"<MemoryDB {len(self)} nodes, {size} bytes>"
