"""WAMP over RawSocket: plain TCP (or TLS), each message behind four bytes.

The client begins with ``7F``, its longest message as a power of two (from 2^9) and its serializer in one byte, and two
bytes that are 0. The answer has the same form, or tells in the third half byte why the client is refused. A frame then
is a byte for its kind (message, ping or pong), three bytes for its length, and the content.
Source: WAMP specification, "RawSocket Transport".
"""

import asyncio
import ssl as tls
from collections import deque
from enum import IntEnum
from typing import cast

from relaycast_gateway.clock import Alarm
from relaycast_gateway.listener import Listener
from relaycast_gateway.wamp.buffered_link import HIGH_WATER, BufferedLink, Hold
from relaycast_gateway.wamp.connections import Connections, ReceivingSession
from relaycast_gateway.wamp.errors import PAYLOAD_SIZE_EXCEEDED, PROTOCOL_VIOLATION

MAGIC = 0x7F
SERIALIZERS = {1: "json", 2: "msgpack", 3: "cbor"}
LONGEST_FRAME = (1 << 24) - 1
LEAST_EXPONENT = 2
"""A client has to take messages of 2 KiB, since WELCOME is longer than 512 bytes."""

FRAMES_PER_TURN = 256
"""Messages of one client after which others have their turn."""

_ROUNDS_TO_PING = 2
"""Rounds of looking after clients without a byte of this one; it was silent for one whole round at least."""


class RawSocketRefusal(IntEnum):
    """Why a handshake is refused, as its answer says it."""

    SERIALIZER_UNSUPPORTED = 1
    LENGTH_UNACCEPTABLE = 2
    RESERVED_BITS = 3
    MOST_CONNECTIONS = 4


class FrameKind(IntEnum):
    """What a frame holds."""

    MESSAGE = 0
    PING = 1
    PONG = 2


_MESSAGE, _PING, _PONG = map(int, FrameKind)
"""A member of an enumeration is slow to look up."""


class RawSocketLink(BufferedLink, asyncio.Protocol):
    """One connection: the link of a session, and what asyncio calls."""

    __slots__ = ("_alarm", "_drains", "_is_new", "_needed", "_rest", "_session", "_silent_rounds", "_waited_bytes")

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self._session: ReceivingSession | None = None
        self._alarm: Alarm | None = None
        self._rest = bytearray()
        self._needed = 4
        self._is_new = True
        self._silent_rounds = 0
        self._waited_bytes = 0
        self._drains: deque[asyncio.Future[None]] | None = None

    @property
    def transport(self) -> dict[str, object]:
        """What others may learn of the connection."""
        return {"type": "rawsocket", "serializer": self.serializer}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the handshake."""
        self._transport = cast(asyncio.Transport, transport)
        connections = self._connections
        if connections.is_overrun:
            connections.refused += 1
            self.abandon()
            return
        self._transport.set_write_buffer_limits(HIGH_WATER)
        connections.open.add(self)
        self._alarm = connections.clock.call_later(connections.limits.handshake_seconds, self._out_of_time)

    def data_received(self, data: bytes) -> None:
        """Take what came: the handshake, or frames whole and in part."""
        self._silent_rounds = 0
        if self._is_closed:
            return
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        elif len(data) < self._needed:
            self._rest += data
            return
        if self._session is None:
            data = self._shake_hands(data)
        self._read_frames(data)
        if self._is_new and self._session is not None and self._session.is_open:
            self._is_new = False
            self._connections.gate.admit(self._transport)

    def connection_lost(self, _: Exception | None) -> None:
        """End the session, and wake the tasks that wait in ``drain``."""
        self._is_closed = True
        self._parts.clear()
        self._rest.clear()
        self._disarm()
        self._connections.open.discard(self)
        self._wake(ConnectionResetError("the client is gone"))
        session, self._session = self._session, None
        if session is not None:
            session.lost()

    def pause_writing(self) -> None:
        """Read no more requests of a client that does not take what it is sent."""
        self._hold_for(Hold.CHOKED)

    def resume_writing(self) -> None:
        """Go on reading."""
        self._wake(None)
        self._release(Hold.CHOKED)

    async def drain(self) -> None:
        """Return when the peer has taken most of what was sent; raises ``ConnectionResetError`` when it is gone."""
        if not self._is_closed:
            self._flush()
        if self._is_closed:
            raise ConnectionResetError("the client is gone")
        if self._hold & Hold.CHOKED:
            waiting: asyncio.Future[None] = self._loop.create_future()
            if self._drains is None:
                self._drains = deque()
            self._drains.append(waiting)
            await waiting

    def look_after(self) -> None:
        """Send a ping to a client that was silent; drop it if it was silent after a ping, too."""
        if self._session is None or self._is_closed or self._hold & Hold.BY_SESSION:
            return
        waited, self._waited_bytes = self._waited_bytes, self.waiting_bytes
        self._silent_rounds = 0 if self._waited_bytes < waited else self._silent_rounds + 1
        if self._silent_rounds == _ROUNDS_TO_PING:
            self._write(_head(FrameKind.PING, 0), b"")
        elif self._silent_rounds > _ROUNDS_TO_PING:
            self.abandon()

    def _shake_hands(self, data: bytes) -> bytes:
        """Answer the handshake; return what came behind it."""
        if data[0] != MAGIC:
            self._connections.refused += 1
            self.abandon()
            return b""
        exponent, number = data[1] >> 4, data[1] & 0x0F
        limits = self._connections.limits
        refusal = None
        if data[2:4] != b"\0\0":
            refusal = RawSocketRefusal.RESERVED_BITS
        elif number not in SERIALIZERS:
            refusal = RawSocketRefusal.SERIALIZER_UNSUPPORTED
        elif exponent < LEAST_EXPONENT:
            refusal = RawSocketRefusal.LENGTH_UNACCEPTABLE
        elif len(self._connections.open) > limits.most_sessions:
            refusal = RawSocketRefusal.MOST_CONNECTIONS
        if refusal is not None:
            self._connections.refused += 1
            self._write(bytes((MAGIC, refusal << 4, 0, 0)), b"")
            self.close()
            return b""
        self._disarm()
        self.serializer = SERIALIZERS[number]
        self.most_message_bytes = min(1 << (9 + exponent), LONGEST_FRAME)
        self._needed = 4
        self._write(bytes((MAGIC, _exponent_of(limits.most_message_bytes) << 4 | number, 0, 0)), b"")
        self._session = self._connections.router.attach(self)
        return data[4:]

    def _read_frames(self, data: bytes) -> None:
        start, end, left = 0, len(data), FRAMES_PER_TURN
        most = self._connections.most_bytes_from(self._session)
        self._needed = 4
        while end - start >= 4:
            if self._is_closed or self._session is None:
                return
            if self._hold or not left:
                if not left:
                    self._hold_for(Hold.OTHERS_TURN)
                    self._loop.call_soon(self._release, Hold.OTHERS_TURN)
                break
            kind = data[start]
            length = data[start + 1] << 16 | data[start + 2] << 8 | data[start + 3]
            if kind > _PONG:
                self._session.abort(PROTOCOL_VIOLATION, f"expected a message, ping or pong, got a frame of kind {kind}")
                return
            if length > most:
                self._session.abort(PAYLOAD_SIZE_EXCEEDED, f"expected at most {most} bytes, got a frame of {length}")
                return
            next_start = start + 4 + length
            if next_start > end:
                self._needed = 4 + length
                break
            content = data[start + 4 : next_start]
            start = next_start
            left -= 1
            if kind == _MESSAGE:
                self._session.receive(content)
            elif kind == _PING:
                self._write(_head(FrameKind.PONG, length), content)
        if start < end:
            self._rest += data[start:] if start else data

    def _hold_for(self, reason: Hold) -> None:
        self._hold |= reason
        if self._transport is not None:
            self._transport.pause_reading()

    def _release(self, reason: Hold) -> None:
        self._hold &= ~reason
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Read the frames that came before reading was paused, then further ones."""
        if self._hold or self._is_closed or self._transport is None:
            return
        if len(self._rest) >= self._needed:
            data = bytes(self._rest)
            self._rest.clear()
            self._read_frames(data)
        self._resume(self._transport)

    def _resume(self, transport: asyncio.Transport) -> None:
        if not self._hold and not self._is_closed:
            transport.resume_reading()

    def _head_of(self, length: int) -> bytes:
        return length.to_bytes(4)  # of a message: its kind is 0

    def _close_kindly(self) -> None:
        """Say that nothing follows and wait for the client to close: a connection with unread bytes would be reset."""
        assert self._transport is not None
        self._disarm()
        self._rest.clear()
        self._alarm = self._connections.clock.call_later(self._connections.limits.closing_seconds, self.abandon)
        if self._transport.can_write_eof():
            try:
                self._transport.write_eof()
            except OSError:  # the client has closed it already
                self.abandon()
            else:
                self._transport.resume_reading()
        else:
            self._transport.close()

    def _out_of_time(self) -> None:
        self._connections.refused += 1
        self.abandon()

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _wake(self, error: Exception | None) -> None:
        drains, self._drains = self._drains, None
        for waiting in drains or ():
            if waiting.done():
                continue
            if error is None:
                waiting.set_result(None)
            else:
                waiting.set_exception(error)


class RawSocketServer:
    """Listens for connections of RawSocket."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._listener: Listener | None = None
        self._alarm: Alarm | None = None

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        assert self._listener is not None
        return self._listener.port

    async def start(self, host: str, port: int, ssl: tls.SSLContext | None = None) -> None:
        """Listen; port 0 stands for any that is free. Raises ``OSError`` where it is taken."""
        connections = self._connections
        self._listener = Listener(connections.gate, lambda: RawSocketLink(connections), ssl)
        await self._listener.start(host, port)
        self._look_after_all()

    async def stop(self) -> None:
        """Listen no more, and drop the connections that are left."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections.open):
            if isinstance(connection, RawSocketLink):
                connection.abandon()

    def _look_after_all(self) -> None:
        for connection in list(self._connections.open):
            connection.look_after()
        limits = self._connections.limits
        self._alarm = self._connections.clock.call_later(limits.ping_seconds, self._look_after_all)


def _head(kind: FrameKind, length: int) -> bytes:
    return (kind << 24 | length).to_bytes(4)


def _exponent_of(most_bytes: int) -> int:
    """Return the number that stands for the longest message in a handshake: 2^(9 + exponent) bytes."""
    return min(max(most_bytes.bit_length() - 10, 0), 15)
