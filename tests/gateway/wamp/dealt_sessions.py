"""Sessions of a dealer without connections: what a client is sent is kept as messages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.matching.topics import Match
from relaycast_gateway.wamp.dealer import Dealer
from relaycast_gateway.wamp.errors import WampError
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.messages import (
    AnyMessage,
    CallMessage,
    CancelMessage,
    ErrorMessage,
    InvocationMessage,
    RegisteredMessage,
    RegisterMessage,
    ResultMessage,
    UnregisterMessage,
    WampMessage,
    YieldMessage,
    message_of,
)
from relaycast_gateway.wamp.session_face import Action

Wanted = TypeVar("Wanted", bound=WampMessage)

FEATURES = frozenset({"call_canceling", "progressive_call_results"})


class JsonEncoder:
    def encode(self, message: WampMessage, /) -> bytes:
        return msgspec.json.encode(message.to_wire())


class KeptLink:
    """Takes messages up to a size."""

    serializer = "json"
    waiting_bytes = 0

    def __init__(self) -> None:
        self.transport: dict[str, object] = {}
        self.most_message_bytes = 1 << 20

    def send(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


class DealtSession:
    """A client of ``dealer``."""

    def __init__(self, dealer: Dealer, identity: Identity, features: frozenset[str] = FEATURES) -> None:
        self.id = identity.session
        self.identity = identity
        self.link = KeptLink()
        self.serializer = JsonEncoder()
        self.waiting: list[AnyMessage] = []
        self.drains = 0
        self._dealer = dealer
        self._features = features
        self._requests = 0

    def announces(self, role: str, feature: str) -> bool:
        return role == "callee" and feature in self._features

    def send(self, message: WampMessage, /) -> None:
        self.send_bytes(self.serializer.encode(message))

    def send_bytes(self, data: bytes, /) -> None:
        assert len(data) <= self.link.most_message_bytes
        self.waiting.append(message_of(msgspec.json.decode(data)))

    def refuse(self, request_type: int, request: int, error: WampError, /) -> None:
        self.send(
            ErrorMessage(request_type, request, {}, error.uri, list(error.arguments) or None, error.kwargs or None)
        )

    async def drain(self) -> None:
        self.drains += 1

    def next(self, kind: type[Wanted]) -> Wanted:
        """Return the oldest message that was not looked at yet, which must be of this kind."""
        message = self.waiting.pop(0)
        assert isinstance(message, kind), message
        return message

    def register(self, uri: str, **options: Any) -> int:
        """Offer a procedure and return the registration's id."""
        self.say(RegisterMessage(self._next(), options, uri))
        return self.next(RegisteredMessage).registration

    def call(self, uri: str, *args: Any, **options: Any) -> int:
        """Call a procedure and return the number of the request."""
        request = self._next()
        self.say(CallMessage(request, options, uri, list(args)))
        return request

    def ask(self, uri: str, *args: Any, **kwargs: Any) -> ResultMessage | ErrorMessage:
        """Call a procedure that answers at once."""
        self.say(CallMessage(self._next(), {}, uri, list(args), kwargs or None))
        answer = self.waiting.pop(0)
        assert isinstance(answer, ResultMessage | ErrorMessage)
        return answer

    def answer(self, *args: Any, **options: Any) -> None:
        """Answer the invocation that waits."""
        self.say(YieldMessage(self.next(InvocationMessage).request, options, list(args)))

    def refused(self, message: RegisterMessage | CallMessage) -> str:
        """Return the URI with which a request is refused."""
        self.say(message)
        error = self.next(ErrorMessage)
        assert (error.request_type, error.request) == (message.code, message.request)
        assert error.args
        assert isinstance(error.args[0], str), "an error says in words what is wrong"
        return error.error

    def say(self, message: AnyMessage) -> None:
        """Hand a message to the dealer, as a session does."""
        handlers: dict[type, Callable[..., None]] = {
            RegisterMessage: self._dealer.register,
            UnregisterMessage: self._dealer.unregister,
            CallMessage: self._dealer.call,
            CancelMessage: self._dealer.cancel,
            YieldMessage: self._dealer.yield_,
            ErrorMessage: self._dealer.error,
        }
        try:
            handlers[type(message)](self, message)
        except WampError as error:
            self.refuse(message.code, getattr(message, "request", 0), error)

    def leave(self) -> None:
        self._dealer.leave(self)

    def _next(self) -> int:
        self._requests += 1
        return self._requests


@dataclass(frozen=True)
class Granted:
    is_allowed: bool = True
    discloses: bool = False
    is_explicit: bool = False


class ListedRoles:
    """Allows everything that is not listed otherwise, by role, action and URI."""

    def __init__(self, listed: dict[tuple[str, str, str], Granted] | None = None) -> None:
        self.listed = listed or {}

    def permission(self, identity: Identity, action: Action, uri: str, match: Match = Match.EXACT) -> Granted:
        return self.listed.get((identity.authrole, action, uri), Granted())


class Dealt:
    """A dealer with a virtual clock, and what it told of registrations."""

    def __init__(self, roles: ListedRoles | None = None) -> None:
        self.clock = VirtualClock()
        self.told: list[tuple[str, list[Any]]] = []
        self.dealer = Dealer(
            roles=roles or ListedRoles(),
            clock=self.clock,
            tell_meta=lambda topic, args, _: self.told.append((topic, args)),
            reserved=("wamp.", "io.relaycast."),
        )
        self._sessions = 0

    def join(self, authrole: str = "user", *, features: frozenset[str] = FEATURES) -> DealtSession:
        self._sessions += 1
        number = self._sessions
        return DealtSession(self.dealer, Identity(1_000 + number, "relaycast", f"user{number}", authrole), features)
