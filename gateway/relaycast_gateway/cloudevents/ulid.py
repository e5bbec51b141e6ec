"""Ids that nobody guesses and that sort by their time: 48 bits of milliseconds, 80 random bits, in Crockford Base32.

Source: the specification of ULID, monotonic within a process.
"""

import secrets

from relaycast_gateway import crockford
from relaycast_gateway.clock import Clock

DIGITS = 26
_MILLISECOND = 1_000_000
_RANDOM_BITS = 80
_MOST = (1 << 128) - 1


class UlidSource:
    """Gives ids, each larger than all before it and than ``last``, even where the clock steps back."""

    def __init__(self, clock: Clock, *, last: str = "") -> None:
        self._clock = clock
        self._last = crockford.decode(last) if last else 0

    def next(self) -> str:
        """Return a new id."""
        milliseconds = self._clock.now_ns() // _MILLISECOND
        fresh = (milliseconds << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)) & _MOST
        if fresh <= self._last:  # a random step keeps the next one hard to guess
            fresh = self._last + 1 + secrets.randbits(_RANDOM_BITS - 16)
        self._last = fresh
        return crockford.encode(fresh).rjust(DIGITS, "0")


def is_ulid(text: str) -> bool:
    """Return whether ``text`` is an id as ``UlidSource`` gives them."""
    return len(text) == DIGITS and all(sign in crockford.ALPHABET for sign in text)
