"""A server whose clock is late, or that one client asks for too much: the others are served, and events delivered."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from app.serve_client import Client
from app.serve_process import ServeProcess

pytestmark = pytest.mark.slow

HANG_SECONDS = 300
"""A guard: nothing here is measured in seconds."""


@asynccontextmanager
async def sink() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A webhook on a free port, and what it got."""
    got: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        got.append(await request.read())
        return web.Response()

    application = web.Application()
    application.router.add_post("/", take)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1], got
    finally:
        await runner.cleanup()


async def height(client: Client) -> int:
    return int((await client.ask("chain_getHeader"))["number"], 16)


def test_reads_and_deliveries_come_between_the_blocks_of_a_clock_that_is_late() -> None:
    async def run() -> None:
        async with sink() as (port, got), aiohttp.ClientSession() as http:
            options = ["--block-time", "10ms", "--allow-sink", f"127.0.0.1:{port}"]
            with ServeProcess("oracle", *options) as served:
                url = f"http://127.0.0.1:{served.port}"
                wanted = {"protocol": "HTTP", "sink": f"http://127.0.0.1:{port}/"}
                async with http.post(f"{url}/subscriptions", json=wanted) as response:
                    assert response.status == 201
                async with http.ws_connect(url) as socket:
                    client = Client(socket)
                    first, reads = await height(client), 0
                    while (last := await height(client)) < first + 30:
                        reads += 1
                served.process.terminate()
                error = (await asyncio.to_thread(served.process.communicate))[1]
            assert reads >= 3 * (last - first)
            assert len(got) >= last - first
            assert error.startswith("block time: expected a block every 10ms, got one every ")
            assert error.count("\n") == 1

    asyncio.run(asyncio.wait_for(run(), HANG_SECONDS))


Greedy = Callable[[aiohttp.ClientSession, str], Coroutine[Any, Any, Any]]


def by_socket(*messages: object) -> Greedy:
    """Return a client that sends all messages at once over a WebSocket, and reads as many answers."""

    async def ask(http: aiohttp.ClientSession, url: str) -> Any:
        async with http.ws_connect(url, max_msg_size=0) as socket:
            for message in messages:
                await socket.send_str(json.dumps(message))
            return [await socket.receive_json() for _ in messages][-1]

    return ask


def call(method: str, *params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


HIDDEN = [f"0x{number:064x}" for number in range(30_000)]


@pytest.mark.parametrize(
    ("greedy", "least"),
    [
        (by_socket(call("dev_newBlock", 40)), 40),
        (by_socket([call("dev_newBlock")] * 40), 40),
        (by_socket(*[call("dev_newBlock")] * 40), 40),
        (by_socket(*[call(f"chain_getHeadr{number}") for number in range(5_000)]), 5),
        (by_socket([call(f"chain_getHeadr{number}") for number in range(10_000)]), 5),
        (by_socket([call("state_getKeys", "0x")] * 300), 5),
        (by_socket(*[call("state_queryStorageAt", HIDDEN)] * 10), 5),
        (by_socket(*[call("state_getReadProof", HIDDEN)] * 10), 5),
        (by_socket([call("state_getStorageSize", "0x")] * 300), 5),
        (by_socket([call("dev_dumpState")] * 50), 5),
    ],
    ids=[
        "a series of blocks",
        "a batch of blocks",
        "messages for blocks",
        "unknown methods",
        "a batch of unknown methods",
        "lists of keys",
        "many keys",
        "proofs of many keys",
        "sizes of all storage",
        "dumps",
    ],
)
def test_small_reads_are_answered_while_one_client_asks_for_much(greedy: Greedy, least: int) -> None:
    async def run(url: str) -> int:
        async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
            client, reads = Client(socket), 0
            await height(client)
            asked = asyncio.create_task(greedy(http, url))
            while not asked.done():
                await height(client)
                reads += 1
            answer = await asked
            answers = [answer] if isinstance(answer, dict) else answer
            assert {it.get("error", {}).get("code", 0) for it in answers} <= {0, -32601}
            return reads

    with ServeProcess("oracle", "--block-time", "manual") as served:
        found = asyncio.run(asyncio.wait_for(run(f"http://127.0.0.1:{served.port}"), HANG_SECONDS))
    assert found >= least


@pytest.mark.parametrize("how", ["post", "socket", "closed socket"])
def test_no_more_blocks_are_built_for_a_client_that_left(how: str) -> None:
    async def run(url: str) -> tuple[int, int]:
        async with aiohttp.ClientSession() as http:
            greedy = aiohttp.ClientSession()
            if how == "post":
                asked = asyncio.create_task(greedy.post(url, json=call("dev_newBlock", 1_000)))
            else:
                socket = await greedy.ws_connect(url)
                await socket.send_json(call("dev_newBlock", 1_000))
            async with http.ws_connect(url) as other:
                client = Client(other)
                while await height(client) < 3:
                    pass
                if how == "post":
                    asked.cancel()
                elif how == "closed socket":
                    await socket.close()
                else:
                    assert socket._response.connection is not None
                    socket._response.connection.transport.abort()  # type: ignore[union-attr]
                await greedy.close()
                before = await height(client)
                for _ in range(200):
                    await height(client)
                    await asyncio.sleep(0.01)
                return before, await height(client)

    with ServeProcess("oracle", "--block-time", "manual") as served:
        before, after = asyncio.run(asyncio.wait_for(run(f"http://127.0.0.1:{served.port}"), HANG_SECONDS))
    assert before <= after <= before + 3
