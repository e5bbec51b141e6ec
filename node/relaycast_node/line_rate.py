"""A logging filter that limits lines per minute and reports the number it left out."""

import logging
import time
from collections.abc import Callable

LINES_A_MINUTE = 20
SECONDS = 60.0


class LineRate(logging.Filter):
    """Passes ``lines`` records of INFO and above in each minute; ``clock`` returns seconds."""

    def __init__(self, lines: int = LINES_A_MINUTE, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._lines = lines
        self._clock = clock
        self._begun = float("-inf")
        self._passed = self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged; the first one of a minute names the number left out before it."""
        if record.levelno < logging.INFO:
            return True
        now = self._clock()
        if now >= self._begun + SECONDS:
            self._begun, self._passed = now, 0
        if self._passed >= self._lines:
            self._left_out += 1
            return False
        self._passed += 1
        if self._left_out:
            record.msg, record.args = f"{record.getMessage()} ({self._left_out:,} lines before it left out)", None
            self._left_out = 0
        return True
