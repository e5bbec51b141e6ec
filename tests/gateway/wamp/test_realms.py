"""A realm as its clients meet it: what each role may do, and that other realms are out of reach."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.wamp.memory_link import MemoryClient
from gateway.wamp.running_router import running
from relaycast_gateway.clock import settle
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.authorization import ACTIONS, Action, PermissionRule, Role, everything
from relaycast_gateway.wamp.history import HistoryRule
from relaycast_gateway.wamp.messages import (
    CallMessage,
    ErrorMessage,
    EventMessage,
    PublishedMessage,
    PublishMessage,
    RegisteredMessage,
    RegisterMessage,
    ResultMessage,
    SubscribedMessage,
    SubscribeMessage,
    WampMessage,
)
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RealmConfig, RouterConfig

GET_EVENTS = "wamp.subscription.get_events"
LOOKUP = "wamp.subscription.lookup"
PRICES = "com.shop.price"


def rule(uri: str, match: str = "exact", *allow: Action) -> PermissionRule:
    return PermissionRule(TopicPattern(uri, Match(match)), frozenset(allow))


def in_loop(config: RouterConfig, scene: Callable[[Router], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(config) as (router, _):
            await scene(router)

    asyncio.run(run())


def realm(name: str, *rules: PermissionRule) -> RealmConfig:
    """Return a realm whose anonymous clients may do what ``rules`` say, and everything without rules."""
    role = Role("guest", rules) if rules else everything("guest")
    history = (HistoryRule(TopicPattern("com.", Match.PREFIX)),)
    return RealmConfig(name, roles=(role,), anonymous_role="guest", history=history)


def joined(router: Router, name: str) -> MemoryClient:
    client = MemoryClient(router)
    client.join(name)
    return client


async def answer(client: MemoryClient, message: WampMessage) -> Any:
    """Return the next message that comes after ``message`` was sent."""
    client.say(message)
    for _ in range(1_000):
        if client.waiting:
            return client.waiting.pop(0)
        await settle(1)
        await asyncio.sleep(0.001)  # the log's writer is a thread
    raise AssertionError("no answer")


async def published(client: MemoryClient, topic: str, *args: Any) -> int:
    got = await answer(client, PublishMessage(1, {"acknowledge": True}, topic, list(args)))
    assert isinstance(got, PublishedMessage), got
    return got.publication


async def called(client: MemoryClient, procedure: str, *args: Any, **kwargs: Any) -> Any:
    return await answer(client, CallMessage(2, {}, procedure, list(args), kwargs or None))


async def subscribed(client: MemoryClient, topic: str, match: str = "exact") -> int:
    got = await answer(client, SubscribeMessage(3, {"match": match}, topic))
    assert isinstance(got, SubscribedMessage), got
    return got.subscription


@pytest.mark.matrix("WAMP-73")
def test_ids_histories_and_anchors_of_another_realm_are_unknown() -> None:
    async def scene(router: Router) -> None:
        shop, mill = joined(router, "shop"), joined(router, "mill")
        ours, theirs = await subscribed(shop, "com.", "prefix"), await subscribed(mill, "com.", "prefix")
        hidden = await published(shop, PRICES, 5)
        seen = await published(mill, PRICES, 7)
        assert ours != theirs
        assert not [message for message in mill.waiting if isinstance(message, EventMessage)]

        history = await called(mill, GET_EVENTS, theirs)
        assert isinstance(history, ResultMessage)
        assert isinstance(history.args, list)
        assert [event["publication"] for event in history.args] == [seen]
        assert (await called(mill, GET_EVENTS, ours)).error == "wamp.error.no_such_subscription"
        anchored = await called(mill, GET_EVENTS, theirs, after_publication=hidden)
        assert anchored.error == "wamp.error.invalid_argument"
        assert (await called(mill, "wamp.session.get", shop.session.id)).error == "wamp.error.no_such_session"

    in_loop(RouterConfig((realm("shop"), realm("mill"))), scene)


@pytest.mark.matrix("WAMP-73")
def test_procedures_of_another_realm_are_unknown() -> None:
    async def scene(router: Router) -> None:
        shop, mill = joined(router, "shop"), joined(router, "mill")
        assert isinstance(await answer(shop, RegisterMessage(1, {}, "com.shop.buy")), RegisteredMessage)
        assert (await called(mill, "com.shop.buy")).error == "wamp.error.no_such_procedure"

    in_loop(RouterConfig((realm("shop"), realm("mill"))), scene)


@pytest.mark.matrix("WAMP-46", "WAMP-48")
def test_who_may_not_subscribe_gets_no_history() -> None:
    rules = (rule("", "prefix", "publish", "call"), rule("com.mill.", "prefix", *ACTIONS))

    async def scene(router: Router) -> None:
        client = joined(router, "shop")
        await published(client, PRICES, 5)
        number = router.realms["shop"].broker.subscriptions.lookup(TopicPattern("com.", Match.PREFIX))
        assert number is not None
        refusal = await called(client, GET_EVENTS, number.id)
        assert isinstance(refusal, ErrorMessage)
        assert refusal.error == "wamp.error.not_authorized"

    in_loop(RouterConfig((realm("shop", *rules),)), scene)


@pytest.mark.matrix("WAMP-47")
def test_who_may_call_the_procedure_by_name_gets_history_without_subscribing() -> None:
    rules = (rule("com.", "prefix", "publish"), rule(GET_EVENTS, "exact", "call"))

    async def scene(router: Router) -> None:
        client = joined(router, "shop")
        publication = await published(client, PRICES, 5)
        refusal = await answer(client, SubscribeMessage(3, {"match": "prefix"}, "com."))
        assert refusal.error == "wamp.error.not_authorized"
        kept = router.realms["shop"].broker.subscriptions.lookup(TopicPattern("com.", Match.PREFIX))
        assert kept is not None
        history = await called(client, GET_EVENTS, kept.id)
        assert [event["publication"] for event in history.args] == [publication]

    in_loop(RouterConfig((realm("shop", *rules),)), scene)


@pytest.mark.matrix("WAMP-48")
@pytest.mark.parametrize("procedure", [GET_EVENTS, LOOKUP, "wamp.session.kill", "com.shop.buy"])
def test_a_call_that_no_rule_allows_is_not_authorized(procedure: str) -> None:
    async def scene(router: Router) -> None:
        client = joined(router, "shop")
        assert (await called(client, procedure, 1)).error == "wamp.error.not_authorized"

    in_loop(RouterConfig((realm("shop", rule("com.shop.", "prefix", "publish", "subscribe", "register")),)), scene)


@pytest.mark.parametrize(
    ("message", "is_allowed"),
    [
        (PublishMessage(1, {"acknowledge": True}, "io.relaycast.block.imported"), False),
        (PublishMessage(1, {"acknowledge": True}, "wamp.session.on_join"), False),
        (RegisterMessage(1, {}, "io.relaycast.head"), False),
        (RegisterMessage(1, {"match": "prefix"}, "io."), False),
        (RegisterMessage(1, {"match": "wildcard"}, "..kill"), False),
        (RegisterMessage(1, {}, "wamp.session.kill"), False),
        (SubscribeMessage(1, {"match": "prefix"}, "io.relaycast."), True),
        (SubscribeMessage(1, {}, "wamp.session.on_join"), True),
    ],
)
def test_clients_read_what_is_the_routers_and_the_chains_own_and_never_write_it(
    message: WampMessage, is_allowed: bool
) -> None:
    async def scene(router: Router) -> None:
        got = await answer(joined(router, "relaycast"), message)
        assert isinstance(got, ErrorMessage) is not is_allowed
        assert is_allowed or got.error == "wamp.error.not_authorized"

    in_loop(RouterConfig.default(), scene)


def test_sessions_that_come_and_go_are_told_to_those_who_listen() -> None:
    async def scene(router: Router) -> None:
        listener = joined(router, "relaycast")
        await subscribed(listener, "wamp.session.", "prefix")
        other = joined(router, "relaycast")
        came = listener.next(EventMessage)
        assert came.details["topic"] == "wamp.session.on_join"
        assert isinstance(came.args, list)
        assert came.args[0]["session"] == other.session.id
        other.session.lost()
        went = listener.next(EventMessage)
        assert went.details["topic"] == "wamp.session.on_leave"
        assert isinstance(went.args, list)
        assert went.args[0] == other.session.id

    in_loop(RouterConfig.default(), scene)


def test_what_was_accepted_is_acknowledged_before_goodbye() -> None:
    async def run() -> None:
        async with running(RouterConfig((realm("shop"),))) as (router, _):
            client = joined(router, "shop")
            for request in range(1, 21):
                client.say(PublishMessage(request, {"acknowledge": True}, PRICES, [request]))
        kinds = [type(message).__name__ for message in client.waiting]
        assert kinds == ["PublishedMessage"] * 20 + ["GoodbyeMessage"]

    asyncio.run(run())


def test_a_router_with_as_many_sessions_as_it_takes_refuses_the_next() -> None:
    async def run() -> None:
        config = RouterConfig.default()
        async with running(replace(config, limits=replace(config.limits, most_sessions=2))) as (router, _):
            for _ in range(2):
                joined(router, "relaycast")
            late = MemoryClient(router)
            assert late.link.is_closed
            assert router.figures().sessions == 2

    asyncio.run(run())
