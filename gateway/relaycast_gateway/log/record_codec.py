"""The stored form of an event: MessagePack of what its producer handed in.

An ICRC-16 value is the pair of its tag's name and its content. MessagePack has whole numbers of 64 bits; larger ones
are the extension 1, big-endian in two's complement.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from relaycast_gateway.icrc16 import Icrc16, Property, Tag, check_number
from relaycast_gateway.principal import MOST_BYTES
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Headers, Visibility
from relaycast_trie import blake2_256

LARGE_NUMBER = 1
"""The extension's number."""

LONGEST_NAMESPACE = 1024
"""Characters, of a topic as well."""

_LEAST_TIME, _MOST_TIME = -(1 << 63), (1 << 63) - 1
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1

_ENCODER = msgspec.msgpack.Encoder()

Body = tuple[bytes, str | None, Icrc16, Headers]
"""Source, subject, data, headers."""


def encode_body(draft: EventDraft) -> bytes:
    """Return the stored form; ``ValueError`` for a draft that the log cannot hold, or a face cannot carry."""
    _check(draft)
    return _encoded((draft.source, draft.subject, draft.data, draft.headers), _checked_number)


def decode_body(stored: bytes) -> Body:
    """Return what was stored; ``ValueError`` for other bytes."""
    try:
        source, subject, data, headers = _DECODER.decode(stored)
        return source, subject, _value(data), tuple([(name, _value(value)) for name, value in headers])
    except (msgspec.DecodeError, TypeError, ValueError, KeyError) as error:
        raise ValueError(f"expected a stored event, got {len(stored)} bytes that are none: {error}") from None


def encode_headers(headers: Headers) -> bytes:
    """Return the stored form; ``ValueError`` where a text has no UTF-8."""
    return _encoded(headers)


def decode_headers(stored: bytes) -> Headers:
    """Return what was stored; ``ValueError`` for other bytes."""
    try:
        return tuple([(name, _value(value)) for name, value in _DECODER.decode(stored)])
    except (msgspec.DecodeError, TypeError, ValueError, KeyError) as error:
        raise ValueError(f"expected stored headers, got {len(stored)} bytes that are none: {error}") from None


def encode_visibility(visibility: Visibility) -> bytes:
    """Return the stored form; ``ValueError`` where a text has no UTF-8."""
    return _encoded(_visibility(visibility))


def decode_visibility(stored: bytes) -> Visibility:
    """Return what was stored; ``ValueError`` for other bytes."""
    try:
        limits = _LIMITS.decode(stored)
    except (msgspec.DecodeError, ValueError) as error:
        raise ValueError(f"expected a stored visibility, got {len(stored)} bytes that are none: {error}") from None
    return EVERYBODY if limits is None else Visibility(*limits)


def record_hash(record: EventRecord) -> bytes:
    """Return BLAKE2b-256 of all that a record is, in the form in which the log stores values."""
    return blake2_256(
        _encoded(
            (
                record.seq,
                record.event_id,
                record.prev_id,
                record.pub_id,
                record.occurred_ns,
                record.received_ns,
                record.namespace,
                record.topic,
                record.source,
                record.subject,
                record.data,
                record.headers,
                _visibility(record.visibility),
            )
        )
    )


def _check(draft: EventDraft) -> None:
    _check_name("namespace", draft.namespace)
    if draft.topic is not None:
        _check_name("topic", draft.topic)
    if len(draft.source) > MOST_BYTES:
        raise ValueError(f"source: got {len(draft.source)} bytes, expected a principal of at most {MOST_BYTES}")
    if not _LEAST_TIME <= draft.occurred_ns <= _MOST_TIME:
        raise ValueError(f"occurred_ns: got {draft.occurred_ns}, expected nanoseconds in 64 bits")
    if draft.event_id is not None:
        _check_id("event_id", draft.event_id)
    if draft.prev_id is not None:
        _check_id("prev_id", draft.prev_id)
    if draft.visibility is not EVERYBODY:
        encode_visibility(draft.visibility)


def _check_id(what: str, number: int) -> None:
    try:
        check_number(number)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    if number < 0:
        raise ValueError(f"{what}: got {number}, expected a natural number")


def _check_name(what: str, name: str) -> None:
    if not 0 < len(name) <= LONGEST_NAMESPACE:
        raise ValueError(f"{what}: got {len(name)} characters, expected 1 to {LONGEST_NAMESPACE}")
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{what}: got a text that has no UTF-8: {error}") from None


def _visibility(given: Visibility) -> tuple[tuple[str, ...] | None, ...] | None:
    if given == EVERYBODY:
        return None
    return given.eligible_authid, given.eligible_authrole, given.exclude_authid, given.exclude_authrole


def _encoded(value: Any, large: "Callable[[int], msgspec.msgpack.Ext] | None" = None) -> bytes:
    try:
        return _ENCODER.encode(value)
    except OverflowError:
        return _ENCODER.encode(_with_extensions(value, large or _large))
    except UnicodeEncodeError as error:
        raise ValueError(f"a text of an event has no UTF-8: {error}") from None


def _with_extensions(value: Any, large: Callable[[int], msgspec.msgpack.Ext]) -> Any:
    """Return a copy in which ``large`` replaces each number beyond 64 bits by an extension."""
    if isinstance(value, tuple):
        return tuple(_with_extensions(each, large) for each in value)
    return large(value) if isinstance(value, int) and not _LEAST <= value <= _MOST else value


def _large(number: int) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(LARGE_NUMBER, number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def _checked_number(number: int) -> msgspec.msgpack.Ext:
    check_number(number)
    return _large(number)


def _large_number(code: int, stored: memoryview) -> int:
    if code != LARGE_NUMBER:
        raise ValueError(f"extension {code}")
    return int.from_bytes(stored, "big", signed=True)


_DECODER = msgspec.msgpack.Decoder(ext_hook=_large_number)
_Names = tuple[str, ...]
_LIMITS = msgspec.msgpack.Decoder(tuple[_Names | None, _Names | None, _Names, _Names] | None)


def _value(stored: Any) -> Icrc16:
    name, content = stored
    tag, read = _READERS[name]
    return _new(Icrc16, (tag, content if read is None else read(content)))


_new: Callable[..., Icrc16] = tuple.__new__
"""Makes a named tuple without the detour over its ``__new__``: reading is mostly that."""


def _values(stored: list[Any]) -> tuple[Icrc16, ...]:
    return tuple([_value(each) for each in stored])


_CONTENTS: Mapping[Tag, Callable[[Any], Any]] = {
    Tag.NATS: tuple,
    Tag.FLOATS: tuple,
    Tag.ARRAY: _values,
    Tag.SET: _values,
    Tag.OPTION: lambda stored: None if stored is None else _value(stored),
    Tag.MAP: lambda stored: tuple([(name, _value(value)) for name, value in stored]),
    Tag.VALUE_MAP: lambda stored: tuple([(_value(key), _value(value)) for key, value in stored]),
    Tag.CLASS: lambda stored: tuple([Property(name, _value(value), fixed) for name, value, fixed in stored]),
}
_READERS = {tag.value: (tag, _CONTENTS.get(tag)) for tag in Tag}
