"""Clients that leave in the middle of something: whichever side of a connection ends, the other ends too."""

import asyncio
import json

import aiohttp
import pytest

from app.raw_socket import RawSocket, frame, request
from app.serve_client import until
from app.test_serve_http import chain_of, nothing_fails_inside, visit
from relaycast.serve.server import Server

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
