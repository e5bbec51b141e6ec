"""Orders of byte strings: merge sort by comparison, for what a sort of the first eight bytes leaves undecided."""

from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, int64, kernel
from relaycast_trie.kernels.tables import Column, nibble, place, shared_nibbles


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
def sort_order(column: Column, order: Int32s, spare: Int32s) -> None:
    """Sort ``order`` by the strings it names, keeping equal ones as they come; fast where it is nearly sorted.

    ``spare`` is room of the same length.
    """
    count = len(order)
    width = 1
    while width < count:
        for low in range(0, count - width, 2 * width):
            middle = low + width
            high = min(low + 2 * width, count)
            if _compare(column, order[middle - 1], order[middle]) <= 0:
                continue
            i, j = low, middle
            for k in range(low, high):
                if j == high or (i < middle and _compare(column, order[i], order[j]) <= 0):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
            for k in range(low, high):
                order[k] = spare[k]
        width *= 2


@kernel
def unique_last(column: Column, order: Int32s) -> int:
    """Keep the last of equal neighbours in a sorted ``order``, moved to its front; return how many stay."""
    kept = 0
    for i in range(len(order)):
        if i + 1 < len(order) and _compare(column, order[i], order[i + 1]) == 0:
            continue
        order[kept] = order[i]
        kept += 1
    return kept


@kernel
def take_strings(column: Column, order: Int32s, data: Bytes, offsets: Int64s) -> None:
    """Copy string ``order[i]`` of a column to ``data[offsets[i]]`` on; a negative number is skipped."""
    for i in range(len(order)):
        if order[i] >= 0:
            at, size = place(column, order[i])
            copy(data, offsets[i], column.data, at, size)


@kernel
def measure_strings(column: Column, order: Int32s, offsets: Int64s) -> None:
    """Write where the strings ``order`` begin and the last ends when they lie one after another.

    ``offsets`` has one number more than ``order``; a negative number stands for no bytes.
    """
    offsets[0] = int64(0)
    for i in range(len(order)):
        size = place(column, order[i])[1] if order[i] >= 0 else 0
        offsets[i + 1] = offsets[i] + size
