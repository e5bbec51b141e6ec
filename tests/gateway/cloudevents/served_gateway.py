"""A server with a gateway on a free port, a client of it, and senders that note what they are given."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from relaycast.serve.access import Access
from relaycast.serve.request_rates import RequestRates
from relaycast.serve.server import Server
from relaycast_gateway.clock import VirtualClock, settle
from relaycast_gateway.delivery.sender import Accepted, SendOutcome, Target
from relaycast_gateway.delivery.wire_message import WireMessage
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc16 import Icrc16, text
from relaycast_gateway.record import EventDraft, EventRecord
from small_chain import SmallChain, SmallLive

SINK = "http://127.0.0.1:9/sink"
MINIMAL = {"protocol": "HTTP", "sink": SINK}
PROBLEM_TYPE = "application/problem+json"


@dataclass(slots=True)
class Sinks:
    """Senders that accept everything, or answer what a test wants, and note each message with its target."""

    sent: list[tuple[Target, WireMessage]] = field(default_factory=list)
    answer: Callable[[Target, WireMessage], SendOutcome] = lambda _target, _message: Accepted()
    closed: int = 0
    gate: asyncio.Event | None = None
    """What every message waits for before it is answered."""

    def sender(self, target: Target) -> "NotingSender":
        return NotingSender(target, self)

    def of(self, sink: str = SINK) -> list[WireMessage]:
        return [message for target, message in self.sent if target.sink == sink]

    def bodies(self, sink: str = SINK) -> list[Any]:
        return [json.loads(message.body) for message in self.of(sink)]


@dataclass(slots=True)
class NotingSender:
    target: Target
    sinks: Sinks

    async def send(self, message: WireMessage) -> SendOutcome:
        self.sinks.sent.append((self.target, message))
        await asyncio.sleep(0)
        if self.sinks.gate is not None:
            await self.sinks.gate.wait()
        return self.sinks.answer(self.target, message)

    async def close(self) -> None:
        self.sinks.closed += 1


@dataclass(slots=True)
class Answer:
    status: int
    headers: Any
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@dataclass(slots=True)
class Api:
    """The interface as a client sees it."""

    server: Server
    gateway: Gateway
    client: aiohttp.ClientSession
    sinks: Sinks
    clock: VirtualClock
    token: str = ""

    async def ask(
        self, method: str, path: str, body: object = None, *, raw: bytes | None = None, **headers: str
    ) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        url = self.server.url("http") + path
        async with self.client.request(method, url, data=data, headers=sent, allow_redirects=False) as response:
            return Answer(response.status, response.headers, await response.read())

    async def create(self, **members: object) -> Any:
        answer = await self.ask("POST", "/subscriptions", MINIMAL | members)
        assert answer.status == 201, answer.data
        return answer.json

    async def refused(self, method: str, path: str, body: object = None, *, status: int = 400, **options: Any) -> Any:
        """Return the problem document that a request is answered with."""
        answer = await self.ask(method, path, body, **options)
        assert answer.status == status, (answer.status, answer.data)
        return problem_in(answer)

    def publish(self, *values: object, namespace: str = "io.relaycast.data.published") -> list[EventRecord]:
        return self.gateway.log.append(*(draft(value, namespace) for value in values))

    async def settled(self) -> None:
        """Wait until every subscription has seen the whole log and nothing is in flight."""
        deliveries, last = self.gateway.deliveries, self.gateway.log.last_seq
        while any(state.status == "active" and (state.cursor < last or state.pending) for state in deliveries.states()):
            await asyncio.sleep(0.001)
        await settle()


def problem_in(answer: Answer) -> Any:
    """Return the problem document of an answer, which must be one by RFC 9457."""
    assert answer.headers["Content-Type"] == PROBLEM_TYPE
    problem = answer.json
    assert problem["status"] == answer.status
    assert problem["type"].startswith("urn:relaycast:problem:")
    assert problem["title"]
    assert "\n" not in problem["detail"]
    assert set(problem) <= {"type", "title", "status", "detail", "member", "got", "expected"}
    return problem


def draft(value: object, namespace: str = "io.relaycast.data.published", **more: Any) -> EventDraft:
    data = value if isinstance(value, Icrc16) else text(str(value))
    return EventDraft(namespace, data, b"", occurred_ns=1_700_000_000_000_000_000, **more)


@asynccontextmanager
async def served(
    access: Access | None = None,
    *,
    folder: Path | None = None,
    sinks: Sinks | None = None,
    rates: RequestRates | None = None,
    **options: Any,
) -> AsyncIterator[Api]:
    sinks, clock = sinks or Sinks(), VirtualClock()
    options = {"allow_sink": ["127.0.0.1", "localhost"], "clock": clock, "senders": sinks.sender, **options}
    gateway = Gateway.open(folder, **options)
    server = Server(
        SmallLive(SmallChain({})),
        title="small",
        key_names=dict,
        access=access or Access(),
        gateway=gateway,
        rates=rates,
    )
    await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            yield Api(server, gateway, client, sinks, clock)
    finally:
        await server.stop()


def visit(
    work: Callable[[Api], Awaitable[None]], access: Access | None = None, *, seconds: float = 60, **options: Any
) -> None:
    """Run ``work`` with a server of its own."""

    async def run() -> None:
        async with served(access, **options) as api:
            await asyncio.wait_for(work(api), seconds)

    asyncio.run(run())
