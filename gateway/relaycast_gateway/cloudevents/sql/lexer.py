"""An expression as words, numbers, strings and symbols."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from relaycast_gateway.cloudevents.sql.errors import SqlParseError

LONGEST = 8_192
"""Characters of an expression."""

KEYWORDS = frozenset({"AND", "OR", "XOR", "NOT", "LIKE", "IN", "EXISTS", "TRUE", "FALSE"})

_TOKEN = re.compile(
    r"""[ \t\r\n]+
    | (?P<string> '[^'\\]*(?:\\.[^'\\]*)*' | "[^"\\]*(?:\\.[^"\\]*)*" )
    | (?P<word> [A-Za-z0-9_]+ )
    | (?P<symbol> <> | != | <= | >= | [-+*/%=<>(),] )""",
    re.VERBOSE | re.DOTALL,
)

TokenKind = Literal["string", "integer", "word", "keyword", "symbol", "end"]


class Token(NamedTuple):
    """``text`` is a string's content, a keyword in upper case, anything else as written; ``at`` counts from 1."""

    kind: TokenKind
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of an expression, at last its end; ``SqlParseError`` where there is none."""
    if len(text) > LONGEST:
        raise SqlParseError(LONGEST + 1, f"{len(text)} characters", f"at most {LONGEST}")
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            expected = f"a closing {text[at]}" if text[at] in "'\"" else "an expression of CloudEvents SQL"
            raise SqlParseError(at + 1, repr(text[at]), expected)
        if found.lastgroup is not None:
            yield _token(found.lastgroup, found.group(), at + 1)
        at = found.end()
    yield Token("end", "", len(text) + 1)


def _token(group: str, text: str, at: int) -> Token:
    if group == "string":
        quote = text[0]
        return Token("string", text[1:-1].replace(f"\\{quote}", quote), at)
    if group == "symbol":
        return Token("symbol", text, at)
    if text.isdigit():
        return Token("integer", text, at)
    return Token("keyword", text.upper(), at) if text.upper() in KEYWORDS else Token("word", text, at)
