"""Compact proofs: nodes in walking order without the hashes that the walk gives back.

Encoding copies the parts of a node around what it leaves out. Decoding first finds which node stands under which, then
puts the hashes back from the lowest nodes upwards, hashing a height at a time in lanes. What is out of the ordinary is
left to the plain codec, which says what is wrong: a kernel answers ``GIVE_UP``.
"""

import numpy as np

from relaycast_trie.kernels.build import order_by_height
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
    child_place,
    plan_node,
    read_length,
    write_list,
)
from relaycast_trie.kernels.encode import header_size, write_header
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, copy32, int64
from relaycast_trie.kernels.multibuffer_hash import Rooms, hash_messages, new_rooms
from relaycast_trie.kernels.tables import Column, nibble
from relaycast_trie.kernels.verify import _same_hash, fill_table, look_up

GIVE_UP = -1
ESCAPE = 1
HASH_CHILD = 32 << 2
"""The length before a child that is named by its hash."""
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
    children: Int64s,
    plans: Int64s,
    stack: Int64s,
    out: Bytes,
    offsets: Int64s,
) -> int:
    """Write the compact nodes of a trie and of its child tries in walking order; return how many, or ``GIVE_UP``.

    ``root`` is the number of the top trie's root, ``children`` says where ``nodes`` name the roots of child tries.
    ``nodes`` is spread out, with 32 bytes of ``hashes`` for each node; ``table`` and ``mask`` are as ``fill_table``
    leaves them. Node ``i`` of the result is ``out[offsets[i] : offsets[i + 1]]``: ``offsets`` bounds the number of
    nodes and ``out`` their bytes. ``plans`` has one row.
    """
    written = 0
    at = int64(0)
    offsets[0] = at
    top = -1
    data = nodes.data
    if len(children) >= len(stack):
        return GIVE_UP
    for i in range(len(children) - 1, -1, -1):
        child = look_up(hashes, table, mask, data, children[i])
        if child >= 0:
            top += 1
            stack[top] = child
    top += 1
    stack[top] = root
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
            run = place = plans[CHILDREN]
            ways = plans[WAYS]
            while ways:
                ways &= ways - 1
                if data[place] != HASH_CHILD:
                    length, place = read_length(data, place, start + size)
                    place += length
                    continue
                child = look_up(hashes, table, mask, data, place + 1)
                if child >= 0:
                    copy(out, at, data, run, place - run)
                    at += place - run
                    out[at] = 0
                    at += 1
                    top += 1
                    stack[top] = child
                    run = place + 33
                place += 33
            copy(out, at, data, run, place - run)
            at += place - run
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


@kernel
def _children_end(data: Bytes, plans: Int64s, row: int, end: int) -> tuple[int, int]:
    """Return where the children of a planned branch, which lies before ``end``, end, and how many are left out."""
    at, ways, gaps = int64(plans[row + CHILDREN]), int64(plans[row + WAYS]), int64(0)
    while ways:
        ways &= ways - 1
        if data[at] == 0:
            at += 1
            gaps += 1
        elif data[at] == HASH_CHILD:
            at += 33
        else:
            length, first = read_length(data, at, end)
            at = first + length
    return at, gaps


@kernel
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
    """Find out how compact nodes hang together; return their number when they are whole tries, else ``GIVE_UP``.

    ``plans`` gets a row for each node. ``parents`` becomes, for each element, the node it stands under, or for a value
    ``-(node + 2)``, or ``NO_NODE`` for a root. ``heights`` is 0 for values and otherwise one more than those of the
    children left out, ``ends`` the bytes of a compact node, ``offsets`` where full nodes begin and end. ``left`` is
    room for one number a node.
    """
    open_node = int64(NO_NODE)
    at = int64(0)
    offsets[0] = at
    i = 0
    while i < count:
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
            end, gaps = _children_end(nodes.data, plans, row, start + size)
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
    run, place = nodes.at[i], plans[row + CHILDREN]
    end = run + int64(ends[i])
    branch = plans[row + KIND] == BRANCH
    if data[run] == ESCAPE:
        at = _write_head(data, plans, row, out, at, 0x10 if branch else 0x20, 0x0F if branch else 0x1F)
        copy32(out, at, hashes, (i + 1) * 32)
        at += 32
        run = place if branch else end
    child = int64(following[2 * i])
    while branch and place < end:
        if data[place] == HASH_CHILD:
            place += 33
        elif data[place]:
            length, first = read_length(data, place, end)
            place = first + length
        else:
            copy(out, at, data, run, place - run)
            at += place - run
            out[at] = HASH_CHILD
            copy32(out, at + 1, hashes, child * 32)
            at += 33
            place += 1
            run = place
            child = int64(following[2 * child + 1])
    copy(out, at, data, run, end - run)


@kernel
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


@kernel
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
def name_children(
    nodes: Column,
    hashes: Bytes,
    table: Int32s,
    mask: int,
    root: int,
    prefix: Bytes,
    plans: Int64s,
    stack: Int64s,
    children: Int64s,
) -> int:
    """Write to ``children`` where known nodes name roots of child tries, in the order of keys; return how many.

    These are the values under keys with ``prefix`` in the trie whose root is the node ``root``. ``GIVE_UP`` answers a
    node that does not decode, a value that is no root, and more nodes or roots than there is room for: ``stack`` has
    three numbers for each node in waiting. ``plans`` has one row.
    """
    data, size = nodes.data, 2 * len(prefix)
    found, visits, top = int64(0), int64(0), int64(3)
    stack[0], stack[1], stack[2] = nodes.at[root], int64(nodes.size[root]), 0
    while top > 0:
        top -= 3
        start, length, depth = stack[top], stack[top + 1], stack[top + 2]
        visits += 1
        if visits > len(children) or not plan_node(data, start, length, plans, 0):
            return GIVE_UP
        if plans[KIND] == EMPTY:
            continue
        count = plans[COUNT]
        shown = min(count, max(size - depth, 0))
        i = int64(0)
        while i < shown and nibble(data, plans[PARTIAL], i + (count & 1)) == nibble(prefix, 0, depth + i):
            i += 1
        if i < shown:
            continue
        depth += count
        if depth >= size and plans[VALUE_SIZE] != NO_VALUE:
            if plans[VALUE_SIZE] != 32 or depth & 1:
                return GIVE_UP
            children[found] = plans[VALUE_AT]
            found += 1
        if plans[KIND] != BRANCH:
            continue
        if top + 48 > len(stack):
            return GIVE_UP
        for k in range(16):
            way = 15 - k
            if depth >= size or way == nibble(prefix, 0, depth):
                at, bytes_ = child_place(data, plans, 0, way)
                if bytes_ == 32:
                    child = look_up(hashes, table, mask, data, at)
                    at, bytes_ = (nodes.at[child], int64(nodes.size[child])) if child >= 0 else (at, int64(-1))
                if bytes_ >= 0:
                    stack[top], stack[top + 1], stack[top + 2] = at, bytes_, depth + 1
                    top += 3
    return found


@allocating_kernel
def compact_list(data: Bytes, offsets: Int64s, hashes: Bytes, prefix: Bytes) -> Bytes:
    """Return the compact proof of nodes as a list in SCALE; no bytes where the plain codec has to make it.

    The nodes lie between consecutive offsets, the root first, each once and with 32 bytes of ``hashes``. Values under
    keys with ``prefix`` are the roots of child tries.
    """
    count = len(offsets) - 1
    nodes = Column(data, offsets[:-1], np.diff(offsets).astype(np.int32), -1)
    places = 4
    while places < 4 * count:
        places <<= 1
    table, twins = np.empty(places, np.int32), np.empty(count, np.uint8)
    fill_table(hashes, 0, count, table, places - 1, twins)
    plans, stack = np.zeros(PLAN, np.int64), np.empty(16 * count + 64, np.int64)
    children = np.empty(4 * count, np.int64)
    most = 2 * count + 16  # nodes that several places share, such as equal values, are written at each
    walked, ends = np.empty(2 * len(data) + 4 * most, np.uint8), np.empty(most, np.int64)
    written = name_children(nodes, hashes, table, places - 1, 0, prefix, plans, stack, children)
    if written >= 0:
        written = encode_walk(nodes, hashes, table, places - 1, 0, children[:written], plans, stack, walked, ends)
    if written < 0:
        return walked[:0]
    column = Column(walked, ends[:written], np.diff(ends[: written + 1]).astype(np.int32), -1)
    out = np.empty(ends[written] + LENGTH_BYTES * (written + 1), np.uint8)
    return out[: write_list(column, np.arange(written).astype(np.int32), out)]


@kernel
def _are_named(parents: Int32s, hashes: Bytes, nodes: Bytes, children: Int64s, first: int) -> bool:
    """Return whether ``children`` says where ``nodes`` name the roots from element ``first`` on, in this order."""
    k = int64(0)
    for i in range(first, len(parents)):
        if parents[i] == NO_NODE:
            while k < len(children) and not _same_hash(nodes, children[k], hashes, 32 * i):
                k += 1
            if k == len(children):
                return False
            k += 1
    return True


@allocating_kernel
def full_list(data: Bytes, offsets: Int64s, prefix: Bytes) -> tuple[Bytes, Int64s, Bytes]:
    """Return the full nodes of a compact proof, their offsets, and the hash of the first one.

    That has no bytes where the plain codec is to look at the proof. The compact nodes lie between consecutive offsets;
    values under keys with ``prefix`` are the roots of child tries.
    """
    count = len(offsets) - 1
    nodes = Column(data, offsets[:-1], np.diff(offsets).astype(np.int32), -1)
    plans, order, left = np.zeros(PLAN * count, np.int64), np.empty(count, np.int32), np.empty(count, np.int32)
    parents, heights, ends = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    places, hashes = np.empty(count + 1, np.int64), np.empty(32 * count, np.uint8)
    if plan_compact(nodes, count, plans, parents, heights, left, ends, places) != count:
        return data[:0], offsets[:0], hashes[:0]
    levels, following = np.zeros(count + 2, np.int64), np.empty(2 * count, np.int32)
    steps = order_by_height(heights, count, order, levels)
    link_children(parents, count, following)
    out, waiting = np.empty(places[count] + 64, np.uint8), np.empty(3 * count, np.int64)
    decode_levels(nodes, plans, ends, following, order, levels[: steps + 1], out, places, hashes, waiting, new_rooms())
    first, room = int64(1), int64(4)
    while first < count and parents[first] != NO_NODE:
        first += 1
    while room < 2 * first:
        room <<= 1
    table = np.empty(room, np.int32)
    fill_table(hashes, 0, first, table, room - 1, np.empty(count, np.uint8))
    sizes = np.diff(places).astype(np.int32)
    full = Column(out, places[:-1], sizes, -1)
    stack, children = np.empty(16 * count + 64, np.int64), np.empty(4 * count, np.int64)
    named = name_children(full, hashes, table, room - 1, 0, prefix, plans, stack, children)
    if named < 0 or not _are_named(parents, hashes, out, children[:named], first):
        return data[:0], offsets[:0], hashes[:0]
    return out[: places[count]], places, hashes[:32]
