"""Child tries: their roots in the top trie, and proofs that start at the top and end below."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given

from proof_vectors import (
    ChildPairs,
    ProofMade,
    ProofVector,
    drawn_keys,
    drawn_pairs,
    finding,
    published,
    verification,
    with_children,
)
from relaycast_pallets.broadcaster.storage import derive_child_info
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
    blake2_256,
    build_database,
    reference,
)
from shared_vectors import Case, over, unhex, unhex_all, unhex_or_none, unhex_pairs
from strategies import Pairs, pairs_with_questions, some_pairs, state_versions
from vector_fields import VectorSource, entries, hexed, scenario
from yielded_vectors import yields


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


def child(para_id: int, pairs: Pairs) -> ChildPairs:
    return ChildPairs(hexed(derive_child_info(para_id).storage_key), entries(pairs))


def made(
    name: str,
    why: str,
    source: VectorSource,
    keys: list[bytes],
    children: list[ChildPairs],
    *,
    of: bytes | None,
    top: Pairs | None = None,
    version: int = 1,
) -> ProofMade:
    """Return the vector of a proof of keys of the child trie ``of``, or of the top trie."""
    return ProofMade(
        id=f"proofs/child/{name}",
        why=why,
        source=source,
        state_version=version,
        pairs=entries({b":code": b"code", b"other": b"1"} if top is None else top),
        keys=list(map(hexed, keys)),
        children=children,
        child=None if of is None else hexed(of),
    )


@yields("proofs/children")
@pytest.mark.parametrize("para_id", [0, 1_000, 1_999, 2_000, 3_000, (1 << 32) - 1])
def test_the_child_trie_of_a_publisher_is_called_pubsub_and_its_id(para_id: int) -> Iterator[ProofVector]:
    derived = scenario("Relay Proof Collection / Child trie key derivation")
    children, name = [child(para_id, published("a"))], derive_child_info(para_id).storage_key
    why = f"the child trie of publisher {para_id} is called (b'pubsub', {para_id}) in SCALE"
    yield made(f"name-{para_id}", why, derived, [blake2_256(b"a")], children, of=name)
    why = f"the root of publisher {para_id} is a value of the top trie"
    yield made(f"root-{para_id}", why, derived, [CHILD_STORAGE_PREFIX + name], children, of=None)


@yields("proofs/children")
def test_a_proof_of_subscribed_keys_holds_the_paths_to_them_and_no_other() -> Iterator[ProofVector]:
    collected = scenario("Relay Proof Collection / Proof collection for subscriptions")
    keys, name = [blake2_256(name.encode()) for name in "abc"], derive_child_info(1_000).storage_key
    ten = [child(1_000, published("abcdefghij"))]
    yield made("subscribed", "the paths to three keys of ten", collected, keys, ten, of=name)
    for count in (1, 2):
        yield made(f"subscribed-{count}", f"the paths to {count} keys of ten", collected, keys[:count], ten, of=name)
    large = [child(1_000, published("abcdefghij", length=40))]
    yield made("subscribed-large", "values outside of their nodes", collected, keys, large, of=name)
    missing = [*keys, blake2_256(b"missing")]
    yield made("subscribed-missing", "one key was never published", collected, missing, ten, of=name)
    three = [child(para_id, published("abc")) for para_id in (1_000, 1_001, 2_000)]
    yield made("subscribed-one-of-three", "other publishers' tries are no part", collected, keys, three, of=name)


SHAPES = VectorSource(upstream="prove_child_read")
NAME, KEY = derive_child_info(2_000).storage_key, blake2_256(b"a")
THERE = child(2_000, published("ab"))


@yields("proofs/children")
def test_a_child_that_has_no_keys_or_is_not_there_is_proven_absent() -> Iterator[ProofVector]:
    why = "no such child trie: the absence of its root"
    yield made("absent", why, SHAPES, [KEY], [], of=NAME)
    others = [child(2_001, published("a"))]
    yield made("absent-beside", "only another publisher has one", SHAPES, [KEY], others, of=NAME)
    why = "a child trie without keys has no root in the top trie"
    yield made("empty", why, SHAPES, [KEY], [child(2_000, {})], of=NAME)


@yields("proofs/children")
def test_a_proof_of_a_child_leads_through_the_top_trie() -> Iterator[ProofVector]:
    yield made("no-keys", "no keys: the way to the child's root alone", SHAPES, [], [THERE], of=NAME)
    yield made("top-only", "nothing else in the top trie", SHAPES, [KEY], [THERE], top={}, of=NAME)
    twins = [THERE, child(2_001, published("ab"))]
    yield made("twins", "two publishers with equal tries", SHAPES, [KEY], twins, of=NAME)
    large = [child(2_000, published("ab", length=40))]
    for version in (0, 1):
        why = f"state version {version}"
        yield made(f"version-{version}", why, SHAPES, [KEY], large, of=NAME, version=version)
    loan = [ChildPairs(hexed(b"crowdloan"), entries({b"x": b"1"})), THERE]
    yield made("other-kind", "a child trie that is no publisher's", SHAPES, [b"x"], loan, of=b"crowdloan")
    longer = [ChildPairs(hexed(NAME + b"\x00"), entries(published("a"))), THERE]
    yield made("longer-name", "a name that begins with the publisher's", SHAPES, [KEY], longer, of=NAME)


@yields("proofs/children")
@pytest.mark.parametrize("number", range(8))
def test_one_of_three_random_children_is_proven(number: int) -> Iterator[ProofVector]:
    random = Random(f"child 7 {number}")
    ids = random.sample(range(1_990, 2_010), 3)
    tries = {para_id: drawn_pairs(random, random.choice((1, 6))) for para_id in ids}
    keys, top = drawn_keys(random, tries[ids[0]]), drawn_pairs(random, 5)
    children = [child(para_id, pairs) for para_id, pairs in sorted(tries.items())]
    name, why = derive_child_info(ids[0]).storage_key, f"three random child tries, number {number}"
    yield made(f"random-{number}", why, SHAPES, keys, children, of=name, top=top, version=number % 2)


@yields("proofs/children")
@pytest.mark.parametrize("strict", [False, True])
def test_a_proof_of_a_child_holds_with_the_way_to_its_root_alone(strict: bool) -> Iterator[ProofVector]:
    top = {b":code": b"code", b"other": b"1"}
    db, root, roots = with_children(top, {NAME: published("ab")}, StateVersion.V1)
    keys, absent = [KEY, blake2_256(b"missing")], derive_child_info(2_001).storage_key
    nodes = list(StorageProof.generate_child(db, root, ChildInfo.new_default(NAME), keys))
    childless = [node for node in nodes if blake2_256(node) != roots[NAME]]
    topless = [node for node in nodes if blake2_256(node) != root]
    short, small = build_database({CHILD_STORAGE_PREFIX + NAME: bytes(31)}, state_version=StateVersion.V1)
    few = [data for node_hash in short if (data := short.get(node_hash)) is not None]
    for name, why, of_root, given_nodes, asked, of, error in (
        ("holds", "a value and an absence", root, nodes, keys, NAME, None),
        ("no-child", "another publisher has no trie: all keys are absent", root, nodes, keys, absent, "UnusedNodes"),
        ("no-keys", "the way to the child's root is read for no keys, too", root, nodes, [], NAME, "UnusedNodes"),
        ("child-root-missing", "the root of the child trie is missing", root, childless, keys, NAME, "RootMismatch"),
        ("child-root-unread", "its node is not needed for no keys", root, childless, [], NAME, "UnusedNodes"),
        ("top-missing", "the top trie is missing", root, topless, keys, NAME, "RootMismatch"),
        ("no-root", "the value under the child's key has 31 bytes", small, few, keys, NAME, "InvalidChildRoot"),
    ):
        source = VectorSource(upstream="read_child_proof_check")
        vector = verification(name, why, source, of_root, given_nodes, asked, strict=strict, child=of)
        assert finding(vector).error == (error if strict or error != "UnusedNodes" else None)
        yield vector


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
