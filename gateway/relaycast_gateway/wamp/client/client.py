"""A small client of WAMP for asyncio: call, register, publish, subscribe, over WebSocket or RawSocket.

    async with await WampClient.connect("ws://127.0.0.1:9944/wamp") as client:
        await client.subscribe("io.relaycast.data.published.", print, match="prefix")
        reply = await client.call("wamp.subscription.match", "io.relaycast.data.published.p2000")

What can go wrong:

    ConnectionError         there is no router, or it refuses the transport; also when it is lost meanwhile
    ├── SessionEnded        the router has ended the session, or the connection is gone; ``reason`` is a URI
    │   └── JoinRefused     the session did not begin: an unknown realm, a wrong proof
    WampError               a request was refused; the session goes on
"""

import asyncio
import logging
import ssl as tls
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from relaycast_gateway.wamp.authentication import MOST_ITERATIONS, MOST_KEY_BYTES, derived_key, sign
from relaycast_gateway.wamp.client.callee import ClientCallee, Procedure
from relaycast_gateway.wamp.client.values import (
    CONNECTION_LOST,
    CallReply,
    JoinRefused,
    ReceivedEvent,
    SessionEnded,
    event_of,
    reply_of,
)
from relaycast_gateway.wamp.client.wire import ClientWire, open_wire
from relaycast_gateway.wamp.errors import CLOSE_GOODBYE_AND_OUT, CLOSE_NORMAL, WampError, WampProtocolError
from relaycast_gateway.wamp.messages import (
    AbortMessage,
    AnyMessage,
    AuthenticateMessage,
    CallMessage,
    CancelMessage,
    ChallengeMessage,
    ErrorMessage,
    EventMessage,
    GoodbyeMessage,
    HelloMessage,
    InterruptMessage,
    InvocationMessage,
    PublishedMessage,
    PublishMessage,
    RegisteredMessage,
    RegisterMessage,
    ResultMessage,
    SubscribedMessage,
    SubscribeMessage,
    UnregisteredMessage,
    UnregisterMessage,
    UnsubscribedMessage,
    UnsubscribeMessage,
    WampMessage,
    WelcomeMessage,
)
from relaycast_gateway.wamp.serializers import serializer_named

LEAVING_SECONDS = 2.0
PATIENCE_SECONDS = 10.0

_FEATURES: dict[str, dict[str, dict[str, bool]]] = {
    "publisher": {"features": {"publisher_exclusion": True, "subscriber_blackwhite_listing": True}},
    "subscriber": {"features": {"pattern_based_subscription": True, "publisher_identification": True}},
    "caller": {"features": {"progressive_call_results": True, "call_canceling": True, "caller_identification": True}},
    "callee": {"features": {"progressive_call_results": True, "call_canceling": True}},
}


EventHandler = Callable[[ReceivedEvent], object]
OnAnswer = Callable[[Any], object]

_LOGGER = logging.getLogger(__name__)


class WampClient:
    """One session. ``connect`` opens it, ``leave`` or leaving ``async with`` closes it."""

    def __init__(self, wire: ClientWire, serializer: str) -> None:
        self._wire = wire
        self._serializer = serializer_named(serializer)
        self._requests = 0
        self._answers: dict[int, tuple[asyncio.Future[Any], OnAnswer | None]] = {}
        self._progress: dict[int, Callable[[CallReply], object]] = {}
        self._handlers: dict[int, list[EventHandler]] = {}
        self._callee = ClientCallee(self._send)
        self._reader: asyncio.Task[None] | None = None
        self.session = 0
        self.details: Mapping[str, Any] = {}
        """What WELCOME said: who the client is, what the router can do."""

        self.ended: SessionEnded | None = None
        """Why the session is over, ``None`` while it is open."""

    @classmethod
    async def connect(
        cls,
        url: str,
        realm: str = "relaycast",
        *,
        serializer: str = "msgpack",
        authid: str | None = None,
        ticket: str | None = None,
        secret: str | None = None,
        ssl: tls.SSLContext | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Self:
        """Open a session: anonymous, with a ``ticket``, or with the ``secret`` of WAMP-CRA.

        ``url`` is ``ws://host:port/wamp`` (``wss`` with TLS) or ``rs://host:port`` (``rss``). Raises ``JoinRefused``
        with the router's reason, and ``ConnectionError`` where there is no router.
        """
        try:
            async with asyncio.timeout(patience_seconds):
                client = cls(await open_wire(url, serializer_named(serializer).name, ssl), serializer)
                try:
                    await client._join(realm, authid, ticket, secret)
                except BaseException:
                    await client._wire.close()
                    raise
        except TimeoutError:
            raise ConnectionError(f"{url}: no session after {patience_seconds:g} seconds") from None
        client._reader = asyncio.create_task(client._read())
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.leave()

    async def call(
        self,
        procedure: str,
        *args: Any,
        on_progress: Callable[[CallReply], object] | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> CallReply:
        """Call a procedure; parts of its result go to ``on_progress``. A caller that is cancelled cancels the call."""
        progress: dict[str, Any] = {"receive_progress": True} if on_progress is not None else {}
        request = self._next()
        if on_progress is not None:
            self._progress[request] = on_progress
        message = CallMessage(request, {**progress, **(options or {})}, procedure, list(args), kwargs or None)
        try:
            found: ResultMessage = await self._ask(message, request)
        except asyncio.CancelledError:
            with suppress(ConnectionError):
                await self._send(CancelMessage(request, {}))
            raise
        finally:
            self._progress.pop(request, None)
        return reply_of(found)

    async def publish(
        self,
        topic: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        acknowledge: bool = True,
        **options: Any,
    ) -> int | None:
        """Publish an event; return its id once the router has it, ``None`` without ``acknowledge``."""
        request = self._next()
        asked = {"acknowledge": True, **options} if acknowledge else options
        message = PublishMessage(request, asked, topic, list(args) or None, dict(kwargs) if kwargs else None)
        if not acknowledge:
            await self._send(message)
            return None
        found: PublishedMessage = await self._ask(message, request)
        return found.publication

    async def subscribe(self, topic: str, handler: EventHandler, *, match: str = "exact", **options: Any) -> int:
        """Have ``handler`` called with each event, in order; return the id of the subscription."""
        request = self._next()
        asked = options if match == "exact" else {"match": match, **options}
        answered = self._ask(
            SubscribeMessage(request, asked, topic),
            request,
            lambda found: self._handlers.setdefault(found.subscription, []).append(handler),
        )
        found: SubscribedMessage = await answered
        return found.subscription

    async def unsubscribe(self, subscription: int) -> None:
        """End a subscription, for all its handlers."""
        request = self._next()
        await self._ask(UnsubscribeMessage(request, subscription), request)
        self._handlers.pop(subscription, None)

    async def register(self, procedure: str, handler: Procedure, **options: Any) -> int:
        """Offer a procedure; return the id of the registration."""
        request = self._next()
        answered = self._ask(
            RegisterMessage(request, options, procedure),
            request,
            lambda found: self._callee.procedures.__setitem__(found.registration, handler),
        )
        found: RegisteredMessage = await answered
        return found.registration

    async def unregister(self, registration: int) -> None:
        """Offer a procedure no more."""
        request = self._next()
        await self._ask(UnregisterMessage(request, registration), request)
        self._callee.procedures.pop(registration, None)

    async def leave(self) -> None:
        """Close the session; does nothing if it is over."""
        if self.ended is None:
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(LEAVING_SECONDS):
                    await self._send(GoodbyeMessage({}, CLOSE_NORMAL))
                    if self._reader is not None:
                        await asyncio.shield(self._reader)
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reader
        self._end(SessionEnded(CLOSE_NORMAL))
        await self._wire.close()

    async def until_ended(self) -> SessionEnded:
        """Wait until the session is over, and return why."""
        if self._reader is not None:
            await asyncio.wait({self._reader})
        assert self.ended is not None
        return self.ended

    async def _join(self, realm: str, authid: str | None, ticket: str | None, secret: str | None) -> None:
        methods = [name for name, proof in (("wampcra", secret), ("ticket", ticket)) if proof is not None]
        details: dict[str, Any] = {"roles": _FEATURES, "agent": "relaycast", "authmethods": methods or ["anonymous"]}
        if authid is not None:
            details["authid"] = authid
        await self._wire.send(self._serializer.encode(HelloMessage(realm, details)))
        while True:
            data = await self._wire.receive()
            if data is None:
                raise JoinRefused(CONNECTION_LOST, "the router has closed the connection")
            message = self._serializer.decode(data)
            if isinstance(message, WelcomeMessage):
                self.session, self.details = message.session, message.details
                return
            if isinstance(message, AbortMessage):
                raise JoinRefused(message.reason, str(message.details.get("message", "")))
            if not isinstance(message, ChallengeMessage):
                raise WampProtocolError(f"expected WELCOME, got a message of type {message.code}")
            proof = _proof(message, ticket, secret)
            await self._wire.send(self._serializer.encode(AuthenticateMessage(proof, {})))

    def _next(self) -> int:
        self._requests += 1
        return self._requests

    async def _send(self, message: WampMessage) -> None:
        if self.ended is not None:
            raise self.ended
        await self._wire.send(self._serializer.encode(message))

    async def _ask(self, message: WampMessage, request: int, on_answer: OnAnswer | None = None) -> Any:
        """Send a request and return its answer; ``on_answer`` is called before the next message is looked at."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[request] = answer, on_answer
        try:
            await self._send(message)
            return await answer
        finally:
            self._answers.pop(request, None)

    async def _read(self) -> None:
        ended = SessionEnded(CONNECTION_LOST, "the connection is gone")
        try:
            while (data := await self._wire.receive()) is not None:
                message = self._serializer.decode(data)
                if isinstance(message, AbortMessage | GoodbyeMessage):
                    ended = SessionEnded(message.reason, str(message.details.get("message", "")))
                    if isinstance(message, GoodbyeMessage) and message.reason != CLOSE_GOODBYE_AND_OUT:
                        await self._send(GoodbyeMessage({}, CLOSE_GOODBYE_AND_OUT))
                    break
                self._take(message)
        except WampProtocolError as error:
            ended = SessionEnded("wamp.error.protocol_violation", str(error))
        except ConnectionError:
            pass
        finally:
            self._end(ended)

    def _end(self, reason: SessionEnded) -> None:
        if self.ended is not None:
            return
        self.ended = reason
        for answer, _ in self._answers.values():
            if not answer.done():
                answer.set_exception(reason)
        self._callee.end()

    def _take(self, message: AnyMessage) -> None:
        match message:
            case EventMessage():
                for handler in tuple(self._handlers.get(message.subscription, ())):
                    _tell(handler, event_of(message))
            case ResultMessage() if message.details.get("progress") is True:
                on_progress = self._progress.get(message.request)
                if on_progress is not None:
                    _tell(on_progress, reply_of(message))
            case ErrorMessage():
                self._answer(message.request, WampError(message.error, *(message.args or ()), kwargs=message.kwargs))
            case InvocationMessage():
                self._callee.invoke(message)
            case InterruptMessage():
                self._callee.interrupt(message)
            case (
                ResultMessage()
                | PublishedMessage()
                | SubscribedMessage()
                | RegisteredMessage()
                | UnsubscribedMessage()
                | UnregisteredMessage()
            ):
                self._answer(message.request, message)
            case _:
                raise WampProtocolError(f"expected no message of type {message.code} here")

    def _answer(self, request: int, found: Any) -> None:
        answer, on_answer = self._answers.get(request, (None, None))
        if answer is None or answer.done():
            return
        if isinstance(found, WampError):
            answer.set_exception(found)
            return
        if on_answer is not None:
            on_answer(found)
        answer.set_result(found)


def _proof(challenge: ChallengeMessage, ticket: str | None, secret: str | None) -> str:
    if challenge.method == "ticket" and ticket is not None:
        return ticket
    if challenge.method != "wampcra" or secret is None:
        raise WampProtocolError(f"expected no challenge of {challenge.method!r}")
    text, salt = challenge.extra.get("challenge"), challenge.extra.get("salt")
    iterations, keylen = challenge.extra.get("iterations", 1_000), challenge.extra.get("keylen", 32)
    if not isinstance(text, str):
        raise WampProtocolError("CHALLENGE.Extra.challenge: expected text")
    if salt is None:
        return sign(text, secret.encode())
    if not isinstance(salt, str) or type(iterations) is not int or type(keylen) is not int:
        raise WampProtocolError("CHALLENGE.Extra: expected a text as salt, whole numbers as iterations and keylen")
    if not 0 < iterations <= MOST_ITERATIONS or not 0 < keylen <= MOST_KEY_BYTES:
        raise WampProtocolError(
            f"CHALLENGE.Extra: expected at most {MOST_ITERATIONS} iterations, {MOST_KEY_BYTES} bytes"
        )
    return sign(text, derived_key(secret, salt, iterations=iterations, keylen=keylen))


def _tell(handler: Callable[[Any], object], found: ReceivedEvent | CallReply) -> None:
    try:
        handler(found)
    except Exception:
        _LOGGER.exception("a handler of the client has failed; the session goes on")
