"""Sends over AMQP 1.0: the peer's disposition acknowledges; in settled mode the message counts when it is handed over.

Accepted is accepted; rejected is refused; released and modified may be taken another time. Schemes: ``amqp`` and
``amqps``. Redirections of a connection or a link are not followed.
"""

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from proton import Endpoint, Message, SSLDomain, timestamp
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, LinkOption

from relaycast_gateway.delivery.amqp_reactor import REACTOR
from relaycast_gateway.delivery.connected_sender import (
    CLOSE_SECONDS,
    CannotSend,
    ConnectedSender,
    SinkPlace,
    first_of,
    told,
)
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, SendOutcome
from relaycast_gateway.delivery.sink_address import host_and_port
from relaycast_gateway.delivery.wire_message import PropertyValue, WireMessage

HEARTBEAT_SECONDS = 30.0

PERMANENT = frozenset(
    {
        "amqp:not-found",
        "amqp:unauthorized-access",
        "amqp:not-allowed",
        "amqp:invalid-field",
        "amqp:not-implemented",
        "amqp:precondition-failed",
        "amqp:decode-error",
        "amqp:link:message-size-exceeded",
        "amqp:link:redirect",
        "amqp:connection:redirect",
    }
)
"""Conditions that no later attempt changes."""


class AmqpSender(ConnectedSender):
    """Sends over one link."""

    async def open(self, places: list[SinkPlace]) -> "AmqpConnection":
        return await first_of(places, self._connect)

    async def _connect(self, place: SinkPlace) -> "AmqpConnection":
        connection = AmqpConnection(self, place)
        try:
            await connection.opened
        except BaseException:
            await asyncio.shield(connection.close())
            raise
        return connection


class _LinkProperties(LinkOption):  # type: ignore[misc]
    def __init__(self, properties: dict[str, Any]) -> None:
        self._properties = properties

    def apply(self, link: Any) -> None:
        link.properties = self._properties


class AmqpConnection:
    """A link and the connection below it, as the event loop sees them."""

    def __init__(self, sender: AmqpSender, place: SinkPlace) -> None:
        self._loop = asyncio.get_running_loop()
        self._has_ended = False
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self._waiting: set[asyncio.Future[SendOutcome]] = set()
        self._link = _Link(self, sender, place)
        REACTOR.enter()
        REACTOR.do(self._link.begin)

    @property
    def is_open(self) -> bool:
        return not self._has_ended

    async def send(self, message: WireMessage) -> SendOutcome:
        waiting: asyncio.Future[SendOutcome] = self._loop.create_future()
        if self._has_ended:
            return Retryable("the peer closed the link")
        self._waiting.add(waiting)
        REACTOR.do(partial(self._link.take, _encoded(message), waiting))
        try:
            return await waiting
        finally:
            self._waiting.discard(waiting)

    async def close(self) -> None:
        self.end(Retryable("the sender is closed"))
        closed = self._loop.create_future()
        REACTOR.do(partial(self._link.finish, lambda: self.tell(_resolve, closed, None)))
        await asyncio.wait({closed}, timeout=CLOSE_SECONDS)
        if not closed.done():
            REACTOR.do(self._link.drop)
            await asyncio.wait({closed}, timeout=CLOSE_SECONDS)
        await self._loop.run_in_executor(None, REACTOR.leave)

    def tell(self, what: Any, *arguments: object) -> None:
        """Call something in the event loop, from the thread of the links."""
        with contextlib.suppress(RuntimeError):  # a loop that is gone needs no word
            self._loop.call_soon_threadsafe(what, *arguments)

    def begin(self) -> None:
        _resolve(self.opened, None)

    def end(self, outcome: SendOutcome) -> None:
        """Fail everything that still waits: the link is gone."""
        self._has_ended = True
        if not self.opened.done():
            self.opened.set_exception(CannotSend(outcome))
            self.opened.exception()  # it is read, even if nobody waits for it
        for waiting in self._waiting:
            _resolve(waiting, outcome)


class _Link(MessagingHandler):  # type: ignore[misc]
    """The link in the thread of the links: every method runs there."""

    def __init__(self, face: AmqpConnection, sender: AmqpSender, place: SinkPlace) -> None:
        super().__init__(prefetch=0)
        self._face = face
        self._place = place
        self._settings = sender.settings
        self._scheme = sender.address.scheme
        self._user, self._password = sender.user, sender.password
        self._is_settled = self._settings["sendersettlementmode"] == "settled"
        self._connection: Any = None
        self._sender: Any = None
        self._queue: deque[tuple[bytes, asyncio.Future[SendOutcome]]] = deque()
        self._sent: dict[str, asyncio.Future[SendOutcome]] = {}
        self._is_gone = False
        self._on_gone: Callable[[], None] | None = None

    def begin(self, container: Any) -> None:
        host, ip, port = self._place
        options: dict[str, Any] = {"allowed_mechs": "ANONYMOUS"}
        if self._user is not None:
            options = {"user": self._user, "password": self._password or "", "allowed_mechs": "PLAIN"}
        if self._scheme == "amqps":
            options["ssl_domain"] = _tls()
        try:
            self._connection = container.connect(
                f"{self._scheme}://{host_and_port(ip, port)}",
                handler=self,
                reconnect=False,
                heartbeat=HEARTBEAT_SECONDS,
                virtual_host=host,
                sni=host,
                **options,
            )
            link_options = [AtMostOnce() if self._is_settled else AtLeastOnce()]
            if self._settings.get("linkproperties"):
                link_options.append(_LinkProperties(self._settings["linkproperties"]))
            self._sender = container.create_sender(
                self._connection,
                target=self._settings["address"],
                name=self._settings.get("linkname"),
                options=link_options,
            )
        except Exception as error:
            self._face.tell(self._face.end, Retryable(f"no connection: {told(error)}"))

    def take(self, encoded: bytes, waiting: asyncio.Future[SendOutcome], _container: Any) -> None:
        largest = self._sender.remote_max_message_size
        if largest and len(encoded) > largest:
            refusal = Refused(f"the message has {len(encoded)} bytes, the peer takes {largest}")
            self._face.tell(_resolve, waiting, refusal)
            return
        self._queue.append((encoded, waiting))
        self._flush()

    def finish(self, on_gone: Callable[[], None], container: Any) -> None:
        """Close in order; ``on_gone`` is called when the peer has answered or the connection is lost."""
        self._on_gone = on_gone
        if self._connection is None or self._is_gone:
            on_gone()
        elif self._connection.state & Endpoint.REMOTE_ACTIVE:
            self._connection.close()
        else:
            self.drop(container)

    def drop(self, _container: Any) -> None:
        """End the connection without a word."""
        self._connection.close()
        transport = self._connection.transport
        if transport is None:
            self._gone()
            return
        transport.close_tail()
        transport.close_head()

    def on_link_opened(self, event: Any) -> None:
        if event.sender is not None and event.sender.remote_target.address is not None:
            self._face.tell(self._face.begin)

    def on_sendable(self, _event: Any) -> None:
        self._flush()

    def on_accepted(self, event: Any) -> None:
        self._settle(event, Accepted())

    def on_rejected(self, event: Any) -> None:
        condition = event.delivery.remote.condition
        why = "" if condition is None else f": {condition.name} {condition.description or ''}".rstrip()
        self._settle(event, Refused(f"the peer rejected the message{why}"))

    def on_released(self, event: Any) -> None:
        self._settle(event, Retryable("the peer released the message"))

    def on_connection_error(self, event: Any) -> None:
        self._end("the peer closed the connection", event.connection.remote_condition)

    def on_session_error(self, event: Any) -> None:
        self._end("the peer closed the session", event.session.remote_condition)

    def on_link_error(self, event: Any) -> None:
        self._end("the peer closed the link", event.link.remote_condition)

    def on_link_closed(self, _event: Any) -> None:
        self._end("the peer closed the link", None)

    def on_link_closing(self, _event: Any) -> None:
        self._end("the peer closed the link", None)

    def on_connection_closing(self, _event: Any) -> None:
        self._end("the peer closed the connection", None)

    def on_transport_error(self, event: Any) -> None:
        self._end("the connection failed", event.transport.condition)

    def on_transport_closed(self, event: Any) -> None:
        self._end("the connection is lost", event.transport.condition)
        self._gone()

    def _gone(self) -> None:
        self._is_gone = True
        if self._on_gone is not None:
            self._on_gone()

    def _flush(self) -> None:
        while self._queue and self._sender.credit > 0:
            encoded, waiting = self._queue.popleft()
            if waiting.done():
                continue
            delivery = self._sender.delivery(self._sender.delivery_tag())
            self._sender.stream(encoded)
            self._sender.advance()
            if self._is_settled:
                delivery.settle()
                self._face.tell(_resolve, waiting, Accepted())
            else:
                self._sent[delivery.tag] = waiting

    def _settle(self, event: Any, outcome: SendOutcome) -> None:
        waiting = self._sent.pop(event.delivery.tag, None)
        if waiting is not None:
            self._face.tell(_resolve, waiting, outcome)

    def _end(self, what: str, condition: Any) -> None:
        named = what if condition is None else f"{what}: {condition.name} {condition.description or ''}".rstrip()
        is_permanent = condition is not None and condition.name in PERMANENT
        self._face.tell(self._face.end, Refused(named) if is_permanent else Retryable(named))


def _tls() -> Any:
    """Return a domain that trusts what Python trusts, and compares names."""
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    paths = ssl.get_default_verify_paths()
    domain.set_trusted_ca_db(paths.cafile or paths.capath or paths.openssl_cafile)
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    return domain


def _encoded(message: WireMessage) -> bytes:
    sent = Message(body=message.body, inferred=True, durable=True)
    if message.content_type is not None:
        sent.content_type = message.content_type
    sent.properties = {name: _typed(value) for name, value in message.properties}
    encoded: bytes = sent.encode()
    return encoded


def _typed(value: PropertyValue) -> object:
    return timestamp(round(value.timestamp() * 1_000)) if isinstance(value, datetime) else value


def _resolve(waiting: asyncio.Future[Any], result: object) -> None:
    if not waiting.done():
        waiting.set_result(result)
