"""A client's connection to a router: WebSocket by aiohttp, RawSocket by asyncio's streams."""

import asyncio
import ssl as tls
from contextlib import suppress
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp

from relaycast_gateway.wamp.errors import WampProtocolError
from relaycast_gateway.wamp.rawsocket import LONGEST_FRAME, MAGIC, SERIALIZERS, FrameKind, RawSocketRefusal
from relaycast_gateway.wamp.serializers import serializer_named

PING_SECONDS = 20.0
LONGEST_EXPONENT = 15

_NUMBERS = {name: number for number, name in SERIALIZERS.items()}


class ClientWire(Protocol):
    """Carries whole messages both ways."""

    async def send(self, data: bytes) -> None:
        """Send one message; raises ``ConnectionError`` when the router is gone."""
        ...

    async def receive(self) -> bytes | None:
        """Return the next message, ``None`` when the router is gone."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


async def open_wire(url: str, serializer: str, ssl: tls.SSLContext | None) -> ClientWire:
    """Connect to ``ws``, ``wss``, ``rs`` (``tcp``) or ``rss`` (``tcps``); raises ``ConnectionError``."""
    scheme = urlsplit(url).scheme
    try:
        if scheme in {"ws", "wss"}:
            return await WebSocketWire.opened(url, serializer, ssl)
        if scheme in {"rs", "tcp", "rss", "tcps"}:
            return await RawSocketWire.opened(url, serializer, ssl)
    except (OSError, aiohttp.ClientError) as error:
        raise ConnectionError(f"{url}: {error}") from error
    raise ValueError(f"url: expected ws://, wss://, rs:// or rss://, got {url!r}")


class WebSocketWire:
    """WebSocket with the subprotocol of one serializer."""

    def __init__(self, http: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse, is_binary: bool) -> None:
        self._http = http
        self._socket = socket
        self._is_binary = is_binary

    @classmethod
    async def opened(cls, url: str, serializer: str, ssl: tls.SSLContext | None) -> "WebSocketWire":
        """Connect and choose the subprotocol."""
        protocol = f"wamp.2.{serializer}"
        http = aiohttp.ClientSession()
        try:
            socket = await http.ws_connect(
                url, protocols=[protocol], max_msg_size=LONGEST_FRAME, heartbeat=PING_SECONDS, ssl=ssl or True
            )
            if socket.protocol != protocol:
                await socket.close()
                raise ConnectionError(f"expected the subprotocol {protocol}, got {socket.protocol}")
        except BaseException:
            await http.close()
            raise
        return cls(http, socket, serializer_named(serializer).is_binary)

    async def send(self, data: bytes) -> None:
        """Send one message."""
        await self._socket.send_frame(data, aiohttp.WSMsgType.BINARY if self._is_binary else aiohttp.WSMsgType.TEXT)

    async def receive(self) -> bytes | None:
        """Return the next message."""
        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            data: bytes = message.data
            return data
        return message.data.encode() if message.type is aiohttp.WSMsgType.TEXT else None

    async def close(self) -> None:
        """End the connection."""
        await self._socket.close()
        await self._http.close()


class RawSocketWire:
    """RawSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most_message_bytes: int) -> None:
        self._reader = reader
        self._writer = writer
        self._most_message_bytes = most_message_bytes

    @classmethod
    async def opened(cls, url: str, serializer: str, ssl: tls.SSLContext | None) -> "RawSocketWire":
        """Connect and shake hands."""
        parts = urlsplit(url)
        if parts.hostname is None or parts.port is None:
            raise ValueError(f"url: expected a host and a port, got {url!r}")
        secure = ssl or (True if parts.scheme in {"rss", "tcps"} else None)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=secure)
        number = _NUMBERS[serializer]
        writer.write(bytes((MAGIC, LONGEST_EXPONENT << 4 | number, 0, 0)))
        try:
            answer = await reader.readexactly(4)
        except asyncio.IncompleteReadError:
            answer = b""
        except BaseException:
            writer.close()
            raise
        if len(answer) < 4 or answer[0] != MAGIC or answer[1] & 0x0F != number:
            writer.close()
            raise ConnectionError(_refusal_in(answer))
        return cls(reader, writer, min(1 << (9 + (answer[1] >> 4)), LONGEST_FRAME))

    async def send(self, data: bytes) -> None:
        """Send one message."""
        if len(data) > self._most_message_bytes:
            raise WampProtocolError(f"the router takes {self._most_message_bytes} bytes, the message has {len(data)}")
        self._writer.write(len(data).to_bytes(4) + data)
        await self._writer.drain()

    async def receive(self) -> bytes | None:
        """Return the next message; answers pings meanwhile."""
        try:
            while True:
                head = await self._reader.readexactly(4)
                content = await self._reader.readexactly(int.from_bytes(head[1:]))
                if head[0] == FrameKind.MESSAGE:
                    return content
                if head[0] == FrameKind.PING:
                    self._writer.write(bytes((FrameKind.PONG,)) + head[1:] + content)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def close(self) -> None:
        """End the connection."""
        self._writer.close()
        with suppress(OSError):  # of TLS, too
            await self._writer.wait_closed()


def _refusal_in(answer: bytes) -> str:
    if len(answer) == 4 and answer[0] == MAGIC and not answer[1] & 0x0F:
        code = answer[1] >> 4
        known = [refusal.name.lower().replace("_", " ") for refusal in RawSocketRefusal if refusal == code]
        return f"the handshake was refused: {known[0] if known else f'error {code}'}"
    if answer == b"HTTP":
        return "an HTTP answer instead of a RawSocket handshake: use ws:// or wss:// for this port"
    return f"{answer.hex() or 'the end of the connection'} instead of a RawSocket handshake"
