"""Reading a trie in its tables: which entry has a key, and which nodes prove what a key has.

A search compares a key with one entry only: branches say at which nibbles to look, the entry at the end whether the
guess was right. A proof needs more, the last branch that still fits.
"""

from relaycast_trie.kernels.compiling import face, inlined, kernel
from relaycast_trie.kernels.encode import AHEAD, BRANCH_BYTES, ask_for_children, write_branch, write_leaf
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy_loose, int64, prefetch
from relaycast_trie.kernels.tables import (
    DEPTH,
    EXTERNAL,
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
def _fits(entries: Entries, branches: Branches, branch: int, data: Bytes, at: int, size: int) -> bool:
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
def _mark(table: Int64s, code: int) -> bool:
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
def _collect_proof(
    entries: Entries,
    branches: Branches,
    root: int,
    keys: Column,
    first: int,
    count: int,
    table: Int64s,
    nodes: Int64s,
    result: Int64s,
) -> int:
    """List in ``nodes`` what reading the keys ``first`` to ``count`` below ``root`` touches; return how many nodes.

    ``table`` is a hash set, a power of two long and twice as long as ``nodes``. A bound for the bytes of the nodes is
    added to ``result[0]``. Returns -1 when ``nodes`` is too short.
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
                if hashed and _mark(table, node):
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
            if hashed and _mark(table, node):
                nodes[used] = node
                used += 1
                room += BRANCH_BYTES + depth
                if valued >= 0:
                    room += place(entries.value, valued)[1]
            if not _fits(entries, branches, branch, keys.data, at, size):
                break
            if depth >= 2 * size:
                entry = valued
                break
            node = int64(branches.row[branch, nibble(keys.data, at, depth)])
        if entry >= 0 and entries.state[entry] & EXTERNAL and _mark(table, VALUE + entry):
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
        found = _collect_proof(
            entries,
            branches,
            roots[proof],
            keys,
            ends[proof],
            ends[proof + 1],
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
