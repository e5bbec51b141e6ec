"""A relay state proof that remembers which of its nodes were read, and demands at the end that all were.

Sets are compared, never counts: a proof padded with as many foreign nodes as it lacks must not pass.
"""

from collections.abc import Iterable, Mapping, Sequence

from relaycast_trie.exceptions import CodecError, InvalidNode, UnusedNodes
from relaycast_trie.hasher import blake2_256
from relaycast_trie.node import Node
from relaycast_trie.node_codec import decode_known_node
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_trie.proofs.storage_proof import StorageProof

HASHED_NODES = 1 << 15
HASHED_BYTES = 1 << 23
HASHED_NODE_BYTES = 1 << 12
"""Nodes whose hashes are remembered, since most of what a block is given was in the block before; then none is.

Longer ones are hashed each time, and all of them together stay small: what a hostile proof holds must not stay in
memory.
"""


class KnownHashes:
    """The hashes of nodes that were met before, by their bytes."""

    __slots__ = ("_hashes", "_held_bytes")

    def __init__(self) -> None:
        self._hashes: dict[bytes, bytes] = {}
        self._held_bytes = 0

    def by_hash(self, nodes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return nodes by their hash, each hashed once for all blocks that hold it."""
        found: dict[bytes, bytes] = {}
        known = self._hashes
        for node in nodes:
            node_hash = known.get(node)
            if node_hash is None:
                node_hash = blake2_256(node)
                if len(node) <= HASHED_NODE_BYTES:
                    self._make_room(len(node))
                    known[node] = node_hash
            found[node_hash] = node
        return found

    def clear(self) -> None:
        """Forget everything."""
        self._hashes.clear()
        self._held_bytes = 0

    def _make_room(self, node_bytes: int) -> None:
        self._held_bytes += node_bytes
        if self._held_bytes > HASHED_BYTES or len(self._hashes) >= HASHED_NODES:
            self.clear()
            self._held_bytes = node_bytes

    def __contains__(self, node: bytes) -> bool:
        return node in self._hashes

    def __repr__(self) -> str:
        return f"<KnownHashes of {len(self._hashes)} nodes, {self._held_bytes} bytes>"


KNOWN_HASHES = KnownHashes()
by_hash = KNOWN_HASHES.by_hash


class TrackedProof:
    """The nodes of a ``proof`` under ``relay_root``; ``accessed`` are the hashes of those read so far.

    Nodes that are given as they come need not be each there once. They are hashed here, whoever says that they have
    been; ``collected`` alone takes that on trust.
    """

    __slots__ = ("accessed", "nodes", "relay_root")

    is_trusted = False
    """Whether the hashes of the nodes are somebody else's word, as in ``TrustedProof``."""

    def __init__(self, proof: StorageProof | Iterable[bytes], relay_root: bytes) -> None:
        self.nodes: Mapping[bytes, bytes] = by_hash(proof.nodes if isinstance(proof, StorageProof) else proof)
        self.relay_root = relay_root
        self.accessed: set[bytes] = set()

    @classmethod
    def collected(cls, proof: StorageProof, relay_root: bytes) -> "TrackedProof":
        """Return a proof to be pruned by who collected it, under the hashes that its nodes came with if they did."""
        if proof.recorded is None:
            return cls(proof, relay_root)
        return TrustedProof(proof.recorded, relay_root)

    @classmethod
    def without_duplicates(cls, nodes: Sequence[bytes], relay_root: bytes) -> "TrackedProof":
        """Return a proof as a block is given it; raises ``DuplicateNode`` when a node is there twice."""
        tracked = cls(nodes, relay_root)
        return tracked if len(tracked.nodes) == len(nodes) else cls(StorageProof.without_duplicates(nodes), relay_root)

    def record(self, node_hash: bytes, _data: bytes, /) -> None:
        """Count a node as read."""
        self.accessed.add(node_hash)

    def read_static(self, keys: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """Read keys of the relay chain's top trie outside of any budget.

        Raises ``RootMismatch``, ``MissingNode`` and ``InvalidNode``.
        """
        return TrieDB(self.nodes, self.relay_root, recorder=self).get_many(keys)

    def read_nodes(self) -> StorageProof:
        """Return the proof with the nodes that were read, and no others."""
        nodes = self.nodes
        return StorageProof([nodes[node_hash] for node_hash in self.accessed if node_hash in nodes])

    def ensure_no_unused_nodes(self) -> None:
        """Raise ``UnusedNodes`` unless every node of the proof was read (cumulus ``AccessedNodesTracker``)."""
        unused = self.nodes.keys() - self.accessed
        if unused:
            raise UnusedNodes(tuple(sorted(unused)))


class TrustedProof(TrackedProof):
    """Nodes under the hashes that they came with, for PRUNE alone: a block believes nobody (``process_proof``)."""

    __slots__ = ()

    is_trusted = True

    def __init__(self, nodes: Mapping[bytes, bytes], relay_root: bytes) -> None:
        self.nodes = nodes
        self.relay_root = relay_root
        self.accessed = set()


def decode_known(node_hash: bytes, data: bytes) -> Node:
    """Return the node with these bytes: what PRUNE decodes, VERIFY meets again. Raises ``InvalidNode``."""
    try:
        return decode_known_node(data)
    except CodecError as error:
        raise InvalidNode(node_hash, error.reason, error.offset) from None
