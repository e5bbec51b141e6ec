"""A broker with sessions that write down what is sent to them, without a connection under them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.authorization import ACTIONS, Action, PermissionRule, Roles, everything
from relaycast_gateway.wamp.broker import Broker
from relaycast_gateway.wamp.errors import WampError
from relaycast_gateway.wamp.history.rules import HistoryRule, HistoryRules
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.messages import (
    ErrorMessage,
    EventMessage,
    PublishedMessage,
    PublishMessage,
    SubscribedMessage,
    SubscribeMessage,
    UnsubscribedMessage,
    UnsubscribeMessage,
    WampMessage,
    message_of,
)


class CountingSerializer:
    """Encodes as JSON and counts how often it does."""

    def __init__(self, name: str = "json") -> None:
        self.name = name
        self.encoded = 0

    def encode(self, message: WampMessage) -> bytes:
        self.encoded += 1
        return msgspec.msgpack.encode(message.to_wire())


@dataclass(eq=False)
class Recorder:
    """A session that keeps the messages that it was sent."""

    identity: Identity
    serializer: CountingSerializer
    broker: Broker
    got: list[WampMessage] = field(default_factory=list)
    is_paused: bool = False
    message_bytes: int = 0
    requests: Iterator[int] = field(default_factory=lambda: count(1))

    def send(self, message: WampMessage) -> None:
        self.got.append(message)

    def send_bytes(self, data: bytes) -> None:
        self.got.append(message_of(msgspec.msgpack.decode(data)))

    def refuse(self, request_type: int, request: int, error: WampError) -> None:
        self.got.append(ErrorMessage(request_type, request, {}, error.uri, list(error.arguments)))

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def subscribe(self, topic: str, **options: Any) -> int:
        """Subscribe and return the id."""
        self.broker.subscribe(self, SubscribeMessage(next(self.requests), options, topic))
        answer = next(it for it in reversed(self.got) if isinstance(it, SubscribedMessage | ErrorMessage))
        assert isinstance(answer, SubscribedMessage), answer
        return answer.subscription

    def refused_subscribe(self, topic: str, **options: Any) -> str:
        """Subscribe in vain and return the error."""
        self.broker.subscribe(self, SubscribeMessage(next(self.requests), options, topic))
        answer = self.got.pop()
        assert isinstance(answer, ErrorMessage), answer
        return answer.error

    def unsubscribe(self, subscription: int) -> WampMessage:
        self.broker.unsubscribe(self, UnsubscribeMessage(next(self.requests), subscription))
        return next(it for it in reversed(self.got) if isinstance(it, UnsubscribedMessage | ErrorMessage))

    def publish(
        self, topic: str, args: list[Any] | bytes | None = None, kwargs: dict[str, Any] | None = None, **options: Any
    ) -> int:
        """Publish and return the number of the request."""
        request = next(self.requests)
        self.broker.publish(self, PublishMessage(request, options, topic, args, kwargs))
        return request

    def leave(self) -> None:
        self.broker.leave(self)

    def take(self) -> list[WampMessage]:
        """Return what came since the last time."""
        taken, self.got = self.got, []
        return taken

    @property
    def events(self) -> list[EventMessage]:
        return [it for it in self.got if isinstance(it, EventMessage)]

    @property
    def published(self) -> list[int]:
        """The publication ids of all acknowledgements."""
        return [it.publication for it in self.got if isinstance(it, PublishedMessage)]

    @property
    def errors(self) -> list[str]:
        return [it.error for it in self.got if isinstance(it, ErrorMessage)]


def kept(uri: str, match: str = "prefix", **options: Any) -> HistoryRule:
    """Return the rule of a history."""
    return HistoryRule(TopicPattern(uri, Match(match)), **options)


def doors(*closed: tuple[str, Action, str], disclosed: Sequence[str] = ()) -> Roles:
    """Return the roles ``user`` and ``admin``: everything is allowed but actions of a role on URIs that begin so."""
    every = frozenset(ACTIONS)

    def rules(name: str) -> Iterator[PermissionRule]:
        for role, action, prefix in closed:
            if role == name:
                yield PermissionRule(TopicPattern(prefix, Match.PREFIX), every - {action})
        for prefix in disclosed:
            yield PermissionRule(TopicPattern(prefix, Match.PREFIX), every, every)

    return Roles([everything(name, *rules(name)) for name in ("user", "admin")])


class Town:
    """A realm's broker, its log and its sessions."""

    def __init__(self, log: EventLog | None = None, **options: Any) -> None:
        self.clock = VirtualClock()
        self.log = log or EventLog.open(clock=self.clock)
        self.meta: list[tuple[str, list[Any]]] = []
        rules = options.pop("rules", HistoryRules([kept("kept.")]))
        roles = options.pop("roles", None) or doors()
        self.broker = Broker(
            options.pop("realm_name", "relaycast"),
            log=self.log,
            rules=rules,
            roles=roles,
            clock=self.clock,
            tell_meta=self.tell_meta,
            **options,
        )
        self.serializers = {name: CountingSerializer(name) for name in ("json", "msgpack", "cbor")}
        self.numbers = count(1)

    def tell_meta(self, topic: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        assert not kwargs
        self.meta.append((topic, args))
        self.broker.publish_internal(topic, args, kwargs)

    def session(self, authid: str = "ann", authrole: str = "user", serializer: str = "json") -> Recorder:
        identity = Identity(next(self.numbers), self.broker.realm_name, authid, authrole)
        return Recorder(identity, self.serializers[serializer], self.broker)

    async def settle(self) -> None:
        """Return when all that was published is stored and delivered."""
        while self.broker.waiting:
            await asyncio.sleep(0)
        self.log.purge()  # when this is done, all that was appended before was told
        for _ in range(5):
            await asyncio.sleep(0)


def in_town(visit: Callable[[Town], Awaitable[None]], **options: Any) -> None:
    """Run a test in a town of its own."""

    async def stay() -> None:
        town = Town(**options)
        town.broker.start()
        try:
            await visit(town)
        finally:
            await town.broker.stop()
            town.log.close()

    asyncio.run(stay())


def numbers(session: Recorder) -> list[Any]:
    """Return the first argument of each event that has one."""
    return [it.args[0] for it in session.events if it.args]
