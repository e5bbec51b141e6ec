"""An expression as words, numbers, strings and symbols."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from relaycast_gateway.cloudevents.sql.errors import SqlParseError

LONGEST = 8_192
"""Characters of an expression."""

SHOWN = 80
"""Characters of a text that an error repeats."""

KEYWORDS = frozenset({"AND", "OR", "XOR", "NOT", "LIKE", "IN", "EXISTS", "TRUE", "FALSE"})

_TOKEN = re.compile(
    r"""[ \t\r\n]+
    | (?P<string> '[^'\\]*(?:\\.[^'\\]*)*' | "[^"\\]*(?:\\.[^"\\]*)*" )
    | (?P<word> [A-Za-z0-9_]+ )
    | (?P<symbol> <> | != | <= | >= | [-+*/%=<>(),] )""",
    re.VERBOSE | re.DOTALL,
)

SqlTokenKind = Literal["string", "integer", "word", "keyword", "symbol", "end"]


class SqlToken(NamedTuple):
    """``text`` is a string's content, a keyword in upper case, anything else as written; ``at`` counts from 1."""

    kind: SqlTokenKind
    text: str
    at: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end"
        return repr(self.text) if len(self.text) <= SHOWN else f"{self.text[:SHOWN]!r}..."


def tokens(text: str) -> Iterator[SqlToken]:
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
    yield SqlToken("end", "", len(text) + 1)


def _token(group: str, text: str, at: int) -> SqlToken:
    if group == "string":
        quote = text[0]
        return SqlToken("string", text[1:-1].replace(f"\\{quote}", quote), at)
    if group == "symbol":
        return SqlToken("symbol", text, at)
    if text.isdigit():
        return SqlToken("integer", text, at)
    return SqlToken("keyword", text.upper(), at) if text.upper() in KEYWORDS else SqlToken("word", text, at)
