"""Proofs that hold each node once: places of a trie with equal content have equal nodes, and values that are hashed."""

import numpy as np

from relaycast_trie.kernels.memory import Bytes, Int64s, inlined, int64, kernel, load64
from relaycast_trie.kernels.tables import shared_nibbles


@inlined
def _slot(data: Bytes, at: int, size: int, mask: int) -> int:
    """Return where a node is looked for first: by how it begins and ends, and its size."""
    code = int64(size)
    if size >= 8:
        begin, end = load64(data, at), load64(data, at + size - 8)
        code ^= int64(begin >> np.uint64(16)) ^ int64(end >> np.uint64(16))
    return (code & 0xFFFF_FFFF) * 0x1E37_79B1 >> 12 & mask


@kernel
def drop_repeated(data: Bytes, offsets: Int64s, ends: Int64s, table: Int64s) -> int:
    """Keep of equal nodes of a proof the first one, move the others together, and return how many are left in all.

    The nodes from ``ends[p]`` to ``ends[p + 1]`` are proof ``p``; ``offsets`` are theirs in the data. ``table`` has one
    place, and four for each node of the largest proof.
    """
    kept, to, at, first = int64(0), int64(0), int64(0), int64(0)
    for proof in range(len(ends) - 1):
        last = int64(ends[proof + 1])
        places = int64(1)
        while places < 2 * (last - first):
            places <<= 1
        table[:places] = 0
        for node in range(first, last):
            end = int64(offsets[node + 1])
            size = end - at
            slot = _slot(data, at, size, places - 1)
            is_new = True
            while table[slot] != 0:
                other = int64(offsets[table[slot] - 1])
                other_size = int64(offsets[table[slot]]) - other
                if other_size == size and shared_nibbles(data, other, size, data, at, size) == 2 * size:
                    is_new = False
                    break
                slot = slot + 1 & places - 1
            if is_new:
                if to < at:
                    for i in range(size):
                        data[to + i] = data[at + i]
                kept += 1
                to += size
                offsets[kept] = to
                table[slot] = kept
            at = end
        ends[proof + 1] = kept
        first = last
    return kept
