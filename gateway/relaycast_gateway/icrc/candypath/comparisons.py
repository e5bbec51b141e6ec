"""Which values compare with which, and what the operators make of the pairs.

Law: a pair is a value and what it is compared with, both of one Python type, or nothing where the two do not compare.
"""

import operator as relations
from collections.abc import Callable, Iterable
from typing import Any

from relaycast_gateway.icrc.candypath.syntax import Literal
from relaycast_gateway.icrc16 import NOTHING, WHOLE_NUMBERS, Icrc16, Tag
from relaycast_gateway.principal import MOST_BYTES, principal_text

Pair = tuple[Any, Any]
Relation = Callable[[Any, Any], bool]


def _contains(value: Any, part: Any) -> bool:
    return value.__class__ is str and part in value


def _contains_folded(value: Any, part: Any) -> bool:
    return value.__class__ is str and part.casefold() in value.casefold()


RELATIONS: dict[str, Relation] = {
    "==": relations.eq,
    "!=": relations.eq,
    "<>": relations.eq,
    ">": relations.gt,
    ">=": relations.ge,
    "<": relations.lt,
    "<=": relations.le,
    "~=": _contains,
    "~~=": _contains_folded,
    "!~=": _contains,
    "!~~=": _contains_folded,
}
"""What holds of a pair, or must not hold where the operator is negative."""

NEGATIVE = frozenset({"<>", "!~=", "!~~="})
OF_TEXTS = frozenset({"~=", "~~=", "!~=", "!~~="})

SCALARS = frozenset({Tag.TEXT, Tag.PRINCIPAL, Tag.BLOB, Tag.BOOL, Tag.FLOAT, *WHOLE_NUMBERS})


def unwrapped(value: Icrc16) -> Icrc16:
    """Return the value that an ``Option`` stands for."""
    while value.tag is Tag.OPTION and value.content is not None:
        value = value.content
    return value


def literal_pair(value: Icrc16, target: Literal) -> Pair | None:
    """Return a value and the literal as that type; ``None`` where they do not compare.

    The class of a content tells Text, whole numbers, Float and Bool from all else.
    """
    tag, content = unwrapped(value)
    kind = content.__class__
    found: object = None
    if kind is str:
        found = target.text
    elif kind is int:
        found = target.whole
    elif kind is float:
        found = target.real
    elif kind is bool:
        found = target.flag
    elif tag is Tag.BLOB:
        found = None if target.text is None else target.text.encode()
    elif tag is Tag.PRINCIPAL and len(content) <= MOST_BYTES:
        found, content = target.text, principal_text(content)
    return None if found is None else (content, found)


def value_pair(value: Icrc16, target: Icrc16) -> Pair | None:
    """Return two values of one type; ``None`` where they do not compare."""
    left, right = unwrapped(value), unwrapped(target)
    return (left.content, right.content) if left.tag is right.tag and left.tag in SCALARS else None


def holds(operator: str, values: Iterable[Icrc16], targets: Iterable[Icrc16 | Literal]) -> bool:
    """Return whether ``operator`` holds between the values of a path and those that it is compared with."""
    wanted, relation, compared = list(targets), RELATIONS[operator], False
    for value in values:
        if operator in OF_TEXTS and unwrapped(value).tag is not Tag.TEXT:
            continue
        for target in wanted:
            if relation is relations.eq and operator != "<>" and _both_null(value, target):
                return operator == "=="
            pair = value_pair(value, target) if isinstance(target, Icrc16) else literal_pair(value, target)
            if pair is None:
                continue
            compared = True
            if relation(*pair):
                return operator not in NEGATIVE and operator != "!="
    return operator == "!=" or (compared and operator in NEGATIVE)


def _both_null(value: Icrc16, target: Icrc16 | Literal) -> bool:
    if unwrapped(value) != NOTHING:
        return False
    return target.is_null if isinstance(target, Literal) else unwrapped(target) == NOTHING
