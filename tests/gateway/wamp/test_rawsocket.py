"""RawSocket: handshakes, frames, pings, encryption, and clients that break the rules."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conftest import Encryption
from gateway.wamp.echo_router import EchoRouter, until
from gateway.wamp.rawsocket_stage import JSON_HANDSHAKE, SMALL, Stage, frame, play
from relaycast_gateway.clock import VirtualClock, settle
from relaycast_gateway.wamp.client.wire import RawSocketWire
from relaycast_gateway.wamp.connections import Connections
from relaycast_gateway.wamp.errors import PAYLOAD_SIZE_EXCEEDED, PROTOCOL_VIOLATION
from relaycast_gateway.wamp.rawsocket import FRAMES_PER_TURN, RawSocketLink, RawSocketServer
from searches import examples


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


def test_a_connection_can_be_encrypted(encryption: Encryption) -> None:
    context, trusting = encryption

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
