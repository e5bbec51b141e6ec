"""Reading proofs: all nodes of all proofs are hashed together in lanes, then every key walks from its root.

A node is found by its hash alone, so a walk follows true nodes or stops. Only nodes that a walk meets are decoded.
"""

from typing import NamedTuple

import numpy as np

from relaycast_trie.kernels.compiling import allocating_kernel, face, inlined
from relaycast_trie.kernels.decode import (
    BRANCH,
    COUNT,
    EMPTY,
    HASHED,
    KIND,
    LEAF,
    NO_VALUE,
    PLAN,
    UNSEEN,
    VALUE_AT,
    VALUE_SIZE,
    child_place,
    partial_fits,
    plan_node,
)
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, int64, load64
from relaycast_trie.kernels.multibuffer_hash import BLOCK, hash_messages, new_rooms
from relaycast_trie.kernels.tables import Column, Tables, column_in, nibble, place

HOLDS, FAILS, UNUSED = 0, 1, 2
"""What is known of a proof: it holds; a node is missing or does not decode; it holds and has nodes nobody needs."""

MOST_CHILDREN = 16
"""Children of a branch."""

TWIN = 2
"""In place of a mark that a node is used: an equal one stands before it."""

ABSENT = -1
"""In place of where a value starts."""


@allocating_kernel
def hash_strings(column: Tables, count: int, hashes: Bytes) -> None:
    """Write the hash of each of the first ``count`` strings of a column that is spread out, 32 bytes each.

    Short ones are hashed first, which keeps lanes in step.
    """
    data, places, lengths, _ = column
    starts = np.empty(count, np.int64)
    sizes = np.empty(count, np.int64)
    slots = np.empty(count, np.int64)
    low, high = 0, count
    for i in range(count):
        if lengths[i] <= BLOCK:
            k = low
            low += 1
        else:
            high -= 1
            k = high
        starts[k] = places[i]
        sizes[k] = lengths[i]
        slots[k] = 32 * i
    hash_messages(new_rooms(), data, starts, sizes, count, hashes, slots)


@inlined
def _same_hash(left: Bytes, left_at: int, right: Bytes, right_at: int) -> bool:
    """Return whether the 32 bytes from ``left[left_at]`` and from ``right[right_at]`` on are equal."""
    return (
        load64(left, left_at) == load64(right, right_at)
        and load64(left, left_at + 8) == load64(right, right_at + 8)
        and load64(left, left_at + 16) == load64(right, right_at + 16)
        and load64(left, left_at + 24) == load64(right, right_at + 24)
    )


@inlined
def _slot_of(hashes: Bytes, at: int, mask: int) -> int:
    """Return the place in a hash table, at most ``mask``, where the search for the hash at ``hashes[at]`` starts."""
    return int64(load64(hashes, at) >> np.uint64(16)) & mask


@face
def fill_table(hashes: Bytes, first: int, end: int, table: Int32s, mask: int, used: Bytes) -> None:
    """Put the nodes ``first`` to ``end`` into the hash table, as their number plus one; 0 is a free place.

    ``hashes`` has 32 bytes a node, and ``mask`` is the table's last place, a power of two less one. Of equal nodes the
    first goes in; for the others ``used`` becomes ``TWIN``, since a proof is a set.
    """
    for slot in range(mask + 1):
        table[slot] = 0
    for node in range(first, end):
        slot = _slot_of(hashes, node * 32, mask)
        while table[slot] and not _same_hash(hashes, (int64(table[slot]) - 1) * 32, hashes, node * 32):
            slot = (slot + 1) & mask
        if table[slot]:
            used[node] = TWIN
        else:
            table[slot] = node + 1


@inlined
def look_up(hashes: Bytes, table: Int32s, mask: int, wanted: Bytes, at: int) -> int:
    """Return the node of a filled table whose hash is the 32 bytes from ``wanted[at]`` on, or -1."""
    slot = _slot_of(wanted, at, mask)
    while table[slot]:
        node = int64(table[slot]) - 1
        if _same_hash(hashes, node * 32, wanted, at):
            return node
        slot = (slot + 1) & mask
    return int64(-1)


class Proof(NamedTuple):
    """What the walks of one proof share."""

    nodes: Column
    hashes: Bytes
    table: Int32s
    mask: int
    plans: Int64s
    """A row for each node, and one more for inline nodes."""
    links: Int32s
    """For each way down from a planned branch the number of the child plus one; 0 while nobody has looked for it."""
    used: Bytes


@inlined
def _walk(proof: Proof, keys: Column, key: int, node: int, value: Int64s, trail: Int64s) -> int:
    """Follow a key down from ``node`` and write where its value is; return how many hashed nodes it passed.

    Where a node is missing or does not decode, the answer is their number's complement, which is negative. The numbers
    of those nodes go to ``trail`` as far as that has room.
    """
    nodes, plans, links = proof.nodes, proof.plans, proof.links
    at, size = place(keys, key)
    inline = len(plans) // PLAN - 1
    depth = int64(0)
    passed = int64(0)
    value[0] = ABSENT
    start, length = int64(0), int64(32)
    while True:
        if length == 32:
            row = node * PLAN
            proof.used[node] = 1
            if passed < len(trail):
                trail[passed] = node
            passed += 1
            # Most steps are like this, and need two lines of the cache: a key before this one went the same way.
            if plans[row + KIND] == BRANCH and plans[row + COUNT] == 0 and depth < 2 * size:
                child = int64(links[MOST_CHILDREN * node + nibble(keys.data, at, depth)])
                if child:
                    node = child - 1
                    depth += 1
                    continue
            start, length = nodes.at[node], int64(nodes.size[node])
        else:
            node = inline
            row = node * PLAN
            plans[row + KIND] = UNSEEN
        if plans[row + KIND] == UNSEEN:
            if not plan_node(nodes.data, start, length, plans, row):
                plans[row + KIND] = UNSEEN
                return ~passed
            if plans[row + KIND] == BRANCH:
                for way in range(MOST_CHILDREN):
                    links[MOST_CHILDREN * node + way] = 0
        if plans[row + KIND] == EMPTY or not partial_fits(nodes.data, plans, row, keys.data, at, size, depth):
            return passed
        depth += plans[row + COUNT]
        if depth == 2 * size:
            break
        if plans[row + KIND] == LEAF:
            return passed
        way = nibble(keys.data, at, depth)
        depth += 1
        link = MOST_CHILDREN * node + way
        if links[link]:
            node, length = int64(links[link]) - 1, int64(32)
            continue
        start, length = child_place(nodes.data, plans, row, way)
        if length < 0:
            return passed
        if length == 32:
            node = look_up(proof.hashes, proof.table, proof.mask, nodes.data, start)
            if node < 0:
                return ~passed
            links[link] = node + 1
    if plans[row + VALUE_SIZE] == HASHED:
        node = look_up(proof.hashes, proof.table, proof.mask, nodes.data, plans[row + VALUE_AT])
        if node < 0:
            return ~passed
        proof.used[node] = 1
        value[0], value[1] = nodes.at[node], int64(nodes.size[node])
    elif plans[row + VALUE_SIZE] != NO_VALUE:
        value[0], value[1] = plans[row + VALUE_AT], plans[row + VALUE_SIZE]
    return passed


def room_to_walk(node_ends: Int64s) -> tuple[Int32s, Int64s, Int32s]:
    """Return the hash table, the plans and the links that ``verify_proofs`` works in."""
    count = int(node_ends[-1])
    most = count if len(node_ends) == 2 else int((node_ends[1:] - node_ends[:-1]).max(initial=0))
    return (
        np.empty(4 << most.bit_length(), np.int32),
        np.zeros(PLAN * (count + 1), np.int64),
        np.empty(MOST_CHILDREN * (count + 1), np.int32),
    )


@face
def verify_proofs(
    node_strings: Tables,
    hashes: Bytes,
    node_ends: Int64s,
    roots: Bytes,
    key_strings: Tables,
    key_ends: Int64s,
    table: Int32s,
    plans: Int64s,
    links: Int32s,
    used: Bytes,
    values: Int64s,
    trails: Int64s,
    status: Bytes,
    to_end: bool,
) -> None:
    """Walk all keys of all proofs; those of a proof that fails only ``to_end``.

    Proof ``p`` has the nodes and the keys from ``*_ends[p]`` to ``*_ends[p + 1]``. Each key has three numbers in
    ``values``: where its value starts in the data of the nodes, its bytes, and how many hashed nodes it passed. The
    first is ``ABSENT`` where there is no value. ``trails``, unless it is empty, has an equal share for each key, and
    the numbers of the nodes passed are written there.

    The size of ``table`` is a power of two, at least twice any proof. ``plans``, all zero, has a row for each node and
    one more; ``links`` has ``MOST_CHILDREN`` numbers for each row; ``used`` is all zero.
    """
    nodes, keys = column_in(node_strings), column_in(key_strings)
    share = len(trails) // max(1, key_ends[-1])
    for number in range(len(node_ends) - 1):
        first, end = node_ends[number], node_ends[number + 1]
        mask = 1
        while mask < 2 * (end - first):
            mask = 2 * mask
        mask -= 1
        fill_table(hashes, first, end, table, mask, used)
        root = look_up(hashes, table, mask, roots, 32 * number)
        status[number] = HOLDS if root >= 0 else FAILS
        proof = Proof(nodes, hashes, table, mask, plans, links, used)
        for key in range(key_ends[number], key_ends[number + 1]):
            if root < 0 or (status[number] == FAILS and not to_end):
                values[3 * key + 2] = -1
                continue
            trail = trails[key * share : key * share + share]
            passed = _walk(proof, keys, key, root, values[3 * key : 3 * key + 2], trail)
            values[3 * key + 2] = passed
            if passed < 0:
                status[number] = FAILS
        for node in range(first, end):
            if status[number] == HOLDS and not used[node]:
                status[number] = UNUSED
