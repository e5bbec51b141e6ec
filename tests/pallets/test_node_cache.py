"""The cache of a publisher: which nodes stay, and how often each stands on the subscribed paths."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pallets.block_vectors import key, keys, path_key
from relaycast_pallets import SubscribedKey
from relaycast_pallets.subscriber.node_cache import PublisherCache, marked_placements
from relaycast_pallets.subscriber.subscription import SubscribedPaths
from relaycast_pallets.subscriber.walk import Placements
from relaycast_trie import MemoryDB, TrieDBMut
from relaycast_trie.nibbles import to_nibbles

X, Y, Z = (bytes([letter]) * 32 for letter in b"xyz")
hashes = st.sampled_from([X, Y, Z])
placements = st.frozensets(st.tuples(st.sampled_from([b"", b"\x01", b"\x02", b"\x03"]), hashes))


def built(held: dict[SubscribedKey, bytes]) -> tuple[dict[bytes, bytes], bytes]:
    """Return the nodes of a trie by their hash, and its root."""
    db = MemoryDB()
    trie = TrieDBMut(db)
    for written, value in held.items():
        trie[written] = value
    root = trie.commit()
    return {node_hash: node for node_hash in db if (node := db.get(node_hash)) is not None}, root


def shared_of(places: frozenset[tuple[bytes, bytes]]) -> dict[bytes, int]:
    counts = Counter(node_hash for _, node_hash in places)
    return {node_hash: count for node_hash, count in counts.items() if count > 1}


@given(placements, placements)
def test_moving_places_and_marking_anew_come_to_the_same(
    before: frozenset[tuple[bytes, bytes]], after: frozenset[tuple[bytes, bytes]]
) -> None:
    stored = {node_hash for _, node_hash in before}
    wanted = {node_hash for _, node_hash in after}
    new = {node_hash: node_hash[:1] for node_hash in wanted - stored}
    moved = Counter(node_hash for _, node_hash in after - before)
    moved.subtract(node_hash for _, node_hash in before - after)
    cache = PublisherCache.moved(moved, shared_of(before), new)
    assert (stored - cache.remove) | cache.insert.keys() == wanted
    assert not cache.remove & cache.insert.keys()
    assert (shared_of(before) if cache.shared is None else cache.shared) == shared_of(after)
    anew = PublisherCache.exactly(after, dict.fromkeys(stored | wanted, b""), stored)
    assert (anew.insert.keys(), anew.remove, anew.shared) == (cache.insert.keys(), cache.remove, shared_of(after))


def test_a_node_at_two_places_goes_with_the_last() -> None:
    assert PublisherCache.moved({X: -1}, {X: 2}, {}) == PublisherCache(shared={})
    assert PublisherCache.moved({X: -1}, {}, {}) == PublisherCache(remove={X})
    assert PublisherCache.moved({X: -2}, {X: 2}, {}) == PublisherCache(remove={X}, shared={})


def test_a_node_that_comes_and_goes_in_one_pass_is_not_stored() -> None:
    assert PublisherCache.moved({X: 0}, {}, {X: b"node"}) == PublisherCache()


def test_places_that_came_and_went_are_counted_against_each_other() -> None:
    placements = Placements()
    placements.gained = {(b"", X), (b"\x01", X), (b"", Y)}
    placements.lost = {(b"\x02", X), (b"\x02", Z), (b"\x03", Z)}
    assert placements.moved() == {X: 1, Y: 1, Z: -2}


def test_nodes_that_are_not_at_hand_are_left_out() -> None:
    cache = PublisherCache.exactly({(b"", X), (b"\x01", Y)}, {X: b"node"}, [Z])
    assert cache == PublisherCache(insert={X: b"node"}, remove={Z}, shared={})


def test_marks_follow_the_subscribed_paths_alone() -> None:
    every = keys(40)
    nodes, root = built(dict.fromkeys(every, bytes(40)))
    marked = marked_placements(SubscribedPaths.of(every[:3]), root, nodes)
    assert (b"", root) in marked
    for prefix, node_hash in marked:
        assert any(to_nibbles(wanted)[: len(prefix)] == prefix for wanted in every[:3])
        assert node_hash in nodes
    assert len(marked_placements(SubscribedPaths.of(every), root, nodes)) > len(marked)


def test_marks_end_where_a_path_ends_or_leads_away() -> None:
    here, absent = path_key("1"), path_key("2")
    nodes, root = built({here: bytes(40)})
    assert marked_placements(SubscribedPaths.of([absent]), root, nodes) == {(b"", root)}
    assert marked_placements(SubscribedPaths.of([here]), root, {}) == set()
    assert marked_placements(SubscribedPaths.of([]), root, nodes) == set()


def test_a_node_inside_its_parent_has_no_place() -> None:
    held = {SubscribedKey(bytes(32)): b"a", SubscribedKey(bytes(31) + b"\x01"): b"b"}
    nodes, root = built(held)
    assert marked_placements(SubscribedPaths.of(sorted(held)), root, nodes) == {(b"", root)}


def test_equal_leaves_are_two_places_of_one_node() -> None:
    first, second = path_key("1"), path_key("2")
    nodes, root = built({first: bytes(40), second: bytes(40), key("other"): b"v"})
    marked = marked_placements(SubscribedPaths.of([first, second]), root, nodes)
    counts = Counter(node_hash for _, node_hash in marked)
    assert sorted(counts.values()) == [1, 2]
    assert {prefix for prefix, node_hash in marked if counts[node_hash] == 2} == {b"\x01", b"\x02"}
