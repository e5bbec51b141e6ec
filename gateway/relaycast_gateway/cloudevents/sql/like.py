"""Patterns of ``LIKE``, matched in time that is bounded by the length of the text times the length of the pattern.

A pattern is cut at its ``%``. The first and the last piece stand at the ends of the text. Each piece between them is
taken at the first place after the one before; that choice never has to be taken back.
"""

import re
from collections.abc import Callable, Iterator
from operator import methodcaller

_ONE = re.compile(r"\\[%_]|.", re.DOTALL)


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return the test for a pattern."""
    pieces = [_Piece(characters) for characters in _pieces(pattern)]
    if len(pieces) == 1:
        return pieces[0].matches
    first, *between, last = pieces
    if not between and first.literal is not None and last.literal == "":
        return methodcaller("startswith", first.literal)
    if not between and first.literal == "" and last.literal is not None:
        return methodcaller("endswith", last.literal)
    least = sum(piece.length for piece in pieces)

    def matches(text: str) -> bool:
        if len(text) < least or not first.stands_at(text, 0):
            return False
        end = len(text) - last.length
        if not last.stands_at(text, end):
            return False
        at = first.length
        for piece in between:
            at = piece.found(text, at, end)
            if at < 0:
                return False
            at += piece.length
        return True

    return matches


def _pieces(pattern: str) -> Iterator[list[str | None]]:
    """Yield what stands between the ``%``: characters, ``None`` for any one."""
    piece: list[str | None] = []
    for each in _ONE.findall(pattern):
        if each == "%":
            yield piece
            piece = []
        else:
            piece.append(None if each == "_" else each[-1])
    yield piece


class _Piece:
    """Characters in a row, some of which may be any."""

    def __init__(self, characters: list[str | None]) -> None:
        self.length = len(characters)
        self.literal = None if None in characters else "".join(filter(None, characters))
        self._form = re.compile("".join("." if it is None else re.escape(it) for it in characters), re.DOTALL)
        self._any = sum(1 << place for place, it in enumerate(characters) if it is None)
        self._places: dict[str, int] = {}
        for place, it in enumerate(characters):
            if it is not None:
                self._places[it] = self._places.get(it, self._any) | 1 << place

    def matches(self, text: str) -> bool:
        """Return whether the whole text is this piece."""
        return text == self.literal if self.literal is not None else self._form.fullmatch(text) is not None

    def stands_at(self, text: str, at: int) -> bool:
        if self.literal is not None:
            return text.startswith(self.literal, at)
        return self._form.match(text, at) is not None

    def found(self, text: str, start: int, end: int) -> int:
        """Return the first place from ``start`` at which the piece stands before ``end``, -1 where it does not.

        With ``_`` in it: bit n of ``open_`` says that the last n + 1 characters match the first n + 1 of the piece.
        """
        if self.literal is not None:
            return text.find(self.literal, start, end)
        complete, open_ = 1 << self.length - 1, 0
        for at in range(start, end):
            open_ = (open_ << 1 | 1) & self._places.get(text[at], self._any)
            if open_ & complete:
                return at + 1 - self.length
        return -1
