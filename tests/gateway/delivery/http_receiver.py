"""A receiver over HTTP that answers as a test wants, and a sender to it."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from relaycast_gateway.clock import SystemClock
from relaycast_gateway.delivery.http_sender import HttpSender
from relaycast_gateway.delivery.sender import Target
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
