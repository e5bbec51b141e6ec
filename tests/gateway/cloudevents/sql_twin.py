"""``LIKE`` and truncated division from their definitions, and random expressions."""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import trunc
from random import Random
from typing import Any


def like(text: str, pattern: str) -> bool:
    """Return whether the pattern matches, by trying every way to take each ``%``."""
    signs: list[tuple[str, str]] = []
    place = 0
    while place < len(pattern):
        escaped = pattern[place] == "\\" and pattern[place + 1 : place + 2] in {"%", "_"}
        place += escaped
        sign = pattern[place]
        kind = {"%": "many", "_": "one"}.get(sign, "itself") if not escaped else "itself"
        signs.append((kind, sign))
        place += 1

    @lru_cache(None)
    def matches(at: int, sign: int) -> bool:
        if sign == len(signs):
            return at == len(text)
        kind, character = signs[sign]
        if kind == "many":
            return any(matches(after, sign + 1) for after in range(at, len(text) + 1))
        return at < len(text) and (kind == "one" or text[at] == character) and matches(at + 1, sign + 1)

    return matches(0, 0)


def divided(x: int, y: int) -> tuple[int, int]:
    """Return quotient and remainder of a division that rounds towards 0."""
    quotient = trunc(Fraction(x, y))
    return quotient, x - y * quotient


ATTRIBUTES: Mapping[str, Any] = {
    "specversion": "1.0",
    "id": "7",
    "source": "/s",
    "type": "true",
    "count": -5,
    "flag": False,
    "text": "aXb",
}

# fmt: off
_VALUES = [
    "1", "2", "-7", "0", "2147483647", "-2147483648", "TRUE", "false", "'true'", "'a%b'", '"x"', "'5'",
    "type", "id", "count", "flag", "text", "nothing", "data",
]
_WORDS = [
    *_VALUES,
    "(", ")", "(", ")", ",", "+", "-", "*", "/", "%", "=", "!=", "<>", "<", "<=", ">", ">=", "AND", "OR",
    "XOR", "NOT", "LIKE", "IN", "EXISTS", "'a_'", "ABS(", "LEFT(", "RIGHT(", "SUBSTRING(", "CONCAT(",
    "CONCAT_WS(", "LENGTH(", "UPPER(", "TRIM(", "INT(", "BOOL(", "STRING(", "NOSUCH(",
]
# fmt: on
_CALLS = [("ABS", 1), ("LEFT", 2), ("SUBSTRING", 3), ("CONCAT_WS", 3), ("LENGTH", 1), ("INT", 1), ("NOSUCH", 2)]


def random_words(random: Random) -> str:
    """Return words of the language in no order."""
    return " ".join(random.choices(_WORDS, k=random.randint(0, 12)))


def random_expression(random: Random, depth: int) -> str:
    """Return an expression, which need not have a proper value for any event."""
    if not depth:
        return random.choice(_VALUES)
    x, y, z = (random_expression(random, random.randrange(depth)) for _ in range(3))
    name, count = random.choice(_CALLS)
    return random.choice(
        [
            f"(NOT {x})",
            f"(- {x})" if x[0] not in "0123456789" else f"(-{x})",
            f"({x} {random.choice(['+', '-', '*', '/', '%'])} {y})",
            f"({x} {random.choice(['=', '!=', '<>', '<', '<=', '>', '>='])} {y})",
            f"({x} {random.choice(['AND', 'OR', 'XOR'])} {y})",
            f"({x} {random.choice(['LIKE', 'NOT LIKE'])} 'a%')",
            f"({x} {random.choice(['IN', 'NOT IN'])} ({y}, {z}))",
            f"{name}({', '.join([x, y, z][:count])})",
        ]
    )
