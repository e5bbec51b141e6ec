"""Delivery over HTTP, to a receiver that runs here."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port

from gateway.delivery.http_receiver import MESSAGE, receiver, sender
from relaycast_gateway.clock import SECOND, SystemClock, VirtualClock
from relaycast_gateway.delivery.http_sender import HttpSender
from relaycast_gateway.delivery.sender import Accepted, Gone, Refused, Retryable, SendOutcome, Target
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.wire_message import WireMessage


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
