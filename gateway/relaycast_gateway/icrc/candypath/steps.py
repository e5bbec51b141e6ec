"""Steps from a value to those inside it."""

from collections.abc import Iterable, Sequence
from typing import Any

from relaycast_gateway.icrc.candypath.comparisons import unwrapped
from relaycast_gateway.icrc.candypath.syntax import Name
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag

_ITEM_TAGS = {Tag.NATS: Tag.NAT, Tag.FLOATS: Tag.FLOAT, Tag.BYTES: Tag.NAT8}


def child(value: Icrc16, step: Name) -> Icrc16 | None:
    """Return the value under a name or at an index, ``None`` where there is none."""
    tag, content = value
    if tag is Tag.OPTION:
        tag, content = unwrapped(value)
    if tag is Tag.MAP or tag is Tag.CLASS:
        return _under(step.name, content)
    if tag is Tag.VALUE_MAP:
        return _under(Icrc16(Tag.TEXT, step.name), content)
    if step.position is None or (tag is not Tag.ARRAY and tag not in _ITEM_TAGS):
        return None
    if not -len(content) <= step.position < len(content):
        return None
    item: Icrc16 | int | float = content[step.position]
    return item if isinstance(item, Icrc16) else Icrc16(_ITEM_TAGS[tag], item)


def plain_value(start: Icrc16, steps: Iterable[Name]) -> Icrc16:
    """Return the value at the end of some names and indices, null where there is none."""
    value = start
    for step in steps:
        found = child(value, step)
        if found is None:
            return NOTHING
        value = found
    return value


def items(value: Icrc16) -> Iterable[Icrc16]:
    """Return the items of an array of any kind or a set, none of any other value."""
    tag, content = unwrapped(value)
    if tag is Tag.ARRAY or tag is Tag.SET:
        found: tuple[Icrc16, ...] = content
        return found
    return (Icrc16(_ITEM_TAGS[tag], each) for each in content) if tag in _ITEM_TAGS else ()


def width(value: Icrc16) -> int:
    """Return how many entries a step may look at in ``value``."""
    tag, content = unwrapped(value)
    return len(content) if tag is Tag.MAP or tag is Tag.CLASS or tag is Tag.VALUE_MAP else 1


def _under(wanted: object, entries: Iterable[Sequence[Any]]) -> Icrc16 | None:
    for entry in entries:
        if entry[0] == wanted:
            found: Icrc16 = entry[1]
            return found
    return None
