"""Writing a trie: the roots, the journals and what is left in the database, step by step as trie-db leaves it."""

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import (
    EMPTY_ROOT,
    Branch,
    InvalidNode,
    Leaf,
    MemoryDB,
    MissingNode,
    Node,
    PruningJournal,
    RelaycastError,
    RootMismatch,
    StateVersion,
    StorageProof,
    TrieDB,
    TrieDBMut,
    blake2_256,
    build_database,
    encode_node,
    reference,
)
from relaycast_trie.node import NO_CHILDREN
from shared_vectors import Case, over, unhex, unhex_or_none, unhex_pairs
from strategies import Changes, Pairs, changes, keys, nodes, pairs, some_pairs, state_versions, values

SLICES = 3


@over("trie_db/updates.json", slices=SLICES)
def test_sessions_of_changes_have_the_roots_and_leave_the_nodes_of_trie_db(cases: list[Case]) -> None:
    for vector in cases:
        trie = started(vector)
        assert trie.root == unhex(vector["start_root"]), vector["name"]
        trie = TrieDBMut(trie.db, trie.root, state_version=StateVersion(vector["update_layout"]))
        for step in vector["steps"]:
            apply(trie, delta_of(step))
            assert trie.commit() == unhex(step["root"]), vector["name"]
        assert list(TrieDB(trie.db, trie.root).items()) == unhex_pairs(vector["final_pairs"]), vector["name"]
        assert trie.db.references() == {unhex(node): count for node, count in vector["final_db"]}, vector["name"]


@over("trie_db/updates.json", slices=SLICES)
def test_a_journal_is_what_trie_db_writes_to_its_database(cases: list[Case]) -> None:
    for vector in cases:
        db, root = started(vector).db, unhex(vector["start_root"])
        for step in vector["steps"]:
            trie = TrieDBMut(db, root, state_version=StateVersion(vector["update_layout"]))
            apply(trie, delta_of(step))
            root = trie.commit()
            for name, prefixed in (("changes", False), ("prefixed_changes", True)):
                if name in step:
                    inserted, removed = trie.journal.changes(prefixed=prefixed)
                    assert inserted == {unhex(k): (unhex(data), n) for k, data, n in step[name]["inserted"]}, vector[
                        "name"
                    ]
                    assert removed == {unhex(k): n for k, n in step[name]["removed"]}, vector["name"]


@over("trie_db/updates.json", slices=SLICES)
def test_every_root_of_a_session_stays_readable_until_its_journal_is_pruned(cases: list[Case]) -> None:
    for vector in cases:
        trie = started(vector)
        trie.state_version = StateVersion(vector["update_layout"])
        history: list[tuple[bytes, Pairs]] = [(trie.root, dict(TrieDB(trie.db, trie.root).items()))]
        journals: list[PruningJournal] = []
        for step in vector["steps"]:
            apply(trie, delta_of(step))
            trie.commit(prune=False)
            journals.append(trie.journal)
            history.append((trie.root, changed(history[-1][1], delta_of(step))))
        assert all(dict(TrieDB(trie.db, root).items()) == held for root, held in history), vector["name"]
        for journal in journals:
            trie.db.prune(journal)
        assert trie.db.references() == {unhex(node): count for node, count in vector["final_db"]}, vector["name"]


@given(pairs, st.lists(changes, max_size=4), state_versions)
def test_changes_lead_where_a_fresh_build_leads(held: Pairs, sessions: list[Changes], version: StateVersion) -> None:
    trie = TrieDBMut(*build_database(held, state_version=version), state_version=version)
    for delta in sessions:
        apply(trie, delta)
        held = changed(held, delta)
        assert all(trie.get(key) == held.get(key) and (key in trie) == (key in held) for key, _ in delta)
        root = trie.commit()
        fresh, expected = build_database(held, state_version=version)
        assert root == expected == reference.trie_root(held, state_version=version)
        assert trie.db.references() == fresh.references()
        assert dict(TrieDB(trie.db, root).items()) == held


@given(some_pairs, changes, state_versions)
def test_a_trie_opened_anew_and_one_kept_open_agree(held: Pairs, delta: Changes, version: StateVersion) -> None:
    kept = TrieDBMut(*build_database(held, state_version=version), state_version=version)
    db, root = build_database(held, state_version=version)
    for change in delta:
        apply(kept, [change])
        kept.commit()
        opened = TrieDBMut(db, root, state_version=version)
        apply(opened, [change])
        root = opened.commit()
        assert (kept.root, kept.journal.changes()) == (root, opened.journal.changes())
    assert kept.db.references() == db.references()


@given(pairs, changes)
def test_values_move_out_of_their_nodes_when_they_are_written_under_version_1(held: Pairs, delta: Changes) -> None:
    db, root = build_database(held, state_version=StateVersion.V0)
    trie = TrieDBMut(db, root, state_version=StateVersion.V1)
    apply(trie, delta)
    trie.commit()
    apply(trie, sorted(changed(held, delta).items()))  # every value is written again, unchanged
    root = trie.commit()
    fresh, expected = build_database(changed(held, delta), state_version=StateVersion.V1)
    assert root == expected
    assert db.references() == fresh.references()


@given(some_pairs, state_versions, st.randoms(use_true_random=False))
def test_removing_every_key_leaves_nothing(held: Pairs, version: StateVersion, random: object) -> None:
    trie = TrieDBMut(*build_database(held, state_version=version), state_version=version)
    order = sorted(held)
    random.shuffle(order)  # type: ignore[attr-defined]
    for key in order:
        del trie[key]
    assert trie.commit() == EMPTY_ROOT
    assert trie.db.references() == {}


@given(some_pairs, st.lists(changes, min_size=1, max_size=5), state_versions)
def test_journals_pruned_late_and_in_order_free_exactly_what_is_dead(
    held: Pairs, sessions: list[Changes], version: StateVersion
) -> None:
    trie = TrieDBMut(*build_database(held, state_version=version), state_version=version)
    states = [(trie.root, held)]
    journals = []
    for delta in sessions:
        apply(trie, delta)
        trie.commit(prune=False)
        journals.append(trie.journal)
        states.append((trie.root, changed(states[-1][1], delta)))
    for number, journal in enumerate(journals):
        trie.db.prune(journal)
        for root, expected in states[number + 1 :]:
            assert dict(TrieDB(trie.db, root).items()) == expected
    fresh, _ = build_database(states[-1][1], state_version=version)
    assert trie.db.references() == fresh.references()


@given(some_pairs, keys, values, state_versions)
def test_a_change_and_its_undoing_cancel_out(held: Pairs, key: bytes, value: bytes, version: StateVersion) -> None:
    trie = TrieDBMut(*build_database(held, state_version=version), state_version=version)
    before, root = trie.db.references(), trie.root
    trie[key] = value + b"!"
    if key in held:
        trie[key] = held[key]
    else:
        del trie[key]
    assert trie.commit() == root
    assert trie.journal.changes(prefixed=True) == ({}, {})
    assert trie.db.references() == before


def test_a_commit_without_changes_writes_nothing() -> None:
    trie = TrieDBMut(MemoryDB())
    trie[b"key"] = b"value"
    root = trie.commit()
    trie[b"key"] = b"value"
    del trie[b"absent"]
    assert trie.commit() == root
    assert trie.journal == PruningJournal()


def test_an_empty_value_is_stored_and_is_no_removal() -> None:
    trie = TrieDBMut(MemoryDB())
    trie[b"key"] = b""
    assert trie[b"key"] == b""
    assert b"key" in trie
    assert trie.commit() != EMPTY_ROOT
    with pytest.raises(KeyError):
        trie[b"ke"]


@pytest.mark.parametrize("value", [b"", b"v", bytes(40)], ids=len)
def test_a_branch_that_keeps_a_value_and_one_child_stays_a_branch(value: bytes) -> None:
    trie = TrieDBMut(MemoryDB())
    for key in (b"", b"\x10", b"\x20"):
        trie[key] = value
    trie.commit()
    del trie[b"\x20"]
    assert trie[b""] == value
    assert trie.commit() == reference.trie_root({b"": value, b"\x10": value}, state_version=StateVersion.V1)


def test_equal_subtries_are_counted_once_for_each_place() -> None:
    value = bytes(40)
    trie = TrieDBMut(MemoryDB())
    for key in (b"\x01aa", b"\x01ab", b"\x02aa", b"\x02ab"):
        trie[key] = value
    trie.commit()
    assert trie.db.references()[blake2_256(value)] == 4
    del trie[b"\x02aa"]
    trie.commit()
    assert trie.db.references()[blake2_256(value)] == 3
    assert TrieDB(trie.db, trie.root).get(b"\x01aa") == value


def test_the_count_is_what_keeps_a_shared_value_alive() -> None:
    held = {b"\x01aa": bytes(40), b"\x02ab": bytes(40)}
    counted, root = build_database(held, state_version=StateVersion.V1)
    careless = MemoryDB(counted.get(node_hash) or b"" for node_hash in counted)  # every node once, whatever its count
    for db, survives in ((counted, True), (careless, False)):
        trie = TrieDBMut(db, root)
        del trie[b"\x02ab"]
        trie.commit()
        assert (blake2_256(bytes(40)) in db) is survives


def test_writing_needs_the_nodes_on_the_path_and_no_others() -> None:
    held = {bytes([n, n]): bytes([n]) * 40 for n in range(0, 256, 7)}
    db, root = build_database(held, state_version=StateVersion.V1)
    partial = MemoryDB(StorageProof.generate(db, root, [b"\x07\x07"]).nodes)
    trie = TrieDBMut(partial, root)
    trie[b"\x07\x07"] = b"new"
    assert trie.commit(prune=False) == reference.trie_root(held | {b"\x07\x07": b"new"}, state_version=StateVersion.V1)


@given(some_pairs, st.data(), state_versions)
def test_a_refused_change_is_as_if_it_had_never_been_tried(
    held: Pairs, data: st.DataObject, version: StateVersion
) -> None:
    full, root = build_database(held, state_version=version)
    asked = data.draw(st.sampled_from(sorted(held)))
    proof = StorageProof.generate(full, root, [asked])
    trie = TrieDBMut(MemoryDB(proof.nodes), root, state_version=version)
    accepted: Changes = []
    for key, value in [(asked, None), *data.draw(changes)]:
        proven = trie.get(asked)
        try:
            apply(trie, [(key, value)])
        except MissingNode:
            assert trie.get(asked) == proven
        else:
            accepted.append((key, value))
    untroubled = TrieDBMut(MemoryDB(proof.nodes), root, state_version=version)
    apply(untroubled, accepted)
    assert (trie.commit(prune=False), trie.journal) == (untroubled.commit(prune=False), untroubled.journal)
    assert trie.db.references() == untroubled.db.references()


def test_a_root_of_another_length_is_a_slip_of_the_caller() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        TrieDBMut(MemoryDB(), b"short")


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("key", b"value", "a key is bytes, got str"),
        (b"key", "value", "a value is bytes, got str"),
        (b"key", None, "a value is bytes, got NoneType"),
    ],
)
def test_what_is_not_bytes_is_refused_before_it_is_written(key: bytes, value: bytes, line: str) -> None:
    trie = TrieDBMut(MemoryDB())
    trie[b"key"] = b"before"
    with pytest.raises(TypeError, match=line):
        trie[key] = value
    assert trie[b"key"] == b"before"
    untroubled = TrieDBMut(MemoryDB())
    untroubled[b"key"] = b"before"
    assert trie.commit() == untroubled.commit()


def test_a_root_that_the_database_lacks_is_refused_at_the_first_read() -> None:
    trie = TrieDBMut(MemoryDB(), bytes(32))
    with pytest.raises(RootMismatch):
        trie.get(b"k")
    with pytest.raises(RootMismatch):
        trie.insert(b"k", b"v")
    with pytest.raises(RootMismatch):
        trie.remove(b"k")
    assert len(trie.db) == 0


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (Branch(b"", (encode_node(Leaf(b"\x00", b"v")), *NO_CHILDREN[1:])), "one child and no value"),
        (Branch(b"", (b"\x00", b"\x00", *NO_CHILDREN[2:])), "an empty node below the root"),
        (Branch(b"", (b"\x41", b"\x41", *NO_CHILDREN[2:])), "cut off"),
    ],
)
def test_a_trie_that_no_writer_leaves_behind_is_refused_before_it_is_changed(node: Branch, why: str) -> None:
    encoded = encode_node(node)
    trie = TrieDBMut(MemoryDB([encoded]), blake2_256(encoded))
    with pytest.raises(InvalidNode, match=why):
        del trie[b"\x00"]
    assert trie.commit() == blake2_256(encoded)
    assert trie.journal == PruningJournal()


@given(st.lists(nodes, min_size=1, max_size=3), changes)
def test_any_nodes_can_be_written_over_or_are_refused(given_nodes: list[Node], delta: Changes) -> None:
    encoded = [encode_node(node) for node in given_nodes]
    trie = TrieDBMut(MemoryDB(encoded), blake2_256(encoded[0]))
    for change in delta:
        with contextlib.suppress(RelaycastError):
            apply(trie, [change])
    root = trie.commit(prune=False)
    assert root in trie.db


def test_a_node_that_is_counted_out_is_gone() -> None:
    db = MemoryDB([b"node", b"node"])
    node_hash = blake2_256(b"node")
    for left in (1, 0):
        db.remove(node_hash)
        assert db.references().get(node_hash, 0) == left
    with pytest.raises(KeyError):
        db.remove(node_hash)


def test_the_empty_node_is_always_there_and_never_counted() -> None:
    db = MemoryDB([b"\x00"])
    db.remove(EMPTY_ROOT)
    assert EMPTY_ROOT in db
    assert (len(db), db.get(EMPTY_ROOT)) == (0, b"\x00")


def test_hundreds_of_keys_one_inside_the_other_need_no_recursion() -> None:
    stem = b"\xa5" * 600
    trie = TrieDBMut(MemoryDB())
    for length in range(600):
        trie[stem[:length]] = b"v"
    roots = [trie.commit()]
    for length in reversed(range(600)):
        del trie[stem[:length]]
        if length % 200 == 0:
            roots.append(trie.commit())
    assert all(before != after for before, after in pairwise(roots))
    assert (roots[-1], len(trie.db)) == (EMPTY_ROOT, 0)


def started(vector: Case) -> TrieDBMut:
    """Return the trie that a vector starts from, committed."""
    trie = TrieDBMut(MemoryDB(), state_version=StateVersion(vector["build_layout"]))
    for key, value in unhex_pairs(vector["start"]):
        trie[key] = value
    trie.commit()
    return trie


def delta_of(step: Case) -> Changes:
    return [(unhex(key), unhex_or_none(value)) for key, value in step["delta"]]


def apply(trie: TrieDBMut, delta: Changes) -> None:
    for key, value in delta:
        if value is None:
            del trie[key]
        else:
            trie[key] = value


def changed(held: Pairs, delta: Changes) -> Pairs:
    """Return ``held`` after ``delta``."""
    result = dict(held)
    for key, value in delta:
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result
