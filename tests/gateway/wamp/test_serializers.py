"""Messages as bytes: the vectors of the protocol, values that formats lack, and what comes back."""

import json
import math
from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wamp.message_bytes import ENCODE, PUBLISH, each_serializer
from relaycast_gateway.wamp import WampProtocolError, deserialize, serialize
from relaycast_gateway.wamp.messages import PublishedMessage, message_of
from relaycast_gateway.wamp.serializers import DEEPEST, SERIALIZER_NAMES, serializer_named
from searches import examples
from shared_vectors import shared


def in_vector(element: Any) -> Any:
    return element.hex() if isinstance(element, bytes) else element


@pytest.mark.matrix("WAMP-60")
@each_serializer
def test_every_message_of_the_protocols_vectors_is_read_and_written(name: str) -> None:
    messages = json.loads(shared("vectors/wamp/messages.json").read_text())["messages"]
    with_bytes = [message for message in messages if message["bytes"][name]]
    assert (len(messages), len(with_bytes)) == (102, 35)
    for message in with_bytes:
        forms = [bytes.fromhex(form) for form in message["bytes"][name]]
        read = [deserialize(form, name) for form in forms]
        assert read[0][0] == message["code"]
        assert all(other == read[0] for other in read)
        assert serialize(read[0], name) in forms, message["says"]
        for expected in message["expected_attributes"].values():
            details = [element.get("roles") for element in read[0] if isinstance(element, dict)]
            assert expected in [*map(in_vector, read[0]), *details, None], message["says"]


OWN_VECTORS = [
    # ids beyond 32 bits, an option, both kinds of payload
    (
        [16, 9007199254740992, {"acknowledge": True}, "a.b", [1, -2.5, None], {"k": "ü"}],
        '[16,9007199254740992,{"acknowledge":true},"a.b",[1,-2.5,null],{"k":"ü"}]'.encode(),
        "9610cf002000000000000081ab61636b6e6f776c65646765c3a3612e629301cbc004000000000000c081a16ba2c3bc",
        "86101b0020000000000000a16b61636b6e6f776c65646765f563612e628301f9c100f6a1616b62c3bc",
    ),
    # bytes among the values: JSON has them as text after U+0000
    ([36, 1, 2, {}, [b"\x00\xff"]], b'[36,1,2,{},["\\u0000AP8="]]', "952401028091c40200ff", "85182401 02a0814200ff"),
    # a payload that the router cannot read
    (
        [50, 7, {"ppt_scheme": "x_e"}, b"ab"],
        b'[50,7,{"ppt_scheme":"x_e"},"\\u0000YWI="]',
        "94320781aa7070745f736368656d65a3785f65c4026162",
        "84183207a16a7070745f736368656d6563785f65426162",
    ),
    # kwargs without args: an empty array keeps their place
    ([36, 1, 2, {}, [], {"a": 1}], b'[36,1,2,{},[],{"a":1}]', "96240102809081a16101", "8618240102a080a1616101"),
]


@pytest.mark.matrix("WAMP-60")
@pytest.mark.parametrize(("elements", "text", "packed", "cbor"), OWN_VECTORS)
def test_a_message_has_known_bytes(elements: list[Any], text: bytes, packed: str, cbor: str) -> None:
    forms = {"json": text, "msgpack": bytes.fromhex(packed), "cbor": bytes.fromhex(cbor)}
    for name, form in forms.items():
        assert deserialize(form, name) == elements
        read_back = deserialize(serialize(elements, name), name)
        assert read_back == elements
    assert serialize(elements, "json") == text
    assert serialize(elements, "msgpack") == forms["msgpack"]


@each_serializer
def test_payload_that_is_absent_is_not_written(name: str) -> None:
    assert deserialize(serialize([16, 1, {}, "a"], name), name) == [16, 1, {}, "a"]
    assert serialize([16, 1, {}, "a", None, {"k": 1}], name) == serialize([16, 1, {}, "a", [], {"k": 1}], name)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not text.startswith("\0"))
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(args=st.lists(plain, max_size=4), kwargs=st.dictionaries(st.text(max_size=8), plain, max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_plain_values_come_back_the_same_from_every_serializer(args: list[Any], kwargs: dict[str, Any]) -> None:
    message = [36, 1, 2, {"topic": "a.b"}, args, kwargs]
    for name in SERIALIZER_NAMES:
        assert deserialize(serialize(message, name), name) == message


@pytest.mark.parametrize("name", ["json", "cbor"])
def test_whole_numbers_of_any_size_are_carried(name: str) -> None:
    message = [36, 1, 2, {}, [2**70, -(2**70), 2**256 - 1]]
    assert deserialize(serialize(message, name), name) == message


ids = st.integers(0, 2**53) | st.builds(lambda bits, step: 2**bits + step, st.integers(0, 52), st.integers(-1, 1))


@given(request=ids, publication=ids)
@settings(max_examples=examples(150), deadline=None)
def test_published_has_the_bytes_of_the_library(request: int, publication: int) -> None:
    message = PublishedMessage(request, publication)
    assert serializer_named("cbor").encode(message) == cbor2.dumps([17, request, publication])


def test_published_has_the_shortest_form_of_each_number() -> None:
    edges = [0, 23, 24, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**53]
    for number in edges:
        assert serializer_named("cbor").encode(PublishedMessage(1, number)) == cbor2.dumps([17, 1, number])


@given(
    elements=st.tuples(st.sampled_from([16, 48, 32, 64, 36, 17, True, 16.0]), ids | plain, plain, plain, plain, plain),
    length=st.integers(1, 6),
)
@settings(max_examples=examples(300), deadline=None)
def test_a_request_is_read_from_cbor_as_its_class_says(elements: tuple[Any, ...], length: int) -> None:
    sent = list(elements[:length])
    whole = [int(it) if type(it) is float and it.is_integer() else it for it in sent]
    try:
        expected: Any = message_of(whole)
    except WampProtocolError:
        expected = None
    try:
        found: Any = serializer_named("cbor").decode(cbor2.dumps(sent))
    except WampProtocolError:
        found = None
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("code", [16, 48])
@pytest.mark.parametrize("payload", [[], [[1]], [[], {"k": 1}], [[1, [2]], {}], [None, {"k": 1}], [b"x"]])
def test_requests_of_every_payload_are_read_from_cbor(code: int, payload: list[Any]) -> None:
    sent = [code, 2**53, {"acknowledge": True}, "a.b", *payload]
    found = serializer_named("cbor").decode(cbor2.dumps(sent))
    assert found == message_of(sent)


def test_whole_numbers_beyond_64_bits_are_text_in_messagepack() -> None:
    message = [36, 1, 2, {}, [2**64, 2**64 - 1, -(2**63) - 1, -(2**63)]]
    read = deserialize(serialize(message, "msgpack"), "msgpack")
    assert read[4] == ["18446744073709551616", 2**64 - 1, "-9223372036854775809", -(2**63)]


def test_floats_that_json_lacks_are_null_there_and_themselves_elsewhere() -> None:
    message = [36, 1, 2, {}, [math.inf, -math.inf, math.nan]]
    assert deserialize(serialize(message, "json"), "json")[4] == [None, None, None]
    for name in ("msgpack", "cbor"):
        read = deserialize(serialize(message, name), name)[4]
        assert read[:2] == [math.inf, -math.inf]
        assert math.isnan(read[2])


def test_text_that_begins_with_nul_cannot_be_mistaken_in_json() -> None:
    message = [36, 1, 2, {"\0key": "kept"}, ["\0!", {"deep": ["\0\0", "inside\0"]}]]
    read = deserialize(serialize(message, "json"), "json")
    assert read == [36, 1, 2, {"\0key": "kept"}, [b"\0!", {"deep": [b"\0\0", "inside\0"]}]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\u0000"', b""),
        ('"\\u0000YWI="', b"ab"),
        ('{"deep":[{"a":"\\u0000YWI="}]}', {"deep": [{"a": b"ab"}]}),
        ('"\\\\u0000YWI="', "\\u0000YWI="),  # a backslash and five more characters, no U+0000
        ('"x\\u0000YWI="', "x\0YWI="),
    ],
)
def test_bytes_in_json_stand_anywhere_as_text_after_nul(text: str, value: Any) -> None:
    assert deserialize(f'[36,1,2,{{"o":{text}}},[{text}],{{"k":{text}}}]'.encode(), "json") == [
        *(36, 1, 2, {"o": value}, [value], {"k": value})
    ]


@each_serializer
@pytest.mark.parametrize("levels", [DEEPEST - 1, DEEPEST])
def test_values_may_nest_as_deep_as_the_bound(name: str, levels: int) -> None:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    message = [36, 1, 2, {}, value]
    assert deserialize(serialize(message, name), name) == message


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("msgpack", b"\xd6\xff\x00\x00\x00\x01", "1970-01-01T00:00:01Z"),  # a date of JavaScript
        ("cbor", b"\xf7", None),  # undefined of JavaScript
        ("cbor", b"\xa2\x61a\xf7\x61b\x01", {"b": 1}),
        ("msgpack", b"\xd4\x00\x00", None),  # undefined as msgpackr writes it
        ("msgpack", b"\x82\xa1a\xd4\x00\x00\xa1b\x01", {"b": 1}),
        ("cbor", b"\xc1\x1a\x51\x4b\x67\xb0", 1363896240),
        ("cbor", b"\xc0\x741970-01-01T00:00:01Z", "1970-01-01T00:00:01Z"),
        ("cbor", b"\xd8\x40\x42ab", b"ab"),  # Uint8Array of JavaScript
        ("cbor", b"\xd9\xd9\xf7\x07", 7),  # something that says it is CBOR
        ("cbor", b"\x5f\x41a\x41b\xff", b"ab"),
        ("cbor", b"\xf9\x3c\x00", 1.0),
    ],
)
def test_values_beyond_the_plain_ones_are_read_as_plain_ones(name: str, data: bytes, value: Any) -> None:
    start = PUBLISH + b"\x81" if name == "cbor" else b"\x95\x10\x01\x80\xa1a\x91"
    assert deserialize(start + data, name)[4] == [value]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("json", b'[16,1,{},"a",[{"k":1,"k":2}]]'),
        ("msgpack", b"\x95\x10\x01\x80\xa1a\x91\x82\xa1k\x01\xa1k\x02"),
        ("cbor", PUBLISH + b"\x81\xa2\x61k\x01\x61k\x02"),
    ],
)
def test_if_a_key_repeats_its_last_value_wins(name: str, data: bytes) -> None:
    assert deserialize(data, name)[4] == [{"k": 2}]


@each_serializer
def test_ids_that_a_client_writes_as_floats_are_whole_numbers(name: str) -> None:
    encode = ENCODE[name]
    read = deserialize(encode([34, 1.0, 9007199254740991.0]), name)
    assert read == [34, 1, 9007199254740991]
    assert [type(element) for element in read] == [int, int, int]


def test_a_serializer_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="expected one of json, msgpack, cbor, got 'flatbuffers'"):
        serializer_named("flatbuffers")
    assert [serializer_named(name).is_binary for name in SERIALIZER_NAMES] == [False, True, True]
