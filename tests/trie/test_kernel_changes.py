"""Kernels that change a trie in its tables end where its definition does, and leave the versions before it alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_inputs import array, column, numbers, slots, spread
from naive import nibbles, shared_nibbles_of
from naive_tables import Fork, Shape, Tip, numbered, read, reference, shape, string
from relaycast_trie import StateVersion, blake2_256, trie_root
from relaycast_trie.array.arena import Arena
from relaycast_trie.kernels import memory, settle, tables, update
from relaycast_trie.kernels.tables import EXTERNAL, FRESH, SIZE, STALE, STATE
from relaycast_trie.kernels.update import (
    FREE_BRANCHES,
    FREE_ENTRIES,
    KEYS,
    NEXT_BRANCH,
    NEXT_ENTRY,
    PENDING_ENTRIES,
    RETIRED_BRANCHES,
    RETIRED_ENTRIES,
    ROOT,
    STALE_BRANCHES,
    STALE_ENTRIES,
)
from strategies import Pairs, keys, pairs, prefixes, some_pairs, values
from twins import twin_of

LONG = 4_096
externals = st.sampled_from([0, 33, LONG])
PATH = 600
ENTRIES = 20


def arena_of(held: Pairs, *, external_from: int = 33, room: int = 200, frozen: bool = False) -> Arena:
    """Return tables of a trie with room for changes; ``frozen`` if an older version reads them too."""
    some = sorted(held)
    arena = Arena.build(spread(*some), spread(*(held[key] for key in some)), len(some), external_from=external_from)
    arena._make_room_for(spread(*[bytes(100)] * 40), spread(*[bytes(100)] * 40), 40, external_from)
    if room:
        arena._grow(room)
    if frozen:
        arena.freeze(arena.top)
    return arena


class Ledger:
    """Slots as lists: which are free, which come next, which are given up and how."""

    def __init__(self) -> None:
        self.free: list[int] = []
        self.pending: list[int] = []
        self.retired: list[int] = []
        self.next = self.stale = 0

    def take(self) -> int:
        self.stale += 1
        if self.free:
            return self.free.pop()
        self.next += 1
        return self.next - 1


@twin_of("update.new_entry", "update.new_branch", "update.drop_entry", "update.drop_branch", "settle._free_pending")
@given(st.lists(st.tuples(st.sampled_from(["new", "drop fresh", "drop", "settle"]), st.booleans()), max_size=19))
def test_slots_are_taken_and_given_up_as_from_lists(deeds: list[tuple[str, bool]]) -> None:
    none = array(b"")
    strings, cells = column(), slots(*[0] * ENTRIES)
    entries = tables.Entries(strings, strings, none, cells, none, array(bytes(ENTRIES)))
    branches = tables.Branches(np.zeros((ENTRIES, tables.ROW), np.int32), none)
    held = tables.Slots(numbers(*[0] * 13), *(slots(*[-9] * ENTRIES) for _ in range(5)))
    top, low = Ledger(), Ledger()
    for number, (deed, on_branch) in enumerate(deeds):
        ledger = low if on_branch else top
        if deed == "settle":
            settle._free_pending(held)
            top.free, top.pending, top.stale, low.stale = top.free + top.pending, [], 0, 0
        elif deed == "new" and on_branch:
            branch = update.new_branch(branches, held)
            assert branch == low.take()
            assert (branches.row[branch, STATE], branches.row[branch, tables.STALE_WAYS]) == (STALE | FRESH, 0)
        elif deed == "new":
            assert update.new_entry(held) == top.take()
        elif on_branch:
            branches.row[number, STATE] = 32 | (FRESH if deed == "drop fresh" else 0)
            update.drop_branch(branches, held, number)
            (ledger.free if deed == "drop fresh" else ledger.retired).append(number)
        else:
            entries.state[number] = 32 | (FRESH if deed == "drop fresh" else 0)
            update.drop_entry(entries, held, number)
            (ledger.pending if deed == "drop fresh" else ledger.retired).append(number)
    counters = held.counters
    assert counters[[NEXT_ENTRY, STALE_ENTRIES]].tolist() == [top.next, top.stale]
    assert counters[[NEXT_BRANCH, STALE_BRANCHES]].tolist() == [low.next, low.stale]
    for listed, count, expected in (
        (held.free_entries, FREE_ENTRIES, top.free),
        (held.pending_entries, PENDING_ENTRIES, top.pending),
        (held.retired_entries, RETIRED_ENTRIES, top.retired),
        (held.free_branches, FREE_BRANCHES, low.free),
        (held.retired_branches, RETIRED_BRANCHES, low.retired),
    ):
        assert listed[: counters[count]].tolist() == expected


@twin_of("update.store_string", "update._copy_string")
@given(st.lists(st.binary(max_size=9), min_size=1, max_size=9), st.booleans(), st.data())
def test_strings_are_stored_and_copied_as_in_a_list(strings: list[bytes], one_width: bool, data: st.DataObject) -> None:
    strings = [it.ljust(9) for it in strings] if one_width else strings
    source = column(*strings) if one_width else spread(*strings)
    count, room = len(strings), array(bytes(200))
    target = tables.Column(room, source.at[:0], source.size[:0], 9)
    if not one_width:
        target = tables.Column(room, numbers(*[0] * count), slots(*[0] * count), -1)
    counters, end, stored = numbers(*[0] * 13), 10, dict[int, bytes]()
    for index in data.draw(st.lists(st.integers(0, count - 1), max_size=9)):
        slot = data.draw(st.integers(0, count - 1))
        update.store_string(target, slot, source, index, counters, end)
        stored[slot] = strings[index]
        other = data.draw(st.integers(0, count - 1))
        update._copy_string(target, slot, other)
        stored[other] = stored[slot]
        assert all(string(target, at) == expected for at, expected in stored.items())


@twin_of("update.fresh_entry")
@given(some_pairs, externals, st.booleans(), st.data())
def test_an_entry_is_changed_where_nobody_else_reads_it(
    held: Pairs, external_from: int, frozen: bool, data: st.DataObject
) -> None:
    arena = arena_of(held, external_from=external_from, frozen=frozen)
    entries, counters = arena.entries, arena.slots.counters
    for _ in range(3):
        entry = data.draw(st.integers(0, len(held) - 1))
        before, stale, state = told(entries, entry), int(counters[STALE_ENTRIES]), int(entries.state[entry])
        fresh = update.fresh_entry(entries, arena.slots, entry)
        assert (fresh == entry) == bool(state & FRESH)
        assert told(entries, fresh) == told(entries, entry) == before
        assert entries.state[fresh] == state & EXTERNAL | STALE | FRESH
        assert counters[STALE_ENTRIES] == stale + (not (state & FRESH and state & SIZE == STALE))
        if fresh != entry:
            assert entries.state[entry] == state
            assert arena.slots.retired_entries[counters[RETIRED_ENTRIES] - 1] == entry


def told(entries: tables.Entries, entry: int) -> tuple[object, ...]:
    """Return everything of an entry but its state and its reference."""
    hashed = entries.value_hash[32 * entry : 32 * entry + 32].tobytes() if entries.state[entry] & EXTERNAL else b""
    return string(entries.key, entry), string(entries.value, entry), int(entries.start[entry]), hashed


@twin_of("update.fresh_branch")
@given(some_pairs, st.booleans())
def test_a_branch_is_changed_where_nobody_else_reads_it(held: Pairs, frozen: bool) -> None:
    arena = arena_of(held, frozen=frozen)
    rows, counters = arena.branches.row, arena.slots.counters
    for branch in [-node - 1 for node, _ in numbered(arena.branches, arena.entries, arena.root) if node < 0]:
        for again in range(2):
            before, stale, state = rows[branch].tolist(), int(counters[STALE_BRANCHES]), int(rows[branch, STATE])
            fresh = update.fresh_branch(arena.branches, arena.slots, branch)
            assert (fresh == branch) == (not frozen)
            assert rows[fresh, :STATE].tolist() == before[:STATE]
            assert rows[fresh, STATE] == STALE | FRESH
            assert counters[STALE_BRANCHES] == stale + (frozen or not again)
            if frozen:
                assert rows[branch].tolist() == before
                assert arena.slots.retired_branches[counters[RETIRED_BRANCHES] - 1] == branch
                assert state & FRESH == 0


@twin_of("update.put_entries", "update.put_into")
@given(pairs, pairs, externals, st.booleans(), st.booleans())
def test_puts_end_in_the_trie_of_all_pairs(
    held: Pairs, put: Pairs, external_from: int, frozen: bool, by_root: bool
) -> None:
    arena = arena_of(held, external_from=external_from, frozen=frozen)
    old, before = arena.root, read(arena.entries, arena.branches, arena.root)
    given_keys, given_values, count = column(*put), column(*put.values()), len(put)
    if by_root:
        arguments = (arena.tables, arena.top, tuple(given_keys), tuple(given_values), 0, numbers(count), external_from)
        retired = numbers(-1, -1)
        assert update.put_entries(*arguments, numbers(*[0] * PATH), retired) == count
        told = [-1, -1] if not count else arena.slots.counters[[RETIRED_ENTRIES, RETIRED_BRANCHES]].tolist()
        assert retired.tolist() == told
    else:
        parts = (arena.entries, arena.branches, arena.slots, given_keys, given_values, 0, count)
        assert update.put_into(*parts, external_from, numbers(*[0] * PATH)) == count
    assert read(arena.entries, arena.branches, arena.root) == shape(held | put)
    assert arena.keys == len(held | put)
    if frozen:
        assert read(arena.entries, arena.branches, old) == before
    check_references(arena, external_from)


@twin_of("update.remove_entries", "update._remove")
@given(pairs, st.lists(keys, max_size=3), externals, st.booleans(), st.booleans(), st.data())
def test_removals_end_in_the_trie_of_what_is_left(
    held: Pairs, others: list[bytes], external_from: int, frozen: bool, by_root: bool, data: st.DataObject
) -> None:
    arena = arena_of(held, external_from=external_from, frozen=frozen)
    old, before = arena.root, read(arena.entries, arena.branches, arena.root)
    gone = [*(key for key in held if data.draw(st.booleans())), *others]
    asked, count = column(*gone), len(gone)
    if by_root:
        path, retired = numbers(*[0] * PATH), numbers(-1, -1)
        done = update.remove_entries(arena.tables, arena.top, tuple(asked), 0, numbers(count), path, retired)
        told = [-1, -1] if not count else arena.slots.counters[[RETIRED_ENTRIES, RETIRED_BRANCHES]].tolist()
        assert retired.tolist() == told
    else:
        done = update._remove(arena.entries, arena.branches, arena.slots, asked, 0, count, numbers(*[0] * PATH))
    assert done == count
    left = {key: value for key, value in held.items() if key not in gone}
    assert read(arena.entries, arena.branches, arena.root) == shape(left)
    assert arena.keys == len(left)
    if frozen:
        assert read(arena.entries, arena.branches, old) == before
    check_references(arena, external_from)


def check_references(arena: Arena, external_from: int) -> None:
    """Settle, and compare the reference of every node with its definition."""
    arena.settle(arena.top)
    for node, found in numbered(arena.branches, arena.entries, arena.root):
        assert arena.reference(node) == reference(found, external_from)


@given(some_pairs)
def test_a_change_waits_where_a_table_might_be_too_small(put: Pairs) -> None:
    arena = arena_of({}, room=0)
    some, path = column(*put), numbers(*[0] * PATH)
    arguments = (arena.tables, arena.top, tuple(some), tuple(column(*put.values())), 0, numbers(len(put)), 33)
    assert update.put_entries(*arguments, path, numbers(0, 0)) == 0
    assert (arena.root, arena.keys) == (0, 0)


@twin_of("update._has_room")
@pytest.mark.parametrize(("free", "levels", "expected"), [(0, 5, False), (3, 0, True), (3, 1, False), (9, 6, True)])
def test_there_is_room_for_three_entries_and_three_branches_beside_the_path(
    free: int, levels: int, expected: bool
) -> None:
    arena = arena_of({}, room=64)
    counters = arena.slots.counters
    counters[NEXT_ENTRY], counters[NEXT_BRANCH] = len(arena.entries.state) - 3, len(arena.branches.row)
    counters[FREE_BRANCHES] = free
    assert update._has_room(arena.entries, arena.branches, arena.slots, levels) is expected
    counters[NEXT_ENTRY] += 1
    assert update._has_room(arena.entries, arena.branches, arena.slots, levels) is False
    counters[FREE_ENTRIES] = 1
    assert update._has_room(arena.entries, arena.branches, arena.slots, levels) is expected


@twin_of("update._descend")
@given(some_pairs, st.lists(keys, max_size=9))
def test_a_key_goes_down_as_far_as_it_fits(held: Pairs, others: list[bytes]) -> None:
    arena = arena_of(held)
    entries, branches = arena.entries, arena.branches
    for key in [*held, *others, *prefixes(held)]:
        path = numbers(*[0] * PATH)
        levels, node, shared = update._descend(entries, branches, arena.slots, column(key), 0, len(key), path)
        passed = [read(entries, branches, -(branch + 1)) for branch in path[:levels].tolist()]
        assert (passed, read(entries, branches, node), shared) == descended(shape(held), bytes(nibbles(key)))


def descended(found: Shape | None, path: bytes) -> tuple[list[Shape], Shape | None, int]:
    """Return the branches that a path passes, what stands next, and how many nibbles fit it."""
    passed: list[Shape] = []
    while isinstance(found, Fork):
        shared = shared_nibbles_of(bytes(found.path), path)
        if shared < found.depth or shared == len(path):
            return passed, found, shared
        passed.append(found)
        found = found.ways.get(path[found.depth])
    return passed, found, shared_nibbles_of(bytes(nibbles(found.key)), path) if isinstance(found, Tip) else 0


@twin_of("update._holds")
@given(some_pairs, externals, externals, st.lists(values, max_size=3))
def test_an_entry_holds_a_value_that_would_be_stored_as_it_is(
    held: Pairs, external_from: int, now: int, others: list[bytes]
) -> None:
    arena, some = arena_of(held, external_from=external_from), sorted(held)
    for entry, key in enumerate(some):
        for index, value in enumerate(wanted := [held[key], *others]):
            same = (len(value) >= now) == (len(held[key]) >= external_from) and value == held[key]
            assert update._holds(arena.entries, entry, column(*wanted), index, now) == same


def rows(seed: int, count: int, width: int) -> memory.Bytes:
    return np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)


@twin_of("settle.change", "settle._fit")
@pytest.mark.parametrize("width", [0, 20, 40])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_put_and_hashed_to_the_root_of_the_plain_engine(width: int, seed: int) -> None:
    """Up to an eighth of the keys are few; of the 40 keys there may be 4 rows."""
    first, more = rows(seed, 40, 3), rows(seed + 9, 40, width)
    held = dict(zip(map(bytes, first), map(bytes, more), strict=True))
    some, count = sorted(held), len(held)
    arena = Arena.build(column(*some), column(*(held[key] for key in some)), count, external_from=33)
    arena._own()
    arena._grow(64)
    arena._hand_over(room_for=1_024)
    for turn in range(1, 7):
        new_keys, new = rows(seed + turn, turn, 3), rows(turn, turn, width + (turn == 3))
        new_keys[0] = first[turn]
        fits = 8 * turn < arena.keys and turn != 3
        assert settle._fit(arena.entries, arena.slots, new_keys, new, 33) == fits
        done = settle.change(arena.tables, arena.top, new_keys, new, 33, FRESH)
        assert (done == settle.REFUSED) == (not fits)
        if fits:
            held |= dict(zip(map(bytes, new_keys), map(bytes, new), strict=True))
            assert arena.work.root.tobytes() == trie_root(held, state_version=StateVersion.V1, engine="plain")
            found = dict(numbered(arena.branches, arena.entries, arena.root))
            assert found[arena.root] == shape(held)
            assert all(arena.reference(node) == reference(it, 33) for node, it in found.items())
    put = settle.change(arena.tables, arena.top, first[:2], rows(77, 2, width), 33, -1)
    assert put == settle.PUT
    assert settle.change(arena.tables, arena.top, first[:2], rows(77, 1, width), 33, FRESH) == settle.REFUSED


@twin_of("settle._list_stale")
@given(some_pairs, pairs, externals, st.booleans())
def test_what_is_stale_is_listed_below_what_waits_for_it(
    held: Pairs, put: Pairs, external_from: int, frozen: bool
) -> None:
    arena = arena_of(held, external_from=external_from, frozen=frozen)
    entries, branches = arena.entries, arena.branches
    parts = (entries, branches, arena.slots, column(*put), column(*put.values()), 0, len(put))
    update.put_into(*parts, external_from, numbers(*[0] * PATH))
    arena._hand_over(room_for=1_024)
    expected = dict(stale_items(arena))
    count = settle._list_stale(entries, branches, arena.top, arena.work, FRESH)
    listed = arena.work.stale[:count].tolist()
    above = [listed[at] if at >= 0 else None for at in arena.work.above[:count].tolist()]
    assert len(set(listed)) == count
    assert dict(zip(listed, above, strict=True)) == expected
    assert arena.work.waiting[:count].tolist() == [above.count(item) for item in listed]


def stale_items(arena: Arena) -> list[tuple[int, int | None]]:
    """Return what is to be hashed, nodes and external values, each with the node that waits for it."""
    entries, branches, found = arena.entries, arena.branches, list[tuple[int, int | None]]()
    waits = {int(child): node for node, _ in nodes_of(arena) if node < 0 for child in branches.row[-node - 1, :16]}
    for node, _ in nodes_of(arena):
        entry = node - 1 if node > 0 else int(branches.row[-node - 1, tables.VALUED]) - 1
        state = int(entries.state[node - 1] if node > 0 else branches.row[-node - 1, STATE])
        if state & SIZE == STALE:
            found.append((node, waits.get(node)))
        if entry >= 0 and entries.state[entry] & SIZE == STALE and entries.state[entry] & EXTERNAL:
            found.append((settle.ALONE + entry, node))
    return found


def nodes_of(arena: Arena) -> list[tuple[int, Shape]]:
    return [*numbered(arena.branches, arena.entries, arena.root)]


@twin_of("settle._release")
def test_what_waits_for_the_last_of_its_children_is_queued() -> None:
    arena = arena_of({})
    work = arena.work._replace(above=slots(-1, 0, 0), waiting=slots(2, 0, 0), queue=slots(1, 2, -9))
    assert [settle._release(work, item, 2) for item in (1, 2)] == [2, 3]
    assert (work.waiting.tolist(), work.queue.tolist()) == ([0, 0, 0], [1, 2, 0])
    assert settle._release(work, 0, 3) == 3


@twin_of("settle._write_root")
@given(pairs)
def test_a_root_is_hashed_however_short_it_is(held: Pairs) -> None:
    arena = arena_of(held)
    arena._hand_over(room_for=1_024)
    settle._write_root(arena.entries, arena.branches, arena.work, arena.root)
    found = shape(held)
    data = reference(found, 33) if found else b"\x00"
    assert arena.work.root.tobytes() == (data if len(data) == 32 else blake2_256(data))
    assert arena.slots.counters[[ROOT, KEYS]].tolist() == [arena.root, len(held)]
