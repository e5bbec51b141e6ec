"""The order of byte strings, and the shape of a whole trie from sorted keys, in one pass over neighbours.

Strings are sorted by some bytes of each as a number first, then by comparison where those are equal. How many nibbles
a key shares with the one before it says where the two part, and there stands a branch. Branches stay open on a stack
until a key parts higher up. The order of hashing comes out of it too: by height, children first.
"""

import numpy as np

from relaycast_trie.kernels.compiling import face, inlined, kernel
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, Words, copy, int64, load64
from relaycast_trie.kernels.tables import (
    DEPTH,
    NO_START,
    ROW,
    SAMPLE,
    START,
    VALUED,
    WAYS,
    Branches,
    Column,
    Entries,
    nibble,
    place,
    shared_nibbles,
)


@kernel
def take_words(column: Column, skip: int, words: Words) -> None:
    """Write the eight bytes of each string after its first ``skip`` as a big-endian number, zeros for missing bytes."""
    for i in range(len(words)):
        at, size = place(column, i)
        if skip + 8 <= size:
            words[i] = load64(column.data, at + skip)
            continue
        word = np.uint64(0)
        for byte in range(skip, skip + 8):
            word <<= np.uint64(8)
            if byte < size:
                word |= np.uint64(column.data[at + byte])
        words[i] = word


@inlined
def _index_bits(count: int) -> int:
    """Return how many bits hold any index below ``count``."""
    bits = int64(0)
    while count >> bits:
        bits += 1
    return bits


@face
def rank_strings(column: Column, most: int, words: Words) -> None:
    """Write numbers that sort as the strings do, up to ties; the lowest bits of each are the index of its string.

    The bits above are the first of the eight bytes in which the strings, of ``most`` bytes, are not all equal: keys of
    storage share long prefixes.
    """
    skip, differs = int64(-8), np.uint64(0)
    while not differs and (skip < 0 or skip + 8 < most):
        skip += 8
        take_words(column, skip, words)
        for i in range(len(words)):
            differs |= words[i] ^ words[0]
    bits = np.uint64(_index_bits(len(words)))
    for i in range(len(words)):
        words[i] = words[i] >> bits << bits | np.uint64(i)


@kernel
def _compare(column: Column, left: int, right: int) -> int:
    """Return -1, 0 or 1: whether string ``left`` of a column is less than, equal to or greater than ``right``."""
    left_at, left_size = place(column, left)
    right_at, right_size = place(column, right)
    shared = shared_nibbles(column.data, left_at, left_size, column.data, right_at, right_size)
    if shared == 2 * left_size:
        return 0 if left_size == right_size else -1
    if shared == 2 * right_size:
        return 1
    return -1 if nibble(column.data, left_at, shared) < nibble(column.data, right_at, shared) else 1


@kernel
def _is_before(column: Column, left: int, right: int) -> bool:
    """Return whether string ``left`` comes first: it is less, or equal and earlier in the column."""
    order = _compare(column, left, right)
    return order < 0 or (order == 0 and left < right)


@kernel
def _sort_run(column: Column, order: Int32s, spare: Int32s, start: int, end: int) -> None:
    """Merge sort ``order[start:end]`` by the strings it names; fast where it is nearly sorted."""
    width = 1
    while width < end - start:
        for low in range(start, end - width, 2 * width):
            middle = low + width
            high = min(low + 2 * width, end)
            if _is_before(column, order[middle - 1], order[middle]):
                continue
            i, j = low, middle
            for k in range(low, high):
                if j == high or (i < middle and _is_before(column, order[i], order[j])):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
            for k in range(low, high):
                order[k] = spare[k]
        width *= 2


@face
def settle_ties(column: Column, ranked: Words, order: Int32s, spare: Int32s) -> int:
    """Write the sorted order to ``order``, of equal strings only the last; return how many these are.

    ``ranked`` is what ``rank_strings`` wrote, sorted; strings are compared only where the bits above the index are
    equal. ``order`` and ``spare`` have its length.
    """
    count = len(order)
    bits = np.uint64(_index_bits(count))
    for i in range(count):
        order[i] = int64(ranked[i] ^ ranked[i] >> bits << bits)
    kept = 0
    start = 0
    while start < count:
        end = start + 1
        while end < count and ranked[end] >> bits == ranked[start] >> bits:
            end += 1
        if end - start > 1:
            _sort_run(column, order, spare, start, end)
        for i in range(start, end):
            if i + 1 < end and _compare(column, order[i], order[i + 1]) == 0:
                continue
            order[kept] = order[i]
            kept += 1
        start = end
    return kept


@face
def take_strings(column: Column, order: Int32s, data: Bytes, offsets: Int64s) -> None:
    """Copy string ``order[i]`` of a column to ``data[offsets[i]]`` on; a negative number is skipped."""
    for i in range(len(order)):
        if order[i] >= 0:
            at, size = place(column, order[i])
            copy(data, offsets[i], column.data, at, size)


@face
def measure_strings(column: Column, order: Int32s, offsets: Int64s) -> None:
    """Write where the strings ``order`` begin and the last ends when they lie one after another.

    ``offsets`` has one number more than ``order``; a negative number stands for no bytes.
    """
    offsets[0] = int64(0)
    for i in range(len(order)):
        size = place(column, order[i])[1] if order[i] >= 0 else 0
        offsets[i + 1] = offsets[i] + size


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
