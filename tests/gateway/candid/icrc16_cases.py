"""ICRC-16 values that are easily forgotten: each variant alone, empty, at its ends, and nested."""

from collections.abc import Iterator, Mapping

from relaycast_gateway.icrc16 import NOTHING, WHOLE_NUMBERS, Icrc16, Property, Tag, text

_LEAF = text("☃")
_ENDS = [
    Icrc16(tag, number)
    for tag, (least, most) in WHOLE_NUMBERS.items()
    for number in (-(1 << 200) if least is None else least, (1 << 200) + 1 if most is None else most)
]

ALONE: list[Icrc16] = [
    *_ENDS,
    *(Icrc16(tag, content) for tag in (Tag.BLOB, Tag.BYTES, Tag.PRINCIPAL) for content in (b"", b"\0\xff")),
    *(Icrc16(Tag.BOOL, content) for content in (False, True)),
    *(Icrc16(Tag.FLOAT, content) for content in (0.0, -0.5, 5e-324, 1.7976931348623157e308)),
    *(Icrc16(Tag.FLOATS, content) for content in ((), (1.5, -2.0))),
    *(Icrc16(Tag.NATS, content) for content in ((), (0, 1 << 64, (1 << 200) + 1))),
    *(Icrc16(Tag.TEXT, content) for content in ("", "a☃𝄞")),
    *(Icrc16(tag, content) for tag in (Tag.ARRAY, Tag.SET) for content in ((), (_LEAF, NOTHING))),
    NOTHING,
    Icrc16(Tag.OPTION, _LEAF),
    *(Icrc16(Tag.MAP, content) for content in ((), (("", _LEAF), ("", NOTHING)))),
    *(Icrc16(Tag.VALUE_MAP, content) for content in ((), ((_LEAF, NOTHING),))),
    *(Icrc16(Tag.CLASS, content) for content in ((), (Property("", _LEAF, True), Property("b", NOTHING, False)))),
]


def around(tag: Tag, value: Icrc16) -> Icrc16:
    """Return a value of a variant that holds ``value``."""
    contents: Mapping[Tag, object] = {
        Tag.ARRAY: (value,),
        Tag.SET: (value, value),
        Tag.OPTION: value,
        Tag.MAP: (("key", value),),
        Tag.VALUE_MAP: ((value, value),),
        Tag.CLASS: (Property("name", value, False),),
    }
    return Icrc16(tag, contents[tag])


HOLDERS = (Tag.ARRAY, Tag.SET, Tag.OPTION, Tag.MAP, Tag.VALUE_MAP, Tag.CLASS)


def nested(deep: int) -> Iterator[Icrc16]:
    """Yield each value of ``ALONE`` so deep inside of variants that take turns, from each of them."""
    for at, value in enumerate(ALONE):
        for level in range(deep):
            value = around(HOLDERS[(at + level) % len(HOLDERS)], value)  # noqa: PLW2901 - grows outwards
        yield value
