"""WebSockets by hand: the bytes of a handshake and of frames, right or wrong, and what comes back."""

import asyncio
import base64
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass

KEY = base64.b64encode(bytes(16)).decode()
HANDSHAKE = {
    "Host": "localhost",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
}


def request(
    path: str = "/", headers: Mapping[str, str | None] | None = None, *, method: str = "GET", version: str = "1.1"
) -> bytes:
    """Return a handshake with ``headers`` in place of its own or beside them; ``None`` leaves one out."""
    given = {**HANDSHAKE, **(headers or {})}
    lines = [f"{name}: {value}" for name, value in given.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/{version}", *lines, "", ""]).encode("latin-1")


def frame(
    opcode: int, content: bytes = b"", *, fin: bool = True, reserved: int = 0, masked: bool = True, length: int = 0
) -> bytes:
    """Return a frame of a client; ``length`` is the number of bytes, 2 or 8, that the length is written in."""
    first, mask = fin << 7 | reserved << 4 | opcode, masked << 7
    if length == 0:
        length = 1 if len(content) < 126 else 2 if len(content) < 1 << 16 else 8
    sizes = {1: bytes([mask | len(content) & 127]), 2: struct.pack("!BH", mask | 126, len(content) & 0xFFFF)}
    size = sizes.get(length) or struct.pack("!BQ", mask | 127, len(content))
    if not masked:
        return bytes([first]) + size + content
    key = b"\x11\x22\x33\x44"
    return bytes([first]) + size + key + bytes(byte ^ key[index % 4] for index, byte in enumerate(content))


@dataclass
class RawSocket:
    """A connection whose bytes a test writes itself."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def opened(cls, port: int, handshake: bytes) -> tuple["RawSocket", int]:
        """Connect and send a handshake; return the connection and the status of its answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(handshake)
        head = await reader.readuntil(b"\r\n\r\n")
        return cls(reader, writer), int(head.split()[1])

    async def next(self) -> tuple[int, bytes]:
        """Return opcode and content of the server's next frame; raises ``IncompleteReadError`` at the end."""
        first, size = await self.reader.readexactly(2)
        if size == 126:
            size = int.from_bytes(await self.reader.readexactly(2))
        elif size == 127:
            size = int.from_bytes(await self.reader.readexactly(8))
        return first & 15, await self.reader.readexactly(size)

    def stop_reading(self) -> None:
        """Take nothing more; what the system's own buffers hold does not count."""
        transport = self.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()

    def reset(self) -> None:
        """End the connection by a reset, with what came unread."""
        own = self.writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
