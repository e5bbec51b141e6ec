"""Notes what comes into served chains before it takes effect.

Law: an input counts from the moment that it is noted. One that is refused and leaves no trace is taken back.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relaycast_node.chain.exceptions import ChainsHalted
from relaycast_node.journal.entries import NO_INPUTS, Entry

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

        self.kept_aside: str | None = None
        """The file that keeps dropped inputs, if any."""

        self._since_tick = 0

    def note(self, entry: Entry) -> TakeBack:
        """Note an input that is about to take effect; return what takes it back."""
        self.now = self._clock()
        if isinstance(entry, NO_INPUTS):
            return _nothing
        self._since_tick += 1
        return self._take_back

    def _take_back(self) -> None:
        self._since_tick -= 1

    def tick_done(self, heads: bytes) -> None:  # noqa: ARG002
        """Note that a tick has passed; ``heads`` is a digest of what it came to."""
        self._since_tick = 0

    def drop(self, relay_block: int, reason: str) -> int:  # noqa: ARG002
        """Remove all entries since the last completed tick, and return the number of inputs.

        ``relay_block`` could not be built with them, for ``reason``.
        """
        dropped, self._since_tick = self._since_tick, 0
        return dropped

    @contextmanager
    def noting(self, entry: Entry) -> Iterator[None]:
        """Note an input, and take it back where it is refused with an exception."""
        take_back = self.note(entry)
        try:
            yield
        except Exception:
            take_back()
            raise


class HaltedLog(InputLog):
    """Accepts no input, for ``reason``: every input raises ``ChainsHalted``."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__()
        self.position = position
        self._reason = reason

    def note(self, entry: Entry) -> TakeBack:  # noqa: ARG002
        raise ChainsHalted(self._reason)


def _nothing() -> None:
    return
