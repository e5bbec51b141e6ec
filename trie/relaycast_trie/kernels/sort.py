"""Orders of byte strings: by eight bytes of each as a number first, then by comparison where those are equal."""

import numpy as np

from relaycast_trie.kernels.compiling import face, kernel
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, Words, copy, int64, load64
from relaycast_trie.kernels.tables import Column, nibble, place, shared_nibbles


@face
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
    """Finish a sort by words, keep only the last of equal strings at the front of ``order``, return how many stay.

    ``ranked`` holds the word of each string in ``order`` and ascends; strings are compared only where words are equal.
    ``spare`` has the length of ``order``.
    """
    count = len(order)
    kept = 0
    start = 0
    while start < count:
        end = start + 1
        while end < count and ranked[end] == ranked[start]:
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
