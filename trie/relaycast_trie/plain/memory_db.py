"""A database of nodes and external values by their hash, each with a count of how often it is used.

Equal subtries share their nodes: what is inserted twice must be removed twice before it is gone. The empty node is
always there and is never counted.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec import Struct

from relaycast_trie.hasher import BLAKE2B_256, Hasher
from relaycast_trie.nibbles import prefixed_key
from relaycast_trie.node_codec import EMPTY_NODE


class NodeSource(Protocol):
    """Anything that finds a node or an external value by its hash: a ``MemoryDB``, a proof, a plain ``dict``."""

    def get(self, node_hash: bytes, /) -> bytes | None: ...


class PruningJournal(Struct, frozen=True):
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

    __slots__ = ("_counts", "_nodes", "hasher", "null_hash")

    def __init__(self, nodes: Iterable[bytes] = (), *, hasher: Hasher = BLAKE2B_256) -> None:
        self.hasher = hasher
        self.null_hash = hasher.digest(EMPTY_NODE)
        self._nodes: dict[bytes, bytes] = {}
        self._counts: dict[bytes, int] = {}
        """Uses of each node that is used more than once."""
        for node in nodes:
            self.insert(node)

    def get(self, node_hash: bytes, /) -> bytes | None:
        data = self._nodes.get(node_hash)
        if data is None and node_hash == self.null_hash:
            return EMPTY_NODE
        return data

    def insert(self, data: bytes) -> bytes:
        """Count ``data`` once more and return its hash."""
        node_hash = self.hasher.digest(data)
        self.emplace(node_hash, data)
        return node_hash

    def emplace(self, node_hash: bytes, data: bytes) -> None:
        """Count ``data`` once more under a hash that is known to be its own."""
        if node_hash in self._nodes:
            self._counts[node_hash] = self._counts.get(node_hash, 1) + 1
        elif node_hash != self.null_hash:
            self._nodes[node_hash] = data

    def emplace_all(self, hashes: list[bytes], nodes: list[bytes]) -> None:
        """Do what ``emplace`` does with each hash and its data."""
        known = self._nodes
        if known.keys().isdisjoint(hashes) and self.null_hash not in hashes:
            before = len(known)
            known.update(zip(hashes, nodes, strict=True))
            if len(known) - before == len(hashes):
                return
            self._counts.update((node_hash, count) for node_hash, count in Counter(hashes).items() if count > 1)
            return
        for node_hash, data in zip(hashes, nodes, strict=True):
            self.emplace(node_hash, data)

    def remove(self, node_hash: bytes) -> None:
        """Count it once less; the last one takes the data away. Raises ``KeyError`` when it is not there."""
        count = self._counts.get(node_hash, 1)
        if count > 2:
            self._counts[node_hash] = count - 1
        elif count == 2:
            del self._counts[node_hash]
        elif node_hash != self.null_hash:
            del self._nodes[node_hash]

    def remove_all(self, hashes: bytes) -> None:
        """Do what ``remove`` does with hashes that stand one after another."""
        size = len(self.null_hash)
        each = [hashes[at : at + size] for at in range(0, len(hashes), size)]
        if self._counts.keys().isdisjoint(each) and self.null_hash not in each:
            deque(map(self._nodes.__delitem__, each), maxlen=0)
            return
        for node_hash in each:
            self.remove(node_hash)

    def copy(self) -> "MemoryDB":
        """Return another database with the same nodes."""
        other = MemoryDB(hasher=self.hasher)
        other._nodes, other._counts = dict(self._nodes), dict(self._counts)
        return other

    def clear(self) -> None:
        """Forget everything."""
        self._nodes.clear()
        self._counts.clear()

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
        return dict.fromkeys(self._nodes, 1) | self._counts

    def __contains__(self, node_hash: bytes) -> bool:
        return self.get(node_hash) is not None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        return f"<MemoryDB {len(self)} nodes, {sum(map(len, self._nodes.values()))} bytes>"
