"""Delivery over HTTP, to a receiver that runs here."""

import asyncio
import base64
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from peers import missing
from relaycast_gateway.clock import SECOND, SystemClock, VirtualClock, settle
from relaycast_gateway.delivery.http_connector import SharedSession
from relaycast_gateway.delivery.http_sender import HttpSender
from relaycast_gateway.delivery.sender import Accepted, Gone, Refused, Retryable, SendOutcome, Target
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.wire_message import WireMessage

GUARD = SinkGuard(["127.0.0.1", "localhost"])
MESSAGE = WireMessage(b'{"a":1}', "application/json", (("ce-id", "7"), ("ce-type", "data.published")))

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def receiver(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[TestServer]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application, scheme="https" if tls else "http", ssl=tls) as server:
        assert isinstance(server, TestServer)
        yield server


@asynccontextmanager
async def sender(
    port: int | None,
    settings: Mapping[str, Any] | None = None,
    secrets: Mapping[str, Any] | None = None,
    *,
    sink: str = "http://127.0.0.1:{}/events?x=%20y",
    clock: Any = None,
) -> AsyncIterator[HttpSender]:
    target = Target("HTTP", sink.format(port), settings or {}, secrets or {})
    made = HttpSender(target, GUARD, clock or SystemClock())
    try:
        yield made
    finally:
        await made.close()


def outcome_of(status: int, headers: Mapping[str, str] | None = None, clock: Any = None) -> SendOutcome:
    async def main() -> SendOutcome:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(status=status, headers=headers, text="secret words of the peer" if status > 204 else "")

        async with receiver(answer) as server, sender(server.port, clock=clock) as made:
            return await made.send(MESSAGE)

    return asyncio.run(main())


@pytest.mark.matrix("CE-23")
@pytest.mark.matrix("CE-58")
@pytest.mark.matrix("CE-59")
def test_a_request_carries_the_message_and_the_subscription_s_headers() -> None:
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    async def main() -> None:
        async def answer(request: web.Request) -> web.Response:
            seen.append((request.method, request.raw_path, dict(request.headers), await request.read()))
            return web.Response(status=204)

        async with receiver(answer) as server:
            async with sender(server.port, {"headers": {"X-Feed": "seven", "ce-id": "8"}}) as made:
                assert await made.send(MESSAGE) == Accepted()
            async with sender(server.port, {"method": "PUT"}) as made:
                assert await made.send(WireMessage(b"plain")) == Accepted()

    asyncio.run(main())
    (method, path, headers, body), (other_method, _, other_headers, _) = seen
    assert (method, path, body) == ("POST", "/events?x=%20y", b'{"a":1}')
    assert headers["X-Feed"] == "seven"
    assert headers["ce-id"] == "7"  # the event's own attribute wins
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"] == "relaycast"
    assert not {"Accept-Encoding", "Cookie", "Authorization"} & headers.keys()
    assert other_method == "PUT"
    assert "Content-Type" not in other_headers


@pytest.mark.matrix("CE-61")
@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_status_of_success_acknowledges(status: int) -> None:
    assert outcome_of(status) == Accepted()


@pytest.mark.matrix("CE-61")
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (300, Refused("HTTP 300: redirects are not followed")),
        (304, Refused("HTTP 304: redirects are not followed")),
        (400, Refused("HTTP 400")),
        (401, Refused("HTTP 401")),
        (404, Refused("HTTP 404")),
        (408, Retryable("HTTP 408")),
        (410, Gone("HTTP 410")),
        (415, Refused("HTTP 415")),
        (425, Retryable("HTTP 425")),
        (429, Retryable("HTTP 429")),
        (500, Retryable("HTTP 500")),
        (502, Retryable("HTTP 502")),
        (503, Retryable("HTTP 503")),
        (599, Retryable("HTTP 599")),
    ],
)
def test_any_other_status_is_told_without_the_peer_s_words(status: int, outcome: SendOutcome) -> None:
    assert outcome_of(status) == outcome


@pytest.mark.matrix("CE-61")
@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("17", 17.0), ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0), ("whenever", None)],
)
def test_retry_after_is_taken_as_seconds_and_as_a_date(retry_after: str, seconds: float | None) -> None:
    clock = VirtualClock(1_700_000_000 * SECOND)  # 22:13:20
    for status in (429, 503):
        assert outcome_of(status, {"Retry-After": retry_after}, clock) == Retryable(f"HTTP {status}", seconds)


@pytest.mark.matrix("CE-61")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    paths = []

    async def main() -> SendOutcome:
        async def answer(request: web.Request) -> web.Response:
            paths.append(request.path)
            return web.Response(status=status, headers={"Location": "/elsewhere"})

        async with receiver(answer) as server, sender(server.port) as made:
            return await made.send(MESSAGE)

    assert asyncio.run(main()) == Refused(f"HTTP {status}: redirects are not followed")
    assert paths == ["/events"]


@pytest.mark.matrix("CE-61")
def test_a_refused_connection_and_an_unknown_name_are_tried_again() -> None:
    async def main() -> list[SendOutcome]:
        outcomes = []
        for sink in (f"http://127.0.0.1:{unused_port()}/", "http://no-such-name.invalid/"):
            async with sender(None, sink=sink) as made:
                outcomes.append(await made.send(MESSAGE))
        return outcomes

    refused, unknown = asyncio.run(main())
    assert refused == Retryable("cannot connect: Connection refused")
    assert unknown == Retryable("cannot connect: the name does not resolve")


@pytest.mark.matrix("CE-61")
def test_a_connection_that_ends_without_an_answer_is_tried_again() -> None:
    async def main() -> SendOutcome:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        async with server, sender(server.sockets[0].getsockname()[1]) as made:
            return await made.send(MESSAGE)

    assert asyncio.run(main()) == Retryable("the connection was closed without an answer")


def test_what_is_no_http_is_tried_again() -> None:
    async def main() -> SendOutcome:
        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"220 secret mail server\r\n\r\n")
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        async with server, sender(server.sockets[0].getsockname()[1]) as made:
            return await made.send(MESSAGE)

    outcome = asyncio.run(main())
    assert isinstance(outcome, Retryable)
    assert "secret" not in outcome.reason


@pytest.mark.matrix("CE-104")
@pytest.mark.matrix("CE-114")
def test_a_sink_inside_is_refused_when_it_is_connected_to() -> None:
    async def main() -> SendOutcome:
        made = HttpSender(Target("HTTP", "http://127.0.0.1:9/", {}), SinkGuard(), SystemClock())
        outcome = await made.send(MESSAGE)
        await made.close()
        return outcome

    assert asyncio.run(main()) == Retryable("the sink is refused: it is a loopback address")


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    ("secrets", "sink", "authorization"),
    [
        ({"accesstoken": "t0ken"}, "http://127.0.0.1:{}/", "Bearer t0ken"),
        ({"identifier": "me", "secret": "p:ß"}, "http://127.0.0.1:{}/", basic("me:p:ß")),
        ({}, "http://me:p%40ss@127.0.0.1:{}/", basic("me:p@ss")),
        ({"headers": {"Authorization": "Own 1"}}, "http://127.0.0.1:{}/", "Own 1"),
    ],
)  # fmt: skip
@pytest.mark.matrix("CE-115")
def test_credentials_are_sent_and_stand_in_no_reason(secrets: dict[str, Any], sink: str, authorization: str) -> None:
    seen: list[str | None] = []

    async def main() -> SendOutcome:
        async def answer(request: web.Request) -> web.Response:
            seen.append(request.headers.get("Authorization"))
            assert "@" not in request.headers["Host"]
            return web.Response(status=401)

        async with receiver(answer) as server, sender(server.port, {}, secrets, sink=sink) as made:
            return await made.send(MESSAGE)

    assert asyncio.run(main()) == Refused("HTTP 401")
    assert seen == [authorization]


@pytest.mark.matrix("CE-115")
def test_a_header_that_would_split_the_request_is_refused_and_not_shown() -> None:
    async def main() -> SendOutcome:
        async with sender(unused_port(), {}, {"headers": {"X-Key": "secret\r\nHost: evil"}}) as made:
            return await made.send(MESSAGE)

    outcome = asyncio.run(main())
    assert isinstance(outcome, Refused | Retryable)
    assert "secret" not in outcome.reason


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


class Validating:
    """A receiver that takes part in the handshake."""

    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.status = 200
        self.requests: list[tuple[str, str | None, str | None, str | None]] = []

    async def answer(self, request: web.Request) -> web.Response:
        asked = (request.headers.get(f"WebHook-Request-{name}") for name in ("Origin", "Rate"))
        origin, rate = asked
        self.requests.append((request.method, origin, rate, request.headers.get("Authorization")))
        return web.Response(status=self.status, headers=self.headers if request.method == "OPTIONS" else None)


def validated(peer: Validating, settings: dict[str, Any], count: int = 2) -> list[SendOutcome]:
    async def main() -> list[SendOutcome]:
        async with receiver(peer.answer) as server, sender(server.port, settings, {"accesstoken": "t"}) as made:
            return list(await asyncio.gather(*(made.send(MESSAGE) for _ in range(count))))

    return asyncio.run(main())


@pytest.mark.matrix("CE-62")
@pytest.mark.parametrize("allowed", ["feed.example", "*", "other.example, FEED.example"])
def test_a_receiver_is_asked_once_before_the_first_delivery(allowed: str) -> None:
    peer = Validating(WebHook_Allowed_Origin=allowed, WebHook_Allowed_Rate="120")
    assert validated(peer, {"requestorigin": "feed.example", "requestrate": 600}) == [Accepted()] * 2
    assert peer.requests == [("OPTIONS", "feed.example", "600", "Bearer t"), *[("POST", None, None, "Bearer t")] * 2]


NOT_ALLOWED = Retryable("the receiver did not allow deliveries of feed.example")


@pytest.mark.matrix("CE-62")
@pytest.mark.parametrize(
    ("headers", "status", "outcome"),
    [
        ({}, 200, NOT_ALLOWED),
        ({"WebHook_Allowed_Origin": "a.example"}, 200, NOT_ALLOWED),
        ({"WebHook_Allowed_Origin": "*"}, 405, Retryable("the receiver did not take the validation request: HTTP 405")),
        ({"WebHook_Allowed_Origin": "*"}, 503, Retryable("HTTP 503")),
        ({"WebHook_Allowed_Origin": "*"}, 410, Gone("HTTP 410")),
    ],
)  # fmt: skip
def test_without_the_receiver_s_leave_nothing_is_delivered(
    headers: dict[str, str], status: int, outcome: SendOutcome
) -> None:
    peer = Validating(**headers)
    peer.status = status
    assert validated(peer, {"requestorigin": "feed.example"}, count=1) == [outcome]
    assert [method for method, *_ in peer.requests] == ["OPTIONS"]


@pytest.mark.matrix("CE-62")
def test_without_the_setting_no_receiver_is_asked() -> None:
    peer = Validating()
    assert validated(peer, {}) == [Accepted()] * 2
    assert [method for method, *_ in peer.requests] == ["POST", "POST"]


@pytest.mark.matrix("CE-62")
@pytest.mark.parametrize(
    ("allowed", "asked", "gap"),
    [("120", 600, 0.5), ("*", 600, 0), (None, 600, 0.1), (None, None, 0), ("0", None, 0), ("many", 60, 1)],
)
def test_the_rate_that_a_receiver_allows_is_kept(allowed: str | None, asked: int | None, gap: float) -> None:
    async def main() -> None:
        clock = VirtualClock()
        headers = {"WebHook_Allowed_Origin": "*"} | ({} if allowed is None else {"WebHook_Allowed_Rate": allowed})
        settings = {"requestorigin": "feed.example"} | ({} if asked is None else {"requestrate": asked})
        async with receiver(Validating(**headers).answer) as server, sender(server.port, settings, clock=clock) as made:
            assert made.take_turn() == 0
            assert made.take_turn() > 0  # nobody knows yet
            assert await made.send(MESSAGE) == Accepted()
            assert made.take_turn() == pytest.approx(gap)
            clock.set(clock.now_ns() - 10**15)
            assert 0 <= made.take_turn() <= gap
            clock.set(clock.now_ns() + round(gap * SECOND))
            assert made.take_turn() == 0

    asyncio.run(main())
