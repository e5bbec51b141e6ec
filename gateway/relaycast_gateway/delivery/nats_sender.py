"""Sends over NATS: a stream's PubAck acknowledges where one takes the subject, else the server's answer to a flush.

Schemes: ``nats``, and ``tls``, which refuses a server without TLS. Servers of the cluster that a server announces
(``connect_urls``) are not used: a lost connection is opened again to the addresses of the sink.
"""

import asyncio
import contextlib
import ssl
from typing import Any

from nats import errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError

from relaycast_gateway.clock import SECOND, Clock
from relaycast_gateway.delivery.connected_sender import (
    CLOSE_SECONDS,
    CONNECT_SECONDS,
    SEND_SECONDS,
    CannotSend,
    ConnectedSender,
    SinkPlace,
    first_of,
    told,
)
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, SendOutcome, Target
from relaycast_gateway.delivery.sink_address import host_and_port
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.wire_message import WireMessage

LOOK_SECONDS = 60
"""How long it stays known whether a stream takes the subject."""

ANSWER_SECONDS = 2.0
"""How long a server may take to say so; one whose cluster has no leader says nothing."""

STREAM_TOO_SMALL = frozenset({10054})
"""Errors of JetStream that no later attempt changes: the message is larger than the stream allows."""

_CREDENTIALS = ("authorization", "authentication", "credentials")


class NatsSender(ConnectedSender):
    """Sends to one subject of one server or cluster."""

    def __init__(self, target: Target, guard: SinkGuard, clock: Clock) -> None:
        super().__init__(target, guard)
        self.clock = clock

    async def open(self, places: list[SinkPlace]) -> "NatsConnection":
        return await first_of(places, self._connect)

    async def _connect(self, place: SinkPlace) -> "NatsConnection":
        connection = NatsConnection(self)
        try:
            await connection.connect(place)
        except BaseException:
            await asyncio.shield(connection.close())
            raise
        return connection


class _PlainClient(Client):
    """A client that stays with its server, and in the clear only where that was asked for."""

    needs_tls = False

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        info.pop("connect_urls", None)
        if self.needs_tls and not info.get("tls_required"):
            raise errors.SecureConnWantedError
        await super()._process_info(info, initial_connection=initial_connection)


class NatsConnection:
    """A connection to a server."""

    def __init__(self, sender: NatsSender) -> None:
        self._sender = sender
        self._subject: str = sender.settings["subject"]
        self._client = _PlainClient()
        self._client.needs_tls = sender.address.scheme == "tls"
        self._denied: str | None = None
        self._said: Exception | None = None
        self._has_stream = False
        self._looked_ns: int | None = None
        self._looking = asyncio.Lock()
        self._is_denied = asyncio.Event()
        self._streams = JetStreamContext(self._client, timeout=ANSWER_SECONDS)

    @property
    def is_open(self) -> bool:
        return self._client.is_connected

    async def connect(self, place: SinkPlace) -> None:
        host, ip, port = place
        try:
            await self._client.connect(
                f"nats://{host_and_port(ip, port)}",
                error_cb=self._note,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=int(CONNECT_SECONDS),
                tls=ssl.create_default_context(),
                tls_hostname=host,
                name="relaycast",
                **self._credential(),
            )
        except (errors.Error, TimeoutError, ValueError) as error:
            cause = self._said if isinstance(error, errors.NoServersError) and self._said is not None else error
            if isinstance(cause, OSError):  # the next address may take a connection
                raise cause from error
            raise CannotSend(_refusal_of(cause)) from error

    async def send(self, message: WireMessage) -> SendOutcome:
        headers = {name: str(value) for name, value in message.properties}
        if message.content_type is not None:
            headers["Content-Type"] = message.content_type
        try:
            if await self._stream_takes_it():
                return await self._publish_to_stream(message.body, headers)
            return await self._publish(message.body, headers)
        except errors.MaxPayloadError:
            return Refused(f"the message has {len(message.body)} bytes, the server takes {self._client.max_payload}")
        except (errors.Error, TimeoutError) as error:
            return _refusal_of(error)

    async def close(self) -> None:
        seconds = CLOSE_SECONDS if self._client.is_connected else CLOSE_SECONDS / 10  # half a handshake has no end
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._client.close(), seconds)

    async def _publish(self, body: bytes, headers: dict[str, str]) -> SendOutcome:
        self._forget()
        await self._client.publish(self._subject, body, headers=headers)
        await self._client.flush(int(SEND_SECONDS))
        denied = self._denied
        return Accepted() if denied is None else Refused(denied)

    async def _publish_to_stream(self, body: bytes, headers: dict[str, str]) -> SendOutcome:
        try:
            await self._streams.publish(self._subject, body, timeout=SEND_SECONDS, headers=headers)
        except NoStreamResponseError:
            self._looked_ns = None
            return Retryable("the stream of the subject is gone")
        except APIError as error:
            reason = f"the stream refused the message: {error.description}"
            return Refused(reason) if error.err_code in STREAM_TOO_SMALL else Retryable(reason)
        return Accepted()

    async def _stream_takes_it(self) -> bool:
        """Return whether a stream is bound to the subject; where JetStream is absent or denied, none is."""
        async with self._looking:
            now = self._sender.clock.passed_ns()
            if self._looked_ns is None or now - self._looked_ns >= LOOK_SECONDS * SECOND:
                self._has_stream = await self._look()
                self._looked_ns = now
            return self._has_stream

    async def _look(self) -> bool:
        self._is_denied.clear()
        asked = asyncio.ensure_future(self._streams.find_stream_name_by_subject(self._subject))
        denied = asyncio.ensure_future(self._is_denied.wait())
        try:
            await asyncio.wait({asked, denied}, timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            return asked.done() and bool(asked.result())
        except (errors.Error, TimeoutError):
            return False
        finally:
            asked.cancel()
            denied.cancel()
            await asyncio.gather(asked, denied, return_exceptions=True)

    def _credential(self) -> dict[str, Any]:
        token = self._sender.target.secrets.get("accesstoken")
        user, password = self._sender.user, self._sender.password
        if token is None and user is not None and not password:
            token = user  # nats://TOKEN@host
        if token is not None:
            return {"token": str(token)}
        return {} if user is None else {"user": user, "password": password or ""}

    def _forget(self) -> None:
        self._denied = None

    async def _note(self, error: Exception) -> None:
        """Keep what the server says outside of any answer: denied permissions among it."""
        self._said = error
        self._is_denied.set()
        if f'publish to "{self._subject}"'.lower() in str(error).lower():
            self._denied = told(error)


def _refusal_of(error: Exception) -> SendOutcome:
    reason = told(error)
    if isinstance(error, errors.SecureConnWantedError):
        return Refused("the server offers no TLS, and the sink's scheme is tls")
    is_credential = isinstance(error, errors.AuthorizationError) or any(it in reason.lower() for it in _CREDENTIALS)
    return Refused(reason) if is_credential else Retryable(reason)
