"""The changed paths of one publisher: its new child trie and the old one, walked side by side.

Both are followed for all subscribed keys at once, in the order of the keys. Where the same node stands at the same
nibble prefix in both, everything below is unchanged and nothing more is read. If there are more nodes above it than
before, its depth is counted anew. Nodes are compared by prefix. Depth is no criterion, because a key that comes or goes
moves the others up or down. Presence in the cache is none either, because two keys may have equal leaves.
"""

from collections.abc import Iterable
from itertools import compress
from operator import ne
from typing import Protocol

from msgspec import Struct

from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_trie.exceptions import CodecError, InvalidNode, RelaycastError
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.node import NO_CHILDREN, Branch, Empty, HashedValue, Leaf, Node, Value
from relaycast_trie.node_codec import decode_known_node, decode_node
from relaycast_trie.paths import under, ways

NIBBLES = range(16)
NIBBLE_BYTES = tuple(bytes([nibble]) for nibble in NIBBLES)

Place = tuple[int, bytes, int]
"""A node to come: its depth in nibbles, how its parent names it, and how many nodes with a hash are above it."""

Placement = tuple[bytes, bytes]
"""A node that has a hash, with the nibble prefix at which it stands."""


class Placements:
    """Places of nodes that were met in one of the two tries alone: ``gained`` in the new one, ``lost`` in the old."""

    gained: set[Placement]
    lost: set[Placement]

    @classmethod
    def all_of(cls, some: Iterable["Placements"]) -> "Placements":
        """Return the places of several ranges of keys together."""
        given, together = list(some), cls()
        together.gained = set[Placement]().union(*(it.gained for it in given))
        together.lost = set[Placement]().union(*(it.lost for it in given))
        return together

    def __init__(self) -> None:
        self.gained, self.lost = set(), set()

    def moved(self) -> dict[bytes, int]:
        """Return how many places of each node came, less those that went."""
        moved: dict[bytes, int] = {}
        for _, node_hash in self.gained:
            moved[node_hash] = moved.get(node_hash, 0) + 1
        for _, node_hash in self.lost:
            moved[node_hash] = moved.get(node_hash, 0) - 1
        return moved


class End(Struct, frozen=True):
    """A path ended at this value."""

    value: Value


Side = Place | End | None
"""Where a path stands in one of the two tries; ``None`` when that trie has nothing for it."""


class TrieDepthExceeded(RelaycastError, message="the path of key {key} has more than {limit} nodes"):
    """A path of the publisher has more than ``limit`` nodes with a hash."""

    key: SubscribedKey
    limit: int


class NodeReads(Protocol):
    """How a walk reads nodes, and reports ranges of keys that the new trie does not have, in their order.

    What it may not have now raises, and the walk is left.
    """

    def new_node(self, node_hash: bytes) -> Node: ...

    def changed_entry(self, key: SubscribedKey, value: Value) -> bytes: ...

    def old_node(self, node_hash: bytes) -> Node | None: ...

    def absent(self, low: int, high: int) -> None: ...


def decode_known(node_hash: bytes, data: bytes) -> Node:
    """Return the node with these bytes: what PRUNE decodes, VERIFY meets again. Raises ``InvalidNode``."""
    try:
        return decode_known_node(data)
    except CodecError as error:
        raise InvalidNode(node_hash, error.reason, error.offset) from None


class PublisherWalk:
    """Walks keys ``[low, high)`` of ``subscribed``; ``at`` is the key under work, all before it are dealt with.

    ``changed`` gathers key and entry, ``placements`` those met in the new and in the old trie alone. ``unseen`` are the
    prefixes where a node of the old trie is not available.
    """

    __slots__ = ("_max_depth", "_reads", "at", "changed", "placements", "subscribed", "unseen")

    _reads: NodeReads

    def __init__(self, subscribed: SubscribedPaths, *, max_depth: int) -> None:
        self.subscribed = subscribed
        self._max_depth = max_depth
        self.at = 0
        self.changed: list[tuple[SubscribedKey, bytes]] = []
        self.placements = Placements()
        self.unseen: set[bytes] = set()

    def walk(self, reads: NodeReads, low: int, high: int, *, new_root: bytes, old_root: bytes | None) -> None:
        """Deal with keys ``[low, high)``; raises ``TrieDepthExceeded`` and what the ``reads`` raise."""
        self._reads = reads
        try:
            self._visit(low, high, (0, new_root, 0), None if old_root is None else (0, old_root, 0))
        finally:
            del self._reads  # they may hold the walk: a cycle would keep all nodes until a collection
        self.at = high

    def _visit(self, low: int, high: int, new: Side, old: Side) -> None:
        """Deal with keys that both sides lead to."""
        if new == old:
            if new is None:
                self._reads.absent(low, high)
            return
        self.at = low
        if isinstance(new, tuple) and isinstance(old, tuple) and new[0] == old[0]:
            if new[1] != old[1] or new[2] > old[2]:
                self._visit_both(low, high, new, old)
        elif isinstance(new, tuple) and (not isinstance(old, tuple) or new[0] <= old[0]):
            for start, stop, side in self._ways(low, high, new, self._read_new(low, new)):
                self._visit(start, stop, side, old)
        elif isinstance(old, tuple):
            for start, stop, side in self._ways(low, high, old, self._read_old(low, old)):
                self._visit(start, stop, new, side)
        else:
            self._compare(low, new, old)

    def _visit_both(self, low: int, high: int, new: Place, old: Place) -> None:
        new_node = self._read_new(low, new)
        old_node = self._read_old(low, old)
        if isinstance(new_node, Leaf) and isinstance(old_node, Leaf) and new_node.partial == old_node.partial:
            self._compare_leaves(low, high, new[0], new_node, old_node)
            return
        if not (isinstance(new_node, Branch) and isinstance(old_node, Branch) and new_node.partial == old_node.partial):
            for start, stop, side in self._ways(low, high, new, new_node):
                self._visit(start, stop, side, old)
            return
        paths = self.subscribed.paths
        path = paths[low][: new[0]] + new_node.partial
        below, new_above, old_above = len(path) + 1, _nodes_to(new), _nodes_to(old)
        deeper = new_above > old_above
        moved = NIBBLES if deeper else compress(NIBBLES, map(ne, new_node.children, old_node.children))
        for nibble in moved:
            start, stop = under(paths, path + NIBBLE_BYTES[nibble], low, high)
            if start < stop:
                new_child, old_child = new_node.children[nibble], old_node.children[nibble]
                new_side = None if new_child is None else (below, new_child, new_above)
                old_side = None if old_child is None else (below, old_child, old_above)
                self._visit(start, stop, new_side, old_side)

    def _ways(self, low: int, high: int, place: Place, node: Node | None) -> list[tuple[int, int, Side]]:
        """Split the keys by where the ``node`` at ``place`` leads them: all of them, in their order."""
        if node is None or isinstance(node, Empty):
            return [(low, high, None)]
        path = self.subscribed.paths[low][: place[0]] + node.partial
        first, last = under(self.subscribed.paths, path, low, high)
        sides: list[tuple[int, int, Side]] = [(low, first, None)] if low < first else []
        sides += self._branches(first, last, path, node, _nodes_to(place)) if first < last else []
        return [*sides, (last, high, None)] if last < high else sides

    def _branches(self, first: int, last: int, path: bytes, node: Node, above: int) -> list[tuple[int, int, Side]]:
        paths, depth = self.subscribed.paths, len(path)
        assert not isinstance(node, Empty)
        if len(paths[first]) == depth:
            return [(first, last, None if node.value is None else End(node.value))]
        children = node.children if isinstance(node, Branch) else NO_CHILDREN
        sides: list[tuple[int, int, Side]] = []
        for nibble, start, stop in ways(paths, depth, first, last):
            child = children[nibble]
            sides.append((start, stop, None if child is None else (depth + 1, child, above)))
        return sides

    def _read_new(self, low: int, place: Place) -> Node:
        depth, reference, above = place
        if len(reference) != HASH_LENGTH:
            return decode_node(reference)
        if above == self._max_depth:
            raise TrieDepthExceeded(self.subscribed.keys[low], self._max_depth)
        node = self._reads.new_node(reference)
        self.placements.gained.add((self.subscribed.paths[low][:depth], reference))
        return node

    def _read_old(self, low: int, place: Place) -> Node | None:
        depth, reference, _ = place
        if len(reference) != HASH_LENGTH:
            return decode_node(reference)
        node = self._reads.old_node(reference)
        prefix = self.subscribed.paths[low][:depth]
        if node is None:
            self.unseen.add(prefix)
        self.placements.lost.add((prefix, reference))
        return node

    def _compare_leaves(self, low: int, high: int, depth: int, new: Leaf, old: Leaf) -> None:
        paths = self.subscribed.paths
        path = paths[low][:depth] + new.partial
        start, stop = under(paths, path, low, high)
        if start < stop and paths[start] == path:
            self.at = start
            self._compare(start, End(new.value), End(old.value))

    def _compare(self, index: int, new: Side, old: Side) -> None:
        """Both paths of one key have ended: note the entry if there is one and it differs."""
        if not isinstance(new, End):
            self._reads.absent(index, index + 1)
            return
        if isinstance(old, End) and is_same(new.value, old.value):
            return
        key = self.subscribed.keys[index]
        self.changed.append((key, self._reads.changed_entry(key, new.value)))


def _nodes_to(place: Place) -> int:
    """Return how many nodes with a hash there are down to the one at ``place``, it among them."""
    return place[2] + (len(place[1]) == HASH_LENGTH)


def is_same(new: Value, old: Value) -> bool:
    """Return whether two values are equal, be they inside their nodes or outside (a key changes its state version)."""
    return new == old or (type(new) is not type(old) and _digest(new) == _digest(old))


def _digest(value: Value) -> bytes:
    return value.hash if isinstance(value, HashedValue) else blake2_256(value)
