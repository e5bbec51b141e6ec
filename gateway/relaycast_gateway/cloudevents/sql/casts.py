"""Casts between the three types, and an attribute's value as one of them.

| from, to | Integer | String | Boolean |
|---|---|---|---|
| Integer | | base 10 | whether it is not 0 |
| String | digits, after a sign or none, within 32 bits | | ``true`` or ``false``, in any case |
| Boolean | 1 or 0 | ``true`` or ``false`` | |

Anything else is a cast error.
"""

import re
from collections.abc import Callable, Mapping

from relaycast_gateway.cloudevents.event import canonical_text
from relaycast_gateway.cloudevents.sql.errors import SqlEvaluationError, SqlValue
from relaycast_gateway.cloudevents.sql.lexer import SHOWN
from relaycast_gateway.cloudevents.sql.parser import LEAST_INTEGER, MOST_INTEGER

SqlType = type[str] | type[int] | type[bool]

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,10})")
_BOOLEANS = {"true": True, "false": False}


def primitive(value: object) -> SqlValue:
    """Return an attribute's value: a boolean or an integer of 32 bits as such, anything else as its text."""
    if isinstance(value, bool):
        return value
    if type(value) is int and LEAST_INTEGER <= value <= MOST_INTEGER:
        return value
    return canonical_text(value)


def to_string(value: SqlValue) -> str:
    """Return the text of a value."""
    return value if isinstance(value, str) else canonical_text(value)


def to_integer(value: SqlValue) -> int:
    """Return a value as an integer; ``SqlEvaluationError`` of the kind ``cast``."""
    if not isinstance(value, str):
        return int(value)
    found = _INTEGER.fullmatch(value)
    number = None if found is None else int(found[1] + found[2])
    if number is None or not LEAST_INTEGER <= number <= MOST_INTEGER:
        raise SqlEvaluationError("cast", f"{_shown(value)} is no integer of 32 bits", 0)
    return number


def to_boolean(value: SqlValue) -> bool:
    """Return a value as a boolean; ``SqlEvaluationError`` of the kind ``cast``."""
    if not isinstance(value, str):
        return bool(value)
    found = _BOOLEANS.get(value.lower())
    if found is None:
        raise SqlEvaluationError("cast", f"{_shown(value)} is neither true nor false", False)
    return found


CASTS: Mapping[SqlType, Callable[[SqlValue], SqlValue]] = {str: to_string, int: to_integer, bool: to_boolean}


def _shown(text: str) -> str:
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}..."
