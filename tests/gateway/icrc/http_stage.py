"""Canisters that note what they are asked, a server for them on a free port, and a client that asks it."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.clock import Clock, SystemClock
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.icrc.canister import CallRefused, Canister, Handler
from relaycast_gateway.icrc.http.http_wire import HttpWire
from relaycast_gateway.icrc.http.remote_calls import CANDID
from relaycast_gateway.icrc.interface import CanisterRole, every_method
from relaycast_gateway.icrc_routes import IcrcRoutes, PrincipalOf, claimed_or_anonymous
from relaycast_gateway.principal import client_principal, principal_text

PROBLEM_TYPE = "application/problem+json"
NOTIFY, TRUSTED, STATS = (
    "icrc72_handle_notification",
    "icrc72_handle_notification_trusted",
    "icrc72_get_subscriber_stats",
)


def principal(name: str) -> bytes:
    return client_principal("test", name)


ALICE, BOB = principal("alice"), principal("bob")


class NotingSubscriber(Canister):
    """A subscriber that notes its notifications; ``answer`` says what a trusted one is answered."""

    role = CanisterRole.SUBSCRIBER

    def __init__(self, principal: bytes, wire: Any) -> None:
        self.noted: list[tuple[bytes, Any]] = []
        self.answer: Callable[[], object] = lambda: Variant("Ok", None)
        super().__init__(principal, wire)

    def handlers(self) -> Mapping[str, Handler]:
        return {NOTIFY: self._note, TRUSTED: self._trusted, STATS: lambda _caller, _argument: []}

    def _note(self, caller: bytes, argument: object) -> None:
        self.noted.append((caller, argument))

    def _trusted(self, caller: bytes, argument: object) -> object:
        self.noted.append((caller, argument))
        return self.answer()


def refusing(reason: str) -> Callable[[], object]:
    def refuse() -> object:
        raise CallRefused(reason)

    return refuse


def notification(number: int = 1, data: Variant | None = None) -> dict[str, object]:
    return {
        "id": number,
        "eventId": number,
        "prevEventId": None,
        "timestamp": 5,
        "namespace": "com.example.feed",
        "data": data or Variant("Nat", number),
        "headers": None,
        "source": Principal(BOB),
        "filter": None,
    }


@dataclass(slots=True)
class CallAnswer:
    status: int
    headers: Any
    data: bytes
    json: Any = None


@dataclass(slots=True)
class CallSite:
    """A server of canisters and its client."""

    wire: HttpWire
    url: str
    client: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> CallAnswer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent.setdefault("Content-Type", CANDID)
        given = None if body is None else io.BytesIO(body)
        async with self.client.request(method, self.url + path, data=given, headers=sent) as response:
            data = await response.read()
            kind = response.headers.get("Content-Type", "")
            return CallAnswer(
                response.status, response.headers, data, await response.json() if "json" in kind else None
            )

    async def call(
        self, canister: bytes, method: str, argument: object = None, *, caller: bytes | None = ALICE, **headers: str
    ) -> CallAnswer:
        if caller is not None:
            headers["Icrc_Caller"] = principal_text(caller)
        body = every_method()[method].encode_argument(argument)
        return await self.ask("POST", f"/icrc/{principal_text(canister)}/{method}", body, **headers)


@asynccontextmanager
async def call_site(
    *canister_names: str,
    allow: tuple[str, ...] = ("127.0.0.1",),
    clock: Clock | None = None,
    caller_of: PrincipalOf = claimed_or_anonymous,
) -> AsyncIterator[CallSite]:
    """Serve a ``NotingSubscriber`` for each name."""
    wire = HttpWire(SinkGuard(allow), clock or SystemClock())
    for name in canister_names:
        wire.add(NotingSubscriber(principal(name), wire))
    wire.begin()
    application = web.Application()
    IcrcRoutes(wire, caller_of).add_to(application.router)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=["Content-Type"]) as client:
        yield CallSite(wire, f"http://127.0.0.1:{runner.addresses[0][1]}", client)
    await runner.cleanup()
    await wire.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.002)
