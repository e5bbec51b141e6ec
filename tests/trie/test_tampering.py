"""Tampered proofs: whatever is done to the nodes, true values or an error come out; and these checks can fail."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proof_vectors import ProofVector, drawn_proof, finding, verification
from relaycast_trie import (
    BLAKE2B_256,
    DuplicateNode,
    Hasher,
    MissingNode,
    ProofError,
    RootMismatch,
    StateVersion,
    StorageProof,
    UnusedNodes,
    blake2_256,
    build_database,
    reference,
)
from relaycast_trie.exceptions import InvalidNode
from relaycast_trie.node import Branch, HashedValue, Leaf, Node
from relaycast_trie.node_codec import decode_node, encode_node
from relaycast_trie.plain import trie_db
from shared_vectors import Case, over, unhex, unhex_all, unhex_pairs
from strategies import Pairs, pairs_with_questions, some_pairs, state_versions
from vector_fields import VectorSource
from yielded_vectors import yields

Nodes = list[bytes]
Tamper = Callable[[st.DataObject, Nodes, Nodes], Nodes]
"""Takes a source of chance, the nodes, and nodes of another trie; gives other nodes."""


def place_in(data: st.DataObject, nodes: Nodes) -> int:
    return data.draw(st.integers(0, len(nodes) - 1))


def drop(data: st.DataObject, nodes: Nodes, _: Nodes) -> Nodes:
    place = place_in(data, nodes)
    return nodes[:place] + nodes[place + 1 :]


def add(data: st.DataObject, nodes: Nodes, others: Nodes) -> Nodes:
    return [*nodes, data.draw(st.sampled_from(others) | st.binary(max_size=50))]


def flip(data: st.DataObject, nodes: Nodes, _: Nodes) -> Nodes:
    place = place_in(data, nodes)
    bit = data.draw(st.integers(0, 8 * len(nodes[place]) - 1))
    flipped = bytearray(nodes[place])
    flipped[bit // 8] ^= 1 << bit % 8
    return [*nodes[:place], bytes(flipped), *nodes[place + 1 :]]


def swap(data: st.DataObject, nodes: Nodes, others: Nodes) -> Nodes:
    place = place_in(data, nodes)
    return [*nodes[:place], data.draw(st.sampled_from(others)), *nodes[place + 1 :]]


def duplicate(data: st.DataObject, nodes: Nodes, _: Nodes) -> Nodes:
    return [*nodes, nodes[place_in(data, nodes)]]


def truncate(data: st.DataObject, nodes: Nodes, _: Nodes) -> Nodes:
    place = place_in(data, nodes)
    kept = data.draw(st.integers(0, len(nodes[place]) - 1))
    return [*nodes[:place], nodes[place][:kept], *nodes[place + 1 :]]


TAMPERS: list[Tamper] = [drop, add, flip, swap, duplicate, truncate]
several_tampers = st.lists(st.sampled_from(TAMPERS), min_size=1, max_size=3)


@given(pairs_with_questions(), some_pairs, state_versions, several_tampers, st.data())
def test_a_tampered_proof_never_gives_a_wrong_value(
    drawn: tuple[Pairs, list[bytes]],
    other: Pairs,
    version: StateVersion,
    tampers: list[Tamper],
    data: st.DataObject,
) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=version)
    nodes = sorted(StorageProof.generate(db, root, questions or [b""]).nodes)
    others = sorted(reference.prove(other, other, state_version=version))
    for tamper in tampers:
        if nodes and all(nodes):
            nodes = tamper(data, nodes, others)
    for key in questions:
        try:
            value = StorageProof(nodes).verify(root, [key])[key]
        except ProofError:
            continue
        assert value == held.get(key)


@given(pairs_with_questions(), some_pairs, state_versions, st.sampled_from(TAMPERS), st.data())
def test_strict_verification_accepts_the_proof_itself_and_nothing_else(
    drawn: tuple[Pairs, list[bytes]], other: Pairs, version: StateVersion, tamper: Tamper, data: st.DataObject
) -> None:
    held, questions = drawn
    assume(questions)
    db, root = build_database(held, state_version=version)
    nodes = sorted(StorageProof.generate(db, root, questions).nodes)
    tampered = tamper(data, nodes, sorted(reference.prove(other, other, state_version=version)))
    if sorted(tampered) == nodes:
        StorageProof(tampered).verify(root, questions, strict=True)
        return
    with pytest.raises(ProofError) as refusal:
        StorageProof(tampered).verify(root, questions, strict=True)
    expected: dict[Tamper, tuple[type[ProofError], ...]] = {
        drop: (MissingNode, RootMismatch),
        add: (UnusedNodes, DuplicateNode),
        duplicate: (DuplicateNode,),
    }
    assert isinstance(refusal.value, expected.get(tamper, (MissingNode, RootMismatch, DuplicateNode, UnusedNodes)))


@yields("proofs/tries")
@pytest.mark.parametrize("number", range(6))
def test_of_changed_proofs_only_those_hold_that_have_nodes_to_spare_and_are_not_verified_strictly(
    number: int,
) -> Iterator[ProofVector]:
    random, root, nodes, keys = drawn_proof(number)
    at = random.randrange(len(nodes))
    bit = random.randrange(8 * len(nodes[at]))
    flipped = (int.from_bytes(nodes[at], "little") ^ 1 << bit).to_bytes(len(nodes[at]), "little")
    lies = {
        "dropped": ("a node is missing", nodes[:at] + nodes[at + 1 :]),
        "root-dropped": ("the root is missing", [it for it in nodes if blake2_256(it) != root]),
        "added": ("a node that no key needs", [*nodes, random.randbytes(40)]),
        "repeated": ("a node comes twice", [*nodes, nodes[at]]),
        "flipped": ("a bit is another one", [*nodes[:at], flipped, *nodes[at + 1 :]]),
        "cut": ("a node lacks its last byte", [*nodes[:at], nodes[at][:-1], *nodes[at + 1 :]]),
    }
    for (name, (why, given_nodes)), strict in product(lies.items(), (False, True)):
        source = VectorSource(attack="a changed proof")
        vector = verification(f"{name}-{number}", why, source, root, given_nodes, keys, strict=strict)
        assert (finding(vector).error is None) is (name in {"added", "repeated"} and not strict)
        yield vector


CHILD, VALUE = b"\x0f" * 40, bytes(40)
"""Neither of them is a node."""

BRANCH = encode_node(Branch(b"", tuple({6: blake2_256(CHILD), 15: bytes(32)}.get(at) for at in range(16))))
INLINE = encode_node(Branch(b"", tuple({6: b"\x0f\x01", 15: bytes(32)}.get(at) for at in range(16))))
LEAF = encode_node(Leaf(b"\x06\x01", HashedValue(blake2_256(VALUE))))
LONG = encode_node(Leaf(b"\x06\x01", b"v")) + bytes(9)
READ_FIRST = "two faults: reading fails before unused nodes are looked for"


@yields("proofs/tries")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("name", "why", "nodes", "keys", "error"),
    [
        ("root-undecodable", "the root's hash fits, its bytes do not decode", [b"\x01\x02"], [b"a"], "InvalidNode"),
        ("child-undecodable", "a child's bytes do not decode", [BRANCH, CHILD], [b"a"], "InvalidNode"),
        ("child-untouched", "a child that does not decode is not read", [BRANCH, CHILD], [b"\x10"], "UnusedNodes"),
        ("child-missing", "a child that is not there", [BRANCH, CHILD], [b"\xf0"], "MissingNode"),
        ("inline-undecodable", "an inline child does not decode", [INLINE], [b"a"], "InvalidNode"),
        ("value-there", "an external value", [LEAF, VALUE], [b"a"], None),
        ("value-missing", "an external value is not there", [LEAF], [b"a"], "MissingNode"),
        ("value-not-read", "absence needs no external value", [LEAF], [b"b"], None),
        ("order", "the first key decides which error it is", [BRANCH, CHILD], [b"\xf0", b"a"], "MissingNode"),
        ("root-with-rest", "bytes behind a node are ignored", [LONG], [b"a"], None),
        ("unused-and-missing", READ_FIRST, [LEAF, bytes(50)], [b"a"], "MissingNode"),
        ("repeated-and-missing", "two faults: repeated nodes come first", [LEAF, LEAF], [b"a"], "DuplicateNode"),
    ],
)
def test_a_crafted_node_fails_where_it_is_read(
    name: str, why: str, nodes: Nodes, keys: list[bytes], error: str | None, strict: bool
) -> Iterator[ProofVector]:
    source = VectorSource(attack="crafted nodes")
    vector = verification(f"crafted-{name}", why, source, blake2_256(nodes[0]), nodes, keys, strict=strict)
    if not strict:
        error = {"UnusedNodes": None, "DuplicateNode": "MissingNode"}.get(error or "", error)
    assert finding(vector).error == error
    yield vector


@over("smoldot/tampered_proofs.json")
def test_what_smoldot_was_shown_is_refused_or_harmless(cases: list[Case]) -> None:
    for vector in cases:
        proof = StorageProof(unhex_all(vector["proof"]))
        root, keys = unhex(vector["root"]), unhex_all(vector["keys"])
        believed = dict(unhex_pairs(vector["smoldot"].get("entries", [])))
        for key in keys:
            try:
                value = proof.verify(root, [key])[key]
            except ProofError:
                continue
            if "entries" in vector["smoldot"]:
                assert value == believed.get(key), vector["kind"]
        with pytest.raises(ProofError) as refusal:
            proof.verify(root, keys, strict=True)
        expected = {"drop": (MissingNode, RootMismatch), "duplicate": (DuplicateNode,), "junk": (UnusedNodes,)}
        assert isinstance(refusal.value, expected.get(vector["kind"], (MissingNode, RootMismatch))), vector["kind"]


@over("smoldot/tampered_proofs.json")
def test_a_proof_with_junk_or_a_repetition_still_gives_the_true_values(cases: list[Case]) -> None:
    for vector in (vector for vector in cases if vector["kind"] in {"junk", "duplicate"}):
        verified = StorageProof(unhex_all(vector["proof"])).verify(unhex(vector["root"]), unhex_all(vector["keys"]))
        assert len(verified.values) == len(set(vector["keys"]))


def test_a_hash_that_does_not_bind_lets_a_forged_value_through() -> None:
    """The mutant: a hasher that sees only the first byte. What the property above excludes happens under it."""
    careless = Hasher("careless", lambda data: blake2_256(data[:1]))
    db, root = build_database({b"key": b"true"}, state_version=StateVersion.V1, hasher=careless)
    (node,) = StorageProof.generate(db, root, [b"key"], hasher=careless).nodes
    forged = StorageProof([node.replace(b"true", b"fake")])
    assert forged.verify(root, [b"key"], hasher=careless)[b"key"] == b"fake"
    with pytest.raises(RootMismatch):
        forged.verify(StorageProof([node]).by_hash(BLAKE2B_256).popitem()[0], [b"key"])


def test_a_reader_that_takes_missing_children_for_absent_ones_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a decoder that forgets children. The tampering property then meets a wrong value."""

    def forgetful(data: bytes) -> Node:
        node = decode_node(data)
        return Branch(node.partial, (None,) * 16, node.value) if isinstance(node, Branch) else node

    held = {b"\x10": bytes(40), b"\x20": bytes(41)}
    db, root = build_database(held, state_version=StateVersion.V0)
    proof = StorageProof.generate(db, root, [b"\x10"])
    without_leaf = StorageProof(node for node in proof.nodes if blake2_256(node) == root)
    with pytest.raises(MissingNode):
        without_leaf.verify(root, [b"\x10"])
    monkeypatch.setattr(trie_db, "decode_known_node", forgetful)
    assert without_leaf.verify(root, [b"\x10"])[b"\x10"] != held[b"\x10"]


def test_a_node_that_hashes_right_but_is_no_node_is_invalid() -> None:
    junk = b"\x0f junk"
    with pytest.raises(InvalidNode) as refusal:
        StorageProof([junk]).verify(blake2_256(junk), [b"key"])
    assert refusal.value.node_hash == blake2_256(junk)
