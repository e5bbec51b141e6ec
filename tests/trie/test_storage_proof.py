"""Storage proofs: the node sets of sp-trie, the values they prove, and every way in which they can be wrong."""

import pickle
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proof_vectors import TRIES, ProofMade, ProofVector, drawn_keys, drawn_pairs, drawn_proof, finding, verification
from relaycast_trie import (
    EMPTY_ROOT,
    HASHERS,
    CodecError,
    CompactProof,
    DuplicateNode,
    Engine,
    Hasher,
    InvalidNode,
    MemoryDB,
    MissingNode,
    ProofError,
    Recorder,
    RootMismatch,
    StateVersion,
    StorageProof,
    TrieDB,
    UnusedNodes,
    VerifiedProof,
    blake2_256,
    build_database,
    reference,
)
from relaycast_trie.scale import encode_bytes, encode_vec
from shared_vectors import OWN, Case, cases_in, over, shared, unhex, unhex_all, unhex_or_none, unhex_pairs
from strategies import Pairs, pairs_with_questions, state_versions
from vector_fields import VectorSource, entries, hexed
from yielded_vectors import yields

OUTCOMES = {
    "InvalidStateRoot": (RootMismatch,),
    "IncompleteDatabase": (MissingNode,),
    "DecoderError": (InvalidNode, CodecError),
}
"""trie-db's errors, and ours."""


def pairs_of(name: str) -> Pairs:
    """Return the content of a set of ``roots.json``."""
    sets = [*cases_in(OWN / "trie_db/roots.json")]
    found = next((vector for vector in sets if vector["name"] == name), None)
    if found is None:
        everything = cases_in(shared("vectors/trie_db/roots.json"))
        found = next(vector for vector in everything if vector["name"] == name)
    return dict(unhex_pairs(found["pairs"]))


@over("trie_db/proofs.json", slices=3)
def test_a_generated_proof_is_the_node_set_of_sp_trie(cases: list[Case]) -> None:
    for vector in cases:
        db, root = build_database(pairs_of(vector["set"]), state_version=StateVersion(vector["layout"]))
        assert root == unhex(vector["root"]), vector["set"]
        recorder = Recorder()
        trie = TrieDB(db, root, recorder=recorder)
        for key in unhex_all(vector["keys"]):
            trie.get(key) if vector["access"] == "value" else trie.get_hash(key)
        proof = StorageProof(recorder.nodes.values())
        assert list(proof) == unhex_all(vector["storage_proof"]), vector["set"]
        assert len(proof.encode()) == vector["storage_proof_scale_size"], vector["set"]
        if vector["access"] == "value":
            assert StorageProof.generate(db, root, unhex_all(vector["keys"])) == proof


@over("trie_db/proofs.json", slices=3)
def test_a_proof_of_sp_trie_gives_the_values_and_nothing_is_left_over(cases: list[Case]) -> None:
    for vector in cases:
        proof = StorageProof(unhex_all(vector["storage_proof"]))
        root, keys = unhex(vector["root"]), unhex_all(vector["keys"])
        values = [unhex_or_none(value) for value in vector["values"]]
        if vector["access"] == "value":
            verified = proof.verify(root, keys, strict=True)
            assert [verified[key] for key in keys] == values, vector["set"]
        else:
            trie = TrieDB(proof.by_hash(), root)
            hashes = [None if value is None else blake2_256(value) for value in values]
            assert [trie.get_hash(key) for key in keys] == hashes, vector["set"]


@over("trie_db/proofs.json", slices=3)
def test_the_reference_proves_with_the_same_nodes(cases: list[Case]) -> None:
    for vector in cases:
        if vector["access"] == "value" and len(vector["storage_proof"]) < 30:
            held = pairs_of(vector["set"])
            proof = reference.prove(held, unhex_all(vector["keys"]), state_version=StateVersion(vector["layout"]))
            assert proof == frozenset(unhex_all(vector["storage_proof"])), vector["set"]


@over("trie_db/invalid_proofs.json")
def test_a_wrong_storage_proof_fails_as_it_fails_in_trie_db(cases: list[Case]) -> None:
    for vector in cases:
        root, keys = unhex(vector["root"]), unhex_all(vector["keys"])
        for case in (case for case in vector["cases"] if case["type"] == "storage_proof"):
            proof = StorageProof(unhex_all(case["nodes"]))
            for key, outcome in zip(keys, case["outcomes"], strict=True):
                if "ok" in outcome:
                    assert proof.verify(root, [key])[key] == unhex_or_none(outcome["ok"]), case["mutation"]
                else:
                    with pytest.raises(OUTCOMES[outcome["err"]]):
                        proof.verify(root, [key])


@over("smoldot/tries.json", slices=3)
def test_proofs_of_one_key_and_of_many_are_those_of_smoldot(cases: list[Case]) -> None:
    for vector in cases:
        held = dict(unhex_pairs(vector["kv"]))
        for version in StateVersion:
            db, root = build_database(held, state_version=version)
            nodes = sorted(db.get(node_hash) or b"" for node_hash in db)
            if held:
                assert len(nodes) == vector[f"node_count_v{version}"], vector["name"]
                assert blake2_256(b"".join(nodes)) == unhex(vector[f"nodes_digest_v{version}"]), vector["name"]
            for case in vector["proofs"]:
                keys = unhex_all(case["keys"] if "keys" in case else [case["key"]])
                proof = StorageProof(unhex_all(case[f"proof_v{version}"]))
                assert StorageProof.generate(db, root, keys) == proof, vector["name"]
                verified = proof.verify(root, keys, strict=True)
                assert dict(verified.values) == {key: held.get(key) for key in keys}, vector["name"]
                if "value" in case:
                    assert verified[keys[0]] == unhex_or_none(case["value"]), vector["name"]


@given(pairs_with_questions(), state_versions)
def test_a_proof_gives_what_the_trie_holds(drawn: tuple[Pairs, list[bytes]], version: StateVersion) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=version)
    proof = StorageProof.generate(db, root, questions)
    assert proof.nodes == reference.prove(held, questions, state_version=version)
    if questions:
        verified = proof.verify(root, questions, strict=True)
        assert isinstance(verified, VerifiedProof)
        assert (verified.root, dict(verified.values)) == (root, {key: held.get(key) for key in questions})


def made(name: str, why: str, version: int, held: Pairs, keys: list[bytes]) -> ProofMade:
    return ProofMade(
        id=f"proofs/proof/{name}",
        why=why,
        source=VectorSource(upstream="prove_read"),
        state_version=version,
        pairs=entries(held),
        keys=list(map(hexed, keys)),
    )


@yields("proofs/tries")
@pytest.mark.parametrize(
    ("trie", "keys", "why"),
    [
        ("prefix", [b"do"], "a value in a branch"),
        ("prefix", [b"d"], "a key that ends above the branch"),
        ("prefix", [b"dogs"], "a key that goes on below a leaf"),
        ("prefix", [b"cat"], "a key that parts from the root's partial key"),
        ("full-branch", [b"\x30"], "one child of sixteen"),
        ("full-branch", [b"\x30", b"\x31", b"\x40"], "two children, and an absence below one of them"),
        ("value-33", [b"a"], "an external value is part of the proof"),
        ("value-33", [b"b"], "an external value that is not read is no part of it"),
        ("external-twice", [b"a", b"b"], "one external value stands for both keys"),
        ("inline", [b"\x11\x11"], "inline nodes are part of their parents"),
        ("empty", [b"a"], "absence in an empty trie: the empty node"),
        ("one", [], "no keys: no nodes"),
    ],
)
def test_a_proof_holds_the_nodes_on_the_way_and_no_other(
    trie: str, keys: list[bytes], why: str
) -> Iterator[ProofVector]:
    at = "-".join(key.hex() for key in keys) or "none"
    yield made(f"{trie}-{at}", why, 1, TRIES[trie][1], keys)


@yields("proofs/tries")
@pytest.mark.parametrize("number", range(12))
def test_a_proof_of_random_keys_holds_the_nodes_on_the_way(number: int) -> Iterator[ProofVector]:
    random = Random(f"proof 7 {number}")
    held = drawn_pairs(random, 14)
    why = f"keys that are there and keys that are not, number {number}"
    yield made(f"random-{number}", why, number % 2, held, drawn_keys(random, held))


@given(pairs_with_questions(), state_versions)
def test_a_proof_comes_back_from_its_bytes(drawn: tuple[Pairs, list[bytes]], version: StateVersion) -> None:
    held, questions = drawn
    proof = StorageProof.generate(*build_database(held, state_version=version), questions)
    encoded = proof.encode()
    assert encoded == encode_vec(encode_bytes(node) for node in sorted(proof.nodes))
    assert StorageProof.decode(encoded) == proof
    with pytest.raises(CodecError):
        StorageProof.decode(encoded + b"\x00")
    with pytest.raises(CodecError):
        StorageProof.decode(encoded[:-1])


@given(pairs_with_questions(), pairs_with_questions(), state_versions)
def test_merged_proofs_prove_what_each_proves(
    left: tuple[Pairs, list[bytes]], right: tuple[Pairs, list[bytes]], version: StateVersion
) -> None:
    sources = [(held, build_database(held, state_version=version), questions) for held, questions in (left, right)]
    proofs = [StorageProof.generate(*built, questions) for _, built, questions in sources]
    merged = StorageProof.merge(proofs)
    assert merged.nodes == proofs[0].nodes | proofs[1].nodes
    assert StorageProof.merge(reversed(proofs)) == StorageProof.merge([merged, *proofs]) == merged
    for held, (_, root), questions in sources:
        assert dict(merged.verify(root, questions).values) == {key: held.get(key) for key in questions}


def test_merging_nothing_gives_the_empty_proof() -> None:
    assert StorageProof.merge([]) == StorageProof()
    assert not StorageProof.merge([])
    assert StorageProof().encode() == b"\x00"


@given(st.binary(max_size=100))
def test_any_bytes_are_a_proof_or_refused(data: bytes) -> None:
    try:
        proof = StorageProof.decode(data)
    except CodecError:
        return
    assert len(proof.encode()) <= len(data)  # repetitions are gone, nothing is added
    with pytest.raises(ProofError):
        proof.verify(bytes(32), [b"key"])


@pytest.mark.parametrize(
    "announced",
    [
        "02093d00",  # a million nodes, none there
        "feffffff",
        "03ffffffff",
        "13ffffffffffffffff",
    ],
)
def test_a_count_of_nodes_that_are_not_there_is_refused_at_once(announced: str) -> None:
    with pytest.raises(CodecError) as refusal:
        StorageProof.decode(bytes.fromhex(announced))
    assert refusal.value.offset == 0


def test_nodes_that_no_key_needs_are_tolerated_unless_verification_is_strict() -> None:
    db, root = build_database({b"\x10": bytes(40), b"\x20": bytes(41)}, state_version=StateVersion.V1)
    both = StorageProof.generate(db, root, [b"\x10", b"\x20"])
    one = StorageProof.generate(db, root, [b"\x10"])
    assert both.verify(root, [b"\x10"])[b"\x10"] == bytes(40)
    with pytest.raises(UnusedNodes) as refusal:
        both.verify(root, [b"\x10"], strict=True)
    assert refusal.value.hashes == tuple(sorted(map(blake2_256, both.nodes - one.nodes)))
    assert one.verify(root, [b"\x10"], strict=True)[b"\x10"] == bytes(40)


def test_a_node_that_comes_twice_is_tolerated_unless_verification_is_strict() -> None:
    db, root = build_database({b"key": b"value"}, state_version=StateVersion.V1)
    (node,) = StorageProof.generate(db, root, [b"key"]).nodes
    twice = StorageProof([node, node])
    assert (twice.nodes, len(twice)) == (frozenset({node}), 1)
    assert twice.verify(root, [b"key"])[b"key"] == b"value"
    for refused in (
        lambda: twice.verify(root, [b"key"], strict=True),
        lambda: StorageProof.without_duplicates([node, node]),
    ):
        with pytest.raises(DuplicateNode) as refusal:
            refused()
        assert refusal.value.node_hash == root
    assert StorageProof.without_duplicates([node]) == twice


def test_duplicates_survive_decoding_so_that_strict_verification_sees_them() -> None:
    db, root = build_database({b"key": b"value"}, state_version=StateVersion.V1)
    (node,) = StorageProof.generate(db, root, [b"key"]).nodes
    with pytest.raises(DuplicateNode):
        StorageProof.decode(encode_vec([encode_bytes(node)] * 2)).verify(root, [b"key"], strict=True)


HOLDS = VectorSource(upstream="read_proof_check")


@yields("proofs/tries")
@pytest.mark.parametrize("number", range(6))
def test_an_honest_proof_holds_in_any_order(number: int) -> Iterator[ProofVector]:
    random, root, nodes, keys = drawn_proof(number)
    random.shuffle(nodes)
    yield verification(f"holds-{number}", "an honest proof in any order", HOLDS, root, nodes, keys, strict=True)


@yields("proofs/tries")
@pytest.mark.parametrize("strict", [False, True])
def test_nothing_needs_to_be_proven_about_the_empty_trie(strict: bool) -> Iterator[ProofVector]:
    why = "an empty trie needs no node"
    yield verification("empty-trie", why, HOLDS, EMPTY_ROOT, [], [b"a"], strict=strict)
    yield verification("empty-node", "its node may be given", HOLDS, EMPTY_ROOT, [b"\x00"], [b"a"], strict=strict)


@yields("proofs/tries")
@pytest.mark.parametrize("strict", [False, True])
def test_a_proof_is_about_the_keys_that_are_read(strict: bool) -> Iterator[ProofVector]:
    _, root, nodes, keys = drawn_proof(0)
    yield verification("no-keys", "nothing is read", HOLDS, root, [], [], strict=strict)
    unread = verification("no-keys-nodes", "nothing is read, nodes are given", HOLDS, root, nodes, [], strict=strict)
    assert finding(unread).error == ("UnusedNodes" if strict else None)
    yield unread
    yield verification("nothing", "no node at all", HOLDS, root, [], keys, strict=strict)
    yield verification("same-key", "a key twice", HOLDS, root, nodes, [*keys, keys[0]], strict=strict)


@pytest.mark.parametrize("nodes", [b"bytes are numbers one by one", [7], ["0x00"], [None]])
def test_a_node_that_is_not_bytes_is_a_slip_of_the_caller(nodes: list[bytes]) -> None:
    with pytest.raises(TypeError, match="bytes"):
        StorageProof(nodes)


@pytest.mark.parametrize("keys", [b"key", ["key"], [7]])
def test_keys_that_are_not_bytes_are_a_slip_of_the_caller(keys: list[bytes]) -> None:
    db, root = build_database({b"key": b"value"}, state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, [b"key"])
    with pytest.raises(TypeError, match="a key is bytes, got"):
        proof.verify(root, keys)
    with pytest.raises(TypeError, match="a key is bytes, got"):
        StorageProof.generate(db, root, keys)


def test_only_keys_that_were_asked_for_can_be_read() -> None:
    db, root = build_database({b"key": b"value"}, state_version=StateVersion.V1)
    verified = StorageProof.generate(db, root, [b"key"]).verify(root, [b"key"])
    with pytest.raises(KeyError):
        verified[b"other"]
    with pytest.raises(TypeError):
        verified.values[b"other"] = b""  # type: ignore[index]


@pytest.mark.parametrize("hasher", HASHERS.values(), ids=lambda hasher: hasher.name)
def test_a_proof_holds_under_the_hasher_of_its_trie_alone(hasher: Hasher) -> None:
    held = {bytes([n]): bytes([n]) * 40 for n in range(20)}
    db, root = build_database(held, state_version=StateVersion.V1, hasher=hasher)
    proof = StorageProof.generate(db, root, [b"\x05"], hasher=hasher)
    assert proof.verify(root, [b"\x05"], strict=True, hasher=hasher)[b"\x05"] == bytes([5]) * 40
    with pytest.raises(DuplicateNode) as refusal:
        StorageProof([*proof, *proof]).verify(root, [b"\x05"], strict=True, hasher=hasher)
    assert refusal.value.node_hash in proof.by_hash(hasher)
    compact = CompactProof.encode(proof, root, hasher=hasher)
    assert compact.decode(root, hasher=hasher) == (proof, root)
    for other in HASHERS.values():
        if other is not hasher:
            with pytest.raises(RootMismatch):
                proof.verify(root, [b"\x05"], hasher=other)
            with pytest.raises(RootMismatch):
                compact.decode(root, hasher=other)


def test_many_proofs_give_each_its_own_result() -> None:
    db, root = build_database({b"\x10": bytes(40), b"\x20": bytes(41)}, state_version=StateVersion.V1)
    good = StorageProof.generate(db, root, [b"\x10"])
    results = StorageProof.verify_many([root, root, bytes(32)], [good, good, good], [[b"\x10"], [b"\x20"], [b"\x10"]])
    assert isinstance(results[0], VerifiedProof)
    assert results[0][b"\x10"] == bytes(40)
    assert [type(result) for result in results[1:]] == [MissingNode, RootMismatch]
    with pytest.raises(ValueError, match="zip"):
        StorageProof.verify_many([root], [good, good], [[b"\x10"]])


def test_a_database_of_the_proof_answers_like_the_database() -> None:
    held = {bytes([n]): bytes(n) for n in range(0, 250, 10)}
    db, root = build_database(held, state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, [b"\x14", b"\x15"])
    trie = TrieDB(MemoryDB(proof.nodes), root)
    assert (trie.get(b"\x14"), trie.get(b"\x15")) == (bytes(20), None)


@pytest.mark.parametrize("engine", ["auto", "plain", "array"])
def test_many_proofs_give_the_same_results_with_every_engine(engine: Engine) -> None:
    db, root = build_database({bytes([number]): bytes(40) for number in range(50)}, state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, [b"\x01", b"\x99"])
    short = StorageProof(list(proof)[1:])
    held, failed = StorageProof.verify_many(
        [root, root], [proof, short], [[b"\x01", b"\x99"], [b"\x01"]], engine=engine
    )
    assert isinstance(held, VerifiedProof)
    assert dict(held.values) == {b"\x01": bytes(40), b"\x99": None}
    assert dict(pickle.loads(pickle.dumps(held)).values) == dict(held.values)
    assert isinstance(failed, ProofError)
    with pytest.raises(type(failed)):
        short.verify(root, [b"\x01"])


def test_there_is_no_other_engine() -> None:
    with pytest.raises(ValueError, match="engine must be one of auto, plain, array, got 'fast'"):
        StorageProof.verify_many([], [], [], engine="fast")  # type: ignore[arg-type]


class LyingDatabase(MemoryDB):
    """Holds two tries, and gives the root node of the ``other`` under the ``root`` that it is asked for."""

    def __init__(self, tries: list[MemoryDB], root: bytes, other: bytes) -> None:
        super().__init__(node for db in tries for node_hash in db if (node := db.get(node_hash)) is not None)
        self._root, self._other = root, other

    def get(self, node_hash: bytes, /) -> bytes | None:
        return super().get(self._other if node_hash == self._root else node_hash)


@pytest.mark.parametrize("honest_first", [True, False])
def test_a_database_that_lies_takes_nothing_from_the_proofs_that_its_own_is_merged_with(honest_first: bool) -> None:
    held = {bytes([number]): bytes([number]) * 40 for number in range(40)}
    db, root = build_database(held, state_version=StateVersion.V1)
    other_db, other = build_database({**held, b"\x05": b"lie" * 14}, state_version=StateVersion.V1)
    lying = LyingDatabase([db, other_db], root, other)
    honest, lie = (StorageProof.generate(it, root, [b"\x05"]) for it in (db, lying))
    with pytest.raises(RootMismatch):
        lie.verify(root, [b"\x05"])
    merged = StorageProof.merge([honest, lie] if honest_first else [lie, honest])
    assert merged == StorageProof([*honest.nodes, *lie.nodes])
    assert merged.verify(root, [b"\x05"]).values == {b"\x05": b"\x05" * 40}
