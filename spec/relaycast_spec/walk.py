"""Chapter 5. The walk: what changed for one key between two tries.

A subscriber knows the root of a publisher's trie that it dealt with last, and keeps the nodes of its subscribed paths
in a cache. The relay chain has a new root. The walk follows the path of one key in both tries, side by side, and stops
as soon as they agree: below the same node everything is the same. Nodes of the new trie that are not in the cache must
be in the proof. Nodes of the old trie come from the cache alone; where it has none, the old trie counts as nothing.

Law: compare the two sides only where the same number of nibbles remains (DECISION: by prefix, not by depth). A trie
changes its shape when keys come and go, so nodes at the same depth may stand for different prefixes.

Source: RFC-0160, "Cache synchronization via dual-trie traversal".
"""

from collections.abc import Callable
from typing import NamedTuple

from relaycast_spec.scale import blake2_256
from relaycast_spec.tries import Node, Place, Side

ReadNode = Callable[[Place], Node]
"""Reads the node at a place, or returns the empty one if it is unknown."""


class Change(NamedTuple):
    """The two tries may differ at the key. ``end`` holds the new value; ``None``: absent from the new trie."""

    end: Node | None


def walk(new: Side, old: Side, read_new: ReadNode, read_old: ReadNode) -> Change | None:
    """Follow a path down both tries. Return ``None`` if both are known to agree on the key, else a ``Change``.

    A ``Change`` without an end may also be a key that both tries lack.

    Scenario: Trie Node Caching / Cache synchronization via dual-trie traversal
    Scenario: Proof Processing / Unsubscribed key paths not accessed
    """
    while isinstance(new, Place) or isinstance(old, Place):
        if isinstance(new, Place) and isinstance(old, Place) and len(new.path) == len(old.path):
            if new.reference == old.reference and new.above <= old.above:
                return None  # the same below; a subtree that moved deeper is walked, so that its depth is checked
            new_node, old_node = read_new(new), read_old(old)
            if not _have_one_shape(new_node, old_node):
                new = new.below(new_node)
                continue
            if not new.path.startswith(new_node.partial):
                return None  # absent from both
            if new.below(new_node) == old.below(old_node) and new.depth <= old.depth:
                return None
            new, old = new.below(new_node), old.below(old_node)
        elif isinstance(new, Place) and _left(new) > _left(old):  # advance one side until both are level again
            new = new.below(read_new(new))
        elif isinstance(old, Place):
            old = old.below(read_old(old))
    if new is not None and _value_hash(new) == _value_hash(old):
        return None
    return Change(new)


def _have_one_shape(new: Node, old: Node) -> bool:
    """Return whether two nodes stand for the same prefix in the same way, so that their children can be compared."""
    are_known = Node() not in (new, old)
    return are_known and new.partial == old.partial and bool(new.children) == bool(old.children)


def _left(side: Side) -> int:
    """Return the number of nibbles that are left; -1 at an end."""
    return len(side.path) if isinstance(side, Place) else -1


def _value_hash(side: Side) -> bytes | None:
    """Return the hash of a value; an external value is already given by its hash."""
    if not isinstance(side, Node) or side.value is None:
        return None
    return side.value if side.hashed else blake2_256(side.value)
