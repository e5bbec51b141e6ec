"""A record of the log as a CloudEvent: its context attributes and its data.

| attribute | from the record |
|---|---|
| ``id`` | ``event_id`` as Crockford Base32 |
| ``source`` | ``source_uri``: the path of a chain, else ``/principal/PRINCIPAL/NAMESPACE`` |
| ``type`` | ``namespace`` |
| ``subject`` | ``subject``, where there is one |
| ``time`` | ``occurred_ns`` |
| ``sequence`` | ``seq`` with 20 digits, so that texts sort as numbers do |
| ``previd`` | ``prev_id`` as Crockford Base32, where there is one |
| any other | each header ``ce:NAME`` with a text, a boolean, or a whole number |

Data are the JSON of ``icrc16``; a blob with the header ``ce:datacontenttype`` is data of that type, byte for byte.
Source: CloudEvents 1.0.2, "Context Attributes" and "Type System".
"""

import base64
import json
import re
from collections.abc import Mapping

from relaycast_gateway import crockford
from relaycast_gateway.icrc16 import WHOLE_NUMBERS, Icrc16, Tag, digits_of, to_json
from relaycast_gateway.record import EventRecord
from relaycast_gateway.rfc3339 import format_time

SPEC_VERSION = "1.0"
JSON_TYPE = "application/json"
HEADER_PREFIX = "ce:"
TYPE_HEADER = "ce:datacontenttype"

MOST_INTEGER = (1 << 31) - 1
"""CloudEvents has whole numbers of 32 bits with sign; larger ones become text."""

ATTRIBUTE_NAME = re.compile(r"[a-z0-9]{1,20}")
DERIVED = frozenset({"id", "source", "type", "subject", "time", "specversion", "sequence", "previd", "data"})
"""Names that no header may set."""


class Timestamp(int):
    """A moment, nanoseconds since 1970; as text RFC 3339 in UTC."""

    __slots__ = ()

    def __str__(self) -> str:
        return format_time(self)


AttributeValue = str | bool | int | bytes | Timestamp

Attributes = Mapping[str, AttributeValue]
"""The context attributes by name, each with the type that CloudEvents gives it."""


def attributes_of(record: EventRecord) -> dict[str, AttributeValue]:
    """Return the context attributes of a record; ``ValueError`` for one that CloudEvents cannot carry."""
    attributes: dict[str, AttributeValue] = {
        "specversion": SPEC_VERSION,
        "id": record.text_id,
        "source": record.source_uri,
        "type": record.namespace,
        "time": Timestamp(record.occurred_ns),
        "sequence": f"{record.seq:020}",
    }
    if record.subject is not None:
        attributes["subject"] = record.subject
    if record.prev_id is not None:
        attributes["previd"] = crockford.encode(record.prev_id)
    for name, value in reversed(record.headers):  # the first header of a name counts
        attribute = name.removeprefix(HEADER_PREFIX)
        known = _attribute(value)
        if attribute != name and known is not None and attribute not in DERIVED and ATTRIBUTE_NAME.fullmatch(attribute):
            attributes[attribute] = known
    if not is_verbatim(record):
        attributes["datacontenttype"] = JSON_TYPE
    return attributes


def is_verbatim(record: EventRecord) -> bool:
    """Return whether the data are bytes of a type of their own."""
    return record.data.tag is Tag.BLOB and record.header(TYPE_HEADER) is not None


def data_of(record: EventRecord) -> bytes:
    """Return the data as bytes of the type that ``datacontenttype`` names."""
    if is_verbatim(record):
        return bytes(record.data.content)
    return json.dumps(to_json(record.data), separators=(",", ":"), ensure_ascii=False).encode()


def canonical_text(value: object) -> str:
    """Return an attribute's canonical string encoding: ``true``, ``5``, Base64 of binary, RFC 3339 of a moment."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def _attribute(value: Icrc16) -> AttributeValue | None:
    tag, content = value
    if tag in WHOLE_NUMBERS:
        return int(content) if -MOST_INTEGER - 1 <= content <= MOST_INTEGER else digits_of(content)
    if tag in {Tag.TEXT, Tag.BOOL, Tag.BLOB} and content != "":
        found: AttributeValue = content
        return found
    return None
