"""A trie of which some nodes are known: its values, its gaps, and which places use which node.

Law: a node is believed for its hash alone. What the known nodes do not show is a gap, never an absence. A gap never
closes: nothing is written below a missing node, and no branch may collapse onto one, so the gaps of a trie are the same
in all of its later versions.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from relaycast_trie.exceptions import InvalidNode, MissingNode, TooManyNodes
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import from_nibbles, to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue, Leaf
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.plain.memory_db import MemoryDB, NodeSource
from relaycast_trie.plain.trie_db import TrieDB


@dataclass(frozen=True, slots=True)
class LoneGap:
    """A branch that ends at ``branch`` (nibbles), all children of which are known but the one at ``path``.

    The branch collapses onto that child when everything else below it goes.
    """

    branch: bytes
    path: bytes
    node_hash: bytes


class Gaps:
    """The missing ``nodes`` of one trie by their path in nibbles, and the missing ``values`` by the path of their key.

    Both are given with their hashes. No missing node stands below another.
    """

    __slots__ = ("_hashes", "_node_paths", "_value_paths", "_values", "lone")

    def __init__(
        self, nodes: Mapping[bytes, bytes], values: Mapping[bytes, bytes], lone: Iterable[LoneGap] = ()
    ) -> None:
        self._hashes = dict(nodes)
        self._values = dict(values)
        self._node_paths = sorted(nodes)
        self._value_paths = sorted(values)
        self.lone = tuple(lone)
        """Gaps that a removal could need."""

    @property
    def nodes(self) -> Mapping[bytes, bytes]:
        """The missing nodes: hashes by path."""
        return self._hashes

    @property
    def values(self) -> Mapping[bytes, bytes]:
        """The missing values: hashes by the path of their key."""
        return self._values

    def check(self, key: bytes) -> None:
        """Raise ``MissingNode`` unless it is known whether there is a value under ``key``, and which."""
        if self._hashes or self._values:
            path = to_nibbles(key)
            if path in self._values:
                raise MissingNode(self._values[path], path)
            self._check_above(path)

    def check_prefix(self, prefix: bytes) -> None:
        """Raise ``MissingNode`` unless every key and value under ``prefix`` is known."""
        self.check_between(prefix, None, prefix)

    def check_between(self, low: bytes, high: bytes | None, prefix: bytes, *, after: bool = False) -> None:
        """Raise ``MissingNode`` where there may be an unknown key under ``prefix`` from ``low`` up to ``high``.

        ``high`` is ``None`` for the end of the prefix; ``after`` leaves out ``low`` itself.
        """
        if not (self._hashes or self._values):
            return
        start, within = to_nibbles(low), to_nibbles(prefix)
        end = None if high is None else to_nibbles(high)
        self._check_above(start)
        for paths, hashes in ((self._node_paths, self._hashes), (self._value_paths, self._values)):
            place = bisect_right(paths, start) if after else bisect_left(paths, start)
            if place < len(paths) and (paths[place].startswith(within) if end is None else paths[place] <= end):
                raise MissingNode(hashes[paths[place]], paths[place])

    def first(self) -> MissingNode:
        """Return the error for the first gap."""
        path = min([*self._node_paths[:1], *self._value_paths[:1]])
        return MissingNode(self._hashes[path] if path in self._hashes else self._values[path], path)

    def _check_above(self, path: bytes) -> None:
        """Raise ``MissingNode`` where a missing node stands at ``path`` or above it."""
        place = bisect_right(self._node_paths, path) - 1
        if place >= 0 and path.startswith(above := self._node_paths[place]):
            raise MissingNode(self._hashes[above], above)

    def __bool__(self) -> bool:
        return bool(self._hashes or self._values)

    def __repr__(self) -> str:
        return f"<Gaps: {len(self._hashes)} nodes and {len(self._values)} values are missing>"


NO_GAPS = Gaps({}, {})


MOST_PLACES = 1 << 22
"""Places that a walk may meet: nodes that share each other could let it go on without an end in sight."""


@dataclass(frozen=True, slots=True)
class StateWitness:
    """Nodes of the state with this ``root``, each by its own hash: those of the top trie, and of child tries."""

    root: bytes
    nodes: dict[bytes, bytes] = field(repr=False)

    @classmethod
    def of_nodes(cls, root: bytes, nodes: Iterable[bytes]) -> "StateWitness":
        """Hash the ``nodes``."""
        digest = MemoryDB().hasher.digest
        return cls(root, {digest(node): node for node in nodes})


@dataclass(frozen=True, slots=True)
class PartialTrie:
    """What is known of the trie with this ``root``.

    ``inline`` are the keys of long values that stand in their nodes, as in state version 0. ``uses`` are the hashes of
    the known nodes and external values, once for each place.
    """

    root: bytes
    values: dict[bytes, bytes] = field(repr=False)
    gaps: Gaps
    inline: set[bytes] = field(repr=False)
    uses: list[bytes] = field(repr=False)


@dataclass(slots=True)
class _Place:
    """A branch on the walk: where it ends, and which of its children can never go."""

    parent: "_Place | None"
    path: bytes = b""
    lasting: int = 0
    """Children below which something is missing, so that they stay, and a missing value of its own."""

    gap: tuple[bytes, bytes] | None = None
    """Path and hash of the last child that is missing itself."""


def explore(db: NodeSource, root: bytes) -> PartialTrie:
    """Return what the nodes in ``db`` show of the trie with this ``root``.

    Raises ``InvalidNode``, and ``TooManyNodes`` for nodes that share each other without end.
    """
    walk = _Walk(db)
    if root != EMPTY_ROOT:
        walk.run(root)
    gaps = Gaps(walk.missing_nodes, walk.missing_values, walk.lone())
    return PartialTrie(root, walk.values, gaps, walk.inline, walk.uses)


class _Walk:
    """One walk over all known nodes, parents before children."""

    def __init__(self, db: NodeSource) -> None:
        self._find = db.get
        self._trie = TrieDB(db, EMPTY_ROOT)
        self.values: dict[bytes, bytes] = {}
        self.inline: set[bytes] = set()
        self.uses: list[bytes] = []
        self.missing_nodes: dict[bytes, bytes] = {}
        self.missing_values: dict[bytes, bytes] = {}
        self._places: list[_Place] = []

    def run(self, root: bytes) -> None:
        stack: list[tuple[bytes, bytes, _Place | None]] = [(b"", root, None)]
        while stack:
            path, reference, parent = stack.pop()
            if len(reference) == HASH_LENGTH:
                if self._find(reference) is None:
                    self._miss(path, reference, parent)
                    continue
                self.uses.append(reference)
            place = _Place(parent)
            self._places.append(place)
            if len(self._places) > MOST_PLACES:
                raise TooManyNodes(MOST_PLACES)
            stack += self._read(path, reference, place)

    def _miss(self, path: bytes, node_hash: bytes, parent: _Place | None) -> None:
        self.missing_nodes[path] = node_hash
        if parent is not None:
            parent.lasting += 1
            parent.gap = path, node_hash

    def _read(self, path: bytes, reference: bytes, place: _Place) -> Iterator[tuple[bytes, bytes, _Place]]:
        """Note the value of a node, and yield its children."""
        node = self._trie.load(reference, path)
        if isinstance(node, Empty):
            raise InvalidNode(reference, "an empty node below the root")
        place.path = path + node.partial
        if node.value is not None:
            self._note(reference, node, place)
        if isinstance(node, Branch):
            for nibble, child in enumerate(node.children):
                if child is not None:
                    yield place.path + bytes([nibble]), child, place

    def _note(self, reference: bytes, node: Leaf | Branch, place: _Place) -> None:
        if len(place.path) % 2:
            raise InvalidNode(reference, f"a value at {len(place.path)} nibbles, where no key ends")
        key, value = from_nibbles(place.path), node.value
        if not isinstance(value, HashedValue):
            assert value is not None
            self.values[key] = value
            if StateVersion.V1.is_external(value):
                self.inline.add(key)
            return
        data = self._find(value.hash)
        if data is None:
            self.missing_values[place.path] = value.hash
            place.lasting += 1
        else:
            self.uses.append(value.hash)
            self.values[key] = data

    def lone(self) -> list[LoneGap]:
        """Return the gaps that a branch would collapse onto, if all else below it went."""
        found = []
        for place in reversed(self._places):  # children before parents
            if place.lasting and place.parent is not None:
                place.parent.lasting += 1
            if place.lasting == 1 and place.gap is not None:
                found.append(LoneGap(place.path, *place.gap))
        return found[::-1]
