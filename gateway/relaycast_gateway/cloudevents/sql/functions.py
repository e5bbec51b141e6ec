"""The functions of CloudEvents SQL: casts, strings, integers."""

from collections.abc import Callable
from dataclasses import dataclass

from relaycast_gateway.cloudevents.sql.casts import SqlType, to_boolean, to_integer, to_string
from relaycast_gateway.cloudevents.sql.errors import SqlEvaluationError, SqlValue
from relaycast_gateway.cloudevents.sql.parser import LEAST_INTEGER, MOST_INTEGER

LONGEST_RESULT = 1 << 20
"""Characters that ``CONCAT`` and ``CONCAT_WS`` return at most."""

WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
    "\u205f\u3000"
)
"""What ``TRIM`` removes: the characters with Unicode's property White_Space, which Python's own list goes beyond."""


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """``parameters`` are the types of the first arguments (``None``: any), ``more`` that of all further ones."""

    parameters: tuple[SqlType | None, ...]
    returns: SqlType
    run: Callable[..., SqlValue]
    more: SqlType | None = None

    def takes(self, count: int) -> bool:
        """Return whether it can be called with this number of arguments."""
        return count == len(self.parameters) or (self.more is not None and count > len(self.parameters))

    def parameter(self, place: int) -> SqlType | None:
        """Return the type of the argument at a place that it takes."""
        return self.parameters[place] if place < len(self.parameters) else self.more


def function(name: str, count: int) -> SqlFunction | None:
    """Return the function of that name in upper case that takes ``count`` arguments."""
    return next((found for found in _FUNCTIONS.get(name, ()) if found.takes(count)), None)


def _concat_with(delimiter: str, *texts: str) -> str:
    if sum(map(len, texts)) + len(delimiter) * len(texts) > LONGEST_RESULT:
        raise SqlEvaluationError("functionEvaluation", f"the result exceeds {LONGEST_RESULT} characters", "")
    return delimiter.join(texts)


def _left(text: str, count: int) -> str:
    if count < 0:
        raise SqlEvaluationError("functionEvaluation", f"LEFT: got {count} characters, expected 0 or more", text)
    return text[:count]


def _right(text: str, count: int) -> str:
    if count < 0:
        raise SqlEvaluationError("functionEvaluation", f"RIGHT: got {count} characters, expected 0 or more", text)
    return text[-count:] if count else ""


def _substring(text: str, position: int, length: int = MOST_INTEGER) -> str:
    if abs(position) > len(text):
        expected = f"-{len(text)} to {len(text)}"
        raise SqlEvaluationError("functionEvaluation", f"SUBSTRING: got position {position}, expected {expected}", "")
    if length < 0:
        raise SqlEvaluationError("functionEvaluation", f"SUBSTRING: got length {length}, expected 0 or more", "")
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + length]


def _abs(number: int) -> int:
    if number == LEAST_INTEGER:
        raise SqlEvaluationError("math", f"ABS({number}) exceeds {MOST_INTEGER}", MOST_INTEGER)
    return abs(number)


_FUNCTIONS: dict[str, tuple[SqlFunction, ...]] = {
    "INT": (SqlFunction((None,), int, to_integer),),
    "BOOL": (SqlFunction((None,), bool, to_boolean),),
    "STRING": (SqlFunction((None,), str, to_string),),
    "LENGTH": (SqlFunction((str,), int, len),),
    "CONCAT": (SqlFunction((), str, lambda *texts: _concat_with("", *texts), more=str),),
    "CONCAT_WS": (SqlFunction((str,), str, _concat_with, more=str),),
    "LOWER": (SqlFunction((str,), str, str.lower),),
    "UPPER": (SqlFunction((str,), str, str.upper),),
    "TRIM": (SqlFunction((str,), str, lambda text: text.strip(WHITE_SPACE)),),
    "LEFT": (SqlFunction((str, int), str, _left),),
    "RIGHT": (SqlFunction((str, int), str, _right),),
    "SUBSTRING": (SqlFunction((str, int), str, _substring), SqlFunction((str, int, int), str, _substring)),
    "ABS": (SqlFunction((int,), int, _abs),),
}
