"""A trie's tables and what is free in them: built whole from sorted keys, changed in place or by fresh copies.

The tables belong to one ``Arena``; several versions of a trie can share it, each with a root node of its own.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaycast_trie.columns import MAX_KEY_BYTES, longest, spread_out
from relaycast_trie.kernels.build import UNSORTED, build_branches, order_by_height
from relaycast_trie.kernels.encode import BRANCH_BYTES, refer_to_branches, refer_to_entries
from relaycast_trie.kernels.get import GROUP, list_entries
from relaycast_trie.kernels.slots import (
    COUNTERS,
    FREE_BRANCHES,
    FREE_ENTRIES,
    KEY_END,
    KEYS,
    NEXT_BRANCH,
    NEXT_ENTRY,
    PENDING_ENTRIES,
    RETIRED_BRANCHES,
    RETIRED_ENTRIES,
    ROOT,
    STALE_BRANCHES,
    STALE_ENTRIES,
    VALUE_END,
    Slots,
)
from relaycast_trie.kernels.tables import FRESH, REF, ROW, STATE, Branches, Column, Entries
from relaycast_trie.kernels.update import list_stale, put_entries, remove_entries

Slots32 = npt.NDArray[np.int32]
NEVER_EXTERNAL = 1 << 62
NONE = np.empty(0, np.int32)


class UnsortedError(ValueError):
    """Keys that do not strictly ascend."""


@dataclass(frozen=True, slots=True)
class Retired:
    """Slots that no version after a certain one reads."""

    arena: "Arena"
    entries: Slots32
    branches: Slots32

    def release(self) -> None:
        """Make the slots free again."""
        self.arena.release(self.entries, self.branches)


@dataclass(slots=True)
class Arena:
    """The tables of a trie, which slots are in use, and what of the newest version is still to be hashed."""

    entries: Entries
    branches: Branches
    slots: Slots
    longest_key: int
    longest_value: int
    external: bool
    """Whether there is room for the hashes of external values."""
    owned: bool = False
    """Whether keys and values are our own arrays: those that a trie was built from are not written to."""

    @classmethod
    def build(cls, keys: Column, values: Column, count: int, *, external_from: int) -> "Arena":
        """Return the tables of a trie from ``count`` keys that strictly ascend; raises ``UnsortedError``."""
        longest_key, longest_value = longest(keys, count), longest(values, count)
        if longest_key > MAX_KEY_BYTES:
            raise ValueError(f"a key has at most {MAX_KEY_BYTES} bytes, got {longest_key}")
        room = max(count - 1, 0)
        branches = Branches(np.zeros((room, ROW), np.int32), np.zeros(REF * room, np.uint8))
        entries = Entries(
            keys,
            values,
            np.empty(32 * count if longest_value >= external_from else 0, np.uint8),
            np.empty(count, np.int32),
            np.empty(REF * count, np.uint8),
            np.empty(count, np.uint8),
        )
        heights = np.zeros(room, np.int32)
        nibbles = 2 * longest_key + 2
        result = np.zeros(1, np.int64)
        used = build_branches(entries, count, branches, heights, np.empty(nibbles, np.int32), result)
        if used == UNSORTED:
            raise UnsortedError("keys do not strictly ascend")
        branches = _cut_branches(branches, used)
        slots = _no_slots()
        slots.counters[ROOT] = result[0]
        slots.counters[KEYS] = slots.counters[NEXT_ENTRY] = count
        slots.counters[NEXT_BRANCH] = used
        arena = cls(entries, branches, slots, longest_key, longest_value, longest_value >= external_from)
        order = np.empty(used, np.int32)
        levels = np.zeros(nibbles + 2, np.int64)
        steps = order_by_height(heights, used, order, levels)
        refer_to_entries(entries, NONE, count, external_from, arena.longest_node, FRESH)
        refer_to_branches(entries, branches, order, levels[: steps + 1], arena.longest_node, FRESH)
        return arena

    @property
    def root(self) -> int:
        """The node that the newest version starts with; 0 for the empty trie."""
        return int(self.slots.counters[ROOT])

    @property
    def keys(self) -> int:
        """Keys of the newest version."""
        return int(self.slots.counters[KEYS])

    def put(self, keys: Column, values: Column, count: int, *, external_from: int) -> None:
        """Give ``count`` keys their values; references are stale until ``settle``."""
        self._make_room_for(keys, values, count, external_from)
        done = 0
        while done < count:
            done = put_entries(
                self.entries,
                self.branches,
                self.slots,
                keys,
                values,
                done,
                count,
                external_from,
                self._path(keys, count),
            )
            if done < count:
                self._grow(count - done)

    def remove(self, keys: Column, count: int) -> None:
        """Remove those of ``count`` keys that are there; references are stale until ``settle``."""
        self._own()
        done = 0
        while done < count:
            done = remove_entries(self.entries, self.branches, self.slots, keys, done, count, self._path(keys, count))
            if done < count:
                self._grow(64)

    def settle(self) -> None:
        """Compute the references of all that has changed."""
        counters = self.slots.counters
        if not counters[STALE_ENTRIES] and not counters[STALE_BRANCHES]:
            return
        entries = np.empty(counters[STALE_ENTRIES], np.int32)
        branches = np.empty(counters[STALE_BRANCHES], np.int32)
        levels = np.zeros(2 * self.longest_key + 3, np.int64)
        found = np.zeros(3, np.int64)
        list_stale(self.entries, self.branches, self.root, entries, branches, levels, found)
        if found[0]:
            refer_to_entries(self.entries, entries, found[0], -1, self.longest_node, FRESH)
        upwards = np.ascontiguousarray(branches[: found[1]][::-1])
        levels = np.ascontiguousarray(found[1] - levels[: found[2] + 1][::-1])
        refer_to_branches(self.entries, self.branches, upwards, levels, self.longest_node, FRESH)
        counters[STALE_ENTRIES] = counters[STALE_BRANCHES] = 0
        pending = self.slots.pending_entries[: counters[PENDING_ENTRIES]]
        counters[PENDING_ENTRIES] = 0
        self.release(pending, NONE)

    def freeze(self) -> Retired:
        """Let nothing of the newest version change from now on; return the slots that it made superfluous."""
        self.settle()
        np.bitwise_and(self.entries.state, 0xFF ^ FRESH, out=self.entries.state)
        self.branches.row[:, STATE] &= 0xFF ^ FRESH
        counters = self.slots.counters
        retired = Retired(
            self,
            self.slots.retired_entries[: counters[RETIRED_ENTRIES]].copy(),
            self.slots.retired_branches[: counters[RETIRED_BRANCHES]].copy(),
        )
        counters[RETIRED_ENTRIES] = counters[RETIRED_BRANCHES] = 0
        return retired

    def release(self, entries: Slots32, branches: Slots32) -> None:
        """Make slots free again."""
        counters = self.slots.counters
        for freed, count, table in (
            (entries, FREE_ENTRIES, self.slots.free_entries),
            (branches, FREE_BRANCHES, self.slots.free_branches),
        ):
            table[counters[count] : counters[count] + len(freed)] = freed
            counters[count] += len(freed)

    def listed(self, root: int) -> Slots32:
        """Return the entries of the version that starts with ``root``, in the order of their keys."""
        order = np.empty(len(self.entries.state), np.int32)
        count = list_entries(self.branches, root, order, np.empty(32 * (self.longest_key + 2), np.int64))
        return order[:count]

    def _path(self, keys: Column, count: int) -> npt.NDArray[np.int64]:
        return np.empty(2 * max(self.longest_key, longest(keys, count)) + 2 + GROUP, np.int64)

    def _make_room_for(self, keys: Column, values: Column, count: int, external_from: int) -> None:
        longest_key, longest_value = longest(keys, count), longest(values, count)
        if longest_key > MAX_KEY_BYTES:
            raise ValueError(f"a key has at most {MAX_KEY_BYTES} bytes, got {longest_key}")
        self.longest_key = max(self.longest_key, longest_key)
        self.longest_value = max(self.longest_value, longest_value)
        self._own()
        if longest_value >= external_from and not self.external:
            self.external = True
            hashes = np.zeros(32 * len(self.entries.state), np.uint8)
            self.entries = self.entries._replace(value_hash=hashes)
        counters = self.slots.counters
        slots = len(self.entries.state)
        key = _with_room_for(self.entries.key, slots, keys, count, counters, KEY_END)
        value = _with_room_for(self.entries.value, slots, values, count, counters, VALUE_END)
        self.entries = self.entries._replace(key=key, value=value)

    def _own(self) -> None:
        """Copy keys and values that came from outside, before anything is written."""
        if self.owned:
            return
        key, value = self.entries.key, self.entries.value
        counters = self.slots.counters
        counters[KEY_END], counters[VALUE_END] = len(key.data), len(value.data)
        self.entries = self.entries._replace(
            key=Column(key.data.copy(), key.at.copy(), key.size.copy(), key.width),
            value=Column(value.data.copy(), value.at.copy(), value.size.copy(), value.width),
        )
        self.owned = True

    def _grow(self, more: int) -> None:
        """Lengthen the tables by at least so many slots, and by an eighth."""
        old, entries = len(self.entries.state), self.entries
        wanted = old + max(more, old // 8, 64)
        self.entries = Entries(
            _lengthened(entries.key, wanted),
            _lengthened(entries.value, wanted),
            resized(entries.value_hash, 32 * wanted if self.external else 0),
            resized(entries.start, wanted),
            resized(entries.ref, REF * wanted),
            resized(entries.state, wanted),
        )
        rows = len(self.branches.row)
        more_rows = rows + max(more + 4 * self.longest_key, rows // 8, 64)
        self.branches = Branches(resized(self.branches.row, more_rows), resized(self.branches.ref, REF * more_rows))
        slots = self.slots
        self.slots = Slots(
            slots.counters,
            resized(slots.free_entries, wanted),
            resized(slots.pending_entries, wanted),
            resized(slots.free_branches, more_rows),
            resized(slots.retired_entries, wanted),
            resized(slots.retired_branches, more_rows),
        )

    @property
    def longest_node(self) -> int:
        """Bytes that are enough for any node, with room for copies of whole slots behind it."""
        return BRANCH_BYTES + self.longest_key + self.longest_key // 64 + self.longest_value

    def reference(self, node: int) -> bytes:
        """Return the reference of a node: 32 bytes of hash, or fewer of encoding."""
        table, slot = (self.entries.ref, node - 1) if node > 0 else (self.branches.ref, -node - 1)
        start = REF * slot + 1
        return table[start : start + (int(table[start - 1]) >> 2)].tobytes()

    def root_hash(self, node: int) -> bytes:
        """Return the root of the version that starts with ``node``: a root is hashed however short it is."""
        reference = self.reference(node) if node else b"\x00"
        return reference if len(reference) == 32 else hashlib.blake2b(reference, digest_size=32).digest()

    @property
    def memory_bytes(self) -> int:
        """Bytes of all tables."""
        arrays: list[npt.NDArray[Any]] = [
            *self.entries.key[:3],
            *self.entries.value[:3],
            *self.entries[2:],
            *self.branches,
            *self.slots,
        ]
        return sum(array.nbytes for array in arrays)


def _cut_branches(branches: Branches, used: int) -> Branches:
    """Give back what is beyond the first ``used`` branches."""
    return Branches(resized(branches.row, used), resized(branches.ref, used * REF))


def _no_slots() -> Slots:
    return Slots(np.zeros(COUNTERS, np.int64), *(np.empty(0, np.int32) for _ in range(5)))


def resized(table: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a table with another length, in place where the memory allows; new items are zero."""
    if not table.flags.owndata:
        table = table.copy()
    table.resize((size, *table.shape[1:]), refcheck=False)
    return table


def _lengthened(column: Column, count: int) -> Column:
    if column.width >= 0:
        return column._replace(data=resized(column.data, count * column.width))
    return column._replace(at=resized(column.at, count), size=resized(column.size, count))


def _with_room_for(
    column: Column, slots: int, more: Column, count: int, counters: npt.NDArray[np.int64], end: int
) -> Column:
    """Return a column of a table with so many ``slots`` as one that can take the strings of another one too.

    Its data does not tell the number of slots: strings of no bytes have none.
    """
    if column.width >= 0 and column.width == more.width:
        return column
    if column.width >= 0:
        column = spread_out(column, slots)
        counters[end] = len(column.data)
    added = count * more.width if more.width >= 0 else int(more.size[:count].sum())
    if counters[end] + added > len(column.data):
        column = column._replace(data=resized(column.data, int(counters[end] + added) * 9 // 8 + 64))
    return column
