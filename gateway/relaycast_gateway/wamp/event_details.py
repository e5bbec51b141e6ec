"""What EVENT says beside the payload, and how the log remembers it.

Law: the topic stands in the details of every subscription to a pattern. A publisher is named only where the
publication disclosed it, then and in the history alike. An event that no WAMP client published has what WAMP has no
word for in members of its own: ``_source`` and ``_event_id`` (Crockford Base32), together unique, ``_time`` (when it
happened), ``_subject``. An event whose payload WAMP cannot represent has none; ``_unreadable`` is the reason.
"""

from collections.abc import Mapping
from typing import Any

from relaycast_gateway.icrc16 import Icrc16, Tag, map_of, nat, text
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.record import EventRecord, Headers
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.messages import Arguments, Details
from relaycast_gateway.wamp.payload import payload_of, value_of

PUBLISHER = "wamp:publisher"
"""The header with the members that name a disclosed publisher."""

OWN_HEADERS = "wamp:"
"""Prefix of all headers of an event that a WAMP client published."""

OPTIONS = "wamp:options"
"""The header with what receivers need to read a payload that is passed through."""


def headers_of(publisher: Mapping[str, object], passed_on: Mapping[str, str]) -> Headers:
    """Return the headers from which ``recorded_details`` tells the details again."""
    headers: list[tuple[str, Icrc16]] = []
    if publisher:
        members = {name: nat(it) if isinstance(it, int) else text(str(it)) for name, it in publisher.items()}
        headers.append((PUBLISHER, map_of(members)))
    if passed_on:
        headers.append((OPTIONS, map_of({name: text(it) for name, it in passed_on.items()})))
    return tuple(headers)


def recorded_details(record: EventRecord) -> Details:
    """Return the details of a stored event, but for the topic."""
    is_own = all(name.startswith(OWN_HEADERS) for name, _ in record.headers)
    details: Details = {} if is_own else _identity(record)
    for name, value in record.headers:
        if name in (PUBLISHER, OPTIONS) and value.tag is Tag.MAP:
            details.update(value_of(value))
    return details


def recorded_event(record: EventRecord) -> tuple[Details, Arguments, Details | None]:
    """Return details, args and kwargs of a stored event, which may be unreadable in a log of an earlier version."""
    try:
        return recorded_details(record), *payload_of(record)
    except ValueError as error:
        return {**_identity(record), "_unreadable": str(error)}, None, None


def _identity(record: EventRecord) -> Details:
    subject = {} if record.subject is None else {"_subject": record.subject}
    return {
        "_source": record.source_uri,
        "_event_id": record.text_id,
        "_time": format_time(record.occurred_ns),
        **subject,
    }


def details_for(pattern: TopicPattern, topic: str, details: Details) -> dict[str, Any]:
    """Return the details as a subscription to ``pattern`` sees them."""
    return details if pattern.match is Match.EXACT else {"topic": topic, **details}
