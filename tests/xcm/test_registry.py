"""The type registry for py-scale-codec: another implementation reads and writes the same bytes."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import CodecError
from relaycast_trie.scale import encode_bytes, encode_u32
from relaycast_xcm import (
    V5,
    Assets,
    Location,
    ParaId,
    Publish,
    PublishItem,
    PublishItems,
    Weight,
    WithdrawAsset,
    Xcm,
    XcmCodec,
    XcmFlavour,
)
from relaycast_xcm.assets import ASSETS
from relaycast_xcm.message import WEIGHT
from relaycast_xcm.registry import RegistryMismatch, full_name, is_known, scale_decode, scale_encode, types
from shared_vectors import Case, unhex
from xcm.xcm_strategies import asset_lists, hashes, locations, messages, publishes, u32, weights
from xcm.xcm_vectors import vectors_of


@given(publishes)
def test_a_publish_has_the_same_bytes_in_py_scale_codec(instruction: Publish) -> None:
    data = V5.encode((instruction,))
    described: Any = V5.to_json((instruction,))
    assert scale_encode("VersionedXcm", described) == data
    assert scale_decode("VersionedXcm", data) == described
    assert scale_encode("PublishV5", described["V5"][0]["Publish"]) == data[3:]


@given(locations)
def test_a_location_has_the_same_bytes_in_py_scale_codec(location: Location) -> None:
    assert scale_encode("LocationV5", location.to_json()) == location.encode()
    assert scale_decode("VersionedLocation", b"\x05" + location.encode()) == {"V5": location.to_json()}


@given(messages)
def test_a_message_has_the_same_bytes_in_py_scale_codec(message: Xcm) -> None:
    assert scale_encode("VersionedXcm", V5.to_json(message)) == V5.encode(message)
    assert scale_decode("VersionedXcm", V5.encode(message)) == V5.to_json(message)


@given(messages, st.data())
def test_bytes_that_are_read_here_are_read_there_with_the_same_meaning(message: Xcm, data: st.DataObject) -> None:
    """The other way round bounds stand between: the registry knows no longest value and no order of assets."""
    encoded = bytearray(V5.encode(message))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255))
    try:
        read = V5.decode(bytes(encoded))
    except CodecError:
        return
    assert scale_decode("VersionedXcm", bytes(encoded)) == V5.to_json(read)


@pytest.mark.parametrize(
    ("flavour", "name"), [(XcmFlavour.items(), "PublishItems"), (XcmFlavour.pairs(), "PublishPairs")]
)
@given(st.lists(st.tuples(hashes, st.binary(max_size=40)), max_size=5))
def test_earlier_drafts_have_the_same_bytes_in_py_scale_codec(
    flavour: XcmFlavour, name: str, items: list[tuple[bytes, bytes]]
) -> None:
    instruction = PublishItems(tuple(PublishItem(key, value) for key, value in items))
    codec = XcmCodec(flavour)
    data, described = codec.encode((instruction,)), codec.to_json((instruction,))
    assert isinstance(described, dict)
    inside: Any = described["V5"]
    assert scale_encode(name, inside[0]["Publish"]) == data[3:]
    assert scale_decode(name, data[3:]) == inside[0]["Publish"]


@given(asset_lists)
def test_assets_have_the_same_bytes_in_py_scale_codec(listed: Assets) -> None:
    described: Any = V5.to_json((WithdrawAsset(listed),))
    data = b"\x05" + ASSETS.encode(listed)
    assert scale_encode("VersionedAssets", {"V5": described["V5"][0]["WithdrawAsset"]}) == data
    assert scale_decode("VersionedAssets", data) == {"V5": described["V5"][0]["WithdrawAsset"]}


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


@pytest.mark.parametrize(
    ("type_name", "data", "reason"),
    [
        ("VersionedXcm", "050433", "known by name and not read at byte 2"),
        ("VersionedXcm", "0504ff", "Index '255' not present"),
        ("PublishedEntry", "0c01", "3 bytes expected, 1 left at byte 1"),
        ("PublishedEntry", "", "0 bytes, a PublishedEntry has at least one at byte 0"),
        ("PublishedEntry", "04010000000001000000ff", "1 bytes left over at byte 10"),
        ("SubscribedKey", "00" * 31, "32 bytes expected, 31 left"),
        ("Compact<u32>", "0100", "longer than it needs"),
        ("Compact<u32>", "070000000001", "expected a Compact<u32>"),
        ("Option<u8>", "0201", "neither 0 nor 1"),
        ("bool", "02", 'Invalid value for datatype "bool" at byte 1'),
        ("Vec<ParaId>", "feffffff", "4 bytes expected, 0 left"),  # a count of 2**30 - 1 and nothing behind it
        ("Xcm", "0416" * 400, "nested too deeply"),
    ],
)
def test_bytes_that_are_none_of_a_type_are_refused(type_name: str, data: str, reason: str) -> None:
    with pytest.raises(CodecError, match=re.escape(reason)):
        scale_decode(type_name, bytes.fromhex(data))


@pytest.mark.parametrize(
    ("type_name", "value", "path", "expected"),
    [
        ("PublishedEntry", {"value": "0x", "ttl": 0}, "when_inserted", "its u32"),
        ("PublishedEntry", {"ttl": 0, "when_inserted": 0}, "value", "its bytes as 0x hex"),
        ("PublishedEntry", {"value": "0x", "ttl": 0, "when_inserted": 0, "x": 1}, "", "a field of PublishedEntry: "),
        ("PublishedEntry", {"value": "0x0", "ttl": 0, "when_inserted": 0}, "value", "bytes as 0x hex"),
        ("PublishedEntry", {"value": "0x", "ttl": 2**32, "when_inserted": 0}, "ttl", "a u32"),
        ("PublishedEntry", {"value": "0x", "ttl": True, "when_inserted": 0}, "ttl", "a u32"),
        ("PublishedEntry", {"value": "0x", "ttl": 1.0, "when_inserted": 0}, "ttl", "a u32"),
        ("PublishedEntry", [], "", "an object with"),
        ("TtlState", "Timedout", "", "a variant of TtlState: Infinite, ValidFor, TimedOut"),
        ("TtlState", {"ValidFor": -1}, "ValidFor", "a u32"),
        ("TtlState", {"Infinite": 1}, "Infinite", "nothing"),
        ("TtlState", {"ValidFor": 1, "Infinite": None}, "", "a variant of TtlState"),
        ("SubscribedKey", "0x" + "00" * 31, "", "32 bytes as 0x hex"),
        ("Vec<u16>", [1, 65_536], "[1]", "a u16"),
        ("[u16; 2]", [1], "", "2 of u16"),
        ("[i8; 1]", [-129], "[0]", "an i8"),
        ("bool", 1, "", "true or false"),
        ("VersionedXcm", {"V5": [{"SetHints": []}]}, "V5[0].SetHints", "another variant"),
        ("Location", {"parents": 0, "interior": {"X1": []}}, "interior.X1", "1 of JunctionV5"),
    ],
)
def test_a_value_that_is_none_of_its_type_is_refused_with_its_path(
    type_name: str, value: object, path: str, expected: str
) -> None:
    with pytest.raises(RegistryMismatch) as refusal:
        scale_encode(type_name, value)
    assert refusal.value.path == path
    assert refusal.value.expected.startswith(expected)


def test_large_numbers_may_come_as_text_and_hex_in_capitals() -> None:
    assert scale_encode("u128", str(2**128 - 1)) == b"\xff" * 16
    assert scale_encode("[u8; 2]", "0xABCD") == b"\xab\xcd"
    assert scale_encode("i16", "-2") == b"\xfe\xff"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("PublishedEntry", "PublishedEntry"),
        ("Publish", "PublishV5"),
        ("PublishV5", "PublishV5"),
        ("Vec<u8>", "HexBytes"),
        ("Vec<Option<Location>>", None),  # the suffix may be left out of a name alone
        ("Vec<Option<LocationV5>>", "Vec<Option<LocationV5>>"),
        ("[ParaId; 3]", "[ParaId; 3]"),
        ("[ParaId; 0]", None),
        ("publishedentry", None),
        ("NotRead", None),
        ("Vec<" * 500 + "u8" + ">" * 500, None),
    ],
)
def test_a_type_is_named_as_the_registry_has_it(asked: str, found: str | None) -> None:
    assert full_name(asked) == found
    if found is None:
        with pytest.raises(ValueError, match="no type of the registry"):
            scale_encode(asked, None)


def test_every_type_of_the_registry_is_made_of_types_that_there_are() -> None:
    assert "NotRead" not in types()
    for name, definition in types().items():
        inside = [definition] if isinstance(definition, str) else [kind for _, kind in definition["type_mapping"]]
        assert all(is_known(kind, types()) or kind in ("Null", "NotRead") for kind in inside), name
