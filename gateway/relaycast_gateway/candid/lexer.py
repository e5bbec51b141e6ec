"""Tokens of Candid's texts: types and values share names, numbers, strings, punctuation and comments.

Source: Candid specification, "Core Grammar" and "Textual Format".
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from relaycast_gateway.candid.errors import CandidError

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*)|(?P<comment>/\*)"
    rf"|(?P<name>{PLAIN_NAME.pattern})"
    r"|(?P<float>[+-](?:inf|nan)\b|[+-]?\d[\d_]*(?:\.(?:\d[\d_]*)?(?:[eE][+-]?\d+)?|[eE][+-]?\d+)"
    r"|[+-]?0x[\da-fA-F_]+(?:\.[\da-fA-F_]*(?:[pP][+-]?\d+)?|[pP][+-]?\d+))"
    r"|(?P<number>[+-]?(?:0x[\da-fA-F][\da-fA-F_]*|\d[\d_]*))"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<mark>->|[{}();,:=.])",
    re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(rb"\\(?:([nrt\\\"'])|([0-9a-fA-F]{2})|u\{([0-9a-fA-F_]+)\}|(.?))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
LONGEST_TEXT = 1 << 20
"""Characters of a text that is parsed."""


class TextToken(NamedTuple):
    """A piece of a text: its kind (name, number, float, string, mark or end), the characters, the offset."""

    kind: str
    text: str
    offset: int


def place_in(text: str, offset: int) -> str:
    """Return line and column of an offset, both counted from 1."""
    line_start = text.rfind("\n", 0, offset) + 1
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - line_start + 1}"


def tokens_of(text: str) -> list[TextToken]:
    """Return the tokens of a text, the last of them its end."""
    if len(text) > LONGEST_TEXT:
        raise CandidError(f"a text has at most {LONGEST_TEXT} characters, got {len(text)}")
    found, offset = [], 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            what = "a string that ends" if text[offset] == '"' else "a name, number, string or punctuation"
            raise CandidError(f"expected {what}, got {text[offset : offset + 20]!r}", place_in(text, offset))
        kind = str(match.lastgroup)
        if kind == "comment":
            offset = _comment_end(text, offset)
            continue
        if kind != "space":
            found.append(TextToken(kind, match.group(), offset))
        offset = match.end()
    found.append(TextToken("end", "", len(text)))
    return found


def _comment_end(text: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise CandidError("a comment does not end", place_in(text, start))


def string_bytes(token: TextToken, text: str) -> bytes:
    """Return the bytes that a string stands for: an escape of two hexadecimal digits is one byte."""

    def bytes_of(match: re.Match[bytes]) -> bytes:
        letter, byte, point, other = match.groups()
        if letter is not None:
            return _LETTERS.get(letter, letter)
        if byte is not None:
            return bytes.fromhex(byte.decode())
        if point is None:
            raise CandidError(f"unknown escape \\{other.decode(errors='replace')}", place_in(text, token.offset))
        digits = point.decode().replace("_", "")
        number = int(digits, 16) if digits and len(digits) <= 8 else 0x110000
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise CandidError(f"\\u{{{point.decode()[:20]}}} is no Unicode scalar value", place_in(text, token.offset))
        return chr(number).encode()

    try:
        raw = token.text[1:-1].encode()
    except UnicodeEncodeError as error:
        raise CandidError("a string holds a lone surrogate", place_in(text, token.offset)) from error
    return _ESCAPE.sub(bytes_of, raw)


def string_text(token: TextToken, text: str) -> str:
    """Return the text that a string stands for; refused where its bytes are no UTF-8."""
    try:
        return string_bytes(token, text).decode()
    except UnicodeDecodeError as error:
        raise CandidError("a string must be UTF-8", place_in(text, token.offset)) from error


class TokenReader:
    """Tokens from left to right, with one clear refusal for what is not expected."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens_of(text)
        self._at = 0

    @property
    def token(self) -> TextToken:
        """The next token."""
        return self._tokens[self._at]

    def is_before(self, mark: str) -> bool:
        """Tell whether this mark stands behind the next token."""
        behind = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        return behind.kind == "mark" and behind.text == mark

    def step(self) -> TextToken:
        """Take the next token."""
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def has(self, text: str) -> bool:
        """Tell whether the next token is this name or mark."""
        token = self._tokens[self._at]
        return token.text == text and token.kind in {"mark", "name"}

    def takes(self, text: str) -> bool:
        """Take the next token if it is this name or mark."""
        found = self.has(text)
        if found:
            self._at += 1
        return found

    def each(self, end: str, separator: str) -> Iterator[TextToken]:
        """Yield the first token of each part of a list, until its end is taken; the last separator may be missing."""
        while not self.takes(end):
            yield self.token
            if not self.has(end):
                self.expect(separator)

    def method(self) -> str:
        """Take the name of a method, which may be a string."""
        token = self.step()
        if token.kind not in {"name", "string"}:
            raise self.refusal("the name of a method", token)
        return token.text if token.kind == "name" else string_text(token, self.text)

    def expect(self, text: str) -> TextToken:
        """Take this mark; refused where something else stands."""
        if not self.has(text):
            raise self.refusal(repr(text))
        return self.step()

    def refusal(self, expected: str, token: TextToken | None = None) -> CandidError:
        """Return the refusal of a token, the next one by default."""
        token = token or self.token
        found = "the end of the text" if token.kind == "end" else repr(token.text[:40])
        return CandidError(f"expected {expected}, got {found}", place_in(self.text, token.offset))

    def refused(self, reason: str, token: TextToken) -> CandidError:
        """Return a refusal at the place of a token."""
        return CandidError(reason, place_in(self.text, token.offset))
