"""Sessions in a realm that has a dealer, and says what sessions and registrations there are."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from itertools import count
from typing import Any, TypeVar

from gateway.wamp.memory_link import ROLES, MemoryLink
from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.wamp.authentication import Authenticator
from relaycast_gateway.wamp.authorization import Action, PermissionRule, Roles, everything
from relaycast_gateway.wamp.dealer import Dealer
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.messages import (
    CallMessage,
    CancelMessage,
    ErrorMessage,
    HelloMessage,
    InvocationMessage,
    RegisteredMessage,
    RegisterMessage,
    ResultMessage,
    UnregisterMessage,
    WampMessage,
    WelcomeMessage,
    YieldMessage,
)
from relaycast_gateway.wamp.meta.registration_meta import RegistrationMeta
from relaycast_gateway.wamp.meta.session_meta import SessionMeta
from relaycast_gateway.wamp.serializers import serializer_named
from relaycast_gateway.wamp.session import Handler, Session

Wanted = TypeVar("Wanted", bound=WampMessage)

ADD = "com.shop.add"
"""The procedure that ``met`` offers."""

FEATURES = ("call_canceling", "progressive_call_results")


def in_loop(scene: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""

    @wraps(scene)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(scene(*args, **kwargs))

    return run


def allowing(action: Action, uri: str) -> PermissionRule:
    """Return a rule that allows ``action`` for exactly this URI, and nothing else."""
    return PermissionRule(TopicPattern(uri), frozenset[Action]({action}))


def refusing(action: Action, *uris: str) -> list[PermissionRule]:
    """Return rules by which ``action`` alone is refused for these URIs."""
    others = frozenset[Action]({"publish", "subscribe", "call", "register"}) - {action}
    return [PermissionRule(TopicPattern(uri), others) for uri in uris]


class Dealt:
    """A realm with a virtual clock and one role, ``user``; ``told`` has its meta events."""

    def __init__(self, *rules: PermissionRule) -> None:
        self.name = "shop"
        self.counts_requests = False
        self.clock = VirtualClock()
        self.told: list[tuple[str, list[Any]]] = []
        self.authenticator = Authenticator((), anonymous_role="user", clock=self.clock)
        self.roles = Roles([everything("user", *rules)], closed=("io.relaycast.",))
        self.dealer = Dealer(roles=self.roles, clock=self.clock, tell_meta=self.tell)
        self.handlers: dict[type, Handler] = {
            RegisterMessage: self.dealer.register,
            UnregisterMessage: self.dealer.unregister,
            CallMessage: self.dealer.call,
            CancelMessage: self.dealer.cancel,
            YieldMessage: self.dealer.yield_,
            ErrorMessage: self.dealer.error,
        }
        self.sessions: dict[int, Session] = {}
        self.session_meta = SessionMeta(self.sessions, self.tell)
        self.session_meta.offer(self.dealer)
        RegistrationMeta(self.dealer.registrations).offer(self.dealer)
        self._ids = count(1_001)

    def welcome_details(self, identity: Identity) -> dict[str, object]:
        return {"authid": identity.authid}

    def join(self, session: Session) -> None:
        self.sessions[session.id] = session
        self.session_meta.joined(session)

    def leave(self, session: Session) -> None:
        del self.sessions[session.id]
        self.dealer.leave(session)
        self.session_meta.left(session)

    def tell(self, topic: str, args: list[Any], _: dict[str, Any]) -> None:
        self.told.append((topic, args))

    def told_of(self, kind: str) -> list[tuple[str, list[Any]]]:
        """Return the meta events of one kind, ``registration`` or ``session``."""
        return [it for it in self.told if it[0].split(".")[1] == kind]

    def client(self, *, features: tuple[str, ...] = FEATURES, serializer: str = "json") -> "DealtClient":
        """Return a client that has joined; ``features`` are those of its role as a callee."""
        return DealtClient(self, next(self._ids), features, serializer)


class DealtClient:
    """A client that does nothing by itself."""

    def __init__(self, realm: Dealt, number: int, features: tuple[str, ...], serializer: str) -> None:
        self.link = MemoryLink(serializer)
        self._serializer = serializer_named(serializer)
        self._requests = count(1)
        self.session = Session(
            number,
            self.link,
            self._serializer,
            realm_named=lambda _: realm,
            on_end=lambda _: None,
            clock=realm.clock,
        )
        callee = {"features": dict.fromkeys(features, True)}
        self.say(HelloMessage(realm.name, {"roles": {**ROLES, "callee": callee}}))
        self.authid = self.next(WelcomeMessage).details["authid"]

    @property
    def id(self) -> int:
        return self.session.id

    @property
    def waiting(self) -> list[Any]:
        """Return the messages that were not looked at yet."""
        return self.link.sent

    def say(self, message: WampMessage) -> None:
        """Send a message to the router."""
        self.session.receive(self._serializer.encode(message))

    def next(self, kind: type[Wanted]) -> Wanted:
        """Return the oldest message that was not looked at yet, which must be of this kind."""
        message = self.link.sent.pop(0)
        assert isinstance(message, kind), message
        return message

    def register(self, uri: str, **options: Any) -> int:
        """Offer a procedure and return the registration's id."""
        self.say(RegisterMessage(next(self._requests), options, uri))
        return self.next(RegisteredMessage).registration

    def call(self, uri: str, *args: Any, **options: Any) -> int:
        """Call a procedure and return the number of the request."""
        request = next(self._requests)
        self.say(CallMessage(request, options, uri, list(args)))
        return request

    def ask(self, uri: str, *args: Any, **kwargs: Any) -> ResultMessage | ErrorMessage:
        """Call a procedure that answers at once."""
        self.say(CallMessage(next(self._requests), {}, uri, list(args), kwargs or None))
        answer = self.link.sent.pop(0)
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

    def leave(self) -> None:
        """Lose the connection."""
        self.session.lost()


def met(dealt: Dealt, **options: Any) -> tuple[DealtClient, DealtClient]:
    """Return a caller, and a callee that offers ``ADD``."""
    caller, callee = dealt.client(), dealt.client()
    callee.register(ADD, **options)
    return caller, callee
