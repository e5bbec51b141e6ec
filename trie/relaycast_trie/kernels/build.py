"""The shape of a whole trie from sorted keys, in one pass over neighbours.

How many nibbles a key shares with the one before it says where the two part, and there stands a branch. Branches stay
open on a stack until a key parts higher up. The order of hashing comes out of it too: by height, children first.
"""

import numpy as np

from relaycast_trie.kernels.compiling import face, inlined
from relaycast_trie.kernels.memory import Int32s, Int64s, int64
from relaycast_trie.kernels.tables import (
    DEPTH,
    NO_START,
    ROW,
    SAMPLE,
    START,
    VALUED,
    WAYS,
    Branches,
    Entries,
    nibble,
    place,
    shared_nibbles,
)

UNSORTED = -1
FULL = -2


@inlined
def _attach(entries: Entries, branches: Branches, heights: Int32s, node: int, parent: int, key_at: int) -> None:
    """Make ``node`` a child of the branch ``parent``, on the way that the key at ``key_at`` takes from there.

    The child's partial key starts one nibble below the branch, and the branch stands above the child in ``heights``.
    """
    depth = branches.row[parent, DEPTH]
    way = nibble(entries.key.data, key_at, depth)
    branches.row[parent, way] = node
    branches.row[parent, WAYS] |= np.int32(1) << way
    height = np.int32(0)
    if node > 0:
        entries.start[node - 1] = depth + 1
    else:
        branches.row[-node - 1, START] = depth + 1
        height = heights[-node - 1]
    heights[parent] = max(heights[parent], height + np.int32(1))


@face
def build_branches(
    entries: Entries, count: int, branches: Branches, heights: Int32s, stack: Int32s, result: Int64s
) -> int:
    """Fill ``branches`` for the first ``count`` entries; return how many there are.

    Each entry's ``start`` is written too. ``heights`` gets a number for each branch: 1 above entries only, otherwise
    one more than its highest child. ``result[0]`` becomes the root's node. ``stack`` has room for one number more than
    the longest key has nibbles. Returns ``UNSORTED`` when the keys do not strictly ascend, and ``FULL`` when the
    branches do not fit in their table.
    """
    used = 0
    top = -1
    result[0] = 0
    at, size = place(entries.key, 0) if count else (0, 0)
    for i in range(1, count + 1):
        shared = int64(-1)
        next_at, next_size = at, size
        if i < count:
            next_at, next_size = place(entries.key, i)
            shared = shared_nibbles(entries.key.data, at, size, entries.key.data, next_at, next_size)
            if shared == 2 * next_size:
                return UNSORTED
            if shared < 2 * size and nibble(entries.key.data, at, shared) > nibble(entries.key.data, next_at, shared):
                return UNSORTED
        node = int64(i)
        while top >= 0 and branches.row[stack[top], DEPTH] > shared:
            parent = int64(stack[top])
            _attach(entries, branches, heights, node, parent, at)
            node = -(parent + 1)
            top -= 1
        if shared < 0:
            result[0] = node
        elif top >= 0 and branches.row[stack[top], DEPTH] == shared:
            _attach(entries, branches, heights, node, int64(stack[top]), at)
        else:
            if used == len(branches.row):
                return FULL
            for cell in range(ROW):
                branches.row[used, cell] = 0
            branches.row[used, DEPTH] = shared
            branches.row[used, SAMPLE] = i - 1
            heights[used] = 0
            if shared == 2 * size:
                branches.row[used, VALUED] = i
                entries.start[i - 1] = NO_START
                heights[used] = 1
            else:
                _attach(entries, branches, heights, node, int64(used), at)
            top += 1
            stack[top] = used
            used += 1
        at, size = next_at, next_size
    if result[0] > 0:
        entries.start[result[0] - 1] = 0
    elif result[0] < 0:
        branches.row[-result[0] - 1, START] = 0
    return used


@face
def order_by_height(heights: Int32s, count: int, order: Int32s, levels: Int64s) -> int:
    """Write the numbers of the first ``count`` nodes to ``order``, low ones first; return the number of levels.

    There is a level for every height from 0 to the highest, and one number more in ``levels``, which is all zero
    before. The nodes of height ``h`` are those from ``order[levels[h]]`` to ``order[levels[h + 1]]``, in ascending
    order.
    """
    steps = int64(0)
    for i in range(count):
        steps = max(steps, int64(heights[i]) + 1)
        levels[heights[i]] += 1
    for height in range(1, steps):
        levels[height] += levels[height - 1]
    levels[steps] = count
    for i in range(count - 1, -1, -1):
        place = heights[i]
        levels[place] -= 1
        order[levels[place]] = i
    return steps
