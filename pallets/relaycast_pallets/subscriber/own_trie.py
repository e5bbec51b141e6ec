"""What a block carries of the parachain's own state: nodes of its sealed trie, each once.

Reading a key takes the nodes on its path and its value, writing one takes the path alone. Removing one may leave a
branch with a single child, and then takes that child too. The trie is the one that the last block sealed: collator and
chain have the same, and what was written since is in no proof.
"""

from collections.abc import Iterable
from typing import NamedTuple

from relaycast_pallets.frame.state import State
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue, Value
from relaycast_trie.node_codec import decode_known_node

Place = tuple[bytes, int]
"""A child of a branch: the branch's path, and the child's nibble."""


class Load(NamedTuple):
    """What one step adds to a block: ``size`` bytes of nodes that it does not carry yet."""

    size: int
    nodes: tuple[bytes, ...]
    going: tuple[Place, ...] = ()
    """Children that go with the key, if it goes."""


class OwnTrie:
    """The sealed top trie of ``state``, and what of it a block carries so far."""

    def __init__(self, state: State) -> None:
        self._nodes, self._root = state.db, state.root
        self._carried: set[bytes] = set()
        self._going: dict[bytes, set[int]] = {}

    def path(self, key: bytes) -> Load:
        """Return what looking for ``key``, or writing it, takes."""
        references, _, _ = self._walk(key)
        return self._load(references)

    def entry(self, key: bytes) -> Load:
        """Return what reading ``key`` takes, and removing it."""
        references, branches, value = self._walk(key)
        if isinstance(value, HashedValue):
            references.append(value.hash)
        return self._with_removal(references, branches, value)

    def removal(self, key: bytes) -> Load:
        """Return what removing ``key`` unread takes."""
        return self._with_removal(*self._walk(key))

    def carry(self, load: Load) -> None:
        """Count a load as carried."""
        self._carried.update(load.nodes)
        for path, nibble in load.going:
            self._going.setdefault(path, set()).add(nibble)

    def _load(self, references: Iterable[bytes], going: tuple[Place, ...] = ()) -> Load:
        new = tuple(dict.fromkeys(it for it in references if len(it) == HASH_LENGTH and it not in self._carried))
        return Load(sum(len(self._nodes.get(it) or b"") for it in new), new, going)

    def _walk(self, key: bytes) -> tuple[list[bytes], list[tuple[bytes, Branch, int]], Value | None]:
        """Return the nodes on the path of ``key``, its branches with their ways, and the value at its end."""
        path, depth, reference = to_nibbles(key), 0, self._root
        references: list[bytes] = []
        branches: list[tuple[bytes, Branch, int]] = []
        while True:
            data = self._nodes.get(reference) if len(reference) == HASH_LENGTH else reference
            if data is None:
                return references, branches, None
            references.append(reference)
            node, above = decode_known_node(data), depth
            if isinstance(node, Empty) or not path.startswith(node.partial, depth):
                return references, branches, None
            depth += len(node.partial)
            if depth == len(path):
                return references, branches, node.value
            child = node.children[path[depth]] if isinstance(node, Branch) else None
            if child is None or not isinstance(node, Branch):
                return references, branches, None
            branches.append((path[:above], node, path[depth]))
            depth, reference = depth + 1, child

    def _with_removal(
        self, references: list[bytes], branches: list[tuple[bytes, Branch, int]], value: Value | None
    ) -> Load:
        """Add the child that a branch is left with, from the lowest branch up as far as branches go altogether."""
        if value is None:
            return self._load(references)
        going: list[Place] = []
        for path, branch, nibble in reversed(branches):
            going.append((path, nibble))
            gone = self._going.get(path, set()) | {nibble}
            left = [child for index, child in enumerate(branch.children) if child is not None and index not in gone]
            if left or branch.value is not None:
                if len(left) == 1 and branch.value is None:
                    references.append(left[0])
                break
        return self._load(references, tuple(going))
