"""WAMP over WebSocket: one message in each text message (JSON) or binary message (MessagePack, CBOR).

aiohttp shakes hands, reads frames and sends pings; messages are framed here, since all that is sent in one turn of the
event loop then takes one write. There is no compression: it would let a few bytes fill memory.
Source: WAMP specification, "WebSocket Transport"; RFC 6455.
"""

import asyncio
from contextlib import suppress

from aiohttp import WSCloseCode, WSMsgType, hdrs, web
from aiohttp.abc import AbstractStreamWriter

from relaycast_gateway.rfc6455 import answer_close, checked_handshake, is_upgrade
from relaycast_gateway.wamp.buffered_link import HIGH_WATER, BufferedLink, Hold
from relaycast_gateway.wamp.connections import Connections
from relaycast_gateway.wamp.errors import PAYLOAD_SIZE_EXCEEDED, PROTOCOL_VIOLATION
from relaycast_gateway.wamp.serializers import SERIALIZER_NAMES, serializer_named

SUBPROTOCOLS = {f"wamp.2.{name}": name for name in SERIALIZER_NAMES}

LOOK_SECONDS = 1.0
"""Interval at which a paused client is checked for having left; aiohttp has no callback for it."""

_TEXT = 0x81
_BINARY = 0x82


class WebSocketLink(BufferedLink):
    """One connection, as its session sees it."""

    __slots__ = ("_close_code", "_closing", "_drainer", "_first_byte", "_released", "_socket")

    def __init__(
        self,
        connections: Connections,
        socket: web.WebSocketResponse,
        transport: asyncio.Transport,
        drainer: AbstractStreamWriter,
        serializer: str,
    ) -> None:
        super().__init__(connections)
        self.serializer = serializer
        self._socket = socket
        self._transport = transport
        self._drainer = drainer
        self._first_byte = _BINARY if serializer_named(serializer).is_binary else _TEXT
        self._close_code = WSCloseCode.OK
        self._closing: asyncio.Task[None] | None = None
        self._released: asyncio.Event | None = None

    @property
    def transport(self) -> dict[str, object]:
        """What others may learn of the connection."""
        return {"type": "websocket", "protocol": f"wamp.2.{self.serializer}", "serializer": self.serializer}

    async def drain(self) -> None:
        """Return when the peer has taken most of what was sent; raises ``ConnectionResetError`` when it is gone."""
        if not self._is_closed:
            self._flush()
        if self._is_closed:
            raise ConnectionResetError("the client is gone")
        await self._drainer.drain()

    def abandon(self) -> None:
        """End the connection now."""
        super().abandon()
        if self._released is not None:
            self._released.set()

    def look_after(self) -> None:
        """Do nothing: aiohttp sends pings."""

    async def serve(self) -> None:
        """Hand what comes to a session until either side ends it."""
        session = self._connections.router.attach(self)
        expected = WSMsgType.TEXT if self._first_byte == _TEXT else WSMsgType.BINARY
        is_new = True
        try:
            async for message in self._socket:
                if message.type is WSMsgType.ERROR:  # aiohttp has closed it: a message too long, or no answer to a ping
                    break
                if message.type is not expected:
                    self._close_code = WSCloseCode.UNSUPPORTED_DATA
                    session.abort(PROTOCOL_VIOLATION, f"expected {expected.name.lower()} messages of {self.serializer}")
                    continue
                data = message.data if expected is WSMsgType.BINARY else message.data.encode()
                most = self._connections.most_bytes_from(session)
                if len(data) > most:  # as long as the client is not welcomed: aiohttp refuses what is longer later
                    session.abort(PAYLOAD_SIZE_EXCEEDED, f"expected at most {most} bytes, got a message of {len(data)}")
                    continue
                session.receive(data)
                if is_new and session.is_open:
                    is_new = False
                    self._connections.gate.admit(self._transport)
                if self._hold or self.waiting_bytes > HIGH_WATER:
                    await self._until_released()
            await answer_close(self._socket)
        finally:
            self._is_closed = True
            session.lost()
            if self._closing is not None:
                await self._closing

    async def _until_released(self) -> None:
        """Wait while the session accepts no messages or the client reads no answers; not if the client has left."""
        with suppress(ConnectionResetError):
            await self.drain()
        assert self._transport is not None
        while self._hold and not self._is_closed and not self._transport.is_closing():
            self._released = asyncio.Event()
            alarm = self._connections.clock.call_later(LOOK_SECONDS, self._released.set)
            await self._released.wait()
            alarm.cancel()

    def _head_of(self, length: int) -> bytes:
        if length < 126:
            return bytes((self._first_byte, length))
        if length < 1 << 16:
            return bytes((self._first_byte, 126)) + length.to_bytes(2)
        return bytes((self._first_byte, 127)) + length.to_bytes(8)

    def _hold_for(self, reason: Hold) -> None:
        self._hold |= reason

    def _release(self, reason: Hold) -> None:
        self._hold &= ~reason
        if self._released is not None and not self._hold:
            self._released.set()

    def _close_kindly(self) -> None:
        self._release(Hold.BY_SESSION)
        self._closing = self._loop.create_task(self._say_close())

    async def _say_close(self) -> None:
        try:
            async with asyncio.timeout(self._connections.limits.closing_seconds):
                await self._socket.close(code=self._close_code)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            assert self._transport is not None
            self._transport.abort()


async def serve_websocket(request: web.Request, connections: Connections) -> web.StreamResponse:
    """Answer a client until its session ends; raises an ``HTTPException`` where none begins."""
    limits = connections.limits
    socket = web.WebSocketResponse(
        protocols=tuple(SUBPROTOCOLS),
        heartbeat=limits.ping_seconds,
        timeout=limits.closing_seconds,
        max_msg_size=limits.most_message_bytes + 1,  # aiohttp refuses what is as long as this
        compress=False,
        autoclose=False,
    )
    names = ", ".join(SUBPROTOCOLS)
    if not is_upgrade(request):
        raise web.HTTPUpgradeRequired(reason=f"expected a WebSocket with one of the subprotocols {names}")
    request = checked_handshake(request, SUBPROTOCOLS)
    if hdrs.SEC_WEBSOCKET_PROTOCOL not in request.headers:
        connections.refused += 1
        raise web.HTTPBadRequest(reason=f"expected one of the subprotocols {names}")
    if connections.is_full:
        connections.refused += 1
        raise web.HTTPServiceUnavailable(reason=f"too many sessions: the limit is {limits.most_sessions}")
    drainer = await socket.prepare(request)
    transport = request.transport
    if transport is None:  # the client has left during the handshake
        return socket
    transport.set_write_buffer_limits(HIGH_WATER)
    assert socket.ws_protocol is not None
    link = WebSocketLink(connections, socket, transport, drainer, SUBPROTOCOLS[socket.ws_protocol])
    connections.open.add(link)
    try:
        await link.serve()
    finally:
        connections.open.discard(link)
    return socket
