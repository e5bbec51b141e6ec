"""Locations: bytes, JSON and the way down."""

import pytest
from hypothesis import given

from relaycast_trie.exceptions import CodecError
from relaycast_xcm import (
    AccountId32,
    GlobalConsensus,
    Location,
    NetworkName,
    Parachain,
)
from shared_vectors import Case, unhex
from xcm.xcm_strategies import locations
from xcm.xcm_vectors import vectors_of

ACCOUNT = bytes([9]) * 32


@pytest.mark.parametrize("case", vectors_of("locations_v5"))
def test_a_location_has_the_bytes_of_polkadot_js(case: Case) -> None:
    location = Location.from_json(case["human"]["V5"])
    version, encoded = unhex(case["enc"])[:1], unhex(case["enc"])[1:]
    assert version == b"\x05"
    assert location.encode() == encoded
    assert Location.decode(encoded) == location


@given(locations)
def test_a_location_survives_bytes_and_json(location: Location) -> None:
    assert Location.decode(location.encode()) == location
    assert Location.from_json(location.to_json()) == location


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        ("", 0),  # no parents
        ("00", 1),  # no interior
        ("0009", 1),  # X9 does not exist
        ("00010a", 2),  # an eleventh kind of junction
        ("000100", 3),  # a parachain without a number
        ("00010007000000000100", 3),  # a number above u32 in a compact
        ("000109" + "04", 3),  # network 4 was Westend until V4
        ("00" + "00" + "00", 2),  # a byte too many
    ],
)
def test_bytes_that_are_no_location_are_refused_where_they_fail(data: str, offset: int) -> None:
    with pytest.raises(CodecError) as refusal:
        Location.decode(bytes.fromhex(data))
    assert refusal.value.offset == offset


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        (Location.here(), "Here"),
        (Location.parent(), ".."),
        (Location.sibling(2_000), "../Parachain(2000)"),
        (Location.account(ACCOUNT), f"AccountId32(None, 0x{ACCOUNT.hex()})"),
    ],
)
def test_a_location_reads_as_a_path(location: Location, shown: str) -> None:
    assert str(location) == shown


def test_a_location_goes_down_until_it_is_full() -> None:
    para = Location.parachain(2_000)
    account = (AccountId32(None, ACCOUNT),)
    assert para.appended_with(account) == Location(0, (Parachain(2_000), *account))
    assert para.appended_with(account * 7) is not None
    assert para.appended_with(account * 8) is None
    assert Location.new(1, GlobalConsensus(NetworkName.KUSAMA)).interior == (GlobalConsensus(NetworkName.KUSAMA),)


def test_a_location_that_cannot_be_written_is_a_slip() -> None:
    with pytest.raises(ValueError, match="u8"):
        Location(256)
    with pytest.raises(ValueError, match="at most 8"):
        Location(0, (Parachain(1),) * 9)
    with pytest.raises(ValueError, match="u32"):
        Parachain(2**32)


@pytest.mark.parametrize(
    ("json", "complaint"),
    [
        ({"parents": 0}, "lacks its field 'interior'"),
        ({"parents": 0, "interior": "Here", "exterior": 1}, "no field 'exterior', did you mean 'interior'"),
        ({"parents": 0, "interior": {"X2": [{"Parachain": 1}]}}, "as many junctions as it says"),
        ({"parents": 0, "interior": {"X1": [{"Parachian": 1}]}}, r"X1\[0\]: .* did you mean 'Parachain'"),
        ({"parents": 256, "interior": "Here"}, "parents: expected a u8, got 256"),
        ({"parents": 0, "interior": {"X1": [{"AccountId32": {"network": None, "id": "0x12"}}]}}, "32 bytes as 0x hex"),
        ("Here", "expected an object with parents, interior"),
    ],
)
def test_json_that_is_no_location_is_told_by_its_place(json: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Location.from_json(json)  # type: ignore[arg-type]  # wrong on purpose
