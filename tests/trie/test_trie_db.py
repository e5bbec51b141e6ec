"""Reading a trie: its nodes and counts are those of trie-db, and bytes that no honest database holds are refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import (
    EMPTY_ROOT,
    InvalidNode,
    MemoryDB,
    MissingNode,
    Recorder,
    RelaycastError,
    RootMismatch,
    StateVersion,
    TrieDB,
    TrieDBMut,
    blake2_256,
    build_database,
)
from relaycast_trie.nibbles import digits
from relaycast_trie.node import NO_CHILDREN, Branch, Empty, HashedValue, Leaf, Node
from relaycast_trie.node_codec import decode_node, encode_node
from shared_vectors import Case, over, unhex, unhex_pairs
from strategies import Pairs, crowded_keys, pairs, pairs_with_questions, state_versions


@over("trie_db/nodes.json", slices=3)
def test_a_walk_meets_the_nodes_of_trie_db_in_their_order(cases: list[Case]) -> None:
    for vector in cases:
        for version in ("v0", "v1"):
            db = database_of(vector[version])
            trie = TrieDB(db, unhex(vector[version]["root"]))
            walked = [described(db, path, reference, node) for path, reference, node in trie.nodes()]
            assert walked == vector[version]["preorder"], vector["name"]


@over("trie_db/nodes.json", slices=3)
def test_a_database_holds_what_trie_db_writes_and_counts_it_as_often(cases: list[Case]) -> None:
    for vector in cases:
        for version in StateVersion:
            expected = vector[f"v{version}"]
            held = dict(TrieDB(database_of(expected), unhex(expected["root"])).items())
            counts = {unhex(node_hash): count for node_hash, _, count in expected["db"]}
            built, root = build_database(held, state_version=version)
            assert root == unhex(expected["root"])
            assert built.references() == counts, vector["name"]
            trie = TrieDBMut(MemoryDB(), state_version=version)
            for key, value in held.items():
                trie[key] = value
            assert trie.commit() == root
            assert trie.db.references() == counts, vector["name"]


@over("trie_db/roots.json", slices=2)
def test_items_come_back_in_the_order_of_their_keys(cases: list[Case]) -> None:
    for vector in cases:
        held = unhex_pairs(vector["pairs"])
        for version in StateVersion:
            db, root = build_database(held, state_version=version)
            assert list(TrieDB(db, root).items()) == held, vector["name"]


@over("trie_db/proofs.json", slices=2)
def test_the_first_descendant_of_a_key_is_that_of_trie_db(cases: list[Case]) -> None:
    for vector in cases:
        db = MemoryDB(unhex(node) for node in vector["storage_proof"])
        for key, expected in zip(vector["keys"], vector["first_descendant"], strict=True):
            recorder = Recorder()
            found = TrieDB(db, unhex(vector["root"]), recorder=recorder).lookup_first_descendant(unhex(key))
            if expected is None:
                assert found is None, vector["set"]
            elif "hash" in expected:
                assert found == unhex(expected["hash"]), vector["set"]
            else:
                # An inline node: trie-db hands out the hashed node around it, and that is the last one read here.
                around = list(recorder.nodes.values())[-1]
                assert around == unhex(expected["node"]), vector["set"]
                assert found is not None
                assert len(found) < 32, vector["set"]
                assert found in around[1:], vector["set"]


@given(pairs_with_questions(), state_versions)
def test_a_trie_reads_like_the_dict_it_was_built_from(drawn: tuple[Pairs, list[bytes]], version: StateVersion) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=version)
    trie = TrieDB(db, root)
    for key in [*held, *questions]:
        value = held.get(key)
        assert trie.get(key) == value
        assert trie.get_hash(key) == (None if value is None else blake2_256(value))
        assert (key in trie) == (key in held)


@given(pairs, crowded_keys, state_versions)
def test_items_under_a_prefix_are_those_that_start_with_it(held: Pairs, prefix: bytes, version: StateVersion) -> None:
    db, root = build_database(held, state_version=version)
    expected = [(key, value) for key, value in sorted(held.items()) if key.startswith(prefix)]
    trie = TrieDB(db, root)
    assert list(trie.items(prefix)) == expected
    assert (trie.lookup_first_descendant(prefix) is None) == (not expected)


@given(pairs, crowded_keys, state_versions)
def test_equal_first_descendants_mean_equal_content(held: Pairs, prefix: bytes, version: StateVersion) -> None:
    db, root = build_database(held, state_version=version)
    before = TrieDB(db, root).lookup_first_descendant(prefix)
    changed = dict(held) | {prefix + b"\x07": b"a value that was not there"}
    db, root = build_database(changed, state_version=version)
    assert TrieDB(db, root).lookup_first_descendant(prefix) != before


@given(pairs_with_questions(), state_versions)
def test_a_recorder_sees_what_the_reads_need_and_no_more(
    drawn: tuple[Pairs, list[bytes]], version: StateVersion
) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=version)
    recorder = Recorder()
    trie = TrieDB(db, root, recorder=recorder)
    answers = [trie.get(key) for key in questions]
    assert all(blake2_256(node) == node_hash for node_hash, node in recorder.nodes.items())
    assert [TrieDB(recorder.nodes, root).get(key) for key in questions] == answers
    for node_hash in recorder.nodes:
        less = {known: node for known, node in recorder.nodes.items() if known != node_hash}
        with pytest.raises((MissingNode, RootMismatch)):
            [TrieDB(less, root).get(key) for key in questions]


def test_items_under_a_prefix_read_no_node_that_leads_elsewhere() -> None:
    held = {bytes([n, m]): bytes([n, m]) * 20 for n in (0x10, 0x1F, 0x20) for m in range(4)}
    db, root = build_database(held, state_version=StateVersion.V0)
    recorder = Recorder()
    found = dict(TrieDB(db, root, recorder=recorder).items(b"\x10"))
    assert found == {key: value for key, value in held.items() if key[0] == 0x10}
    assert len(recorder.nodes) == 1 + 1 + 1 + 4  # the root, the branches at 1 and at 10, four leaves


def test_the_hash_of_a_value_is_read_without_the_value() -> None:
    db, root = build_database({b"key": bytes(100)}, state_version=StateVersion.V1)
    recorder = Recorder()
    assert TrieDB(db, root, recorder=recorder).get_hash(b"key") == blake2_256(bytes(100))
    assert set(recorder.nodes) == {root}


def test_the_empty_trie_needs_no_database() -> None:
    trie = TrieDB({}, EMPTY_ROOT)
    assert trie.get(b"") is None
    assert list(trie.items()) == []


def test_a_database_without_the_root_is_another_database() -> None:
    with pytest.raises(RootMismatch) as refusal:
        TrieDB(MemoryDB(), bytes(32)).get(b"key")
    assert refusal.value.expected == bytes(32)


def test_a_root_of_another_length_is_a_slip_of_the_caller() -> None:
    """It would be read as an inline node otherwise, and prove itself."""
    with pytest.raises(ValueError, match="32 bytes"):
        TrieDB({}, encode_node(Leaf(b"", b"value")))


def test_a_missing_node_says_where_it_is_missing() -> None:
    held = {b"\x12\x34": bytes(40), b"\x12\x56": bytes(41)}
    db, root = build_database(held, state_version=StateVersion.V0)
    leaf = blake2_256(encode_node(Leaf(b"\x04", bytes(40))))
    db.remove(leaf)
    with pytest.raises(MissingNode) as refusal:
        TrieDB(db, root).get(b"\x12\x34")
    assert (refusal.value.node_hash, digits(refusal.value.path)) == (leaf, "123")
    assert TrieDB(db, root).get(b"\x12\x56") == bytes(41)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (b"\x01", "no header"),
        (b"\x41", "cut off"),
        (encode_node(Branch(b"", (b"", *NO_CHILDREN[1:]))), "a child of no bytes"),
        (encode_node(Branch(b"", (b"\x41", *NO_CHILDREN[1:]))), "an inline child that is cut off"),
    ],
)
def test_a_node_whose_hash_fits_but_whose_bytes_do_not_is_invalid(node: bytes, why: str) -> None:
    trie = TrieDB(MemoryDB([node]), blake2_256(node))
    with pytest.raises(InvalidNode) as refusal:
        trie.get(b"\x00\x00")
    assert refusal.value.reason, why


def test_a_value_on_half_a_byte_belongs_to_no_key() -> None:
    node = encode_node(Leaf(b"\x01\x02\x03", b"value"))
    trie = TrieDB(MemoryDB([node]), blake2_256(node))
    assert trie.get(b"\x12") is None
    with pytest.raises(RelaycastError):
        list(trie.items())


@given(st.lists(st.binary(max_size=80), max_size=4), crowded_keys)
def test_any_bytes_read_as_a_trie_give_a_value_or_a_refusal(nodes: list[bytes], key: bytes) -> None:
    db = MemoryDB(nodes)
    for root in [blake2_256(node) for node in nodes] or [bytes(32)]:
        trie = TrieDB(db, root)
        for read in (trie.get, trie.get_hash, trie.lookup_first_descendant, lambda _, trie=trie: list(trie.items())):
            try:
                read(key)
            except RelaycastError:
                continue


def database_of(vector: dict[str, Any]) -> MemoryDB:
    """Return the database that a vector lists, with its counts."""
    db = MemoryDB()
    for node_hash, data, count in vector["db"]:
        for _ in range(count):
            assert db.insert(unhex(data)) == unhex(node_hash)
    return db


def described(db: MemoryDB, path: bytes, reference: bytes, node: Node) -> dict[str, str | None]:
    """Write one step of a walk as the vectors do."""
    is_hashed = len(reference) == 32
    data = (db.get(reference) or b"") if is_hashed else reference
    assert decode_node(data) == node
    external = None if isinstance(node, Empty) or not isinstance(node.value, HashedValue) else node.value.hash.hex()
    return {
        "prefix": digits(path),
        "hash": reference.hex() if is_hashed else None,
        "node": data.hex(),
        "value_hash": external,
    }
