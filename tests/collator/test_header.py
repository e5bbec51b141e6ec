"""Headers: exact bytes both ways, and hostile ones refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_collator import DigestItem, Header, ordered_root
from relaycast_collator.header import (
    CONSENSUS,
    ENGINE_ITEMS,
    OTHER,
    PRE_RUNTIME,
    RUNTIME_ENVIRONMENT_UPDATED,
    SEAL,
)
from relaycast_trie import EMPTY_ROOT, CodecError, StateVersion
from relaycast_trie.reference import trie_root
from relaycast_trie.scale import encode_compact
from relaycast_xcm.primitives import U32_MAX
from shared_vectors import OWN, Case, cases_in, shared, unhex

VARIANTS = {"other": OTHER, "consensus": CONSENSUS, "seal": SEAL, "preRuntime": PRE_RUNTIME}
VECTORS = "smoldot/scale_hash_xcm.json"

hashes = st.binary(min_size=32, max_size=32)
items = st.one_of(
    st.builds(
        DigestItem, st.sampled_from(sorted(ENGINE_ITEMS)), st.binary(max_size=80), st.binary(min_size=4, max_size=4)
    ),
    st.builds(DigestItem, st.just(OTHER), st.binary(max_size=80)),
    st.just(DigestItem(RUNTIME_ENVIRONMENT_UPDATED)),
)
headers = st.builds(Header, hashes, st.integers(0, U32_MAX), hashes, hashes, st.lists(items, max_size=5).map(tuple))


def own_headers() -> list[Case]:
    found: list[Case] = json.loads((OWN / VECTORS).read_text())["headers"]
    return found


def shared_headers() -> list[Case]:
    found: list[Case] = json.loads(shared(f"vectors/{VECTORS}").read_text())["headers"]
    return found


def as_header(said: dict[str, Any]) -> Header:
    """Return the header that a JSON-RPC node would show like this."""
    return Header(
        unhex(said["parentHash"]),
        said["number"],
        unhex(said["stateRoot"]),
        unhex(said["extrinsicsRoot"]),
        tuple(as_item(log) for log in said["digest"]["logs"]),
    )


def as_item(log: dict[str, Any]) -> DigestItem:
    ((name, content),) = log.items()
    if name == "runtimeEnvironmentUpdated":
        return DigestItem(RUNTIME_ENVIRONMENT_UPDATED)
    if name == "other":
        return DigestItem(OTHER, unhex(content))
    engine, data = content
    return DigestItem(VARIANTS[name], unhex(data), unhex(engine))


@pytest.mark.parametrize("source", [own_headers, shared_headers])
def test_a_header_has_the_bytes_and_the_hash_of_the_vector(source: Any) -> None:
    cases = source()
    assert len(cases) == 2
    for vector in cases:
        header = as_header(vector["header"])
        assert header.encode() == unhex(vector["enc"])
        assert Header.decode(unhex(vector["enc"])) == header
        assert header.hash == unhex(vector["hash"])


@given(headers)
def test_a_header_is_what_its_bytes_say(header: Header) -> None:
    assert Header.decode(header.encode()) == header


@given(headers, st.data())
def test_a_header_cut_short_or_made_longer_is_refused(header: Header, data: st.DataObject) -> None:
    encoded = header.encode()
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(CodecError):
        Header.decode(encoded[:cut])
    with pytest.raises(CodecError):
        Header.decode(encoded + b"\x00")


@given(headers, st.data())
def test_a_flipped_bit_gives_another_header_or_none(header: Header, data: st.DataObject) -> None:
    encoded = bytearray(header.encode())
    bit = data.draw(st.integers(0, 8 * len(encoded) - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    try:
        other = Header.decode(bytes(encoded))
    except CodecError:
        return
    assert other != header
    assert other.encode() == bytes(encoded)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_header_or_a_codec_error(data: bytes) -> None:
    try:
        header = Header.decode(data)
    except CodecError:
        return
    assert header.encode() == data


@pytest.mark.parametrize(
    ("middle", "digest", "offset"),
    [
        (b"\x01\x00", b"\x00", 32),  # 0 in two bytes: not the shortest compact
        (b"\x07\x00\x00\x00\x00\x01", b"\x00", 32),  # a number of 33 bits
        (b"\x00", b"\x04\x01", 98),  # no item has the variant 1
        (b"\x00", b"\x04\x06BAB", 99),  # an engine of three bytes
        (b"\x00", b"\x04\x00\x08\x01", 99),  # two bytes of data announced, one there
        (b"\x00", b"\xfe\xff\xff\xff", 97),  # a billion items announced
        (b"\x00", b"\x00\x00", 98),  # something behind the end
    ],
)
def test_hostile_bytes_are_refused_where_they_fail(middle: bytes, digest: bytes, offset: int) -> None:
    with pytest.raises(CodecError) as refusal:
        Header.decode(bytes(32) + middle + bytes(64) + digest)
    assert refusal.value.offset == offset


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Header(bytes(31), 0, bytes(32)),
        lambda: Header(bytes(32), 0, bytes(33)),
        lambda: Header(bytes(32), 0, bytes(32), b""),
        lambda: Header(bytes(32), -1, bytes(32)),
        lambda: Header(bytes(32), U32_MAX + 1, bytes(32)),
        lambda: DigestItem(1),
        lambda: DigestItem(SEAL, b"", b"BAB"),
        lambda: DigestItem(OTHER, b"", b"BABE"),
        lambda: DigestItem(RUNTIME_ENVIRONMENT_UPDATED, b"data"),
    ],
)
def test_what_cannot_be_encoded_cannot_be_made(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"got|data|variant"):
        wrong()


def test_extrinsics_have_the_root_of_the_vector() -> None:
    for vector in cases_in(OWN / "smoldot/ordered_roots.json"):
        extrinsics = [unhex(text) for text in vector["values"]]
        assert ordered_root(extrinsics, state_version=StateVersion.V0) == unhex(vector["root_v0"])
        assert ordered_root(extrinsics, state_version=StateVersion.V1) == unhex(vector["root_v1"])


def test_a_block_without_extrinsics_has_the_empty_root() -> None:
    assert ordered_root([]) == EMPTY_ROOT


@given(st.lists(st.binary(max_size=70), max_size=70), st.sampled_from(list(StateVersion)))
def test_an_ordered_root_is_that_of_a_trie_under_indices(extrinsics: list[bytes], version: StateVersion) -> None:
    pairs = {encode_compact(index): extrinsic for index, extrinsic in enumerate(extrinsics)}
    assert ordered_root(extrinsics, state_version=version) == trie_root(pairs, state_version=version)
