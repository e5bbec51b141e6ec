"""One walk for all changes does what writing them one after another does, and reads what that reads."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relaycast_trie import (
    Branch,
    InvalidNode,
    Leaf,
    MemoryDB,
    MissingNode,
    Recorder,
    RootMismatch,
    StateVersion,
    StorageProof,
    TrieDB,
    TrieDBMut,
    decode_node,
    encode_node,
    witness,
)
from relaycast_trie.node import NO_CHILDREN
from relaycast_trie.plain.trie_update import LONGEST_KEY, update_trie
from strategies import STOCK, Changes, Pairs, changes, keys, pairs, state_versions, values

V1 = StateVersion.V1

reads = st.lists(keys, max_size=6)

crowds = st.dictionaries(st.sampled_from(STOCK), values, min_size=20, max_size=60)
"""Tries in which most branches stand below other branches."""

upheavals = st.dictionaries(st.sampled_from(STOCK), st.none() | st.none() | values, min_size=10, max_size=60)
"""More removals than anything else, in all parts of such a trie."""


def trie_of(held: Pairs, version: StateVersion) -> TrieDBMut:
    trie = TrieDBMut(MemoryDB(), state_version=version)
    for key, value in held.items():
        trie.insert(key, value)
    trie.commit()
    return trie


def agrees_with_one_by_one(
    held: Pairs, drawn: dict[bytes, bytes | None], asked: list[bytes], before: StateVersion, version: StateVersion
) -> None:
    trie, changed = trie_of(held, before), dict(sorted(drawn.items()))
    root, references = trie.root, trie.db.references()
    carried, recorder = witness(trie.db, root, asked, changed, state_version=version), Recorder()
    update = update_trie(trie.db, root, changed, reads=asked, state_version=version, recorder=recorder)
    assert trie.db.references() == references
    assert StorageProof(recorder.nodes.values()) == carried
    assert update == update_trie(trie.db, root, changed, state_version=version)
    trie.state_version = version
    for key, value in changed.items():
        if value is None:
            trie.remove(key)
        else:
            trie.insert(key, value)
    assert update.root == trie.commit(prune=False)
    came, went = trie.journal.inserted, trie.journal.removed
    assert Counter(zip(update.hashes, update.nodes, strict=True)) == Counter((it, data) for _, it, data in came)
    assert Counter(update.dropped) == Counter(it for _, it in went)
    for _, reference, node in TrieDB(trie.db, trie.root).nodes():
        assert node == decode_node(trie.db.get(reference) or reference), "remembered as it decodes"


@given(pairs, changes, reads, state_versions, state_versions)
@example({b"\x21": b"", b"\x22": b""}, [(b"\x10", b"")], [], V1, V1)  # one key, before the node that it parts from
def test_any_changes(held: Pairs, drawn: Changes, asked: list[bytes], before: StateVersion, now: StateVersion) -> None:
    agrees_with_one_by_one(held, dict(drawn), asked, before, now)


@given(crowds, upheavals)
def test_changes_that_turn_a_trie_over(held: Pairs, drawn: dict[bytes, bytes | None]) -> None:
    agrees_with_one_by_one(held, drawn, [], V1, V1)


BIG, OTHER = b"\x01" * 40, b"\x02" * 40


def value_of(key: bytes) -> bytes:
    """Return a value that makes a node of its own."""
    return key.ljust(40)


@pytest.mark.parametrize(
    ("held", "changed", "carried"),
    [
        ([b"\x10", b"\x20"], {b"\x10": None}, 3),  # what is left takes the place of the root
        ([b"\x10", b"\x20"], {b"\x10": None, b"\x30": BIG}, 3),  # it did so for a while: a branch is back with 30
        ([b"\x10", b"\x20"], {b"\x10": None, b"\x11": BIG}, 3),  # the same with a key in the place of the one that went
        ([b"\x11", b"\x20"], {b"\x10": BIG, b"\x11": None}, 2),  # a key before it kept its place
        ([b"\x10", b"\x20"], {b"\x11": BIG, b"\x20": None}, 3),  # what is left was read before, and changed
        ([b"\x10", b"\x20", b"\x30"], {b"\x10": None, b"\x20": None}, 4),
        ([b"\x10", b"\x11", b"\x20"], {b"\x10": None, b"\x11": None, b"\x12": BIG}, 5),  # 20, for a while
        ([b"\x10", b"\x11", b"\x20"], {b"\x0f": BIG, b"\x10": None, b"\x11": None}, 4),  # not 20: 0f is there
        ([b"", b"\x10", b"\x20"], {b"\x10": None}, 2),  # the root has a value, and stays a branch
        ([b"", b"\x10"], {b"\x10": None}, 2),  # the root becomes a leaf
        ([b"", b"\x10"], {b"": None}, 2),  # its only child takes its place
        ([b"", b"\x10"], {b"": None, b"\x20": BIG}, 2),  # it did so for a while
        ([b"\x10"], {b"\x10": None}, 1),
        ([b"\x10"], {b"\x10": b"\x10".ljust(40)}, 1),  # the same value: nothing is written
        ([b"\x10"], {b"\x20": None}, 1),
        ([], {b"\x10": BIG}, 1),
    ],
)
def test_what_a_block_carries(held: list[bytes], changed: dict[bytes, bytes | None], carried: int) -> None:
    pairs_held = {key: value_of(key) for key in held}
    agrees_with_one_by_one(pairs_held, changed, [], V1, V1)
    trie, recorder = trie_of(pairs_held, V1), Recorder()
    update_trie(trie.db, trie.root, changed, recorder=recorder)
    assert len(recorder.nodes) == carried


@pytest.mark.parametrize("length", [LONGEST_KEY, LONGEST_KEY + 1, 400])
def test_a_key_may_go_through_a_node_at_each_of_its_nibbles(length: int) -> None:
    key = bytes(length)
    turnings = {key[:at] + bytes([turn]) + key[at + 1 :]: BIG for at in range(length) for turn in (0x01, 0x10)}
    trie = trie_of({key: BIG, **turnings}, V1)
    update = update_trie(trie.db, trie.root, {key: OTHER}, recorder=(recorder := Recorder()))
    trie.insert(key, OTHER)
    assert update.root == trie.commit(prune=False)
    assert len(recorder.nodes) == 2 * length + 1
    assert len(update.nodes) == len(update.dropped) == 2 * length + 2


def test_a_trie_with_a_hole_is_left_alone() -> None:
    trie = trie_of({key: value_of(key) for key in (b"\x10", b"\x20", b"\x30")}, V1)
    last = next(node_hash for path, node_hash, _ in trie.journal.inserted if path == b"\x03")
    trie.db.remove(last)
    before = trie.db.references()
    with pytest.raises(MissingNode):
        update_trie(trie.db, trie.root, {b"\x10": OTHER, b"\x20": OTHER, b"\x30": BIG})
    assert trie.db.references() == before


def test_a_root_that_is_not_there() -> None:
    with pytest.raises(RootMismatch):
        update_trie(MemoryDB(), bytes(32), {b"": b""})


@pytest.mark.parametrize(
    "node",
    [
        encode_node(Branch(b"", (bytes(32), *NO_CHILDREN[1:]))),  # no branch has one child and no value
        b"\x07",
    ],
)
def test_a_root_that_is_no_node(node: bytes) -> None:
    db = MemoryDB()
    with pytest.raises(InvalidNode):
        update_trie(db, db.insert(node), {b"": b""})


def test_an_empty_node_stands_at_the_root_alone() -> None:
    db = MemoryDB()
    root = db.insert(encode_node(Branch(b"", (b"\x00", encode_node(Leaf(b"", b"")), *NO_CHILDREN[2:]))))
    with pytest.raises(InvalidNode):
        update_trie(db, root, {b"\x00": b""})
