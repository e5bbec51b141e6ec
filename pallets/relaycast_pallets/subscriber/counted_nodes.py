"""Cached nodes that know on how many subscribed paths they are, so that each goes with the last of them, unsearched.

A node is stored with its uses: of how many keys, each in the trie that it was last dealt with against, it is on the
path. A key that moves from one trie to another moves the uses of those nodes alone that the walk met. So nothing has
to be marked, even where a pass took several blocks.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from relaycast_pallets.subscriber.node_cache import marked_placements
from relaycast_pallets.subscriber.storage import PublisherNodes
from relaycast_pallets.subscriber.subscription import SubscribedPaths

USES_BYTES = 4
"""Uses stand behind the node, a u32."""


def with_uses(node: bytes, uses: int) -> bytes:
    """Return a node as it is stored."""
    return node + uses.to_bytes(USES_BYTES, "little")


def without_uses(stored: bytes) -> bytes:
    """Return the node that was stored."""
    return stored[:-USES_BYTES]


class CountedNodes:
    """The cached nodes of one publisher (``CachedNodes``) with their uses."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: PublisherNodes) -> None:
        self._nodes = nodes

    def get(self, node_hash: bytes, /) -> bytes | None:
        stored = self._nodes.get(node_hash)
        return None if stored is None else without_uses(stored)

    def all(self) -> dict[bytes, bytes]:
        return {node_hash: without_uses(stored) for node_hash, stored in self._nodes.all().items()}

    def shared(self) -> Mapping[bytes, int]:
        return {}

    def uses(self, node_hash: bytes) -> int:
        """Return on how many paths a node is, none when it is not stored."""
        stored = self._nodes.get(node_hash)
        return 0 if stored is None else int.from_bytes(stored[-USES_BYTES:], "little")


def uses_of(paths: Iterable[tuple[SubscribedPaths, bytes]], nodes: Mapping[bytes, bytes]) -> Counter[bytes]:
    """Return the uses of every node on the paths of keys under their roots, as far as ``nodes`` reach."""
    return Counter(
        node_hash
        for subscribed, root in paths
        for key in subscribed.keys
        for _, node_hash in marked_placements(SubscribedPaths.of([key]), root, nodes)
    )
