"""Nodes to bytes and their references: written into a buffer a batch at a time, hashed in lanes.

The layout is that of ``node_codec``: header, packed partial key, bitmap, value, children.
"""

from typing import NamedTuple

import numpy as np

from relaycast_trie.kernels.compiling import allocating_kernel, inlined, kernel
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, copy, copy32, copy_loose, int64, lowest_bit, prefetch
from relaycast_trie.kernels.multibuffer_hash import Rooms, hash_messages, new_rooms
from relaycast_trie.kernels.tables import (
    DEPTH,
    EXTERNAL,
    NO_START,
    REF,
    ROW,
    SAMPLE,
    START,
    STATE,
    VALUED,
    WAYS,
    Branches,
    Entries,
    copy_reference,
    nibble,
    place,
)

BATCH = 256
"""Nodes that are written before they are hashed: enough to keep the lanes busy, few enough to stay in the cache."""
AHEAD = 6
"""How many branches ahead the memory is asked for what they need."""
MANY = 4_096
"""Nodes in this number are too many for the cache."""
BATCH_BYTES = 1 << 16
BRANCH_BYTES = 16 * 33 + 64
"""What a branch takes beyond its partial key and its value; also room for copies of whole slots."""


class Batch(NamedTuple):
    """Nodes that wait to be hashed: where they start in the buffer, their bytes, and the slots of their hashes."""

    buffer: Bytes
    starts: Int64s
    sizes: Int64s
    slots: Int64s


@allocating_kernel
def _new_batch(room: int) -> Batch:
    """Return an empty batch with ``room`` bytes of buffer."""
    return Batch(
        np.empty(room, np.uint8), np.empty(BATCH, np.int64), np.empty(BATCH, np.int64), np.empty(BATCH, np.int64)
    )


@inlined
def header_size(mask: int, count: int) -> int:
    """Return the bytes of a header for ``count`` nibbles whose first byte counts up to ``mask``."""
    return 1 if count < mask else 2 + (count - mask) // 255


@inlined
def write_header(out: Bytes, at: int, kind: int, mask: int, count: int) -> int:
    """Write the header of a node with ``count`` nibbles to ``out[at]`` on and return where it ends.

    Its first byte is ``kind`` with up to ``mask`` nibbles in its low bits.
    """
    if count < mask:
        out[at] = kind | count
        return at + 1
    out[at] = kind | mask
    at += 1
    left = count - mask
    while left >= 255:
        out[at] = 255
        at += 1
        left -= 255
    out[at] = left
    return at + 1


@inlined
def write_partial(out: Bytes, at: int, data: Bytes, key_at: int, start: int, end: int) -> int:
    """Pack the nibbles ``start`` to ``end`` of the key at ``data[key_at]`` to ``out[at]`` on; return where they end.

    If their number is odd, the first has a byte for itself. Up to 64 bytes behind may change.
    """
    if end & 1:
        i = start
        if (end - start) & 1:
            out[at] = nibble(data, key_at, i)
            at += 1
            i += 1
        while i < end:
            out[at] = nibble(data, key_at, i) << 4 | nibble(data, key_at, i + 1)
            at += 1
            i += 2
        return at
    first = start >> 1
    if start & 1:
        out[at] = data[key_at + first] & 15
        at += 1
        first += 1
    size = (end >> 1) - first
    copy_loose(out, at, data, key_at + first, size)
    return at + size


@inlined
def write_compact(out: Bytes, at: int, number: int) -> int:
    """Write the SCALE compact form of a length below 2^32 to ``out[at]`` on and return where it ends."""
    if number < 1 << 6:
        out[at] = number << 2
        return at + 1
    if number < 1 << 14:
        out[at] = (number << 2 | 1) & 255
        out[at + 1] = number >> 6
        return at + 2
    size = 4
    shown = number << 2 | 2
    if number >= 1 << 30:
        out[at] = 3
        at += 1
        shown = number
    for i in range(size):
        out[at + i] = shown >> 8 * i & 255
    return at + size


@inlined
def _write_value(entries: Entries, entry: int, out: Bytes, at: int) -> int:
    """Write the value of an entry as its node holds it, its hash or length and bytes; return where that ends."""
    if entries.state[entry] & EXTERNAL:
        copy32(out, at, entries.value_hash, entry * 32)
        return at + 32
    value_at, size = place(entries.value, entry)
    at = write_compact(out, at, size)
    copy_loose(out, at, entries.value.data, value_at, size)
    return at + size


@inlined
def write_leaf(entries: Entries, entry: int, out: Bytes, at: int) -> int:
    """Write the leaf of an entry to ``out[at]`` on and return where it ends; 64 bytes beyond may change."""
    key_at, key_size = place(entries.key, entry)
    start = int64(entries.start[entry])
    count = 2 * key_size - start
    if entries.state[entry] & EXTERNAL:
        at = write_header(out, at, 0x20, 0x1F, count)
    else:
        at = write_header(out, at, 0x40, 0x3F, count)
    at = write_partial(out, at, entries.key.data, key_at, start, 2 * key_size)
    return _write_value(entries, entry, out, at)


@inlined
def write_branch(entries: Entries, branches: Branches, branch: int, out: Bytes, at: int) -> int:
    """Write a branch to ``out[at]`` on and return where it ends; 64 bytes beyond may change.

    The references of its children are computed.
    """
    start = int64(branches.row[branch, START])
    depth = int64(branches.row[branch, DEPTH])
    valued = int64(branches.row[branch, VALUED]) - 1
    kind, mask = 0x80, 0x3F
    if valued >= 0:
        kind = 0xC0
        if entries.state[valued] & EXTERNAL:
            kind, mask = 0x10, 0x0F
    at = write_header(out, at, kind, mask, depth - start)
    if depth > start:
        key_at, _ = place(entries.key, branches.row[branch, SAMPLE])
        at = write_partial(out, at, entries.key.data, key_at, start, depth)
    ways = int64(branches.row[branch, WAYS])
    out[at] = ways & 255
    out[at + 1] = ways >> 8
    at += 2
    if valued >= 0:
        at = _write_value(entries, valued, out, at)
    while ways:
        node = int64(branches.row[branch, lowest_bit(ways)])
        ways &= ways - 1
        at += 1 + (copy_reference(out, at, entries.ref, branches.ref, node) >> 2)
    return at


@kernel
def ask_for_children(entries: Entries, branches: Branches, branch: int) -> None:
    """Bring the references that a branch is made of into the cache."""
    ways = int64(branches.row[branch, WAYS])
    while ways:
        node = int64(branches.row[branch, lowest_bit(ways)])
        ways &= ways - 1
        if node > 0:
            prefetch(entries.ref, (node - 1) * REF)
            prefetch(entries.ref, node * REF - 1)
        else:
            prefetch(branches.ref, (-node - 1) * REF)
            prefetch(branches.ref, -node * REF - 1)


@kernel
def _hash_values(entries: Entries, count: int, batch: Batch, rooms: Rooms) -> None:
    """Write to ``value_hash`` the hashes of the external values among the first ``count`` entries."""
    _, starts, sizes, slots = batch
    waiting = 0
    for entry in range(count):
        if not entries.state[entry] & EXTERNAL:
            continue
        starts[waiting], sizes[waiting] = place(entries.value, entry)
        slots[waiting] = entry * 32
        waiting += 1
        if waiting == BATCH:
            hash_messages(rooms, entries.value.data, starts, sizes, waiting, entries.value_hash, slots)
            waiting = 0
    if waiting:
        hash_messages(rooms, entries.value.data, starts, sizes, waiting, entries.value_hash, slots)


@kernel
def _refer_to_leaves(entries: Entries, count: int, longest: int, batch: Batch, rooms: Rooms) -> None:
    """Compute the references of the leaves among the first ``count`` entries; states have size 0 before.

    ``longest`` bounds the bytes of a leaf with what copying may change behind it.
    """
    buffer, starts, sizes, slots = batch
    waiting, at = 0, 0
    for entry in range(count):
        if entries.start[entry] == NO_START:
            continue
        end = write_leaf(entries, entry, buffer, at)
        if end - at < 32:
            entries.ref[entry * REF] = end - at << 2
            copy(entries.ref, entry * REF + 1, buffer, at, end - at)
            entries.state[entry] |= end - at
            continue
        entries.state[entry] |= 32
        entries.ref[entry * REF] = 32 << 2
        starts[waiting], sizes[waiting], slots[waiting] = at, end - at, entry * REF + 1
        waiting += 1
        at = end
        if waiting == BATCH or at + longest > len(buffer):
            hash_messages(rooms, buffer, starts, sizes, waiting, entries.ref, slots)
            waiting, at = 0, 0
    if waiting:
        hash_messages(rooms, buffer, starts, sizes, waiting, entries.ref, slots)


@kernel
def _mark_external(entries: Entries, count: int, external_from: int, flags: int) -> int:
    """Set the states of the first ``count`` entries to ``flags``, with ``EXTERNAL`` for long values.

    These have ``external_from`` bytes and more. Returns whether there are any: ``EXTERNAL`` or 0.
    """
    external = 0
    for entry in range(count):
        state = EXTERNAL if place(entries.value, entry)[1] >= external_from else 0
        external |= state
        entries.state[entry] = state | flags
    return external


@kernel
def _refer_to_entries(
    entries: Entries, count: int, external_from: int, longest: int, flags: int, batch: Batch, rooms: Rooms
) -> None:
    """Mark and hash the external values of the first ``count`` entries, and compute the references of leaves.

    Values of ``external_from`` bytes and more become external; ``longest`` bounds the bytes of a leaf; ``flags`` are
    added to the states.
    """
    if _mark_external(entries, count, external_from, flags):
        _hash_values(entries, count, batch, rooms)
    _refer_to_leaves(entries, count, longest, batch, rooms)


@allocating_kernel
def refer_to_entries(entries: Entries, count: int, external_from: int, longest: int, flags: int) -> None:
    """Compute the references of all entries, of which there are ``count``.

    Values of ``external_from`` bytes and more become external. ``longest`` bounds the bytes of a leaf; ``flags`` are
    added to the states.
    """
    _refer_to_entries(entries, count, external_from, longest, flags, _new_batch(max(BATCH_BYTES, longest)), new_rooms())


@kernel
def _refer_to_level(
    entries: Entries,
    branches: Branches,
    order: Int32s,
    first: int,
    last: int,
    longest: int,
    flags: int,
    batch: Batch,
    rooms: Rooms,
) -> None:
    """Compute the references of the branches ``order[first:last]``, none of which is below another one.

    ``longest`` bounds the bytes of a branch; ``flags`` are added to the states.
    """
    buffer, starts, sizes, slots = batch
    waiting, at = 0, 0
    for i in range(first, last):
        if len(order) > MANY and i + 2 * AHEAD < last:
            prefetch(branches.row, int64(order[i + 2 * AHEAD]) * ROW)
            prefetch(branches.row, int64(order[i + 2 * AHEAD]) * ROW + 16)
            ask_for_children(entries, branches, int64(order[i + AHEAD]))
        branch = int64(order[i])
        end = write_branch(entries, branches, branch, buffer, at)
        if end - at < 32:
            branches.ref[branch * REF] = end - at << 2
            copy(branches.ref, branch * REF + 1, buffer, at, end - at)
            branches.row[branch, STATE] = flags | (end - at)
            continue
        branches.row[branch, STATE] = flags | 32
        branches.ref[branch * REF] = 32 << 2
        starts[waiting], sizes[waiting], slots[waiting] = at, end - at, branch * REF + 1
        waiting += 1
        at = end
        if waiting == BATCH or at + longest > len(buffer):
            hash_messages(rooms, buffer, starts, sizes, waiting, branches.ref, slots)
            waiting, at = 0, 0
    if waiting:
        hash_messages(rooms, buffer, starts, sizes, waiting, branches.ref, slots)


@allocating_kernel
def refer_to_branches(
    entries: Entries, branches: Branches, order: Int32s, levels: Int64s, longest: int, flags: int
) -> None:
    """Compute the references of branches: those in ``order[levels[i] : levels[i + 1]]``, level by level.

    The children of a branch are entries or on a level before. ``longest`` bounds the bytes of a branch; ``flags`` are
    added to the states.
    """
    batch = _new_batch(max(BATCH_BYTES, longest))
    rooms = new_rooms()
    for level in range(len(levels) - 1):
        _refer_to_level(entries, branches, order, levels[level], levels[level + 1], longest, flags, batch, rooms)
