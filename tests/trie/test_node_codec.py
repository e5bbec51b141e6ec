"""Nodes and their bytes: every header form, the vectors of sp-trie's codec, and bytes that are no node."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proof_vectors import NodeDecoded, ProofVector, decoded
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_trie.nibbles import digits
from relaycast_trie.node import EMPTY, NO_CHILDREN, Branch, HashedValue, Leaf, Node, Value
from relaycast_trie.node_codec import (
    CACHED_BYTES,
    CACHED_NODE_BYTES,
    EMPTY_ROOT,
    KnownNodes,
    StateVersion,
    decode_node,
    encode_leaf,
    encode_node,
)
from shared_vectors import Case, over, unhex
from strategies import nodes
from vector_fields import VectorSource, hexed
from yielded_vectors import yields

HASH = bytes(range(32))
ONE_CHILD = (HASH, *NO_CHILDREN[1:])


@over("trie_db/node_decode.json", slices=2)
def test_bytes_decode_to_the_plan_that_the_crate_reads(cases: list[Case]) -> None:
    for vector in cases:
        data = unhex(vector["data"])
        if vector["ok"]:
            assert plan(decode_node(data)) == {key: vector[key] for key in vector if key not in {"data", "ok"}}, (
                data.hex()
            )
        else:
            with pytest.raises(CodecError):
                decode_node(data)


@over("trie_db/node_decode.json", slices=2)
def test_a_decoded_node_encodes_to_the_bytes_it_came_from(cases: list[Case]) -> None:
    for vector in cases:
        data = unhex(vector["data"])
        if vector["ok"]:
            encoded = encode_node(decode_node(data))
            assert decode_node(encoded) == decode_node(data)
            assert data.startswith(encoded), data.hex()


@over("trie_db/nodes.json", slices=2)
def test_real_nodes_come_back_byte_for_byte(cases: list[Case]) -> None:
    for vector in cases:
        for version in ("v0", "v1"):
            for entry in vector[version]["preorder"]:
                data = unhex(entry["node"])
                assert encode_node(decode_node(data)) == data, vector["name"]


@pytest.mark.parametrize(
    ("node", "header"),
    [
        (EMPTY, "00"),
        (Leaf(b"", b""), "40"),
        (Leaf(bytes(62), b""), "7e"),  # the longest partial key that fits a leaf's header
        (Leaf(bytes(63), b""), "7f00"),  # all ones, and nothing more
        (Leaf(bytes(63 + 254), b""), "7ffe"),
        (Leaf(bytes(63 + 255), b""), "7fff00"),  # a full byte is followed by another
        (Leaf(bytes(30), HashedValue(HASH)), "3e"),
        (Leaf(bytes(31), HashedValue(HASH)), "3f00"),
        (Leaf(bytes(31 + 255), HashedValue(HASH)), "3fff00"),
        (Branch(b"", ONE_CHILD), "80"),
        (Branch(bytes(62), ONE_CHILD), "be"),
        (Branch(bytes(63), ONE_CHILD), "bf00"),
        (Branch(b"", ONE_CHILD, b""), "c0"),  # an empty value is a value
        (Branch(bytes(63), ONE_CHILD, b""), "ff00"),
        (Branch(bytes(14), ONE_CHILD, HashedValue(HASH)), "1e"),
        (Branch(bytes(15), ONE_CHILD, HashedValue(HASH)), "1f00"),
        (Branch(bytes(15 + 255), ONE_CHILD, HashedValue(HASH)), "1fff00"),
    ],
)
def test_a_header_tells_the_kind_and_the_length_of_the_partial_key(node: Node, header: str) -> None:
    encoded = encode_node(node)
    assert encoded.hex().startswith(header)
    assert decode_node(encoded) == node


SOME = tuple({1: bytes(32), 4: b"\x41\x01\x04\x02", 15: bytes([9]) * 32}.get(at) for at in range(16))


def node_vector(name: str, why: str, encoded: bytes) -> NodeDecoded:
    source = VectorSource(upstream="sp-trie NodeCodec")
    return NodeDecoded(id=f"proofs/node/{name}", why=why, source=source, encoded=hexed(encoded))


@yields("proofs/tries")
@pytest.mark.parametrize("count", [0, 1, 2, 14, 15, 16, 30, 31, 32, 62, 63, 64, 270, 286, 317, 318, 319, 573])
def test_a_node_tells_how_many_nibbles_it_has(count: int) -> Iterator[ProofVector]:
    partial, digest = bytes(at % 16 for at in range(count)), HashedValue(blake2_256(b"value"))
    hashed, branch = Leaf(partial, digest), Branch(partial, SOME, None if count % 2 else digest)
    yield node_vector(f"leaf-{count}", f"a leaf with {count} nibbles", encode_node(Leaf(partial, b"v")))
    yield node_vector(f"hashed-leaf-{count}", f"its value is hashed, {count} nibbles", encode_node(hashed))
    yield node_vector(f"branch-{count}", f"a branch with {count} nibbles", encode_node(branch))


LEAF, BRANCH = encode_node(Leaf(b"\x01\x02\x03", b"v")), encode_node(Branch(b"", SOME))
READ: dict[str, tuple[str, bytes]] = {
    "branch-value": ("a branch with a value in it", encode_node(Branch(b"\x01", SOME, b"value"))),
    "branch-full": ("a full branch of hashes: 531 bytes", encode_node(Branch(b"", (bytes(32),) * 16))),
    "leaf-long-value": ("a value of 64 bytes: two bytes of length", encode_node(Leaf(b"\x01", bytes(64)))),
    "empty-and-more": ("the empty node, and bytes that are ignored", b"\x00\x01\x02"),
    "left-over": ("a leaf, and bytes that are ignored", LEAF + b"\xff\xff"),
    "child-33": ("a child of 33 bytes: a decoder reads any length", b"\x80\x01\x00\x84" + bytes(33)),
    "child-empty": ("a child of no bytes", b"\x80\x01\x00\x00"),
}
REFUSED: dict[str, tuple[str, bytes]] = {
    "none": ("no byte", b""),
    "zero-header": ("a branch header of 0x01, which no node has", b"\x01"),
    "header-0f": ("a first byte that no node has", b"\x0f" + LEAF[1:]),
    "padding-of-zero": ("padding of 1 and a nibble of 0", bytes([LEAF[0], 0x10]) + LEAF[2:]),
    "padding": ("the padding of an odd partial key is not zero", bytes([LEAF[0], LEAF[1] | 0x10]) + LEAF[2:]),
    "partial-cut": ("a partial key that is cut off", LEAF[:2]),
    "count-cut": ("a count that is cut off", b"\x7f\xff"),
    "value-cut": ("a value that is cut off", LEAF[:-1]),
    "value-padded": ("a length in two bytes that fits one", b"\x41\x01\x05\x00v"),
    "value-big-mode": ("a length in five bytes that fits one", b"\x41\x01\x03\x01\x00\x00\x00v"),
    "no-children": ("a branch without children", b"\x80\x00\x00"),
    "bitmap-cut": ("half a bitmap", b"\x80\x01"),
    "child-cut": ("a child that is cut off", BRANCH[:-1]),
    "hash-cut": ("31 bytes of a value's hash", b"\x21\x01" + bytes(31)),
}


@yields("proofs/tries")
@pytest.mark.parametrize("name", READ)
def test_bytes_are_a_node_also_with_a_rest_and_children_of_any_length(name: str) -> Iterator[ProofVector]:
    vector = node_vector(name, *READ[name])
    assert decoded(vector).error is None
    yield vector


@yields("proofs/tries")
@pytest.mark.parametrize("name", REFUSED)
def test_bytes_that_are_no_node_are_refused(name: str) -> Iterator[ProofVector]:
    why, encoded = REFUSED[name]
    with pytest.raises(CodecError) as refusal:
        decode_node(encoded)
    assert 0 <= refusal.value.offset <= len(encoded)
    yield node_vector(name, why, encoded)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("40", "the value is cut off"),
        ("40feffffff", "a gigabyte of value that is not there"),
        ("4003ffffffff", "four gigabytes of value that are not there"),
        ("800100", "the child is cut off"),
        ("80010080" + "aa" * 31, "the hash of a child is cut off"),
        ("10010080", "the hash of a branch's value is cut off"),
    ],
)
def test_a_node_that_announces_more_than_it_has_is_refused(data: str, why: str) -> None:
    with pytest.raises(CodecError) as refusal:
        decode_node(bytes.fromhex(data))
    assert 0 <= refusal.value.offset <= len(data) // 2, why


def test_a_partial_key_of_65535_nibbles_is_the_longest() -> None:
    longest = Leaf(bytes(0xFFFF), b"v")
    assert decode_node(encode_node(longest)) == longest
    with pytest.raises(ValueError, match="65536"):
        encode_node(Leaf(bytes(0x1_0000), b"v"))


def test_a_header_of_a_megabyte_is_refused_after_its_first_257_bytes() -> None:
    with pytest.raises(CodecError) as refusal:
        decode_node(b"\x7f" + b"\xff" * 300)
    assert refusal.value.offset <= 260
    with pytest.raises(CodecError):
        decode_node(b"\x7f" + b"\xff" * 1_000_000)


@given(nodes)
def test_nodes_come_back(node: Node) -> None:
    assert decode_node(encode_node(node)) == node


@given(nodes, st.binary(max_size=8))
def test_bytes_after_a_node_are_ignored(node: Node, tail: bytes) -> None:
    assert decode_node(encode_node(node) + tail) == node


@given(nodes, st.data())
def test_a_node_cut_short_is_refused(node: Node, data: st.DataObject) -> None:
    encoded = encode_node(node)
    kept = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(CodecError):
        decode_node(encoded[:kept])


@given(st.binary(max_size=120))
def test_any_bytes_are_a_node_or_refused(data: bytes) -> None:
    try:
        node = decode_node(data)
    except CodecError as refusal:
        offset = refusal.offset
    else:
        offset = 0
        assert data.startswith(encode_node(node))
    assert 0 <= offset <= len(data)


@given(nodes, st.data())
def test_a_flipped_bit_gives_another_node_or_none(node: Node, data: st.DataObject) -> None:
    encoded = bytearray(encode_node(node))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(CodecError):
        assert decode_node(bytes(encoded)) != node


@pytest.mark.parametrize(
    ("size", "external"),
    [(0, False), (32, False), (33, True)],  # a value as long as a hash stays in its node
)
def test_state_version_1_stores_a_value_outside_from(size: int, *, external: bool) -> None:
    assert StateVersion.V1.is_external(bytes(size)) is external
    assert StateVersion.V0.is_external(bytes(size)) is False


def test_the_empty_trie_has_the_root_that_every_chain_knows() -> None:
    assert EMPTY_ROOT.hex() == "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314"


def plan(node: Node) -> dict[str, Any]:
    """Write a node as the vectors do."""
    if isinstance(node, Leaf):
        return {"kind": "leaf", "partial": digits(node.partial), "value": planned_value(node.value)}
    if isinstance(node, Branch):
        children = [
            None if child is None else {"hash" if len(child) == 32 else "inline": child.hex()}
            for child in node.children
        ]
        value = None if node.value is None else planned_value(node.value)
        return {"kind": "branch", "partial": digits(node.partial), "value": value, "children": children}
    return {"kind": "empty"}


def planned_value(value: Value) -> dict[str, str]:
    return {"hash": value.hash.hex()} if isinstance(value, HashedValue) else {"inline": value.hex()}


def test_decoded_nodes_are_kept_up_to_a_number_of_bytes() -> None:
    known = KnownNodes()
    for number in range(4 * CACHED_BYTES // CACHED_NODE_BYTES):
        known.decode(encode_leaf(bytes(1_900) + bytes(int(digit) for digit in f"{number:06}"), b""))
    assert 0 < len(known) * 950 <= 2 * CACHED_BYTES
