"""Which slots of the tables are in use, free, or read by older versions only; and copies that may change.

A node that is not fresh is read by an older version too: it is copied before it changes, and the old slot is *retired*
until that version is forgotten.
"""

from relaycast_trie.kernels.compiling import inlined, kernel
from relaycast_trie.kernels.memory import Int64s, copy, copy32, int64
from relaycast_trie.kernels.tables import (
    EXTERNAL,
    FRESH,
    SIZE,
    STALE,
    STALE_WAYS,
    STATE,
    Branches,
    Column,
    Entries,
    Slots,
    place,
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
