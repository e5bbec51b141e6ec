"""A WebSocket that speaks JSON-RPC: one task reads requests, one writes the messages of the session's outbox.

Law: the end of either task ends the other. While the reader waits for room in the outbox it does not see the
connection end, so the writer closes the outbox when it can no longer write. During a long request, the reader reads
one message ahead: a ping gets its pong, and a client that closes the connection is noticed.
"""

import asyncio
from contextlib import suppress

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from relaycast.serve.request_rates import Admission
from relaycast_gateway.rfc6455 import answer_close, checked_handshake
from relaycast_node.rpc.json_rpc import MOST_REQUEST_BYTES, JsonRpc, rate_exceeded
from relaycast_node.rpc.session import RpcSession

HEARTBEAT_SECONDS = 30.0
CLOSING_SECONDS = 2.0
"""How long a client that is cut off has for the close frame; then the connection is dropped."""

CLOSE_REASON_BYTES = 120
CLOSES = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED})


async def serve_socket(
    request: web.Request,
    rpc: JsonRpc,
    session: RpcSession,
    open_sockets: set[web.WebSocketResponse],
    admit: Admission,
) -> web.StreamResponse:
    """Answer a client until it leaves, falls behind, or the server stops; ``admit`` bounds its messages a second.

    Raises an ``HTTPException`` for an invalid handshake.
    """
    socket = web.WebSocketResponse(
        heartbeat=HEARTBEAT_SECONDS,
        timeout=CLOSING_SECONDS,
        max_msg_size=MOST_REQUEST_BYTES,
        compress=False,
        autoclose=False,
    )
    await socket.prepare(checked_handshake(request))
    open_sockets.add(socket)
    ahead: asyncio.Task[WSMessage] | None = None

    def leaves() -> bool:
        nonlocal ahead
        ahead = ahead or asyncio.create_task(socket.receive())
        return socket.close_code is not None or has_left(request)

    session.has_left = leaves
    writer = asyncio.create_task(_write(socket, session))
    session.outbox.on_cut_off = lambda reason: _cut_off(request, socket, writer, reason)
    try:
        while True:
            reading, ahead = ahead, None
            message = await (reading or socket.receive())
            if message.type in CLOSES or has_left(request):  # the client no longer reads answers
                break
            if message.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
                too_fast = admit(1)
                if too_fast is None:
                    await rpc.receive(message.data, session)
                else:
                    await session.outbox.room()
                    session.outbox.put(rate_exceeded(message.data, str(too_fast)))
        await answer_close(socket)
    finally:
        open_sockets.discard(socket)
        session.close()
        for task in (writer, ahead):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
    return socket


def has_left(request: web.Request) -> bool:
    """Return whether the client of a request is gone."""
    return request.transport is None or request.transport.is_closing()


async def _write(socket: web.WebSocketResponse, session: RpcSession) -> None:
    try:
        while (message := await session.outbox.get()) is not None:
            await socket.send_frame(message, WSMsgType.TEXT)
    except ConnectionError:
        pass
    finally:
        session.outbox.close()


def _cut_off(request: web.Request, socket: web.WebSocketResponse, writer: "asyncio.Task[None]", reason: str) -> None:
    """Close a connection whose client fell behind; drop it where the client does not even read that."""
    transport = request.transport

    async def close() -> None:
        message = reason.encode()[:CLOSE_REASON_BYTES]
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await asyncio.wait({writer})  # what was under way before
                await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=message)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            if transport is not None:
                transport.abort()

    _CLOSING.add(task := asyncio.get_running_loop().create_task(close()))
    task.add_done_callback(_CLOSING.discard)


_CLOSING: set["asyncio.Task[None]"] = set()
"""Tasks that close connections; the loop itself only knows them weakly."""
