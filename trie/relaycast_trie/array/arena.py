"""A trie's tables and what is free in them: built whole from sorted keys, changed in place or by fresh copies.

The tables belong to one ``Arena``; several versions of a trie can share it, each with a root node of its own. Proofs
are written from the tables, many in one call.
"""

import hashlib
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relaycast_trie.array.array_proofs import ArrayProof
from relaycast_trie.array.columns import MAX_KEY_BYTES, longest, spread_out
from relaycast_trie.kernels import at_once
from relaycast_trie.kernels.build import UNSORTED, build_branches, order_by_height, take_strings
from relaycast_trie.kernels.encode import BRANCH_BYTES, refer_to_branches, refer_to_entries
from relaycast_trie.kernels.get import (
    GROUP,
    collect_proofs,
    drop_repeated,
    list_entries,
    write_nodes,
)
from relaycast_trie.kernels.multibuffer_hash import BLOCK, LANES, ROWS, Rooms
from relaycast_trie.kernels.packed_args import hand_over, things_in
from relaycast_trie.kernels.settle import ALONE, REFUSED, change
from relaycast_trie.kernels.tables import (
    FRESH,
    NO_START,
    REF,
    ROW,
    STATE,
    Branches,
    Column,
    Entries,
    Parts,
    Slots,
    Tables,
    Work,
)
from relaycast_trie.kernels.update import (
    COUNTERS,
    FREE_BRANCHES,
    FREE_ENTRIES,
    KEY_END,
    KEYS,
    NEXT_BRANCH,
    NEXT_ENTRY,
    RETIRED_BRANCHES,
    RETIRED_ENTRIES,
    ROOT,
    STALE_BRANCHES,
    STALE_ENTRIES,
    VALUE_END,
    put_entries,
    remove_entries,
    slots_below,
    take_retired,
)

Slots32 = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Changed = tuple[Slots32, Slots32]
"""Entries and branches."""

NEVER_EXTERNAL = 1 << 62
NONE = np.empty(0, np.int32)
NO_REFS = np.empty(0, np.uint8)
NO_ROWS = np.empty((0, 0), np.uint8)
FEW = 1_024
"""Stale nodes that there is always room to work on."""
UINT8 = np.dtype(np.uint8)

NODES_A_KEY = 8
"""Hashed nodes of a key for which there is room at first."""

FEW_KEYS = 64
"""Keys up to which a proof is made in one call."""

NODES_A_CALL = 256
"""Nodes that are written at a time where only their places are known: room is made for as many of the longest."""


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
    top: Numbers = field(init=False)
    """The root of the only trie, where the kernels write it."""
    work: Work = field(init=False)
    """Room for kernels to work in, from the moment on when ``tables`` are handed over."""
    work_root: npt.NDArray[np.uint8] = field(init=False)
    """The root of the only trie, if ``hashed``."""
    handed: Tables | None = field(init=False)
    settled_fresh: bool = True
    """Whether there may be nodes that are settled and can still change in place."""
    owned: bool = False
    """Whether keys and values are our own arrays: those that a trie was built from are not written to."""
    hashed: bool = False
    """Whether ``work_root`` is the root of the trie as it is now."""
    asked: bool = False
    """Whether somebody asked for a root since the last change; likely they will after the next one too."""

    def __post_init__(self) -> None:
        self.top = self.slots.counters[ROOT : ROOT + 1]
        self.handed = None

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.hashed = False
        self.__post_init__()

    @classmethod
    def build(cls, keys: Column, values: Column, count: int, *, external_from: int) -> "Arena":
        """Return the tables of a trie from ``count`` keys that strictly ascend; raises ``UnsortedError``."""
        longest_key, longest_value = longest(keys, count), longest(values, count)
        if longest_key > MAX_KEY_BYTES:
            raise ValueError(f"a key has at most {MAX_KEY_BYTES} bytes, got {longest_key}")
        room = max(count - 1, 0)
        branches = Branches(np.empty((room, ROW), np.int32), NO_REFS)
        entries = Entries(
            keys,
            values,
            np.empty(32 * count if longest_value >= external_from else 0, np.uint8),
            np.empty(count, np.int32),
            np.empty(REF * count, np.uint8),
            np.empty(count, np.uint8),
        )
        heights = np.empty(room, np.int32)
        nibbles = 2 * longest_key + 2
        result = np.zeros(1, np.int64)
        used = build_branches(entries, count, branches, heights, np.empty(nibbles, np.int32), result)
        if used == UNSORTED:
            raise UnsortedError("keys do not strictly ascend")
        branches = Branches(resized(branches.row, used), np.zeros(REF * used, np.uint8))
        slots = no_slots()
        slots.counters[ROOT] = result[0]
        slots.counters[KEYS] = slots.counters[NEXT_ENTRY] = count
        slots.counters[NEXT_BRANCH] = used
        external = longest_value >= external_from
        arena = cls(entries, branches, slots, longest_key, longest_value, external)
        order = np.empty(used, np.int32)
        levels = np.zeros(nibbles + 2, np.int64)
        steps = order_by_height(heights, used, order, levels)
        refer_to_entries(entries, count, external_from, arena.longest_node, FRESH)
        refer_to_branches(entries, branches, order, levels[: steps + 1], arena.longest_node, FRESH)
        return arena

    @property
    def tables(self) -> Tables:
        """All tables as kernels take them. Built on first use: a root-only build never needs them."""
        if self.handed is None:
            self._hand_over()
        return self.handed

    @property
    def root(self) -> int:
        """The node that the newest version starts with; 0 for the empty trie."""
        return int(self.slots.counters[ROOT])

    @property
    def keys(self) -> int:
        """Keys of the newest version."""
        return int(self.slots.counters[KEYS])

    def put(self, roots: Numbers, keys: Column, values: Column, ends: Numbers, *, external_from: int) -> Numbers:
        """Give keys their values, those up to ``ends[t]`` in the trie ``roots[t]``; references wait for ``settle``.

        Returns for each trie how many entries and how many branches are retired when it is done.
        """
        count = int(ends[-1])
        self.hashed = False
        self._make_room_for(keys, values, count, external_from)
        path, given, new, retired = self._path(keys, count), tuple(keys), tuple(values), self._retired(len(roots))
        done = 0
        while done < count:
            done = put_entries(self.tables, roots, given, new, done, ends, external_from, path, retired)
            if done < count:
                self._grow(count - done)
        return np.maximum.accumulate(retired.reshape(-1, 2))

    def remove(self, roots: Numbers, keys: Column, ends: Numbers) -> Numbers:
        """Remove those keys that are there, shared out and counted as in ``put``; references wait for ``settle``."""
        self._own()
        self.hashed = False
        count = int(ends[-1])
        path, given, retired = self._path(keys, count), tuple(keys), self._retired(len(roots))
        done = 0
        while done < count:
            done = remove_entries(self.tables, roots, given, done, ends, path, retired)
            if done < count:
                self._grow(64)
        return np.maximum.accumulate(retired.reshape(-1, 2))

    def _retired(self, tries: int) -> Numbers:
        """Return the room for what ``put`` and ``remove`` count: what is retired before."""
        return np.tile(self.slots.counters[RETIRED_ENTRIES : RETIRED_BRANCHES + 1], tries)

    def put_rows(self, keys: object, values: object, external_from: int) -> bool:
        """Put matrices with a key and a value a row into the only trie, if they are few and just what the tables hold.

        Where it seems that the root is asked for next, it is computed too. Returns whether all that was done;
        where not, ``put`` does it.
        """
        if not (
            self.owned
            and type(keys) is np.ndarray
            and type(values) is np.ndarray
            and keys.dtype is values.dtype is UINT8
            and keys.ndim == values.ndim == 2
            and keys.flags.carray
            and values.flags.carray
        ):
            return False
        flags = FRESH if self.asked else -1
        self.asked = False
        done = change(self.tables, self.top, keys, values, external_from, flags)
        self.hashed = done >= 0
        self.settled_fresh |= self.hashed
        return bool(done != REFUSED)

    def settle(self, roots: Numbers, *, for_good: bool = False) -> Slots32:
        """Compute the references of all that has changed below ``roots``; return what was hashed, as ``Work`` lists it.

        ``for_good``: later writes copy it.
        """
        counters = self.slots.counters
        stale = int(2 * counters[STALE_ENTRIES] + counters[STALE_BRANCHES])
        if not stale:
            return NONE
        self.settled_fresh |= not for_good
        if self.handed is None or stale > len(self.work.stale):
            self._hand_over(room_for=max(FEW, stale * 9 // 8))
        count = change(self.tables, roots, NO_ROWS, NO_ROWS, NEVER_EXTERNAL, 0 if for_good else FRESH)
        self.hashed = True
        settled = self.work.stale[:count]
        if len(self.work.stale) > max(FEW, len(self.entries.state) // 8):
            self._hand_over(room_for=FEW)
        return settled

    def changed(self, settled: Slots32) -> Changed:
        """Return the entries and the branches among what ``settle`` returned."""
        values = settled[settled >= ALONE] - ALONE
        values = values[self.entries.start[values] == NO_START]
        leaves = settled[(settled > 0) & (settled < ALONE)] - 1
        return np.concatenate((leaves, values)), -settled[settled < 0] - 1

    def freeze(self, roots: Numbers) -> tuple[Slots32, "Retired"]:
        """Let nothing change in place from now on; return what was hashed, and the slots that are superfluous."""
        settled = self.settle(roots, for_good=True)
        if self.settled_fresh:
            np.bitwise_and(self.entries.state, 0xFF ^ FRESH, out=self.entries.state)
            self.branches.row[:, STATE] &= 0xFF ^ FRESH
            self.settled_fresh = False
        slots = self.slots
        return settled, Retired(self, *take_retired(slots.counters, slots.retired_entries, slots.retired_branches))

    def release(self, entries: Slots32, branches: Slots32) -> None:
        """Make slots free again."""
        counters = self.slots.counters
        for freed, count, table in (
            (entries, FREE_ENTRIES, self.slots.free_entries),
            (branches, FREE_BRANCHES, self.slots.free_branches),
        ):
            table[counters[count] : counters[count] + len(freed)] = freed
            counters[count] += len(freed)

    def below(self, roots: Numbers) -> Changed:
        """Return the entries and the branches of the versions that start with ``roots``; all is settled."""
        counters = self.slots.counters
        return slots_below(self.tables, roots, int(counters[NEXT_ENTRY]), int(counters[NEXT_BRANCH]))

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
        grows = longest_key > self.longest_key or longest_value > self.longest_value
        self.longest_key = max(self.longest_key, longest_key)
        self.longest_value = max(self.longest_value, longest_value)
        self._own()
        if longest_value >= external_from and not self.external:
            grows = True
            self.external = True
            self.entries = self.entries._replace(value_hash=np.zeros(32 * len(self.entries.state), np.uint8))
        key = self._with_room_for(self.entries.key, keys, count, KEY_END)
        value = self._with_room_for(self.entries.value, values, count, VALUE_END)
        if grows or key is not self.entries.key or value is not self.entries.value:
            self.entries = self.entries._replace(key=key, value=value)
            self._hand_over()

    def _with_room_for(self, column: Column, more: Column, count: int, end: int) -> Column:
        """Return a column of a table as one that can take the strings of another one too.

        Its data does not tell the number of slots: strings of no bytes have none.
        """
        if column.width >= 0 and column.width == more.width:
            return column
        counters = self.slots.counters
        if column.width >= 0:
            column = spread_out(column, len(self.entries.state))
            counters[end] = len(column.data)
        added = count * more.width if more.width >= 0 else int(more.size[:count].sum())
        if counters[end] + added <= len(column.data):
            return column
        column, counters[end] = self._packed(column, int(counters[end]))
        return column._replace(data=resized(column.data, int(counters[end] + added) * 9 // 8 + 64))

    def _packed(self, column: Column, end: int) -> tuple[Column, int]:
        """Return a column and where its data ends; strings that no slot names are cut out if they are half of it."""
        counters, free = self.slots.counters, self.slots.free_entries
        used = int(counters[NEXT_ENTRY])
        column.size[free[: counters[FREE_ENTRIES]]] = 0
        ends = np.append(0, np.cumsum(column.size[:used], dtype=np.int64))
        if 2 * ends[-1] > end:
            return column, end
        data = np.empty(int(ends[-1]), np.uint8)
        take_strings(column, np.arange(used, dtype=np.int32), data, ends)
        column.at[:used] = ends[:-1]
        return column._replace(data=data), int(ends[-1])

    def _hand_over(self, *, room_for: int = 0) -> None:
        """Hand all tables over anew, with room to settle ``room_for`` nodes; 0 keeps the room there was."""
        old = no_work() if self.handed is None else self.work
        nodes = room_for or max(FEW, len(old.stale))
        places = 2 * self.longest_key + 2 + GROUP
        self.work = work = with_room_for(old, nodes, node_bytes=self.longest_node, places=places)
        self.work_root = work.root
        self.handed = hand_over(Parts(self.entries, self.branches, self.slots, work))

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
        self._hand_over()

    def _grow(self, more: int) -> None:
        """Lengthen the tables by at least ``more`` slots, and by an eighth."""
        old = len(self.entries.state)
        wanted = old + max(more, old // 8, 64)
        rows = len(self.branches.row)
        more_rows = rows + max(more + 4 * self.longest_key, rows // 8, 64)
        self.entries = lengthened_entries(self.entries, wanted, external=self.external)
        self.branches = Branches(resized(self.branches.row, more_rows), resized(self.branches.ref, more_rows * REF))
        self.slots = lengthened_slots(self.slots, wanted, more_rows)
        self._hand_over()

    @property
    def longest_node(self) -> int:
        """Bytes that are enough for any node, with room for copies of whole slots behind it."""
        return BRANCH_BYTES + self.longest_key + self.longest_key // 64 + self.longest_value

    def reference(self, node: int) -> bytes:
        """Return the reference of a node: 32 bytes of hash, or fewer of encoding."""
        table, slot = (self.entries.ref, node - 1) if node > 0 else (self.branches.ref, -node - 1)
        start = REF * slot + 1
        return table[start : start + (int(table[start - 1]) >> 2)].tobytes()

    def top_hash(self) -> bytes:
        """Return the root of the only trie as it is now."""
        if not self.hashed:
            self.settle(self.top)
        return self.work_root.tobytes() if self.hashed else self.root_hash(self.root)

    def root_hash(self, node: int) -> bytes:
        """Return the root of the version that starts with ``node``: a root is hashed however short it is."""
        reference = self.reference(node) if node else b"\x00"
        return reference if len(reference) == 32 else hashlib.blake2b(reference, digest_size=32).digest()

    @property
    def memory_bytes(self) -> int:
        """Bytes of all tables, and of the room to work in."""
        parts = Parts(self.entries, self.branches, self.slots, no_work() if self.handed is None else self.work)
        return sum(thing.nbytes for thing in things_in(parts) if isinstance(thing, np.ndarray))


class ProofColumns(NamedTuple):
    """Many proofs: all nodes one after another, the offsets of nodes in the data, and where each proof's nodes end.

    The nodes of proof ``p`` are those from ``ends[p]`` to ``ends[p + 1]``.
    """

    data: npt.NDArray[np.uint8]
    offsets: Numbers
    ends: Numbers

    def proofs(self) -> list[ArrayProof]:
        """Return the proofs one by one; they share the data."""
        ends = self.ends.tolist()
        starts = self.offsets[self.ends].tolist()
        return [
            ArrayProof.of_arrays(
                self.data[starts[proof] : starts[proof + 1]],
                self.offsets[ends[proof] : ends[proof + 1] + 1] - starts[proof],
            )
            for proof in range(len(ends) - 1)
        ]


def prove_few(arena: Arena, root: int, keys: list[bytes]) -> ArrayProof | None:
    """Return in one call what reading ``keys`` below the node ``root`` touches; ``None`` where ``prove_columns`` can.

    References are settled.
    """
    if root == 0:
        return None
    count, data, offsets = at_once.prove_at_once(arena.tables, root, arena.longest_node, id(keys), id(bytes))
    return ArrayProof.of_arrays(data, offsets) if count >= 0 else None


class ProofPlaces(NamedTuple):
    """Many proofs as places of a trie: those of proof ``p`` go from ``ends[p]`` to ``ends[p + 1]``."""

    places: Numbers
    ends: Numbers


def prove_columns(arena: Arena, roots: Numbers, keys: Column, ends: Numbers, *, distinct: bool = False) -> ProofColumns:
    """Return what reading the keys from ``ends[p]`` to ``ends[p + 1]`` below the node ``roots[p]`` touches.

    References are settled. Keys with equal values may have equal nodes, of which ``distinct`` keeps one. Of the empty
    trie, the root 0, anything that is read touches the empty node.
    """
    if _are_empty(roots):
        nodes = (ends[1:] > ends[:-1]).astype(np.int64)
        count = int(nodes.sum())
        return ProofColumns(np.zeros(count, np.uint8), np.arange(count + 1), np.append(0, np.cumsum(nodes)))
    nodes, node_ends, bound = _places(arena, roots, keys, ends, distinct)
    data, offsets = np.empty(bound + arena.longest_node, np.uint8), np.empty(len(nodes) + 1, np.int64)
    write_nodes(arena.tables, nodes, len(nodes), data, offsets)
    return ProofColumns(data[: int(offsets[-1])], offsets, node_ends)


def prove_places(arena: Arena, roots: Numbers, keys: Column, ends: Numbers) -> ProofPlaces:
    """Return where the nodes of ``prove_columns`` stand, each node once in a proof; the empty node stands at 0."""
    if _are_empty(roots):
        counts = (ends[1:] > ends[:-1]).astype(np.int64)
        return ProofPlaces(np.zeros(int(counts.sum()), np.int64), np.append(0, np.cumsum(counts)))
    nodes, node_ends, _ = _places(arena, roots, keys, ends, distinct=True)
    return ProofPlaces(nodes.copy(), node_ends)


def nodes_at(arena: Arena, places: Numbers) -> tuple[npt.NDArray[np.uint8], Numbers]:
    """Return the nodes at these places one after another, and their offsets; places are as ``prove_places`` has them.

    INVARIANT: every place was returned for this arena as it is; the kernel reads whatever it is told to.
    """
    if arena.root == 0:
        return np.zeros(len(places), np.uint8), np.arange(len(places) + 1)
    parts, sizes = [np.zeros(0, np.uint8)], [np.zeros(1, np.int64)]
    for first in range(0, len(places), NODES_A_CALL):
        some = places[first : first + NODES_A_CALL]
        data, offsets = np.empty((len(some) + 1) * arena.longest_node, np.uint8), np.empty(len(some) + 1, np.int64)
        write_nodes(arena.tables, some, len(some), data, offsets)
        parts.append(data[: int(offsets[-1])].copy())
        sizes.append(np.diff(offsets))
    return np.concatenate(parts), np.cumsum(np.concatenate(sizes))


def _are_empty(roots: Numbers) -> bool:
    empty = roots == 0
    if empty.any() and not empty.all():
        raise ValueError("proofs of empty tries and of others are not made together")
    return bool(empty.any())


def _places(arena: Arena, roots: Numbers, keys: Column, ends: Numbers, distinct: bool) -> tuple[Numbers, Numbers, int]:
    """Return where nodes stand, where those of each proof end, and how many bytes they have at most."""
    room, bound = NODES_A_KEY, -1
    while bound < 0:
        rooms = _powers_of_two(room * (ends[1:] - ends[:-1]) + 2 * GROUP)
        nodes = np.empty(int(rooms.sum()), np.int64)
        table = np.empty(2 * int(rooms.max(initial=0)), np.int64)
        node_ends = np.empty(len(ends), np.int64)
        bound = collect_proofs(arena.tables, roots, tuple(keys), ends, rooms, table, nodes, node_ends)
        room *= 4
    used = drop_repeated(arena.tables, nodes, node_ends, table) if distinct else int(node_ends[-1])
    return nodes[:used], node_ends, bound


def _powers_of_two(least: Numbers) -> Numbers:
    """Return the powers of two that are at least so much; for numbers from 2 to 2^53."""
    return np.left_shift(1, np.frexp(least - 1)[1].astype(np.int64))


def resized(table: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a table with another length, in place where the memory allows; new items are zero."""
    if not table.flags.owndata:
        table = table.copy()
    table.resize((size, *table.shape[1:]), refcheck=False)
    return table


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
