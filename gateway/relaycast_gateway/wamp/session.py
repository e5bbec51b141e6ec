"""A session: what a client and the router say to each other, in the order that the protocol allows.

    HELLO -> [CHALLENGE -> AUTHENTICATE] -> WELCOME -> requests ... -> GOODBYE both ways

Law: a session ends by GOODBYE, by ABORT or with its connection, never by an exception. What the protocol does not allow
ends it with ``wamp.error.protocol_violation``. That is bytes that are no message, a message at the wrong time or in the
wrong direction, or an id out of range. A request that is refused is answered with ERROR, and the session goes on. Once
it has ended, nothing is sent and nothing that comes is looked at. Source: WAMP specification, "Sessions".
"""

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Protocol

from relaycast_gateway.clock import Alarm, Clock
from relaycast_gateway.wamp.authentication import ANONYMOUS, Authenticated, Authenticator, PendingProof
from relaycast_gateway.wamp.errors import (
    AUTHENTICATION_FAILED,
    CLOSE_GOODBYE_AND_OUT,
    NO_MATCHING_AUTH_METHOD,
    NO_SUCH_REALM,
    PROTOCOL_VIOLATION,
    WampError,
    WampProtocolError,
)
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.link import Link
from relaycast_gateway.wamp.messages import (
    MOST_ID,
    AbortMessage,
    AnyMessage,
    AuthenticateMessage,
    CallMessage,
    ChallengeMessage,
    ErrorMessage,
    GoodbyeMessage,
    HelloMessage,
    PublishMessage,
    RegisterMessage,
    SubscribeMessage,
    UnregisterMessage,
    UnsubscribeMessage,
    WampMessage,
    WelcomeMessage,
)
from relaycast_gateway.wamp.option_types import check_options

HANDSHAKE_SECONDS = 10.0
"""From the connection to WELCOME; a client that takes longer is sent away."""

GOODBYE_SECONDS = 2.0
"""For a client to answer GOODBYE."""

ROUTER_FAILED = "wamp.error.router_failed"
"""A defect of ours, not the client's; the log has it."""

NUMBERED = frozenset(
    {PublishMessage, SubscribeMessage, UnsubscribeMessage, CallMessage, RegisterMessage, UnregisterMessage}
)
"""Requests whose ids the client counts up."""

CLIENT_ROLES = ("publisher", "subscriber", "caller", "callee")

Handler = Callable[["Session", Any], None]

_LOGGER = logging.getLogger(__name__)


class MessageCoder(Protocol):
    """Turns messages into bytes and back."""

    @property
    def name(self) -> str: ...

    def encode(self, message: WampMessage, /) -> bytes: ...

    def decode(self, data: bytes, /) -> AnyMessage:
        """Return the message; raises ``WampProtocolError`` for bytes that are none."""
        ...


class SessionRealm(Protocol):
    """What a session needs of the realm that it joins."""

    @property
    def name(self) -> str: ...

    @property
    def authenticator(self) -> Authenticator: ...

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """What is called for each class of message that an open session may send."""
        ...

    @property
    def counts_requests(self) -> bool:
        """Whether ids of requests have to be 1, 2, 3 and so on."""
        ...

    def welcome_details(self, identity: Identity) -> dict[str, object]: ...

    def join(self, session: "Session") -> None: ...

    def leave(self, session: "Session") -> None: ...


class SessionState(Enum):
    """How far a session is."""

    NEW = "new"
    CHALLENGED = "challenged"
    OPEN = "open"
    CLOSING = "closing"
    """The router has said GOODBYE and waits for the client's."""

    ENDED = "ended"


class Session:
    """One client. ``receive`` takes what it sends, ``lost`` is called when its connection has ended by itself."""

    def __init__(
        self,
        session_id: int,
        link: Link,
        serializer: MessageCoder,
        *,
        realm_named: Callable[[str], SessionRealm | None],
        on_end: Callable[["Session"], None],
        clock: Clock,
        handshake_seconds: float = HANDSHAKE_SECONDS,
    ) -> None:
        self.id = session_id
        self.link = link
        self.serializer = serializer
        self.identity = Identity(session_id, "", "", "")
        """Empty until the session is open."""

        self.roles: Mapping[str, Mapping[str, Any]] = {}
        """The client's roles and their features, as HELLO announced them."""

        self.is_open = False
        self.message_bytes = 0
        """Length of the current message in bytes."""

        self._state = SessionState.NEW
        self._decode = serializer.decode
        self._encode = serializer.encode
        self._realm: SessionRealm | None = None
        self._realm_named = realm_named
        self._on_end = on_end
        self._clock = clock
        self._handlers = _BEGINNING
        self._pending: PendingProof | None = None
        self._expected = 0
        """The id of the next request, 0 where any is accepted."""

        self._alarm: Alarm | None = clock.call_later(handshake_seconds, self._out_of_time)

    @property
    def state(self) -> SessionState:
        """Return how far the session is."""
        return self._state

    def announces(self, role: str, feature: str) -> bool:
        """Return whether the client announced ``feature`` of its ``role``."""
        return self.roles.get(role, {}).get(feature) is True

    def receive(self, data: bytes) -> None:
        """Take one message, as it came."""
        if self._state is SessionState.ENDED:
            return
        self.message_bytes = len(data)
        try:
            message = self._decode(data)
            kind = type(message)
            if self._expected and kind in NUMBERED:
                self._count(message)
            check_options(message)
            handler = self._handlers.get(kind)
            if handler is None:
                handler = self._rare_handler(kind)
            handler(self, message)
        except WampError as refusal:
            self._refuse(message, refusal)
        except WampProtocolError as error:
            self.abort(PROTOCOL_VIOLATION, str(error))
        except Exception:
            _LOGGER.exception("session %d ends: a message could not be handled", self.id)
            self.abort(ROUTER_FAILED, "the router could not handle a message")

    def lost(self) -> None:
        """End the session without a word: its connection is gone."""
        self._finish()

    def send(self, message: WampMessage) -> None:
        """Send one message, if the session is open."""
        if self.is_open:
            self.link.send(self._encode(message))

    def send_bytes(self, data: bytes) -> None:
        """Send one message that was encoded for this session's serializer, if the session is open."""
        if self.is_open:
            self.link.send(data)

    def refuse(self, request_type: int, request: int, error: WampError) -> None:
        """Answer a request with ERROR."""
        self.send(
            ErrorMessage(request_type, request, {}, error.uri, list(error.arguments) or None, error.kwargs or None)
        )

    async def drain(self) -> None:
        """Return when the client has taken most of what was sent; raises ``ConnectionResetError`` when it is gone."""
        if not self.is_open:
            raise ConnectionResetError("the session has ended")
        await self.link.drain()

    def pause_reading(self) -> None:
        """Take no more messages from the client until ``resume_reading``; those that were read already still come."""
        self.link.pause_reading()

    def resume_reading(self) -> None:
        """Take messages again."""
        self.link.resume_reading()

    def end(self, reason: str, **details: Any) -> None:
        """Say GOODBYE; the connection closes when the client has answered, or has had time to."""
        if self._state is not SessionState.OPEN:
            if self._state in (SessionState.NEW, SessionState.CHALLENGED):
                self.abort(reason, str(details.get("message", "the router ends the session")))
            return
        self.link.send(self._encode(GoodbyeMessage(details, reason)))
        self._leave()
        self._state = SessionState.CLOSING
        self._handlers = _CLOSING
        self._expected = 0
        self._alarm = self._clock.call_later(GOODBYE_SECONDS, self._give_up)

    def abort(self, reason: str, message: str) -> None:
        """End the session at once with ABORT."""
        if self._state is SessionState.ENDED:
            return
        if self._state is not SessionState.CLOSING:
            self.link.send(self._encode(AbortMessage({"message": message}, reason)))
        self._finish()

    def _hello(self, message: HelloMessage) -> None:
        roles = _announced_roles(message.details.get("roles"))
        realm = self._realm_named(message.realm)
        if realm is None:
            self.abort(NO_SUCH_REALM, "expected the name of a realm of this router")
            return
        self.roles = roles
        offered, authid = message.details.get("authmethods") or [ANONYMOUS], message.details.get("authid")
        if not isinstance(offered, list):
            raise WampProtocolError("HELLO.Details.authmethods: expected a list")
        if authid is not None and not isinstance(authid, str):
            raise WampProtocolError("HELLO.Details.authid: expected text")
        self._realm = realm
        begun = realm.authenticator.begin(offered, authid, self.id)
        if begun is None:
            self.abort(NO_MATCHING_AUTH_METHOD, "no method of HELLO.Details.authmethods can be used here")
        elif isinstance(begun, PendingProof):
            self._pending = begun
            self._state = SessionState.CHALLENGED
            self._handlers = _CHALLENGED
            self.link.send(self._encode(ChallengeMessage(begun.method, begun.extra)))
        else:
            self._open(realm, begun)

    def _authenticate(self, message: AuthenticateMessage) -> None:
        assert self._realm is not None
        assert self._pending is not None
        found = self._pending.accept(message.signature)
        self._pending = None
        if found is None:
            self.abort(AUTHENTICATION_FAILED, "authid or proof are not right")
        else:
            self._open(self._realm, found)

    def _open(self, realm: SessionRealm, found: Authenticated) -> None:
        self._disarm()
        self.identity = Identity(
            self.id, realm.name, found.authid, found.authrole, found.authmethod, found.authprovider, found.principal
        )
        self._handlers = realm.handlers
        self._expected = 1 if realm.counts_requests else 0
        self._state = SessionState.OPEN
        self.is_open = True
        self.send(WelcomeMessage(self.id, realm.welcome_details(self.identity)))
        realm.join(self)

    def _goodbye(self, _: GoodbyeMessage) -> None:
        self.send(GoodbyeMessage({}, CLOSE_GOODBYE_AND_OUT))
        self._finish()

    def _ended(self, _: GoodbyeMessage | AbortMessage) -> None:
        self._finish()

    def _give_up(self) -> None:
        self.link.abandon()
        self._finish()

    def _count(self, message: Any) -> None:
        if message.request != self._expected:
            raise WampProtocolError(f"request id: got {message.request}, expected {self._expected}")
        self._expected = self._expected % MOST_ID + 1

    def _rare_handler(self, kind: type) -> Handler:
        """Return what to call for a message that ends the session, or that is not allowed."""
        if self._state is SessionState.OPEN and kind in _ENDINGS:
            return _ENDINGS[kind]
        if self._state is SessionState.CLOSING:
            return Session._ignore
        name = kind.__name__.removesuffix("Message").upper()
        raise WampProtocolError(f"{name} is not allowed here: the session is {self._state.value}")

    def _ignore(self, _: AnyMessage) -> None:
        """Take what a client has sent before it heard of the end."""

    def _refuse(self, message: AnyMessage, refusal: WampError) -> None:
        if isinstance(message, PublishMessage) and message.options.get("acknowledge") is not True:
            return
        request = getattr(message, "request", None)
        if request is None:
            self.abort(PROTOCOL_VIOLATION, str(refusal))
        else:
            self.refuse(message.code, request, refusal)

    def _out_of_time(self) -> None:
        self.abort(PROTOCOL_VIOLATION, "the session was not opened in time")

    def _leave(self) -> None:
        if self.is_open:
            self.is_open = False
            assert self._realm is not None
            self._realm.leave(self)

    def _finish(self) -> None:
        if self._state is SessionState.ENDED:
            return
        self._state = SessionState.ENDED
        self._disarm()
        self._handlers = _CLOSING
        self._pending = None
        self._leave()
        try:
            self.link.close()
        finally:
            self._on_end(self)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


_BEGINNING: Mapping[type, Handler] = {HelloMessage: Session._hello, AbortMessage: Session._ended}
_CHALLENGED: Mapping[type, Handler] = {AuthenticateMessage: Session._authenticate, AbortMessage: Session._ended}
_CLOSING: Mapping[type, Handler] = {GoodbyeMessage: Session._ended, AbortMessage: Session._ended}
_ENDINGS: Mapping[type, Handler] = {GoodbyeMessage: Session._goodbye, AbortMessage: Session._ended}


def _announced_roles(roles: object) -> dict[str, dict[str, Any]]:
    """Return the features of each role; raises ``WampProtocolError``."""
    if not isinstance(roles, dict) or not any(name in roles for name in CLIENT_ROLES):
        raise WampProtocolError(f"HELLO.Details.roles: expected an object with some of {', '.join(CLIENT_ROLES)}")
    found: dict[str, dict[str, Any]] = {}
    for name, role in roles.items():
        features = (role.get("features") or {}) if isinstance(role, dict) else None
        if not isinstance(features, dict):
            raise WampProtocolError("HELLO.Details.roles: expected an object for each role, and objects as features")
        found[name] = features
    return found
