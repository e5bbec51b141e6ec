"""Operators on integers of 32 bits. A result beyond them is a math error with 0, and so is a division by 0."""

import operator
from collections.abc import Callable, Mapping

from relaycast_gateway.cloudevents.sql.errors import SqlEvaluationError
from relaycast_gateway.cloudevents.sql.parser import LEAST_INTEGER, MOST_INTEGER


def in_range(number: int) -> int:
    """Return the number; ``SqlEvaluationError`` of the kind ``math`` beyond 32 bits."""
    if LEAST_INTEGER <= number <= MOST_INTEGER:
        return number
    raise SqlEvaluationError("math", f"{number} is beyond 32 bits", 0)


def _quotient(x: int, y: int) -> int:
    """Round towards 0."""
    if y == 0:
        raise SqlEvaluationError("math", f"{x} / 0", 0)
    quotient = abs(x) // abs(y)
    return in_range(quotient if (x < 0) is (y < 0) else -quotient)


def _remainder(x: int, y: int) -> int:
    """Return what division leaves, with the sign of ``x``."""
    if y == 0:
        raise SqlEvaluationError("math", f"{x} % 0", 0)
    remainder = abs(x) % abs(y)
    return remainder if x >= 0 else -remainder


ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda x, y: in_range(x + y),
    "-": lambda x, y: in_range(x - y),
    "*": lambda x, y: in_range(x * y),
    "/": _quotient,
    "%": _remainder,
}

ORDERS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
