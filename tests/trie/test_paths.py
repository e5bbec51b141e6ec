"""A descent along sorted paths meets each node that a walk along one of them meets: once, in the order of the paths."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import InvalidNode, StateVersion, blake2_256, build_database
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, Empty, Value
from relaycast_trie.node_codec import decode_node
from relaycast_trie.paths import descend, under, ways
from strategies import keys

some_paths = st.sets(st.binary(max_size=5).map(lambda path: bytes(nibble % 3 for nibble in path)), max_size=20).map(
    sorted
)
pairs = st.dictionaries(keys, st.sampled_from([b"", b"short", b"long" * 9]), max_size=20)


@given(some_paths, st.data())
def test_a_range_under_a_prefix_holds_the_paths_that_start_with_it(paths: list[bytes], data: st.DataObject) -> None:
    if not paths:
        return
    low = data.draw(st.integers(0, len(paths) - 1))
    high = data.draw(st.integers(low + 1, len(paths)))
    prefix = data.draw(st.sampled_from(paths)) + data.draw(st.sampled_from([b"", b"\x01", b"\x0f"]))
    first, last = under(paths, prefix, low, high)
    assert low <= first <= last <= high
    assert paths[first:last] == [path for path in paths[low:high] if path.startswith(prefix)]
    assert all(path < prefix for path in paths[low:first])
    assert all(path > prefix for path in paths[last:high])


@given(some_paths, st.data())
def test_ways_group_paths_by_their_next_nibble(paths: list[bytes], data: st.DataObject) -> None:
    shared = data.draw(st.sampled_from([b"", *paths]))
    first = sum(path <= shared for path in paths) if shared else sum(path == b"" for path in paths)
    last = first + sum(path.startswith(shared) for path in paths[first:])
    found = ways(paths, len(shared), first, last)
    groups = groupby(paths[first:last], key=lambda path: path[len(shared)])
    assert [(nibble, paths[start:stop]) for nibble, start, stop in found] == [(way, list(some)) for way, some in groups]


def walked(nodes: dict[bytes, bytes], root: bytes, path: bytes) -> tuple[list[tuple[bytes, bytes]], Value | None]:
    """Follow one path alone: the prefix and the reference of each node that is there, and the value at the end."""
    met: list[tuple[bytes, bytes]] = []
    depth, reference = 0, root
    while True:
        data = nodes.get(reference) if len(reference) == 32 else reference
        if data is None:
            return met, None
        met.append((path[:depth], reference))
        node = decode_node(data)
        if isinstance(node, Empty) or not path.startswith(node.partial, depth):
            return met, None
        depth += len(node.partial)
        if depth == len(path):
            return met, node.value
        child = node.children[path[depth]] if isinstance(node, Branch) else None
        if child is None:
            return met, None
        depth, reference = depth + 1, child


@given(pairs, st.lists(keys, max_size=8), st.sampled_from(list(StateVersion)), st.data())
def test_a_descent_meets_what_a_walk_for_each_path_meets(
    held: dict[bytes, bytes], absent: list[bytes], version: StateVersion, data: st.DataObject
) -> None:
    db, root = build_database(held, state_version=version)
    nodes = {node_hash: db.get(node_hash) or b"" for node_hash in [*db, root]}
    for node_hash in data.draw(st.sets(st.sampled_from(sorted(nodes)), max_size=2)):
        del nodes[node_hash]
    paths = sorted({to_nibbles(key) for key in [*held, *absent]})
    alone = {path: walked(nodes, root, path) for path in paths}
    values: dict[bytes, Value | None] = dict.fromkeys(paths)
    met: list[tuple[bytes, bytes]] = []
    for reference, carrier, found, depth, low, high, first, value in descend(paths, root, nodes):
        assert decode_node(nodes[reference] if len(reference) == 32 else reference) == found
        assert carrier == reference if len(reference) == 32 else reference in nodes[carrier]
        place = (paths[low][:depth], reference)
        assert [path for path in paths if place in alone[path][0]] == paths[low:high]
        assert low <= first <= high
        met.append(place)
        if value is not None:
            values[paths[first]] = value
    assert met == sorted(set(met))
    assert set(met) == {place for places, _ in alone.values() for place in places}
    assert values == {path: value for path, (_, value) in alone.items()}


def test_no_paths_meet_no_node() -> None:
    assert not list(descend([], blake2_256(b"\x00"), {blake2_256(b"\x00"): b"\x00"}))


def test_a_node_that_does_not_decode_is_named() -> None:
    broken = b"\x01\x02"
    with pytest.raises(InvalidNode) as raised:
        list(descend([b"\x01"], blake2_256(broken), {blake2_256(broken): broken}))
    assert raised.value.node_hash == blake2_256(broken)
