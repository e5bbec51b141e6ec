"""Bytes and values that are no message: too deep, longer than they say, of no plain kind."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wamp.message_bytes import ENCODE, PUBLISH, each_serializer, json_of
from relaycast_gateway.wamp import WampProtocolError, deserialize, serialize
from relaycast_gateway.wamp.serializers import DEEPEST
from searches import examples


@pytest.mark.parametrize("text", ["YWI", "YWI=!", "\N{SNOWMAN}", "====", "Y W I="])
def test_text_after_nul_that_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(WampProtocolError, match="base64"):
        deserialize(json_of([36, 1, 2, {}, ["\0" + text]]), "json")


def test_text_in_the_place_of_arguments_is_no_base64_by_itself() -> None:
    with pytest.raises(WampProtocolError, match="array"):
        deserialize(b'[36,1,2,{},"YWI="]', "json")


DEEP_BYTES = {
    "json": [b'[16,1,{},"a",' + b"[" * depth + b"]" * depth + b"]" for depth in (DEEPEST + 1, 500, 100_000)]
    + [b"[" * 1_000_000, b'{"a":' * 100_000],
    "msgpack": [b"\x95\x10\x01\x80\xa1a" + b"\x91" * depth + b"\x90" for depth in (DEEPEST, 500, 100_000)],
    "cbor": [PUBLISH + b"\x81" * depth + b"\x80" for depth in (DEEPEST, 500, 100_000)]
    + [PUBLISH + b"\x81" + b"\xc1" * 100_000 + b"\x01", PUBLISH + b"\x81" + b"\x9f" * 100_000],
}


@each_serializer
def test_values_that_nest_deeper_are_refused(name: str) -> None:
    for data in DEEP_BYTES[name]:
        with pytest.raises(WampProtocolError):
            deserialize(data, name)


LYING_BYTES = [
    ("msgpack", b"\xdd\xff\xff\xff\xff"),
    ("msgpack", b"\x95\x10\x01\x80\xa1a\xdd\xff\xff\xff\xff\x01"),
    ("msgpack", b"\x95\x10\x01\xdf\xff\xff\xff\xff"),
    ("msgpack", b"\x95\x10\x01\x80\xdb\xff\xff\xff\xffa"),
    ("msgpack", b"\x95\x10\x01\x80\xa1a\xc6\xff\xff\xff\xffa"),
    ("cbor", b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff"),
    ("cbor", PUBLISH + b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff\x01"),
    ("cbor", PUBLISH + b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff\x01"),
    ("cbor", PUBLISH + b"\x81\x7b\x00\x00\x00\xff\xff\xff\xff\xff\x01"),
    ("cbor", PUBLISH + b"\x80\xbb\x00\x00\x00\xff\xff\xff\xff\xff\x01"),
]


@pytest.mark.parametrize(("name", "data"), LYING_BYTES)
def test_lengths_beyond_the_bytes_that_came_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(WampProtocolError):
        deserialize(data, name)


NO_PLAIN_VALUES = [
    ("json", b'[16,1,{},"a",[NaN]]'),
    ("json", b'[16,1,{},"a",[1e999]]'),
    ("json", b'[16,1,{},"a",["\xff"]]'),
    ("json", b'[16,1,{},"a",["\\ud800"]]'),
    ("json", b'[16,1,{},"a",[' + b"9" * 10_000 + b"]]"),
    ("json", b'\xef\xbb\xbf[16,1,{},"a"]'),
    ("msgpack", b"\x95\x10\x01\x80\xa1a\x91\xd4\x05a"),  # an extension type
    ("msgpack", b"\x95\x10\x01\x80\xa1a\x91\xd4\x00\x01"),
    ("msgpack", b"\x95\x10\x01\x80\xa1a\x91\xd7\xff\xff\xff\xff\xff\xff\xff\xff\xff"),  # a timestamp with 1.07e9 ns
    ("msgpack", b"\x95\x10\x01\x80\xa1a\x91\xa2\xc0\x80"),  # U+0000 in two bytes is no UTF-8
    ("msgpack", b"\x95\x10\x01\x80\xa1a\x91\x81\x01\x02"),  # a number as a key
    ("msgpack", b"\x95\x10\x01\x80\xa1a\x91\x81\xc4\x01a\x02"),  # bytes as a key
    ("msgpack", b"\x95\x10\x01\x80\xa1a\x91\x81\x90\x02"),
    ("cbor", PUBLISH + b"\x81\xa1\x01\x02"),
    ("cbor", PUBLISH + b"\x81\xa1\x41a\x02"),
    ("cbor", PUBLISH + b"\x81\xa1\xf6\x02"),
    ("cbor", PUBLISH + b"\x81\x62\xc0\x80"),
    ("cbor", PUBLISH + b"\x81\xf8\x20"),  # a simple value without a meaning
    ("cbor", PUBLISH + b"\x81\xc2\x59\x10\x00" + b"\xff" * 4_096),  # a number of 9,864 digits
    ("cbor", PUBLISH + b"\x81\xc2\x01"),
    ("cbor", PUBLISH + b"\xd8\x1c\x81\xd8\x1d\x00"),  # a list in itself
    ("cbor", PUBLISH + b"\x82\xd8\x1c\x80\xd8\x1d\x00"),  # the same list twice
    ("cbor", PUBLISH + b"\xd9\x01\x00\x82\x63abc\xd8\x19\x00"),  # a text once more by its number
    ("cbor", PUBLISH + b"\x81\xff"),
]


@pytest.mark.parametrize(("name", "data"), NO_PLAIN_VALUES)
def test_what_is_no_plain_value_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(WampProtocolError):
        deserialize(data, name)


NO_MESSAGES: list[Any] = [
    [],
    {},
    "x",
    None,
    16,
    [0],
    [99, 1],
    [True, 1],
    ["16", 1, {}, "a"],
    [16],
    [16, 1, {}],
    [16, 0, {}, "a"],
    [16, 2**53 + 1, {}, "a"],
    [16, -1, {}, "a"],
    [16, True, {}, "a"],
    [16, 1.5, {}, "a"],
    [16, 1, [], "a"],
    [16, 1, {}, 7],
    [16, 1, {}, "a", {}],
    [16, 1, {}, "a", [], []],
    [16, 1, {}, "a", [], {}, 1],
    [[16], 1, {}, "a"],
    [17, 1],
    [34, 1, None],
]


@each_serializer
@pytest.mark.parametrize("elements", NO_MESSAGES)
def test_values_that_are_no_message_are_refused(name: str, elements: Any) -> None:
    encode = ENCODE[name]
    with pytest.raises(WampProtocolError):
        deserialize(encode(elements), name)
    if isinstance(elements, list):
        with pytest.raises(WampProtocolError):
            serialize(elements, name)


@each_serializer
def test_bytes_behind_a_message_are_refused(name: str) -> None:
    data = serialize([17, 1, 2], name)
    for more in (b"\x00", b"]", data):
        with pytest.raises(WampProtocolError):
            deserialize(data + more, name)


@each_serializer
@pytest.mark.parametrize("value", [object(), {1: 2}, "\ud800", {"set"}])
def test_values_that_cannot_be_carried_are_refused_when_they_are_sent(name: str, value: Any) -> None:
    with pytest.raises(WampProtocolError):
        serialize([16, 1, {}, "a", [value]], name)


def only_protocol_errors(data: bytes, name: str) -> None:
    try:
        message = deserialize(data, name)
    except WampProtocolError:
        return
    assert serialize(message, name)


@each_serializer
@given(data=st.binary(max_size=200))
@settings(max_examples=examples(150), deadline=None)
def test_any_bytes_are_a_message_or_break_the_protocol(name: str, data: bytes) -> None:
    only_protocol_errors(data, name)


@each_serializer
@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_a_message_with_changed_bytes_is_a_message_or_breaks_the_protocol(name: str, data: st.DataObject) -> None:
    payload = [{"a": [1, "\0x", None]}, 2.5, b"ab", 2**40]
    good = serialize([36, 1, 2**50, {"topic": "a"}, payload, {"k": "v"}], name)
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, len(good)))
    only_protocol_errors(good[:start] + data.draw(st.binary(max_size=6)) + good[end:], name)


@given(data=st.binary(max_size=60), head=st.sampled_from([b"\x81", b"\x80", b"\xd9", b"\xd8", b"\xc4", b"\x81\xbf"]))
@settings(max_examples=examples(150), deadline=None)
def test_any_values_of_cbor_in_a_message_are_plain_or_refused(data: bytes, head: bytes) -> None:
    only_protocol_errors(PUBLISH + head + data, "cbor")
