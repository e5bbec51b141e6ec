"""Encoded proofs decoded in bulk: what the plain decoder makes of each, junk and hostile lengths included."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from naive import byte_lists
from relaycast_trie import CodecError, StorageProof
from relaycast_trie.array.array_proofs import decode_proofs
from relaycast_trie.scale import encode_bytes, encode_compact, encode_vec

LISTS = st.lists(st.binary(max_size=70), max_size=6).map(lambda strings: encode_vec(map(encode_bytes, strings)))
LENGTHS = st.sampled_from([0, 1, 2, 63, 64, 16_383, 16_384, 2**30 - 1, 2**30, 2**32 - 1, 2**62]).map(encode_compact)
HOSTILE = st.lists(LENGTHS | st.binary(max_size=5), max_size=5).map(b"".join)


def decoded(*proofs: bytes, before: bytes = b"") -> list[list[bytes] | None]:
    """Return what the bulk decoder makes of proofs that lie behind some other bytes."""
    data = np.frombuffer(before + b"".join(proofs), np.uint8)
    ends = len(before) + np.cumsum([0, *map(len, proofs)])
    found = decode_proofs(data, ends.astype(np.int32))
    strings, offsets = found.nodes
    nodes = [strings[offsets[i] : offsets[i + 1]].tobytes() for i in range(len(offsets) - 1)]
    assert offsets[-1] == len(strings)
    return [
        None if bad else nodes[first:end]
        for bad, first, end in zip(found.spoiled, found.node_ends[:-1], found.node_ends[1:], strict=True)
    ]


@given(st.lists(LISTS | HOSTILE | st.binary(max_size=40), max_size=8), st.binary(max_size=9))
def test_lists_in_bulk_agree_with_their_twin(proofs: list[bytes], before: bytes) -> None:
    assert decoded(*proofs, before=before) == [byte_lists(proof) for proof in proofs]


@given(LISTS | HOSTILE)
@example(b"")
@example(b"\x00\x00")
@example(b"\x04\x00\x00")  # bytes left over
@example(b"\x01\x00")  # a length in two bytes that fits into one
@example(b"\x02\x00\x00\x00")
@example(b"\x03\x00\x00\x00\x00")
@example(b"\x07" + b"\xff" * 5)  # a length of five bytes
@example(b"\xfe\xff\xff\xff")
@example(b"\x03\xff\xff\xff\xff")
def test_what_the_plain_decoder_refuses_is_spoiled(proof: bytes) -> None:
    (found,) = decoded(proof)
    try:
        expected = StorageProof.decode(proof)
    except CodecError:
        assert found is None
    else:
        assert found is not None
        assert StorageProof(found) == expected


def test_nodes_keep_their_order_and_their_repetitions() -> None:
    strings = [b"b", b"", b"a" * 70, b"b"]
    assert decoded(encode_vec(map(encode_bytes, strings))) == [strings]


def test_no_proofs_decode_to_none() -> None:
    assert decoded() == []
    assert decoded(b"\x00") == [[]]


def test_ends_beyond_the_data_are_the_callers_slip() -> None:
    with pytest.raises(ValueError, match="offsets of proofs ascend"):
        decode_proofs(np.zeros(3, np.uint8), np.array([0, 4]))


def test_long_strings_take_every_width_of_length() -> None:
    strings = [bytes([width % 256]) * width for width in (63, 64, 16_383, 16_384)]
    assert decoded(encode_vec(map(encode_bytes, strings))) == [strings]
