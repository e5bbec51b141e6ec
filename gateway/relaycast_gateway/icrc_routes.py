"""The HTTP routes of canisters: calls with Candid bodies, interfaces, and the list of who is served.

| request | answer |
|---|---|
| ``POST /icrc/{principal}/{method}`` | the result in Candid |
| ``GET /icrc/{principal}/candid`` | the interface, a ``.did`` text |
| ``GET /icrc`` | the canisters of this server, in JSON |

Law: every answer that is no success is a problem document. A body is read up to its limit, then decoded within the
method's quota, and only then does the canister hear of the call. No caller claims the principal of a canister that is
served here.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import hdrs, web

from relaycast_gateway.candid import CandidError
from relaycast_gateway.icrc.canister import CallRefused, Canister, Promise
from relaycast_gateway.icrc.http.call_limits import (
    ANSWER_SECONDS,
    MOST_BODY_BYTES,
    MOST_CALLS_UNDER_WAY,
    decode_argument,
)
from relaycast_gateway.icrc.http.http_wire import HttpWire
from relaycast_gateway.icrc.http.remote_calls import CALLER_HEADER, CANDID
from relaycast_gateway.icrc.interface import CandidMethod, interface_text
from relaycast_gateway.principal import ANONYMOUS, principal_of, principal_text
from relaycast_gateway.problem import Problem, RequestRefused, problem_response
from relaycast_gateway.request_body import read_body

ICRC_PATH = "/icrc"
BODY_TYPES = (CANDID, "application/octet-stream")
INTERFACE_TYPE = "text/plain"

PrincipalOf = Callable[[web.Request], bytes]
"""Says whom a request comes from; raises ``RequestRefused``."""

Listing = Callable[[], Mapping[str, Canister | Sequence[Canister] | None]]
"""Gives the canisters of a server by what they are to it."""

Route = Callable[[web.Request], Awaitable[web.Response]]


def claimed_principal(request: web.Request) -> bytes | None:
    """Return the principal in a request's header, ``None`` without one; raises ``RequestRefused``."""
    given = request.headers.getall(CALLER_HEADER, [])
    if not given:
        return None
    try:
        if len(given) > 1:
            raise ValueError(f"expected one principal, got {len(given)}")
        return principal_of(given[0])
    except ValueError as error:
        raise refusal("malformed", 400, f"{CALLER_HEADER}: {error}") from None


def claimed_or_anonymous(request: web.Request) -> bytes:
    """Return the principal in a request's header, the anonymous one without it."""
    claimed = claimed_principal(request)
    return ANONYMOUS if claimed is None else claimed


def refusal(kind: str, status: int, detail: str) -> RequestRefused:
    return RequestRefused(Problem(kind, status, " ".join(detail.split())))


class IcrcRoutes:
    """Routes for an application; ``is_reserved`` says which principals nobody may claim, beside those served."""

    def __init__(
        self,
        wire: HttpWire,
        principal_of_request: PrincipalOf = claimed_or_anonymous,
        *,
        listing: Listing | None = None,
        is_reserved: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        self._wire = wire
        self._principal_of_request = principal_of_request
        self._listing = listing or (lambda: {"canisters": wire.canisters})
        self._is_reserved = is_reserved
        self._under_way = 0

    def add_to(self, dispatcher: web.UrlDispatcher) -> None:
        """Add the paths."""
        dispatcher.add_get(ICRC_PATH, _answering(self._list))
        dispatcher.add_get(ICRC_PATH + "/{principal}/candid", _answering(self._describe))
        dispatcher.add_post(ICRC_PATH + "/{principal}/{method}", _answering(self._call))

    async def _list(self, request: web.Request) -> web.Response:
        origin = str(request.url.origin())

        def shown(it: Canister | Sequence[Canister] | None) -> object:
            if it is None:
                return None
            return _entry(it, origin) if isinstance(it, Canister) else [_entry(each, origin) for each in it]

        found: dict[str, object] = {"caller": principal_text(self._caller(request))}
        found |= {name: shown(it) for name, it in self._listing().items()}
        return web.Response(body=json.dumps(found).encode(), content_type="application/json")

    async def _describe(self, request: web.Request) -> web.Response:
        text = interface_text(self._canister(request).role)
        return web.Response(text=text, content_type=INTERFACE_TYPE, headers={"X-Content-Type-Options": "nosniff"})

    async def _call(self, request: web.Request) -> web.Response:
        canister = self._canister(request)
        method = canister.interface.get(request.match_info["method"])
        if method is None:
            known, got = ", ".join(canister.interface), ascii(request.match_info["method"][:80])
            raise refusal("notfound", 404, f"there is no method {got} here, expected one of {known}")
        caller = self._caller(request)
        if caller == ANONYMOUS and not method.is_query:
            expected = f"expected a caller: a token, or the header {CALLER_HEADER} where the server asks for none"
            raise refusal("forbidden", 403, f"{method.name} refuses the anonymous principal: {expected}")
        if self._under_way >= MOST_CALLS_UNDER_WAY:
            raise refusal("too-many", 429, f"{MOST_CALLS_UNDER_WAY:,} calls are under way, expected fewer")
        self._under_way += 1
        try:
            return await self._answer(request, canister, method, caller)
        finally:
            self._under_way -= 1

    async def _answer(
        self, request: web.Request, canister: Canister, method: CandidMethod, caller: bytes
    ) -> web.Response:
        body = await _body(request)
        try:
            argument = decode_argument(method, body)
        except CandidError as error:
            raise refusal("candid", 400, f"the argument of {method.name}: {error}") from None
        try:
            result = self._wire.received(caller, canister.principal, method.name, argument)
            if isinstance(result, Promise):
                result = await _settled(result)
        except CallRefused as error:
            raise refusal("refused", 422, str(error)) from None
        except TimeoutError:
            raise refusal("unavailable", 503, f"{method.name} had no result within {ANSWER_SECONDS:g} s") from None
        return web.Response(body=method.encode_result(result), content_type=CANDID)

    def _caller(self, request: web.Request) -> bytes:
        found = self._principal_of_request(request)
        if self._wire.canister(found) is not None or self._is_reserved(found):
            raise refusal("forbidden", 403, f"{CALLER_HEADER}: {principal_text(found)} is this server's own")
        return found

    def _canister(self, request: web.Request) -> Canister:
        try:
            principal = principal_of(request.match_info["principal"])
        except ValueError as error:
            raise refusal("notfound", 404, str(error)) from None
        found = self._wire.canister(principal)
        if found is None:
            said = f"there is no canister {principal_text(principal)} here: GET {ICRC_PATH} lists them"
            raise refusal("notfound", 404, said)
        return found


def _entry(canister: Canister, origin: str) -> dict[str, object]:
    principal = principal_text(canister.principal)
    return {
        "principal": principal,
        "role": str(canister.role),
        "url": f"{origin}{ICRC_PATH}/{principal}",
        "methods": [{"name": it.name, "query": it.is_query} for it in canister.interface.values()],
    }


def _answering(answer: Route) -> Route:
    async def handle(request: web.Request) -> web.Response:
        try:
            return await answer(request)
        except RequestRefused as refused:
            return problem_response(refused.problem)

    return handle


async def _settled(promise: Promise[object]) -> object:
    """Return the value of a promise; ``TimeoutError`` where it takes too long."""
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def settle(value: object) -> None:
        if not future.done():
            future.set_result(value)

    promise.then(settle)
    async with asyncio.timeout(ANSWER_SECONDS):
        return await future


async def _body(request: web.Request) -> bytes:
    """Return a body of Candid; raises ``RequestRefused``."""
    given = request.headers.get(hdrs.CONTENT_TYPE)
    if not given or request.content_type not in BODY_TYPES:
        got = "none" if given is None else ascii(given)[:60]
        raise refusal("media-type", 415, f"Content-Type: got {got}, expected {' or '.join(BODY_TYPES)}")
    return await read_body(request, MOST_BODY_BYTES)
