"""The server over real sockets: who is let in, what is answered, what has a limit."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from app.serve_client import Client, until
from relaycast.serve import application, socket
from relaycast.serve.access import Access
from relaycast.serve.server import Server
from relaycast_gateway.cloudevents.caller import Caller
from relaycast_node.rpc import json_rpc
from small_chain import SmallChain, SmallLive

TOKEN = "a-token-of-some-length"
ASK = {"jsonrpc": "2.0", "id": 1, "method": "system_chain"}

Visit = Callable[[Server, aiohttp.ClientSession], Awaitable[None]]


def small_server(access: Access | None = None, dialect: str = "all") -> Server:
    chain = SmallChain({b"key": b"value"})
    chain.add()
    return Server(SmallLive(chain), title="small", key_names=dict, access=access or Access(), dialect=dialect)


def chain_of(server: Server) -> SmallChain:
    assert isinstance(server.clock, SmallLive)
    return server.clock.relay


@asynccontextmanager
async def started(server: Server) -> AsyncIterator[aiohttp.ClientSession]:
    await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            yield client
    finally:
        await server.stop()


def visit(work: Visit, access: Access | None = None) -> None:
    async def run() -> None:
        server = small_server(access)
        async with started(server) as client:
            await asyncio.wait_for(work(server, client), 60)

    asyncio.run(run())


@pytest.fixture(autouse=True)
def nothing_fails_inside(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which the server logged an error: that is a defect behind whatever was answered."""
    yield
    assert [
        record.getMessage() for record in caplog.get_records("call") if record.levelname in {"ERROR", "CRITICAL"}
    ] == []


def test_a_request_by_post_is_answered() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        async with client.post(server.url("http"), json=ASK) as response:
            assert response.status == 200
            assert response.content_type == "application/json"
            assert await response.json() == {"jsonrpc": "2.0", "id": 1, "result": "Small"}
        async with client.post(server.url("http"), json=[ASK, ASK]) as response:
            assert len(await response.json()) == 2
        async with client.post(server.url("http"), json={"jsonrpc": "2.0", "method": "system_chain"}) as response:
            assert (response.status, await response.read()) == (200, b"")

    visit(work)


def test_a_socket_asks_subscribes_and_hears() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        async with client.ws_connect(server.url("ws")) as connection:
            talk = Client(connection)
            assert await talk.ask("system_chain") == "Small"
            subscription = await talk.ask("chain_subscribeNewHeads")
            chain_of(server).add()
            heads = [await talk.notification() for _ in range(2)]
            assert [head["params"]["result"]["number"] for head in heads] == ["0x1", "0x2"]
            assert await talk.ask("chain_unsubscribeNewHeads", subscription) is True
        await until(lambda: chain_of(server).new_heads.callbacks == feed_callbacks(server))

    visit(work)


def feed_callbacks(server: Server) -> list[Any]:
    """Return the callbacks that stay: the live page's."""
    return chain_of(server).new_heads.callbacks[:1]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/para/2000", 404, "404: no such parachain, expected one of "),
        ("/para/x", 404, "404: no such parachain, expected one of "),
        ("/para/99999999999999999999", 404, "404: no such parachain, expected one of "),
        ("/nothing", 404, "404: Not Found"),
        ("/", 406, "406: this is JSON-RPC: POST a request with Content-Type: application/json, or open a WebSocket"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(path: str, status: int, reason: str) -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        async with client.get(server.url("http") + path) as response:
            assert (response.status, await response.text()) == (status, reason + "\n")

    visit(work)


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9944", "127.0.0.1", "[::1]:80", "192.168.1.7:9944", "app.localhost"]
)
def test_known_hosts_are_let_in(host: str) -> None:
    assert Access().refusal(host, None, None) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9944", "localhost.evil.example", "", "[", "127.0.0.1.nip.io"]
)
def test_other_hosts_are_refused(host: str) -> None:
    refused = Access().refusal(host, None, None)
    assert refused is not None
    assert refused[0] == 403
    assert Access(hosts=frozenset({"evil.example"})).refusal("evil.example:1", None, None) is None


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080", "https://polkadot.js.org", "http://localhost"],
)
def test_known_origins_are_let_in(origin: str) -> None:
    assert Access().refusal("localhost:9944", origin, None) is None


@pytest.mark.parametrize(
    "origin",
    ["null", "https://evil.example", "http://polkadot.js.org", "https://polkadot.js.org.evil.example", "", "file://",
     "http://localhost.evil.example", "http://10.0.0.1", "javascript:1", "http://["],
)  # fmt: skip
def test_other_origins_are_refused(origin: str) -> None:
    refused = Access().refusal("localhost:9944", origin, None)
    assert refused is not None
    assert refused[0] == 403


def test_checks_come_before_everything() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        wrong = [{"Host": "evil.example"}, {"Origin": "https://evil.example"}]
        for headers in wrong:
            for method, path in [("POST", "/"), ("GET", "/"), ("GET", "/live"), ("GET", "/nothing"), ("OPTIONS", "/")]:
                async with client.request(method, server.url("http") + path, headers=headers) as response:
                    assert response.status == 403
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await client.ws_connect(server.url("ws"), headers=headers)

    visit(work)


def test_a_page_that_is_let_in_may_read_the_answer() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        origin = "https://polkadot.js.org"
        async with client.options(server.url("http"), headers={"Origin": origin}) as response:
            assert response.status == 204
            assert response.headers["Access-Control-Allow-Headers"] == "authorization, content-type"
        async with client.post(server.url("http"), json=ASK, headers={"Origin": origin}) as response:
            assert response.headers["Access-Control-Allow-Origin"] == origin
        async with client.post(server.url("http"), json=ASK) as response:
            assert "Access-Control-Allow-Origin" not in response.headers

    visit(work)


@pytest.mark.parametrize("raw", [
    b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + b"s" * 10_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
])  # fmt: skip
def test_a_request_that_is_no_http_is_refused_and_leaves_nothing_in_the_log(
    raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(server: Server, _client: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(raw)
        assert (await reader.readline()).split()[1].startswith(b"4")
        writer.close()
        await writer.wait_closed()

    visit(work)
    assert not caplog.records


def test_with_tokens_every_request_needs_one() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        url = server.url("http")
        basic = base64.b64encode(f"any:{TOKEN}".encode()).decode()
        for given in ({"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"Basic {basic}"}):
            async with client.post(url, json=ASK, headers=given) as response:
                assert response.status == 200
        for wrong in (
            "",
            "Bearer",
            f"Bearer {TOKEN}x",
            TOKEN,
            "Basic !",
            f"Basic {TOKEN}",
            "Bearer \xe9",
            "Basic \xe9",
        ):
            async with client.post(url, json=ASK, headers={"Authorization": wrong}) as response:
                assert response.status == 401
                assert response.headers["WWW-Authenticate"].startswith("Basic")
                assert TOKEN not in await response.text()
        async with client.get(f"{url}/?token={TOKEN}") as response:
            assert response.status == 401
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await client.ws_connect(server.url("ws"))
        async with client.ws_connect(server.url("ws"), headers={"Authorization": f"Bearer {TOKEN}"}) as connection:
            assert await Client(connection).ask("system_chain") == "Small"

    visit(work, Access(tokens=(TOKEN.encode(),)))
    assert TOKEN not in repr(Access(tokens=(TOKEN.encode(),)))


def test_bodies_and_frames_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (json_rpc, application, socket):
        monkeypatch.setattr(module, "MOST_REQUEST_BYTES", 2_000)

    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        headers = {"content-type": "application/json"}
        async with client.post(server.url("http"), data=b" " * 3_000, headers=headers) as response:
            assert response.status == 413
            assert (await response.json())["error"]["code"] == -32007
        async with client.ws_connect(server.url("ws")) as connection:
            await connection.send_str(" " * 3_000)
            assert (await connection.receive()).type is aiohttp.WSMsgType.CLOSE
            assert connection.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG

    visit(work)


def test_a_body_of_another_type_is_refused() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        async with client.post(
            server.url("http"), data=json.dumps(ASK).encode(), headers={"content-type": "text/plain"}
        ) as response:
            assert response.status == 415
            assert await response.text() == "415: Content-Type: got text/plain, expected application/json\n"

    visit(work)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "GZIP", "gzip, gzip"])
def test_an_encoded_body_is_refused_and_not_decoded(encoding: str) -> None:
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}

    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        body = b"no such encoding"  # who decodes it answers 400
        async with client.post(server.url("http"), data=body, headers=headers) as response:
            expected = f"415: Content-Encoding: got '{encoding}', expected none\n"
            assert (response.status, await response.text()) == (415, expected)

    visit(work)


@pytest.mark.parametrize("limit", ["MOST_CONNECTIONS", "MOST_CONNECTIONS_OF_ONE"])
def test_connections_have_a_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, limit, 2)

    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        first, second = [await client.ws_connect(server.url("ws")) for _ in range(2)]
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(server.url("ws"))
        assert refused.value.status == 503
        await first.close()
        async with client.ws_connect(server.url("ws")) as connection:
            assert await Client(connection).ask("system_chain") == "Small"
        await second.close()

    visit(work)


def test_a_ping_and_a_close_are_answered_while_a_request_takes_long() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        chain, connection = chain_of(server), await client.ws_connect(server.url("ws"), autoping=False)
        await connection.send_json(ASK | {"method": "dev_newBlock", "params": [1_000]})
        await connection.ping(b"still there")
        message = await connection.receive()
        assert (message.type, message.data) == (aiohttp.WSMsgType.PONG, b"still there")
        assert await connection.close()
        left_at = chain.best.header.number
        assert left_at < 900
        for _ in range(100):
            await asyncio.sleep(0)
        assert chain.best.header.number <= left_at + 1

    visit(work)


def test_what_a_client_sent_before_it_closed_is_done() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        connection = await client.ws_connect(server.url("ws"))
        for _ in range(20):
            await connection.send_json(ASK | {"method": "dev_newBlock", "params": []})
        await connection.close()
        await until(lambda: chain_of(server).best.header.number == 21)

    visit(work)


@pytest.mark.slow
def test_a_thousand_subscribers_hear_every_head() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        talks = [Client(await client.ws_connect(server.url("ws"))) for _ in range(1_000)]
        for talk in talks:
            await talk.ask("chain_subscribeNewHeads")
        chain = chain_of(server)
        for _ in range(3):
            chain.add()
        for talk in talks:
            numbers = [(await talk.notification())["params"]["result"]["number"] for _ in range(4)]
            assert numbers == ["0x1", "0x2", "0x3", "0x4"]
        await asyncio.gather(*(talk.socket.close() for talk in talks))
        await until(lambda: not chain.new_heads.callbacks[1:])

    visit(work)


def test_a_reader_that_falls_behind_is_dropped_and_the_others_go_on() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        chain, address = chain_of(server), ("127.0.0.1", server.port)
        reader, writer = await asyncio.open_connection(*address, limit=1_024)
        key = base64.b64encode(bytes(16)).decode()
        lines = ["GET / HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
                 f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]  # fmt: skip
        writer.write("\r\n".join(lines).encode())
        await reader.readuntil(b"\r\n\r\n")
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "state_subscribeStorage"}).encode()
        writer.write(bytes([0x81, 0x80 | len(message)]) + bytes(4) + message)  # masked with zeros
        await until(lambda: len(chain.new_heads.callbacks) == 2)
        async with client.ws_connect(server.url("ws")) as connection:
            talk = Client(connection)
            await talk.ask("chain_subscribeNewHeads")
            await talk.notification()
            for index in range(60):  # the slow one gets a megabyte with each
                chain.add({b"key": bytes([index]) * 500_000})
                assert (await talk.notification())["params"]["result"]["number"] == hex(index + 2)
            await until(lambda: len(chain.new_heads.callbacks) == 2)
            assert await talk.ask("system_chain") == "Small"
        writer.transport.abort()
        await until(writer.transport.is_closing)

    visit(work)


def test_a_reader_that_falls_behind_is_told_why() -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        async with client.ws_connect(server.url("ws"), max_msg_size=0) as connection:
            await Client(connection).ask("state_subscribeStorage")
            chain = chain_of(server)
            for index in range(40):
                chain.add({b"key": bytes([index]) * 500_000})
                await asyncio.sleep(0)
            while (message := await connection.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.TRY_AGAIN_LATER)
            assert str(message.extra).startswith("too slow: ")

    visit(work)


def test_the_live_page_sends_what_happens(caplog: pytest.LogCaptureFixture) -> None:
    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        async with client.get(server.url("http"), headers={"accept": "text/html,*/*"}) as response:
            assert response.content_type == "text/html"
            assert response.headers["X-Frame-Options"] == "DENY"
            assert "small, live" in await response.text()
        async with client.get(server.url("http") + "/live") as response:
            assert response.content_type == "text/event-stream"
            assert (await response.content.readline(), await response.content.readline()) == (
                b"event: snapshot\n",
                b'data: {"blocks":[],"publications":[],"proofs":[],"blockTime":"manual"}\n',
            )
            chain_of(server).add()
            chain_of(server).add()
            await response.content.readline()
            assert await response.content.readline() == b"event: news\n"
            news = json.loads((await response.content.readline()).removeprefix(b"data: "))
            assert [block["number"] for block in news["blocks"]] == [2, 3]
        while server.feed.watchers:
            chain_of(server).add()  # a write finds that the browser is gone
            await asyncio.sleep(0.01)

    visit(work)
    assert not [it for it in caplog.records if it.levelname == "ERROR"], "a browser that leaves is no error"


def test_a_browser_that_does_not_read_is_dropped() -> None:
    async def run() -> None:
        server = small_server()
        events = server.feed.events()
        await anext(events)
        for _ in range(100):
            chain_of(server).add()
            await asyncio.sleep(0)
        assert server.feed.watchers == 0
        assert [event async for event in events] == []

    asyncio.run(run())


@pytest.mark.parametrize("dialect", ["all", "legacy", "new"])
def test_the_request_and_the_client_that_a_server_proposes_can_be_used(dialect: str) -> None:
    """polkadot.js needs the legacy methods."""

    async def run() -> None:
        server = small_server(dialect=dialect)
        async with started(server) as client:
            lines = [line.use for line in server.lines()]
            (request,) = (found[1] for use in lines if (found := re.search(r"-d '(.*jsonrpc.*)' http", use)))
            async with client.post(server.url("http"), json=json.loads(request)) as response:
                assert "result" in await response.json()
            async with client.get(server.url("http"), headers={"accept": "text/html"}) as response:
                page = await response.text()
            for shown in ("\n".join(lines), page):
                assert ("polkadot.js.org/apps" in shown) == (dialect != "new")

    asyncio.run(run())


def test_dev_methods_need_an_admin_over_http_over_sockets_and_in_batches() -> None:
    admin, alice = b"a-token-of-an-admin", b"the-token-of-alice"
    access = Access(tokens=(admin, alice), callers={alice: Caller("alice"), admin: Caller("root", is_admin=True)})
    refused = {
        "code": -32601,
        "message": "RPC call is unsafe to be called externally",
        "data": "dev_newBlock needs a token with role=admin, the token of 'alice' has role=user",
    }
    block = {"jsonrpc": "2.0", "id": 2, "method": "dev_newBlock", "params": []}

    async def work(server: Server, client: aiohttp.ClientSession) -> None:
        chain = chain_of(server)
        for token, expected in ((alice, 1), (admin, 4)):
            headers = {"authorization": f"Bearer {token.decode()}"}
            async with client.post(server.url("http"), json=block, headers=headers) as response:
                one = await response.json()
            async with client.post(server.url("http"), json=[ASK, block], headers=headers) as response:
                first, second = await response.json()
            async with client.ws_connect(server.url("ws"), headers=headers) as connection:
                talk = Client(connection)
                third = await talk.ask("dev_newBlock")
                assert "dev_newBlock" in (await talk.ask("rpc_methods"))["methods"]
                assert await talk.ask("system_chain") == "Small"
            assert first["result"] == "Small"
            assert chain.best.header.number == expected
            if token == alice:
                assert one["error"] == second["error"] == third == refused

    visit(work, access)


def test_stopping_closes_everything_whatever_fails() -> None:
    class Failing(SmallLive):
        async def run(self) -> None:
            raise ZeroDivisionError("the clock has failed")

    async def run() -> None:
        chain = SmallChain({b"key": b"value"})
        closed = list[str]()
        server = Server(Failing(chain), title="small", key_names=dict, access=Access())
        await server.start("127.0.0.1", 0)
        with pytest.raises(ZeroDivisionError):
            await server.wait()
        server._rawsocket = FailingRawSocket(closed)  # type: ignore[assignment]
        with pytest.raises(KeyError, match="a failure of the raw socket"):
            await server.stop()
        assert closed == ["rawsocket"]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)

    asyncio.run(run())


class FailingRawSocket:
    def __init__(self, closed: list[str]) -> None:
        self.closed = closed

    async def stop(self) -> None:
        self.closed.append("rawsocket")
        raise KeyError("a failure of the raw socket")
