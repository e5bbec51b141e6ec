"""Canisters in a process of their own: served on a port of this machine, and connected to a server of relaycast.

```python
async with CanisterHost.connected("http://127.0.0.1:9944", principal=me) as host:
    subscriber = EventSubscriber(me, host.wire, host.orchestrator)
    host.add(subscriber)
    await host.settled(subscriber.subscribe("com.example.feed", print, config=host.config))
```

Law: loopback only. Who reaches the port can claim any principal, so only this machine does; pages of browsers and
names that were made to lead here are refused. Calls go to the server that was named, and nowhere else.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

from aiohttp import ClientError, hdrs, web
from yarl import URL

from relaycast_gateway.clock import Clock, SystemClock
from relaycast_gateway.delivery.http_connector import guarded_session
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.icrc.canister import Answer, CallRefused, Canister, Promise
from relaycast_gateway.icrc.http.call_limits import ANSWER_SECONDS
from relaycast_gateway.icrc.http.http_wire import HttpWire
from relaycast_gateway.icrc.http.remote_calls import CALLER_HEADER, failure_text
from relaycast_gateway.icrc.names import SUBSCRIBER_URL
from relaycast_gateway.icrc16 import text
from relaycast_gateway.icrc_routes import ICRC_PATH, IcrcRoutes
from relaycast_gateway.principal import principal_of, principal_text
from relaycast_gateway.problem import Problem, problem_response
from relaycast_gateway.record import Headers

LOCALHOST = "localhost"
CLOSING_SECONDS = 2.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NoCanisterServer(Exception):
    """What answers at ``url`` is no server of canisters; ``got`` says what it is, ``status`` what it answered."""

    def __init__(self, url: str, got: str, status: int = 0) -> None:
        super().__init__(url, got, status)
        self.url = url
        self.got = got
        self.status = status

    def __str__(self) -> str:
        return f"{self.url}: got {self.got}, expected a server that runs: relaycast serve --face icrc"


class CanisterHost:
    """Serves the canisters that are given to ``add``; made by ``CanisterHost.connected``."""

    def __init__(self, server: str, token: str | None, clock: Clock) -> None:
        url = URL(server)
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError(f"expected a URL such as http://127.0.0.1:9944, got {server!r}")
        host = f"[{url.host}]" if ":" in url.host else url.host
        self._server = server.rstrip("/")
        self._token = token
        self._guard = SinkGuard([f"{host}:{url.port}"])
        self._runner: web.AppRunner | None = None
        self.wire = HttpWire(self._guard, clock)
        self.url = ""
        """Where the canisters are reached: what ``relaycast:subscriber:url`` says."""

        self.orchestrator = b""
        self.broadcasters: list[bytes] = []
        self.archivist: bytes | None = None
        self.principal = b""
        """As whom the server knows this process."""

    @classmethod
    @asynccontextmanager
    async def connected(
        cls,
        server: str,
        *,
        principal: bytes | None = None,
        token: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
    ) -> AsyncIterator["CanisterHost"]:
        """Listen, and learn who is served at ``server``; the port is closed behind the block.

        ``principal`` is the caller where the server asks for no token. Raises ``NoCanisterServer``, ``OSError`` for a
        port that cannot be had, and ``ValueError`` for a host that others can reach.
        """
        made = cls(server, token, clock or SystemClock())
        try:
            await made._learn(principal)
            await made._listen(host, port)
            yield made
        finally:
            await made._close()

    def add(self, canister: Canister) -> None:
        """Serve a canister."""
        self.wire.add(canister)

    @property
    def config(self) -> Headers:
        """What a subscription needs to say so that its subscriber is called here."""
        return ((SUBSCRIBER_URL, text(self.url)),)

    async def settled(self, promise: Promise[Answer]) -> Any:
        """Return the value of a promised answer; ``CallRefused`` where it is a refusal."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def settle(answer: Answer) -> None:
            if not future.done():
                future.set_result(answer)

        promise.then(settle)
        answer = await future
        if answer.refusal is not None:
            raise CallRefused(answer.refusal)
        return answer.value

    async def call(self, caller: bytes, callee: bytes, method: str, argument: object = None) -> Any:
        """Return what a canister answers; ``CallRefused`` where it does not."""
        promise: Promise[Answer] = Promise()
        self.wire.call(caller, callee, method, argument, promise.settle)
        return await self.settled(promise)

    async def _learn(self, principal: bytes | None) -> None:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        if principal is not None:
            headers[CALLER_HEADER] = principal_text(principal)
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                guarded_session(self._guard) as session,
                session.get(self._server + ICRC_PATH, headers=headers, allow_redirects=False) as response,
            ):
                found = await response.json() if response.status == 200 else None
                status = response.status
        except (ClientError, OSError, ValueError, RecursionError) as error:
            raise NoCanisterServer(self._server, failure_text(error)) from None
        if found is None:
            raise NoCanisterServer(self._server, f"the answer {status}", status)
        try:
            self.principal = principal_of(found["caller"])
            self.orchestrator = principal_of(found["orchestrator"]["principal"])
            self.broadcasters = [principal_of(each["principal"]) for each in found["broadcasters"]]
            archivist = found.get("archivist")
            self.archivist = None if archivist is None else principal_of(archivist["principal"])
        except (KeyError, TypeError, ValueError):
            raise NoCanisterServer(self._server, "an answer of another kind") from None
        for each in (self.orchestrator, *self.broadcasters, self.archivist):
            if each is not None:
                self.wire.remember(each, self._server, self._token)

    async def _listen(self, host: str, port: int) -> None:
        if host != LOCALHOST and not ip_address(host).is_loopback:
            raise ValueError(f"{host} can be reached by others: expected 127.0.0.1, ::1 or localhost")
        self.wire.begin()
        application = web.Application(middlewares=[_of_this_machine])
        IcrcRoutes(self.wire).add_to(application.router)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=CLOSING_SECONDS, handle_signals=False
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self._runner.addresses[0][1]}"

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self.wire.close()
        self._guard.close()


@web.middleware
async def _of_this_machine(request: web.Request, handler: Handler) -> web.StreamResponse:
    if not _leads_here(request.host) or hdrs.ORIGIN in request.headers:
        detail = "Host and Origin: expected localhost or an address, and no page of a browser"
        return problem_response(Problem("forbidden", 403, detail))
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return problem_response(Problem("notfound", 404, f"expected a path below {ICRC_PATH}"))
    except web.HTTPMethodNotAllowed as error:
        allow: dict[str, str] = {hdrs.ALLOW: error.headers.get(hdrs.ALLOW, "")}
        return problem_response(Problem("method", 405, error.reason), headers=allow)


def _leads_here(host: str) -> bool:
    """Return whether a ``Host`` is one that nobody can make lead elsewhere."""
    try:
        name = URL(f"//{host}").host or ""
        return name == LOCALHOST or bool(ip_address(name))
    except ValueError:
        return False
