"""Delivery over HTTP: one request for each event, acknowledged by a status of 2xx.

| answer | outcome |
|---|---|
| 2xx | accepted |
| 408, 425, 429, 5xx | another time, not before ``Retry-After`` |
| 410 | gone: the subscription stops |
| 3xx, not followed; other 4xx | refused |
| none: time-out, connection, TLS, a name that does not resolve | another time |

Reasons name the status or the failure; what a peer wrote and what was sent to it never stand in them.
Source: CloudEvents 1.0.2, "HTTP 1.1 Web Hooks for Event Delivery", section 2.2.
"""

import asyncio
import os
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiohttp import (
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSSLError,
    InvalidURL,
    ServerDisconnectedError,
)
from multidict import CIMultiDict
from yarl import URL

from relaycast_gateway.clock import Clock
from relaycast_gateway.delivery.http_connector import SharedSession
from relaycast_gateway.delivery.schedule import retry_after_seconds
from relaycast_gateway.delivery.sender import Accepted, Gone, Refused, Retryable, SendOutcome, Target
from relaycast_gateway.delivery.sink_guard import SinkGuard, SinkRefused
from relaycast_gateway.delivery.webhook import WebhookGrant, WebhookPace, WebhookRequest
from relaycast_gateway.delivery.wire_message import WireMessage

if TYPE_CHECKING:
    from aiohttp.client import _BaseRequestContextManager

USER_AGENT = "relaycast"

MOST_ANSWER_BYTES = 4_096
"""An answer's body is read so far and dropped; a longer one costs its connection."""

ANSWER_SECONDS = 1.0
"""A body that takes longer costs its connection."""

_RETRYABLE = frozenset({408, 425, 429})


class HttpSender:
    """Sends to one sink; connections are shared with all other sinks of the process."""

    def __init__(self, target: Target, guard: SinkGuard, clock: Clock) -> None:
        url = URL(target.sink, encoded=True)
        self._authorization = _authorization(target.secrets, url)
        self._url = url.with_user(None) if url.raw_user is not None else url
        self._method = str(target.settings.get("method", "POST"))
        self._headers = {**target.settings.get("headers", {}), **target.secrets.get("headers", {})}
        self._guard = guard
        self._clock = clock
        self._shared: SharedSession | None = None
        self._request = _webhook_request(target.settings)
        self._grant: WebhookGrant | None = None
        self._asking = asyncio.Lock()
        self._pace = WebhookPace(clock, needs_grant=self._request is not None)

    async def send(self, message: WireMessage) -> SendOutcome:
        headers = CIMultiDict(self._headers)
        for name, value in message.properties:
            headers[name] = str(value)
        if message.content_type is not None:
            headers["Content-Type"] = message.content_type
        try:
            if self._request is not None and self._grant is None:
                missing = await self._ask(self._request)
                if missing is not None:
                    return missing
            return await self._exchange(self._method, headers, message.body)
        except SinkRefused as error:
            return Retryable(f"the sink is refused: {error.reason}")
        except (InvalidURL, ValueError):
            return Refused("the request cannot be sent: its URL or a header is not valid")
        except (TimeoutError, ClientError, OSError) as error:
            return Retryable(_failure(error))

    def take_turn(self) -> float:
        """Keep the rate that the receiver set."""
        return self._pace.take_turn()

    def turn_ended(self) -> None:
        """End the request for a grant. If none was given, the next message asks again."""
        self._pace.asked()

    async def close(self) -> None:
        if self._shared is not None:
            shared, self._shared = self._shared, None
            await shared.give_back()

    async def _ask(self, request: WebhookRequest) -> SendOutcome | None:
        """Have the receiver allow deliveries; return the outcome for a message where it does not."""
        async with self._asking:
            if self._grant is not None:
                return None
            async with self._respond("OPTIONS", CIMultiDict(self._headers | request.headers), None) as response:
                status, answered = response.status, response.headers
                await self._drop_body(response)
            if status == 410 or status in _RETRYABLE or status >= 500:
                return self._outcome(status, answered)
            granted = request.granted(status, answered)
            if isinstance(granted, Retryable):
                return granted
            self._grant = granted
            self._pace.grant(granted)
            return None

    async def _exchange(self, method: str, headers: CIMultiDict[str], body: bytes) -> SendOutcome:
        async with self._respond(method, headers, body) as response:
            outcome = self._outcome(response.status, response.headers)
            await self._drop_body(response)
            return outcome

    def _respond(
        self, method: str, headers: CIMultiDict[str], body: bytes | None
    ) -> "_BaseRequestContextManager[ClientResponse]":
        if self._authorization is not None:
            headers["Authorization"] = self._authorization
        headers.setdefault("User-Agent", USER_AGENT)
        if self._shared is None:
            self._shared = SharedSession.take(self._guard)
        return self._shared.session.request(
            method,
            self._url,
            data=body,
            headers=headers,
            allow_redirects=False,
        )

    def _outcome(self, status: int, headers: Mapping[str, str]) -> SendOutcome:
        if 200 <= status < 300:
            return Accepted()
        if status == 410:
            return Gone("HTTP 410")
        if status in _RETRYABLE or status >= 500:
            after = retry_after_seconds(headers.get("Retry-After", ""), now_ns=self._clock.now_ns())
            return Retryable(f"HTTP {status}", after)
        return Refused(f"HTTP {status}" + (": redirects are not followed" if 300 <= status < 400 else ""))

    async def _drop_body(self, response: ClientResponse) -> None:
        """Read the rest of an answer, so that its connection can be used again, or give the connection up."""
        if response.content.is_eof():
            return
        alarm = self._clock.call_later(ANSWER_SECONDS, response.close)
        taken = 0
        try:
            while taken <= MOST_ANSWER_BYTES:
                chunk = await response.content.readany()
                if not chunk:
                    return
                taken += len(chunk)
        except (ClientError, OSError):
            pass
        finally:
            alarm.cancel()
        response.close()


def _authorization(secrets: Mapping[str, object], url: URL) -> str | None:
    if "accesstoken" in secrets:
        return f"Bearer {secrets['accesstoken']}"
    user, password = secrets.get("identifier"), secrets.get("secret")
    if user is None:
        user, password = url.user, url.password
    if user is None:
        return None
    return "Basic " + b64encode(f"{user}:{password or ''}".encode()).decode()


def _webhook_request(settings: Mapping[str, object]) -> WebhookRequest | None:
    origin, rate = settings.get("requestorigin"), settings.get("requestrate")
    return None if origin is None else WebhookRequest(str(origin), rate if isinstance(rate, int) else None)


def _failure(error: BaseException) -> str:
    """Say what failed, without anything that was sent or received."""
    match error:
        case ClientSSLError() | ssl.SSLError():
            return "TLS failed: the certificate or the handshake was not accepted"
        case ClientConnectorDNSError():
            return "cannot connect: the name does not resolve"
        case ClientConnectorError():
            return f"cannot connect: {os.strerror(error.os_error.errno or 0)}"
        case ServerDisconnectedError() | ConnectionResetError():
            return "the connection was closed without an answer"
    return f"no answer: {type(error).__name__}"
