"""The application: routes, checks and limits; what stands behind them comes from the rooms below.

``/`` is the relay chain and ``/para/{id}`` a parachain, each as JSON-RPC by POST and as WebSocket; for a browser ``/``
is the live page. ``/healthz`` and ``/readyz`` are for operators. What the gateway answers stands in its own routes.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import WSCloseCode, hdrs, web

from relaycast.refusal import shown
from relaycast.serve.access import Access
from relaycast.serve.faces import Faces
from relaycast.serve.live_feed import LiveFeed
from relaycast.serve.request_rates import Admission, RateExceeded, RequestRates
from relaycast.serve.socket import has_left, serve_socket
from relaycast_gateway.cloudevents.caller import Caller
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.listener import caller_at
from relaycast_gateway.request_body import BODY_SECONDS
from relaycast_gateway.rfc6455 import is_upgrade
from relaycast_gateway.routes import OPERATORS_PATHS, GatewayRoutes, is_gateway_path, refusal_response
from relaycast_gateway.wamp_routes import WAMP_PATH, WampRoutes
from relaycast_node.rpc.json_rpc import MOST_REQUEST_BYTES, JsonRpc, rate_exceeded, too_big_request
from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.session import RpcSession

if TYPE_CHECKING:
    from relaycast_gateway.icrc_face import GatewayCanisters

MOST_CONNECTIONS = 4_096
MOST_CONNECTIONS_OF_ONE = 2_048
"""WebSockets of one caller (``RequestRates``): half are left for others."""

"""Clients with a WebSocket at one time."""

MOST_WATCHERS = 256
"""Browsers that follow the live page at one time."""

_PROBES = frozenset({"/healthz", "/readyz"})
"""Paths without a rate limit: a monitor may share its address with a client that floods the server."""

JSON = "application/json"
PREFLIGHT_SECONDS = "600"
UNSAFE_PAGE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Application:
    """What the routes work with; a face that is ``None`` is not offered."""

    node: NodeFace | None
    feed: LiveFeed
    access: Access
    gateway: Gateway | None = None
    faces: Faces = field(default_factory=Faces)
    sockets: set[web.WebSocketResponse] = field(default_factory=set)
    _sockets_of: Counter[str] = field(default_factory=Counter, init=False)
    rates: RequestRates = field(default_factory=RequestRates)
    admit: Callable[[asyncio.Transport | None], None] = lambda _: None
    """Called with the connection of each admitted request."""

    def make(self) -> web.Application:
        """Return the aiohttp application."""
        made = web.Application(middlewares=[self._guard], client_max_size=MOST_REQUEST_BYTES)
        made.router.add_get("/", self._relay)
        if self.node is not None:
            made.router.add_post("/", self._relay_post)
            made.router.add_get("/para/{id}", self._parachain)
            made.router.add_post("/para/{id}", self._parachain_post)
        if self.gateway is not None:
            routes = GatewayRoutes(
                self.gateway,
                self._caller,
                lambda: self.rates.refused,
                lambda: self.feed.listener_failures,
            )
            routes.add_to(made.router, None if self.faces.cloudevents else OPERATORS_PATHS)
            if self.gateway.connections is not None:
                WampRoutes(self.gateway.connections).add_to(made.router)
            if self.gateway.icrc is not None:
                _add_canisters(made.router, self.gateway.icrc, self.access)
        made.router.add_get("/live", self._live)
        made.router.add_get("/healthz", _healthy)
        made.router.add_get("/readyz", self._ready)
        made.on_shutdown.append(self._close)
        return made

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get(hdrs.ORIGIN)
        refused = self.access.refusal(request.host, origin, request.headers.get(hdrs.AUTHORIZATION))
        is_preflight = request.method == hdrs.METH_OPTIONS and origin is not None
        proves_itself = is_preflight or request.path == WAMP_PATH  # a session does so, browsers send no header there
        is_gateways = self.gateway is not None and is_gateway_path(request.path)
        too_fast = None if request.path in _PROBES else self._admission(request)(1)
        if too_fast is None and refused is not None and not (proves_itself and refused[0] == 401):
            status, reason = refused
            plain = web.Response(status=status, text=f"{reason}\n")
            turned_away = refusal_response(status, reason) if is_gateways else plain
            if status == 401:
                turned_away.headers[hdrs.WWW_AUTHENTICATE] = 'Basic realm="relaycast", Bearer'
            return turned_away
        if too_fast is not None:
            slowed = _too_fast(request, too_fast, is_gateways=is_gateways)
            if refused is None:
                slowed.headers.update(_shared_with(origin))
            return slowed
        if is_preflight:
            asked = _PREFLIGHT_OF_GATEWAY if is_gateways else _PREFLIGHT
            return web.Response(status=204, headers=_shared_with(origin) | asked)
        if refused is None and request.path != WAMP_PATH:
            self.admit(request.transport)
        response = await _answered(request, handler, is_gateways=is_gateways)
        if origin is not None and not response.prepared:
            response.headers.update(_shared_with(origin))
            if is_gateways:
                response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = "allow, etag, link, location, retry-after"
        return response

    def _admission(self, request: web.Request) -> Admission:
        caller = self._rated_as(request)
        return lambda count: self.rates.take(caller, count)

    def _rated_as(self, request: web.Request) -> str:
        """Return whose limits count for a request: those of its token, or of its address if the token is unknown."""
        found = self.access.caller(request.headers.get(hdrs.AUTHORIZATION)) if self.access.tokens else None
        return caller_at(request.remote or "") if found is None else f"token {found.name}"

    def _caller(self, request: web.Request) -> Caller:
        found = self.access.caller(request.headers.get(hdrs.AUTHORIZATION))
        if found is None:
            raise web.HTTPUnauthorized(reason="expected a token of the token file")
        return found

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        if "text/html" in request.headers.get(hdrs.ACCEPT, "") and not is_upgrade(request):
            page = await self.feed.page(request.host, self._caller(request))
            return web.Response(text=page, content_type="text/html", headers=UNSAFE_PAGE)
        if self.node is None:
            raise web.HTTPNotAcceptable(reason="the chains are not served here, a browser gets a page")
        return await self._socket(request, self.node.relay)

    async def _relay_post(self, request: web.Request) -> web.Response:
        assert self.node is not None
        return await self._answer(request, self.node.relay)

    async def _parachain(self, request: web.Request) -> web.StreamResponse:
        return await self._socket(request, self._rpc_of(request))

    async def _parachain_post(self, request: web.Request) -> web.Response:
        return await self._answer(request, self._rpc_of(request))

    def _rpc_of(self, request: web.Request) -> JsonRpc:
        assert self.node is not None
        text = request.match_info["id"]
        known = sorted(self.node.clock.parachains)
        found = self.node.parachain(int(text)) if text.isdecimal() and len(text) <= 10 else None
        if found is None:
            raise web.HTTPNotFound(reason=f"no such parachain, expected one of {', '.join(map(str, known))}")
        return found

    async def _socket(self, request: web.Request, rpc: JsonRpc) -> web.StreamResponse:
        if not is_upgrade(request):
            reason = "this is JSON-RPC: POST a request with Content-Type: application/json, or open a WebSocket"
            raise web.HTTPNotAcceptable(reason=reason)
        if len(self.sockets) >= MOST_CONNECTIONS:
            raise web.HTTPServiceUnavailable(reason=f"Too many connections: the limit is {MOST_CONNECTIONS}")
        caller = self._rated_as(request)
        if self._sockets_of[caller] >= MOST_CONNECTIONS_OF_ONE:
            limit = f"the limit of one token or address is {MOST_CONNECTIONS_OF_ONE}"
            raise web.HTTPServiceUnavailable(reason=f"Too many connections: {limit}")
        admit = self._admission(request)
        session = RpcSession(admit=admit, denied=self._denied(request))
        self._sockets_of[caller] += 1
        try:
            return await serve_socket(request, rpc, session, self.sockets, admit)
        finally:
            self._sockets_of[caller] -= 1
            if not self._sockets_of[caller]:
                del self._sockets_of[caller]

    def _denied(self, request: web.Request) -> str | None:
        """Return the name of a caller who may not call ``dev_*``, ``None`` for an admin."""
        caller = self._caller(request)
        return None if caller.is_admin else caller.name

    async def _answer(self, request: web.Request, rpc: JsonRpc) -> web.Response:
        if request.content_type != JSON:
            raise web.HTTPUnsupportedMediaType(reason=f"Content-Type: got {request.content_type}, expected {JSON}")
        encoding = request.headers.get(hdrs.CONTENT_ENCODING, "identity")
        if encoding.lower() != "identity":
            raise web.HTTPUnsupportedMediaType(reason=f"Content-Encoding: got {shown(encoding)}, expected none")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                data = await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout(reason=f"the body: got part of one in {BODY_SECONDS:g} s") from None
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, body=too_big_request(), content_type=JSON)
        admission, excess = self._admission(request), list[RateExceeded]()

        def admit(count: int) -> RateExceeded | None:
            too_fast = admission(count)
            excess.extend(() if too_fast is None else (too_fast,))
            return too_fast

        session = RpcSession(
            subscribes=False, has_left=lambda: has_left(request), admit=admit, denied=self._denied(request)
        )
        answer = await rpc.answer(data, session)
        if excess:
            return _too_fast(request, excess[0], is_gateways=False)
        return web.Response(body=answer or b"", content_type=JSON)

    async def _live(self, request: web.Request) -> web.StreamResponse:
        if self.feed.watchers >= MOST_WATCHERS:
            raise web.HTTPServiceUnavailable(reason=f"Too many watchers: the limit is {MOST_WATCHERS}")
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "text/event-stream", hdrs.CACHE_CONTROL: "no-store"})
        await response.prepare(request)
        async with aclosing(self.feed.events(self._caller(request))) as events:
            async for event in events:
                await response.write(event)
        return response

    async def _ready(self, _request: web.Request) -> web.Response:
        trouble = None if self.gateway is None else self.gateway.trouble
        return web.Response(text="ok\n") if trouble is None else web.Response(status=503, text=f"{trouble}\n")

    async def _close(self, _app: web.Application) -> None:
        self.feed.close()
        closing = [
            socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server stops") for socket in tuple(self.sockets)
        ]
        await asyncio.gather(*closing, return_exceptions=True)


def _add_canisters(router: web.UrlDispatcher, face: "GatewayCanisters", access: Access) -> None:
    from relaycast.serve.icrc_caller import callers_of  # noqa: PLC0415 - only where the face is offered
    from relaycast_gateway.icrc_routes import IcrcRoutes  # noqa: PLC0415

    IcrcRoutes(face.wire, callers_of(access), listing=face.listing, is_reserved=face.is_reserved).add_to(router)


async def _answered(request: web.Request, handler: Handler, *, is_gateways: bool) -> web.StreamResponse:
    """Return the answer of ``handler``, or its error in the format of the path."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        if is_gateways:
            return refusal_response(error.status, error.reason, allow=error.headers.get(hdrs.ALLOW, ""))
        kept = {name: error.headers[name] for name in _KEPT_OF_A_REFUSAL if name in error.headers}
        return web.Response(status=error.status, text=f"{error.status}: {error.reason}\n", headers=kept)
    except ConnectionError:
        if not has_left(request):
            raise
        return web.Response(status=_CLIENT_LEFT)


_KEPT_OF_A_REFUSAL = (hdrs.ALLOW, hdrs.UPGRADE, hdrs.SEC_WEBSOCKET_VERSION)
_CLIENT_LEFT = 499
"""Never sent: the connection is gone."""


def _too_fast(request: web.Request, excess: RateExceeded, *, is_gateways: bool) -> web.Response:
    """Return the answer to a request beyond the rate, in the form that its path answers in."""
    if is_gateways:
        response = refusal_response(429, str(excess))
    elif request.method == hdrs.METH_POST:
        response = web.Response(status=429, body=rate_exceeded(None, str(excess)), content_type=JSON)
    else:
        response = web.Response(status=429, text=f"{excess}\n")
    response.headers[hdrs.RETRY_AFTER] = str(excess.retry_seconds)
    return response


async def _healthy(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _shared_with(origin: str | None) -> dict[str, str]:
    return {} if origin is None else {hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin, hdrs.VARY: hdrs.ORIGIN}


_PREFLIGHT = {
    hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST",
    hdrs.ACCESS_CONTROL_ALLOW_HEADERS: "authorization, content-type",
    hdrs.ACCESS_CONTROL_MAX_AGE: PREFLIGHT_SECONDS,
    "Access-Control-Allow-Private-Network": "true",
}

_PREFLIGHT_OF_GATEWAY = _PREFLIGHT | {
    hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST, PUT, DELETE",
    hdrs.ACCESS_CONTROL_ALLOW_HEADERS: "authorization, content-type, icrc-caller, if-match, if-none-match, prefer",
}
