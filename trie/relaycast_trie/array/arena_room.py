"""Memory of an arena: tables that get longer in place where that can be, and the room that its kernels work in."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaycast_trie.kernels.blake2b import BLOCK, LANES, ROWS, Rooms
from relaycast_trie.kernels.slots import COUNTERS
from relaycast_trie.kernels.tables import REF, Branches, Column, Entries, Slots, Work


def resized(table: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a table with another length, in place where the memory allows; new items are zero."""
    if not table.flags.owndata:
        table = table.copy()
    table.resize((size, *table.shape[1:]), refcheck=False)
    return table


def resized_branches(branches: Branches, count: int) -> Branches:
    """Return the table of branches with another length."""
    return Branches(resized(branches.row, count), resized(branches.ref, count * REF))


def lengthened_entries(entries: Entries, count: int, *, external: bool) -> Entries:
    """Return the table of entries with another length, with hashes of values only where some are ``external``."""
    return Entries(
        _lengthened(entries.key, count),
        _lengthened(entries.value, count),
        resized(entries.value_hash, 32 * count if external else 0),
        resized(entries.start, count),
        resized(entries.ref, REF * count),
        resized(entries.state, count),
    )


def lengthened_slots(slots: Slots, entries: int, branches: int) -> Slots:
    """Return the lists of slots for tables with this number of ``entries`` and ``branches``."""
    return Slots(
        slots.counters,
        resized(slots.free_entries, entries),
        resized(slots.pending_entries, entries),
        resized(slots.free_branches, branches),
        resized(slots.retired_entries, entries),
        resized(slots.retired_branches, branches),
    )


def no_slots() -> Slots:
    """Return counters at zero, and empty lists."""
    return Slots(np.zeros(COUNTERS, np.int64), *(np.empty(0, np.int32) for _ in range(5)))


def no_work() -> Work:
    """Return no room to work in."""
    lists = np.empty((4, 0), np.int32)
    rooms = Rooms(np.zeros(ROWS, np.uint64), np.zeros(0, np.uint8), 0)
    return Work(lists[0], lists[1], lists[2], lists[3], rooms, np.empty(0, np.int64), np.zeros(32, np.uint8))


def with_room_for(work: Work, nodes: int, *, node_bytes: int, places: int) -> Work:
    """Return room to settle ``nodes`` nodes of at most ``node_bytes``, and for paths of ``places`` branches or more."""
    if len(work.stale) != nodes:
        stale, above, waiting, queue = np.empty((4, nodes), np.int32)
        work = work._replace(stale=stale, above=above, waiting=waiting, queue=queue)
    stride = -(-(node_bytes + BLOCK) // BLOCK) * BLOCK
    if work.rooms.stride < stride:
        work = work._replace(rooms=Rooms(work.rooms.words, np.zeros(LANES * stride, np.uint8), stride))
    return work if len(work.path) >= places else work._replace(path=np.empty(places, np.int64))


def _lengthened(column: Column, count: int) -> Column:
    if column.width >= 0:
        return column._replace(data=resized(column.data, count * column.width))
    return column._replace(at=resized(column.at, count), size=resized(column.size, count))
