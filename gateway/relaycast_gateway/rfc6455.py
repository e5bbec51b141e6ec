"""The parts of the WebSocket protocol that aiohttp leaves to the application: handshake and close frame.

aiohttp checks frames, but accepts unmasked frames and a length in more bytes than it needs.
Source: RFC 6455, and the close codes that IANA has registered.
"""

import base64
import binascii
from collections.abc import Collection

from aiohttp import HttpVersion11, WSCloseCode, hdrs, web

VERSION = "13"
KEY_BYTES = 16

_REGISTERED = frozenset({*range(1000, 1004), *range(1007, 1015)})
"""Close codes of the protocol that a frame may carry."""


def is_upgrade(request: web.Request) -> bool:
    """Return whether a client asks for a WebSocket."""
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


def checked_handshake(request: web.Request, subprotocols: Collection[str] = ()) -> web.Request:
    """Return a handshake that offers at most one subprotocol: the first of the client's that is known.

    Raises an ``HTTPException`` if the handshake breaks the RFC.
    """
    if request.version < HttpVersion11:
        raise web.HTTPBadRequest(reason="a WebSocket: got a request of HTTP/1.0, expected HTTP/1.1")
    if "upgrade" not in map(str.lower, _listed(request, hdrs.CONNECTION)):
        raise web.HTTPBadRequest(reason="Connection: expected Upgrade")
    if request.headers.getall(hdrs.SEC_WEBSOCKET_VERSION, []) != [VERSION]:
        needed = {hdrs.UPGRADE: "websocket", hdrs.SEC_WEBSOCKET_VERSION: VERSION}
        raise web.HTTPUpgradeRequired(reason=f"Sec-WebSocket-Version: expected {VERSION}", headers=needed)
    if not _is_key(request.headers.getall(hdrs.SEC_WEBSOCKET_KEY, [])):
        raise web.HTTPBadRequest(reason=f"Sec-WebSocket-Key: expected {KEY_BYTES} bytes in base64")
    headers = request.headers.copy()
    headers.popall(hdrs.SEC_WEBSOCKET_PROTOCOL, None)  # aiohttp reads the first line alone, and logs what is unknown
    chosen = next((name for name in _listed(request, hdrs.SEC_WEBSOCKET_PROTOCOL) if name in subprotocols), None)
    if chosen is not None:
        headers[hdrs.SEC_WEBSOCKET_PROTOCOL] = chosen
    return request.clone(headers=headers)


async def answer_close(socket: web.WebSocketResponse) -> None:
    """Echo the code of a client's close frame, or answer 1002 if the code is invalid.

    ``socket`` was made with ``autoclose=False`` and is no longer read. A closed one is left alone.
    """
    code = socket.close_code
    if socket.closed or code is None:
        return
    if code == 0:  # a frame without a code
        code = WSCloseCode.OK
    elif code not in _REGISTERED and not 3_000 <= code <= 4_999:
        code = WSCloseCode.PROTOCOL_ERROR
    await socket.close(code=code, drain=False)


def _is_key(keys: list[str]) -> bool:
    try:
        return len(keys) == 1 and len(base64.b64decode(keys[0], validate=True)) == KEY_BYTES
    except (binascii.Error, ValueError):
        return False


def _listed(request: web.Request, name: str) -> list[str]:
    """Return the values of a header that may have several lines."""
    return [value.strip() for line in request.headers.getall(name, []) for value in line.split(",")]
