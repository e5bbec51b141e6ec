"""RawSocket: how many clients there may be, how much they take, and how long is waited for them."""

import asyncio
import socket
import struct

import pytest

from gateway.wamp.echo_router import until
from gateway.wamp.rawsocket_stage import JSON_HANDSHAKE, SMALL, Stage, frame, play
from relaycast_gateway.clock import settle
from relaycast_gateway.wamp.connections import ConnectionLimits


@pytest.mark.matrix("WAMP-67")
def test_connections_beyond_the_limit_are_told_so_and_a_place_becomes_free_again() -> None:
    async def scene(it: Stage) -> None:
        first, second = await it.join(), await it.join()
        third = await it.dial()
        assert await third.reader.read() == b"\x7f\x40\0\0"
        await third.close()
        await first.close()
        await until(lambda: len(it.connections.open) == 1)
        fourth = await it.join()
        fourth.writer.write(frame(b"hello"))
        assert await fourth.frame() == (0, b"hello")
        await fourth.close()
        await second.close()

    play(scene, SMALL)


def test_a_client_that_does_not_shake_hands_in_time_is_dropped() -> None:
    async def scene(it: Stage) -> None:
        client = await it.dial(b"\x7f\xf1")
        await until(lambda: len(it.connections.open) == 1)
        await it.clock.advance(9.9)
        assert len(it.connections.open) == 1
        await it.clock.advance(0.2)
        assert await client.ends()
        await client.close()

    play(scene)


def test_a_silent_client_is_pinged_and_dropped_if_it_stays_silent() -> None:
    async def scene(it: Stage) -> None:
        silent, alive = await it.join(), await it.join()
        await until(lambda: len(it.router.sessions) == 2)
        await it.clock.advance(40)
        for client in (silent, alive):
            assert await client.frame() == (1, b"")
        alive.writer.write(frame(b"", kind=2))
        await until(lambda: sum(link._silent_rounds for link in it.connections.open) == 2)  # type: ignore[attr-defined]
        await it.clock.advance(20)
        assert await silent.ends()
        await until(lambda: len(it.connections.open) == 1)
        alive.writer.write(frame(b"still here"))
        assert await alive.frame() == (0, b"still here")
        for client in (silent, alive):
            await client.close()

    play(scene)


def test_a_client_that_does_not_hang_up_is_dropped_after_a_while() -> None:
    async def scene(it: Stage) -> None:
        client = await it.join()
        client.writer.write(frame(b"bye"))
        assert await client.frame() == (0, b"bye")
        assert len(it.connections.open) == 1
        await it.clock.advance(2.1)
        await until(lambda: not it.connections.open)
        await client.close()

    play(scene)


def test_messages_longer_than_the_client_takes_are_left_out_and_counted() -> None:
    async def scene(it: Stage) -> None:
        client = await it.dial(b"\x7f\x21\0\0")
        await client.reader.readexactly(4)
        it.session.link.send(b"x" * 2049)
        it.session.link.send(b"x" * 2048)
        assert await client.frame() == (0, b"x" * 2048)
        assert it.connections.too_long == 1
        await client.close()

    play(scene)


async def deaf(it: Stage) -> socket.socket:
    """Connect a client that reads nothing after its handshake."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", it.port))
    await loop.sock_sendall(client, JSON_HANDSHAKE)
    assert len(await loop.sock_recv(client, 4)) == 4
    return client


@pytest.mark.matrix("WAMP-68")
def test_a_client_that_takes_nothing_is_dropped_when_too_much_waits_and_nobody_waits_for_it() -> None:
    limits = ConnectionLimits(most_waiting_bytes=1 << 20)

    async def scene(it: Stage) -> None:
        client, good = await deaf(it), await it.join()
        slow, other = it.router.sessions
        most = sent = 0
        while not slow.is_lost:
            slow.link.send(b"x" * 10_000)
            other.link.send(b"%d" % sent)
            assert await good.frame() == (0, b"%d" % sent)
            most = max(most, slow.link.waiting_bytes)
            sent += 1
        assert 1 << 19 < most < (1 << 20) + 10_100
        assert (it.connections.too_slow, it.router.dropped) == (1, 1)
        with pytest.raises(ConnectionResetError):
            await slow.link.drain()
        assert slow.link.waiting_bytes == 0
        assert not other.is_lost
        client.close()
        await good.close()

    play(scene, limits)


@pytest.mark.matrix("WAMP-68")
def test_requests_of_a_client_that_takes_no_answers_are_not_read() -> None:
    async def scene(it: Stage) -> None:
        client = await deaf(it)
        asked = asyncio.create_task(asyncio.get_running_loop().sock_sendall(client, frame(b"x" * 50_000) * 400))
        session = it.session
        await until(lambda: session.link.waiting_bytes > 1 << 17)
        count = -1
        while count != len(session.received):
            count = len(session.received)
            await asyncio.sleep(0.05)
        assert count < 300
        assert session.link.waiting_bytes < 1 << 20
        taken = 0
        while taken < 400 * 50_004:
            taken += len(await asyncio.get_running_loop().sock_recv(client, 1 << 20))
        await asked
        assert len(session.received) == 400
        client.close()

    play(scene)


@pytest.mark.matrix("WAMP-68")
def test_drain_waits_for_the_client_and_fails_when_it_is_gone() -> None:
    async def scene(it: Stage) -> None:
        client = await deaf(it)
        link = it.session.link
        await link.drain()
        link.send(b"x" * (4 << 20))
        drained = asyncio.create_task(link.drain())
        await settle()
        assert not drained.done()
        taken = 0
        while taken < 4 << 20:
            taken += len(await asyncio.get_running_loop().sock_recv(client, 1 << 20))
        await drained
        link.send(b"x" * (4 << 20))
        drained = asyncio.create_task(link.drain())
        await settle()
        client.close()
        with pytest.raises(ConnectionResetError):
            await drained

    play(scene)


def test_a_session_can_pause_its_client() -> None:
    async def scene(it: Stage) -> None:
        client = await it.join()
        session = it.session
        client.writer.write(frame(b"one"))
        assert await client.frame() == (0, b"one")
        session.link.pause_reading()
        client.writer.write(frame(b"two") + frame(b"three"))
        await it.clock.advance(200)  # no reason to think that the client is gone
        assert session.received == [b"one"]
        session.link.resume_reading()
        assert [await client.frame(), await client.frame()] == [(0, b"two"), (0, b"three")]
        await client.close()

    play(scene)


def test_a_client_that_takes_no_answers_and_resets_leaves_nothing() -> None:
    async def scene(it: Stage) -> None:
        client = await it.join()
        transport = client.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        client.writer.write(frame(b"x" * 4_000) * 2_000)
        link = it.session.link
        await until(lambda: bool(link._hold))  # type: ignore[attr-defined]
        drained = asyncio.create_task(link.drain())
        own = client.writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        await until(lambda: it.session.is_lost and not it.connections.open)
        with pytest.raises(ConnectionResetError):
            await drained
        assert it.connections.gate.open == 0

    play(scene)
