"""Connections over HTTP: kept, shared, broken off, secured, and what comes over them that never ends."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from aiohttp import web

from gateway.delivery.http_receiver import MESSAGE, receiver, sender
from peers import missing
from relaycast_gateway.clock import VirtualClock, settle
from relaycast_gateway.delivery.http_connector import SharedSession
from relaycast_gateway.delivery.sender import Accepted, Retryable, SendOutcome


def test_a_long_answer_is_not_read_to_its_end() -> None:
    async def main() -> tuple[SendOutcome, int]:
        written = 0

        async def answer(request: web.Request) -> web.StreamResponse:
            nonlocal written
            response = web.StreamResponse()
            await response.prepare(request)
            try:
                for _ in range(2_000):
                    await response.write(bytes(10_000))
                    written += 10_000
            except ConnectionError:
                pass
            return response

        async with receiver(answer) as server, sender(server.port) as made:
            outcome = await made.send(MESSAGE)
            await asyncio.sleep(0)
        return outcome, written

    outcome, written = asyncio.run(main())
    assert outcome == Accepted()
    assert written < 20_000_000


def test_an_answer_whose_body_never_ends_acknowledges_and_loses_its_connection() -> None:
    async def main() -> None:
        clock = VirtualClock()
        closed = asyncio.Event()

        async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
            while await reader.read(1_000):
                pass
            closed.set()
            writer.close()

        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        async with server, sender(server.sockets[0].getsockname()[1], clock=clock) as made:
            sending = asyncio.create_task(made.send(MESSAGE))
            while not clock._sleepers:
                await asyncio.sleep(0.001)
            await clock.advance(2)
            assert await sending == Accepted()
            await closed.wait()

    asyncio.run(main())


def test_connections_are_kept_and_shared_by_all_sinks_of_a_host() -> None:
    async def main() -> int:
        ports = set()

        async def answer(request: web.Request) -> web.Response:
            assert request.transport is not None
            ports.add(request.transport.get_extra_info("peername")[1])
            return web.Response(text="thank you")

        async with receiver(answer) as server, sender(server.port) as one, sender(server.port) as other:
            for _ in range(5):
                await one.send(MESSAGE)
                await other.send(MESSAGE)
            assert one._shared is other._shared
        assert not SharedSession._open[asyncio.get_running_loop()]
        return len(ports)

    assert asyncio.run(main()) == 1


def test_a_sender_that_is_broken_off_leaves_nothing_running() -> None:
    async def main() -> None:
        waiting = asyncio.Event()

        async def answer(request: web.Request) -> web.Response:
            waiting.set()
            await asyncio.sleep(3_600)
            return web.Response()

        async with receiver(answer) as server, sender(server.port) as made:
            before = asyncio.all_tasks()
            sending = asyncio.create_task(made.send(MESSAGE))
            await waiting.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            await settle()
            mine = {task for task in asyncio.all_tasks() - before if "TestServer" not in repr(task)}
            assert not {task for task in mine if "relaycast" in repr(task.get_coro())}

    asyncio.run(main())


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    program = shutil.which("openssl")
    if program is None:
        missing("openssl is not installed; it makes the certificate")
    folder: Path = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def test_a_certificate_that_nobody_vouches_for_is_not_accepted(self_signed: ssl.SSLContext) -> None:
    async def main() -> SendOutcome:
        async def answer(request: web.Request) -> web.Response:
            raise AssertionError("a request came through")

        async with (
            receiver(answer, tls=self_signed) as server,
            sender(server.port, sink="https://localhost:{}/") as made,
        ):
            return await made.send(MESSAGE)

    assert asyncio.run(main()) == Retryable("TLS failed: the certificate or the handshake was not accepted")
