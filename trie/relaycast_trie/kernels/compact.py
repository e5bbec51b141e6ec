"""Compact proofs: nodes in walking order without the hashes that the walk gives back.

Encoding copies the parts of a node around what it leaves out. Decoding first finds which node stands under which, then
puts the hashes back from the lowest nodes upwards, hashing a height at a time in lanes. What is out of the ordinary is
left to the plain codec: a kernel answers ``GIVE_UP``.
"""

import numpy as np

from relaycast_trie.kernels.compiling import allocating_kernel, face, kernel
from relaycast_trie.kernels.decode import (
    BRANCH,
    CHILDREN,
    COUNT,
    EMPTY,
    HASHED,
    KIND,
    LEAF,
    LENGTH_BYTES,
    MAX_COUNT,
    NO_VALUE,
    PARTIAL,
    PLAN,
    VALUE_AT,
    VALUE_SIZE,
    WAYS,
    plan_node,
    read_length,
    write_list,
)
from relaycast_trie.kernels.encode import header_size, write_header
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, copy32, int64
from relaycast_trie.kernels.multibuffer_hash import Rooms, hash_messages
from relaycast_trie.kernels.tables import Column, nibble
from relaycast_trie.kernels.verify import fill_table, look_up

GIVE_UP = -1
ESCAPE = 1
NO_NODE = -1


@kernel
def _value_end(plans: Int64s, row: int) -> int:
    """Return where the value of a planned leaf or branch ends; without a value, where the children start."""
    if plans[row + VALUE_SIZE] == NO_VALUE:
        return int64(plans[row + CHILDREN])
    return int64(plans[row + VALUE_AT]) + (32 if plans[row + VALUE_SIZE] == HASHED else plans[row + VALUE_SIZE])


@kernel
def _write_head(data: Bytes, plans: Int64s, row: int, out: Bytes, at: int, kind: int, mask: int) -> int:
    """Write a header of ``kind`` and ``mask``, then the partial key and the bitmap of a planned node.

    These are copied from ``data`` to ``out[at]`` on. Returns where they end.
    """
    count = int64(plans[row + COUNT])
    at = write_header(out, at, kind, mask, count)
    size = (count + 1) // 2 + (2 if plans[row + KIND] == BRANCH else 0)
    copy(out, at, data, plans[row + PARTIAL], size)
    return at + size


@face
def encode_walk(
    nodes: Column,
    hashes: Bytes,
    table: Int32s,
    mask: int,
    root: int,
    plans: Int64s,
    stack: Int64s,
    out: Bytes,
    offsets: Int64s,
) -> int:
    """Write the compact nodes below the node ``root`` in walking order; return how many, or ``GIVE_UP``.

    ``nodes`` is spread out, with 32 bytes of ``hashes`` for each node; ``table`` and ``mask`` are as ``fill_table``
    leaves them. Node ``i`` of the result is ``out[offsets[i] : offsets[i + 1]]``: ``offsets`` bounds the number of
    nodes and ``out`` their bytes. ``plans`` has one row.
    """
    written = 0
    at = int64(0)
    offsets[0] = at
    top = 0
    stack[0] = root
    data = nodes.data
    while top >= 0:
        node = stack[top]
        top -= 1
        start, size = nodes.at[node], int64(nodes.size[node])
        room = size + 3
        if written + 2 >= len(offsets) or top + 18 >= len(stack) or at + room > len(out):
            return GIVE_UP
        if not plan_node(data, start, size, plans, 0):
            return GIVE_UP
        if plans[KIND] == EMPTY:
            out[at] = 0
            at += 1
            written += 1
            offsets[written] = at
            continue
        if plans[COUNT] >= MAX_COUNT:
            return GIVE_UP
        value = int64(NO_NODE)
        if plans[VALUE_SIZE] == HASHED:
            value = look_up(hashes, table, mask, data, plans[VALUE_AT])
        if value >= 0:
            out[at] = ESCAPE
            at = _write_head(data, plans, 0, out, at + 1, 0xC0 if plans[KIND] == BRANCH else 0x40, 0x3F)
            out[at] = 0
            at += 1
        else:
            part = _value_end(plans, 0) - start
            copy(out, at, data, start, part)
            at += part
        if plans[KIND] == BRANCH:
            first = top + 1
            place = plans[CHILDREN]
            ways = plans[WAYS]
            while ways:
                ways &= ways - 1
                length, place = read_length(data, place, start + size)
                child = look_up(hashes, table, mask, data, place) if length == 32 else int64(NO_NODE)
                if child >= 0:
                    out[at] = 0
                    at += 1
                    top += 1
                    stack[top] = child
                else:
                    head = 1 if length < 64 else 2 if length < 1 << 14 else 4
                    copy(out, at, data, place - head, head + length)
                    at += head + length
                place += length
            last = top
            while first < last:
                stack[first], stack[last] = stack[last], stack[first]
                first += 1
                last -= 1
        written += 1
        offsets[written] = at
        if value >= 0:
            if at + nodes.size[value] > len(out):
                return GIVE_UP
            copy(out, at, data, nodes.at[value], int64(nodes.size[value]))
            at += int64(nodes.size[value])
            written += 1
            offsets[written] = at
    return written


@face
def plan_compact(
    nodes: Column,
    count: int,
    plans: Int64s,
    parents: Int32s,
    heights: Int32s,
    left: Int32s,
    ends: Int32s,
    offsets: Int64s,
) -> int:
    """Find out how compact nodes hang together; return their number when they are one whole trie, else ``GIVE_UP``.

    ``plans`` gets a row for each node. ``parents`` becomes, for each element, the node it stands under, or for a value
    ``-(node + 2)``, or -1 for the root. ``heights`` is 0 for values and otherwise one more than those of the children
    left out, ``ends`` the bytes of a compact node, ``offsets`` where full nodes begin and end. ``left`` is room for one
    number a node.
    """
    open_node = int64(NO_NODE)
    at = int64(0)
    offsets[0] = at
    i = 0
    while i < count:
        if i > 0 and open_node < 0:
            return GIVE_UP
        start, size = nodes.at[i], int64(nodes.size[i])
        valued = size > 0 and nodes.data[start] == ESCAPE
        row = i * PLAN
        skip = 1 if valued else 0
        if not plan_node(nodes.data, start + skip, size - skip, plans, row):
            return GIVE_UP
        kind = plans[row + KIND]
        gaps = 0
        if kind == EMPTY:
            end = start + 1
        elif plans[row + COUNT] >= MAX_COUNT:
            return GIVE_UP
        elif kind == LEAF:
            end = _value_end(plans, row)
        else:
            end = plans[row + CHILDREN]
            ways = plans[row + WAYS]
            while ways:
                ways &= ways - 1
                length, place = read_length(nodes.data, end, start + size)
                end = place + length
                gaps += 1 if length == 0 else 0
        if valued and (kind == EMPTY or plans[row + VALUE_SIZE] != 0 or i + 1 >= count):
            return GIVE_UP
        full = end - start + 32 * gaps
        if valued:
            mask = 0x0F if kind == BRANCH else 0x1F
            full += 32 - 2 - header_size(0x3F, plans[row + COUNT]) + header_size(mask, plans[row + COUNT])
        ends[i] = end - start
        at += full
        offsets[i + 1] = at
        parents[i] = open_node
        heights[i] = 1
        left[i] = gaps
        node = int64(i)
        if valued:
            i += 1
            parents[i] = -(node + 2)
            heights[i] = 0
            at += int64(nodes.size[i])
            offsets[i + 1] = at
        i += 1
        while left[node] == 0:
            parent = int64(parents[node])
            if parent < 0:
                open_node = int64(NO_NODE)
                break
            heights[parent] = max(heights[parent], heights[node] + np.int32(1))
            left[parent] -= 1
            node = parent
            open_node = node
        if left[node] > 0:
            open_node = node
    return i if open_node < 0 and count > 0 else GIVE_UP


@kernel
def _write_full(
    nodes: Column, i: int, plans: Int64s, ends: Int32s, hashes: Bytes, following: Int32s, out: Bytes, at: int
) -> None:
    """Write the full form of compact node ``i`` to ``out[at]`` on, with the hashes that were left out.

    ``following`` names its first child left out, and after each child the next one, as ``link_children`` writes them.
    ``hashes`` has 32 bytes for each element; those of the node's children and of its value are known.
    """
    data = nodes.data
    row = i * PLAN
    start = nodes.at[i]
    end = start + int64(ends[i])
    if data[start] == ESCAPE:
        branch = plans[row + KIND] == BRANCH
        at = _write_head(data, plans, row, out, at, 0x10 if branch else 0x20, 0x0F if branch else 0x1F)
        copy32(out, at, hashes, (i + 1) * 32)
        at += 32
    elif plans[row + KIND] != BRANCH:
        copy(out, at, data, start, end - start)
        return
    else:
        size = plans[row + CHILDREN] - start
        copy(out, at, data, start, size)
        at += size
    if plans[row + KIND] != BRANCH:
        return
    child = int64(following[2 * i])
    place = plans[row + CHILDREN]
    while place < end:
        if data[place] == 0:
            out[at] = 32 << 2
            copy32(out, at + 1, hashes, child * 32)
            at += 33
            place += 1
            child = int64(following[2 * child + 1])
        else:
            length, first = read_length(data, place, end)
            size = first + length - place
            copy(out, at, data, place, size)
            at += size
            place += size


@face
def link_children(parents: Int32s, count: int, following: Int32s) -> None:
    """Write the first child of each node to ``following[2 * node]`` and its next sibling to the place behind.

    ``parents`` names the parent of each of ``count`` elements, a negative number for none. ``NO_NODE`` ends a list.
    """
    for i in range(2 * count):
        following[i] = NO_NODE
    for i in range(count - 1, -1, -1):
        parent = int64(parents[i])
        if parent >= 0:
            following[2 * i + 1] = following[2 * parent]
            following[2 * parent] = i


@face
def decode_levels(
    nodes: Column,
    plans: Int64s,
    ends: Int32s,
    following: Int32s,
    order: Int32s,
    levels: Int64s,
    out: Bytes,
    offsets: Int64s,
    hashes: Bytes,
    places: Int64s,
    rooms: Rooms,
) -> None:
    """Write all full nodes and values to ``out`` and their hashes to ``hashes``.

    ``order[levels[i] : levels[i + 1]]`` are the elements of height ``i``, the values those of height 0. Element ``i``
    goes to ``out[offsets[i] : offsets[i + 1]]`` and its hash to ``hashes[32 * i]`` on. ``places`` has room for three
    numbers an element.
    """
    count = len(order)
    for level in range(len(levels) - 1):
        waiting = 0
        for k in range(levels[level], levels[level + 1]):
            i = int64(order[k])
            if level == 0:
                copy(out, offsets[i], nodes.data, nodes.at[i], int64(nodes.size[i]))
            else:
                _write_full(nodes, i, plans, ends, hashes, following, out, offsets[i])
            places[waiting] = offsets[i]
            places[count + waiting] = offsets[i + 1] - offsets[i]
            places[2 * count + waiting] = 32 * i
            waiting += 1
        if waiting:
            hash_messages(rooms, out, places[:count], places[count : 2 * count], waiting, hashes, places[2 * count :])


@face
def leads_to_prefix(
    nodes: Column, hashes: Bytes, table: Int32s, mask: int, root: int, prefix: Bytes, plans: Int64s
) -> bool:
    """Return whether any known node of the trie stands on the way to keys with ``prefix``, or beyond it.

    ``root`` is the number of the root's node. A node that does not decode counts as one. ``plans`` has one row.
    """
    node = root
    depth = 0
    size = 2 * len(prefix)
    start, length = nodes.at[node], int64(nodes.size[node])
    while True:
        if not plan_node(nodes.data, start, length, plans, 0):
            return True
        if plans[KIND] == EMPTY:
            return False
        count = plans[COUNT]
        odd = count & 1
        for i in range(count):
            if depth + i == size:
                return True
            if nibble(nodes.data, plans[PARTIAL], i + odd) != nibble(prefix, 0, depth + i):
                return False
        depth += count
        if depth >= size:
            return True
        if plans[KIND] == LEAF:
            return False
        way = nibble(prefix, 0, depth)
        depth += 1
        if not plans[WAYS] >> way & 1:
            return False
        place = plans[CHILDREN]
        before = plans[WAYS] & ((1 << way) - 1)
        end = start + length
        while before:
            before &= before - 1
            skipped, first = read_length(nodes.data, place, end)
            place = first + skipped
        length, start = read_length(nodes.data, place, end)
        if length == 32:
            node = look_up(hashes, table, mask, nodes.data, start)
            if node < 0:
                return False
            start, length = nodes.at[node], int64(nodes.size[node])


@allocating_kernel
def compact_list(data: Bytes, offsets: Int64s, hashes: Bytes, prefix: Bytes) -> Bytes:
    """Return the compact proof of nodes as a list in SCALE; no bytes where the plain codec has to make it.

    The nodes lie between consecutive offsets, the root first, each once and with 32 bytes of ``hashes``. A trie that
    holds, or might hold, keys with ``prefix``, is left to the plain codec.
    """
    count = len(offsets) - 1
    nodes = Column(data, offsets[:-1], np.diff(offsets).astype(np.int32), -1)
    places = 4
    while places < 4 * count:
        places <<= 1
    table, twins = np.empty(places, np.int32), np.empty(count, np.uint8)
    fill_table(hashes, 0, count, table, places - 1, twins)
    plans = np.zeros(PLAN, np.int64)
    walked, ends = np.empty(len(data) + 4 * count + 64, np.uint8), np.empty(count + 4, np.int64)
    written = encode_walk(nodes, hashes, table, places - 1, 0, plans, np.empty(16 * count + 32, np.int64), walked, ends)
    if written < 0 or leads_to_prefix(nodes, hashes, table, places - 1, 0, prefix, plans):
        return walked[:0]
    column = Column(walked, ends[:written], np.diff(ends[: written + 1]).astype(np.int32), -1)
    out = np.empty(ends[written] + LENGTH_BYTES * (written + 1), np.uint8)
    return out[: write_list(column, np.arange(written).astype(np.int32), out)]
