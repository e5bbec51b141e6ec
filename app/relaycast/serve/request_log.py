"""What the server logs: errors of its own, never what a client sent, and never more than a bounded number of lines.

A request that is no HTTP, too long, or encoded wrongly is answered with 400 and not logged. Its text may hold a token,
and a stranger could fill a disk with it. A client that is gone before it was answered is not logged either, such as one
that asked for a WebSocket.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from aiohttp import ClientConnectionResetError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import ws_logger
from aiohttp.web_protocol import PayloadAccessError, RequestPayloadError

from relaycast_gateway.clock import SECOND, Clock, SystemClock

ENTRIES_A_MINUTE = 10
"""Of one place in the code; an entry is a message with its traceback."""

_OF_CLIENTS = (HttpProcessingError, RequestPayloadError, PayloadAccessError, ClientConnectionResetError)


def _is_our_own(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], _OF_CLIENTS))


REQUEST_LOG = logging.getLogger(__name__)
REQUEST_LOG.addFilter(_is_our_own)
ws_logger.addFilter(lambda _: False)
"""It says which protocols a client asked for: text that the client sent."""


class EntryRate:
    """A filter of a handler: lets ``most`` entries of each place in the code pass in a minute.

    The next one says how many were left out.
    """

    def __init__(self, most: int = ENTRIES_A_MINUTE, clock: Clock | None = None) -> None:
        self._most = most
        self._clock = clock or SystemClock()
        self._passed: dict[tuple[str, int], tuple[int, int]] = {}
        """The minute of each place's last entry, and how many it had in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        place, minute = (record.pathname, record.lineno), self._clock.passed_ns() // (60 * SECOND)
        known_minute, count = self._passed.get(place, (minute, 0))
        left_out = max(count - self._most, 0) if known_minute != minute else 0
        count = 1 if known_minute != minute else count + 1
        self._passed[place] = minute, count
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out:,} more entries were left out)", ()
        return count <= self._most


@contextmanager
def limited_log(stream: TextIO | None = None, rate: EntryRate | None = None) -> Iterator[None]:
    """Write warnings and errors of all rooms and libraries to ``stream``, by default standard error, within a rate."""
    handler = logging.StreamHandler(stream)
    handler.setLevel(logging.WARNING)
    handler.addFilter(rate or EntryRate())
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
