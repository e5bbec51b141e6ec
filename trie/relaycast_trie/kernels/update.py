"""Changing a trie in its tables: which slots are in use, and puts and removals, one key after another.

A node that is not fresh is read by an older version too: it is copied before it changes, and the old slot is *retired*
until that version is forgotten. What leads to a change changes too: all of it is made fresh on the way down. Changed
nodes are stale until their references are computed (``settle``). A kernel stops before the first key for which a table
might be too small; the caller makes room and goes on from there.
"""

import numpy as np

from relaycast_trie.kernels.compiling import allocating_kernel, face, inlined, kernel
from relaycast_trie.kernels.encode import MANY
from relaycast_trie.kernels.get import GROUP, same_string, scout
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, copy32, int64, lowest_bit
from relaycast_trie.kernels.tables import (
    DEPTH,
    EXTERNAL,
    FRESH,
    NO_START,
    SAMPLE,
    SIZE,
    STALE,
    STALE_WAYS,
    START,
    STATE,
    VALUED,
    WAYS,
    Branches,
    Column,
    Entries,
    Slots,
    Strings,
    Tables,
    branches_in,
    column_in,
    entries_in,
    nibble,
    place,
    shared_nibbles,
    slots_in,
)

ROOT, KEYS, NEXT_ENTRY, NEXT_BRANCH, FREE_ENTRIES, FREE_BRANCHES = range(6)
RETIRED_ENTRIES, RETIRED_BRANCHES, STALE_ENTRIES, STALE_BRANCHES, KEY_END, VALUE_END = range(6, 12)
PENDING_ENTRIES = 12
COUNTERS = 13
"""Numbers of an arena: its root node, its keys, the first slots never used, how many are in each list, and so on."""


@inlined
def new_entry(slots: Slots) -> int:
    """Return a free slot for an entry, or the next one never used; the caller writes it, state included."""
    counters = slots.counters
    counters[STALE_ENTRIES] += 1
    if counters[FREE_ENTRIES] > 0:
        counters[FREE_ENTRIES] -= 1
        return int64(slots.free_entries[counters[FREE_ENTRIES]])
    counters[NEXT_ENTRY] += 1
    return int64(counters[NEXT_ENTRY]) - 1


@inlined
def new_branch(branches: Branches, slots: Slots) -> int:
    """Return a free slot for a branch, or the next one never used; its state is stale and fresh."""
    counters = slots.counters
    counters[STALE_BRANCHES] += 1
    if counters[FREE_BRANCHES] > 0:
        counters[FREE_BRANCHES] -= 1
        branch = int64(slots.free_branches[counters[FREE_BRANCHES]])
    else:
        branch = counters[NEXT_BRANCH]
        counters[NEXT_BRANCH] += 1
    branches.row[branch, STATE] = STALE | FRESH
    branches.row[branch, STALE_WAYS] = 0
    return branch


@inlined
def drop_entry(entries: Entries, slots: Slots, entry: int) -> None:
    """Give up an entry: a fresh one becomes free with the next settling, another one is retired."""
    counters = slots.counters
    if entries.state[entry] & FRESH:
        slots.pending_entries[counters[PENDING_ENTRIES]] = entry
        counters[PENDING_ENTRIES] += 1
    else:
        slots.retired_entries[counters[RETIRED_ENTRIES]] = entry
        counters[RETIRED_ENTRIES] += 1


@inlined
def drop_branch(branches: Branches, slots: Slots, branch: int) -> None:
    """Give up a branch: a fresh one is free at once, another one is retired."""
    counters = slots.counters
    if branches.row[branch, STATE] & FRESH:
        slots.free_branches[counters[FREE_BRANCHES]] = branch
        counters[FREE_BRANCHES] += 1
    else:
        slots.retired_branches[counters[RETIRED_BRANCHES]] = branch
        counters[RETIRED_BRANCHES] += 1


@kernel
def fresh_entry(entries: Entries, slots: Slots, entry: int) -> int:
    """Return the entry made stale, or, when older versions read it, a copy that is stale and fresh."""
    state = int64(entries.state[entry])
    if state & FRESH:
        if state & SIZE != STALE:
            slots.counters[STALE_ENTRIES] += 1
        entries.state[entry] = state | STALE
        return entry
    twin = new_entry(slots)
    _copy_string(entries.key, entry, twin)
    _copy_string(entries.value, entry, twin)
    if state & EXTERNAL:
        copy32(entries.value_hash, twin * 32, entries.value_hash, entry * 32)
    entries.start[twin] = entries.start[entry]
    entries.state[twin] = state | STALE | FRESH
    drop_entry(entries, slots, entry)
    return twin


@inlined
def _copy_string(column: Column, source: int, target: int) -> None:
    """Make one slot of a column hold what another holds."""
    if column.width >= 0:
        copy(column.data, target * column.width, column.data, source * column.width, column.width)
    else:
        column.at[target] = column.at[source]
        column.size[target] = column.size[source]


@inlined
def store_string(column: Column, target: int, source: Column, index: int, counters: Int64s, end: int) -> None:
    """Put string ``index`` of ``source`` into slot ``target`` of a column.

    In a column of one width it lies in its slot. In another it is written at the end of the data, ``counters[end]``,
    which moves on.
    """
    at, size = place(source, index)
    if column.width >= 0:
        copy(column.data, target * column.width, source.data, at, size)
        return
    column.at[target] = counters[end]
    column.size[target] = size
    copy(column.data, counters[end], source.data, at, size)
    counters[end] += size


@kernel
def fresh_branch(branches: Branches, slots: Slots, branch: int) -> int:
    """Return the branch made stale, or, when older versions read it, a copy that is stale and fresh."""
    state = int64(branches.row[branch, STATE])
    if state & FRESH:
        if state & SIZE != STALE:
            slots.counters[STALE_BRANCHES] += 1
        branches.row[branch, STATE] = STALE | FRESH
        return branch
    twin = new_branch(branches, slots)
    for item in range(STATE):
        branches.row[twin, item] = branches.row[branch, item]
    drop_branch(branches, slots, branch)
    return twin


@allocating_kernel
def take_retired(counters: Int64s, entries: Int32s, branches: Int32s) -> tuple[Int32s, Int32s]:
    """Return copies of the lists of retired entries and branches, and set their counters to 0."""
    old_entries = entries[: counters[RETIRED_ENTRIES]].copy()
    old_branches = branches[: counters[RETIRED_BRANCHES]].copy()
    counters[RETIRED_ENTRIES] = counters[RETIRED_BRANCHES] = 0
    return old_entries, old_branches


@kernel
def _mark_below(branches: Branches, root: int, marks: Bytes, some_entries: Int32s, some_branches: Int32s) -> None:
    """List the slots below ``root`` that are not marked, and mark them: ``marks`` has a byte an entry, then a branch.

    How many are listed stands in the last place of each list. A branch in its list is one whose children are listed.
    """
    entry_count = len(some_entries) - 1
    last_entry, last_branch = len(some_entries) - 1, len(some_branches) - 1
    following = int64(some_branches[last_branch])
    node = int64(root)
    child_of = int64(-1)
    ways = int64(0)
    while True:
        if node > 0 and marks[node - 1] == 0:
            marks[node - 1] = 1
            some_entries[some_entries[last_entry]] = node - 1
            some_entries[last_entry] += 1
        elif node < 0 and marks[entry_count - node - 1] == 0:
            marks[entry_count - node - 1] = 1
            some_branches[some_branches[last_branch]] = -node - 1
            some_branches[last_branch] += 1
        while ways == 0:
            if following == some_branches[last_branch]:
                return
            child_of = int64(some_branches[following])
            following += 1
            ways = int64(branches.row[child_of, WAYS])
            if branches.row[child_of, VALUED] > 0:
                ways |= 1 << VALUED
        node = int64(branches.row[child_of, lowest_bit(ways)])
        ways &= ways - 1


@allocating_kernel
def slots_below(tables: Tables, roots: Int64s, entry_slots: int, branch_slots: int) -> tuple[Int32s, Int32s]:
    """Return the slots of all entries and of all branches below ``roots``, each once."""
    marks = np.zeros(entry_slots + branch_slots, np.uint8)
    some_entries, some_branches = np.zeros(entry_slots + 1, np.int32), np.zeros(branch_slots + 1, np.int32)
    _mark_all(tables, roots, marks, some_entries, some_branches)
    return some_entries[: some_entries[entry_slots]].copy(), some_branches[: some_branches[branch_slots]].copy()


@kernel
def _mark_all(tables: Tables, roots: Int64s, marks: Bytes, some_entries: Int32s, some_branches: Int32s) -> None:
    branches = branches_in(tables)
    for i in range(len(roots)):
        _mark_below(branches, roots[i], marks, some_entries, some_branches)


@inlined
def _hang(branches: Branches, slots: Slots, path: Int64s, level: int, keys: Column, at: int, node: int) -> None:
    """Make ``node`` what stands below the branch at ``level`` of the path on the way of a key; level -1 is the root."""
    if level < 0:
        slots.counters[ROOT] = node
        return
    parent = path[level]
    way = nibble(keys.data, at, int64(branches.row[parent, DEPTH]))
    branches.row[parent, way] = node
    bit = int64(1) << way
    ways = int64(branches.row[parent, WAYS])
    stale = int64(branches.row[parent, STALE_WAYS])
    branches.row[parent, WAYS] = ways | bit if node != 0 else ways & ~bit
    branches.row[parent, STALE_WAYS] = stale | bit if node != 0 else stale & ~bit


@inlined
def _freshen_path(branches: Branches, slots: Slots, path: Int64s, levels: int, keys: Column, at: int) -> None:
    """Make the first ``levels`` branches of a path fresh, and mark each as stale in the one above it.

    A branch that older versions read is copied: the copy takes its place in ``path``, and in the tree on the way of the
    key at ``at``.
    """
    for level in range(levels):
        branch = fresh_branch(branches, slots, path[level])
        if branch != path[level]:
            path[level] = branch
            _hang(branches, slots, path, level - 1, keys, at, -(branch + 1))
        elif level > 0:
            way = nibble(keys.data, at, int64(branches.row[path[level - 1], DEPTH]))
            branches.row[path[level - 1], STALE_WAYS] |= np.int32(1) << way


@inlined
def _has_room(entries: Entries, branches: Branches, slots: Slots, levels: int) -> bool:
    """Return whether tables have room for a change along ``levels`` branches; lists are as long as their tables."""
    counters = slots.counters
    entry_room = len(entries.state) - counters[NEXT_ENTRY] + counters[FREE_ENTRIES]
    branch_room = len(branches.row) - counters[NEXT_BRANCH] + counters[FREE_BRANCHES]
    return bool(entry_room >= 3 and branch_room >= levels + 3)


@inlined
def _descend(
    entries: Entries, branches: Branches, slots: Slots, keys: Column, at: int, size: int, path: Int64s
) -> tuple[int, int, int]:
    """Follow a key as far as it fits.

    Returns the branches passed (in ``path``), the node that stands next, and how many nibbles fit. That node is 0 where
    nothing stands. Else it is a leaf, or the branch whose partial key parts from the key or ends with it.
    """
    levels = 0
    node = slots.counters[ROOT]
    while node < 0:
        branch = -node - 1
        depth = int64(branches.row[branch, DEPTH])
        start = int64(branches.row[branch, START])
        if start != depth:
            sample_at, sample_size = place(entries.key, branches.row[branch, SAMPLE])
            skip = start >> 1
            shared = 2 * skip + shared_nibbles(
                entries.key.data, sample_at + skip, sample_size - skip, keys.data, at + skip, size - skip
            )
            if shared < depth:
                return levels, node, shared
        if depth == 2 * size:
            return levels, node, depth
        path[levels] = branch
        levels += 1
        node = int64(branches.row[branch, nibble(keys.data, at, depth)])
    if node == 0:
        return levels, node, int64(0)
    key_at, key_size = place(entries.key, node - 1)
    return levels, node, shared_nibbles(entries.key.data, key_at, key_size, keys.data, at, size)


@kernel
def _add_entry(
    entries: Entries, slots: Slots, keys: Column, values: Column, index: int, start: int, external_from: int
) -> int:
    """Return a new entry with key and value ``index`` of two columns, stale and fresh.

    ``start`` is from which nibble on its leaf spells the key. A value of ``external_from`` bytes and more is external.
    """
    entry = new_entry(slots)
    store_string(entries.key, entry, keys, index, slots.counters, KEY_END)
    store_string(entries.value, entry, values, index, slots.counters, VALUE_END)
    entries.start[entry] = start
    external = EXTERNAL if place(values, index)[1] >= external_from else 0
    entries.state[entry] = STALE | FRESH | external
    slots.counters[KEYS] += 1
    return entry


@kernel
def _holds(entries: Entries, entry: int, values: Column, index: int, external_from: int) -> bool:
    """Return whether an entry has value ``index`` already, external or not as it would be stored now."""
    external = place(values, index)[1] >= external_from
    if external != (entries.state[entry] & EXTERNAL != 0):
        return False
    return same_string(entries.value, entry, values, index)


@kernel
def _replace_value(entries: Entries, slots: Slots, entry: int, values: Column, index: int, external_from: int) -> int:
    """Give an entry value ``index`` of a column; return it, or its copy when older versions read it."""
    entry = fresh_entry(entries, slots, entry)
    store_string(entries.value, entry, values, index, slots.counters, VALUE_END)
    external = EXTERNAL if place(values, index)[1] >= external_from else 0
    entries.state[entry] = STALE | FRESH | external
    return entry


@kernel
def _split(
    entries: Entries,
    branches: Branches,
    slots: Slots,
    node: int,
    shared: int,
    keys: Column,
    values: Column,
    index: int,
    external_from: int,
) -> int:
    """Return a new branch over ``node`` and a new entry, which part after ``shared`` nibbles.

    ``node`` is made fresh; the entry has key and value ``index`` of two columns.
    """
    at, size = place(keys, index)
    if node > 0:
        entry = fresh_entry(entries, slots, node - 1)
        node = entry + 1
        other = entry
        start = int64(entries.start[entry])
    else:
        lower = fresh_branch(branches, slots, -node - 1)
        node = -(lower + 1)
        other = int64(branches.row[lower, SAMPLE])
        start = int64(branches.row[lower, START])
    branch = new_branch(branches, slots)
    for way in range(16):
        branches.row[branch, way] = 0
    branches.row[branch, START] = start
    branches.row[branch, DEPTH] = shared
    branches.row[branch, SAMPLE] = other
    branches.row[branch, VALUED] = 0
    ways = int64(0)
    other_at, other_size = place(entries.key, other)
    if node > 0 and 2 * other_size == shared:
        branches.row[branch, VALUED] = node
        entries.start[node - 1] = NO_START
    else:
        way = nibble(entries.key.data, other_at, shared)
        branches.row[branch, way] = node
        ways |= int64(1) << way
        if node > 0:
            entries.start[node - 1] = shared + 1
        else:
            branches.row[-node - 1, START] = shared + 1
    if 2 * size == shared:
        entry = _add_entry(entries, slots, keys, values, index, NO_START, external_from)
        branches.row[branch, VALUED] = entry + 1
    else:
        entry = _add_entry(entries, slots, keys, values, index, shared + 1, external_from)
        way = nibble(keys.data, at, shared)
        branches.row[branch, way] = entry + 1
        ways |= int64(1) << way
    branches.row[branch, WAYS] = branches.row[branch, STALE_WAYS] = ways
    return branch


@kernel
def put_into(
    entries: Entries,
    branches: Branches,
    slots: Slots,
    keys: Column,
    values: Column,
    first: int,
    count: int,
    external_from: int,
    path: Int64s,
) -> int:
    """Put the keys ``first`` to ``count`` into the trie whose root is in the counters.

    Returns the first key for which the tables lack room, or ``count``. Values of ``external_from`` bytes and more
    become external. ``path`` is room for the branches that a key passes, and for ``GROUP`` numbers.
    """
    for i in range(first, count):
        if (i - first) % GROUP == 0 and len(branches.row) > MANY:
            scout(entries, branches, int64(slots.counters[ROOT]), keys, i, min(i + GROUP, count), path)
        at, size = place(keys, i)
        levels, node, shared = _descend(entries, branches, slots, keys, at, size, path)
        if not _has_room(entries, branches, slots, levels):
            return i
        if node > 0 and shared == 2 * size == 2 * place(entries.key, node - 1)[1]:
            if _holds(entries, node - 1, values, i, external_from):
                continue
            _freshen_path(branches, slots, path, levels, keys, at)
            entry = _replace_value(entries, slots, node - 1, values, i, external_from)
            _hang(branches, slots, path, levels - 1, keys, at, entry + 1)
        elif node < 0 and shared == branches.row[-node - 1, DEPTH]:
            valued = int64(branches.row[-node - 1, VALUED]) - 1
            if valued >= 0 and _holds(entries, valued, values, i, external_from):
                continue
            path[levels] = -node - 1
            _freshen_path(branches, slots, path, levels + 1, keys, at)
            if valued >= 0:
                valued = _replace_value(entries, slots, valued, values, i, external_from)
            else:
                valued = _add_entry(entries, slots, keys, values, i, NO_START, external_from)
            branches.row[path[levels], VALUED] = valued + 1
        else:
            _freshen_path(branches, slots, path, levels, keys, at)
            if node == 0:
                start = int64(branches.row[path[levels - 1], DEPTH]) + 1 if levels > 0 else int64(0)
                node = _add_entry(entries, slots, keys, values, i, start, external_from) + 1
            else:
                node = -(_split(entries, branches, slots, node, shared, keys, values, i, external_from) + 1)
            _hang(branches, slots, path, levels - 1, keys, at, node)
    return count


@face
def put_entries(
    tables: Tables,
    roots: Int64s,
    keys: Strings,
    values: Strings,
    first: int,
    ends: Int64s,
    external_from: int,
    path: Int64s,
    retired: Int64s,
) -> int:
    """Put keys into several tries, from the number ``first`` on; return the first not put for lack of room, or the end.

    The trie with the root ``roots[t]``, which is rewritten, gets the keys up to ``ends[t]`` that no trie before it got.
    Values of ``external_from`` bytes and more become external. ``path`` is room as ``put_into`` takes it. How many
    entries and branches are retired after a trie that got keys is written to its two places in ``retired``.
    """
    entries, branches, slots = entries_in(tables), branches_in(tables), slots_in(tables)
    key_column, value_column = column_in(keys), column_in(values)
    for trie in range(len(roots)):
        if first < ends[trie]:
            slots.counters[ROOT] = roots[trie]
            first = put_into(entries, branches, slots, key_column, value_column, first, ends[trie], external_from, path)
            roots[trie] = slots.counters[ROOT]
            _note_retired(slots, retired, trie)
            if first < ends[trie]:
                return first
    return first


@inlined
def _note_retired(slots: Slots, retired: Int64s, trie: int) -> None:
    retired[2 * trie] = slots.counters[RETIRED_ENTRIES]
    retired[2 * trie + 1] = slots.counters[RETIRED_BRANCHES]


@kernel
def _collapse(
    entries: Entries, branches: Branches, slots: Slots, path: Int64s, level: int, keys: Column, at: int
) -> None:
    """Replace the fresh branch at ``level`` by the only thing it has left, if there is only one.

    That is its value or its only child, made fresh, whose partial key then starts where the branch's did.
    """
    branch = path[level]
    ways = int64(branches.row[branch, WAYS])
    valued = int64(branches.row[branch, VALUED]) - 1
    if ways & (ways - 1) or (ways and valued >= 0):
        return
    start = branches.row[branch, START]
    node = valued + 1
    if ways:
        node = int64(branches.row[branch, lowest_bit(ways)])
    if node > 0:
        entry = fresh_entry(entries, slots, node - 1)
        entries.start[entry] = start
        node = entry + 1
    else:
        lower = fresh_branch(branches, slots, -node - 1)
        branches.row[lower, START] = start
        node = -(lower + 1)
    _hang(branches, slots, path, level - 1, keys, at, node)
    drop_branch(branches, slots, branch)


@kernel
def _remove(
    entries: Entries, branches: Branches, slots: Slots, keys: Column, first: int, count: int, path: Int64s
) -> int:
    """Remove the keys ``first`` to ``count`` from the trie whose root is in the counters; keys not there do no harm.

    Returns the first key for which the tables lack room, or ``count``. ``path`` is room for the branches that a key
    passes.
    """
    for i in range(first, count):
        at, size = place(keys, i)
        levels, node, shared = _descend(entries, branches, slots, keys, at, size, path)
        if not _has_room(entries, branches, slots, levels):
            return i
        if node > 0 and same_string(entries.key, node - 1, keys, i):
            _freshen_path(branches, slots, path, levels, keys, at)
            _hang(branches, slots, path, levels - 1, keys, at, 0)
            drop_entry(entries, slots, node - 1)
        elif node < 0 and shared == branches.row[-node - 1, DEPTH] and branches.row[-node - 1, VALUED] > 0:
            path[levels] = -node - 1
            levels += 1
            _freshen_path(branches, slots, path, levels, keys, at)
            drop_entry(entries, slots, int64(branches.row[path[levels - 1], VALUED]) - 1)
            branches.row[path[levels - 1], VALUED] = 0
        else:
            continue
        slots.counters[KEYS] -= 1
        if levels:
            _collapse(entries, branches, slots, path, levels - 1, keys, at)
    return count


@face
def remove_entries(
    tables: Tables, roots: Int64s, keys: Strings, first: int, ends: Int64s, path: Int64s, retired: Int64s
) -> int:
    """Remove keys from several tries, from the number ``first`` on; keys that are not there do no harm.

    From the trie with the root ``roots[t]``, which is rewritten, the keys up to ``ends[t]`` are removed that no trie
    before it was asked for. Returns the first key for which the tables lack room, or the end. ``path`` is room for the
    branches that a key passes; ``retired`` is as in ``put_entries``.
    """
    entries, branches, slots = entries_in(tables), branches_in(tables), slots_in(tables)
    key_column = column_in(keys)
    for trie in range(len(roots)):
        if first < ends[trie]:
            slots.counters[ROOT] = roots[trie]
            first = _remove(entries, branches, slots, key_column, first, ends[trie], path)
            roots[trie] = slots.counters[ROOT]
            _note_retired(slots, retired, trie)
            if first < ends[trie]:
                return first
    return first
