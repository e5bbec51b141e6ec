"""The server's log: its own errors, never text that a client sent, and a bounded number of lines.

A request that is no HTTP, too long, or encoded wrongly is answered with 400 and not logged. Its text may hold a token,
and anyone could fill a disk with it. A client that leaves before the answer is not logged either, not even during a
WebSocket handshake.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from aiohttp import ClientConnectionResetError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import ws_logger
from aiohttp.web_protocol import PayloadAccessError, RequestPayloadError

from relaycast_node.line_rate import LineRate

ENTRIES_A_MINUTE = 10
"""Per place in the code; an entry is a message, with its traceback if it has one."""

_OF_CLIENTS = (HttpProcessingError, RequestPayloadError, PayloadAccessError, ClientConnectionResetError)


def _is_our_own(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], _OF_CLIENTS))


REQUEST_LOG = logging.getLogger(__name__)
REQUEST_LOG.addFilter(_is_our_own)
ws_logger.addFilter(lambda _: False)
"""Logs the protocols that a client requested, which is text that the client sent."""


@contextmanager
def limited_log(
    stream: TextIO | None = None, *, entries: int = ENTRIES_A_MINUTE, clock: Callable[[], float] = time.monotonic
) -> Iterator[None]:
    """Write warnings and errors of all rooms and libraries to ``stream``, by default standard error.

    Each place in the code may write ``entries`` a minute; ``clock`` returns seconds.
    """
    rates: defaultdict[tuple[str, int], LineRate] = defaultdict(lambda: LineRate(entries, clock=clock))
    handler = logging.StreamHandler(stream)
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: rates[record.pathname, record.lineno].filter(record))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
