"""Compact proofs: the bytes of sp-trie, both ways, and what a reader makes of wrong ones."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proof_vectors import (
    TRIES,
    CompactRefused,
    ProofCompacted,
    ProofVector,
    compact_error,
    drawn_keys,
    drawn_pairs,
    published,
    with_children,
)
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_trie import (
    ChildInfo,
    CodecError,
    CompactProof,
    IncompleteProof,
    MissingNode,
    ProofError,
    RelaycastError,
    RootMismatch,
    StateVersion,
    StorageProof,
    blake2_256,
    build_database,
)
from relaycast_trie.exceptions import (
    ExtraneousChildProof,
    ExtraneousNode,
    InvalidChildRoot,
    InvalidNode,
    TooManyBytes,
    TooManyNodes,
)
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, HashedValue, Leaf, Node
from relaycast_trie.node_codec import ESCAPE, MAX_PARTIAL_NIBBLES, decode_node, encode_branch, encode_leaf, encode_node
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_trie.proofs.compact_proof import CHILD_PATH, MAX_REPEATED_BYTES, MAX_REPEATED_NODES
from shared_vectors import Case, over, unhex, unhex_all
from strategies import Pairs, pairs_with_questions, some_pairs, state_versions
from vector_fields import VectorSource, hexed
from yielded_vectors import yields

ERRORS: dict[str, tuple[type[RelaycastError], ...]] = {
    "IncompleteDatabase": (IncompleteProof, MissingNode),
    "DecoderError": (InvalidNode, CodecError),
    "ExtraneousChildNode": (ExtraneousNode,),
}
"""sp-trie's errors, and ours."""


@over("trie_db/proofs.json", slices=2)
def test_a_compact_proof_has_the_bytes_of_sp_trie(cases: list[Case]) -> None:
    for vector in cases:
        root = unhex(vector["root"])
        proof = StorageProof(unhex_all(vector["storage_proof"]))
        compact = CompactProof.encode(proof, root)
        assert list(compact.nodes) == unhex_all(vector["compact_proof"]), vector["set"]
        assert len(compact.to_bytes()) == vector["compact_proof_scale_size"], vector["set"]


@over("trie_db/proofs.json", slices=2)
def test_a_compact_proof_of_sp_trie_gives_its_storage_proof_and_root(cases: list[Case]) -> None:
    for vector in cases:
        root = unhex(vector["root"])
        compact = CompactProof(tuple(unhex_all(vector["compact_proof"])))
        assert compact.decode(root) == (StorageProof(unhex_all(vector["storage_proof"])), root), vector["set"]
        assert CompactProof.from_bytes(compact.to_bytes()) == compact


@over("trie_db/invalid_proofs.json")
def test_a_wrong_compact_proof_ends_as_it_ends_in_sp_trie(cases: list[Case]) -> None:
    for vector in cases:
        expected_root = unhex(vector["root"])
        for case in (case for case in vector["cases"] if case["type"] == "compact_proof"):
            compact, result = CompactProof(tuple(unhex_all(case["nodes"]))), case["result"]
            if "err" in result:
                with pytest.raises(ERRORS[result["err"]]):
                    compact.decode()
                continue
            proof, root = compact.decode()
            assert root == unhex(result["root"]), case["mutation"]
            assert result["matches"] == (root == expected_root)
            if not isinstance(result["nodes"], int):
                assert proof == StorageProof(unhex_all(result["nodes"])), case["mutation"]
            if not result["matches"]:
                with pytest.raises(RootMismatch) as refusal:
                    compact.decode(expected_root)
                assert (refusal.value.expected, refusal.value.actual) == (expected_root, root)


@given(pairs_with_questions(), state_versions)
def test_a_proof_comes_back_from_its_compact_form(drawn: tuple[Pairs, list[bytes]], version: StateVersion) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=version)
    proof = StorageProof.generate(db, root, questions or [b""])
    compact = CompactProof.encode(proof, root)
    assert compact.decode(root) == (proof, root)
    assert len(compact.nodes) >= len(proof)  # what two places share is written at both
    if len(compact.nodes) == len(proof):
        assert compact.proof_bytes <= proof.proof_bytes


@given(pairs_with_questions(), state_versions, st.data())
def test_a_tampered_compact_proof_never_gives_a_wrong_value(
    drawn: tuple[Pairs, list[bytes]], version: StateVersion, data: st.DataObject
) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=version)
    nodes = list(CompactProof.encode(StorageProof.generate(db, root, questions or [b""]), root).nodes)
    place = data.draw(st.integers(0, len(nodes) - 1))
    match data.draw(st.sampled_from(["drop", "flip", "repeat", "swap", "cut"])):
        case "drop":
            del nodes[place]
        case "flip":
            flipped = bytearray(nodes[place] or b"\x00")
            flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= 1 << data.draw(st.integers(0, 7))
            nodes[place] = bytes(flipped)
        case "repeat":
            nodes.insert(place, nodes[place])
        case "swap":
            other = data.draw(st.integers(0, len(nodes) - 1))
            nodes[place], nodes[other] = nodes[other], nodes[place]
        case _:
            nodes[place] = nodes[place][:-1]
    try:
        proof, _ = CompactProof(tuple(nodes)).decode(root)
        values = proof.verify(root, questions).values
    except ProofError:
        return
    assert dict(values) == {key: held.get(key) for key in questions}


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_nodes_decode_or_are_refused(nodes: list[bytes]) -> None:
    try:
        proof, root = CompactProof(tuple(nodes)).decode()
    except RelaycastError:
        return
    assert root in proof.by_hash()


@given(st.binary(max_size=80))
def test_any_bytes_are_a_compact_proof_or_refused(data: bytes) -> None:
    try:
        compact = CompactProof.from_bytes(data)
    except CodecError:
        return
    assert compact.to_bytes() == data


@given(st.lists(some_pairs, min_size=1, max_size=3), st.data(), state_versions)
def test_child_tries_follow_the_top_trie_and_come_back(
    children: list[Pairs], data: st.DataObject, version: StateVersion
) -> None:
    infos = [ChildInfo.new_default(bytes([17 * number])) for number in range(len(children))]
    named = {info.storage_key: held for info, held in zip(infos, children, strict=True)}
    db, root, _ = with_children({b"other": bytes(50)}, named, version)
    asked = data.draw(st.sets(st.sampled_from(range(len(children))), min_size=1))
    proofs = [StorageProof.generate_child(db, root, infos[number], list(children[number])) for number in asked]
    proof = StorageProof.merge(proofs)
    assert CompactProof.encode(proof, root).decode(root) == (proof, root)


def test_the_last_of_many_children_can_be_proven_alone() -> None:
    db, root, _ = with_children({}, {bytes([number]): {bytes([number]): bytes(50)} for number in range(40)})
    proof = StorageProof.generate_child(db, root, ChildInfo.new_default(b"\x27"), [b"\x27"])
    decoded, _ = CompactProof.encode(proof, root).decode(root)
    assert decoded == proof
    assert decoded.verify_child(root, ChildInfo.new_default(b"\x27"), [b"\x27"])[b"\x27"] == bytes(50)


def compacted_vector(name: str, why: str, root: bytes, nodes: StorageProof) -> ProofCompacted:
    source = VectorSource(upstream="sp-trie encode_compact")
    return ProofCompacted(
        id=f"proofs/compact/{name}", why=why, source=source, root=hexed(root), nodes=list(map(hexed, nodes))
    )


@yields("proofs/compact")
@pytest.mark.parametrize("name", [name for name in TRIES if name != "empty"])
def test_a_proof_of_a_trie_of_each_shape_comes_back(name: str) -> Iterator[ProofVector]:
    why, held = TRIES[name]
    db, root = build_database(held, state_version=StateVersion.V1)
    yield compacted_vector(f"{name}-all", f"{why}: all keys", root, StorageProof.generate(db, root, held))
    if len(held) > 1:
        one = StorageProof.generate(db, root, sorted(held)[:1])
        yield compacted_vector(f"{name}-one", f"{why}: one key", root, one)


@yields("proofs/compact")
@pytest.mark.parametrize("number", range(12))
def test_a_random_proof_comes_back(number: int) -> Iterator[ProofVector]:
    random = Random(f"compact 7 {number}")
    held = drawn_pairs(random, 14)
    db, root = build_database(held, state_version=StateVersion(number % 2))
    proof = StorageProof.generate(db, root, drawn_keys(random, held))
    yield compacted_vector(f"random-{number}", f"a random proof, number {number}", root, proof)


def proof_of(tries: dict[int, Pairs], *, of: list[int], read: bool = True) -> tuple[StorageProof, bytes]:
    """Return the proof of all keys of some publishers, or of the way to them alone, and the root of the top trie."""
    named = {derive_child_info(para_id).storage_key: held for para_id, held in tries.items()}
    db, root, _ = with_children({b":code": b"code"}, named)
    keys = {para_id: list(tries[para_id]) if read else [] for para_id in of}
    proofs = [StorageProof.generate_child(db, root, derive_child_info(it), keys[it]) for it in of]
    return StorageProof.merge(proofs), root


@yields("proofs/compact")
def test_child_tries_that_were_read_follow_the_top_trie() -> Iterator[ProofVector]:
    tries = {1_000: published("abc"), 2_000: published("bc", length=40), 2_001: published("cd")}
    for name, of in (("one", [2_000]), ("two", [1_000, 2_001]), ("three", [1_000, 2_000, 2_001])):
        proof, root = proof_of(tries, of=of)
        yield compacted_vector(f"children-{name}", f"child tries behind the top trie: {name} of three", root, proof)
    proof, root = proof_of({2_000: published("ab"), 2_001: published("ab")}, of=[2_000])
    yield compacted_vector("children-twins", "a child trie that two keys name", root, proof)
    way, root = proof_of(tries, of=[2_000], read=False)
    yield compacted_vector("children-unread", "the way to a child's root without the child", root, way)


def refused(name: str, why: str, root: bytes, items: list[bytes], error: type[ProofError]) -> CompactRefused:
    """Return the vector of a compact proof that is refused with ``error``."""
    vector = CompactRefused(
        id=f"proofs/compact-error/{name}",
        why=why,
        source=VectorSource(attack="a changed compact proof"),
        root=hexed(root),
        compact=list(map(hexed, items)),
    )
    assert compact_error(vector) == error.__name__
    return vector


@yields("proofs/compact")
def test_a_changed_compact_proof_is_refused() -> Iterator[ProofVector]:
    random = Random("compact wrong 7")
    held = {bytes([at << 4 | at]) * 3: random.randbytes(40) for at in range(6)}
    db, root = build_database(held, state_version=StateVersion.V1)
    items = list(CompactProof.encode(StorageProof.generate(db, root, sorted(held)[:3]), root).nodes)
    yield refused("nothing", "no item at all", root, [], IncompleteProof)
    for count in range(1, len(items)):
        why = f"the first {count} of {len(items)} items"
        yield refused(f"ends-at-{count}", why, root, items[:count], IncompleteProof)
    yield refused("one-more", "an item behind the last", root, [*items, b"\x00"], ExtraneousNode)
    yield refused("repeated", "the whole list twice", root, items * 2, ExtraneousNode)
    yield refused("other-root", "a proof of another trie", blake2_256(b"other"), items, RootMismatch)
    swapped = [*items[:-2], items[-1], items[-2]]
    yield refused("swapped", "the last two items change places", root, swapped, InvalidNode)
    yield refused("undecodable", "an item that is no node", root, [*items[:1], b"\x0f", *items[2:]], InvalidNode)
    flipped = [*items[:-1], b"\xff" + items[-1][1:]]
    yield refused("flipped", "a value is another one", root, flipped, RootMismatch)


@yields("proofs/compact")
def test_a_child_trie_that_the_top_trie_does_not_name_in_its_order_is_refused() -> Iterator[ProofVector]:
    tries = {1_000: published("ab"), 2_000: published("cd")}
    proof, root = proof_of(tries, of=[1_000, 2_000])
    both, second, way = (
        list(CompactProof.encode(it, root).nodes)
        for it in (proof, proof_of(tries, of=[2_000])[0], proof_of(tries, of=[1_000, 2_000], read=False)[0])
    )
    why = "a child trie that the top trie does not name"
    yield refused("foreign-child", why, root, [*way, *alone(published("xy"))], ExtraneousChildProof)
    yield refused("child-cut", "the last child trie ends too early", root, both[:-1], IncompleteProof)
    yield refused("child-and-more", "an item behind the last child trie", root, [*second, b"\x00"], ExtraneousNode)
    order = [*way, *second[len(way) :], *both[len(way) : len(both) - len(second) + len(way)]]
    yield refused("children-swapped", "child tries in the wrong order", root, order, ExtraneousChildProof)


def alone(held: Pairs) -> list[bytes]:
    """Return the compact proof of all keys of a trie."""
    db, root = build_database(held, state_version=StateVersion.V1)
    return list(CompactProof.encode(StorageProof.generate(db, root, held), root).nodes)


@yields("proofs/compact")
def test_a_value_that_is_no_hash_in_its_node_is_no_child_root() -> Iterator[ProofVector]:
    key = ChildInfo(b"name").prefixed_storage_key()
    db, root = build_database({key: bytes(31)}, state_version=StateVersion.V1)
    why = "the value under a child's key has 31 bytes"
    yield refused("no-child-root", why, root, [db.get(root) or b""], InvalidChildRoot)
    child_root = build_database(published("ab"), state_version=StateVersion.V1)[1]
    for length, value in (("33", child_root + b"\x00"), ("32", child_root)):
        leaf = encode_node(Leaf(to_nibbles(key), HashedValue(blake2_256(value))))
        root, marked = blake2_256(leaf), [ESCAPE + encode_node(Leaf(to_nibbles(key), b"")), value]
        why = f"the value under a child's key has {length} bytes and stands outside its node"
        name, followed = f"external-child-root-{length}", [*marked, *alone(published("ab"))]
        yield refused(name, f"{why}: its hash is no child root", root, [leaf], InvalidChildRoot)
        yield refused(f"{name}-attached", f"{why}, which is given", root, marked, InvalidChildRoot)
        yield refused(f"{name}-child", f"{why}; a child trie follows", root, followed, InvalidChildRoot)


@pytest.mark.parametrize("child_root", [b"", bytes(31), bytes(33)], ids=len)
def test_a_child_root_of_another_length_is_refused(child_root: bytes) -> None:
    key = ChildInfo(b"a").prefixed_storage_key()
    db, root = build_database({key: child_root}, state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, [key])
    with pytest.raises(InvalidChildRoot):
        CompactProof.encode(proof, root)
    with pytest.raises(InvalidChildRoot):
        proof.verify_child(root, ChildInfo(b"a"), [b"k"])


def test_a_child_root_at_half_a_byte_is_refused() -> None:
    odd = encode_node(
        Leaf(bytes(int(digit, 16) for digit in ChildInfo(b"").prefixed_storage_key().hex()) + b"\x01", bytes(32))
    )
    with pytest.raises(ProofError):
        CompactProof((odd,)).decode()


def test_an_escape_without_a_node_or_a_value_is_refused() -> None:
    with pytest.raises(InvalidNode):
        CompactProof((ESCAPE,)).decode()
    with pytest.raises(IncompleteProof):
        CompactProof((ESCAPE + encode_node(Leaf(b"", b"")),)).decode()


def test_a_proof_without_its_root_has_no_compact_form() -> None:
    with pytest.raises(RootMismatch):
        CompactProof.encode(StorageProof(), bytes(32))


def test_hashes_that_follow_are_left_out() -> None:
    held = {bytes([n]): bytes([n]) * 40 for n in range(16)}
    db, root = build_database(held, state_version=StateVersion.V0)
    proof = StorageProof.generate(db, root, held)
    compact = CompactProof.encode(proof, root)
    assert proof.proof_bytes - compact.proof_bytes == 32 * 16
    assert compact.nodes[0] == encode_node(Branch(b"\x00", (b"",) * 16))


def sharing(levels: int, *, below: bytes = b"", leaf: bytes = encode_leaf(b"", bytes(32))) -> list[bytes]:
    """Return the nodes of a trie, the leaf first, in which every branch names one node sixteen times."""
    nodes = [leaf]
    for level in range(levels):
        partial = below if level == levels - 1 else b""
        nodes.append(encode_branch(partial, [blake2_256(nodes[-1])] * 16, None))
    return nodes


def all_but_one_named(nodes: list[bytes]) -> CompactProof:
    """Return a compact proof that leaves out one hash of each branch, and names the same node fifteen times."""
    branches = []
    for encoded in nodes[:0:-1]:
        node = decode_node(encoded)
        assert isinstance(node, Branch)
        branches.append(encode_branch(node.partial, [*node.children[:15], b""], None))
    return CompactProof((*branches, nodes[0]))


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return what ``TrieDB.load`` is asked for from now on."""
    asked: list[bytes] = []
    load = TrieDB.load

    def noting(trie: TrieDB, reference: bytes, path: bytes) -> Node:
        asked.append(reference)
        return load(trie, reference, path)

    monkeypatch.setattr(TrieDB, "load", noting)
    return asked


@pytest.mark.parametrize("leaf", [encode_leaf(b"", bytes(32)), encode_leaf(bytes(2_000), bytes(32))])
def test_a_few_kilobytes_that_spell_out_millions_of_child_tries_are_refused_after_a_look_at_each_node(
    loaded: list[bytes], leaf: bytes
) -> None:
    compact = all_but_one_named(sharing(6, below=CHILD_PATH, leaf=leaf))
    assert compact.proof_bytes < 4_500
    with pytest.raises(TooManyNodes) as refusal:
        compact.decode()
    assert refusal.value.limit == len(compact.nodes) + MAX_REPEATED_NODES
    assert len(loaded) <= 2 * len(compact.nodes)


def test_nodes_that_name_each_other_many_times_are_refused_after_a_look_at_each(loaded: list[bytes]) -> None:
    nodes = sharing(12, leaf=encode_leaf(bytes(40), b"value"))
    with pytest.raises(TooManyNodes):
        CompactProof.encode(StorageProof(nodes), blake2_256(nodes[-1]))
    assert len(loaded) <= 2 * len(nodes)


def test_many_child_tries_that_share_their_nodes_are_refused_together() -> None:
    """Neither the top trie nor a child trie is too large alone: 4,096 child tries of 4,369 places each are."""
    child = sharing(3, leaf=encode_leaf(bytes(40), b"value"))
    top = sharing(3, below=CHILD_PATH, leaf=encode_leaf(b"\x00", blake2_256(child[-1])))
    with pytest.raises(TooManyNodes):
        CompactProof.encode(StorageProof([*child, *top]), blake2_256(top[-1]))


def test_shared_nodes_whose_copies_would_fill_the_memory_are_refused() -> None:
    nodes = sharing(4, leaf=encode_leaf(b"", bytes(1 << 16)))
    with pytest.raises(TooManyBytes) as refusal:
        CompactProof.encode(StorageProof(nodes), blake2_256(nodes[-1]))
    assert refusal.value.limit == sum(map(len, nodes)) + MAX_REPEATED_BYTES


def test_a_partial_key_that_nothing_can_write_is_refused_in_both_directions() -> None:
    """A header can tell of a few nibbles more than sp-trie's bound, which no header is written for."""
    node = b"\x7f" + b"\xff" * 256 + b"\xfe" + bytes(33_064)
    leaf = decode_node(node)
    assert isinstance(leaf, Leaf)
    assert len(leaf.partial) > MAX_PARTIAL_NIBBLES
    with pytest.raises(InvalidNode, match="a partial key of 65597 nibbles, 65535 at most"):
        CompactProof.encode(StorageProof([node]), blake2_256(node))
    with pytest.raises(InvalidNode, match="a partial key of 65597 nibbles, 65535 at most"):
        CompactProof((node,)).decode()


def test_shared_nodes_are_written_at_every_place_and_read_back() -> None:
    """Equal values under keys that have every ending: 69,905 places of five nodes."""
    nodes = sharing(4, leaf=encode_leaf(b"", b"value" * 10))
    proof, root = StorageProof(nodes), blake2_256(nodes[-1])
    compact = CompactProof.encode(proof, root)
    assert len(compact.nodes) == sum(16**level for level in range(5))
    assert compact.decode(root) == (proof, root)
