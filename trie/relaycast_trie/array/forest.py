"""Many tries in one set of tables: all that a block changes goes through the kernels together.

Nothing is kept by its hash: proofs are written from the tables. Whoever keeps a database beside them is told what a
block brings it and what it may drop.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

import numpy as np

from relaycast_trie.array.arena import NEVER_EXTERNAL, Arena, Changed, Numbers, Retired, prove_columns
from relaycast_trie.array.array_proofs import ArrayProof
from relaycast_trie.array.columns import column_of_list, spread_out, strings_in, strings_of, take
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.kernels.get import copy_references, find_entries, hashed_nodes_of, hashes_of
from relaycast_trie.kernels.tables import REF
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion

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

    def __init__(self, *, state_version: StateVersion = StateVersion.V1, window: int = 1) -> None:
        self.state_version = StateVersion(state_version)
        self.window = window
        none = spread_out(*column_of_list([]))
        self._arena = Arena.build(none, none, 0, external_from=NEVER_EXTERNAL)
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
        old = [self._roots[trie] for trie in changes]
        roots = np.array([node for _, node in old], np.int64)
        self._write(roots, list(changes.values()))
        settled, retired = self._arena.freeze(roots)
        self._open.slots.append(retired)
        short = self._set_roots(list(changes), roots)
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
        hashes, nodes = self._hashed(self._arena.used())
        roots = {node for _, node in self._roots} | {node for block in self._closed for _, node in block.roots}
        short = [reference for node in roots if node and len(reference := self._arena.reference(node)) < HASH_LENGTH]
        return hashes + [blake2_256(node) for node in short], nodes + short

    def get(self, root: bytes, key: bytes) -> bytes | None:
        """Return a value of the trie that has or had this ``root``; raises ``KeyError`` when it cannot be read."""
        wanted, _ = column_of_list([key])
        entry = np.empty(1, np.int32)
        find_entries(self._arena.tables, self._node(root), tuple(wanted), 1, entry)
        return strings_of(take(self._arena.entries.value, entry), 1)[0] if entry[0] >= 0 else None

    def prove(self, root: bytes, keys: Sequence[bytes]) -> ArrayProof:
        """Prove ``keys`` of the trie that has or had this ``root``; raises ``KeyError`` when it cannot be read."""
        return self.prove_all([(root, keys)])

    def prove_all(self, reads: Sequence[tuple[bytes, Sequence[bytes]]]) -> ArrayProof:
        """Prove keys of several tries in one proof, none of them empty unless it is the only one."""
        wanted, _ = column_of_list(list(chain.from_iterable(keys for _, keys in reads)))
        roots = np.array([self._node(root) for root, _ in reads])
        ends = np.array([0, *accumulate(len(keys) for _, keys in reads)])
        data, offsets, _ = prove_columns(self._arena, roots, wanted, ends)
        return ArrayProof.of_arrays(data, offsets)

    def __contains__(self, root: bytes) -> bool:
        return root in self._nodes

    def __len__(self) -> int:
        return self._arena.keys

    def _node(self, root: bytes) -> int:
        return self._nodes[root][0]

    def _write(self, roots: Numbers, changes: Sequence[Changes]) -> None:
        put = [{key: value for key, value in one.items() if value is not None} for one in changes]
        ends = _ends(put)
        if ends[-1]:
            keys, _ = column_of_list(list(chain.from_iterable(put)))
            values, _ = column_of_list(list(chain.from_iterable(one.values() for one in put)))
            external_from = HASH_LENGTH + 1 if self.state_version is StateVersion.V1 else NEVER_EXTERNAL
            self._arena.put(roots, keys, values, ends, external_from=external_from)
        if ends[-1] < sum(map(len, changes)):
            gone = [[key for key, value in one.items() if value is None] for one in changes]
            self._arena.remove(roots, column_of_list(list(chain.from_iterable(gone)))[0], _ends(gone))

    def _set_roots(self, tries: Sequence[int], nodes: Numbers) -> list[bytes]:
        """Note at which nodes tries stand now; return the new roots that are too short to have a hash elsewhere."""
        slots = np.empty(REF * len(nodes), np.uint8)
        copy_references(self._arena.tables, nodes, slots)
        data = slots.tobytes()
        short = []
        for at, trie, node in zip(range(0, len(data), REF), tries, nodes.tolist(), strict=True):
            before = self._roots[trie]
            if node == before[1]:
                continue
            self._open.roots.append(before)
            root = reference = data[at + 1 : at + 1 + (data[at] >> 2)] if node else EMPTY_ROOT
            if len(reference) < HASH_LENGTH:
                root = blake2_256(reference)
                short.append(reference)
            self._roots[trie] = root, node
            self._nodes.setdefault(root, []).append(node)
        return short

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


def _ends(groups: Iterable[Sequence[bytes] | Mapping[bytes, bytes]]) -> Numbers:
    return np.fromiter(accumulate(map(len, groups)), np.int64)
