"""ICRC-16 values, the one form that data of an event has in the log, and their JSON.

JSON is readable and exact both ways. Text, booleans, ``null``, arrays and objects stand for themselves. A natural
number is a number, and a blob is a text of hex digits after ``0x``. What would read back as another value is written
with its tag, as ``{"$Nat8": 5}``. Source: ICRC-72, type ``ICRC16``.
"""

import math
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

DEEPEST = 64
"""Values inside values; deeper ones are refused."""

MOST_EXACT = (1 << 53) - 1
"""The largest whole number that every reader of JSON takes exactly."""

MOST_DIGITS = 4_300
"""Decimal digits of a number or an id; Python and other JSON readers accept no more."""

MOST_NUMBER = 10**MOST_DIGITS - 1

_HEX = re.compile(r"0x(?:[0-9a-f]{2})*")


class Tag(StrEnum):
    """The variants, by their names in the text."""

    ARRAY = "Array"
    BLOB = "Blob"
    BOOL = "Bool"
    BYTES = "Bytes"
    CLASS = "Class"
    FLOAT = "Float"
    FLOATS = "Floats"
    INT = "Int"
    INT8 = "Int8"
    INT16 = "Int16"
    INT32 = "Int32"
    INT64 = "Int64"
    MAP = "Map"
    NAT = "Nat"
    NAT8 = "Nat8"
    NAT16 = "Nat16"
    NAT32 = "Nat32"
    NAT64 = "Nat64"
    NATS = "Nats"
    OPTION = "Option"
    PRINCIPAL = "Principal"
    SET = "Set"
    TEXT = "Text"
    VALUE_MAP = "ValueMap"


class Icrc16(NamedTuple):
    """A value and its variant.

    The type of ``content`` follows from the tag:

        int, float, bool        whole numbers, Float, Bool
        str                     Text
        bytes                   Blob, Bytes, Principal
        None or a value         Option
        a tuple of int          Nats
        a tuple of float        Floats
        a tuple of values       Array, Set
        a tuple of pairs        Map (text, value), ValueMap (value, value)
        a tuple of Property     Class
    """

    tag: Tag
    content: Any


class Property(NamedTuple):
    """One property of a Class."""

    name: str
    value: Icrc16
    immutable: bool


NOTHING = Icrc16(Tag.OPTION, None)

WHOLE_NUMBERS: Mapping[Tag, tuple[int | None, int | None]] = {
    Tag.NAT: (0, None),
    Tag.INT: (None, None),
    **{Tag(f"Nat{bits}"): (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
    **{Tag(f"Int{bits}"): (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
}
"""The least and the greatest number of each tag, ``None`` where there is none."""

_TAGS = {f"${tag}": tag for tag in Tag}
_OF_BYTES = (Tag.BLOB, Tag.BYTES, Tag.PRINCIPAL)


def check_number(number: int) -> None:
    """Raise ``ValueError`` for a number that no face but ICRC can carry."""
    if abs(number) > MOST_NUMBER:
        says = f"got a number of about {number.bit_length() * 30_103 // 100_000:,} digits"
        raise ValueError(f"{says}, expected at most {MOST_DIGITS:,}, the limit of CloudEvents and WAMP")


def digits_of(number: int) -> str:
    """Return a number in decimal; ``ValueError`` as of ``check_number``."""
    check_number(number)
    return str(number)


def text(value: str) -> Icrc16:
    return Icrc16(Tag.TEXT, value)


def nat(value: int) -> Icrc16:
    """Return a natural number; ``ValueError`` for a negative one."""
    if value < 0:
        raise ValueError(f"expected a natural number, got {value}")
    return Icrc16(Tag.NAT, value)


def blob(value: bytes) -> Icrc16:
    return Icrc16(Tag.BLOB, value)


def boolean(value: bool) -> Icrc16:
    return Icrc16(Tag.BOOL, value)


def array(*values: Icrc16) -> Icrc16:
    return Icrc16(Tag.ARRAY, values)


def option(value: Icrc16 | None) -> Icrc16:
    return Icrc16(Tag.OPTION, value)


def map_of(entries: Mapping[str, Icrc16]) -> Icrc16:
    return Icrc16(Tag.MAP, tuple(entries.items()))


def to_json(value: Icrc16) -> Any:  # noqa: PLR0911 - one for each form
    """Return the argument of ``json.dumps`` for ``value``; ``from_json`` reverses it.

    ``ValueError`` for a number of more than ``MOST_DIGITS`` digits.
    """
    tag, content = value
    match tag:
        case Tag.TEXT:
            return {"$Text": content} if _HEX.fullmatch(content) else content
        case Tag.BLOB:
            return "0x" + content.hex()
        case Tag.BOOL:
            return content
        case Tag.NAT if content <= MOST_EXACT:
            return content
        case Tag.INT if -MOST_EXACT <= content < 0:
            return content
        case Tag.FLOAT if math.isfinite(content):
            return content
        case Tag.ARRAY:
            return [to_json(each) for each in content]
        case Tag.OPTION if content is None:
            return None
        case Tag.MAP if _is_plain(content):
            return {key: to_json(each) for key, each in content}
    return {f"${tag}": _tagged(tag, content)}


def from_json(value: Any) -> Icrc16:
    """Return the value that JSON stands for; ``ValueError`` names what is none, or nests deeper than 64."""
    return _read(value, DEEPEST)


def _is_plain(entries: tuple[tuple[str, Icrc16], ...]) -> bool:
    names = [key for key, _ in entries]
    return len(set(names)) == len(names) and not any(name.startswith("$") for name in names)


def _tagged(tag: Tag, content: Any) -> Any:  # noqa: PLR0911 - one for each form
    if tag in WHOLE_NUMBERS:
        return content if abs(content) <= MOST_EXACT else digits_of(content)
    match tag:
        case Tag.FLOAT:
            return str(content)
        case Tag.FLOATS:
            return [each if math.isfinite(each) else str(each) for each in content]
        case Tag.NATS:
            return [each if each <= MOST_EXACT else digits_of(each) for each in content]
        case Tag.TEXT:
            return content
        case Tag.OPTION:
            return to_json(content)
        case Tag.SET:
            return [to_json(each) for each in content]
        case Tag.MAP:
            return [[key, to_json(each)] for key, each in content]
        case Tag.VALUE_MAP:
            return [[to_json(key), to_json(each)] for key, each in content]
        case Tag.CLASS:
            return [{"name": name, "value": to_json(each), "immutable": fixed} for name, each, fixed in content]
    assert tag in _OF_BYTES, tag
    return "0x" + content.hex()


def _read(value: Any, room: int) -> Icrc16:  # noqa: PLR0911 - one for each form
    if not room:
        raise ValueError(f"expected values at most {DEEPEST} deep")
    match value:
        case None:
            return NOTHING
        case bool():
            return Icrc16(Tag.BOOL, value)
        case int():
            return Icrc16(Tag.NAT if value >= 0 else Tag.INT, value)
        case float():
            return Icrc16(Tag.FLOAT, _finite(value))
        case str():
            return Icrc16(Tag.BLOB, bytes.fromhex(value[2:])) if _HEX.fullmatch(value) else Icrc16(Tag.TEXT, value)
        case list() | tuple():
            return Icrc16(Tag.ARRAY, tuple(_read(each, room - 1) for each in value))
        case dict():
            return _read_object(value, room)
    raise ValueError(f"expected JSON, got {type(value).__name__}")


def _read_object(value: dict[str, Any], room: int) -> Icrc16:
    special = [name for name in value if name.startswith("$")]
    if not special:
        return Icrc16(Tag.MAP, tuple((key, _read(each, room - 1)) for key, each in value.items()))
    name = special[0]
    tag = _TAGS.get(name)
    if len(value) > 1 or tag is None:
        raise ValueError(f"expected one tag of ICRC-16 alone, such as $Nat8, got {', '.join(value)}")
    try:
        return Icrc16(tag, _content(tag, value[name], room - 1))
    except (TypeError, AttributeError, KeyError):
        raise ValueError(f"${tag}: got {value[name]!r}, expected the content of {tag}") from None


def _content(tag: Tag, given: Any, room: int) -> Any:  # noqa: PLR0911 - one for each form
    if tag in WHOLE_NUMBERS:
        return _whole(tag, given)
    reader = _READERS.get(tag)
    if reader is not None:
        return reader(given)
    match tag:
        case Tag.OPTION:
            return _read(given, room)
        case Tag.ARRAY | Tag.SET:
            return tuple(_read(each, room) for each in _listed(tag, given))
        case Tag.MAP:
            return tuple((_text(key), _read(each, room)) for key, each in _listed(tag, given))
        case Tag.VALUE_MAP:
            return tuple((_read(key, room), _read(each, room)) for key, each in _listed(tag, given))
    assert tag is Tag.CLASS, tag
    properties = _listed(tag, given)
    return tuple(Property(_text(it["name"]), _read(it["value"], room), it["immutable"] is True) for it in properties)


def _whole(tag: Tag, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise ValueError(f"${tag}: got {given!r}, expected a whole number")
    try:
        number = int(given)
    except ValueError:
        raise ValueError(f"${tag}: got {given!r}, expected a whole number") from None
    least, most = WHOLE_NUMBERS[tag]
    if (least is not None and number < least) or (most is not None and number > most):
        raise ValueError(f"${tag}: got {number}, expected {least} to {'any' if most is None else most}")
    return number


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"expected a number of JSON, got {value}")
    return value


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


def _bytes(given: Any) -> bytes:
    if not _HEX.fullmatch(_text(given)):
        raise ValueError(f"got {given!r}, expected hex digits after 0x")
    return bytes.fromhex(given[2:])


def _listed(tag: Tag, given: Any) -> list[Any]:
    if not isinstance(given, list | tuple):
        raise ValueError(f"${tag}: got {given!r}, expected an array")
    return list(given)


def _boolean(given: Any) -> bool:
    if not isinstance(given, bool):
        raise TypeError
    return given


_READERS: Mapping[Tag, Callable[[Any], Any]] = {
    Tag.TEXT: _text,
    Tag.BOOL: _boolean,
    Tag.FLOAT: float,
    Tag.FLOATS: lambda given: tuple(map(float, _listed(Tag.FLOATS, given))),
    Tag.NATS: lambda given: tuple(_whole(Tag.NAT, each) for each in _listed(Tag.NATS, given)),
    **dict.fromkeys(_OF_BYTES, _bytes),
}
