"""Proofs for readers who hold the statement: the nodes and the verdicts of trie-db."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import (
    BLAKE2B_256,
    CodecError,
    IncompleteProof,
    InvalidNode,
    MemoryDB,
    ProofError,
    RootMismatch,
    StatementError,
    StateVersion,
    StorageProof,
    build_database,
    generate_proof,
    verify_proof,
)
from relaycast_trie.exceptions import (
    DuplicateKey,
    ExtraneousHash,
    ExtraneousNode,
    ExtraneousValue,
    InvalidChild,
    ValueMismatch,
)
from relaycast_trie.node import NO_CHILDREN, Branch
from relaycast_trie.node_codec import encode_node
from shared_vectors import Case, over, unhex, unhex_all, unhex_or_none
from strategies import Pairs, pairs_with_questions, state_versions

Items = list[tuple[bytes, bytes | None]]

VERDICTS: dict[str, tuple[type[Exception], ...]] = {
    "DecodeError": (InvalidNode, CodecError),
    "DuplicateKey": (DuplicateKey,),
    "ExtraneousHashReference": (ExtraneousHash,),
    "ExtraneousNode": (ExtraneousNode,),
    "ExtraneousValue": (ExtraneousValue,),
    "IncompleteProof": (IncompleteProof,),
    "InvalidChildReference": (InvalidChild,),
    "RootMismatch": (RootMismatch,),
    "ValueMismatch": (ValueMismatch,),
}
"""trie-db's ``VerifyError``, and ours."""


@over("trie_db/proofs.json", slices=2)
def test_a_generated_proof_has_the_nodes_of_trie_db(cases: list[Case]) -> None:
    for vector in cases:
        if vector["trie_db_proof"] is not None:
            db = MemoryDB(unhex_all(vector["storage_proof"]))
            proof = generate_proof(db, unhex(vector["root"]), unhex_all(vector["keys"]))
            assert list(proof) == unhex_all(vector["trie_db_proof"]), vector["set"]


@over("trie_db/proofs.json", slices=2)
def test_a_proof_of_trie_db_holds_for_its_statement_and_for_no_other(cases: list[Case]) -> None:
    for vector in cases:
        if vector["trie_db_proof"] is None:
            continue
        root, proof = unhex(vector["root"]), unhex_all(vector["trie_db_proof"])
        version = StateVersion(vector["layout"])
        items: Items = list(zip(unhex_all(vector["keys"]), map(unhex_or_none, vector["values"]), strict=True))
        verify_proof(root, proof, items, state_version=version)
        verify_proof(root, proof, dict(items), state_version=version)
        for index, (key, value) in enumerate(items):
            lie = b"\x01" if value is None else value + b"\x01"
            with pytest.raises(ProofError):
                verify_proof(root, proof, [*items[:index], (key, lie), *items[index + 1 :]], state_version=version)


@over("trie_db/invalid_proofs.json")
def test_a_wrong_proof_gets_the_verdict_of_trie_db(cases: list[Case]) -> None:
    for vector in cases:
        root, version = unhex(vector["root"]), version_of(vector)
        for case in (case for case in vector["cases"] if case["type"] == "trie_db_proof"):
            items: Items = [(unhex(key), unhex_or_none(value)) for key, value in case["items"]]
            if case["result"] == "ok":
                verify_proof(root, unhex_all(case["nodes"]), items, state_version=version)
            else:
                with pytest.raises(ProofError) as refusal:
                    verify_proof(root, unhex_all(case["nodes"]), items, state_version=version)
                assert isinstance(refusal.value, VERDICTS[case["result"]]), (case["mutation"], refusal.value)


@given(pairs_with_questions(), state_versions)
def test_a_proof_holds_for_what_the_trie_holds(drawn: tuple[Pairs, list[bytes]], version: StateVersion) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=version)
    proof = generate_proof(db, root, questions)
    verify_proof(root, proof, {key: held.get(key) for key in questions}, state_version=version)
    full = StorageProof.generate(db, root, questions)
    if len(proof) <= len(full):  # what two places share is written at both
        assert sum(map(len, proof)) <= full.proof_bytes


@given(pairs_with_questions(), state_versions, st.data())
def test_a_false_statement_is_never_believed(
    drawn: tuple[Pairs, list[bytes]], version: StateVersion, data: st.DataObject
) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=version)
    nodes = list(generate_proof(db, root, questions))
    statement = {key: held.get(key) for key in questions}
    for key in data.draw(st.sets(st.sampled_from(questions or [b""]))):
        statement[key] = data.draw(st.none() | st.binary(max_size=40))
    place = data.draw(st.integers(0, 2 * len(nodes)))  # half of the time none
    if place < len(nodes):
        nodes[place] = data.draw(st.binary(max_size=40))
    try:
        verify_proof(root, nodes, statement, state_version=version)
    except ProofError:
        return
    assert statement == {key: held.get(key) for key in statement}


@given(
    st.lists(st.binary(max_size=60), max_size=4),
    st.dictionaries(st.binary(max_size=3), st.none() | st.binary(max_size=3), max_size=3),
)
def test_any_nodes_are_judged_or_refused(nodes: list[bytes], statement: dict[bytes, bytes | None]) -> None:
    with_nothing_to_show = not statement and not nodes
    try:
        verify_proof(bytes(32), nodes, statement)
    except ProofError:
        assert not with_nothing_to_show
    else:
        assert with_nothing_to_show


def test_an_inline_child_longer_than_a_hash_is_refused() -> None:
    inline = encode_node(Branch(b"", (bytes(20), bytes(20), *NO_CHILDREN[2:])))
    proof = [encode_node(Branch(b"", (inline, *NO_CHILDREN[1:])))]
    with pytest.raises(InvalidChild):
        verify_proof(bytes(32), proof, {b"\x01": None, b"\x00": None} | {b"\x02": None})


def test_an_empty_statement_needs_an_empty_proof() -> None:
    verify_proof(bytes(32), [], {})
    with pytest.raises(ExtraneousNode):
        verify_proof(bytes(32), [b"\x00"], {})


def test_a_key_named_twice_is_refused_even_when_both_say_the_same() -> None:
    db, root = build_database({b"key": b"value"}, state_version=StateVersion.V1)
    with pytest.raises(StatementError) as refusal:
        verify_proof(root, generate_proof(db, root, [b"key"]), [(b"key", b"value"), (b"key", b"value")])
    assert refusal.value.detail == b"key"


def test_a_value_of_33_bytes_is_hashed_under_version_1_alone() -> None:
    for version, other in ((StateVersion.V0, StateVersion.V1), (StateVersion.V1, StateVersion.V0)):
        db, root = build_database({b"key": bytes(33)}, state_version=version)
        proof = generate_proof(db, root, [b"key"], hasher=BLAKE2B_256)
        verify_proof(root, proof, {b"key": bytes(33)}, state_version=version)
        with pytest.raises(RootMismatch):
            verify_proof(root, proof, {b"key": bytes(33)}, state_version=other)


def version_of(vector: Case) -> StateVersion:
    """Return under which version a set's statement holds: the one whose unharmed proof is accepted."""
    unharmed = next(c for c in vector["cases"] if c["type"] == "trie_db_proof" and c["mutation"] == "none")
    items: Items = [(unhex(key), unhex_or_none(value)) for key, value in unharmed["items"]]
    for version in StateVersion:
        try:
            verify_proof(unhex(vector["root"]), unhex_all(unharmed["nodes"]), items, state_version=version)
        except RootMismatch:
            continue
        return version
    raise AssertionError("the unharmed proof holds under no state version")
