"""WebSocket: the choice of a subprotocol, kinds of messages, and clients that break the rules or take too little."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import WSMsgType, web
from yarl import URL

from app.raw_socket import HANDSHAKE, RawSocket, frame, request
from gateway.wamp.echo_router import EchoRouter, EchoSession, until
from relaycast_gateway.clock import VirtualClock, settle
from relaycast_gateway.wamp.connections import ConnectionLimits, Connections
from relaycast_gateway.wamp.errors import PROTOCOL_VIOLATION
from relaycast_gateway.wamp.websocket import serve_websocket

SMALL = ConnectionLimits(most_message_bytes=1 << 12, most_sessions=2)


@dataclass
class WebStage:
    router: EchoRouter
    connections: Connections
    http: aiohttp.ClientSession
    url: str

    async def dial(self, *protocols: str) -> aiohttp.ClientWebSocketResponse:
        patience = aiohttp.ClientWSTimeout(ws_close=0.1)
        return await self.http.ws_connect(self.url, protocols=protocols or ("wamp.2.json",), timeout=patience)

    @property
    def session(self) -> EchoSession:
        return self.router.sessions[-1]


@asynccontextmanager
async def web_stage(limits: ConnectionLimits | None) -> AsyncIterator[WebStage]:
    router = EchoRouter()
    connections = Connections(router, limits, VirtualClock())

    async def serve(request: web.Request) -> web.StreamResponse:
        return await serve_websocket(request, connections)

    application = web.Application()
    application.router.add_get("/wamp", serve)
    runner = web.AppRunner(application, shutdown_timeout=1)  # aiohttp's own test server cancels handlers, ours does not
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession() as http:
        yield WebStage(router, connections, http, f"http://127.0.0.1:{runner.addresses[0][1]}/wamp")
    connections.abandon_all()
    await runner.cleanup()
    await until(lambda: not connections.open)


def play(scene: Callable[[WebStage], Awaitable[None]], limits: ConnectionLimits | None = None) -> None:
    async def run() -> None:
        async with web_stage(limits) as set_up:
            await asyncio.wait_for(scene(set_up), 20)

    asyncio.run(run())


@pytest.mark.matrix("WAMP-67")
@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["wamp.2.json"], "wamp.2.json"),
        (["wamp.2.msgpack"], "wamp.2.msgpack"),
        (["wamp.2.cbor"], "wamp.2.cbor"),
        (["wamp.2.flatbuffers", "wamp.2.cbor", "wamp.2.json"], "wamp.2.cbor"),  # the client's order of preference
        (["wamp.2.msgpack.batched", "wamp.2.json", "wamp.2.msgpack"], "wamp.2.json"),
    ],
)
def test_the_first_subprotocol_that_is_known_is_chosen(offered: list[str], chosen: str) -> None:
    async def scene(it: WebStage) -> None:
        client = await it.dial(*offered)
        assert client.protocol == chosen
        serializer = chosen.rpartition(".")[2]
        assert it.session.link.serializer == serializer
        assert it.session.link.transport == {"type": "websocket", "protocol": chosen, "serializer": serializer}
        data = b"\x81\x10" if serializer != "json" else b"[16]"
        await (client.send_bytes(data) if serializer != "json" else client.send_str(data.decode()))
        answer = await client.receive()
        kind = WSMsgType.TEXT if serializer == "json" else WSMsgType.BINARY
        assert (answer.type, answer.data) == (kind, data.decode() if serializer == "json" else data)
        await client.close()

    play(scene)


@pytest.mark.matrix("WAMP-67")
@pytest.mark.parametrize("offered", [[], ["wamp.2.flatbuffers"], ["wamp.2.json.batched", "mqtt"]])
def test_without_a_subprotocol_in_common_there_is_no_websocket(offered: list[str]) -> None:
    async def scene(it: WebStage) -> None:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await it.http.ws_connect(it.url, protocols=offered)
        assert refused.value.status == 400
        headers = HANDSHAKE | {"Sec-WebSocket-Protocol": ", ".join(offered)}
        async with it.http.get(it.url, headers=headers) as answer:
            assert answer.status == 400
            assert answer.reason == "expected one of the subprotocols wamp.2.json, wamp.2.msgpack, wamp.2.cbor"
        assert it.router.sessions == []

    play(scene)


def test_a_request_that_is_no_websocket_is_told_what_to_do() -> None:
    async def scene(it: WebStage) -> None:
        async with it.http.get(it.url) as answer:
            assert answer.status == 426
            assert "expected a WebSocket with one of the subprotocols wamp.2.json" in (answer.reason or "")

    play(scene)


@pytest.mark.matrix("WAMP-67")
def test_sessions_beyond_the_limit_are_refused_and_a_place_becomes_free_again() -> None:
    async def scene(it: WebStage) -> None:
        first, second = await it.dial(), await it.dial()
        headers = HANDSHAKE | {"Sec-WebSocket-Protocol": "wamp.2.json"}
        async with it.http.get(it.url, headers=headers) as answer:
            assert (answer.status, answer.reason) == (503, "too many sessions: the limit is 2")
        await first.close()
        await until(lambda: not it.connections.is_full)
        third = await it.dial()
        await third.send_str("hello")
        assert await third.receive_str() == "hello"
        await third.close()
        await second.close()

    play(scene, SMALL)


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize(("protocol", "kind"), [("wamp.2.json", "binary"), ("wamp.2.cbor", "text")])
def test_a_message_of_the_wrong_kind_ends_its_session_and_no_other(protocol: str, kind: str) -> None:
    async def scene(it: WebStage) -> None:
        other = await it.dial()
        bad = await it.dial(protocol)
        await (bad.send_bytes(b"[]") if kind == "binary" else bad.send_str("[]"))
        message = await bad.receive()
        assert message.data in {f"abort {PROTOCOL_VIOLATION}", f"abort {PROTOCOL_VIOLATION}".encode()}
        assert (await bad.receive()).type is WSMsgType.CLOSE
        assert bad.close_code == 1003
        await until(lambda: it.session.is_lost)
        assert it.session.received == []
        await other.send_str("as ever")
        assert await other.receive_str() == "as ever"
        await other.close()

    play(scene)


@pytest.mark.matrix("WAMP-66")
def test_a_message_beyond_the_bound_closes_the_connection_with_1009() -> None:
    async def scene(it: WebStage) -> None:
        client = await it.dial()
        await client.send_str("x" * 4096)
        assert await client.receive_str() == "x" * 4096
        await client.send_str("x" * 4097)
        assert (await client.receive()).type is WSMsgType.CLOSE
        assert client.close_code == 1009
        await until(lambda: it.session.is_lost)

    play(scene, SMALL)


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize(
    "data",
    [
        b"\xf1\x84\0\0\0\0[16]",  # reserved bits
        b"\x83\x80\0\0\0\0",  # an opcode without a meaning
        b"\x80\x84\0\0\0\0[16]",  # the rest of a message that has not begun
        b"\x09\x80\0\0\0\0",  # a ping in parts
        b"\x81\x82\0\0\0\0\xff\xff",  # text that is no UTF-8
        b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",
    ],
)
def test_frames_against_the_rules_close_the_connection(data: bytes) -> None:
    async def scene(it: WebStage) -> None:
        other = await it.dial()
        bad = await it.dial()
        connection = bad._response.connection
        assert connection is not None
        assert connection.transport is not None
        connection.transport.write(data)
        assert (await bad.receive()).type in {WSMsgType.CLOSE, WSMsgType.CLOSED}
        assert bad.close_code in {1002, 1006, 1007, 1009}
        await until(lambda: it.session.is_lost)
        assert it.session.received == []
        await other.send_str("as ever")
        assert await other.receive_str() == "as ever"
        await other.close()

    play(scene)


def test_messages_of_every_length_are_framed() -> None:
    lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 300_000]

    async def scene(it: WebStage) -> None:
        client = await it.dial("wamp.2.msgpack")
        for length in lengths:
            await client.send_bytes(b"x" * length)
        assert [len(await client.receive_bytes()) for _ in lengths] == lengths
        await client.close()
        await until(lambda: it.session.is_lost)

    play(scene)


def test_answers_of_one_turn_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(it: WebStage) -> None:
        client = await it.dial()
        link = it.session.link
        written: list[bytes] = []
        transport = link._transport  # type: ignore[attr-defined]
        with monkeypatch.context() as patch:
            patch.setattr(transport, "write", written.append)
            for _ in range(100):
                link.send(b"[]")
            assert written == []
            await settle()
            assert written == [b"\x81\x02[]" * 100]
        transport.write(written[0])
        for _ in range(100):
            assert await client.receive_str() == "[]"
        await client.close()

    play(scene)


def test_a_session_that_closes_sends_what_it_has_said() -> None:
    async def scene(it: WebStage) -> None:
        client = await it.dial()
        for text in ("one", "bye", "two"):
            await client.send_str(text)
        assert [await client.receive_str(), await client.receive_str()] == ["one", "bye"]
        assert (await client.receive()).type is WSMsgType.CLOSE
        assert client.close_code == 1000
        await until(lambda: it.session.is_lost)
        it.session.link.send(b"nothing happens")

    play(scene)


@pytest.mark.matrix("WAMP-68")
def test_a_client_that_takes_nothing_is_dropped_when_too_much_waits_and_nobody_waits_for_it() -> None:
    async def scene(it: WebStage) -> None:
        deaf, good = await it.dial("wamp.2.cbor"), await it.dial("wamp.2.cbor")
        connection = deaf._response.connection
        assert connection is not None
        assert connection.transport is not None
        connection.transport.pause_reading()
        slow, other = it.router.sessions
        most = sent = 0
        while not slow.is_lost:
            slow.link.send(b"x" * 50_000)
            other.link.send(b"%d" % sent)
            assert await good.receive_bytes() == b"%d" % sent
            most = max(most, slow.link.waiting_bytes)
            sent += 1
        assert 1 << 19 < most < (1 << 20) + 51_000
        assert (it.connections.too_slow, it.router.dropped) == (1, 1)
        assert not other.is_lost
        await deaf.close()
        await good.close()

    play(scene, ConnectionLimits(most_waiting_bytes=1 << 20, closing_seconds=0.2))


@pytest.mark.matrix("WAMP-68")
def test_drain_waits_for_the_client() -> None:
    async def scene(it: WebStage) -> None:
        client = await it.dial("wamp.2.cbor")
        connection = client._response.connection
        assert connection is not None
        assert connection.transport is not None
        connection.transport.pause_reading()
        link = it.session.link
        await link.drain()
        for _ in range(10):  # more than the system's own buffers hold
            link.send(b"x" * 3_000_000)
        drained = asyncio.create_task(link.drain())
        await settle()
        assert not drained.done()
        connection.transport.resume_reading()
        for _ in range(10):
            assert len(await client.receive_bytes()) == 3_000_000
        await drained
        await client.close()

    play(scene, ConnectionLimits(most_waiting_bytes=32 << 20))


def test_a_session_can_pause_its_client() -> None:
    async def scene(it: WebStage) -> None:
        client = await it.dial()
        session = it.session
        await client.send_str("one")
        assert await client.receive_str() == "one"
        session.link.pause_reading()
        for text in ("two", "three", "four"):
            await client.send_str(text)
        assert await client.receive_str() == "two"  # it was being waited for
        await settle()
        assert session.received == [b"one", b"two"]
        session.link.resume_reading()
        assert [await client.receive_str(), await client.receive_str()] == ["three", "four"]
        session.link.pause_reading()
        await client.send_str("five")
        await client.close()
        await until(lambda: session.received[-1] == b"five")
        session.link.abandon()
        await until(lambda: session.is_lost)

    play(scene)


@pytest.mark.parametrize("is_held", [False, True])
def test_a_client_that_takes_no_answers_and_resets_leaves_nothing(is_held: bool) -> None:
    """Whether the router waits for the client to take answers, or has paused it."""

    async def scene(it: WebStage) -> None:
        port = URL(it.url).port
        assert port is not None
        raw, status = await RawSocket.opened(port, request("/wamp", {"Sec-WebSocket-Protocol": "wamp.2.json"}))
        assert status == 101
        raw.stop_reading()
        if is_held:
            it.session.link.pause_reading()
        raw.writer.write(frame(1, b"x" * 4_000) * (10 if is_held else 2_000))
        await until(lambda: bool(it.session.received))
        for _ in range(200):  # until the server takes no more
            await settle()
            await asyncio.sleep(0.001)
        raw.reset()
        await until(it.session.link._transport.is_closing)  # type: ignore[attr-defined]
        await it.connections.clock.advance(1)  # type: ignore[attr-defined]
        await until(lambda: it.session.is_lost and not it.connections.open)

    play(scene)
