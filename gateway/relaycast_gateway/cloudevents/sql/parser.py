"""An expression's text as a tree."""

import re

from relaycast_gateway.cloudevents.sql.errors import SqlParseError
from relaycast_gateway.cloudevents.sql.lexer import SHOWN, SqlToken, tokens
from relaycast_gateway.cloudevents.sql.syntax import (
    SqlAttribute,
    SqlCall,
    SqlExists,
    SqlIn,
    SqlLike,
    SqlLiteral,
    SqlMinus,
    SqlNode,
    SqlNot,
    SqlOperation,
    height,
)

DEEPEST = 32
"""Parentheses, arguments and prefixes inside one another."""

HIGHEST = 64
"""Operators and functions on the longest way from the whole expression to an attribute or a literal."""

LEAST_INTEGER, MOST_INTEGER = -(1 << 31), (1 << 31) - 1

LOGIC = frozenset({"AND", "OR", "XOR"})
COMPARISONS = frozenset({"=", "!=", "<>", "<", "<=", ">", ">="})
SUMS = frozenset({"+", "-"})
PRODUCTS = frozenset({"*", "/", "%"})

_LEVELS = (LOGIC, COMPARISONS, SUMS, PRODUCTS)
"""Operators between two operands; those further right bind tighter."""

_PREFIXES = (("keyword", "NOT"), ("symbol", "-"))
_ATTRIBUTE = re.compile(r"[A-Za-z0-9]+")
_FUNCTION = re.compile(r"[A-Za-z][A-Za-z_]*")


def parse(text: str) -> SqlNode:
    """Return the tree of an expression; ``SqlParseError`` names the place where it is none."""
    node = _Parser(list(tokens(text))).whole()
    if height(node) > HIGHEST:
        raise SqlParseError(1, "too many operators inside one another", f"at most {HIGHEST}")
    return node


class _Parser:
    def __init__(self, read: list[SqlToken]) -> None:
        self._tokens = read
        self._next = 0
        self._depth = 0

    def whole(self) -> SqlNode:
        node = self._expression()
        if self._peek().kind != "end":
            raise self._wrong("an operator or the end")
        return node

    def _expression(self, level: int = 0) -> SqlNode:
        if level == len(_LEVELS):
            return self._operand()
        first, rest = self._expression(level + 1), []
        while self._peek().kind in {"symbol", "keyword"} and self._peek().text in _LEVELS[level]:
            operator = self._take().text
            rest.append((operator, self._expression(level + 1)))
        return SqlOperation(first, tuple(rest)) if rest else first

    def _operand(self) -> SqlNode:
        self._descend()
        node = self._postfixes(self._prefixed())
        self._depth -= 1
        return node

    def _prefixed(self) -> SqlNode:
        if self._has_sign() and (number := self._signed_integer()) is not None:
            return SqlLiteral(number)
        prefix = next((each for kind, each in _PREFIXES if self._accept(kind, each)), None)
        if prefix is None:
            return self._value()
        self._descend()
        operand = self._prefixed()
        self._depth -= 1
        return SqlNot(operand) if prefix == "NOT" else SqlMinus(operand)

    def _has_sign(self) -> bool:
        return self._peek().kind == "symbol" and self._peek().text in SUMS

    def _signed_integer(self) -> int | None:
        """Take a sign with the digits that follow it at once; take nothing where they do not."""
        sign, digits = self._peek(), self._tokens[self._next + 1]
        if digits.kind != "integer" or digits.at != sign.at + 1:
            return None
        self._take()
        return self._integer(sign.text)

    def _postfixes(self, node: SqlNode) -> SqlNode:
        while True:
            inverted = self._peek().kind == "keyword" and self._peek().text == "NOT"
            self._next += inverted
            if self._accept("keyword", "LIKE"):
                if self._peek().kind != "string":
                    raise self._wrong("a pattern in quotes")
                node = SqlLike(node, self._take().text)
            elif self._accept("keyword", "IN"):
                self._expect("(")
                node = SqlIn(node, self._listed())
            elif inverted:
                raise self._wrong("LIKE or IN")
            else:
                return node
            node = SqlNot(node) if inverted else node

    def _value(self) -> SqlNode:
        token = self._peek()
        if token.kind == "integer":
            return SqlLiteral(self._integer(""))
        if token.kind == "string":
            return SqlLiteral(self._take().text)
        if token.kind == "word":
            return self._named()
        if token.kind == "keyword" and token.text in {"TRUE", "FALSE"}:
            return SqlLiteral(self._take().text == "TRUE")
        if self._accept("keyword", "EXISTS"):
            return SqlExists(self._attribute())
        if self._accept("symbol", "("):
            node = self._expression()
            self._expect(")")
            return node
        raise self._wrong("a literal, an attribute, a function or (")

    def _named(self) -> SqlNode:
        after = self._tokens[self._next + 1]
        if (after.kind, after.text) != ("symbol", "("):
            return SqlAttribute(self._attribute())
        if not _FUNCTION.fullmatch(self._peek().text):
            raise self._wrong("a function's name, of letters and _")
        name = self._take().text.upper()
        self._take()
        return SqlCall(name, () if self._accept("symbol", ")") else self._listed())

    def _listed(self) -> tuple[SqlNode, ...]:
        listed = [self._expression()]
        while self._accept("symbol", ","):
            listed.append(self._expression())
        self._expect(")")
        return tuple(listed)

    def _attribute(self) -> str:
        token = self._peek()
        if token.kind not in {"word", "integer"} or not _ATTRIBUTE.fullmatch(token.text):
            raise self._wrong("an attribute's name, of letters and digits")
        return self._take().text.lower()

    def _integer(self, sign: str) -> int:
        token = self._take()
        digits = token.text.lstrip("0") or "0"
        number = int(sign + digits) if len(digits) <= 10 else None
        if number is None or not LEAST_INTEGER <= number <= MOST_INTEGER:
            raise SqlParseError(token.at, sign + token.text[:SHOWN], f"{LEAST_INTEGER} to {MOST_INTEGER}")
        return number

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"at most {DEEPEST} expressions inside one another")

    def _peek(self) -> SqlToken:
        return self._tokens[self._next]

    def _take(self) -> SqlToken:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: str, text: str) -> bool:
        token = self._peek()
        accepted = token.kind == kind and token.text == text
        self._next += accepted
        return accepted

    def _expect(self, symbol: str) -> None:
        if not self._accept("symbol", symbol):
            raise self._wrong(symbol)

    def _wrong(self, expected: str) -> SqlParseError:
        token = self._peek()
        return SqlParseError(token.at, str(token), expected)
