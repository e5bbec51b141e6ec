"""What a block carries of tries that it reads and changes: the nodes on the ways of its keys, before it changes them.

Law: a removal that leaves a branch with one child reads that child, even where a later key brings the branch back:
these are the nodes that ``trie_update`` records.
"""

import numpy as np

from relaycast_trie.kernels.compiling import allocating_kernel, inlined, kernel
from relaycast_trie.kernels.encode import BRANCH_BYTES
from relaycast_trie.kernels.get import (
    GROUP,
    collect_proof,
    copy_hashes,
    drop_repeated,
    fits,
    mark,
    same_string,
    write_nodes,
)
from relaycast_trie.kernels.memory import Bytes, Int64s, int64, lowest_bit
from relaycast_trie.kernels.tables import (
    DEPTH,
    SIZE,
    STATE,
    VALUED,
    WAYS,
    Branches,
    Column,
    Entries,
    Strings,
    Tables,
    branches_in,
    column_in,
    entries_in,
    nibble,
    place,
)

PUT, GONE = 2, 4
"""Uses of a key beside ``READ``: it is written, or removed."""

BRANCH, LAST, HIGH, LIVE, HAS_VALUE, WAS_GONE, HAS_BEFORE, FRAME = range(8)
"""A branch that is walked: the end of the keys below it, and of those that lead to it; children that are left; whether
there is a value; whether all below was gone for a while; whether a key was put that parts from it before its own."""


@inlined
def _puts(uses: Bytes, first: int, last: int) -> bool:
    """Return whether one of these keys is written."""
    while first < last and not uses[first] & PUT:
        first += 1
    return first < last


@inlined
def _list_children(
    entries: Entries, branches: Branches, branch: int, table: Int64s, nodes: Int64s, used: int, result: Int64s
) -> int:
    """List the hashed children of a branch that are not listed; return how many nodes there are then."""
    ways = int64(branches.row[branch, WAYS])
    while ways:
        child = int64(branches.row[branch, lowest_bit(ways)])
        ways &= ways - 1
        if child > 0:
            hashed = entries.state[child - 1] & SIZE == 32
            room = place(entries.key, child - 1)[1] + place(entries.value, child - 1)[1]
        else:
            hashed = branches.row[-child - 1, STATE] & SIZE == 32
            valued = int64(branches.row[-child - 1, VALUED]) - 1
            room = int64(branches.row[-child - 1, DEPTH])
            if valued >= 0:
                room += place(entries.value, valued)[1]
        if hashed and mark(table, child):
            nodes[used] = child
            used += 1
            result[0] += BRANCH_BYTES + room
    return used


@inlined
def _enter_branch(
    entries: Entries, branches: Branches, branch: int, keys: Column, uses: Bytes, at: int, high: int, frame: Int64s
) -> tuple[int, bool]:
    """Begin with a branch and the keys from ``at`` to ``high`` that lead to it; write its frame.

    Returns the first key that goes on below it, and whether its value goes and leaves one child.
    """
    depth, start = int64(branches.row[branch, DEPTH]), at
    while at < high and not fits(entries, branches, branch, keys.data, *place(keys, at)):
        at += 1
    last = at
    while last < high and fits(entries, branches, branch, keys.data, *place(keys, last)):
        last += 1
    live, ways = int64(0), int64(branches.row[branch, WAYS])
    while ways:
        ways &= ways - 1
        live += 1
    has_value, leaves_one = int64(branches.row[branch, VALUED] > 0), False
    frame[HAS_BEFORE] = _puts(uses, start, at)
    if at < last and 2 * place(keys, at)[1] == depth:
        if uses[at] & GONE:
            leaves_one = has_value == 1 and live == 1
            has_value = int64(0)
        elif uses[at] & PUT:
            has_value = int64(1)
        at += 1
    frame[BRANCH], frame[LAST], frame[HIGH] = branch, last, high
    frame[LIVE], frame[HAS_VALUE], frame[WAS_GONE] = live, has_value, 0
    return at, leaves_one


@inlined
def _next_child(branches: Branches, keys: Column, uses: Bytes, at: int, frame: Int64s) -> tuple[int, int, int]:
    """Return the next child of a branch that keys lead to, and these keys; 0 at the end. New children are counted."""
    branch, last = frame[BRANCH], frame[LAST]
    depth = int64(branches.row[branch, DEPTH])
    while at < last:
        way = nibble(keys.data, place(keys, at)[0], depth)
        high = at + 1
        while high < last and nibble(keys.data, place(keys, high)[0], depth) == way:
            high += 1
        node = int64(branches.row[branch, way])
        if node != 0:
            return node, at, high
        if _puts(uses, at, high):
            frame[LIVE] += 1
        at = high
    return int64(0), at, at


@inlined
def _visit_leaf(entries: Entries, entry: int, keys: Column, uses: Bytes, at: int, high: int) -> tuple[bool, bool]:
    """Return whether a leaf is gone for a while, and whether nothing takes its place."""
    for i in range(at, high):
        if uses[i] & GONE and same_string(entries.key, entry, keys, i):
            gone = not _puts(uses, at, i)
            return gone, gone and not _puts(uses, i, high)
    return False, False


@kernel
def _list_left(
    entries: Entries,
    branches: Branches,
    root: int,
    keys: Column,
    uses: Bytes,
    first: int,
    end: int,
    table: Int64s,
    nodes: Int64s,
    used: int,
    result: Int64s,
    stack: Int64s,
) -> int:
    """List the children that removals leave alone in their branch; return how many nodes there are then, or -1.

    The keys ``first`` to ``end`` ascend. ``stack`` has room for a frame a level.
    """
    top = -FRAME
    node, at, high = int64(root), int64(first), int64(end)
    while True:
        is_done, leaves_one, none, gone = node > 0, False, False, False
        if node < 0:
            top += FRAME
            at, leaves_one = _enter_branch(entries, branches, -node - 1, keys, uses, at, high, stack[top : top + FRAME])
        else:
            gone, none = _visit_leaf(entries, node - 1, keys, uses, at, high)
            at = high
        node = int64(0)
        while node == 0:
            if is_done and top < 0:
                return used
            frame = stack[top : top + FRAME]
            if is_done:
                if gone and not frame[HAS_VALUE]:
                    leaves_one = frame[LIVE] == 2
                    if frame[LIVE] == 1:
                        frame[WAS_GONE] = 1
                if none:
                    frame[LIVE] -= 1
            if leaves_one:
                if used + 16 + GROUP > len(nodes):
                    return -1
                used = _list_children(entries, branches, frame[BRANCH], table, nodes, used, result)
            node, at, high = _next_child(branches, keys, uses, at, frame)
            if node == 0:
                at = frame[HIGH]
                gone = frame[WAS_GONE] != 0 and frame[HAS_BEFORE] == 0
                none = frame[LIVE] == 0 and frame[HAS_VALUE] == 0 and frame[HAS_BEFORE] == 0
                none = none and not _puts(uses, frame[LAST], at)
                top -= FRAME
                is_done, leaves_one = True, False


@inlined
def _places(keys: int, nodes_a_key: int) -> int:
    """Return a power of two: room for the nodes of a trie that is asked for that many keys."""
    places = int64(64)
    while places < nodes_a_key * keys + 4 * GROUP:
        places <<= 1
    return places


@kernel
def _list_witnesses(
    tables: Tables,
    roots: Int64s,
    wanted: Strings,
    uses: Bytes,
    ends: Int64s,
    table: Int64s,
    nodes: Int64s,
    node_ends: Int64s,
    stack: Int64s,
    nodes_a_key: int,
    result: Int64s,
) -> None:
    """List the nodes of all tries; ``result`` becomes how many there are, or -1, and a bound for their bytes."""
    entries, branches, keys = entries_in(tables), branches_in(tables), column_in(wanted)
    used = int64(0)
    first = int64(0)
    bound = result[1:]
    bound[0] = 0
    result[0] = -1
    for trie in range(len(roots)):
        end = ends[trie]
        of_trie = nodes[used:]
        places = _places(end - first, nodes_a_key)
        of_trie, marks = of_trie[:places], table[: 2 * places]
        found = collect_proof(entries, branches, roots[trie], keys, first, end, uses, marks, of_trie, bound)
        if found < 0:
            return
        removes = False
        for i in range(first, end):
            removes |= uses[i] & GONE != 0
        if removes and roots[trie] != 0:
            found = _list_left(
                entries, branches, roots[trie], keys, uses, first, end, marks, of_trie, found, bound, stack
            )
            if found < 0:
                return
        used += found
        first = end
        node_ends[trie + 1] = used
    node_ends[0] = 0
    result[0] = used


@kernel
def _rooms(ends: Int64s, nodes_a_key: int, result: Int64s) -> None:
    """Write to ``result`` the room for the nodes of all tries, and for those of the largest one."""
    first = int64(0)
    result[0] = result[1] = 0
    for trie in range(len(ends)):
        places = _places(ends[trie] - first, nodes_a_key)
        first = ends[trie]
        result[0] += places
        result[1] = max(result[1], places)


@allocating_kernel
def witnesses_of(
    tables: Tables, roots: Int64s, wanted: Strings, uses: Bytes, ends: Int64s, longest: int, levels: int
) -> tuple[Bytes, Int64s, Bytes, Int64s]:
    """Return what blocks carry of tries that they read and change: nodes, their offsets, hashes, and where each ends.

    Of the trie with the root ``roots[t]`` a block uses the keys up to ``ends[t]`` that no trie before it has, ascending
    and each once: ``uses`` says how. The nodes of a trie, each once, end at ``node_ends[t + 1]``; of one without nodes
    there are none. A root comes first, and where it has less than 32 bytes its hash is left out. ``longest`` bounds the
    bytes of a node, ``levels`` the branches on the way of a key.
    """
    result, node_ends = np.empty(2, np.int64), np.empty(len(roots) + 1, np.int64)
    stack = np.empty(FRAME * levels, np.int64)
    nodes_a_key, used = 8, -1
    nodes = table = node_ends
    while used < 0:
        _rooms(ends, nodes_a_key, result)
        nodes, table = np.empty(result[0], np.int64), np.empty(4 * result[1] + 1, np.int64)
        _list_witnesses(tables, roots, wanted, uses, ends, table, nodes, node_ends, stack, nodes_a_key, result)
        used = result[0]
        nodes_a_key *= 4
    data = np.empty(result[1] + longest, np.uint8)
    used = drop_repeated(tables, nodes, node_ends, table)
    offsets, hashes = np.empty(used + 1, np.int64), np.empty(32 * used, np.uint8)
    copy_hashes(tables, nodes, used, hashes)
    write_nodes(tables, nodes, used, data, offsets)
    return data[: offsets[used]], offsets, hashes, node_ends
