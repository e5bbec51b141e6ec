"""Reading a trie in its tables: which entry has a key, which nodes prove what a key has, which nodes have a hash.

A search compares a key with one entry only: branches say at which nibbles to look, the entry at the end whether the
guess was right. A proof needs more, the last branch that still fits. Nodes and external values with equal content have
equal hashes: a proof can hold each once. A database of hashed nodes is told what a change brings it and what it may
drop.
"""

import numpy as np

from relaycast_trie.kernels.compiling import allocating_kernel, face, inlined, kernel
from relaycast_trie.kernels.encode import AHEAD, BRANCH_BYTES, ask_for_children, write_branch, write_leaf
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, copy32, copy_loose, int64, load64, prefetch
from relaycast_trie.kernels.tables import (
    DEPTH,
    EXTERNAL,
    NO_START,
    REF,
    ROW,
    SAMPLE,
    SIZE,
    START,
    STATE,
    VALUED,
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
    shared_nibbles,
)

GROUP = 16
"""Keys that look for their places together."""

READ = 1
"""A key's use: its value is read. Where keys have other uses, those stand in ``witness``."""

VALUE = 1 << 40
"""Added to the number of an entry: its external value, as a node of a proof."""


@inlined
def same_string(left: Column, left_index: int, right: Column, right_index: int) -> bool:
    """Return whether string ``left_index`` of one column equals string ``right_index`` of another."""
    left_at, left_size = place(left, left_index)
    right_at, right_size = place(right, right_index)
    if left_size != right_size:
        return False
    return shared_nibbles(left.data, left_at, left_size, right.data, right_at, right_size) == 2 * left_size


@kernel
def scout(entries: Entries, branches: Branches, root: int, keys: Column, first: int, last: int, nodes: Int64s) -> None:
    """Bring what the keys ``first`` to ``last`` lead to into the cache: all of them one branch down, then all again.

    Each would wait for memory at each branch; together they wait once. ``nodes`` has room for one number a key, and
    gets the leaf at which its way ends, or 0.
    """
    for i in range(last - first):
        nodes[i] = root
    moving = last - first
    while moving > 0:
        moving = 0
        for i in range(last - first):
            node = nodes[i]
            if node >= 0:
                continue
            at, size = place(keys, first + i)
            depth = int64(branches.row[-node - 1, DEPTH])
            node = int64(branches.row[-node - 1, nibble(keys.data, at, depth)]) if depth < 2 * size else int64(0)
            nodes[i] = node
            if node < 0:
                prefetch(branches.row, (-node - 1) * ROW)
                prefetch(branches.row, (-node - 1) * ROW + 16)
                moving += 1
            elif node > 0:
                prefetch(entries.state, node - 1)
                prefetch(entries.start, node - 1)
                if entries.key.width >= 0:
                    prefetch(entries.key.data, (node - 1) * entries.key.width)
                if entries.value.width >= 0:
                    prefetch(entries.value.data, (node - 1) * entries.value.width)


@face
def find_entries(tables: Tables, root: int, wanted: Strings, count: int, found: Int32s) -> None:
    """Write to ``found`` the entry below the node ``root`` of each of the first ``count`` keys, or -1."""
    entries, branches, keys = entries_in(tables), branches_in(tables), column_in(wanted)
    for i in range(count):
        at, size = place(keys, i)
        node = int64(root)
        while node < 0:
            branch = -node - 1
            depth = int64(branches.row[branch, DEPTH])
            if depth >= 2 * size:
                node = int64(branches.row[branch, VALUED]) if depth == 2 * size else int64(0)
                break
            node = int64(branches.row[branch, nibble(keys.data, at, depth)])
        found[i] = -1
        if node > 0 and same_string(entries.key, node - 1, keys, i):
            found[i] = node - 1


@inlined
def fits(entries: Entries, branches: Branches, branch: int, data: Bytes, at: int, size: int) -> bool:
    """Return whether the partial key of a branch that a key has reached goes on as the key does.

    The key is ``data[at : at + size]``.
    """
    start, depth = int64(branches.row[branch, START]), int64(branches.row[branch, DEPTH])
    if start == depth:
        return True
    if depth > 2 * size:
        return False
    sample_at, sample_size = place(entries.key, branches.row[branch, SAMPLE])
    skip = start >> 1
    shared = shared_nibbles(entries.key.data, sample_at + skip, sample_size - skip, data, at + skip, size - skip)
    return 2 * skip + shared >= depth


@inlined
def mark(table: Int64s, code: int) -> bool:
    """Put a positive number into a hash set, whose length is a power of two and 0 a free place; return if it is new."""
    mask = len(table) - 1
    slot = (code & 0xFFFF_FFFF) * 0x1E37_79B1 >> 12 & mask
    while table[slot] != 0:
        if table[slot] == code:
            return False
        slot = (slot + 1) & mask
    table[slot] = code
    return True


@kernel
def collect_proof(
    entries: Entries,
    branches: Branches,
    root: int,
    keys: Column,
    first: int,
    count: int,
    uses: Bytes,
    table: Int64s,
    nodes: Int64s,
    result: Int64s,
) -> int:
    """List in ``nodes`` what reading the keys ``first`` to ``count`` below ``root`` touches; return how many nodes.

    External values of all keys are read, or, where there are ``uses``, of those that have ``READ`` there. ``table`` is
    a hash set, a power of two long and twice as long as ``nodes``. A bound for the bytes of the nodes is added to
    ``result[0]``. Returns -1 when ``nodes`` is too short.
    """
    used = 0
    room = 0
    for slot in range(len(table)):
        table[slot] = 0
    for i in range(first, count):
        if (i - first) % GROUP == 0:
            scout(entries, branches, root, keys, i, min(i + GROUP, count), nodes[len(nodes) - GROUP :])
        at, size = place(keys, i)
        node = int64(root)
        entry = int64(-1)
        while node != 0:
            if used + 2 + GROUP > len(nodes):
                return -1
            if node > 0:
                hashed = entries.state[node - 1] & SIZE == 32 or node == root
                if hashed and mark(table, node):
                    nodes[used] = node
                    used += 1
                    room += BRANCH_BYTES + place(entries.key, node - 1)[1] + place(entries.value, node - 1)[1]
                if same_string(entries.key, node - 1, keys, i):
                    entry = node - 1
                break
            branch = -node - 1
            depth = int64(branches.row[branch, DEPTH])
            valued = int64(branches.row[branch, VALUED]) - 1
            hashed = branches.row[branch, STATE] & SIZE == 32 or node == root
            if hashed and mark(table, node):
                nodes[used] = node
                used += 1
                room += BRANCH_BYTES + depth
                if valued >= 0:
                    room += place(entries.value, valued)[1]
            if not fits(entries, branches, branch, keys.data, at, size):
                break
            if depth >= 2 * size:
                entry = valued
                break
            node = int64(branches.row[branch, nibble(keys.data, at, depth)])
        is_read = len(uses) == 0 or uses[i] & READ != 0
        if entry >= 0 and is_read and entries.state[entry] & EXTERNAL and mark(table, VALUE + entry):
            nodes[used] = VALUE + entry
            used += 1
            room += place(entries.value, entry)[1]
    result[0] += room
    return used


@face
def collect_proofs(
    tables: Tables,
    roots: Int64s,
    wanted: Strings,
    ends: Int64s,
    rooms: Int64s,
    table: Int64s,
    nodes: Int64s,
    node_ends: Int64s,
) -> int:
    """List the nodes that reading keys touches, each once for each root; return a bound for their bytes.

    The keys up to ``ends[p + 1]`` are read below ``roots[p]``. The nodes that this touches are written to
    ``nodes[node_ends[p] : node_ends[p + 1]]``, at most ``rooms[p]`` of them, a power of two. The answer is -1 where
    there are more. Inline nodes come with their parents; a root comes however short it is. ``table`` has twice the
    largest room.
    """
    entries, branches, keys = entries_in(tables), branches_in(tables), column_in(wanted)
    bound = node_ends[:1]
    bound[0] = 0
    used = int64(0)
    for proof in range(len(roots)):
        room = rooms[proof]
        found = collect_proof(
            entries,
            branches,
            roots[proof],
            keys,
            ends[proof],
            ends[proof + 1],
            keys.data[:0],
            table[: 2 * room],
            nodes[used : used + room],
            bound,
        )
        if found < 0:
            return -1
        used += found
        node_ends[proof + 1] = used
    total = int64(bound[0])
    node_ends[0] = 0
    return total


@face
def write_nodes(tables: Tables, nodes: Int64s, count: int, out: Bytes, offsets: Int64s) -> None:
    """Write the first ``count`` listed nodes to ``out`` one after another, and their ends to ``offsets``.

    ``nodes`` lists them as ``collect_proofs`` does; node ``i`` goes to ``out[offsets[i] : offsets[i + 1]]``. Of the
    last one up to 64 bytes behind may change.
    """
    entries, branches = entries_in(tables), branches_in(tables)
    at = int64(0)
    offsets[0] = at
    for i in range(count):
        if i + AHEAD < count and nodes[i + AHEAD] < 0:
            ask_for_children(entries, branches, -nodes[i + AHEAD] - 1)
        node = nodes[i]
        if node >= VALUE:
            value_at, size = place(entries.value, node - VALUE)
            copy_loose(out, at, entries.value.data, value_at, size)
            at += size
        elif node > 0:
            at = write_leaf(entries, node - 1, out, at)
        else:
            at = write_branch(entries, branches, -node - 1, out, at)
        offsets[i + 1] = at


@face
def list_entries(branches: Branches, root: int, order: Int32s, stack: Int64s) -> int:
    """Write the entries below ``root`` in the order of their keys; return how many.

    ``stack`` is room for 32 numbers a level of branches; the answer is -1 when it is too small.
    """
    count = 0
    top = 0
    stack[0] = root
    while top >= 0:
        node = stack[top]
        top -= 1
        if node > 0:
            order[count] = node - 1
            count += 1
        elif node < 0:
            branch = -node - 1
            if branches.row[branch, VALUED] > 0:
                order[count] = branches.row[branch, VALUED] - 1
                count += 1
            if top + 17 >= len(stack):
                return -1
            for way in range(15, -1, -1):
                child = int64(branches.row[branch, way])
                if child != 0:
                    top += 1
                    stack[top] = child
    return count


@inlined
def _hash_word(entries: Entries, branches: Branches, node: int, word: int) -> int:
    """Return word 0, 1, 2 or 3 of the hash of a listed node: 8 bytes as a big-endian number.

    ``node`` is a number as ``collect_proofs`` lists them.
    """
    if node >= VALUE:
        return load64(entries.value_hash, (node - VALUE) * 32 + 8 * word)
    if node > 0:
        return load64(entries.ref, (node - 1) * REF + 1 + 8 * word)
    return load64(branches.ref, (-node - 1) * REF + 1 + 8 * word)


@inlined
def _ask_for_hash(entries: Entries, branches: Branches, node: int) -> None:
    """Bring the hash of a listed node into the cache."""
    if node >= VALUE:
        prefetch(entries.value_hash, (node - VALUE) * 32)
    elif node > 0:
        prefetch(entries.ref, (node - 1) * REF)
    else:
        prefetch(branches.ref, (-node - 1) * REF)


@face
def drop_repeated(tables: Tables, nodes: Int64s, node_ends: Int64s, table: Int64s) -> int:
    """Keep of the nodes of a proof that have one hash the first; return how many are left in all.

    The nodes of proof ``p`` are those from ``node_ends[p]`` to ``node_ends[p + 1]``, as ``collect_proofs`` lists them;
    the others move together, and ``node_ends`` with them. ``table`` has one place, and four for each node of the
    largest proof. A root of less than 32 bytes has no hash, and no node beside it.
    """
    entries, branches = entries_in(tables), branches_in(tables)
    kept, first = int64(0), int64(0)
    for proof in range(len(node_ends) - 1):
        last = int64(node_ends[proof + 1])
        places = int64(1)
        while places < 2 * (last - first):
            places <<= 1
        table[:places] = 0
        for i in range(first, last):
            if i + AHEAD < last:
                _ask_for_hash(entries, branches, nodes[i + AHEAD])
            node = int64(nodes[i])
            begin = _hash_word(entries, branches, node, 0)
            slot = int64(begin & np.uint64(places - 1))
            is_new = True
            while table[slot] != 0 and is_new:
                other = int64(nodes[table[slot] - 1])
                if _hash_word(entries, branches, other, 0) == begin:
                    is_new = False
                    for word in range(1, 4):
                        if _hash_word(entries, branches, other, word) != _hash_word(entries, branches, node, word):
                            is_new = True
                slot = slot + 1 & places - 1
            if is_new:
                nodes[kept] = node
                kept += 1
                table[slot] = kept
        node_ends[proof + 1] = kept
        first = last
    return kept


@kernel
def _list_hashed(tables: Tables, some_entries: Int32s, some_branches: Int32s, nodes: Int64s, result: Int64s) -> None:
    """List the nodes and external values among slots that stand under a hash of their own.

    ``nodes`` gets their numbers, as ``write_nodes`` takes them, and has room for two an entry and one a branch.
    ``result`` becomes how many there are, and a bound for their bytes.
    """
    entries, branches = entries_in(tables), branches_in(tables)
    used = 0
    room = int64(0)
    for i in range(len(some_entries)):
        entry = int64(some_entries[i])
        size = place(entries.value, entry)[1]
        if entries.state[entry] & EXTERNAL:
            nodes[used] = VALUE + entry
            used += 1
            room += size
        if entries.start[entry] != NO_START and entries.state[entry] & SIZE == 32:
            nodes[used] = entry + 1
            used += 1
            room += BRANCH_BYTES + place(entries.key, entry)[1] + size
    for i in range(len(some_branches)):
        branch = int64(some_branches[i])
        if branches.row[branch, STATE] & SIZE == 32:
            nodes[used] = -(branch + 1)
            used += 1
            room += BRANCH_BYTES + int64(branches.row[branch, DEPTH])
            valued = int64(branches.row[branch, VALUED]) - 1
            if valued >= 0:
                room += place(entries.value, valued)[1]
    result[0], result[1] = used, room


@kernel
def copy_hashes(tables: Tables, nodes: Int64s, count: int, out: Bytes) -> None:
    """Write the hashes of the first ``count`` listed nodes, 32 bytes each, to ``out`` one after another."""
    entries, branches = entries_in(tables), branches_in(tables)
    for i in range(count):
        node = nodes[i]
        if node >= VALUE:
            copy32(out, 32 * i, entries.value_hash, 32 * (node - VALUE))
        elif node > 0:
            copy32(out, 32 * i, entries.ref, REF * (node - 1) + 1)
        else:
            copy32(out, 32 * i, branches.ref, REF * (-node - 1) + 1)


@allocating_kernel
def hashes_of(tables: Tables, some_entries: Int32s, some_branches: Int32s) -> Bytes:
    """Return the hashes, one after another, of the nodes and external values among these slots that have one."""
    nodes = np.empty(2 * len(some_entries) + len(some_branches), np.int64)
    result = np.empty(2, np.int64)
    _list_hashed(tables, some_entries, some_branches, nodes, result)
    hashes = np.empty(32 * result[0], np.uint8)
    copy_hashes(tables, nodes, result[0], hashes)
    return hashes


@allocating_kernel
def hashed_nodes_of(
    tables: Tables, some_entries: Int32s, some_branches: Int32s, longest: int
) -> tuple[Bytes, Bytes, Int64s]:
    """Return the hashes of the nodes and external values among these slots, and these themselves.

    Those with a hash of their own are taken. Returned are the hashes, 32 bytes each; the encoded nodes and the values,
    one after another; and the offsets of these. ``longest`` bounds the bytes of a node.
    """
    nodes = np.empty(2 * len(some_entries) + len(some_branches), np.int64)
    result = np.empty(2, np.int64)
    _list_hashed(tables, some_entries, some_branches, nodes, result)
    used = result[0]
    hashes = np.empty(32 * used, np.uint8)
    copy_hashes(tables, nodes, used, hashes)
    data = np.empty(result[1] + longest, np.uint8)
    offsets = np.empty(used + 1, np.int64)
    write_nodes(tables, nodes, used, data, offsets)
    return hashes, data[: offsets[used]], offsets


@face
def copy_references(tables: Tables, nodes: Int64s, out: Bytes) -> None:
    """Write for each of ``nodes`` 33 bytes, its slot of a reference; for 0 the two bytes of the empty node."""
    entries, branches = entries_in(tables), branches_in(tables)
    for i in range(len(nodes)):
        node = nodes[i]
        if node > 0:
            copy(out, REF * i, entries.ref, REF * (node - 1), REF)
        elif node < 0:
            copy(out, REF * i, branches.ref, REF * (-node - 1), REF)
        else:
            out[REF * i] = 1 << 2
            out[REF * i + 1] = 0
