"""The six bindings, byte by byte, and two hands of the Python SDK that take them apart again."""

import base64
import json
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from cloudevents.core.bindings import amqp, http, kafka
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.cloudevents.encoding import PROTOCOLS, encode, encoder, header_text
from relaycast_gateway.cloudevents.event import AttributeValue, Timestamp
from relaycast_gateway.delivery.wire_message import ContentMode
from relaycast_gateway.icrc16 import blob, nat, text
from relaycast_gateway.record import EVERYBODY, EventRecord, Headers

MODES: tuple[ContentMode, ...] = ("binary", "structured")
MOMENT = Timestamp(1_767_225_600_123_000_000)
ATTRIBUTES: dict[str, AttributeValue] = {
    "type": "io.relaycast.data.published",
    "zone": True,
    "blocknumber": 7,
    "digest": b"\x00\xff",
    "time": MOMENT,
    "id": "7Q",
    "source": "/principal/aaaaa-aa",
    "specversion": "1.0",
    "subject": 'Zoë "50 %"',
    "datacontenttype": "application/json",
}


def record(data: bytes = b"", headers: Headers = ()) -> EventRecord:
    value = blob(data) if headers else nat(5)
    return EventRecord(9, 4, None, 1, int(MOMENT), 0, "io.relaycast.x", b"", "k", value, headers, EVERYBODY)


def test_http_has_percent_encoded_headers_in_the_order_of_the_specification() -> None:
    message = encode(ATTRIBUTES, b"{}", "HTTP", "binary")
    assert (message.body, message.content_type, message.key) == (b"{}", "application/json", None)
    assert message.properties == (
        ("ce-specversion", "1.0"),
        ("ce-id", "7Q"),
        ("ce-source", "/principal/aaaaa-aa"),
        ("ce-type", "io.relaycast.data.published"),
        ("ce-subject", "Zo%C3%AB%20%2250%20%25%22"),
        ("ce-time", "2026-01-01T00:00:00.123Z"),
        ("ce-blocknumber", "7"),
        ("ce-digest", "AP8="),
        ("ce-zone", "true"),
    )


@pytest.mark.matrix("CE-68")
def test_mqtt_5_has_the_attributes_unchanged_as_user_properties() -> None:
    message = encode(ATTRIBUTES, b"{}", "MQTT5", "binary")
    assert (message.body, message.content_type) == (b"{}", "application/json")
    assert dict(message.properties)["subject"] == 'Zoë "50 %"'
    assert [name for name, _ in message.properties][:4] == ["specversion", "id", "source", "type"]
    assert "datacontenttype" not in dict(message.properties)


@pytest.mark.matrix("CE-69")
@pytest.mark.parametrize("mode", MODES)
def test_mqtt_3_is_always_structured(mode: ContentMode) -> None:
    message = encode(ATTRIBUTES, b'{"a": 1}', "MQTT3", mode)
    assert message.properties == ()
    assert json.loads(message.body)["data"] == {"a": 1}


@pytest.mark.matrix("CE-74")
@pytest.mark.parametrize("prefix", ["cloudEvents:", "cloudEvents_"])
def test_amqp_has_one_prefix_and_its_own_types(prefix: str) -> None:
    message = encode(ATTRIBUTES, b"{}", "AMQP", "binary", amqp_prefix=prefix)
    names = [name for name, _ in message.properties]
    assert all(name.startswith(prefix) for name in names)
    values = {name.removeprefix(prefix): value for name, value in message.properties}
    assert values["zone"] is True
    assert values["blocknumber"] == 7
    assert values["digest"] == b"\x00\xff"
    assert values["time"] == datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
    assert values["source"] == "/principal/aaaaa-aa"


def test_amqp_has_a_moment_between_milliseconds_as_text() -> None:
    message = encode({**ATTRIBUTES, "time": Timestamp(int(MOMENT) + 1)}, b"{}", "AMQP", "binary")
    assert dict(message.properties)["cloudEvents_time"] == "2026-01-01T00:00:00.123000001Z"


@pytest.mark.matrix("CE-79")
def test_kafka_has_headers_with_an_underscore() -> None:
    message = encode(ATTRIBUTES, b"{}", "KAFKA", "binary")
    assert message.content_type == "application/json"
    assert dict(message.properties)["ce_subject"] == 'Zoë "50 %"'
    assert all(name.startswith("ce_") for name, _ in message.properties)


@pytest.mark.matrix("CE-76")
@pytest.mark.parametrize(
    ("attribute", "key"),
    [("subject", 'Zoë "50 %"'.encode()), ("blocknumber", b"7"), ("zone", b"true"), ("absent", None), (None, None)],
)
@pytest.mark.parametrize("mode", MODES)
def test_the_partition_key_is_the_text_of_one_attribute(
    attribute: str | None, key: bytes | None, mode: ContentMode
) -> None:
    message = encode(ATTRIBUTES, b"{}", "KAFKA", mode, key_attribute=attribute)
    assert message.key == key
    assert encode(ATTRIBUTES, b"{}", "HTTP", mode, key_attribute=attribute).key is None


@pytest.mark.matrix("CE-81")
def test_nats_has_percent_encoded_headers_and_the_content_type_among_them() -> None:
    message = encode(ATTRIBUTES, b"{}", "NATS", "binary")
    assert message.content_type is None
    assert dict(message.properties)["ce-datacontenttype"] == "application/json"
    assert dict(message.properties)["ce-subject"] == "Zo%C3%AB%20%2250%20%25%22"
    structured = encode(ATTRIBUTES, b"{}", "NATS", "structured")
    assert structured.content_type == "application/cloudevents+json; charset=utf-8"


def test_the_example_of_the_binding_is_encoded_as_it_says() -> None:
    assert header_text("Euro € 😀") == "Euro%20%E2%82%AC%20%F0%9F%98%80"


@given(st.text())
def test_a_header_is_printable_ascii_and_reads_back(value: str) -> None:
    shown = encode({**ATTRIBUTES, "subject": value or "x"}, b"", "HTTP", "binary")
    header = str(dict(shown.properties)["ce-subject"])
    assert all("!" <= character <= "~" and character != '"' for character in header)
    controls = {chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]}
    assert unquote(header) == "".join("\ufffd" if it in controls else it for it in value or "x")


@pytest.mark.parametrize(
    ("content_type", "data", "member"),
    [
        ("application/json", b' {"a" : [1,2.50]} ', b'"data": {"a" : [1,2.50]} }'),  # copied, not written anew
        ("application/vnd.x+json; charset=UTF-8", b"null", b'"data":null}'),
        ("application/json", b"{not json", b'"data_base64":"e25vdCBqc29u"}'),
        ("application/json; charset=utf-16", b"[]", b'"data_base64":"W10="}'),
        ("application/json", b"[" * 5_000, b'"data_base64":"' + base64.b64encode(b"[" * 5_000) + b'"}'),
        ("text/plain", "Grüße\n".encode(), '"data":"Grüße\\n"}'.encode()),
        ("text/plain; charset=iso-8859-1", b"Gr\xfc", b'"data_base64":"R3L8"}'),
        ("text/plain", b"\xff", b'"data_base64":"/w=="}'),
        ("application/xml", b"<a/>", b'"data":"<a/>"}'),
        ("application/octet-stream", b"\x00\x01", b'"data_base64":"AAE="}'),
    ],
)
def test_structured_data_take_the_form_of_their_type(content_type: str, data: bytes, member: bytes) -> None:
    body = encode({**ATTRIBUTES, "datacontenttype": content_type}, data, "HTTP", "structured").body
    assert body.endswith(member)
    assert json.loads(body)["datacontenttype"] == content_type


def test_structured_attributes_keep_their_json_types() -> None:
    found = json.loads(encode(ATTRIBUTES, b"{}", "HTTP", "structured").body)
    assert list(found)[:8] == [
        "specversion",
        "id",
        "source",
        "type",
        "datacontenttype",
        "subject",
        "time",
        "blocknumber",
    ]
    assert (found["zone"], found["blocknumber"], found["digest"]) == (True, 7, "AP8=")
    assert found["time"] == "2026-01-01T00:00:00.123Z"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mode", MODES)
def test_equal_events_have_equal_bytes(protocol: str, mode: ContentMode) -> None:
    turned = dict(reversed(ATTRIBUTES.items()))
    assert encode(turned, b"{}", protocol, mode) == encode(ATTRIBUTES, b"{}", protocol, mode)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_producer_can_break_out_of_a_header(protocol: str) -> None:
    bad: dict[str, AttributeValue] = {
        **ATTRIBUTES,
        "subject": "a\r\nX: 1\x00\ud800",
        "datacontenttype": "text/plain\r\nX: 1",
    }
    message = encode(bad, b"", protocol, "binary")
    shown = [message.content_type or "", *(str(value) for _, value in message.properties)]
    assert not [it for it in shown if any(character in it for character in "\r\n\x00\ud800")]


def test_an_event_without_data_has_no_content_type() -> None:
    binary = encode(ATTRIBUTES, None, "HTTP", "binary")
    assert (binary.body, binary.content_type) == (b"", None)
    structured = json.loads(encode(ATTRIBUTES, None, "HTTP", "structured").body)
    assert not structured.keys() & {"data", "data_base64", "datacontenttype"}


def test_a_record_is_encoded_with_the_settings_of_its_subscription() -> None:
    encode_record = encoder("KAFKA", {"topicname": "t", "partitionkeyextractor": "subject"})
    message = encode_record(record())
    assert (message.body, message.key) == (b"5", b"k")
    amqp_message = encoder("AMQP", {"attributeprefix": "cloudEvents:"}, mode="binary")(record())
    assert amqp_message.properties[0] == ("cloudEvents:specversion", "1.0")
    assert encoder("HTTP", {}, with_data=False)(record()).body == b""
    typed = record(b"\x00\x01", (("ce:datacontenttype", text("application/x-own")),))
    verbatim = encoder("HTTP", {})(typed)
    assert (verbatim.body, verbatim.content_type) == (b"\x00\x01", "application/x-own")


@pytest.mark.parametrize("mode", MODES)
def test_the_python_sdk_reads_http_kafka_and_amqp(mode: ContentMode) -> None:
    plain: dict[str, AttributeValue] = {name: ATTRIBUTES[name] for name in ATTRIBUTES if name not in {"zone", "digest"}}
    data = b'{"key":"\xc3\xab"}'
    sent = encode(plain, data, "HTTP", mode)
    headers = {name: str(value) for name, value in sent.properties} | {"content-type": sent.content_type or ""}
    over_http = http.from_http_event(http.HTTPMessage(headers, sent.body))
    kept = encode(plain, data, "KAFKA", mode)
    names = {name: str(value).encode() for name, value in kept.properties}
    typed = {**names, "content-type": (kept.content_type or "").encode()}
    over_kafka = kafka.from_kafka_event(kafka.KafkaMessage(typed, None, kept.body))
    moved = encode(plain, data, "AMQP", mode)
    over_amqp = amqp.from_amqp_event(
        amqp.AMQPMessage({"content-type": moved.content_type}, _wire_values(dict(moved.properties)), moved.body)
    )
    for event in (over_http, over_kafka, over_amqp):
        assert event.get_id() == "7Q"
        assert event.get_subject() == 'Zoë "50 %"'
        assert event.get_time() == datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
        assert str(event.get_extension("blocknumber")) == "7"
        assert event.get_data() == {"key": "ë"}


def _wire_values(values: dict[str, object]) -> dict[str, object]:
    """Return the values as an AMQP library hands them over: a moment is milliseconds."""
    return {
        name: round(value.timestamp() * 1_000) if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def test_subscriptions_that_take_an_event_in_the_same_form_share_its_message() -> None:
    first, second = (encoder("HTTP", {"method": method}) for method in ("POST", "PUT"))
    structured = encoder("HTTP", {}, mode="structured")
    records = [record()._replace(seq=seq) for seq in range(1, 1_000)]
    messages = [first(each) for each in records]
    assert second(records[-1]) is messages[-1]
    assert second(records[0]) == messages[0]
    assert structured(records[-1]) != messages[-1]
    other = records[-1]._replace(subject="another event of that number")
    assert first(other) != messages[-1]
