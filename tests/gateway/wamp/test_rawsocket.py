"""RawSocket: handshakes, frames, pings, and clients that break the rules or take too little."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wamp.echo_router import EchoRouter, EchoSession
from peers import missing
from relaycast_gateway.clock import VirtualClock, settle
from relaycast_gateway.wamp.client_wire import RawSocketWire
from relaycast_gateway.wamp.connections import ConnectionLimits, Connections
from relaycast_gateway.wamp.errors import PAYLOAD_SIZE_EXCEEDED, PROTOCOL_VIOLATION
from relaycast_gateway.wamp.rawsocket import FRAMES_PER_TURN, RawSocketLink, RawSocketServer
from searches import examples

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


async def until(is_so: Callable[[], bool]) -> None:
    """Return when something that sockets bring about has happened."""
    for _ in range(20_000):
        if is_so():
            return
        await asyncio.sleep(0.0005)
    raise AssertionError("it did not happen")


@pytest.mark.matrix("WAMP-67")
@pytest.mark.parametrize(("number", "name"), [(1, "json"), (2, "msgpack"), (3, "cbor")])
@pytest.mark.parametrize("exponent", [2, 7, 15])
def test_a_handshake_chooses_the_serializer_and_the_longest_messages(number: int, name: str, exponent: int) -> None:
    async def scene(it: Stage) -> None:
        client = await it.dial(bytes((0x7F, exponent << 4 | number, 0, 0)))
        assert await client.reader.readexactly(4) == bytes((0x7F, 3 << 4 | number, 0, 0))
        assert it.session.link.serializer == name
        assert it.session.link.most_message_bytes == min(2 ** (9 + exponent), 2**24 - 1)
        assert it.session.link.transport == {"type": "rawsocket", "serializer": name}
        await client.close()

    play(scene, SMALL)


@pytest.mark.matrix("WAMP-67")
@pytest.mark.parametrize(
    ("handshake", "code"),
    [
        (b"\x7f\xf0\0\0", 1),  # a number that stands for no serializer
        (b"\x7f\xf4\0\0", 1),  # UBJSON
        (b"\x7f\xff\0\0", 1),
        (b"\x7f\x01\0\0", 2),  # messages of 512 bytes: WELCOME is longer
        (b"\x7f\xf1\0\x01", 3),
        (b"\x7f\xf1\x80\0", 3),
    ],
)
def test_a_handshake_is_refused_with_its_number(handshake: bytes, code: int) -> None:
    async def scene(it: Stage) -> None:
        client = await it.dial(handshake + frame(b"too early"))
        assert await client.reader.read() == bytes((0x7F, code << 4, 0, 0))
        await client.close()
        await until(lambda: not it.connections.open)
        assert (it.router.sessions, it.connections.refused) == ([], 1)

    play(scene)


def test_what_is_no_rawsocket_is_dropped_without_a_word() -> None:
    async def scene(it: Stage) -> None:
        client = await it.dial(b"GET / HTTP/1.1\r\n\r\n")
        assert await client.ends()
        assert it.connections.refused == 1
        await client.close()

    play(scene)


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


def test_frames_come_whole_in_parts_and_many_at_once() -> None:
    messages = [b"x" * length for length in (0, 1, 3, 200, 4096)] + [b"%d" % n for n in range(3 * FRAMES_PER_TURN)]
    stream = b"".join(map(frame, messages))

    async def scene(it: Stage) -> None:
        client = await it.dial(JSON_HANDSHAKE[:3])
        await asyncio.sleep(0)
        client.writer.write(JSON_HANDSHAKE[3:] + stream[:2])
        await client.reader.readexactly(4)
        for start, end in ((2, 3), (3, 5), (5, 300), (300, 301)):
            client.writer.write(stream[start:end])
            await asyncio.sleep(0.001)
        client.writer.write(stream[301:])
        assert [await client.frame() for _ in messages] == [(0, message) for message in messages]
        assert it.session.received == messages
        await client.close()
        await until(lambda: it.session.is_lost)

    play(scene, SMALL)


def test_answers_of_one_turn_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(it: Stage) -> None:
        client = await it.join()
        await until(lambda: bool(it.router.sessions))
        link = it.session.link
        written: list[bytes] = []
        transport = link._transport  # type: ignore[attr-defined]
        monkeypatch.setattr(transport, "write", written.append)
        for n in range(100):
            link.send(b"%d" % n)
        assert written == []
        assert link.waiting_bytes == 100 * 4 + 190
        await settle()
        assert written == [b"".join(frame(b"%d" % n) for n in range(100))]
        await client.close()

    play(scene)


def test_a_ping_is_answered_with_its_content() -> None:
    async def scene(it: Stage) -> None:
        client = await it.join()
        client.writer.write(frame(b"are you there", kind=1) + frame(b"", kind=1) + frame(b"unasked", kind=2))
        assert await client.frame() == (2, b"are you there")
        assert await client.frame() == (2, b"")
        assert it.session.received == []
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


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x03\0\0\0", PROTOCOL_VIOLATION),
        (b"\x08\0\0\x01x", PROTOCOL_VIOLATION),
        (b"\xff\xff\xff\xff", PROTOCOL_VIOLATION),
        (b"\0\0\x10\x01" + b"x" * 0x1001, PAYLOAD_SIZE_EXCEEDED),  # one byte more than the handshake said
        (b"\x01\xff\xff\xff", PAYLOAD_SIZE_EXCEEDED),
    ],
)
def test_a_frame_against_the_rules_ends_its_session_and_no_other(data: bytes, reason: str) -> None:
    async def scene(it: Stage) -> None:
        other = await it.join()
        bad = await it.join()
        bad.writer.write(frame(b"before") + data + frame(b"behind"))
        assert await bad.frame() == (0, b"before")
        assert await bad.frame() == (0, f"abort {reason}".encode())
        assert await bad.ends()
        await bad.close()
        await until(lambda: it.session.is_lost)
        assert it.session.received == [b"before"]
        other.writer.write(frame(b"as ever"))
        assert await other.frame() == (0, b"as ever")
        await other.close()

    play(scene, SMALL)


def test_a_session_that_closes_sends_what_it_has_said_and_hears_no_more() -> None:
    async def scene(it: Stage) -> None:
        client = await it.join()
        client.writer.write(frame(b"one") + frame(b"bye") + frame(b"two"))
        assert [await client.frame(), await client.frame()] == [(0, b"one"), (0, b"bye")]
        assert await client.ends()
        await client.close()
        await until(lambda: it.session.is_lost)
        assert it.session.received == [b"one", b"bye"]
        it.session.link.send(b"nothing happens")

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


class MemoryTransport(asyncio.Transport):
    """Keeps what is written; its peer takes everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None: ...

    def abort(self) -> None:
        self.is_closed = True


frames = st.lists(
    st.builds(frame, st.binary(max_size=20), st.sampled_from([0, 0, 0, 1, 2])) | st.binary(max_size=8), max_size=12
)


@given(stream=st.builds(b"".join, frames), cuts=st.lists(st.integers(0, 300), max_size=8))
@settings(max_examples=examples(80), deadline=None)
def test_frames_do_not_depend_on_how_their_bytes_come(stream: bytes, cuts: list[int]) -> None:
    """Arbitrary bytes end the session or are messages: the same ones, however they are cut."""

    async def heard(pieces: list[bytes]) -> tuple[list[bytes], bytes, tuple[str, str] | None]:
        router = EchoRouter()
        link = RawSocketLink(Connections(router, SMALL, VirtualClock()))
        transport = MemoryTransport()
        link.connection_made(transport)
        for piece in pieces:
            link.data_received(piece)
            await asyncio.sleep(0)
        await settle()
        link.connection_lost(None)
        (session,) = router.sessions
        assert session.is_lost
        return session.received, transport.written, session.aborted

    async def scene() -> None:
        whole = JSON_HANDSHAKE + stream
        ends = sorted({min(cut, len(whole)) for cut in cuts} | {len(whole)})
        starts = [0, *ends[:-1]]
        pieces = [whole[start:end] for start, end in zip(starts, ends, strict=True)]
        assert await heard(pieces) == await heard([whole])

    asyncio.run(scene())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = shutil.which("openssl")
    if program is None:
        missing("openssl is not installed; it makes the certificate")
    folder: Path = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


def test_a_connection_can_be_encrypted(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    trusting = ssl.create_default_context(cafile=str(certificate / "cert.pem"))

    async def scene() -> None:
        connections = Connections(EchoRouter())
        server = RawSocketServer(connections)
        await server.start("127.0.0.1", 0, context)
        wire = await RawSocketWire.opened(f"rss://127.0.0.1:{server.port}", "cbor", trusting)
        await wire.send(b"x" * 300_000)
        assert await wire.receive() == b"x" * 300_000
        await wire.send(b"bye")
        assert await wire.receive() == b"bye"
        assert await wire.receive() is None
        await wire.close()
        await until(lambda: not connections.open)
        await server.stop()

    asyncio.run(scene())
