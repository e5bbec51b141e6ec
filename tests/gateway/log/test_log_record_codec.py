"""Stored events come back as they went in, numbers of any size included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icrc16_values import values
from relaycast_gateway.icrc16 import Icrc16, Property, Tag, array, nat, text
from relaycast_gateway.log.record_codec import (
    decode_body,
    decode_visibility,
    encode_body,
    encode_visibility,
    record_hash,
)
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Visibility

names = st.lists(st.text(max_size=3), max_size=2).map(tuple)
visibilities = st.just(EVERYBODY) | st.builds(Visibility, st.none() | names, st.none() | names, names, names)
headers = st.lists(st.tuples(st.text(max_size=3), st.integers(0).map(nat)), max_size=2).map(tuple)


@given(st.binary(max_size=29), st.none() | st.text(), values, headers)
def test_a_body_comes_back(
    source: bytes,
    subject: str | None,
    data: Icrc16,
    headers: tuple[tuple[str, Icrc16], ...],
) -> None:
    draft = EventDraft("a", data, source, 0, subject=subject, headers=headers)
    assert decode_body(encode_body(draft)) == (source, subject, data, headers)


@given(visibilities)
def test_a_visibility_comes_back(visibility: Visibility) -> None:
    assert decode_visibility(encode_visibility(visibility)) == visibility


@pytest.mark.parametrize("stored", [b"", b"\x00", b"\x94\xc0\xc0\xc0\xc0", b"\x93\xc0\xc0\x90", b"\xc1"])
def test_other_bytes_are_no_visibility(stored: bytes) -> None:
    with pytest.raises(ValueError, match=f"expected a stored visibility, got {len(stored)} bytes that are none"):
        decode_visibility(stored)


@pytest.mark.parametrize("number", [0, 128, 255, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 1 << 71, 1 << 200])
def test_whole_numbers_of_any_size_come_back(number: int) -> None:
    for value in (number, -number, -number - 1, -number + 1):
        whole = Icrc16(Tag.CLASS, (Property("a", array(Icrc16(Tag.INT, value)), False),))
        assert decode_body(encode_body(EventDraft("a", whole, b"", 0)))[2] == whole


@pytest.mark.parametrize("stored", [b"", b"\x00", b"\x94\xc0\xc0\xc0\xc0", b"\xc7\x01\x02\x00", b"\xc1"])
def test_other_bytes_are_no_event(stored: bytes) -> None:
    with pytest.raises(ValueError, match=f"expected a stored event, got {len(stored)} bytes that are none"):
        decode_body(stored)


def test_each_field_of_a_record_counts_for_its_hash() -> None:
    record = EventRecord(1, 2, 3, 4, 5, 6, "a", b"b", None, nat(7), (), EVERYBODY)
    others = [
        record._replace(seq=2),
        record._replace(event_id=1 << 70),
        record._replace(prev_id=None),
        record._replace(pub_id=5),
        record._replace(occurred_ns=6),
        record._replace(received_ns=7),
        record._replace(namespace="b"),
        record._replace(source=b"c"),
        record._replace(subject="b"),
        record._replace(data=Icrc16(Tag.INT, 7)),
        record._replace(headers=(("a", text("b")),)),
        record._replace(visibility=Visibility((), None)),
        record._replace(own_topic="b"),
    ]
    hashes = {record_hash(each) for each in (record, *others)}
    assert len(hashes) == 14
    assert record_hash(record._replace()) in hashes
