"""Making proofs in arrays: many in one call, from the tables of an arena."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relaycast_trie.array.arena import Arena
from relaycast_trie.array.array_proofs import ArrayProof
from relaycast_trie.kernels import at_once
from relaycast_trie.kernels.distinct import drop_repeated
from relaycast_trie.kernels.get import GROUP, collect_proofs, write_nodes
from relaycast_trie.kernels.tables import Column

Numbers = npt.NDArray[np.int64]

NODES_A_KEY = 8
"""Hashed nodes of a key for which there is room at first."""

FEW_KEYS = 64
"""Keys up to which a proof is made in one call."""

NODES_A_CALL = 256
"""Nodes that are written at a time where only their places are known: room is made for as many of the longest."""


class ProofColumns(NamedTuple):
    """Many proofs: all nodes one after another, the offsets of nodes in the data, and where each proof's nodes end.

    The nodes of proof ``p`` are those from ``ends[p]`` to ``ends[p + 1]``.
    """

    data: npt.NDArray[np.uint8]
    offsets: Numbers
    ends: Numbers

    def proofs(self) -> list[ArrayProof]:
        """Return the proofs one by one; they share the data."""
        ends = self.ends.tolist()
        starts = self.offsets[self.ends].tolist()
        return [
            ArrayProof.of_arrays(
                self.data[starts[proof] : starts[proof + 1]],
                self.offsets[ends[proof] : ends[proof + 1] + 1] - starts[proof],
            )
            for proof in range(len(ends) - 1)
        ]


def prove_few(arena: Arena, root: int, keys: list[bytes]) -> ArrayProof | None:
    """Return in one call what reading ``keys`` below the node ``root`` touches; ``None`` where ``prove_columns`` can.

    References are settled.
    """
    if root == 0:
        return None
    count, data, offsets = at_once.prove_at_once(arena.tables, root, arena.longest_node, id(keys), id(bytes))
    return ArrayProof.of_arrays(data, offsets) if count >= 0 else None


class ProofPlaces(NamedTuple):
    """Many proofs as places of a trie: those of proof ``p`` go from ``ends[p]`` to ``ends[p + 1]``."""

    places: Numbers
    ends: Numbers


def prove_columns(arena: Arena, roots: Numbers, keys: Column, ends: Numbers, *, distinct: bool = False) -> ProofColumns:
    """Return what reading the keys from ``ends[p]`` to ``ends[p + 1]`` below the node ``roots[p]`` touches.

    References are settled. Keys with equal values may have equal nodes, of which ``distinct`` keeps one. Of the empty
    trie, the root 0, anything that is read touches the empty node.
    """
    if _are_empty(roots):
        nodes = (ends[1:] > ends[:-1]).astype(np.int64)
        count = int(nodes.sum())
        return ProofColumns(np.zeros(count, np.uint8), np.arange(count + 1), np.append(0, np.cumsum(nodes)))
    nodes, node_ends, bound = _places(arena, roots, keys, ends, distinct)
    data, offsets = np.empty(bound + arena.longest_node, np.uint8), np.empty(len(nodes) + 1, np.int64)
    write_nodes(arena.tables, nodes, len(nodes), data, offsets)
    return ProofColumns(data[: int(offsets[-1])], offsets, node_ends)


def prove_places(arena: Arena, roots: Numbers, keys: Column, ends: Numbers) -> ProofPlaces:
    """Return where the nodes of ``prove_columns`` stand, each node once in a proof; the empty node stands at 0."""
    if _are_empty(roots):
        counts = (ends[1:] > ends[:-1]).astype(np.int64)
        return ProofPlaces(np.zeros(int(counts.sum()), np.int64), np.append(0, np.cumsum(counts)))
    nodes, node_ends, _ = _places(arena, roots, keys, ends, distinct=True)
    return ProofPlaces(nodes.copy(), node_ends)


def nodes_at(arena: Arena, places: Numbers) -> tuple[npt.NDArray[np.uint8], Numbers]:
    """Return the nodes at these places one after another, and their offsets; places are as ``prove_places`` has them.

    INVARIANT: every place was returned for this arena as it is; the kernel reads whatever it is told to.
    """
    if arena.root == 0:
        return np.zeros(len(places), np.uint8), np.arange(len(places) + 1)
    parts, sizes = [np.zeros(0, np.uint8)], [np.zeros(1, np.int64)]
    for first in range(0, len(places), NODES_A_CALL):
        some = places[first : first + NODES_A_CALL]
        data, offsets = np.empty((len(some) + 1) * arena.longest_node, np.uint8), np.empty(len(some) + 1, np.int64)
        write_nodes(arena.tables, some, len(some), data, offsets)
        parts.append(data[: int(offsets[-1])].copy())
        sizes.append(np.diff(offsets))
    return np.concatenate(parts), np.cumsum(np.concatenate(sizes))


def _are_empty(roots: Numbers) -> bool:
    empty = roots == 0
    if empty.any() and not empty.all():
        raise ValueError("proofs of empty tries and of others are not made together")
    return bool(empty.any())


def _places(arena: Arena, roots: Numbers, keys: Column, ends: Numbers, distinct: bool) -> tuple[Numbers, Numbers, int]:
    """Return where nodes stand, where those of each proof end, and how many bytes they have at most."""
    room, bound = NODES_A_KEY, -1
    while bound < 0:
        rooms = _powers_of_two(room * (ends[1:] - ends[:-1]) + 2 * GROUP)
        nodes = np.empty(int(rooms.sum()), np.int64)
        table = np.empty(2 * int(rooms.max(initial=0)), np.int64)
        node_ends = np.empty(len(ends), np.int64)
        bound = collect_proofs(arena.tables, roots, tuple(keys), ends, rooms, table, nodes, node_ends)
        room *= 4
    used = drop_repeated(arena.tables, nodes, node_ends, table) if distinct else int(node_ends[-1])
    return nodes[:used], node_ends, bound


def _powers_of_two(least: Numbers) -> Numbers:
    """Return the powers of two that are at least so much; for numbers from 2 to 2^53."""
    return np.left_shift(1, np.frexp(least - 1)[1].astype(np.int64))
