"""The type registry for py-scale-codec: another implementation reads and writes the same bytes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie.scale import encode_bytes, encode_u32
from relaycast_xcm import V5, Location, ParaId, Publish, QueryResponse, Weight, Xcm
from relaycast_xcm.message import WEIGHT
from relaycast_xcm.registry import scale_decode, scale_encode, type_registry
from shared_vectors import Case, unhex
from xcm.xcm_strategies import flat_messages, hashes, locations, publishes, u32, weights
from xcm.xcm_vectors import vectors_of


@given(publishes)
def test_a_publish_has_the_same_bytes_in_py_scale_codec(instruction: Publish) -> None:
    data = V5.encode((instruction,))
    described: Any = V5.to_json((instruction,))
    assert scale_encode("VersionedXcm", described) == data
    assert scale_decode("VersionedXcm", data) == described
    assert scale_encode("PublishV5", described["V5"][0]["Publish"]) == data[3:]


@given(locations.filter(lambda location: "Plurality" not in str(location)))
def test_a_location_has_the_same_bytes_in_py_scale_codec(location: Location) -> None:
    assert scale_encode("LocationV5", location.to_json()) == location.encode()
    assert scale_decode("VersionedLocation", location.encode_versioned()) == {"V5": location.to_json()}


def is_read(message: Xcm) -> bool:
    return not any(isinstance(instruction, QueryResponse) for instruction in message) and "Plurality" not in str(
        message
    )


@given(flat_messages.filter(is_read))
def test_a_message_has_the_same_bytes_in_py_scale_codec(message: Xcm) -> None:
    assert scale_encode("VersionedXcm", V5.to_json(message)) == V5.encode(message)
    assert scale_decode("VersionedXcm", V5.encode(message)) == V5.to_json(message)


@pytest.mark.parametrize("case", vectors_of("publish"))
def test_the_vectors_of_publish_decode_in_py_scale_codec(case: Case) -> None:
    assert scale_decode("VersionedXcm", unhex(case["enc"])) == case["human"]


@given(st.binary(max_size=70), u32, u32)
def test_a_published_entry_is_bytes_and_two_numbers(value: bytes, ttl: int, when_inserted: int) -> None:
    entry = {"value": "0x" + value.hex(), "ttl": ttl, "when_inserted": when_inserted}
    data = encode_bytes(value) + encode_u32(ttl) + encode_u32(when_inserted)
    assert scale_encode("PublishedEntry", entry) == data
    assert scale_decode("PublishedEntry", data) == entry


@given(weights, u32, hashes)
def test_numbers_and_cursors_have_the_same_bytes(weight: Weight, number: int, key: bytes) -> None:
    described: Any = {"ref_time": weight.ref_time, "proof_size": weight.proof_size}
    assert scale_encode("Weight", described) == WEIGHT.encode(weight)
    assert scale_encode("ParaId", number) == ParaId(number).encode()
    cursor = {"publisher": number, "key": "0x" + key.hex()}
    assert scale_decode("ProcessingCursor", ParaId(number).encode() + key) == cursor


@pytest.mark.parametrize(
    ("type_name", "value", "encoded"),
    [
        ("PublishedEntry", {"value": "0x010203", "ttl": 0, "when_inserted": 1}, "0c0102030000000001000000"),
        ("PublishedEntry", {"value": "0xaabb", "ttl": 100, "when_inserted": 1_000}, "08aabb64000000e8030000"),
        ("TtlState", "Infinite", "00"),
        ("TtlState", {"ValidFor": 5}, "0105000000"),
        ("TtlState", "TimedOut", "02"),
        ("DisableReason", "TrieDepthExceeded", "00"),
        ("RelayStorageKey", {"Top": "0x61"}, "000461"),
        ("RelayStorageKey", {"Child": {"storage_key": "0x61", "key": "0x6263"}}, "01" + "0461" + "086263"),
        ("RelayProofRequest", {"keys": [{"Top": "0x61"}]}, "04" + "000461"),
        ("PublisherInfo", {"manager": "0x" + "01" * 32, "deposit": 100}, "01" * 32 + "64" + "00" * 15),
        ("TtlData", {"ttl": 1, "when_inserted": 2}, "0100000002000000"),
    ],
)
def test_the_types_of_pub_sub_have_the_bytes_of_the_drafts(type_name: str, value: object, encoded: str) -> None:
    assert scale_encode(type_name, value).hex() == encoded
    assert scale_decode(type_name, bytes.fromhex(encoded)) == value


def test_what_is_not_read_here_is_not_misread_there() -> None:
    with pytest.raises(NotImplementedError, match="NotRead"):
        scale_decode("VersionedXcm", bytes.fromhex("050433"))
    assert "NotRead" not in type_registry()["types"]
