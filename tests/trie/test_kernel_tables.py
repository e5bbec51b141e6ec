"""Kernels that build a trie in tables, write its nodes and read it agree with the trie as its definition cuts it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_inputs import array, column, numbers, slots
from naive import nibbles
from naive_tables import Fork, Shape, Tip, as_node, encoded, height, numbered, read, reference, shape
from relaycast_trie import StorageProof, blake2_256, build_database
from relaycast_trie.array.arena import Arena
from relaycast_trie.kernels import build, encode, get, memory, settle, tables, update
from relaycast_trie.kernels.multibuffer_hash import new_rooms
from relaycast_trie.kernels.packed_args import things_in
from relaycast_trie.kernels.update import RETIRED_BRANCHES, RETIRED_ENTRIES
from relaycast_trie.node_codec import encode_node
from relaycast_trie.scale import encode_bytes
from strategies import Pairs, keys, pairs, pairs_with_questions, prefixes, some_pairs
from twins import twin_of

Asked = tuple[Pairs, list[bytes]]
LONG = 4_096
externals = st.sampled_from([0, 33, LONG])


class Unhashed:
    """The tables of a trie whose references are not computed."""

    def __init__(self, held: Pairs) -> None:
        some, count = sorted(held), len(held)
        values = column(*(held[key] for key in some))
        zeros = (
            np.zeros(32 * count, np.uint8),
            np.zeros(count, np.int32),
            array(bytes(33 * count)),
            array(bytes(count)),
        )
        self.entries = tables.Entries(column(*some), values, *zeros)
        self.branches = tables.Branches(np.full((count, tables.ROW), 99, np.int32), array(bytes(33 * count)))
        self.heights, self.result = slots(*[99] * count), numbers(99)
        stack = slots(*[0] * (2 * max(map(len, some), default=0) + 2))
        self.used = build.build_branches(self.entries, count, self.branches, self.heights, stack, self.result)
        self.root = int(self.result[0])

    def nodes(self) -> list[tuple[int, Shape]]:
        return [*numbered(self.branches, self.entries, self.root)]


def arena_of(held: Pairs, *, external_from: int = 33) -> Arena:
    some = sorted(held)
    values = column(*(held[key] for key in some))
    return Arena.build(column(*some), values, len(some), external_from=external_from)


@twin_of("build.build_branches")
@given(pairs)
def test_branches_stand_where_the_definition_puts_them(held: Pairs) -> None:
    built = Unhashed(held)
    assert read(built.entries, built.branches, built.root) == shape(held)
    forks = [(node, found) for node, found in built.nodes() if isinstance(found, Fork)]
    assert built.used == len(forks)
    assert all(built.heights[-node - 1] == height(found) for node, found in forks)
    held_entries, stack = built.entries, slots(*[0] * 400)
    few = tables.Branches(built.branches.row[: max(built.used - 1, 0)], array(b""))
    full = build.build_branches(held_entries, len(held), few, built.heights, stack, built.result)
    assert full == (build.FULL if built.used else 0)


@given(st.lists(keys, min_size=2, max_size=9))
def test_keys_that_do_not_strictly_ascend_are_not_built(some: list[bytes]) -> None:
    count, none = len(some), array(b"")
    entries = tables.Entries(column(*some), column(*some), none, slots(*[0] * count), none, none)
    branches = tables.Branches(np.zeros((count, tables.ROW), np.int32), none)
    found = build.build_branches(entries, count, branches, slots(*[0] * count), slots(*[0] * 400), numbers(0))
    assert (found == build.UNSORTED) == (some != sorted(set(some)))


@twin_of("encode.refer_to_entries", "encode.refer_to_branches", "encode.write_leaf", "encode.write_branch")
@given(pairs, externals, st.sampled_from([0, tables.FRESH]))
def test_nodes_are_written_and_referred_to_as_the_plain_codec_does(held: Pairs, external_from: int, flags: int) -> None:
    built = Unhashed(held)
    entries, branches, count = built.entries, built.branches, len(held)
    longest = encode.BRANCH_BYTES + 300
    order, levels = slots(*[0] * built.used), numbers(*[0] * 200)
    steps = build.order_by_height(built.heights, built.used, order, levels)
    encode.refer_to_entries(entries, count, external_from, longest, flags)
    encode.refer_to_branches(entries, branches, order, levels[: steps + 1], longest, flags)
    for node, found in built.nodes():
        slot, table, states = -node - 1, branches.ref, branches.row[:, tables.STATE]
        if node > 0:
            slot, table, states = node - 1, entries.ref, entries.state & (0xFF ^ tables.EXTERNAL)
        expected, out = reference(found, external_from), array(bytes(1_200))
        assert table[33 * slot : 33 * slot + 1 + len(expected)].tobytes() == encode_bytes(expected)
        assert states[slot] == flags | len(expected)
        end = (
            encode.write_leaf(entries, slot, out, 5)
            if node > 0
            else encode.write_branch(entries, branches, slot, out, 5)
        )
        assert out[5:end].tobytes() == encode_node(as_node(found, external_from))


@twin_of("encode._write_value", "encode._mark_external", "encode._hash_values")
@given(pairs, externals)
def test_values_are_written_whole_or_as_their_hashes(held: Pairs, external_from: int) -> None:
    entries, out = Unhashed(held).entries, array(bytes(300))
    long = [len(held[key]) >= external_from for key in sorted(held)]
    assert encode._mark_external(entries, len(held), external_from, 5) == (tables.EXTERNAL if any(long) else 0)
    assert entries.state.tolist() == [5 | tables.EXTERNAL if is_long else 5 for is_long in long]
    batch = encode._new_batch(100)
    encode._hash_values(entries, len(held), batch, new_rooms())
    for entry, key in enumerate(sorted(held)):
        end = encode._write_value(entries, entry, out, 3)
        assert out[3:end].tobytes() == (blake2_256(held[key]) if long[entry] else encode_bytes(held[key]))


@twin_of("get.find_entries", "get.same_string", "get.scout")
@given(pairs, st.lists(keys, max_size=20))
def test_a_key_is_found_as_in_a_sorted_list(held: Pairs, others: list[bytes]) -> None:
    arena, some, wanted = arena_of(held), sorted(held), [*held, *others, *prefixes(held)]
    found, asked = slots(*[-9] * len(wanted)), column(*wanted)
    get.find_entries(arena.tables, arena.root, tuple(asked), len(wanted), found)
    assert found.tolist() == [some.index(key) if key in held else -1 for key in wanted]
    for entry, key in enumerate(some):
        same = [get.same_string(arena.entries.key, entry, asked, index) for index in range(len(wanted))]
        assert same == [other == key for other in wanted]
    ends = numbers(*[-9] * len(wanted))
    get.scout(arena.entries, arena.branches, arena.root, asked, 0, len(wanted), ends)
    tips = [guess(shape(held), key) for key in wanted]
    assert ends.tolist() == [some.index(tip.key) + 1 if tip else 0 for tip in tips]


def guess(found: Shape | None, key: bytes) -> Tip | None:
    """Return the leaf to which the nibbles of a key lead when nothing is compared on the way."""
    path = nibbles(key)
    while isinstance(found, Fork):
        found = found.ways.get(path[found.depth]) if found.depth < len(path) else None
    return found


@twin_of("get.fits")
@given(some_pairs, st.lists(keys, max_size=9))
def test_a_key_fits_a_branch_whose_path_it_starts_with(held: Pairs, others: list[bytes]) -> None:
    arena = arena_of(held)
    forks = numbered(arena.branches, arena.entries, arena.root)
    for node, found in ((node, found) for node, found in forks if isinstance(found, Fork)):
        for key in [*held, *others, *prefixes(held)]:
            path = tuple(nibbles(key))
            if path[: found.start] == found.path[: found.start] and len(path) >= found.start:
                fits = get.fits(arena.entries, arena.branches, -node - 1, array(b"?" + key), 1, len(key))
                assert fits == (path[: found.depth] == found.path)


@twin_of("get.mark")
@given(st.lists(st.integers(1, 40) | st.integers(1, 2**41), max_size=31))
def test_marks_are_a_set(codes: list[int]) -> None:
    table, seen = numbers(*[0] * 32), set[int]()
    for code in codes:
        assert get.mark(table, code) == (code not in seen)
        seen.add(code)
    assert {*table.tolist()} - {0} == seen


@twin_of("get.collect_proofs", "get.write_nodes", "get.drop_repeated", "get._hash_word")
@given(pairs_with_questions(), st.integers(0, 1))
def test_listed_nodes_are_those_that_the_plain_engine_records(asked: Asked, version: int) -> None:
    held, questions = asked
    db, root = build_database(held, state_version=version)  # type: ignore[arg-type]
    arena = arena_of(held, external_from=33 if version else LONG)
    groups = [questions, questions[:1], []]
    wanted, ends = [key for group in groups for key in group], np.cumsum([0, *map(len, groups)])
    expected = [StorageProof.generate(db, root, group).nodes for group in groups]
    rooms, table, nodes = numbers(*[512] * 3), numbers(*[0] * 1024), numbers(*[0] * 3 * 512)
    node_ends, roots, strings = numbers(*[-9] * 4), numbers(*[arena.root] * 3), tuple(column(*wanted))
    bound = get.collect_proofs(arena.tables, roots, strings, ends, rooms, table, nodes, node_ends)
    used = int(node_ends[-1])
    written = written_nodes(arena, nodes, used, bound)
    assert [{*written[a:b]} for a, b in pairwise(node_ends)] == expected
    for node, data in zip(nodes[:used].tolist(), written, strict=True):
        words = [get._hash_word(arena.entries, arena.branches, node, word) for word in range(4)]
        assert len(data) < 32 or b"".join((word % 2**64).to_bytes(8, "big") for word in words) == blake2_256(data)
    first = [list(dict.fromkeys(written[a:b])) for a, b in pairwise(node_ends)]
    left = get.drop_repeated(arena.tables, nodes, node_ends, numbers(*[0] * (4 * used + 1)))
    kept = written_nodes(arena, nodes, left, bound)
    assert [kept[a:b] for a, b in pairwise(node_ends)] == first
    small = get.collect_proofs(arena.tables, roots, strings, ends, numbers(16, 16, 16), table, nodes, node_ends)
    assert small == (-1 if questions else 0)


def written_nodes(arena: Arena, nodes: memory.Int64s, count: int, bound: int) -> list[bytes]:
    out, offsets = np.zeros(bound + arena.longest_node, np.uint8), numbers(*[-9] * (count + 1))
    get.write_nodes(arena.tables, nodes, count, out, offsets)
    assert offsets[-1] <= bound
    return [out[a:b].tobytes() for a, b in pairwise(offsets)]


@twin_of("get.list_entries")
@given(pairs)
def test_entries_are_listed_in_the_order_of_their_keys(held: Pairs) -> None:
    arena, order = arena_of(held), slots(*[-9] * len(held))
    assert get.list_entries(arena.branches, arena.root, order, numbers(*[0] * 8_000)) == len(held)
    assert order.tolist() == [*range(len(held))]
    short = get.list_entries(arena.branches, arena.root, order, numbers(*[0] * 16))
    assert short == (-1 if len(held) > 1 else len(held))


@twin_of("get.hashes_of", "get.hashed_nodes_of", "get.copy_references")
@given(pairs, externals, st.data())
def test_what_has_a_hash_of_its_own_is_told_with_it(held: Pairs, external_from: int, data: st.DataObject) -> None:
    arena, some = arena_of(held, external_from=external_from), sorted(held)
    found = dict(numbered(arena.branches, arena.entries, arena.root))
    leaves = data.draw(st.lists(st.sampled_from(range(len(some))), max_size=9)) if some else []
    forks = (
        data.draw(st.lists(st.sampled_from([node for node in found if node < 0]), max_size=9))
        if min(found, default=0) < 0
        else []
    )
    expected = []
    for entry in leaves:
        if len(held[some[entry]]) >= external_from:
            expected.append(held[some[entry]])
        if entry + 1 in found and len(encoded(found[entry + 1], external_from)) >= 32:
            expected.append(encoded(found[entry + 1], external_from))
    nodes = [encoded(found[node], external_from) for node in forks]
    expected += [node for node in nodes if len(node) >= 32]
    entries, branches = slots(*leaves), slots(*(-node - 1 for node in forks))
    hashes = b"".join(map(blake2_256, expected))
    assert get.hashes_of(arena.tables, entries, branches).tobytes() == hashes
    told, strings, offsets = get.hashed_nodes_of(arena.tables, entries, branches, arena.longest_node)
    assert told.tobytes() == hashes
    assert [strings[a:b].tobytes() for a, b in pairwise(offsets)] == expected
    numbers_of = [node for node in found if data.draw(st.booleans())]
    out = array(bytes(33 * len(numbers_of) + 33))
    get.copy_references(arena.tables, numbers(*numbers_of, 0), out)
    slices = [out[33 * i : 33 * i + 33].tobytes() for i in range(len(numbers_of) + 1)]
    references = [encode_bytes(reference(found[node], external_from)) for node in numbers_of] + [encode_bytes(b"\x00")]
    assert all(part.startswith(one) for part, one in zip(slices, references, strict=True))


@twin_of("update.slots_below")
@given(pairs, st.data())
def test_slots_below_some_nodes_are_those_of_all_nodes_there(held: Pairs, data: st.DataObject) -> None:
    arena = arena_of(held)
    found = dict(numbered(arena.branches, arena.entries, arena.root))
    roots = data.draw(st.lists(st.sampled_from(sorted(found)), max_size=4)) if found else [0]
    below = {node for root in roots for node, _ in numbered(arena.branches, arena.entries, root)}
    entries, branches = update.slots_below(arena.tables, numbers(*roots), len(held), len(arena.branches.row))
    values = {int(row[tables.VALUED]) - 1 for row in (arena.branches.row[-it - 1] for it in below if it < 0)} - {-1}
    assert sorted(entries) == sorted({node - 1 for node in below if node > 0} | values)
    assert sorted(branches) == sorted(-node - 1 for node in below if node < 0)


@twin_of("update.take_retired")
@given(st.integers(0, 12), st.integers(0, 12))
def test_slots_are_retired_as_lists_say(some: int, count: int) -> None:
    free = range(some)
    entries, branches = [*range(20, 29)], [*range(40, 49)]
    counters = numbers(*range(13))
    counters[[RETIRED_ENTRIES, RETIRED_BRANCHES]] = len(free) % 9, count % 9
    taken = update.take_retired(counters, slots(*entries), slots(*branches))
    assert [it.tolist() for it in taken] == [entries[: len(free) % 9], branches[: count % 9]]
    expected = [0 if i in (RETIRED_ENTRIES, RETIRED_BRANCHES) else i for i in range(13)]
    assert counters.tolist() == expected


@twin_of("memory.prefetch", "encode.ask_for_children", "get._ask_for_hash", "settle._ask_ahead")
@pytest.mark.parametrize("width", [0, 5, 40])
def test_asking_the_memory_ahead_of_time_changes_nothing(width: int) -> None:
    arena = arena_of({bytes([i, j]): bytes(width) for i in range(9) for j in range(9)})
    arena._hand_over(room_for=1_024)
    parts = tables.Parts(arena.entries, arena.branches, arena.slots, arena.work)
    found = [node for node, _ in numbered(arena.branches, arena.entries, arena.root)]
    arena.work.queue[:] = np.arange(1_024) % len(found)
    arena.work.stale[: len(found)] = found
    before = [np.copy(it) for it in things_in(parts)]
    memory.prefetch(arena.entries.key.data, 10**9)
    for node in found:
        get._ask_for_hash(arena.entries, arena.branches, node)
        settle._ask_ahead(arena.entries, arena.branches, arena.work, 0, len(found))
        if node < 0:
            encode.ask_for_children(arena.entries, arena.branches, -node - 1)
    assert all(map(np.array_equal, before, things_in(parts)))
