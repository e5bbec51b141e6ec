"""A RawSocket server on loopback with a router that sends everything back, and clients that write bytes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from gateway.wamp.echo_router import EchoRouter, EchoSession, until
from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.wamp.connections import ConnectionLimits, Connections
from relaycast_gateway.wamp.rawsocket import RawSocketServer

JSON_HANDSHAKE = b"\x7f\xf1\0\0"
SMALL = ConnectionLimits(most_message_bytes=1 << 12, most_sessions=2)


def frame(content: bytes, kind: int = 0) -> bytes:
    return bytes((kind,)) + len(content).to_bytes(3) + content


@dataclass
class Stage:
    router: EchoRouter
    connections: Connections
    clock: VirtualClock
    port: int

    async def dial(self, handshake: bytes = JSON_HANDSHAKE) -> "Dialled":
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(handshake)
        return Dialled(reader, writer)

    async def join(self) -> "Dialled":
        client = await self.dial()
        await client.reader.readexactly(4)
        return client

    @property
    def session(self) -> EchoSession:
        return self.router.sessions[-1]


@dataclass
class Dialled:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def frame(self) -> tuple[int, bytes]:
        head = await self.reader.readexactly(4)
        return head[0], await self.reader.readexactly(int.from_bytes(head[1:]))

    async def ends(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@asynccontextmanager
async def stage(limits: ConnectionLimits | None = None) -> AsyncIterator[Stage]:
    router, clock = EchoRouter(), VirtualClock()
    connections = Connections(router, limits, clock)
    server = RawSocketServer(connections)
    await server.start("127.0.0.1", 0)
    try:
        yield Stage(router, connections, clock, server.port)
    finally:
        await server.stop()
        await until(lambda: not connections.open)


def play(scene: Callable[[Stage], Awaitable[None]], limits: ConnectionLimits | None = None) -> None:
    async def run() -> None:
        async with stage(limits) as set_up:
            await asyncio.wait_for(scene(set_up), 20)

    asyncio.run(run())
