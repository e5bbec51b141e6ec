"""What the server logs of requests: errors of its own, never what a client sent.

A request that is no HTTP, too long, or encoded wrongly is answered with 400 and not logged. Its text may hold a token,
and a stranger could fill a disk with it. A client that is gone before it was answered is not logged either, such as one
that asked for a WebSocket.
"""

import logging

from aiohttp import ClientConnectionResetError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import ws_logger
from aiohttp.web_protocol import PayloadAccessError, RequestPayloadError

_OF_CLIENTS = (HttpProcessingError, RequestPayloadError, PayloadAccessError, ClientConnectionResetError)


def _is_our_own(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], _OF_CLIENTS))


REQUEST_LOG = logging.getLogger(__name__)
REQUEST_LOG.addFilter(_is_our_own)
ws_logger.addFilter(lambda _: False)
"""It says which protocols a client asked for: text that the client sent."""
