"""``relaycast pov inspect`` and nodes that answer nonsense, too much or nothing: always one line."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from aiohttp import web

from relaycast import node_client
from relaycast.pov.block_input import read_block
from relaycast.refusal import BadInput

DEEP = b'{"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
ANSWERS = {
    "deep": (DEEP, "an answer of JSON-RPC"),
    "no-utf-8": (b'{"result":"\xff"}', "an answer of JSON-RPC"),
    "large": (b'{"result":"' + b"a" * 5_000 + b'"}', "more than 4,000 bytes"),
    "redirected": (b"", "a node that answers JSON-RPC"),
    "silent": (b"", "no answer for 0.5 s"),
}


async def _post(request: web.Request) -> web.StreamResponse:
    kind = request.match_info["kind"]
    if kind == "redirected":
        raise web.HTTPTemporaryRedirect("http://...")
    if kind == "silent":
        await asyncio.sleep(60)
    return web.Response(body=ANSWERS[kind][0], content_type="application/json")


async def _socket(request: web.Request) -> web.StreamResponse:
    kind, socket = request.match_info["kind"], web.WebSocketResponse()
    await socket.prepare(request)
    await socket.receive()
    if kind == "bytes":
        await socket.send_bytes(b"{}")
    elif kind == "deep":
        await socket.send_str(DEEP.decode())
    elif kind == "silent":
        await asyncio.sleep(60)
    await socket.close()
    return socket


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """Return host and port of a node that answers as its path says."""
    begun: Future[tuple[int, Callable[[], object]]] = Future()

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/{kind}", _post)
        app.router.add_get("/{kind}", _socket)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        begun.set_result((runner.addresses[0][1], lambda: loop.call_soon_threadsafe(ended.set)))
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    port, end = begun.result(30)
    yield f"127.0.0.1:{port}"
    end()
    thread.join()


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_client, "SECONDS", 0.5)


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_that_is_none_is_refused(node: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "large":
        monkeypatch.setattr(node_client, "MOST_ANSWER_BYTES", 4_000)
    with pytest.raises(BadInput) as refused:
        read_block(f"http://{node}/{kind}")
    assert ANSWERS[kind][1] in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("bytes", "no text (binary)"),
        ("closed", "no text (close)"),
        ("deep", "an answer of JSON-RPC"),
        ("silent", "no answer for 0.5 s"),
    ],
)
def test_a_socket_that_sends_no_answer_is_refused(node: str, kind: str, told: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_block(f"ws://{node}/{kind}")
    assert told in str(refused.value)


@pytest.mark.parametrize("at", ["9" * 5_000, "4294967296", "-1", "1e3", ""])
def test_what_is_no_number_of_a_block_is_refused_before_the_node_is_asked(at: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_block("http://127.0.0.1:9", at=at)
    assert refused.value.place == "--at"


@pytest.mark.parametrize("host", ["...", f"{'a' * 70}.com"])
def test_a_host_that_is_no_name_is_refused(host: str) -> None:
    with pytest.raises(BadInput, match="a node that answers JSON-RPC"):
        read_block(f"http://{host}/")
