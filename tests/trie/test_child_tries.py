"""Child tries: their roots in the top trie, and proofs that start at the top and end below."""

import pytest
from hypothesis import given

from relaycast_trie import (
    CHILD_STORAGE_PREFIX,
    EMPTY_ROOT,
    ChildInfo,
    CompactProof,
    DuplicateNode,
    MemoryDB,
    MissingNode,
    StateVersion,
    StorageProof,
    TrieDB,
    UnusedNodes,
    build_database,
    reference,
)
from shared_vectors import Case, over, unhex, unhex_all, unhex_or_none, unhex_pairs
from strategies import Pairs, pairs_with_questions, some_pairs, state_versions

Built = tuple[MemoryDB, bytes, dict[bytes, bytes]]


def with_children(top: Pairs, children: dict[bytes, Pairs], version: StateVersion) -> Built:
    """Return a database with a top trie and its children, the root, and the children's roots."""
    db, roots = MemoryDB(), {}
    for name, held in children.items():
        built, roots[name] = build_database(held, state_version=version)
        copy_into(db, built)
    named = {ChildInfo(name).prefixed_storage_key(): root for name, root in roots.items()}
    built, root = build_database(top | named, state_version=version)
    copy_into(db, built)
    return db, root, roots


def copy_into(db: MemoryDB, source: MemoryDB) -> None:
    for node_hash in source:
        data = source.get(node_hash)
        assert data is not None
        db.emplace(node_hash, data)


@over("trie_db/child_tries.json")
def test_one_proof_over_top_and_child_tries_is_that_of_sp_trie(cases: list[Case]) -> None:
    for vector in cases:
        root = unhex(vector["root"])
        children = {unhex(child["key"]): child for child in vector["children"]}
        db, built_root = build_with(vector, children)
        assert built_root == root
        proofs = [StorageProof.generate(db, root, children)]  # the root of every child was read, also of those not read
        for name, key, value in vector["reads"]:
            if name is None:
                proof = StorageProof.generate(db, root, [unhex(key)])
                verified = proof.verify(root, [unhex(key)], strict=True)
            else:
                info = ChildInfo.from_prefixed_key(unhex(name))
                proof = StorageProof.generate_child(db, root, info, [unhex(key)])
                verified = proof.verify_child(root, info, [unhex(key)], strict=True)
            assert verified[unhex(key)] == unhex_or_none(value)
            proofs.append(proof)
        merged = StorageProof.merge(proofs)
        assert list(merged) == unhex_all(vector["storage_proof"])
        compact = CompactProof.encode(merged, root)
        assert list(compact.nodes) == unhex_all(vector["compact_proof"])
        assert compact.decode(root) == (merged, root)


@over("smoldot/states.json")
def test_states_with_children_have_the_roots_and_child_proofs_of_smoldot(cases: list[Case]) -> None:
    for vector in cases:
        top = dict(unhex_pairs(vector["top"]))
        children = {unhex(name): dict(unhex_pairs(held)) for name, held in vector["children"].items()}
        for version in StateVersion:
            db, root, roots = with_children(top, children, version)
            assert root == unhex(vector[f"root_v{version}"])
            assert roots == {unhex(name): unhex(child) for name, child in vector[f"child_roots_v{version}"].items()}
            for case in vector["child_proofs"]:
                info, keys = ChildInfo(unhex(case["child"])), unhex_all(case["keys"])
                proof = StorageProof.generate_child(db, root, info, keys)
                assert list(proof) == sorted(unhex_all(case[f"proof_v{version}"]))
                verified = proof.verify_child(root, info, keys, strict=True)
                assert [verified[key] for key in keys] == [unhex_or_none(value) for value in case["values"]]
                assert CompactProof.encode(proof, root).decode(root) == (proof, root)


@given(some_pairs, pairs_with_questions(), state_versions)
def test_a_child_proof_gives_what_the_child_holds(
    top: Pairs, drawn: tuple[Pairs, list[bytes]], version: StateVersion
) -> None:
    held, questions = drawn
    db, root, roots = with_children(top, {b"child": held, b"other": top}, version)
    info = ChildInfo.new_default(b"child")
    proof = StorageProof.generate_child(db, root, info, questions)
    assert dict(proof.verify_child(root, info, questions, strict=True).values) == {
        key: held.get(key) for key in questions
    }
    way = StorageProof.generate(db, root, [info.prefixed_storage_key()])
    assert proof.nodes == way.nodes | reference.prove(held, questions, state_version=version)
    assert TrieDB(db, root).get(info.prefixed_storage_key()) == roots[b"child"]


def test_a_child_that_is_not_there_is_proven_absent() -> None:
    db, root, _ = with_children({b"a": b"b"}, {b"x": {b"k": b"v"}}, StateVersion.V1)
    proof = StorageProof.generate_child(db, root, ChildInfo(b"y"), [b"k"])
    assert proof.verify_child(root, ChildInfo(b"y"), [b"k"], strict=True)[b"k"] is None


def test_an_empty_child_trie_needs_no_node() -> None:
    db, root = build_database({ChildInfo(b"x").prefixed_storage_key(): EMPTY_ROOT}, state_version=StateVersion.V1)
    proof = StorageProof.generate_child(db, root, ChildInfo(b"x"), [b"k"])
    assert proof.verify_child(root, ChildInfo(b"x"), [b"k"])[b"k"] is None


def test_the_proof_of_one_child_says_nothing_about_another() -> None:
    db, root, _ = with_children({}, {b"x": {b"k": bytes(40)}, b"y": {b"k": bytes(41)}}, StateVersion.V1)
    proof = StorageProof.generate_child(db, root, ChildInfo(b"x"), [b"k"])
    with pytest.raises(MissingNode):
        proof.verify_child(root, ChildInfo(b"y"), [b"k"])
    both = StorageProof.merge([proof, StorageProof.generate_child(db, root, ChildInfo(b"y"), [b"k"])])
    assert both.verify_child(root, ChildInfo(b"y"), [b"k"])[b"k"] == bytes(41)
    with pytest.raises(UnusedNodes):
        both.verify_child(root, ChildInfo(b"y"), [b"k"], strict=True)


def test_a_repeated_node_is_refused_by_strict_verification_of_a_child_too() -> None:
    db, root, _ = with_children({}, {b"x": {b"k": bytes(40)}}, StateVersion.V1)
    nodes = list(StorageProof.generate_child(db, root, ChildInfo(b"x"), [b"k"]))
    twice = StorageProof([*nodes, nodes[0]])
    assert twice.verify_child(root, ChildInfo(b"x"), [b"k"])[b"k"] == bytes(40)
    with pytest.raises(DuplicateNode):
        twice.verify_child(root, ChildInfo(b"x"), [b"k"], strict=True)


def test_a_child_is_named_below_a_prefix_of_the_top_trie() -> None:
    info = ChildInfo.new_default(b"pubsub\xe8\x03\x00\x00")
    assert info.prefixed_storage_key() == b":child_storage:default:pubsub\xe8\x03\x00\x00"
    assert info.prefixed_storage_key() == CHILD_STORAGE_PREFIX + info.storage_key
    assert ChildInfo.from_prefixed_key(info.prefixed_storage_key()) == info
    with pytest.raises(ValueError, match=":child_storage:default:"):
        ChildInfo.from_prefixed_key(b":child_storage:other:x")


def build_with(vector: Case, children: dict[bytes, Case]) -> tuple[MemoryDB, bytes]:
    """Return the database of a vector, whichever state version it was made with, and its root."""
    top = {key: value for key, value in unhex_pairs(vector["top"]) if key not in children}
    held = {
        ChildInfo.from_prefixed_key(key).storage_key: dict(unhex_pairs(child["pairs"]))
        for key, child in children.items()
    }
    for version in StateVersion:
        db, root, roots = with_children(top, held, version)
        if root == unhex(vector["root"]):
            assert list(roots.values()) == [unhex(child["root"]) for child in children.values()]
            return db, root
    raise AssertionError("no state version gives the root")
