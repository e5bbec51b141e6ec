"""Hashing again what has changed: each node as soon as all that has changed below it is done, from the leaves up.

What is hashed goes by in lanes. A message enters a lane when another one leaves it, from whichever height it comes,
so that a few changed paths keep the lanes as busy as many do.
"""

from relaycast_trie.kernels.compiling import face, inlined, kernel
from relaycast_trie.kernels.encode import AHEAD, MANY, ask_for_children, write_branch, write_leaf
from relaycast_trie.kernels.memory import Bytes, Int64s, copy, copy32, copy_loose, int64, lowest_bit, prefetch
from relaycast_trie.kernels.multibuffer_hash import ITEMS, LANES, Rooms, mix, mix_one, start, take_hash
from relaycast_trie.kernels.packed_args import flattened
from relaycast_trie.kernels.tables import (
    EXTERNAL,
    REF,
    ROW,
    SAMPLE,
    SIZE,
    STALE,
    STALE_WAYS,
    STATE,
    VALUED,
    WAYS,
    Branches,
    Column,
    Entries,
    Slots,
    Tables,
    Work,
    branches_in,
    entries_in,
    place,
    slots_in,
    work_in,
)
from relaycast_trie.kernels.update import (
    FREE_ENTRIES,
    KEYS,
    PENDING_ENTRIES,
    ROOT,
    STALE_BRANCHES,
    STALE_ENTRIES,
    put_into,
)

ALONE = 1 << 30
"""Added to the number of an entry: its external value, as something to hash."""

REFUSED, PUT = -2, -1
"""Answers of ``change``."""


@inlined
def _list_below(entries: Entries, branches: Branches, work: Work, at: int, count: int, flags: int) -> int:
    """List what is stale right below the item ``at``; return how many items there are then."""
    first = count
    node = int64(work.stale[at])
    if node >= 0:
        if node < ALONE and entries.state[node - 1] & EXTERNAL:
            work.stale[count] = ALONE + node - 1
            count += 1
    else:
        branch = -node - 1
        valued = int64(branches.row[branch, VALUED]) - 1
        if valued >= 0 and entries.state[valued] & SIZE == STALE:
            state = int64(entries.state[valued]) & EXTERNAL
            entries.state[valued] = state | flags
            if state:
                work.stale[count] = ALONE + valued
                count += 1
        ways = int64(branches.row[branch, STALE_WAYS])
        branches.row[branch, STALE_WAYS] = 0
        while ways:
            child = int64(branches.row[branch, lowest_bit(ways)])
            ways &= ways - 1
            if child > 0:
                stale = entries.state[child - 1] & SIZE == STALE
            else:
                stale = child < 0 and branches.row[-child - 1, STATE] & SIZE == STALE
            if stale:
                work.stale[count] = child
                count += 1
    for i in range(first, count):
        work.above[i] = at
    work.waiting[at] = count - first
    return count


@kernel
def _list_stale(entries: Entries, branches: Branches, roots: Int64s, work: Work, flags: int) -> int:
    """List what is to be hashed again below ``roots``, level by level; return the number of items."""
    count = 0
    for trie in range(len(roots)):
        root = int64(roots[trie])
        stale = root > 0 and entries.state[root - 1] & SIZE == STALE
        stale |= root < 0 and branches.row[-root - 1, STATE] & SIZE == STALE
        if stale:
            work.stale[count] = root
            work.above[count] = -1
            count += 1
    at = 0
    while at < count:
        count = _list_below(entries, branches, work, at, count, flags)
        at += 1
    return count


@inlined
def _give_samples(branches: Branches, work: Work, count: int) -> int:
    """Give each listed branch a sample that is still below it; queue items that wait for nothing, the lowest first.

    Returns the number of queued items.
    """
    queued = 0
    for i in range(count - 1, -1, -1):
        node = int64(work.stale[i])
        if work.waiting[i] == 0:
            work.queue[queued] = i
            queued += 1
        if node < 0:
            branch = -node - 1
            child = int64(branches.row[branch, VALUED])
            if child == 0:
                child = int64(branches.row[branch, lowest_bit(int64(branches.row[branch, WAYS]))])
            branches.row[branch, SAMPLE] = child - 1 if child > 0 else branches.row[-child - 1, SAMPLE]
    return queued


@inlined
def _ask_ahead(entries: Entries, branches: Branches, work: Work, at: int, end: int) -> None:
    """Bring what will be written soon into the cache."""
    if at + 2 * AHEAD < end:
        node = int64(work.stale[work.queue[at + 2 * AHEAD]])
        if node < 0:
            prefetch(branches.row, (-node - 1) * ROW)
            prefetch(branches.row, (-node - 1) * ROW + 16)
    if at + AHEAD < end:
        node = int64(work.stale[work.queue[at + AHEAD]])
        if node < 0:
            ask_for_children(entries, branches, -node - 1)
        elif node < ALONE:
            prefetch(entries.ref, (node - 1) * REF)
            prefetch(entries.state, node - 1)
            prefetch(entries.start, node - 1)
            if entries.key.width >= 0:
                prefetch(entries.key.data, (node - 1) * entries.key.width)
            if entries.value.width >= 0:
                prefetch(entries.value.data, (node - 1) * entries.value.width)
        elif entries.value.width >= 0:
            prefetch(entries.value.data, (node - ALONE) * entries.value.width)
            prefetch(entries.value.data, (node - ALONE) * entries.value.width + 64)


@inlined
def _write_item(entries: Entries, branches: Branches, node: int, out: Bytes, at: int) -> int:
    """Write what is to be hashed and return its bytes."""
    if node < 0:
        return write_branch(entries, branches, -node - 1, out, at) - at
    if node < ALONE:
        return write_leaf(entries, node - 1, out, at) - at
    value_at, size = place(entries.value, node - ALONE)
    copy_loose(out, at, entries.value.data, value_at, size)
    return size


@inlined
def _settle_state(entries: Entries, branches: Branches, node: int, size: int, flags: int) -> None:
    """Note the bytes of a node's reference, but not yet its hash."""
    if node < 0:
        branches.row[-node - 1, STATE] = flags | size
        branches.ref[(-node - 1) * REF] = size << 2
    else:
        entries.state[node - 1] = entries.state[node - 1] & EXTERNAL | flags | size
        entries.ref[(node - 1) * REF] = size << 2


@inlined
def _take_item(entries: Entries, branches: Branches, node: int, rooms: Rooms, lane: int) -> None:
    """Write the hash that has ended in a lane to the slot of a node, or of an external value."""
    if node < 0:
        take_hash(rooms, lane, branches.ref, (-node - 1) * REF + 1)
    elif node < ALONE:
        take_hash(rooms, lane, entries.ref, (node - 1) * REF + 1)
    else:
        take_hash(rooms, lane, entries.value_hash, (node - ALONE) * 32)


@inlined
def _release(work: Work, item: int, queued: int) -> int:
    """Let what waits for an item wait for one less; queue it if that was the last, and return how many are queued."""
    above = int64(work.above[item])
    if above >= 0:
        work.waiting[above] -= 1
        if work.waiting[above] == 0:
            work.queue[queued] = above
            queued += 1
    return queued


@kernel
def _hash_stale(entries: Entries, branches: Branches, work: Work, queued: int, flags: int) -> None:
    """Hash all that is listed, each item when nothing below it is left to hash."""
    rooms = work.rooms
    many = len(branches.row) > MANY
    busy, following = int64(0), 0
    free = int64((1 << LANES) - 1)
    while following < queued or busy:
        while free and following < queued:
            if many:
                _ask_ahead(entries, branches, work, following, queued)
            item = int64(work.queue[following])
            node = int64(work.stale[item])
            following += 1
            lane = lowest_bit(free)
            at = lane * rooms.stride
            size = _write_item(entries, branches, node, rooms.buffer, at)
            if node < ALONE:
                _settle_state(entries, branches, node, min(size, 32), flags)
            if size >= 32 or node >= ALONE:
                start(rooms, lane, size)
                rooms.words[ITEMS + lane] = item
                busy |= int64(1) << lane
                free &= free - 1
                continue
            if node < 0:
                copy(branches.ref, (-node - 1) * REF + 1, rooms.buffer, at, size)
            else:
                copy(entries.ref, (node - 1) * REF + 1, rooms.buffer, at, size)
            queued = _release(work, item, queued)
        if busy & (busy - 1):
            ended = mix(rooms, 1) & busy
        elif busy:
            lane = lowest_bit(busy)
            while mix_one(rooms, lane) == 0:
                pass
            ended = busy
        else:
            ended = busy
        busy ^= ended
        free |= ended
        while ended:
            lane = lowest_bit(ended)
            ended &= ended - 1
            item = int64(rooms.words[ITEMS + lane])
            _take_item(entries, branches, int64(work.stale[item]), rooms, lane)
            queued = _release(work, item, queued)


@kernel
def _free_pending(slots: Slots) -> None:
    """Free the pending entries, and set the counters of what is stale to 0."""
    counters = slots.counters
    for i in range(counters[PENDING_ENTRIES]):
        slots.free_entries[counters[FREE_ENTRIES] + i] = slots.pending_entries[i]
    counters[FREE_ENTRIES] += counters[PENDING_ENTRIES]
    counters[PENDING_ENTRIES] = counters[STALE_ENTRIES] = counters[STALE_BRANCHES] = 0


@inlined
def _fit(entries: Entries, slots: Slots, keys: Bytes, values: Bytes, external_from: int) -> bool:
    """Return whether rows can be put into the tables as these are, and are few."""
    return bool(
        8 * len(keys) < slots.counters[KEYS]
        and keys.shape[1] == entries.key.width
        and values.shape[1] == entries.value.width
        and (values.shape[1] < external_from or len(entries.value_hash) > 0)
    )


@kernel
def _write_root(entries: Entries, branches: Branches, work: Work, root: int) -> None:
    """Write the hash of a root node: it has one however short it is."""
    rooms = work.rooms
    rooms.buffer[0] = 0
    size = int64(1)
    if root > 0:
        size = int64(entries.ref[(root - 1) * REF]) >> 2
        copy(rooms.buffer, 0, entries.ref, (root - 1) * REF + 1, size)
    elif root < 0:
        size = int64(branches.ref[(-root - 1) * REF]) >> 2
        copy(rooms.buffer, 0, branches.ref, (-root - 1) * REF + 1, size)
    if size == 32:
        copy32(work.root, 0, rooms.buffer, 0)
        return
    start(rooms, 0, size)
    mix_one(rooms, 0)
    take_hash(rooms, 0, work.root, 0)


@face
def change(tables: Tables, roots: Int64s, keys: Bytes, values: Bytes, external_from: int, flags: int) -> int:
    """Put rows of keys and values into the trie ``roots[0]``, and hash all that is stale below ``roots``.

    ``flags`` are added to the states of what is hashed; with a negative number nothing is. Returns how many items were
    hashed; they are listed in the room to work in. ``PUT`` means that nothing was hashed: it was not to be, or the room
    is too small. ``REFUSED`` means that not all rows were put: the tables lack room, or are for strings of other sizes,
    or there are too many rows.
    """
    entries, branches, slots, work = entries_in(tables), branches_in(tables), slots_in(tables), work_in(tables)
    counters = slots.counters
    if len(keys) != len(values):
        return REFUSED
    if len(keys):
        if not _fit(entries, slots, keys, values, external_from):
            return REFUSED
        key_column = Column(flattened(keys), entries.key.at, entries.key.size, keys.shape[1])
        value_column = Column(flattened(values), entries.value.at, entries.value.size, values.shape[1])
        counters[ROOT] = roots[0]
        done = put_into(entries, branches, slots, key_column, value_column, 0, len(keys), external_from, work.path)
        roots[0] = counters[ROOT]
        if done < len(keys):
            return REFUSED
    if flags < 0 or 2 * counters[STALE_ENTRIES] + counters[STALE_BRANCHES] > len(work.stale):
        return PUT
    count = _list_stale(entries, branches, roots, work, flags)
    queued = _give_samples(branches, work, count)
    _hash_stale(entries, branches, work, queued, flags)
    _free_pending(slots)
    _write_root(entries, branches, work, roots[0])
    return count
