"""A CloudEvent as each protocol carries it: binary (attributes beside the data) or structured (one JSON text).

| protocol | attributes in binary mode | type of the content |
|---|---|---|
| ``HTTP`` | headers ``ce-NAME``, percent-encoded | ``Content-Type`` |
| ``MQTT3`` | none: always structured | none: JSON is implied |
| ``MQTT5`` | user properties ``NAME`` | content type property |
| ``AMQP`` | application properties ``cloudEvents_NAME``, typed | property ``content-type`` |
| ``KAFKA`` | headers ``ce_NAME`` | header ``content-type`` |
| ``NATS`` | headers ``ce-NAME``, percent-encoded, ``ce-datacontenttype`` too | ``Content-Type`` if structured |

Law: equal events have equal bytes. The attributes stand in the order of the specification, extensions after them by
name. Data that are JSON are copied as they are. Characters that CloudEvents forbids in an attribute (control
characters, half surrogates) become U+FFFD: an event is delivered whatever its producer wrote.
Source: CloudEvents 1.0.2, its protocol bindings and its JSON event format; the binary mode of NATS is that of 1.0.3.
"""

import base64
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from relaycast_gateway.cloudevents.event import (
    Attributes,
    AttributeValue,
    Timestamp,
    attributes_of,
    canonical_text,
    data_of,
)
from relaycast_gateway.delivery.wire_message import ContentMode, PropertyValue, WireMessage
from relaycast_gateway.record import EventRecord

PROTOCOLS = ("HTTP", "MQTT3", "MQTT5", "AMQP", "KAFKA", "NATS")
STRUCTURED_TYPE = "application/cloudevents+json; charset=utf-8"
CONTENT_TYPE = "datacontenttype"

AMQP_PREFIXES = ("cloudEvents_", "cloudEvents:")
"""Receivers read both. The first one, the default, is also a valid JMS name."""

MESSAGES_KEPT = 256
"""The newest messages of each form."""

_FIRST = ("specversion", "id", "source", "type", CONTENT_TYPE, "dataschema", "subject", "time")
_RANK = {name: rank for rank, name in enumerate(_FIRST)}

_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SAFE_IN_HEADERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_PLAIN = re.compile(r"[!#$&-~]*")  # most texts need no encoding
_SAFE_IN_CONTENT_TYPE = _SAFE_IN_HEADERS + ' "%'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = 1_000_000


def encode(
    attributes: Attributes,
    data: bytes | None,
    protocol: str,
    mode: ContentMode,
    *,
    amqp_prefix: str = AMQP_PREFIXES[0],
    key_attribute: str | None = None,
) -> WireMessage:
    """Return the message that carries an event over ``protocol``; ``data`` of ``None`` is an event without data.

    ``key_attribute`` names the attribute whose text is Kafka's partition key; an event without it has no key.
    """
    ordered = _in_order(attributes)
    key = _partition_key(ordered, key_attribute) if protocol == "KAFKA" else None
    if data is None:
        ordered.pop(CONTENT_TYPE, None)
    if mode == "structured" or protocol == "MQTT3":
        return WireMessage(structured_json(ordered, data), STRUCTURED_TYPE, key=key)
    content_type = ordered.get(CONTENT_TYPE)
    if protocol != "NATS":
        ordered.pop(CONTENT_TYPE, None)
    return WireMessage(
        data or b"",
        None if protocol == "NATS" or content_type is None else quote(str(content_type), safe=_SAFE_IN_CONTENT_TYPE),
        tuple(_properties(ordered, protocol, amqp_prefix)),
        key,
    )


def encoder(
    protocol: str, settings: Mapping[str, Any], *, mode: ContentMode = "binary", with_data: bool = True
) -> Callable[[EventRecord], WireMessage]:
    """Return what encodes records for a subscription with these realized protocol settings."""
    prefix = settings.get("attributeprefix", AMQP_PREFIXES[0])
    return _encoder(protocol, mode, with_data, prefix, settings.get("partitionkeyextractor"))


@lru_cache(maxsize=32)
def _encoder(
    protocol: str, mode: ContentMode, with_data: bool, amqp_prefix: str, key_attribute: str | None
) -> Callable[[EventRecord], WireMessage]:
    """Return the one encoder of a form: subscriptions that take the same event in the same form share its message."""
    known: OrderedDict[int, tuple[EventRecord, WireMessage]] = OrderedDict()

    def encode_record(record: EventRecord) -> WireMessage:
        found = known.get(record.seq)
        if found is not None and found[0] is record:
            return found[1]
        data = data_of(record) if with_data else None
        attributes = attributes_of(record)
        message = encode(attributes, data, protocol, mode, amqp_prefix=amqp_prefix, key_attribute=key_attribute)
        known[record.seq] = record, message
        if len(known) > MESSAGES_KEPT:
            known.popitem(last=False)
        return message

    return encode_record


def structured_json(attributes: Attributes, data: bytes | None) -> bytes:
    """Return the event as one JSON text, attributes in their given order.

    Data of a JSON type that are JSON stand as they are in ``data``, data of a text type in UTF-8 as a string, anything
    else in Base64 in ``data_base64``.
    """
    shown = {
        name: value if isinstance(value, bool | str) or type(value) is int else canonical_text(value)
        for name, value in attributes.items()
    }
    if data is None:
        return _json(shown)
    declared = str(attributes.get(CONTENT_TYPE, "application/json"))
    if _is_json(declared) and _holds_json(data):
        return b"".join([_json(shown)[:-1], b',"data":', data, b"}"])
    text = _text_of(declared, data)
    member = {"data_base64": base64.b64encode(data).decode()} if text is None else {"data": text}
    return _json({**shown, **member})


def header_text(text: str) -> str:
    """Return a header's value: spaces, double quotes, per cent signs and all but printable ASCII percent-encoded."""
    return text if _PLAIN.fullmatch(text) else quote(text, safe=_SAFE_IN_HEADERS)


def _in_order(attributes: Attributes) -> dict[str, AttributeValue]:
    names = sorted(attributes, key=lambda name: (_RANK.get(name, len(_FIRST)), name))
    return {name: _allowed(attributes[name]) for name in names}


def _allowed(value: AttributeValue) -> AttributeValue:
    return _FORBIDDEN.sub("\ufffd", value) if isinstance(value, str) else value


def _partition_key(attributes: Attributes, name: str | None) -> bytes | None:
    value = attributes.get(name) if name is not None else None
    return None if value is None else canonical_text(value).encode()


def _properties(attributes: Attributes, protocol: str, amqp_prefix: str) -> Iterator[tuple[str, PropertyValue]]:
    for name, value in attributes.items():
        if protocol == "AMQP":
            yield amqp_prefix + name, _amqp_value(value)
        elif protocol == "MQTT5":
            yield name, canonical_text(value)
        elif protocol == "KAFKA":
            yield f"ce_{name}", canonical_text(value)
        else:
            yield f"ce-{name}", header_text(canonical_text(value))


def _amqp_value(value: AttributeValue) -> PropertyValue:
    """Return the value with its AMQP type; a moment between milliseconds is a string: AMQP's type cannot hold it."""
    if not isinstance(value, Timestamp):
        return value
    milliseconds, rest = divmod(int(value), _MILLISECOND)
    return str(value) if rest else _EPOCH + timedelta(milliseconds=milliseconds)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _media_type(declared: str) -> tuple[str, str, str]:
    """Return the type, the subtype and the charset of a media type, in lower case."""
    essence, *parameters = (part.strip().lower() for part in declared.split(";"))
    kind, _, subtype = essence.partition("/")
    charsets = [value.strip(' "') for name, _, value in (it.partition("=") for it in parameters) if name == "charset"]
    return kind, subtype, charsets[0] if charsets else "utf-8"


def _is_json(declared: str) -> bool:
    _, subtype, charset = _media_type(declared)
    return (subtype == "json" or subtype.endswith("+json")) and charset in {"utf-8", "us-ascii"}


def _holds_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return False
    return True


def _text_of(declared: str, data: bytes) -> str | None:
    """Return data of a text type as text, ``None`` where they are binary."""
    kind, subtype, charset = _media_type(declared)
    is_text = kind == "text" or subtype == "xml" or subtype.endswith("+xml")
    if not is_text or charset not in {"utf-8", "us-ascii"}:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
