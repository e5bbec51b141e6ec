"""Encoded nodes and lists of byte strings (SCALE ``Vec<Vec<u8>>``), for bytes that nobody vouches for.

A plan says where the parts of an encoded node lie, in a row of eight numbers::

    KIND                   UNSEEN, EMPTY, LEAF or BRANCH
    COUNT, PARTIAL         nibbles of the partial key, and where it starts
    WAYS                   the bitmap of the children
    VALUE_AT, VALUE_SIZE   where the value starts, and its bytes
    CHILDREN, UNIFORM      where the children start, and whether every child is a hash

Places of children that are all hashes can be computed. The decoder accepts exactly what ``node_codec.decode_node``
accepts. Of many lists, list ``i`` lies from ``ends[i]`` to ``ends[i + 1]``. A length that says more than there is ends
the list it is in: no loop turns more often than there are bytes.
"""

from relaycast_trie.kernels.compiling import face, inlined, kernel
from relaycast_trie.kernels.encode import write_compact
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, count_ones, int64, load64
from relaycast_trie.kernels.tables import Column, nibble, place

PLAN = 8
KIND, COUNT, PARTIAL, WAYS, VALUE_AT, VALUE_SIZE, CHILDREN, UNIFORM = range(PLAN)

UNSEEN, EMPTY, LEAF, BRANCH = 0, 1, 2, 3
NO_VALUE, HASHED = -1, -2
"""In place of the bytes of a value: there is none, or there is its hash."""

MAX_COUNT = 0xFFFF


@inlined
def read_length(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the compact length at ``data[at]`` and where what it counts starts; (-1, 0) for anything else.

    Its form is the shortest, and as many bytes are there before ``end``.
    """
    if at >= end:
        return int64(-1), int64(0)
    mode = int64(data[at]) & 3
    size = 1 if mode == 0 else 2 if mode == 1 else 4 if mode == 2 else 5
    if at + size > end:
        return int64(-1), int64(0)
    if mode == 0:
        length = int64(data[at]) >> 2
    elif mode == 1:
        length = (int64(data[at]) | int64(data[at + 1]) << 8) >> 2
        if length < 1 << 6:
            return int64(-1), int64(0)
    else:
        first = 0 if mode == 2 else 1
        if mode == 3 and data[at] != 3:
            return int64(-1), int64(0)
        length = int64(0)
        for i in range(4):
            length |= int64(data[at + first + i]) << 8 * i
        if mode == 2:
            length >>= 2
        if length < (1 << 14 if mode == 2 else 1 << 30):
            return int64(-1), int64(0)
    if length > end - at - size:
        return int64(-1), int64(0)
    return length, at + size


@kernel
def _partial_count(data: Bytes, at: int, end: int, mask: int) -> tuple[int, int]:
    """Return how many nibbles the header at ``data[at]`` counts, and where it ends; -1 where it is cut short.

    ``mask`` is what its first byte can count. A header that goes on beyond ``MAX_COUNT`` counts ``MAX_COUNT``.
    """
    count = int64(data[at]) & mask
    at += 1
    if count < mask:
        return count, at
    while count - 1 <= MAX_COUNT:
        if at >= end:
            return int64(-1), at
        more = int64(data[at])
        at += 1
        count += more
        if more < 255:
            return count, at
    return int64(MAX_COUNT), at


@kernel
def _children(data: Bytes, at: int, end: int, ways: int, plans: Int64s, row: int) -> bool:
    """Plan the children of a branch, which start at ``data[at]``; return whether each of ``ways`` is there.

    Each is a canonical compact length and that number of bytes, before ``end``. ``CHILDREN`` and ``UNIFORM`` of the
    row are written.
    """
    plans[row + CHILDREN] = at
    uniform = 1
    count = count_ones(ways)
    if at + 33 * count <= end:
        others = 0
        for i in range(count):
            others |= int64(data[at + 33 * i]) ^ (32 << 2)
        if not others:
            plans[row + UNIFORM] = 1
            return True
    while ways:
        ways &= ways - 1
        if at + 33 <= end and data[at] == 32 << 2:
            at += 33
            continue
        if at < end and data[at] == 0:
            uniform = 0
            at += 1
            continue
        length, start = read_length(data, at, end)
        if length < 0:
            return False
        uniform = 0
        at = start + length
    plans[row + UNIFORM] = uniform
    return True


@kernel
def plan_node(data: Bytes, at: int, size: int, plans: Int64s, row: int) -> bool:
    """Write the plan of the node in ``data[at : at + size]`` from ``plans[row]`` on; return whether it decodes."""
    end = at + size
    if size <= 0:
        return False
    first = int64(data[at])
    hashed = False
    branch = False
    if first == 0:
        plans[row + KIND] = EMPTY
        return True
    mask = 0x3F
    if first >= 0x40:
        branch = first >= 0x80
    elif first >= 0x20:
        mask, hashed = 0x1F, True
    elif first >= 0x10:
        mask, hashed, branch = 0x0F, True, True
    else:
        return False
    valued = hashed or first & 0xC0 != 0x80

    count, at = _partial_count(data, at, end, mask)
    if count < 0 or (count + 1) // 2 > end - at:
        return False
    if count & 1 and data[at] > 15:
        return False
    plans[row + KIND] = BRANCH if branch else LEAF
    plans[row + COUNT] = count
    plans[row + PARTIAL] = at
    at += (count + 1) // 2
    ways = int64(0)
    if branch:
        if at + 2 > end:
            return False
        ways = int64(data[at]) | int64(data[at + 1]) << 8
        if ways == 0:
            return False
        at += 2
    plans[row + WAYS] = ways
    plans[row + VALUE_SIZE] = NO_VALUE
    if hashed:
        if at + 32 > end:
            return False
        plans[row + VALUE_AT] = at
        plans[row + VALUE_SIZE] = HASHED
        at += 32
    elif valued:
        length, start = read_length(data, at, end)
        if length < 0:
            return False
        plans[row + VALUE_AT] = start
        plans[row + VALUE_SIZE] = length
        at = start + length
    return not branch or _children(data, at, end, ways, plans, row)


@inlined
def child_place(data: Bytes, plans: Int64s, row: int, way: int) -> tuple[int, int]:
    """Return where the reference to the child ``way`` of a planned branch starts, and its bytes; (0, -1) for none."""
    ways = plans[row + WAYS]
    if not ways >> way & 1:
        return int64(0), int64(-1)
    before = ways & ((1 << way) - 1)
    at = plans[row + CHILDREN]
    if plans[row + UNIFORM]:
        return at + 33 * count_ones(before) + 1, int64(32)
    while before:
        before &= before - 1
        length, start = read_length(data, at, len(data))
        at = start + length
    length, start = read_length(data, at, len(data))
    return start, length


@inlined
def _same_bytes(left: Bytes, left_at: int, right: Bytes, right_at: int, size: int) -> bool:
    """Return whether the ``size`` bytes from ``left[left_at]`` and from ``right[right_at]`` on are equal."""
    if size < 8:
        same = 0
        while same < size and left[left_at + same] == right[right_at + same]:
            same += 1
        return bool(same == size)
    last = size - 8
    for i in range(0, last, 8):
        if load64(left, left_at + i) != load64(right, right_at + i):
            return False
    return bool(load64(left, left_at + last) == load64(right, right_at + last))


@inlined
def partial_fits(nodes: Bytes, plans: Int64s, row: int, keys: Bytes, at: int, size: int, depth: int) -> bool:
    """Return whether a key goes on from nibble ``depth`` as the partial key of a planned node does.

    The key is ``keys[at : at + size]``; its nibbles before ``depth`` are not looked at.
    """
    count = plans[row + COUNT]
    if not count:
        return True
    packed = plans[row + PARTIAL]
    if count > 2 * size - depth:
        return False
    if (count ^ depth) & 1:
        odd = count & 1
        i = 0
        while i < count and nibble(nodes, packed, i + odd) == nibble(keys, at, depth + i):
            i += 1
        return bool(i == count)
    if count & 1:
        if int64(nodes[packed]) != nibble(keys, at, depth):
            return False
        packed += 1
        depth += 1
    return _same_bytes(nodes, packed, keys, at + (depth >> 1), count >> 1)


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
