"""Foreign proofs verified, followed, written compactly and decoded in bulk, as the plain engine does it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from exercise.drawing import HEADERS, LIES, Exercise
from exercise.outcomes import outcome, result
from relaycast_trie import ArrayTrie, CompactProof, StateVersion, StorageProof, TrieDB, blake2_256, trie_root
from relaycast_trie.array import array_proofs
from relaycast_trie.array.array_proofs import decode_compact, decode_proofs, trace_paths, verify_columns, verify_many
from relaycast_trie.array.array_proofs import encode_compact as encode_proof
from relaycast_trie.scale import encode_bytes, encode_vec


def foreign_proofs(draw: Exercise) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
    """Yield roots, nodes and keys: some sound, some spoiled, some forged, some short of a node or with one too many."""
    held = draw.pairs(25)
    version = draw.random.choice(list(StateVersion))
    trie = ArrayTrie.from_pairs(held, state_version=version)
    assert trie_root(held, state_version=version, engine="array") == trie.root
    wanted = draw.questions(held)
    nodes = sorted(trie.prove(wanted).nodes)
    yield trie.root, nodes, wanted
    yield trie.root, [], wanted
    yield trie.root, nodes, []
    yield trie.root, nodes[1:], wanted
    yield trie.root, [*nodes, *nodes[:1], draw.spoiled(b"more" * 9)], wanted
    for header in HEADERS:
        junk = header + draw.random.randbytes(50)
        yield blake2_256(junk), [junk], wanted
    for _ in range(4 if nodes else 0):
        yield *draw.forged(trie.root, nodes), wanted
        yield trie.root, [draw.spoiled(node) if draw.random.random() < 0.3 else node for node in nodes], wanted


def proofs_are_verified(draw: Exercise) -> None:
    """Verify many foreign proofs in one call, as sets and in columns; follow their paths; write them compactly."""
    batch = [one for _ in range(3) for one in foreign_proofs(draw)]
    roots, sent, wanted = (list(part) for part in zip(*batch, strict=True))
    proofs = [StorageProof(nodes) for nodes in sent]
    for strict in (False, True):
        expected = [
            outcome(result(proof.verify, root, keys, strict=strict))
            for root, proof, keys in zip(roots, proofs, wanted, strict=True)
        ]
        assert [outcome(it) for it in verify_many(roots, proofs, wanted, strict=strict)] == expected
        verdicts = verify_columns(
            np.frombuffer(b"".join(roots), np.uint8).reshape(-1, 32),
            *in_columns(sent),
            *in_columns(wanted),
            strict=strict,
        )
        for number, said in enumerate(expected):
            error = verdicts.errors.get(number)
            assert (type(error), error.args) == said if error else isinstance(said, dict)
            present = sum(said[key] is not None for key in wanted[number]) if isinstance(said, dict) else 0
            assert verdicts.present[number] == present
    for root, nodes, keys in batch:
        one_by_one(root, StorageProof(nodes), keys)
        paths_are_followed(draw, root, nodes, keys)
        compact_proofs(draw, root, StorageProof(nodes))


def one_by_one(root: bytes, proof: StorageProof, keys: list[bytes]) -> None:
    """Take one proof to SCALE bytes and back, and verify what was given and what came back."""
    encoded = array_proofs.encode_one(proof)
    assert encoded == encode_vec(encode_bytes(node) for node in proof)
    decoded = array_proofs.decode_one(encoded) or proof
    assert decoded == proof
    for strict in (False, True):
        expected = outcome(result(proof.verify_plainly, root, keys, strict=strict))
        assert outcome(result(array_proofs.verify_one, proof, root, keys, strict=strict)) == expected
        if not strict or proof.repeated is None:
            assert outcome(result(array_proofs.verify_one, decoded, root, keys, strict=strict)) == expected


def in_columns(groups: list[list[bytes]]) -> tuple[tuple[Any, Any], Any]:
    """Return all strings of all groups with their offsets, and where each group ends."""
    strings = [string for group in groups for string in group]
    data = np.frombuffer(b"".join(strings), np.uint8)
    return (data, np.cumsum([0, *map(len, strings)])), np.cumsum([0, *map(len, groups)])


def paths_are_followed(draw: Exercise, root: bytes, nodes: list[bytes], keys: list[bytes]) -> None:
    """What pruning asks: which nodes keys need beside a cache. A key that the plain engine reads has a whole path."""
    cached = [node for node in nodes if draw.random.random() < 0.4]
    given = [node for node in nodes if draw.random.random() < 0.8]
    known = {blake2_256(node): node for node in cached + given}
    traced = trace_paths(root, given, keys, cached=cached)
    assert traced.proof_bytes.tolist() == [len(node) for node in given]
    read = [root in known and not isinstance(result(TrieDB(known, root).get, key), tuple) for key in keys]
    assert traced.complete.tolist() == read
    whole = [key for key, complete in zip(keys, read, strict=True) if complete]
    if whole:
        needed = [node for node, is_needed in zip(given, traced.needed, strict=True) if is_needed]
        StorageProof([*needed, *cached]).verify(root, whole)


def compact_proofs(draw: Exercise, root: bytes, proof: StorageProof) -> None:
    """Compact proofs both ways, also of foreign nodes, and spoiled once they are compact."""
    expected = result(CompactProof.of_nodes, proof.by_hash(), root)
    assert result(encode_proof, proof, root) in (expected, None)
    if not isinstance(expected, CompactProof):
        return
    nodes = list(expected.nodes)
    given = [nodes, nodes[:-1], [*nodes, b""]]
    for _ in range(3):
        at = draw.random.randrange(len(nodes))
        given.append([*nodes[:at], draw.spoiled(nodes[at]), *nodes[at + 1 :]])
    for some in given:
        compact = CompactProof(tuple(some))
        assert result(decode_compact, compact) in (result(compact.decode_plainly), None)


def encoded_proofs(draw: Exercise) -> None:
    """Decode many encoded proofs in one call, spoiled ones between sound ones, behind bytes that belong to nobody."""
    sound = [
        encode_vec(encode_bytes(draw.value() * draw.random.choice([1, 60])) for _ in range(draw.random.randrange(5)))
        for _ in range(9)
    ]
    sent = [one for proof in sound for one in (proof, draw.spoiled(proof), draw.random.choice(LIES), b"")]
    ends = 3 + np.cumsum([0, *map(len, sent)])
    found = decode_proofs(np.frombuffer(b"abc" + b"".join(sent), np.uint8), ends)
    strings, offsets = found.nodes
    for number, proof in enumerate(sent):
        first, end = found.node_ends[number : number + 2]
        nodes = [strings[offsets[i] : offsets[i + 1]].tobytes() for i in range(first, end)]
        said = result(StorageProof.decode, proof)
        assert found.spoiled[number] == isinstance(said, tuple)
        assert nodes == [] if found.spoiled[number] else StorageProof(nodes) == said
