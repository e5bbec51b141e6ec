"""Notes what comes into served chains before it takes effect.

Law: an input counts from the moment that it is noted. One that is refused and leaves no trace is taken back.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relaycast_node.journal.entries import Entry

TakeBack = Callable[[], None]


class InputLog:
    """Keeps nothing: chains that end with their process note their inputs here.

    ``clock`` gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.now = clock()
        """Seconds when the last input came: the only time that chains and their pools know."""

        self.position = 0
        """Bytes of the inputs that came before now, where they are kept."""

    def note(self, entry: Entry) -> TakeBack:  # noqa: ARG002
        """Note an input that is about to take effect; return what takes it back."""
        self.now = self._clock()
        return _nothing

    def tick_done(self, heads: bytes) -> None:
        """Note that a tick has passed; ``heads`` is a digest of what it came to."""

    def end(self, reason: str) -> None:
        """Note nothing from here on: the chains can no longer be used, for ``reason``."""

    @contextmanager
    def noting(self, entry: Entry) -> Iterator[None]:
        """Note an input, and take it back where it is refused with an exception."""
        take_back = self.note(entry)
        try:
            yield
        except Exception:
            take_back()
            raise


def _nothing() -> None:
    return
