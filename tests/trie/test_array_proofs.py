"""Proofs in batches: the values and the errors of the plain verifier, proof by proof; compact proofs; path traces."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import (
    ArrayTrie,
    CompactProof,
    InvalidNode,
    MissingNode,
    ProofError,
    RootMismatch,
    StateVersion,
    StorageProof,
    UnusedNodes,
    blake2_256,
)
from relaycast_trie.array.array_proofs import decode_compact, encode_compact, trace_paths, verify_many
from shared_vectors import Case, over, unhex, unhex_all
from strategies import Pairs, pairs_with_questions, state_versions


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


@given(pairs_with_questions(), state_versions)
def test_compact_proofs_equal_those_of_the_plain_codec_both_ways(
    asked: tuple[Pairs, list[bytes]], state_version: StateVersion
) -> None:
    held, questions = asked
    trie = ArrayTrie.from_pairs(held, state_version=state_version)
    proof = trie.prove(questions)
    if not questions:
        return
    compact = encode_compact(proof, trie.root)
    expected = CompactProof.encode(StorageProof(proof.nodes), trie.root)
    assert compact == expected
    assert hash(compact) == hash(expected)
    for given_proof in (compact, expected):
        decoded, root = decode_compact(given_proof, trie.root)
        assert (decoded, root) == (proof, trie.root)
    with pytest.raises(RootMismatch):
        decode_compact(compact, b"\x00" * 32)


@over("trie_db/proofs.json", slices=8)
def test_compact_proofs_are_those_of_trie_db(cases: list[Case]) -> None:
    for case in cases:
        proof, root = StorageProof(unhex_all(case["storage_proof"])), unhex(case["root"])
        compact = encode_compact(proof, root)
        assert list(compact.nodes) == unhex_all(case["compact_proof"]), case["set"]
        assert decode_compact(compact) == (proof, root)


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_junk_in_place_of_a_compact_proof_fails_as_in_the_plain_codec(nodes: list[bytes]) -> None:
    junk = CompactProof(tuple(nodes))

    def result(decode: object) -> object:
        try:
            return decode()  # type: ignore[operator]
        except Exception as error:
            return type(error), error.args

    assert result(lambda: decode_compact(junk)) == result(junk.decode)


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
