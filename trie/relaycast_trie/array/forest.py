"""Many tries in one set of tables: all that a block changes goes through the kernels together.

Several forests may stand in the same tables, so that blocks of several chains go through the kernels together too.
Nothing is kept by its hash: proofs are written from the tables. Whoever keeps a database beside them is told what a
block brings it and what it may drop.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from relaycast_trie.array.arena import NEVER_EXTERNAL, Arena, Changed, Numbers, Retired, Slots32
from relaycast_trie.array.array_proofs import HashedProof
from relaycast_trie.array.columns import column_of_list, spread_out, strings_in, strings_of, take
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.kernels.get import READ, copy_references, find_entries, hashed_nodes_of, hashes_of
from relaycast_trie.kernels.tables import REF
from relaycast_trie.kernels.witness import GONE, PUT, witnesses_of
from relaycast_trie.node_codec import EMPTY_NODE, EMPTY_ROOT, StateVersion
from relaycast_trie.proofs.storage_proof import StorageProof

Changes = Mapping[bytes, bytes | None]
"""New values by key; ``None`` removes."""

Hashed = tuple[list[bytes], list[bytes]]
"""Hashes, and the nodes and external values that have them; what is used in several places comes several times."""


@dataclass(frozen=True, slots=True)
class _Replaced:
    """What the seals of a block replaced: slots, and roots with their nodes."""

    slots: list[Retired] = field(default_factory=list)
    roots: list[tuple[bytes, int]] = field(default_factory=list)


class ArrayForest:
    """Tries by number, from 0 on; each is empty to begin with.

    A block is one ``seal`` or several, and a ``close``. The roots of the last ``window`` blocks can be read.
    """

    __slots__ = ("_arena", "_closed", "_nodes", "_open", "_roots", "state_version", "window")

    def __init__(
        self, *, state_version: StateVersion = StateVersion.V1, window: int = 1, beside: "ArrayForest | None" = None
    ) -> None:
        """Make a forest in tables of its own, or in those of the forest ``beside`` it."""
        self.state_version = StateVersion(state_version)
        self.window = window
        self._arena: Arena = _no_tries() if beside is None else beside._arena
        self._roots: list[tuple[bytes, int]] = []
        self._nodes: dict[bytes, list[int]] = {EMPTY_ROOT: [0]}
        self._open = _Replaced()
        self._closed: deque[_Replaced] = deque()

    def add(self) -> int:
        """Return the number of one more trie."""
        self._roots.append((EMPTY_ROOT, 0))
        self._nodes[EMPTY_ROOT].append(0)
        return len(self._roots) - 1

    def root(self, trie: int) -> bytes:
        """Return the root of a trie as it was sealed last."""
        return self._roots[trie][0]

    def seal(self, changes: Mapping[int, Changes], *, told: bool) -> Hashed:
        """Carry the changes of several tries into them and return, if it is to be ``told``, what is new."""
        if not changes:
            return [], []
        settled, short = seal_together([Sealing(self, trie, changed) for trie, changed in changes.items()])
        if not told:
            return [], []
        hashes, nodes = self._hashed(self._arena.changed(settled))
        return hashes + [blake2_256(node) for node in short], nodes + short

    def close(self, *, told: bool) -> bytes:
        """End a block. If ``told``, return the hashes that are no longer read, one after another."""
        self._closed.append(self._open)
        self._open = _Replaced()
        dropped = []
        while len(self._closed) >= self.window:
            old = self._closed.popleft()
            if told:
                dropped.append(self._dropped_with(old))
            self._release(old)
        return b"".join(dropped)

    def forget_open(self) -> None:
        """Let nobody read what the open block replaced: it was never meant to be seen."""
        self._release(self._open)
        self._open = _Replaced()

    @property
    def closed(self) -> int:
        """How many blocks there are that replaced something which can still be read."""
        return len(self._closed)

    def pending(self) -> list[bytes]:
        """Return the hashes that will be dropped with those blocks, the oldest first."""
        return [self._dropped_with(block) for block in self._closed]

    def hashed(self) -> Hashed:
        """Return everything that can be read now; no block is open."""
        roots = {node for _, node in self._roots} | {node for block in self._closed for _, node in block.roots}
        hashes, nodes = self._hashed(self._arena.below(np.array(sorted(roots), np.int64)))
        short = [reference for node in roots if node and len(reference := self._arena.reference(node)) < HASH_LENGTH]
        return hashes + [blake2_256(node) for node in short], nodes + short

    def get(self, root: bytes, key: bytes) -> bytes | None:
        """Return a value of the trie that has or had this ``root``; raises ``KeyError`` when it cannot be read."""
        wanted, _ = column_of_list([key])
        entry = np.empty(1, np.int32)
        find_entries(self._arena.tables, self._node(root), tuple(wanted), 1, entry)
        return strings_of(take(self._arena.entries.value, entry), 1)[0] if entry[0] >= 0 else None

    def prove(self, root: bytes, keys: Sequence[bytes]) -> StorageProof:
        """Prove ``keys`` of the trie that has or had this ``root``; raises ``KeyError`` when it cannot be read."""
        return _touched(
            self._arena, [(root, self._node(root))], list(keys), bytearray([READ]) * len(keys), [len(keys)]
        )[0]

    def leave(self) -> None:
        """Give all slots back to the tables: nobody reads these tries any more."""
        roots = {node for _, node in self._roots} | {node for block in self._closed for _, node in block.roots}
        self._arena.release(*self._arena.below(np.array(sorted(roots), np.int64)))

    def __contains__(self, root: bytes) -> bool:
        return root in self._nodes

    def __len__(self) -> int:
        return self._arena.keys

    def _node(self, root: bytes) -> int:
        return self._nodes[root][0]

    def _release(self, block: _Replaced) -> None:
        for slots in block.slots:
            slots.release()
        for root, node in block.roots:
            nodes = self._nodes[root]
            nodes.remove(node)
            if not nodes:
                del self._nodes[root]

    def _hashed(self, slots: Changed) -> Hashed:
        hashes, data, offsets = hashed_nodes_of(self._arena.tables, *slots, self._arena.longest_node)
        return strings_in(hashes, np.arange(0, len(hashes) + 1, HASH_LENGTH)), strings_in(data, offsets)

    def _dropped_with(self, block: _Replaced) -> bytes:
        arena = self._arena
        hashes = [hashes_of(arena.tables, slots.entries, slots.branches).tobytes() for slots in block.slots]
        short = [root for root, node in block.roots if node and len(arena.reference(node)) < HASH_LENGTH]
        return b"".join(hashes + short)


class Sealing(NamedTuple):
    """Changes of one ``trie`` of a ``forest``; ``reads`` and ``seeks`` are what its witness covers beside them."""

    forest: ArrayForest
    trie: int
    changes: Changes
    reads: Collection[bytes] = ()
    seeks: Collection[bytes] = ()


def witnesses(sealings: Sequence[Sealing]) -> list[StorageProof]:
    """Return for each trie, before it is sealed, the nodes that reading, seeking and changing its keys touches.

    All forests stand in the same tables. The nodes are those that ``update_trie`` records: external values come of keys
    that are read.
    """
    keys, uses, ends = list[bytes](), bytearray(), list[int]()
    for _, _, changes, reads, seeks in sealings:
        some = sorted({*changes, *reads, *seeks})
        keys += some
        uses += bytes(
            [
                (READ if key in reads else 0) | (0 if key not in changes else GONE if changes[key] is None else PUT)
                for key in some
            ]
        )
        ends.append(len(keys))
    return _touched(sealings[0].forest._arena, [it.forest._roots[it.trie] for it in sealings], keys, uses, ends)


def _touched(
    arena: Arena, tries: Sequence[tuple[bytes, int]], keys: list[bytes], uses: bytearray, ends: Sequence[int]
) -> list[StorageProof]:
    """Return what using keys touches of each trie, which has a root and its node; see ``witnesses_of``."""
    data, offsets, hashes, node_ends = witnesses_of(
        arena.tables,
        np.array([node for _, node in tries], np.int64),
        tuple(column_of_list(keys)[0]),
        np.frombuffer(uses, np.uint8),
        np.array(ends, np.int64),
        arena.longest_node,
        2 * arena.longest_key + 2,
    )
    places, proofs = node_ends.tolist(), list[StorageProof]()
    starts = offsets[node_ends].tolist()
    for at, ((root, node), end) in enumerate(zip(tries, ends, strict=True)):
        if not node:
            asks = end > (ends[at - 1] if at else 0)
            proofs.append(StorageProof.of_recorded({EMPTY_ROOT: EMPTY_NODE} if asks else {}))
            continue
        first, last, start = places[at], places[at + 1], starts[at]
        its_hashes = hashes[HASH_LENGTH * first : HASH_LENGTH * last]
        its_hashes[:HASH_LENGTH] = np.frombuffer(root, np.uint8)[: len(its_hashes)]
        its_offsets = offsets[first : last + 1] - start
        proofs.append(HashedProof.of_hashed(data[start : starts[at + 1]], its_offsets, its_hashes))
    return proofs


def seal_together(sealings: Sequence[Sealing]) -> tuple[Slots32, list[bytes]]:
    """Carry changes into tries that stand in the same tables, each once, of forests of one state version.

    Returns what was hashed, and the new roots that are too short to have a hash elsewhere.
    """
    arena, version = sealings[0].forest._arena, sealings[0].forest.state_version
    roots = np.array([it.forest._roots[it.trie][1] for it in sealings], np.int64)
    put = [{key: value for key, value in it.changes.items() if value is not None} for it in sealings]
    ends, retired = _ends(put), list[Numbers]()
    if ends[-1]:
        keys, _ = column_of_list(list(chain.from_iterable(put)))
        values, _ = column_of_list(list(chain.from_iterable(one.values() for one in put)))
        external_from = HASH_LENGTH + 1 if version is StateVersion.V1 else NEVER_EXTERNAL
        retired.append(arena.put(roots, keys, values, ends, external_from=external_from))
    if ends[-1] < sum(len(it.changes) for it in sealings):
        gone = [[key for key, value in it.changes.items() if value is None] for it in sealings]
        retired.append(arena.remove(roots, column_of_list(list(chain.from_iterable(gone)))[0], _ends(gone)))
    settled, slots = arena.freeze(roots)
    bounds = np.concatenate([np.zeros((1, 2), np.int64), *retired]).tolist()
    for step in range(len(retired)):
        for at, it in enumerate(sealings, step * len(sealings)):
            (entry, branch), (entry_end, branch_end) = bounds[at], bounds[at + 1]
            if entry < entry_end or branch < branch_end:
                its = Retired(arena, slots.entries[entry:entry_end], slots.branches[branch:branch_end])
                it.forest._open.slots.append(its)
    return settled, _set_roots(sealings, roots)


def _set_roots(sealings: Sequence[Sealing], nodes: Numbers) -> list[bytes]:
    """Note at which nodes tries stand now; return the new roots that are too short to have a hash elsewhere."""
    slots = np.empty(REF * len(nodes), np.uint8)
    copy_references(sealings[0].forest._arena.tables, nodes, slots)
    data = slots.tobytes()
    short = []
    for at, (forest, trie, *_), node in zip(range(0, len(data), REF), sealings, nodes.tolist(), strict=True):
        before = forest._roots[trie]
        if node == before[1]:
            continue
        forest._open.roots.append(before)
        root = reference = data[at + 1 : at + 1 + (data[at] >> 2)] if node else EMPTY_ROOT
        if len(reference) < HASH_LENGTH:
            root = blake2_256(reference)
            short.append(reference)
        forest._roots[trie] = root, node
        forest._nodes.setdefault(root, []).append(node)
    return short


def _no_tries() -> Arena:
    none = spread_out(*column_of_list([]))
    return Arena.build(none, none, 0, external_from=NEVER_EXTERNAL)


def _ends(groups: Iterable[Sequence[bytes] | Mapping[bytes, bytes]]) -> Numbers:
    return np.fromiter(accumulate(map(len, groups)), np.int64)
