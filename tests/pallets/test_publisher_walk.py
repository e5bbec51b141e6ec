"""The walk over two tries side by side: what changed for the wanted keys, told from the tries' contents."""

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pallets.block_vectors import key, keys, path_key, staircase
from pallets.subscriber_invariants import hashed_path
from pallets.test_node_cache import built
from relaycast_pallets import SubscribedKey, TrieDepthExceeded
from relaycast_pallets.subscriber.node_cache import marked_placements
from relaycast_pallets.subscriber.subscription import SubscribedPaths
from relaycast_pallets.subscriber.walk import End, PublisherWalk
from relaycast_trie import MemoryDB, StateVersion, TrieDBMut, blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import HashedValue, Node, Value
from relaycast_trie.node_codec import decode_node

STOCK = [
    *(path_key(first + second) for first in ("00", "01", "0f", "10", "f") for second in ("0", "1", "00000001")),
    *(SubscribedKey(bytes(31) + bytes([last])) for last in (0x01, 0x10, 0x11)),
    *keys(6),
]
STOCK = sorted(set(STOCK))
contents = st.dictionaries(
    st.sampled_from(STOCK), st.sampled_from([b"", b"a", bytes(20), bytes(32), bytes(33), b"\x01" * 33]), min_size=1
)
"""What a child trie holds; an empty one does not exist."""

some_keys = st.sets(st.sampled_from(STOCK), min_size=1).map(sorted)


class Source:
    """The nodes of both tries; of the old one only those that are ``known``."""

    def __init__(self, new: Mapping[bytes, bytes], old: Mapping[bytes, bytes]) -> None:
        self.new = new
        self.old = old
        self.new_reads: list[bytes] = []
        self.old_reads: list[bytes] = []

    def new_node(self, node_hash: bytes) -> Node:
        self.new_reads.append(node_hash)
        return decode_node(self.new[node_hash])

    def changed_entry(self, _key: SubscribedKey, value: Value) -> bytes:
        if not isinstance(value, HashedValue):
            return value
        self.new_reads.append(value.hash)
        return self.new[value.hash]

    def absent(self, low: int, high: int) -> None:
        """Report nothing."""

    def old_node(self, node_hash: bytes) -> Node | None:
        self.old_reads.append(node_hash)
        found = self.old.get(node_hash)
        return None if found is None else decode_node(found)


def walked(
    new: dict[SubscribedKey, bytes],
    old: dict[SubscribedKey, bytes] | None,
    wanted: list[SubscribedKey],
    *,
    max_depth: int = 64,
) -> tuple[PublisherWalk, Source]:
    new_nodes, new_root = built(new)
    old_nodes, old_root = ({}, None) if old is None else built(old)
    source = Source(new_nodes, old_nodes)
    walk = PublisherWalk(SubscribedPaths.of(wanted), max_depth=max_depth)
    walk.walk(source, 0, len(wanted), new_root=new_root, old_root=old_root)
    assert walk.at == len(wanted)
    return walk, source


UNDER = [path_key(digits) for digits in ("00a1", "00a2", "00b")]
"""Keys below branches with partial keys: there are fewer nodes above them than nibbles."""


@given(contents, contents, some_keys)
@example(new=dict.fromkeys(UNDER, b"new"), old=dict.fromkeys(UNDER, b"old"), wanted=UNDER)
@example(new={path_key("1"): b"a"}, old={path_key("2"): b"a"}, wanted=[path_key("1")])
def test_exactly_the_wanted_entries_that_differ_are_found(
    new: dict[SubscribedKey, bytes], old: dict[SubscribedKey, bytes], wanted: list[SubscribedKey]
) -> None:
    walk, _ = walked(new, old, wanted)
    assert walk.changed == [(k, new[k]) for k in wanted if k in new and new[k] != old.get(k)]


@given(contents, contents, some_keys)
def test_what_comes_and_goes_is_the_difference_of_the_marks(
    new: dict[SubscribedKey, bytes], old: dict[SubscribedKey, bytes], wanted: list[SubscribedKey]
) -> None:
    walk, _ = walked(new, old, wanted)
    paths = SubscribedPaths.of(wanted)
    before, after = (marked_placements(paths, root, nodes) for nodes, root in (built(old), built(new)))
    assert walk.placements.gained - walk.placements.lost == after - before
    assert walk.placements.lost - walk.placements.gained == before - after
    assert not walk.unseen


@given(contents, some_keys)
def test_against_nothing_every_entry_is_new(new: dict[SubscribedKey, bytes], wanted: list[SubscribedKey]) -> None:
    walk, source = walked(new, None, wanted)
    assert walk.changed == [(k, new[k]) for k in wanted if k in new]
    assert source.old_reads == []


@given(contents, some_keys)
def test_equal_tries_are_not_read(same: dict[SubscribedKey, bytes], wanted: list[SubscribedKey]) -> None:
    walk, source = walked(same, same, wanted)
    assert (walk.changed, source.new_reads, source.old_reads) == ([], [], [])


def stacked(held: dict[SubscribedKey, bytes], wanted: list[SubscribedKey]) -> dict[tuple[bytes, bytes], int]:
    """Return each node with a hash on the wanted paths, by its place, with the number of such nodes above it."""
    nodes, root = built(held)
    paths = (hashed_path(nodes, root, to_nibbles(key)) for key in wanted)
    return {placement: above for path in paths for above, placement in enumerate(path)}


@given(contents, contents, some_keys)
def test_only_nodes_that_stand_elsewhere_or_deeper_than_before_are_read(
    new: dict[SubscribedKey, bytes], old: dict[SubscribedKey, bytes], wanted: list[SubscribedKey]
) -> None:
    walk, source = walked(new, old, wanted)
    before, after = stacked(old, wanted), stacked(new, wanted)
    values = {blake2_256(entry) for _, entry in walk.changed if len(entry) > 32}
    new_nodes = {it[1] for it, above in after.items() if it not in before or above > before[it]}
    old_nodes = {it[1] for it, above in before.items() if it not in after or above < after[it]}
    assert (set(source.new_reads), set(source.old_reads)) == (new_nodes | values, old_nodes)


@given(contents, contents, some_keys, st.data())
def test_ranges_walked_one_by_one_find_what_one_walk_finds(
    new: dict[SubscribedKey, bytes], old: dict[SubscribedKey, bytes], wanted: list[SubscribedKey], data: st.DataObject
) -> None:
    whole, _ = walked(new, old, wanted)
    middle = data.draw(st.integers(0, len(wanted)))
    (new_nodes, new_root), (old_nodes, old_root) = built(new), built(old)
    source = Source(new_nodes, old_nodes)
    parts = PublisherWalk(SubscribedPaths.of(wanted), max_depth=64)
    for low, high in ((middle, len(wanted)), (0, middle)):
        if low < high:
            parts.walk(source, low, high, new_root=new_root, old_root=old_root)
    assert sorted(parts.changed) == sorted(whole.changed)
    assert (parts.placements.gained, parts.placements.lost) == (whole.placements.gained, whole.placements.lost)


@given(contents, contents, some_keys, st.sets(st.integers(0, 30)))
def test_an_old_trie_seen_in_part_hides_no_change(
    new: dict[SubscribedKey, bytes], old: dict[SubscribedKey, bytes], wanted: list[SubscribedKey], gone: set[int]
) -> None:
    (new_nodes, new_root), (old_nodes, old_root) = built(new), built(old)
    seen = {node_hash: node for at, (node_hash, node) in enumerate(sorted(old_nodes.items())) if at not in gone}
    source = Source(new_nodes, seen)
    walk = PublisherWalk(SubscribedPaths.of(wanted), max_depth=64)
    walk.walk(source, 0, len(wanted), new_root=new_root, old_root=old_root)
    found = dict(walk.changed)
    assert all(found[k] == new[k] for k in wanted if k in new and new[k] != old.get(k))
    assert walk.unseen or found.keys() == {k for k in wanted if k in new and new[k] != old.get(k)}


def test_a_node_is_read_once_however_many_keys_lead_through_it() -> None:
    every = dict.fromkeys(keys(200), bytes(40))
    walk, source = walked(every, None, sorted(every)[:50])
    placed = [node_hash for node_hash in source.new_reads if node_hash in {h for _, h in walk.placements.gained}]
    assert len(placed) == len(walk.placements.gained)


def test_below_an_unchanged_node_nothing_is_read() -> None:
    every = dict.fromkeys(keys(300), bytes(40))
    changed = sorted(every)[17]
    _, source = walked(every | {changed: b"new"}, every, sorted(every))
    assert len(source.new_reads) <= 5
    assert len(source.old_reads) <= 5


@pytest.mark.parametrize(("depth", "limit", "fits"), [(8, 8, True), (9, 8, False), (1, 1, True), (2, 1, False)])
def test_the_depth_limit_counts_nodes_with_a_hash(depth: int, limit: int, fits: bool) -> None:
    steps = staircase(depth)
    held = dict.fromkeys(steps, bytes(40))
    if fits:
        assert walked(held, None, steps[:1], max_depth=limit)[0].changed == [(steps[0], bytes(40))]
        return
    with pytest.raises(TrieDepthExceeded) as error:
        walked(held, None, steps[:1], max_depth=limit)
    assert (error.value.key, error.value.limit) == (steps[0], limit)
    assert str(error.value) == f"the path of key 0x{steps[0].hex()} has more than {limit} nodes"


def test_nodes_inside_their_parents_do_not_count() -> None:
    """Two short leaves at the end of a path stand in their branch."""
    first, second = SubscribedKey(bytes(32)), SubscribedKey(bytes(31) + b"\x01")
    walk, source = walked({first: b"a", second: b"b"}, None, [first, second], max_depth=1)
    assert len(source.new_reads) == 1
    assert walk.changed == [(first, b"a"), (second, b"b")]


@given(st.integers(1, 30), st.integers(1, 30), st.booleans())
@example(before=12, after=13, from_below=False)  # one node more than the limit, and than before
def test_a_path_that_deepens_is_measured_wherever_it_deepens(before: int, after: int, from_below: bool) -> None:
    """Steps are added above what is unchanged, or below it: the limit holds as if the trie were new."""
    steps = staircase(31)
    order = [steps[0], *(reversed(steps[1:]) if from_below else steps[1:])]
    old, new = (dict.fromkeys(order[:count], bytes(40)) for count in (before, after))
    limit = 12
    if before > limit:
        return
    if after > limit:
        with pytest.raises(TrieDepthExceeded):
            walked(new, old, steps[:1], max_depth=limit)
    else:
        assert walked(new, old, steps[:1], max_depth=limit)[0].changed == []


def test_a_key_that_comes_moves_others_and_changes_none() -> None:
    """A branch above: the paths below stand at other depths, and hold what they held."""
    low, high = path_key("00a"), path_key("00b")
    held = {low: bytes(40), high: bytes(40)}
    walk, _ = walked(held | {path_key("01"): b"x", key("far"): b"y"}, held, [low, high])
    assert walk.changed == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("01", ""),  # a branch goes: fewer nodes are above the leaves
        ("01", "0001"),  # a branch goes and another comes: as many as before
    ],
)
def test_what_stays_in_its_place_is_not_read_where_as_many_nodes_or_fewer_are_above_it(old: str, new: str) -> None:
    wanted = [path_key("00001"), path_key("00002")]
    held = dict.fromkeys([*wanted, path_key("1")], bytes(40))
    before, after = (held | ({path_key(more): bytes(40)} if more else {}) for more in (old, new))
    walk, source = walked(after, before, wanted)
    old_nodes, new_nodes = built(before)[0], built(after)[0]
    assert walk.changed == []
    assert not set(source.new_reads) & old_nodes.keys()
    assert not set(source.old_reads) & new_nodes.keys()


@pytest.mark.parametrize("beside", [[], UNDER[2:]], ids=["at the root", "below a branch"])
def test_two_nodes_at_one_place_are_read_once_each(beside: list[SubscribedKey]) -> None:
    before, after = ({UNDER[0]: value} | dict.fromkeys(beside, bytes(40)) for value in (b"old", b"new"))
    _, source = walked(after, before, UNDER[:1])
    assert [len(reads) for reads in (source.new_reads, source.old_reads)] == [1 + len(beside)] * 2


def test_a_leaf_that_ends_before_a_key_is_not_its_entry() -> None:
    """A key of 31 bytes: no broadcaster writes one."""
    wanted, db = path_key("1"), MemoryDB()
    roots = []
    for value in (b"old", b"new"):
        trie = TrieDBMut(db)
        trie[wanted[:31]] = value
        roots.append(trie.commit())
    nodes = {node_hash: node for node_hash in db if (node := db.get(node_hash)) is not None}
    source = Source(nodes, nodes)
    walk = PublisherWalk(SubscribedPaths.of([wanted]), max_depth=64)
    walk.walk(source, 0, 1, new_root=roots[1], old_root=roots[0])
    assert walk.changed == []


@pytest.mark.parametrize("moves_out", [True, False])
@pytest.mark.parametrize(("old", "new"), [(bytes(40), bytes(40)), (bytes(40), b"\1" * 40), (b"\1" * 40, bytes(40))])
def test_an_entry_that_moves_out_of_its_node_or_into_it_has_not_changed(
    moves_out: bool, old: bytes, new: bytes
) -> None:
    """The state version of the key changes, and its value or not."""
    wanted, roots, nodes = path_key("1"), [], MemoryDB()
    versions = (StateVersion.V0, StateVersion.V1)
    for value, version in zip((old, new), versions if moves_out else versions[::-1], strict=True):
        trie = TrieDBMut(nodes, state_version=version)
        trie[wanted] = value
        roots.append(trie.commit())
    found = {node_hash: node for node_hash in nodes if (node := nodes.get(node_hash)) is not None}
    source = Source(found, found)
    walk = PublisherWalk(SubscribedPaths.of([wanted]), max_depth=64)
    walk.walk(source, 0, 1, new_root=roots[1], old_root=roots[0])
    assert walk.changed == ([] if old == new else [(wanted, new)])


def test_hundreds_of_keys_are_walked_like_a_few() -> None:
    """Some change, come or go, others are nowhere; each place that comes or goes is noted, and no other."""
    every = keys(800)
    wanted = sorted([*every[::2], *keys(100, prefix="absent")])
    before = dict.fromkeys(every[:-40], bytes(40))
    after = {each: bytes(40) for each in every if each not in every[100:200]} | dict.fromkeys(every[300::7], b"new")
    walk, _ = walked(after, before, wanted)
    marks = [
        marked_placements(SubscribedPaths.of(wanted), root, nodes) for nodes, root in (built(before), built(after))
    ]
    assert walk.changed == [(k, after[k]) for k in wanted if k in after and after[k] != before.get(k)]
    gained, lost = walk.placements.gained, walk.placements.lost
    assert (gained - lost, lost - gained) == (marks[1] - marks[0], marks[0] - marks[1])


@pytest.mark.parametrize(
    ("new", "old", "wanted"),
    [
        (["f2"], [], ["f1", "f3"]),  # a leaf between the keys that lead to it
        (["f3"], ["f3"], ["f1", "f2"]),  # two leaves behind them
        (["f2"], ["f2", "f3"], ["f1", "f2"]),  # a leaf at the last of them
        (["f1"], ["f1", "f3"], ["f1", "f2"]),  # and at the first of them
    ],
)
def test_the_last_of_hundreds_of_keys_are_told_apart(new: list[str], old: list[str], wanted: list[str]) -> None:
    others = [each for each in keys(330) if each[0] < 0xF0]
    assert len(others) > 256
    before, after = (
        dict.fromkeys(others, bytes(40)) | {path_key(digits): value for digits in there}
        for there, value in ((old, b"old"), (new, b"new"))
    )
    walk, _ = walked(after, before, [*others, *map(path_key, wanted)])
    assert walk.changed == [(path_key(digits), b"new") for digits in wanted if digits in new]


@pytest.mark.parametrize("stopped", [0, 1, 17, 39])
def test_a_walk_that_a_read_stops_stands_at_the_key_under_work(stopped: int) -> None:
    every = keys(40)
    nodes, root = built({each: each + bytes(8) for each in every})
    del nodes[blake2_256(every[stopped] + bytes(8))]
    source = Source(nodes, {})
    walk = PublisherWalk(SubscribedPaths.of(every), max_depth=64)
    assert walk.at == 0
    with pytest.raises(KeyError):
        walk.walk(source, 0, len(every), new_root=root, old_root=None)
    assert walk.at == stopped


@pytest.mark.parametrize("value", [End(b"entry"), SubscribedPaths.of(keys(2))], ids=lambda value: type(value).__name__)
def test_what_a_walk_is_given_and_comes_to_cannot_be_changed_in_place(value: End | SubscribedPaths) -> None:
    for name in value.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, name, None)
