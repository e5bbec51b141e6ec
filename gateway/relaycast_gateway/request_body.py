"""The body of a request, read up to a limit.

Law: the limit holds for the length that a request names and for the bytes that come. Its route checks the content.
"""

import asyncio

from aiohttp import hdrs, web

from relaycast_gateway.problem import Problem, RequestRefused

BODY_SECONDS = 60.0
"""Time to receive a body, from the end of the request's headers."""


async def read_body(request: web.Request, most_bytes: int) -> bytes:
    """Return the whole body.

    Raises ``RequestRefused`` if it is encoded, larger than ``most_bytes``, cut short, or takes ``BODY_SECONDS``.
    """
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise _refused("media-type", 415, "Content-Encoding: got an encoding, expected none")
    if (request.content_length or 0) > most_bytes:
        raise _too_large(most_bytes)
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                data += chunk
                if len(data) > most_bytes:
                    raise _too_large(most_bytes)
    except TimeoutError:
        raise _refused("malformed", 408, f"the body: got part of one in {BODY_SECONDS:g} s") from None
    except web.RequestPayloadError:
        raise _refused("malformed", 400, "the body: got part of one, expected all of it") from None
    return bytes(data)


def _too_large(most_bytes: int) -> RequestRefused:
    return _refused("too-large", 413, f"the body: got more than {most_bytes:,} bytes, expected at most these")


def _refused(kind: str, status: int, detail: str) -> RequestRefused:
    return RequestRefused(Problem(kind, status, detail))
