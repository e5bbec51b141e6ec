"""The gate of all connections: limits, deadlines, and what happens without file handles."""

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from gateway.conftest import Encryption
from gateway.wamp.echo_router import until
from gateway.wamp.rawsocket_stage import JSON_HANDSHAKE
from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.listener import OTHER_FILES, ConnectionGate, GateLimits, Listener
from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.connections import Connections
from relaycast_gateway.wamp.rawsocket import RawSocketServer
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RouterConfig

FEW = GateLimits(most=8, most_new=5, most_new_of_one=3)


class Echo(asyncio.Protocol):
    """Sends everything back; a client that says ``let me in`` is let in."""

    def __init__(self, gate: ConnectionGate) -> None:
        self._gate = gate

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if data == b"let me in":
            self._gate.admit(self.transport)
        self.transport.write(data)


@dataclass
class Stage:
    clock: VirtualClock
    gate: ConnectionGate
    port: int
    clients: list[socket.socket] = field(default_factory=list)

    async def dial(self, address: str = "127.0.0.1", *, known: bool = False) -> socket.socket:
        """Connect from an address of this machine, and have the client let in where it is ``known``."""
        client = socket.socket()
        client.setblocking(False)
        client.bind((address, 0))
        self.clients.append(client)
        loop, before = asyncio.get_running_loop(), self.gate.open + self.gate.refused
        await loop.sock_connect(client, ("127.0.0.1", self.port))
        await until(lambda: self.gate.open + self.gate.refused != before)
        if known:
            await loop.sock_sendall(client, b"let me in")
            assert await loop.sock_recv(client, 100) == b"let me in"
        return client

    async def serves(self, client: socket.socket) -> bool:
        """Return whether a connection is there; one that was closed has come to its end."""
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(client, b"?")
            return await loop.sock_recv(client, 100) == b"?"
        except ConnectionError:
            return False


@asynccontextmanager
async def stage(limits: GateLimits, tls: ssl.SSLContext | None = None) -> AsyncIterator[Stage]:
    clock = VirtualClock()
    gate = ConnectionGate(limits, clock)
    listener = Listener(gate, lambda: Echo(gate), tls)
    await listener.start("127.0.0.1", 0)
    it = Stage(clock, gate, listener.port)
    try:
        yield it
    finally:
        listener.close()
        for client in it.clients:
            client.close()
        await until(lambda: gate.open == 0)
    assert (gate.new, gate._new_of) == (0, {})


def play(
    scene: Callable[[Stage], Awaitable[None]], limits: GateLimits = FEW, tls: ssl.SSLContext | None = None
) -> None:
    async def run() -> None:
        async with stage(limits, tls) as set_up:
            await asyncio.wait_for(scene(set_up), 60)

    asyncio.run(run())


def test_the_oldest_new_connection_of_an_address_gives_way_and_others_stay() -> None:
    async def scene(it: Stage) -> None:
        known = await it.dial(known=True)
        other = await it.dial("127.0.0.2")
        first, *rest = [await it.dial() for _ in range(4)]
        assert not await it.serves(first)
        assert [await it.serves(client) for client in (known, other, *rest)] == [True] * 5
        assert it.gate.refused == 1

    play(scene)


def test_beyond_the_limit_of_all_addresses_the_oldest_new_connection_gives_way() -> None:
    async def scene(it: Stage) -> None:
        first, *rest = [await it.dial(f"127.0.0.{number}") for number in range(1, 7)]
        assert not await it.serves(first)
        assert [await it.serves(client) for client in rest] == [True] * 5

    play(scene)


def test_known_connections_are_limited_by_the_limit_of_all() -> None:
    async def scene(it: Stage) -> None:
        known = [await it.dial(known=True) for _ in range(8)]
        assert not await it.serves(await it.dial("127.0.0.2"))
        known[0].close()
        await until(lambda: it.gate.open == 7)
        assert await it.serves(await it.dial("127.0.0.2"))
        assert [await it.serves(client) for client in known[1:]] == [True] * 7

    play(scene)


def test_a_connection_that_is_not_let_in_ends_at_its_deadline() -> None:
    async def scene(it: Stage) -> None:
        known, new = await it.dial(known=True), await it.dial()
        await it.clock.advance(9.9)
        assert await it.serves(new)
        await it.clock.advance(0.2)
        assert not await it.serves(new)
        assert await it.serves(known)
        assert (it.gate.open, it.gate.new, it.gate.refused) == (1, 0, 0)

    play(scene)


def test_half_a_handshake_of_tls_ends_at_its_deadline(encryption: Encryption, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(it: Stage) -> None:
        loop = asyncio.get_running_loop()
        silent, half, wrong = [await it.dial() for _ in range(3)]
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        hello = encryption[1].wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with pytest.raises(ssl.SSLWantReadError):
            hello.do_handshake()
        await loop.sock_sendall(half, outgoing.read()[:50])
        await loop.sock_sendall(wrong, b"GET / HTTP/1.1\r\n\r\n")
        await until(lambda: it.gate.open == 2)
        await it.clock.advance(10)
        await until(lambda: it.gate.open == 0)
        for client in (silent, half):
            assert await loop.sock_recv(client, 100) == b""

    play(scene, tls=encryption[0])
    assert caplog.records == []


@pytest.mark.parametrize("sent", [b"", JSON_HANDSHAKE[:2]])
def test_half_a_handshake_of_rawsocket_counts_as_new_and_ends_at_its_deadline(sent: bytes) -> None:
    async def run() -> None:
        clock = VirtualClock()
        with EventLog.open(clock=clock) as log:
            router = Router(RouterConfig.default(), log, clock)
            await router.start()
            gate = ConnectionGate(GateLimits(most_new_of_one=2), clock)
            server = RawSocketServer(Connections(router, None, clock, gate))
            await server.start("127.0.0.1", 0)
            dialled = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(5)]
            for _, writer in dialled:
                writer.write(sent)
            await until(lambda: (gate.open, gate.new, gate.refused) == (2, 2, 3))
            await clock.advance(10)
            await until(lambda: gate.open == 0)
            for reader, writer in dialled:
                assert await reader.read() == b""
                writer.close()
            await server.stop()
            await router.stop()

    asyncio.run(run())


def test_without_file_handles_one_line_is_logged_and_connections_wait(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(it: Stage) -> None:
        loop, limits = asyncio.get_running_loop(), resource.getrlimit(resource.RLIMIT_NOFILE)
        known = await it.dial(known=True)
        waiting = [socket.socket() for _ in range(6)]
        it.clients.extend(waiting)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(client.fileno() for client in waiting) + 1, limits[1]))
        try:
            for client in waiting:
                client.setblocking(False)
                await loop.sock_connect(client, ("127.0.0.1", it.port))
            for _ in range(50):
                await it.clock.advance(1)
                assert await it.serves(known)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert len(caplog.records) == 1
        await it.clock.advance(1)
        await until(lambda: it.gate.open == 7)
        assert await it.serves(waiting[0])

    with caplog.at_level(logging.WARNING):
        play(scene, GateLimits())
    assert caplog.messages == [
        "connections: none can be accepted (too many open files); 0 refused or dropped since the last such line"
    ]


def test_lines_about_connections_are_limited_in_rate(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(it: Stage) -> None:
        for _ in range(3):
            for _ in range(20):
                await it.dial()
            await it.clock.advance(60)

    with caplog.at_level(logging.WARNING):
        play(scene)
    why = "connections: 3 from one address have sent no request yet, the oldest was dropped"
    counts = [1, 17, 17]
    assert caplog.messages == [f"{why}; {number} refused or dropped since the last such line" for number in counts]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system does not tell that a client stalls")
def test_a_client_that_takes_nothing_of_what_it_is_sent_is_dropped() -> None:
    async def scene(it: Stage) -> None:
        stalled, known = await it.dial(known=True), await it.dial(known=True)
        await asyncio.get_running_loop().sock_sendall(stalled, bytes(16 << 20))
        await until(lambda: it.gate.open == 1)
        assert await it.serves(known)

    play(scene, GateLimits(stalled_seconds=0.5))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (20_000, GateLimits()),
        (1_024, GateLimits(most=768, most_new=384, most_new_of_one=96)),
        (64, GateLimits(most=32, most_new=16, most_new_of_one=4)),
    ],
)
def test_the_limits_leave_file_handles_for_other_files(files: int, expected: GateLimits) -> None:
    assert GateLimits().within(files) == expected
    assert files - expected.most >= min(OTHER_FILES, files // 2)
