"""Payload of WAMP messages as data of events, and data of any event as payload.

Law: what a client published comes back equal, and data from elsewhere becomes a payload whatever it is.

| payload | data |
|---|---|
| none | ``Option(null)`` |
| args | ``Array`` |
| kwargs, with no args or an empty list of them | ``Map`` |
| args and kwargs | ``Map`` of ``args`` and ``kwargs``, and the header ``wamp:payload`` = ``args+kwargs`` |
| args and an empty kwargs | ``Array``, and the header ``wamp:payload`` = ``args+empty`` |
| bytes of an application's own serializer | ``Blob``, and the header ``wamp:payload`` = ``bytes`` |

Data from elsewhere: a ``Map`` of different keys is kwargs, an ``Array`` args, anything else the only one of args. Whole
numbers are ``Nat`` or ``Int``, bytes are ``Blob``, ``null`` is ``Option(null)``. In the other direction, no serializer
has a form for some values. A number beyond 64 bits becomes a text of digits, a principal its text. Pairs whose keys
repeat or are no texts become arrays of two.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaycast_gateway.icrc16 import DEEPEST, NOTHING, Icrc16, Tag, digits_of, text
from relaycast_gateway.principal import MOST_BYTES, principal_text
from relaycast_gateway.record import EventRecord, Headers
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, WampError
from relaycast_gateway.wamp.messages import Arguments, Details

PAYLOAD = "wamp:payload"
"""The header that tells payloads apart whose data looks alike."""

LEAST_NUMBER, MOST_NUMBER = -(1 << 63), (1 << 64) - 1
"""The whole numbers that every serializer has."""

_BOTH: Headers = ((PAYLOAD, text("args+kwargs")),)
_EMPTY_KWARGS: Headers = ((PAYLOAD, text("args+empty")),)
_BYTES: Headers = ((PAYLOAD, text("bytes")),)

_new: Callable[..., Icrc16] = tuple.__new__
"""Makes a named tuple without the detour over its ``__new__``: a publication makes one for each value."""

_ARRAY, _MAP, _NAT, _INT = Tag.ARRAY, Tag.MAP, Tag.NAT, Tag.INT
"""A member of an enumeration is slow to look up."""

_TRUE, _FALSE = Icrc16(Tag.BOOL, True), Icrc16(Tag.BOOL, False)


def data_of(args: Arguments, kwargs: Details | None) -> tuple[Icrc16, Headers]:
    """Return the data of an event with this payload, and the headers that it needs.

    ``WampError`` for what no event can hold: values that nest deeper than 64, numbers beyond 64 bits, keys that are no
    texts, kinds of values that WAMP does not know.
    """
    if isinstance(args, bytes):
        if kwargs:
            raise _refusal("expected no kwargs beside the bytes of a serializer")
        return Icrc16(Tag.BLOB, args), _BYTES
    if kwargs is None:
        if args is None:
            return NOTHING, ()
        return _read_list(args, DEEPEST), ()
    if not args:
        return _read_dict(kwargs, DEEPEST), ()
    if not kwargs:
        return _read_list(args, DEEPEST), _EMPTY_KWARGS
    both = (("args", _read_list(args, DEEPEST - 1)), ("kwargs", _read_dict(kwargs, DEEPEST - 1)))
    return _new(Icrc16, (_MAP, both)), _BOTH


def payload_of(record: EventRecord) -> tuple[Arguments, Details | None]:
    """Return args and kwargs of an event of any face; ``ValueError`` if WAMP cannot represent them."""
    data = record.data
    if record.headers:
        mark = record.header(PAYLOAD)
        if mark is not None:
            return _marked(mark.content, data)
    return _unmarked(data)


def value_of(data: Icrc16) -> Any:
    """Return what serializers take for any ICRC-16 value."""
    tag, content = data
    return _WRITERS[tag](content)


def _marked(mark: Any, data: Icrc16) -> tuple[Arguments, Details | None]:
    """Read a payload by its mark; data that does not fit it was changed or marked by somebody else."""
    tag, content = data
    if mark == "bytes" and tag is Tag.BLOB:
        return content, None
    if mark == "args+empty" and tag is Tag.ARRAY:
        return _list(content), {}
    if mark == "args+kwargs" and tag is Tag.MAP and [name for name, _ in content] == ["args", "kwargs"]:
        args, kwargs = (value_of(value) for _, value in content)
        if isinstance(args, list) and isinstance(kwargs, dict):
            return args, kwargs
    return _unmarked(data)


def _unmarked(data: Icrc16) -> tuple[Arguments, Details | None]:
    tag, content = data
    if tag is Tag.OPTION and content is None:
        return None, None
    if tag is Tag.ARRAY:
        return _list(content), None
    value = value_of(data)
    if tag is Tag.MAP and isinstance(value, dict):
        return None, value
    return [value], None


def _unknown(value: Any, _: int) -> Icrc16:
    raise _refusal(f"expected values that JSON has, or bytes, got {type(value).__name__}")


def _read_number(value: int, _: int) -> Icrc16:
    if not LEAST_NUMBER <= value <= MOST_NUMBER:
        raise _refusal(f"expected whole numbers of 64 bits, got one of {value.bit_length()}")
    return _new(Icrc16, (_NAT if value >= 0 else _INT, value))


def _read_list(value: Sequence[Any], room: int) -> Icrc16:
    if not room:
        raise _refusal(f"expected values at most {DEEPEST} deep")
    room -= 1
    values = [
        _new(Icrc16, (_LEAVES[kind], each))
        if (kind := type(each)) in _LEAVES
        else _READERS.get(kind, _unknown)(each, room)
        for each in value
    ]  # a call for each leaf would take longer than all the rest
    return _new(Icrc16, (_ARRAY, tuple(values)))


def _read_dict(value: Mapping[Any, Any], room: int) -> Icrc16:
    if not room:
        raise _refusal(f"expected values at most {DEEPEST} deep")
    room -= 1
    entries = [
        (
            key,
            _new(Icrc16, (_LEAVES[kind], each))
            if (kind := type(each)) in _LEAVES
            else _READERS.get(kind, _unknown)(each, room),
        )
        for key, each in value.items()
    ]
    for key in value:
        if type(key) is not str:
            raise _refusal(f"expected texts as keys, got {type(key).__name__}")
    return _new(Icrc16, (_MAP, tuple(entries)))


_LEAVES: Mapping[type, Tag] = {str: Tag.TEXT, float: Tag.FLOAT, bytes: Tag.BLOB}
"""Kinds of values that are the content of their tag as they are."""

_READERS: Mapping[type, Callable[[Any, int], Icrc16]] = {
    int: _read_number,
    bool: lambda value, _: _TRUE if value else _FALSE,
    type(None): lambda _value, _room: NOTHING,
    list: _read_list,
    tuple: _read_list,
    dict: _read_dict,
}


def _refusal(says: str) -> WampError:
    return WampError(INVALID_ARGUMENT, f"payload: {says}")


def _same(content: Any) -> Any:
    return content


def _number(content: int) -> int | str:
    return content if LEAST_NUMBER <= content <= MOST_NUMBER else digits_of(content)


def _list(content: Sequence[Icrc16]) -> list[Any]:
    return [_WRITERS[tag](inner) for tag, inner in content]


def _map(content: Sequence[tuple[str, Icrc16]]) -> Any:
    pairs = [(name, _WRITERS[tag](inner)) for name, (tag, inner) in content]
    found = dict(pairs)
    return found if len(found) == len(pairs) else [list(pair) for pair in pairs]


_WRITERS: Mapping[Tag, Callable[[Any], Any]] = {
    **dict.fromkeys((Tag.TEXT, Tag.BOOL, Tag.FLOAT, Tag.BLOB, Tag.BYTES), _same),
    **dict.fromkeys([Tag(f"{sign}{bits}") for sign in ("Nat", "Int") for bits in ("", 8, 16, 32, 64)], _number),
    Tag.PRINCIPAL: lambda content: principal_text(content) if len(content) <= MOST_BYTES else content,
    Tag.NATS: lambda content: [_number(each) for each in content],
    Tag.FLOATS: list,
    Tag.ARRAY: _list,
    Tag.SET: _list,
    Tag.OPTION: lambda content: None if content is None else value_of(content),
    Tag.MAP: _map,
    Tag.VALUE_MAP: lambda content: [[value_of(key), value_of(value)] for key, value in content],
    Tag.CLASS: lambda content: _map([(name, value) for name, value, _ in content]),
}
