"""ICRC-16 values as Candid variants, both ways.

Law: ``icrc16_of(variant_of(value)) == value`` for each value, and no tree deeper than ``DEEPEST`` is taken.
Source: ICRC-72, type ``ICRC16``.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc16 import DEEPEST, Icrc16, Property, Tag
from relaycast_gateway.record import Headers

_TAGS: Mapping[str, Tag] = {str(tag): tag for tag in Tag}


def variant_of(value: Icrc16) -> Variant:
    """Return a value as ``candid.encode`` takes it at the type ``ICRC16``."""
    tag, content = value
    match tag:
        case Tag.ARRAY | Tag.SET:
            content = [variant_of(each) for each in content]
        case Tag.OPTION:
            content = None if content is None else variant_of(content)
        case Tag.MAP:
            content = pairs_of(content)
        case Tag.VALUE_MAP:
            content = [{0: variant_of(key), 1: variant_of(each)} for key, each in content]
        case Tag.CLASS:
            content = [
                {"name": name, "value": variant_of(each), "immutable": immutable} for name, each, immutable in content
            ]
        case Tag.PRINCIPAL:
            content = Principal(content)
        case Tag.NATS | Tag.FLOATS:
            content = list(content)
    return Variant(str(tag), content)


def icrc16_of(value: object, room: int = DEEPEST) -> Icrc16:
    """Return the value of a Candid variant; ``ValueError`` where it nests deeper than 64."""
    if not room:
        raise ValueError(f"expected values at most {DEEPEST} deep")
    name, given = cast("Variant", value)
    tag, content = _TAGS[cast("str", name)], cast("Any", given)
    match tag:
        case Tag.ARRAY | Tag.SET:
            content = tuple(icrc16_of(each, room - 1) for each in content)
        case Tag.OPTION:
            content = None if content is None else icrc16_of(content, room - 1)
        case Tag.MAP:
            content = headers_of(content, room - 1)
        case Tag.VALUE_MAP:
            content = tuple((icrc16_of(each[0], room - 1), icrc16_of(each[1], room - 1)) for each in content)
        case Tag.CLASS:
            content = tuple(
                Property(each["name"], icrc16_of(each["value"], room - 1), each["immutable"]) for each in content
            )
        case Tag.PRINCIPAL:
            content = content.raw
        case Tag.NATS | Tag.FLOATS:
            content = tuple(content)
    return Icrc16(tag, content)


def pairs_of(entries: Iterable[tuple[str, Icrc16]]) -> list[dict[int, object]]:
    """Return an ``ICRC16Map``: headers, configurations, statistics."""
    return [{0: key, 1: variant_of(each)} for key, each in entries]


def headers_of(pairs: object, room: int = DEEPEST) -> Headers:
    """Return the entries of an ``ICRC16Map``, none for null."""
    return tuple((each[0], icrc16_of(each[1], room)) for each in cast("list[dict[int, Any]]", pairs or ()))
