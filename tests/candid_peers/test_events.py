"""Ids of any size, ICRC-16 values and notifications: peers read ours, and we read theirs."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candid_peers.peer_process import Codec, TextCodec
from candid_peers.peer_shapes import kept_by_all
from gateway.candid.candid_types import DrawnValues
from gateway.candid.icrc16_cases import ALONE, nested
from relaycast_gateway.candid import Principal, Variant, parse_types
from relaycast_gateway.icrc.interface import definitions
from relaycast_gateway.icrc.variants import variant_of
from relaycast_gateway.icrc16 import Icrc16, Tag

pytestmark = pytest.mark.brokers

IDS = [0, 1, 127, 128, (1 << 64) - 1, 1 << 64, (1 << 200) + 1]
VALUES = f"{definitions()}(vec ICRC16)"
NOTIFICATION = f"{definitions()}(vec EventNotification)"
DRAWN = DrawnValues(parse_types(definitions())).of(parse_types(definitions()).names["EventNotification"])
EACH = ("dfinity_candid", "icp_py_core", "didc")


def codec_of(request: pytest.FixtureRequest, name: str) -> Codec | TextCodec:
    found = request.getfixturevalue(name)
    assert isinstance(found, Codec | TextCodec)
    return found


def notification(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "eventId": number,
        "prevEventId": number,
        "timestamp": 1_700_000_000_000_000_000,
        "namespace": "com.example.price",
        "data": Variant("Nat", number),
        "headers": [{0: "relaycast:price", 1: Variant("Nats", [number, 0])}],
        "source": Principal(b"\x01\x02"),
        "filter": None,
    }


@pytest.mark.matrix("ICRC72-01")
@pytest.mark.parametrize("name", EACH)
def test_ids_of_any_size_are_read_as_they_were_meant(request: pytest.FixtureRequest, name: str) -> None:
    codec = codec_of(request, name)
    assert codec.both_ways("(vec nat)", [IDS]) == ([IDS], [IDS])
    told = [notification(number) for number in IDS]
    assert codec.both_ways(NOTIFICATION, [told]) == ([told], [told])


@pytest.mark.matrix("ICRC72-18")
@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("deep", [0, 5])
def test_every_variant_is_read_as_it_was_meant(request: pytest.FixtureRequest, name: str, deep: int) -> None:
    assert {value.tag for value in ALONE} == set(Tag)
    values = [variant_of(value) for value in nested(deep)]
    assert codec_of(request, name).both_ways(VALUES, [values]) == ([values], [values])


@pytest.mark.matrix("ICRC72-18")
@pytest.mark.parametrize("name", EACH)
def test_a_value_of_forty_levels_is_read_as_it_was_meant(request: pytest.FixtureRequest, name: str) -> None:
    value = Icrc16(Tag.NAT, 7)
    for _ in range(40):
        value = Icrc16(Tag.ARRAY, (value,))
    values = [variant_of(value)]
    assert codec_of(request, name).both_ways(VALUES, [values]) == ([values], [values])


@pytest.mark.parametrize("name", EACH)
@settings(max_examples=60)
@given(told=st.lists(DRAWN.filter(kept_by_all), max_size=3))
def test_notifications_are_read_as_they_were_meant(
    request: pytest.FixtureRequest, name: str, told: list[dict[str, Any]]
) -> None:
    assert codec_of(request, name).both_ways(NOTIFICATION, [told]) == ([told], [told])
