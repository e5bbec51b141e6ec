"""A connection in memory, for tests of sessions and of what answers them."""

from typing import Any, TypeVar

from relaycast_gateway.wamp.messages import AnyMessage, HelloMessage, WampMessage, WelcomeMessage
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.serializers import serializer_named
from relaycast_gateway.wamp.session import Session

ROLES: dict[str, Any] = {"publisher": {}, "subscriber": {}, "caller": {}, "callee": {}}

Wanted = TypeVar("Wanted", bound=WampMessage)


class MemoryLink:
    """Keeps what is sent, in order."""

    def __init__(self, serializer: str = "json") -> None:
        self.serializer = serializer
        self.transport: dict[str, object] = {"kind": "memory", "serializer": serializer}
        self.waiting_bytes = 0
        self.most_message_bytes = 16 << 20
        self.is_closed = False
        self.is_abandoned = False
        self.is_paused = False
        self.sent: list[AnyMessage] = []

    def send(self, data: bytes) -> None:
        if not self.is_closed:
            self.sent.append(serializer_named(self.serializer).decode(data))

    async def drain(self) -> None:
        if self.is_closed:
            raise ConnectionResetError

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        self.is_closed = True

    def abandon(self) -> None:
        self.is_closed = self.is_abandoned = True


class MemoryClient:
    """A client with a session of ``router``, and no behaviour of its own."""

    def __init__(self, router: Router, serializer: str = "json") -> None:
        self.link = MemoryLink(serializer)
        self.session: Session = router.attach(self.link)

    def say(self, message: WampMessage) -> None:
        """Send a message to the router."""
        self.session.receive(serializer_named(self.link.serializer).encode(message))

    def say_bytes(self, data: bytes) -> None:
        self.session.receive(data)

    def join(self, realm: str = "relaycast", **details: Any) -> WelcomeMessage:
        """Say HELLO as an anonymous client and return WELCOME."""
        self.say(HelloMessage(realm, {"roles": ROLES, **details}))
        return self.next(WelcomeMessage)

    def next(self, kind: type[Wanted]) -> Wanted:
        """Return the oldest message that was not looked at yet, which must be of this kind."""
        message = self.link.sent.pop(0)
        assert isinstance(message, kind), message
        return message

    @property
    def waiting(self) -> list[AnyMessage]:
        """Return the messages that were not looked at yet."""
        return self.link.sent
