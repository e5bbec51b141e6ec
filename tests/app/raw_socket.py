"""WebSockets by hand: the bytes of a handshake and of frames, right or wrong, and what comes back."""

import asyncio
import base64
import socket
import struct
from collections.abc import Mapping, Sequence
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
    path: str = "/",
    headers: Mapping[str, str | Sequence[str] | None] | None = None,
    *,
    method: str = "GET",
    version: str = "1.1",
) -> bytes:
    """Return a handshake with ``headers`` in place of its own or beside them.

    ``None`` leaves a header out; of a sequence each value gets a line.
    """
    lines = [f"{method} {path} HTTP/{version}"]
    for name, value in {**HANDSHAKE, **(headers or {})}.items():
        values = [] if value is None else [value] if isinstance(value, str) else value
        lines += [f"{name}: {each}" for each in values]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def frame(
    opcode: int,
    content: bytes = b"",
    *,
    fin: bool = True,
    reserved: int = 0,
    key: bytes | None = b"\x11\x22\x33\x44",
    size: int = 0,
    claimed: int | None = None,
) -> bytes:
    """Return a frame of a client, without a mask where ``key`` is ``None``.

    ``size`` is the number of bytes, 1, 2 or 8, that the length is written in: by default as few as possible.
    ``claimed`` is a length in place of the content's own.
    """
    length = len(content) if claimed is None else claimed
    if size == 0:
        size = 1 if length < 126 else 2 if length < 1 << 16 else 8
    flag = length if size == 1 else 126 if size == 2 else 127
    head = bytes([fin << 7 | reserved << 4 | opcode, (key is not None) << 7 | flag])
    head += b"" if size == 1 else length.to_bytes(size)
    if key is None:
        return head + content
    return head + key + bytes(byte ^ key[index % 4] for index, byte in enumerate(content))


@dataclass
class RawSocket:
    """A connection whose bytes a test writes itself."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    headers: Mapping[str, str]
    """Of the server's answer."""

    @classmethod
    async def opened(cls, port: int, handshake: bytes) -> tuple["RawSocket", int]:
        """Connect and send a handshake; return the connection and the status of its answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(handshake)
        line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        headers = dict(each.split(": ", 1) for each in lines if each)
        return cls(reader, writer, headers), int(line.split()[1])

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
