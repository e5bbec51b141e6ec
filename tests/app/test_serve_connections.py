"""Clients that stop in the middle of something: whichever side of a connection ends, the other ends too."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from app.raw_socket import RawSocket, frame, request
from app.serve_client import until
from app.test_serve_http import ASK, TOKEN, chain_of, nothing_fails_inside, started, visit
from gateway.cloudevents.served_gateway import Api
from gateway.cloudevents.served_gateway import visit as visit_gateway
from relaycast.serve import application
from relaycast.serve.access import Access
from relaycast.serve.server import KEEP_ALIVE_SECONDS, Server
from relaycast_gateway import request_body
from relaycast_gateway.listener import OTHER_FILES, ConnectionGate, GateLimits
from relaycast_node.rpc.json_rpc import MOST_REQUEST_BYTES
from relaycast_node.rpc.session import MOST_SUBSCRIPTIONS
from small_chain import SmallChain, SmallLive

__all__ = ["nothing_fails_inside"]


def asking(method: str, *params: object) -> bytes:
    return frame(1, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())


def slots(server: Server) -> int:
    return len(server.application.sockets)


@pytest.mark.parametrize("answers", [1, 3_000])
def test_a_client_that_asks_without_reading_and_resets_frees_its_slot(answers: int) -> None:
    async def work(server: Server, _client: aiohttp.ClientSession) -> None:
        chain_of(server).add({b"key": bytes(200_000)})
        raw, status = await RawSocket.opened(server.port, request())
        assert status == 101
        raw.stop_reading()
        raw.writer.write(asking("state_getStorage", "0x" + b"key".hex()) * answers)
        await until(lambda: slots(server) == 1)
        await asyncio.sleep(0.3 if answers > 1 else 0)  # the server then waits for room
        raw.reset()
        await until(lambda: slots(server) == 0)

    visit(work)


@pytest.mark.parametrize("reads", [True, False])
def test_pings_and_a_reset_leave_nothing_in_the_log(reads: bool) -> None:
    async def work(server: Server, _client: aiohttp.ClientSession) -> None:
        for waited in (0.0, 0.01, 0.05) * 3:
            raw, _ = await RawSocket.opened(server.port, request())
            if not reads:
                raw.stop_reading()
            raw.writer.write(frame(9, bytes(100)) * 2_000)
            await asyncio.sleep(waited)
            raw.reset()
        await until(lambda: slots(server) == 0)

    visit(work)


def gated(*, tokens: tuple[bytes, ...] = (), new_seconds: float = 0.2) -> Server:
    gate = ConnectionGate(GateLimits(new_seconds=new_seconds))
    chain = SmallChain({b"key": b"value"})
    return Server(SmallLive(chain), title="small", key_names=dict, access=Access(tokens=tokens), gate=gate)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: local", request()[:-2]])
def test_half_a_request_ends_at_its_deadline_and_a_whole_one_stays(sent: bytes) -> None:
    async def run() -> None:
        server = gated()
        async with started(server) as client:
            async with client.post(server.url("http"), json=ASK) as answer:
                assert answer.status == 200
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(sent)
            async with asyncio.timeout(30):
                assert await reader.read() == b""
            writer.close()
            await until(lambda: server.gate.open == 1)
            async with client.post(server.url("http"), json=ASK) as answer:
                assert answer.status == 200
            assert (server.gate.open, server.gate.new) == (1, 0)  # the first connection was used again

    asyncio.run(run())


def test_requests_without_a_known_token_do_not_let_a_client_in() -> None:
    async def run() -> None:
        server = gated(tokens=(TOKEN.encode(),), new_seconds=0.5)
        async with started(server):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            answered = 0
            with suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    answered += (await reader.readline()).startswith(b"HTTP/1.1 401")
                    await asyncio.sleep(0.01)
            await until(lambda: server.gate.open == 0)
            assert answered

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/", "/subscriptions"])
def test_half_a_body_is_refused_when_its_time_is_over(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "BODY_SECONDS", 0.1)
    monkeypatch.setattr(request_body, "BODY_SECONDS", 0.1)

    async def work(api: Api) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        headers = ["Host: localhost", "Content-Type: application/json", "Content-Length: 9"]
        writer.write("\r\n".join([f"POST {path} HTTP/1.1", *headers, "", "{"]).encode())
        assert (await reader.readline()).split()[1] == b"408"
        assert b"the body: got part of one in 0.1 s" in await reader.readuntil(b"in 0.1 s")
        writer.close()

    visit_gateway(work)


def test_the_guide_states_the_limits() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "serve.md").read_text("utf-8")
    table = guide.partition("\n## Limits\n")[2]
    limits = GateLimits()
    stated = {
        "connections": f"{limits.most:,}",
        "new connections": f"{limits.most_new:,}",
        "new connections from one address, or from one IPv6 `/64` network": f"{limits.most_new_of_one:,}",
        "time until a client is admitted, including the TLS handshake": f"{limits.new_seconds:g} s",
        "time for the body of a request": f"{request_body.BODY_SECONDS:g} s",
        "time between two requests on one connection": f"{KEEP_ALIVE_SECONDS:g} s",
        "time in which a client reads none of the data sent to it (Linux only)": f"{limits.stalled_seconds:g} s",
        "WebSockets of the node": f"{application.MOST_CONNECTIONS:,}",
        "WebSockets of the node of one token or address": f"{application.MOST_CONNECTIONS_OF_ONE:,}",
        "browsers with the live page open": f"{application.MOST_WATCHERS}",
        "size of a JSON-RPC message or answer": f"{MOST_REQUEST_BYTES >> 20} MiB",
        "subscriptions of one WebSocket": f"{MOST_SUBSCRIPTIONS:,}",
    }
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert {what: limit for what, limit, _ in rows} == stated
    assert f"reserves {OTHER_FILES} file handles for other files" in table
    assert f"If the process may open fewer than {limits.most + OTHER_FILES:,}" in table
