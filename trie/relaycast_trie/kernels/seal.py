"""Telling a database of hashed nodes what a change brings it and what it may drop; slots that nobody reads."""

import numpy as np

from relaycast_trie.kernels.compiling import allocating_kernel, face, kernel
from relaycast_trie.kernels.encode import BRANCH_BYTES
from relaycast_trie.kernels.get import VALUE, write_nodes
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, copy32, int64
from relaycast_trie.kernels.slots import RETIRED_BRANCHES, RETIRED_ENTRIES
from relaycast_trie.kernels.tables import (
    DEPTH,
    EXTERNAL,
    NO_START,
    REF,
    SIZE,
    STATE,
    VALUED,
    Tables,
    branches_in,
    entries_in,
    place,
)


@allocating_kernel
def take_retired(counters: Int64s, entries: Int32s, branches: Int32s) -> tuple[Int32s, Int32s]:
    """Return copies of the lists of retired entries and branches, and set their counters to 0."""
    old_entries = entries[: counters[RETIRED_ENTRIES]].copy()
    old_branches = branches[: counters[RETIRED_BRANCHES]].copy()
    counters[RETIRED_ENTRIES] = counters[RETIRED_BRANCHES] = 0
    return old_entries, old_branches


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
def _copy_hashes(tables: Tables, nodes: Int64s, count: int, out: Bytes) -> None:
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
    _copy_hashes(tables, nodes, result[0], hashes)
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
    _copy_hashes(tables, nodes, used, hashes)
    data = np.empty(result[1] + longest, np.uint8)
    offsets = np.empty(used + 1, np.int64)
    write_nodes(tables, nodes, used, data, offsets)
    return hashes, data[: offsets[used]], offsets


@allocating_kernel
def slots_in_use(next_slot: int, free: Int32s) -> Int32s:
    """Return, ascending, the numbers below ``next_slot`` that are not in ``free``, which holds none twice."""
    is_free = np.zeros(next_slot, np.uint8)
    for i in range(len(free)):
        is_free[free[i]] = 1
    slots = np.empty(next_slot - len(free), np.int32)
    at = 0
    for slot in range(next_slot):
        if not is_free[slot]:
            slots[at] = slot
            at += 1
    return slots


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
