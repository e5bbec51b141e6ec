"""The HTTP routes of the gateway: the manager's operations, dead letters, the service's description, figures.

Law: every answer that is no success is a problem document with a status of 4xx, or 503 where the disk fails. Nothing
is taken over from a body before all of it was read, parsed and found valid.
"""

import asyncio
import json
import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web

from relaycast_gateway.cloudevents.caller import Caller
from relaycast_gateway.cloudevents.config import is_whole, known_name, shown
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.operation_refused import NoSuchSubscription, OperationRefused
from relaycast_gateway.cloudevents.operations import JSON, MOST_LISTED, OPERATIONS, Operation, allowed
from relaycast_gateway.cloudevents.problem import problem_of
from relaycast_gateway.cloudevents.strict_json import MalformedJson, parse_json
from relaycast_gateway.cloudevents.subscription import EventSubscription
from relaycast_gateway.cloudevents.ulid import is_ulid
from relaycast_gateway.log import UnusableLog
from relaycast_gateway.problem import Problem, RequestRefused, problem_response
from relaycast_gateway.request_body import read_body

if TYPE_CHECKING:
    from relaycast_gateway.gateway import Gateway

MOST_BODY_BYTES = 32_768
MOST_REDELIVERED = 10_000
"""Dead letters that one request may name."""

LISTED_AT_ONCE = 64
"""Subscriptions encoded in one turn."""

OPERATORS_PATHS = ("/metrics",)
"""Paths that belong to no face."""

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_LOGGER = logging.getLogger(__name__)

CallerOf = Callable[[web.Request], Caller]
Answer = Callable[[web.Request, Caller], Awaitable[web.StreamResponse]]

_STATUS_OF_KIND = {
    401: "unauthorized",
    403: "forbidden",
    404: "notfound",
    405: "method",
    413: "too-large",
    429: "too-many",
}
_FIRST_SEGMENTS = frozenset({*(path.split("/")[1] for path in OPERATIONS), "icrc"})
_DIGITS = re.compile(r"[0-9]{1,18}")


class GatewayRoutes:
    """Routes for an application; ``caller_of`` returns the caller of a request.

    ``refused`` returns the number of requests beyond the rate limit, ``listener_failures`` that of failed listeners.
    """

    def __init__(
        self,
        gateway: "Gateway",
        caller_of: CallerOf,
        refused: Callable[[], int] = lambda: 0,
        listener_failures: Callable[[], int] = lambda: 0,
    ) -> None:
        self._listener_failures = listener_failures
        self._gateway = gateway
        self._caller_of = caller_of
        self._refused = refused

    def add_to(self, router: web.UrlDispatcher, paths: Collection[str] | None = None) -> None:
        """Add every path with its methods, or those ``paths`` alone."""
        for path, operations in OPERATIONS.items():
            if paths is not None and path not in paths:
                continue
            resource = router.add_resource(path)
            for method, operation in operations.items():
                handler = self._handler(getattr(self, f"_{operation.name}"))
                resource.add_route(method, handler)
                if method == hdrs.METH_GET:
                    resource.add_route(hdrs.METH_HEAD, handler)
            resource.add_route(hdrs.METH_OPTIONS, _options_of(path))

    def _handler(self, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await answer(request, self._caller_of(request))
            except RequestRefused as refused:
                return problem_response(refused.problem)
            except (InvalidMember, MalformedJson, OperationRefused) as error:
                return problem_response(problem_of(error))
            except (sqlite3.Error, UnusableLog) as error:
                _LOGGER.error("%s %s failed: %s", request.method, _resource_of(request), error)
                return problem_response(Problem("unavailable", 503, f"what the gateway keeps: {error}"))

        return handle

    async def _query_subscriptions(self, request: web.Request, caller: Caller) -> web.Response:
        found, headers = self._page(request, caller, OPERATIONS["/subscriptions"]["GET"])
        if not found and _wants_minimal(request):
            return web.Response(status=204, headers={"Preference-Applied": "return=minimal"})
        return await json_list(found, EventSubscription.shown, headers)

    async def _query_deliveries(self, request: web.Request, caller: Caller) -> web.Response:
        found, headers = self._page(request, caller, OPERATIONS["/deliveries"]["GET"])
        return await json_list(found, lambda it: self._fares(caller, it.id), headers)

    def _page(
        self, request: web.Request, caller: Caller, operation: Operation
    ) -> tuple[list[EventSubscription], dict[str, str]]:
        """Return the subscriptions that a query asks for, and the header that leads to more."""
        given = _parameters(request, operation)
        after = given.get("after", "")
        if after and not is_ulid(after):
            raise _bad_parameter("after", after, "the id of a subscription")
        limit = _whole(given, "limit", 1, MOST_LISTED) if "limit" in given else None
        found, has_more = self._gateway.book.query(
            caller, limit=limit, after=after, protocol=given.get("protocol"), event_type=given.get("type")
        )
        following = request.rel_url.update_query(after=found[-1].id) if has_more else None
        return found, {} if following is None else {hdrs.LINK: f'<{following}>; rel="next"'}

    async def _create_subscription(self, request: web.Request, caller: Caller) -> web.Response:
        made = await self._gateway.book.create(caller, await _body(request))
        location: dict[str, str] = {hdrs.LOCATION: f"/subscriptions/{made.id}", hdrs.ETAG: made.etag}
        return _json(made.shown(), status=201, headers=location)

    async def _retrieve_subscription(self, request: web.Request, caller: Caller) -> web.Response:
        found = self._gateway.book.retrieve(caller, request.match_info["id"])
        if found.etag in _tags(request.headers.get(hdrs.IF_NONE_MATCH, "")):
            return web.Response(status=304, headers={hdrs.ETAG: found.etag})
        return _tagged(found)

    async def _update_subscription(self, request: web.Request, caller: Caller) -> web.Response:
        subscription_id, if_match = request.match_info["id"], request.headers.get(hdrs.IF_MATCH)
        self._gateway.book.retrieve(caller, subscription_id)
        return _tagged(
            await self._gateway.book.update(caller, subscription_id, await _body(request), if_match=if_match)
        )

    async def _delete_subscription(self, request: web.Request, caller: Caller) -> web.Response:
        if_match = request.headers.get(hdrs.IF_MATCH)
        deleted = await self._gateway.book.delete(caller, request.match_info["id"], if_match=if_match)
        return _json(deleted.shown())

    async def _retrieve_delivery(self, request: web.Request, caller: Caller) -> web.Response:
        found = self._gateway.book.retrieve(caller, request.match_info["id"])
        return _json(self._gateway.fares(found.id))

    def _fares(self, caller: Caller, subscription_id: str) -> dict[str, Any]:
        return self._gateway.fares(self._gateway.book.retrieve(caller, subscription_id).id)

    async def _count_dead_letters(self, _request: web.Request, caller: Caller) -> web.Response:
        mine = self._gateway.book.query(caller)[0]
        counts = [(it.id, self._gateway.deliveries.state(it.id).dead) for it in mine]
        return _json([{"subscription": name, "dead": dead} for name, dead in counts if dead])

    async def _list_dead_letters(self, request: web.Request, caller: Caller) -> web.Response:
        found = self._gateway.book.retrieve(caller, request.match_info["id"])
        given = _parameters(request, OPERATIONS["/deadletters/{id}"]["GET"])
        limit = _whole(given, "limit", 1, MOST_LISTED) if "limit" in given else MOST_LISTED
        after = _whole(given, "after", 0, 10**18) if "after" in given else 0
        letters = self._gateway.dead_letters(found.id, after=after, limit=limit + 1)
        headers: dict[str, str] = {}
        if len(letters) > limit:
            letters = letters[:limit]
            headers[hdrs.LINK] = f'<{request.rel_url.update_query(after=str(letters[-1]["sequence"]))}>; rel="next"'
        return _json(letters, headers=headers)

    async def _redeliver(self, request: web.Request, caller: Caller) -> web.Response:
        found = self._gateway.book.retrieve(caller, request.match_info["id"])
        given = await _body(request) if request.body_exists else {}
        count = self._gateway.deliveries.redeliver(found.id, _sequences(given))
        return _json({"subscription": found.id, "redelivered": count})

    async def _describe_service(self, _request: web.Request, _caller: Caller) -> web.Response:
        return _json(self._gateway.service())

    async def _describe_interface(self, _request: web.Request, _caller: Caller) -> web.Response:
        return _json(self._gateway.interface())

    async def _metrics(self, _request: web.Request, caller: Caller) -> web.Response:
        from relaycast_gateway.metrics import metrics_text  # noqa: PLC0415 - loads the client of Prometheus

        figures = self._gateway.figures(caller, refused=self._refused(), listener_failures=self._listener_failures())
        text = await asyncio.to_thread(metrics_text, figures)
        return web.Response(body=text, headers={hdrs.CONTENT_TYPE: METRICS_TYPE})


def is_gateway_path(path: str) -> bool:
    """Return whether a path is one of the gateway's, or below one."""
    return path.split("/")[1:2] != [] and path.split("/")[1] in _FIRST_SEGMENTS


def refusal_response(status: int, detail: str, *, allow: str = "") -> web.Response:
    """Return the problem document of a request that never reached a route."""
    problem = Problem(_STATUS_OF_KIND.get(status, "malformed"), status, detail)
    return problem_response(problem, headers={hdrs.ALLOW: allow} if allow else {})


def _resource_of(request: web.Request) -> str:
    """Return the path of the table that a request asked for, without what a client wrote into it."""
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical


def _options_of(path: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def options(_request: web.Request) -> web.Response:
        return web.Response(status=204, headers={hdrs.ALLOW: allowed(path)})

    return options


async def json_list(
    found: Sequence[EventSubscription], shown: Callable[[EventSubscription], Any], headers: Mapping[str, str]
) -> web.Response:
    """Encode subscriptions with ``shown``, without those that are deleted meanwhile.

    A long list is encoded in parts; other tasks of the event loop run between them.
    """
    parts = list[bytes]()
    for number, it in enumerate(found, 1):
        with suppress(NoSuchSubscription):
            parts.append(_encoded(shown(it)))
        if number % LISTED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return web.Response(body=b"[" + b",".join(parts) + b"]", content_type=JSON, headers=headers)


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=_encoded(value), content_type=JSON, headers=headers)


def _tagged(subscription: EventSubscription) -> web.Response:
    return _json(subscription.shown(), headers={hdrs.ETAG: subscription.etag})


async def _body(request: web.Request) -> Any:
    """Return the JSON of a body; raises ``RequestRefused`` and ``MalformedJson``."""
    charset = (request.charset or "utf-8").lower()
    if request.content_type != JSON or charset not in {"utf-8", "utf8", "us-ascii"}:
        given = request.headers.get(hdrs.CONTENT_TYPE)
        got = "none" if given is None else shown(given)
        raise RequestRefused(Problem("media-type", 415, f"Content-Type: got {got}, expected {JSON}"))
    return parse_json(await read_body(request, MOST_BODY_BYTES))


def _parameters(request: web.Request, operation: Operation) -> dict[str, str]:
    """Return the parameters of the query, each at most once; raises ``RequestRefused`` for an unknown one."""
    names = [it.name for it in operation.parameters]
    found: dict[str, str] = {}
    for name, value in request.query.items():
        try:
            known_name("", name, names)
        except InvalidMember as error:
            raise RequestRefused(problem_of(error, kind="parameter")) from None
        if name in found:
            raise _bad_parameter(name, "it twice", "it once")
        found[name] = value
    return found


def _whole(given: dict[str, str], name: str, least: int, most: int) -> int:
    text = given[name]
    if not _DIGITS.fullmatch(text) or not least <= int(text) <= most:
        raise _bad_parameter(name, text, f"a whole number from {least} to {most}")
    return int(text)


def _bad_parameter(name: str, got: str, expected: str) -> RequestRefused:
    return RequestRefused(problem_of(InvalidMember(name, shown(got), expected), kind="parameter"))


def _sequences(given: object) -> list[int] | None:
    """Return the dead letters that a request names, ``None`` for all."""
    if not isinstance(given, dict):
        raise InvalidMember("the document", shown(given), "an object, or no body for all dead letters")
    for name in given:
        known_name("", name, ["sequences"])
    if "sequences" not in given:
        return None
    sequences = given["sequences"]
    if not isinstance(sequences, list) or len(sequences) > MOST_REDELIVERED:
        raise InvalidMember("sequences", shown(sequences), f"an array of at most {MOST_REDELIVERED:,} numbers")
    for at, each in enumerate(sequences):
        if not is_whole(each) or not 0 < each < 1 << 63:
            raise InvalidMember(f"sequences[{at}]", shown(each), "the sequence number of an event")
    return sequences


def _tags(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def _wants_minimal(request: web.Request) -> bool:
    preferences = (it.strip().lower() for it in request.headers.get("Prefer", "").split(","))
    return "return=minimal" in preferences
