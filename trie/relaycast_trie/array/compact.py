"""Compact proofs by the kernels; what is out of the ordinary goes to ``CompactProof`` and its errors.

Child tries are out of the ordinary here: a trie that holds, or might hold, their roots is left to the plain codec.
"""

from typing import Any

import numpy as np

from relaycast_trie.array.array_proofs import ArrayProof, Bytes, Offsets, nodes_of
from relaycast_trie.array.columns import strings_in
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX
from relaycast_trie.exceptions import RootMismatch
from relaycast_trie.kernels.build import order_by_height
from relaycast_trie.kernels.compact import decode_levels, encode_walk, leads_to_prefix, link_children, plan_compact
from relaycast_trie.kernels.decode import PLAN
from relaycast_trie.kernels.lanes import new_rooms
from relaycast_trie.kernels.tables import Column
from relaycast_trie.kernels.verify import fill_table, hash_strings, look_up
from relaycast_trie.proofs.compact_proof import CompactProof
from relaycast_trie.proofs.storage_proof import StorageProof

_PREFIX = np.frombuffer(bytearray(CHILD_STORAGE_PREFIX), np.uint8)


class ArrayCompactProof(CompactProof):
    """A compact proof that keeps its nodes one after another; equal to any compact proof with the same nodes."""

    __slots__ = ("_nodes", "arrays")
    _nodes: tuple[bytes, ...] | None
    arrays: tuple[Bytes, Offsets]

    def __init__(self, data: Bytes, offsets: Offsets) -> None:
        object.__setattr__(self, "arrays", (data, offsets))
        object.__setattr__(self, "_nodes", None)

    @property
    def nodes(self) -> tuple[bytes, ...]:
        """The nodes, in walking order."""
        known = self._nodes
        if known is None:
            known = tuple(strings_in(*self.arrays))
            object.__setattr__(self, "_nodes", known)
        return known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompactProof) and self.nodes == other.nodes

    def __hash__(self) -> int:
        return hash((self.nodes,))

    def __reduce__(self) -> Any:
        return ArrayCompactProof, self.arrays


def encode_compact(proof: StorageProof, root: bytes) -> CompactProof:
    """Return what ``CompactProof.encode`` returns, by the kernels where they can."""
    nodes, ends = nodes_of([proof])
    count = int(ends[-1])
    hashes = np.empty(32 * count, np.uint8)
    hash_strings(tuple(nodes), count, hashes)
    table = np.empty(4 << count.bit_length(), np.int32)
    mask = len(table) - 1
    fill_table(hashes, 0, count, table, mask, np.empty(count, np.uint8))
    start = look_up(hashes, table, mask, np.frombuffer(bytearray(root), np.uint8), 0) if len(root) == 32 else -1
    if start < 0:
        return CompactProof.encode(StorageProof(proof.nodes), root)
    plan = np.zeros(PLAN, np.int64)
    out = np.empty(len(nodes.data) + 4 * count + 64, np.uint8)
    offsets = np.empty(count + 4, np.int64)
    stack = np.empty(16 * count + 32, np.int64)
    written = encode_walk(nodes, hashes, table, mask, start, plan, stack, out, offsets)
    if written < 0 or leads_to_prefix(nodes, hashes, table, mask, start, _PREFIX, plan):
        return CompactProof.encode(StorageProof(proof.nodes), root)
    return ArrayCompactProof(out[: int(offsets[written])], offsets[: written + 1])


def decode_compact(compact: CompactProof, expected_root: bytes | None = None) -> tuple[StorageProof, bytes]:
    """Return what ``CompactProof.decode`` returns, by the kernels where they can."""
    if isinstance(compact, ArrayCompactProof):
        data, starts = compact.arrays
        given = Column(data, starts[:-1], (starts[1:] - starts[:-1]).astype(np.int32), -1)
        count = len(starts) - 1
    else:
        given, ends = nodes_of([compact.nodes])
        count = int(ends[-1])
    decoded = _decode(given, count)
    if decoded is None:
        return CompactProof.decode(CompactProof(compact.nodes), expected_root)
    proof, root = decoded
    if expected_root is not None and root != expected_root:
        raise RootMismatch(expected_root, root)
    return proof, root


def _decode(given: Column, count: int) -> tuple[ArrayProof, bytes] | None:
    """Rebuild a trie without child tries; ``None`` when there is more to it."""
    plans = np.zeros(PLAN * count, np.int64)
    parents, heights, left, ends = (np.empty(count, np.int32) for _ in range(4))
    offsets = np.empty(count + 1, np.int64)
    if plan_compact(given, count, plans, parents, heights, left, ends, offsets) != count:
        return None
    order = np.empty(count, np.int32)
    levels = np.zeros(int(heights.max()) + 2, np.int64)
    steps = order_by_height(heights, count, order, levels)
    following = np.empty(2 * count, np.int32)
    link_children(parents, count, following)
    out = np.empty(int(offsets[-1]) + 64, np.uint8)
    hashes = np.empty(32 * count, np.uint8)
    places = np.empty(3 * count, np.int64)
    decode_levels(given, plans, ends, following, order, levels[: steps + 1], out, offsets, hashes, places, new_rooms())
    out = out[: int(offsets[-1])]
    full = Column(out, offsets[:-1], (offsets[1:] - offsets[:-1]).astype(np.int32), -1)
    table = np.empty(4 << count.bit_length(), np.int32)
    mask = len(table) - 1
    fill_table(hashes, 0, count, table, mask, np.empty(count, np.uint8))
    if leads_to_prefix(full, hashes, table, mask, 0, _PREFIX, np.zeros(PLAN, np.int64)):
        return None
    return ArrayProof.of_arrays(out, offsets), hashes[:32].tobytes()
