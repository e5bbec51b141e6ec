"""The walk over two tries side by side: what changed for the wanted keys, told from the tries' contents."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.subscriber_world import key, keys, path_key, staircase
from pallets.test_node_cache import built
from relaycast_pallets import SubscribedKey, TrieDepthExceeded
from relaycast_pallets.subscriber.node_cache import marked_placements
from relaycast_pallets.subscriber.publisher_walk import PublisherWalk, SubscribedPaths
from relaycast_trie.node import Node
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

    def new_value(self, value_hash: bytes) -> bytes:
        self.new_reads.append(value_hash)
        return self.new[value_hash]

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
    walk = PublisherWalk(SubscribedPaths.of(wanted), source, max_depth=max_depth)
    walk.walk(0, len(wanted), new_root=new_root, old_root=old_root)
    assert walk.at == len(wanted)
    return walk, source


@given(contents, contents, some_keys)
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
    assert walk.gained - walk.lost == after - before
    assert walk.lost - walk.gained == before - after
    assert not walk.old_unknown


@given(contents, some_keys)
def test_against_nothing_every_entry_is_new(new: dict[SubscribedKey, bytes], wanted: list[SubscribedKey]) -> None:
    walk, source = walked(new, None, wanted)
    assert walk.changed == [(k, new[k]) for k in wanted if k in new]
    assert source.old_reads == []


@given(contents, some_keys)
def test_equal_tries_are_not_read(same: dict[SubscribedKey, bytes], wanted: list[SubscribedKey]) -> None:
    walk, source = walked(same, same, wanted)
    assert (walk.changed, source.new_reads, source.old_reads) == ([], [], [])


@given(contents, contents, some_keys, st.data())
def test_ranges_walked_one_by_one_find_what_one_walk_finds(
    new: dict[SubscribedKey, bytes], old: dict[SubscribedKey, bytes], wanted: list[SubscribedKey], data: st.DataObject
) -> None:
    whole, _ = walked(new, old, wanted)
    middle = data.draw(st.integers(0, len(wanted)))
    (new_nodes, new_root), (old_nodes, old_root) = built(new), built(old)
    parts = PublisherWalk(SubscribedPaths.of(wanted), Source(new_nodes, old_nodes), max_depth=64)
    for low, high in ((middle, len(wanted)), (0, middle)):
        if low < high:
            parts.walk(low, high, new_root=new_root, old_root=old_root)
    assert sorted(parts.changed) == sorted(whole.changed)
    assert (parts.gained, parts.lost) == (whole.gained, whole.lost)


@given(contents, contents, some_keys, st.sets(st.integers(0, 30)))
def test_an_old_trie_seen_in_part_hides_no_change(
    new: dict[SubscribedKey, bytes], old: dict[SubscribedKey, bytes], wanted: list[SubscribedKey], gone: set[int]
) -> None:
    (new_nodes, new_root), (old_nodes, old_root) = built(new), built(old)
    seen = {node_hash: node for at, (node_hash, node) in enumerate(sorted(old_nodes.items())) if at not in gone}
    walk = PublisherWalk(SubscribedPaths.of(wanted), Source(new_nodes, seen), max_depth=64)
    walk.walk(0, len(wanted), new_root=new_root, old_root=old_root)
    found = dict(walk.changed)
    assert all(found[k] == new[k] for k in wanted if k in new and new[k] != old.get(k))
    assert walk.old_unknown or found.keys() == {k for k in wanted if k in new and new[k] != old.get(k)}


def test_a_node_is_read_once_however_many_keys_lead_through_it() -> None:
    every = dict.fromkeys(keys(200), bytes(40))
    walk, source = walked(every, None, sorted(every)[:50])
    placed = [node_hash for node_hash in source.new_reads if node_hash in {h for _, h in walk.gained}]
    assert len(placed) == len(walk.gained)


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


def test_nodes_inside_their_parents_do_not_count() -> None:
    """Two short leaves at the end of a path stand in their branch."""
    first, second = SubscribedKey(bytes(32)), SubscribedKey(bytes(31) + b"\x01")
    walk, source = walked({first: b"a", second: b"b"}, None, [first, second], max_depth=1)
    assert len(source.new_reads) == 1
    assert walk.changed == [(first, b"a"), (second, b"b")]


@given(st.integers(1, 30), st.integers(1, 30), st.booleans())
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
