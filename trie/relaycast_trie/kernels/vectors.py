"""Many encoded lists of byte strings (SCALE ``Vec<Vec<u8>>``), for bytes that nobody vouches for.

List ``i`` lies from ``ends[i]`` to ``ends[i + 1]``. A length that says more than there is ends the list it is in: no
loop turns more often than there are bytes.
"""

from relaycast_trie.kernels.compiling import face
from relaycast_trie.kernels.decode import read_length
from relaycast_trie.kernels.encode import write_compact
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, int64
from relaycast_trie.kernels.tables import Column, place

NOT_A_LIST = -1

LENGTH_BYTES = 5
"""Bytes that a length takes at most: a string of a column has less than 2 GiB."""


@face
def measure_lists(data: Bytes, ends: Int64s, counts: Int64s, sizes: Int64s) -> None:
    """Write to ``counts`` how many strings each list holds, and to ``sizes`` how many bytes they have.

    For what is no list they become ``NOT_A_LIST`` and 0.
    """
    for row in range(len(counts)):
        end = ends[row + 1]
        count, at = read_length(data, ends[row], end)
        taken, size = int64(0), int64(0)
        while 0 <= taken < count:
            length, at = read_length(data, at, end)
            if length < 0:
                taken = int64(-2)
            else:
                at += length
                size += length
            taken += 1
        whole = count >= 0 and taken == count and at == end
        counts[row] = count if whole else int64(NOT_A_LIST)
        sizes[row] = size if whole else int64(0)


@face
def take_lists(data: Bytes, ends: Int64s, counts: Int64s, strings: Bytes, offsets: Int64s) -> None:
    """Copy the strings of all lists to ``strings`` one after another, and where each starts and the last ends.

    ``counts`` is what ``measure_lists`` wrote; what is no list is passed over. ``offsets`` has one number more than
    there are strings.
    """
    written, number = int64(0), int64(0)
    for row in range(len(counts)):
        if counts[row] < 0:
            continue
        end = ends[row + 1]
        count, at = read_length(data, ends[row], end)
        for _ in range(count):
            length, at = read_length(data, at, end)
            offsets[number] = written
            copy(strings, written, data, at, length)
            at += length
            written += length
            number += 1
    offsets[number] = written


@face
def write_list(column: Column, order: Int32s, out: Bytes) -> int:
    """Write the list of the strings ``order`` of a column, encoded, to ``out``; return its bytes.

    ``out`` has room for ``LENGTH_BYTES`` before each string and before the list.
    """
    at = write_compact(out, 0, len(order))
    for i in range(len(order)):
        start, size = place(column, order[i])
        at = write_compact(out, at, size)
        copy(out, at, column.data, start, size)
        at += size
    return at
