"""Proofs in batches: the values and the errors of the plain verifier, proof by proof; compact proofs; path traces."""

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proof_vectors import with_children
from relaycast_trie import (
    ArrayTrie,
    ChildInfo,
    CompactProof,
    IncompleteProof,
    InvalidNode,
    MissingNode,
    ProofError,
    RootMismatch,
    StateVersion,
    StorageProof,
    UnusedNodes,
    blake2_256,
    build_database,
)
from relaycast_trie.array.array_proofs import (
    ArrayCompactProof,
    ArrayProof,
    compact_from_bytes,
    decode_compact,
    encode_compact,
    trace_paths,
    verify_many,
)
from relaycast_trie.engine import array_engine
from relaycast_trie.kernels.compiling import JIT
from shared_vectors import Case, over, unhex, unhex_all
from strategies import pairs_with_questions, some_pairs, state_versions


def outcome(root: bytes, proof: StorageProof, keys: list[bytes], *, strict: bool) -> object:
    """Return what the plain verifier makes of a proof, in a form that compares."""
    try:
        return dict(StorageProof(proof.nodes).verify(root, keys, strict=strict).values)
    except ProofError as error:
        return type(error), error.args


def outcomes(roots: list[bytes], proofs: list[StorageProof], keys: list[list[bytes]], *, strict: bool) -> list[object]:
    results = verify_many(roots, proofs, keys, strict=strict)
    return [
        (type(result), result.args) if isinstance(result, ProofError) else dict(result.values) for result in results
    ]


@st.composite
def tampered(draw: st.DrawFn) -> tuple[bytes, StorageProof, list[bytes]]:
    held, questions = draw(pairs_with_questions())
    trie = ArrayTrie.from_pairs(held, state_version=draw(state_versions))
    nodes = sorted(trie.prove(questions).nodes)
    root = trie.root
    match draw(st.sampled_from(["none", "drop", "flip", "cut", "junk", "root", "empty"])):
        case "drop" if nodes:
            nodes.pop(draw(st.integers(0, len(nodes) - 1)))
        case "flip" if nodes:
            at = draw(st.integers(0, len(nodes) - 1))
            if nodes[at]:
                byte = draw(st.integers(0, len(nodes[at]) - 1))
                changed = bytearray(nodes[at])
                changed[byte] ^= 1 << draw(st.integers(0, 7))
                nodes[at] = bytes(changed)
        case "cut" if nodes:
            at = draw(st.integers(0, len(nodes) - 1))
            nodes[at] = nodes[at][: draw(st.integers(0, len(nodes[at])))]
        case "junk":
            nodes.append(draw(st.binary(max_size=80)))
        case "root":
            only = draw(st.binary(max_size=80))
            nodes, root = [only], blake2_256(only)
        case "empty":
            nodes = []
        case _:
            pass
    return root, StorageProof(nodes), questions


@given(st.lists(tampered(), max_size=5), st.booleans())
def test_a_batch_gives_what_the_plain_verifier_gives(
    batch: list[tuple[bytes, StorageProof, list[bytes]]], strict: bool
) -> None:
    roots, proofs, keys = (
        [root for root, _, _ in batch],
        [proof for _, proof, _ in batch],
        [some for _, _, some in batch],
    )
    assert outcomes(roots, proofs, keys, strict=strict) == [outcome(*one, strict=strict) for one in batch]


@over("trie_db/node_decode.json", slices=4)
def test_hostile_nodes_as_roots_decode_or_fail_as_in_the_plain_codec(cases: list[Case]) -> None:
    nodes = [unhex(case["data"]) for case in cases]
    roots = [blake2_256(node) for node in nodes]
    keys = [[b"", b"\x01", b"\x12\x34" * 20] for _ in nodes]
    proofs = [StorageProof([node]) for node in nodes]
    expected = [outcome(*one, strict=False) for one in zip(roots, proofs, keys, strict=True)]
    assert outcomes(roots, proofs, keys, strict=False) == expected


@over("trie_db/invalid_proofs.json", slices=3)
def test_broken_proofs_fail_key_by_key_as_in_trie_db(cases: list[Case]) -> None:
    kinds = {"InvalidStateRoot": RootMismatch, "IncompleteDatabase": MissingNode, "DecoderError": InvalidNode}
    for case in cases:
        root, keys = unhex(case["root"]), unhex_all(case["keys"])
        for broken in case["cases"]:
            if broken["type"] != "storage_proof":
                continue
            proof = StorageProof(unhex_all(broken["nodes"]))
            results = verify_many([root] * len(keys), [proof] * len(keys), [[key] for key in keys])
            for key, result, told in zip(keys, results, broken["outcomes"], strict=True):
                if "err" in told:
                    assert isinstance(result, kinds.get(told["err"], ProofError)), (broken["mutation"], key.hex())
                else:
                    assert not isinstance(result, ProofError)
                    assert result.values[key] == (None if told["ok"] is None else unhex(told["ok"]))


def test_strict_refuses_unused_and_repeated_nodes_and_tolerant_does_not() -> None:
    trie = ArrayTrie.from_pairs({bytes([i]) * 4: bytes([i]) * 40 for i in range(40)})
    nodes = sorted(trie.prove([b"\x01" * 4]).nodes)
    more, twice = StorageProof([*nodes, b"junk"]), StorageProof([*nodes, nodes[0]])
    tolerant = verify_many([trie.root] * 2, [more, twice], [[b"\x01" * 4]] * 2)
    assert not any(isinstance(result, ProofError) for result in tolerant)
    strict = verify_many([trie.root] * 2, [more, twice], [[b"\x01" * 4]] * 2, strict=True)
    assert [type(result).__name__ for result in strict] == ["UnusedNodes", "DuplicateNode"]
    assert isinstance(strict[0], UnusedNodes)
    assert strict[0].hashes == (blake2_256(b"junk"),)


def test_lists_of_different_lengths_and_short_roots_are_the_callers_slips() -> None:
    with pytest.raises(ValueError, match="2 roots, 1 proofs and 1 lists of keys"):
        verify_many([b"\x00" * 32] * 2, [StorageProof()], [[]])
    with pytest.raises(ValueError, match="a root has 32 bytes"):
        verify_many([b"\x00"], [StorageProof()], [[]])


def test_no_proofs_give_no_results() -> None:
    assert verify_many([], [], []) == []


def test_a_proof_in_arrays_is_a_storage_proof_like_any_other() -> None:
    trie = ArrayTrie.from_pairs({bytes([i]) * 4: b"same value of more than 32 bytes, external" for i in range(30)})
    proof = trie.prove([bytes([i]) * 4 for i in range(30)])
    twin = StorageProof(proof.nodes)
    assert proof == twin
    assert twin == proof
    assert hash(proof) == hash(twin)
    assert len(proof) == len(twin)
    assert proof.encode() == twin.encode()
    assert list(proof) == list(twin)
    assert pickle.loads(pickle.dumps(proof)) == twin
    assert StorageProof.merge([proof, twin]) == twin
    assert not isinstance(verify_many([trie.root], [proof], [[b"\x01" * 4]], strict=False)[0], ProofError)


def whole(proof: StorageProof, root: bytes) -> object:
    """Return what the plain codec makes of a proof, an error in a form that compares."""
    return made(CompactProof.of_nodes, proof.by_hash(), root)


def made(work: Callable[..., object], *given: object) -> object:
    try:
        return work(*given)
    except Exception as error:
        return type(error), error.args


@st.composite
def proofs_with_children(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """Draw a root and the nodes of proofs below it, in the top trie and in child tries."""
    version = draw(state_versions)
    named = draw(st.dictionaries(st.binary(max_size=2), some_pairs, max_size=3))
    held, questions = draw(pairs_with_questions())
    db, root, _ = with_children(held, named, version)
    proofs = [StorageProof.generate(db, root, questions or [b""])]
    for name in draw(st.sets(st.sampled_from(sorted(named)))) if named else ():
        asked = list(named[name]) if draw(st.booleans()) else []
        proofs.append(StorageProof.generate_child(db, root, ChildInfo(name), asked))
    return root, sorted(StorageProof.merge(proofs).nodes)


@given(proofs_with_children())
def test_compact_proofs_equal_those_of_the_plain_codec_both_ways(proven: tuple[bytes, list[bytes]]) -> None:
    root, nodes = proven
    proof = StorageProof(nodes)
    expected = whole(proof, root)
    assert isinstance(expected, CompactProof)
    compact = encode_compact(ArrayProof(nodes), root)
    if compact is None:  # a few nodes that many places share
        assert len(expected.nodes) > 2 * len(nodes)
        compact = expected
    assert (compact, hash(compact), compact.to_bytes(), compact.proof_bytes) == (
        expected,
        hash(expected),
        expected.to_bytes(),
        expected.proof_bytes,
    )
    assert pickle.loads(pickle.dumps(compact)) == expected
    assert compact_from_bytes(compact.to_bytes()) in (None, expected)
    for given_proof in (compact, expected):
        assert decode_compact(given_proof) == (proof, root) == given_proof.decode(root)
        assert made(given_proof.decode, bytes(32)) == made(expected.decode_plainly, bytes(32))


@given(proofs_with_children(), st.data())
def test_a_spoiled_compact_proof_fails_as_in_the_plain_codec(
    proven: tuple[bytes, list[bytes]], data: st.DataObject
) -> None:
    root, nodes = proven
    compact = whole(StorageProof(nodes), root)
    assert isinstance(compact, CompactProof)
    changed = []
    for given_nodes in (nodes, list(compact.nodes)):
        at = data.draw(st.integers(0, len(given_nodes) - 1))
        byte = data.draw(st.integers(0, max(0, len(given_nodes[at]) - 1)))
        flipped = bytearray(given_nodes[at] or b"\x00")
        flipped[byte] ^= 1 << data.draw(st.integers(0, 7))
        middle = [[], [bytes(flipped)], given_nodes[at : at + 1] * 2, [given_nodes[at][:byte]], given_nodes[at:][::-1]]
        changed.append([*given_nodes[:at], *data.draw(st.sampled_from(middle)), *given_nodes[at + 1 :]])
    proof, spoiled = StorageProof(changed[0]), CompactProof(tuple(changed[1]))
    assert encode_compact(proof, root) in (None, whole(proof, root))
    assert made(CompactProof.encode, proof, root) == whole(proof, root)
    assert decode_compact(spoiled) in (None, made(spoiled.decode_plainly))
    for expected_root in (None, root):
        assert made(spoiled.decode, expected_root) == made(spoiled.decode_plainly, expected_root)


@over("trie_db/proofs.json", slices=8)
def test_compact_proofs_are_those_of_trie_db(cases: list[Case]) -> None:
    for case in cases:
        proof, root = StorageProof(unhex_all(case["storage_proof"])), unhex(case["root"])
        compact = encode_compact(proof, root) or CompactProof.of_nodes(proof.by_hash(), root)
        assert list(compact.nodes) == unhex_all(case["compact_proof"]), case["set"]
        assert decode_compact(compact) == (proof, root)


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_junk_in_place_of_a_compact_proof_fails_as_in_the_plain_codec(nodes: list[bytes]) -> None:
    junk = CompactProof(tuple(nodes))
    assert decode_compact(junk) in (None, made(junk.decode_plainly))
    for root in map(blake2_256, nodes):
        assert encode_compact(StorageProof(nodes), root) in (None, whole(StorageProof(nodes), root))


def test_large_compact_proofs_go_through_arrays_and_say_the_same() -> None:
    """What users call: from a proof to bytes and back, with child tries behind the top trie and without any."""
    held = {blake2_256(bytes([i])): bytes([i]) * 40 for i in range(200)}
    plain = with_children({b":code": b"code"}, {b"one": held, b"two": {b"k": b"v"}})
    for db, root, wanted in ((*build_database(held, state_version=StateVersion.V1), held), (*plain[:2], None)):
        proof = (
            StorageProof.generate(db, root, wanted)
            if wanted
            else StorageProof.generate_child(db, root, ChildInfo(b"one"), held)
        )
        array_engine("warm_up").compact_proofs()
        compact = CompactProof.encode(proof, root)
        assert isinstance(compact, ArrayCompactProof) == JIT
        assert compact == whole(proof, root)
        again = CompactProof.from_bytes(compact.to_bytes())
        decoded, found = again.decode(root)
        assert (again, decoded, found) == (compact, proof, root)
        assert isinstance(decoded, ArrayProof) == JIT
        with pytest.raises(RootMismatch):
            again.decode(bytes(32))
        with pytest.raises(IncompleteProof):
            CompactProof(again.nodes[:-1]).decode()


def test_a_trace_tells_what_is_needed_and_how_deep_paths_are() -> None:
    held = {blake2_256(bytes([i])): b"v" * 40 for i in range(60)}
    trie = ArrayTrie.from_pairs(held)
    wanted = sorted(held)[:3]
    nodes = sorted(trie.prove(wanted).nodes)
    cached = [node for node in nodes if blake2_256(node) == trie.root]
    traced = trace_paths(trie.root, [*nodes, b"junk"], wanted, cached=cached)
    assert traced.complete.all()
    assert traced.kept.tolist() == [True]
    assert traced.needed.tolist() == [node not in cached for node in nodes] + [False]
    assert traced.proof_bytes.tolist() == [len(node) for node in [*nodes, b"junk"]]
    for depth, path in zip(traced.depths.tolist(), traced.paths, strict=True):
        assert len(path) == depth
        assert path[0] == len(nodes) + 1, "the root comes from the cache"
    without_root = trace_paths(trie.root, [node for node in nodes if node not in cached], wanted)
    assert not without_root.complete.any()
    assert without_root.depths.tolist() == [0, 0, 0]
    assert not without_root.needed.any()


def test_a_key_that_ends_where_others_went_on_is_read_no_further() -> None:
    """Its last nibble leads to a branch without a partial key whose children an earlier key has looked for."""
    held = {bytes.fromhex(key): key.encode() for key in ("0100aa", "0110bb", "00", "10")}
    trie = ArrayTrie.from_pairs(held)
    for keys in (sorted(held), sorted(held)[::-1]):
        for last in (b"\x01", b"", b"\x01\x00"):
            asked = [*keys, last, *keys, last]
            proof = trie.prove(asked)
            assert outcomes([trie.root], [proof], [asked], strict=True) == [{last: None} | held]


@pytest.mark.parametrize("cut", range(1, 70, 7))
def test_a_node_that_does_not_decode_ends_every_path_that_comes_to_it(cut: int) -> None:
    held = {bytes([16 * i, i]): b"v" * 20 for i in range(4)}
    (whole,) = ArrayTrie.from_pairs(held).prove([b""]).nodes
    spoiled = whole[: len(whole) - cut]
    traced = trace_paths(blake2_256(spoiled), [spoiled], [*held, *held])
    assert not traced.complete.any()
    assert traced.depths.tolist() == [1] * 8
