r"""The three serializers of WAMP: JSON, MessagePack and CBOR.

Law: bytes become a message of plain values or raise ``WampProtocolError``, whatever they are. Plain values are text,
booleans, whole numbers, floats, bytes, ``None``, lists, and dicts with text as keys, at most ``DEEPEST`` levels deep.
If a key repeats, its last value wins.

What the formats have beyond that is brought to plain values where nothing is lost, and refused elsewhere:

    JSON         text that begins with U+0000 is base64 of bytes, both ways and at any place. A text of ours that begins
                 with U+0000 is sent as the bytes of its UTF-8; NaN and infinities are sent as ``null``.
    MessagePack  a timestamp is read as RFC 3339 text, extension type 0 with one byte 0 is ``undefined``, as msgpackr
                 has it, other extension types are refused. Whole numbers beyond 64 bits are sent as text of digits.
    CBOR         times (tags 0 and 1) and JavaScript's Uint8Array (64) are read without their tag, big numbers (2 and 3)
                 as numbers, and the tag that says that something is CBOR (55799) is left out. Any other tag is refused:
                 its content means something else without it, or a few bytes stand for a huge value.

JavaScript's ``undefined`` is left out as the value of a key and ``None`` elsewhere, as its own JSON has it.

Source: WAMP specification, "Serializers" and "Binary conversion of JSON Strings".
"""

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from io import BytesIO
from typing import Any, ClassVar, NoReturn

import cbor2
import msgspec

from relaycast_gateway.wamp.errors import WampProtocolError
from relaycast_gateway.wamp.messages import (
    MOST_ID,
    AnyMessage,
    CallMessage,
    PublishedMessage,
    PublishMessage,
    RegisteredMessage,
    SubscribedMessage,
    WampMessage,
    message_of,
)

DEEPEST = 256
"""Maximum nesting of lists and dicts in a message.

Data of an event nest at most 64 deep. Some levels become two or three here, and a history result wraps events.
"""

MOST_NUMBER_BYTES = 1_024
"""Bytes of a big number in CBOR; JSON's largest have 4,300 digits."""

_SHOWN = 200
_PLAIN: frozenset[type] = frozenset({str, int, float, bool, bytes, type(None)})
_PLAIN_IN_JSON = _PLAIN - {bytes}
_TEXT: frozenset[type] = frozenset({str})
_UNDEFINED = cbor2.undefined

_NUMBERS: frozenset[type] = frozenset({PublishedMessage, SubscribedMessage, RegisteredMessage})
"""Messages of numbers alone: msgspec writes them as they are."""

_REQUESTS = {it.code: it for it in (PublishMessage, CallMessage)}
_SHAPES_OF_REQUESTS = {(int, int, dict, str), (int, int, dict, str, list), (int, int, dict, str, list, dict)}
"""Plain values of these kinds are such a request if the id is in range: nothing else has to be checked."""

_FAILURES = (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError, MemoryError)
"""What the libraries raise on bytes that they do not like; msgspec's errors are ``ValueError``."""


class Serializer(ABC):
    """One of the three: turns messages into bytes and back."""

    name: ClassVar[str]
    is_binary: ClassVar[bool] = True

    def encode(self, message: WampMessage) -> bytes:
        """Return the bytes of a message."""
        return self.encode_elements(message.to_wire())

    def encode_elements(self, elements: list[Any]) -> bytes:
        """Return the bytes of a message that is given as it stands on the wire; its structure is not checked."""
        try:
            return self._encoded(elements)
        except _FAILURES as error:
            raise _unfit(f"expected values that {self.name} can carry", error) from None

    def decode(self, data: bytes) -> AnyMessage:
        """Return the message that ``data`` stands for."""
        try:
            return self._decoded(data)
        except WampProtocolError:
            raise
        except _FAILURES as error:
            raise _unfit(f"expected a WAMP message in {self.name}", error) from None

    @abstractmethod
    def _encoded(self, elements: list[Any]) -> bytes: ...

    @abstractmethod
    def _decoded(self, data: bytes) -> AnyMessage: ...


class JsonSerializer(Serializer):
    """Text; what a browser speaks."""

    name = "json"
    is_binary = False

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()
        self._values = msgspec.json.Decoder()
        self._messages: msgspec.json.Decoder[AnyMessage] = msgspec.json.Decoder(AnyMessage)

    def encode(self, message: WampMessage) -> bytes:
        """Return the bytes of a message."""
        return self._encoder.encode(message) if type(message) in _NUMBERS else super().encode(message)

    def _encoded(self, elements: list[Any]) -> bytes:
        if _is_plain(elements, _PLAIN_IN_JSON):
            data = self._encoder.encode(elements)
            if b'"\\u0000' not in data:
                return data
        return self._encoder.encode(_changed(elements, _json_text))

    def _decoded(self, data: bytes) -> AnyMessage:
        if b"\\u0000" not in data and data.count(b"[") + data.count(b"{") <= DEEPEST:
            try:
                message = self._messages.decode(data)
            except msgspec.ValidationError:
                pass  # perhaps a number of the message was written as a float
            else:
                if type(getattr(message, "args", None)) is bytes:
                    raise WampProtocolError("expected a WAMP message: Expected `array | null`, got `str`")
                return message
        return _message(_changed(self._values.decode(data), _from_json_text))


class MsgpackSerializer(Serializer):
    """MessagePack: the smallest and quickest."""

    name = "msgpack"

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._values = msgspec.msgpack.Decoder(ext_hook=_extension)
        self._messages = msgspec.msgpack.Decoder(AnyMessage, ext_hook=_extension)

    def encode(self, message: WampMessage) -> bytes:
        """Return the bytes of a message."""
        return self._encoder.encode(message) if type(message) in _NUMBERS else super().encode(message)

    def _encoded(self, elements: list[Any]) -> bytes:
        try:
            return self._encoder.encode(elements)
        except OverflowError:
            return self._encoder.encode(_changed(elements, _msgpack_number))

    def _decoded(self, data: bytes) -> AnyMessage:
        try:
            message: AnyMessage = self._messages.decode(data)
        except msgspec.ValidationError:
            return self._decoded_slowly(data)
        return message if _is_plain(msgspec.structs.astuple(message)) else self._decoded_slowly(data)

    def _decoded_slowly(self, data: bytes) -> AnyMessage:
        return _message(_changed(self._values.decode(data), _itself))


class CborSerializer(Serializer):
    """CBOR (RFC 8949)."""

    name = "cbor"

    def encode(self, message: WampMessage) -> bytes:
        """Return the bytes of a message."""
        if type(message) is PublishedMessage:
            return b"\x83\x11" + _cbor_natural(message.request) + _cbor_natural(message.publication)
        return super().encode(message)

    def _encoded(self, elements: list[Any]) -> bytes:
        return cbor2.dumps(elements)

    def _decoded(self, data: bytes) -> AnyMessage:
        stream = BytesIO(data)
        values = cbor2.load(
            stream,
            max_depth=DEEPEST + 1,
            semantic_decoders=_TAGS,
            tag_hook=_refuse_tag,
            strict_hashable_types=True,
        )
        if stream.tell() != len(data):
            raise WampProtocolError("expected a WAMP message in cbor: bytes follow its end")
        is_plain = type(values) is list and _is_plain(values)
        return _message(values if is_plain else _changed(values, _itself))


def _is_plain(values: Iterable[Any], leaves: frozenset[type] = _PLAIN, levels: int = DEEPEST) -> bool:
    """Tell whether ``values`` and all in them are ``leaves``, or lists and dicts down to that many levels."""
    for value in values:
        kind = type(value)
        if kind in leaves:
            continue
        if kind is dict:
            if not levels or not _TEXT.issuperset(map(type, value)):
                return False
            inside: Iterable[Any] = value.values()
        elif kind is list and levels:
            inside = value
        else:
            return False
        if value and not _is_plain(inside, leaves, levels - 1):
            return False
    return True


def _changed(value: Any, change: Callable[[Any], Any], levels: int = DEEPEST + 1) -> Any:
    """Return ``value`` of plain values with ``change`` applied to every leaf; raises where that cannot be."""
    kind = type(value)
    if kind in _PLAIN:
        return change(value)
    if kind is list or kind is dict:
        if not levels:
            raise WampProtocolError(f"expected values at most {DEEPEST} levels deep")
        if kind is list:
            return [_changed(inner, change, levels - 1) for inner in value]
        if not _TEXT.issuperset(map(type, value)):
            raise WampProtocolError("expected text as the keys of every object")
        return {key: _changed(inner, change, levels - 1) for key, inner in value.items() if inner is not _UNDEFINED}
    if kind is datetime:
        return value.isoformat().replace("+00:00", "Z")
    if value is _UNDEFINED:
        return None
    raise WampProtocolError(f"expected plain values, got {kind.__name__}")


def _itself(value: Any) -> Any:
    return value


def _json_text(value: Any) -> Any:
    if type(value) is str and value[:1] == "\0":
        value = value.encode()
    return "\0" + base64.b64encode(value).decode() if type(value) is bytes else value


def _from_json_text(value: Any) -> Any:
    if type(value) is not str or value[:1] != "\0":
        return value
    try:
        return base64.b64decode(value[1:], validate=True)
    except (binascii.Error, ValueError):
        raise WampProtocolError("expected base64 in a text that begins with U+0000") from None


def _msgpack_number(value: Any) -> Any:
    return str(value) if type(value) is int and not -(1 << 63) <= value < 1 << 64 else value


def _message(elements: Any) -> AnyMessage:
    """Return the message of plain values; ids that a client's language has written as floats are whole numbers."""
    if type(elements) is not list:
        raise WampProtocolError(f"expected a WAMP message: Expected `array`, got `{type(elements).__name__}`")
    kinds = tuple(map(type, elements))
    if kinds in _SHAPES_OF_REQUESTS:
        request = _REQUESTS.get(elements[0])
        if request is not None and 0 < elements[1] <= MOST_ID:
            return request(*elements[1:])
    elif float in kinds:
        elements = [int(it) if type(it) is float and it.is_integer() else it for it in elements]
    return message_of(elements)


def _unfit(expected: str, error: BaseException) -> WampProtocolError:
    if isinstance(error.__cause__, WampProtocolError):  # of a callback
        return error.__cause__
    return WampProtocolError(f"{expected}: {str(error)[:_SHOWN] or type(error).__name__}")


def _extension(code: int, data: memoryview) -> Any:
    if code == 0 and bytes(data) == b"\0":  # as msgpackr writes it
        return _UNDEFINED
    raise WampProtocolError(f"expected plain values, got MessagePack's extension type {code}")


def _cbor_natural(number: int) -> bytes:
    """Return a number from 0 to 2^64 - 1 in CBOR."""
    if number >= 1 << 32:
        return b"\x1b" + number.to_bytes(8)
    if number >= 1 << 16:
        return b"\x1a" + number.to_bytes(4)
    if number >= 1 << 8:
        return b"\x19" + number.to_bytes(2)
    return number.to_bytes(1) if number < 24 else b"\x18" + number.to_bytes(1)


UINT8_ARRAY = 64
"""The tag of bytes from JavaScript's CBOR libraries."""


def _refusal_of(tag: int) -> Callable[[Any, bool], NoReturn]:
    def refuse(_content: Any, _: bool) -> NoReturn:
        raise WampProtocolError(f"expected plain values, got CBOR tag {tag}")

    return refuse


def _content(content: Any, _: bool) -> Any:
    return content


def _refuse_tag(tag: cbor2.CBORTag, _: bool) -> Any:
    if tag.tag == UINT8_ARRAY and type(tag.value) is bytes:
        return tag.value
    raise WampProtocolError(f"expected plain values, got CBOR tag {tag.tag}")


def _big_number(content: Any, _: bool) -> int:
    if type(content) is not bytes or len(content) > MOST_NUMBER_BYTES:
        raise WampProtocolError(f"expected a big number of at most {MOST_NUMBER_BYTES} bytes")
    return int.from_bytes(content)


def _big_negative_number(content: Any, is_hashed: bool) -> int:
    return -1 - _big_number(content, is_hashed)


_TAGS: dict[int, Callable[[Any, bool], Any]] = {
    **dict.fromkeys((0, 1, 55_799), _content),
    2: _big_number,
    3: _big_negative_number,
    **{it: _refusal_of(it) for it in (4, 5, 25, 28, 29, 30, 35, 36, 37, 100, 256, 258, 260, 261, 1004, 43_000)},
}
"""Tags that cbor2 decodes itself; it passes other tags to ``_refuse_tag``."""

_SERIALIZERS: dict[str, Serializer] = {it.name: it for it in (JsonSerializer(), MsgpackSerializer(), CborSerializer())}
SERIALIZER_NAMES: Sequence[str] = tuple(_SERIALIZERS)


def serializer_named(name: str) -> Serializer:
    """Return ``json``, ``msgpack`` or ``cbor``; raises ``ValueError`` for another name."""
    found = _SERIALIZERS.get(name)
    if found is None:
        raise ValueError(f"expected one of {', '.join(SERIALIZER_NAMES)}, got {name!r}")
    return found


def serialize(message: list[Any], name: str) -> bytes:
    """Return the bytes of ``message`` in JSON, MessagePack or CBOR; raises ``WampProtocolError`` if it is none."""
    return serializer_named(name).encode(message_of(_changed(message, _itself)))


def deserialize(data: bytes, name: str) -> list[Any]:
    """Return the elements of the message that ``data`` stands for; raises ``WampProtocolError`` if it is none."""
    return serializer_named(name).decode(data).to_wire()
