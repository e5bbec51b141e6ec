"""Sessions begin and end as the protocol says, and nothing that a client sends does more than end its own."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.wamp.memory_link import ROLES, MemoryClient
from gateway.wamp.running_router import running
from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.wamp.errors import NOT_AUTHORIZED, WampError
from relaycast_gateway.wamp.messages import (
    MOST_ID,
    AbortMessage,
    AuthenticateMessage,
    CallMessage,
    ErrorMessage,
    EventMessage,
    GoodbyeMessage,
    HelloMessage,
    PublishedMessage,
    PublishMessage,
    RegisterMessage,
    SubscribedMessage,
    SubscribeMessage,
    WampMessage,
    WelcomeMessage,
)
from relaycast_gateway.wamp.realm import Realm
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RouterConfig
from relaycast_gateway.wamp.session import GOODBYE_SECONDS, HANDSHAKE_SECONDS, Session, SessionState

VIOLATION = "wamp.error.protocol_violation"


def in_loop(scene: Callable[[Router, VirtualClock], Awaitable[None]], **changes: Any) -> None:
    """Run ``scene`` with a router that lets everybody in; ``changes`` are settings of its realm."""

    async def run() -> None:
        (realm,) = RouterConfig.default().realms
        async with running(RouterConfig((replace(realm, **changes),))) as (router, clock):
            await scene(router, clock)

    asyncio.run(run())


@pytest.mark.matrix("WAMP-62")
@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_a_session_is_opened_and_closed_by_the_client(serializer: str) -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        client = MemoryClient(router, serializer)
        welcome = client.join()
        assert welcome.session == client.session.id
        assert welcome.details["authrole"] == welcome.details["authmethod"] == "anonymous"
        client.say(GoodbyeMessage({}, "wamp.close.close_realm"))
        assert client.next(GoodbyeMessage).reason == "wamp.close.goodbye_and_out"
        assert client.link.is_closed
        assert client.session.state is SessionState.ENDED
        assert router.figures().sessions == 0

    in_loop(scene)


@pytest.mark.parametrize("methods", [None, [], ["magic", "anonymous"]])
def test_a_client_that_names_no_method_is_anonymous(methods: list[str] | None) -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        assert MemoryClient(router).join(authmethods=methods).details["authmethod"] == "anonymous"

    in_loop(scene)


@pytest.mark.matrix("WAMP-62")
def test_a_realm_that_is_not_here_is_refused() -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        client = MemoryClient(router)
        client.say(HelloMessage("elsewhere", {"roles": ROLES}))
        assert client.next(AbortMessage).reason == "wamp.error.no_such_realm"
        assert client.link.is_closed

    in_loop(scene)


@pytest.mark.matrix("WAMP-62")
def test_the_router_says_goodbye_to_all_when_it_stops() -> None:
    async def scene(router: Router, clock: VirtualClock) -> None:
        polite, silent, new = (MemoryClient(router) for _ in range(3))
        for client in (polite, silent):
            client.join()
        stopping = asyncio.ensure_future(router.stop())
        while not polite.waiting:
            await clock.advance(0)
        for client in (polite, silent):
            assert client.next(GoodbyeMessage).reason == "wamp.close.system_shutdown"
        assert new.next(AbortMessage).reason == "wamp.close.system_shutdown"
        polite.say(GoodbyeMessage({}, "wamp.close.goodbye_and_out"))
        assert polite.link.is_closed
        assert not polite.link.is_abandoned
        assert not silent.link.is_closed
        await clock.advance(GOODBYE_SECONDS)
        assert silent.link.is_abandoned
        await stopping
        assert [client.waiting for client in (polite, silent, new)] == [[], [], []]

    in_loop(scene)


def test_a_router_that_stops_lets_nobody_in() -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        await router.stop()
        client = MemoryClient(router)
        assert client.next(AbortMessage).reason == "wamp.close.system_shutdown"
        assert client.link.is_closed

    in_loop(scene)


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize(
    "message",
    [
        HelloMessage("relaycast", {"roles": ROLES}),  # a second one
        AuthenticateMessage("", {}),
        WelcomeMessage(1, {}),  # what only routers say
        PublishedMessage(1, 1),
        SubscribedMessage(1, 1),
        EventMessage(1, 1, {}),
    ],
)
def test_a_message_at_the_wrong_time_or_in_the_wrong_direction_ends_the_session(message: WampMessage) -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        other = MemoryClient(router)
        other.join()
        client = MemoryClient(router)
        client.join()
        client.say(message)
        assert client.next(AbortMessage).reason == VIOLATION
        assert client.link.is_closed
        other.say(SubscribeMessage(1, {}, "com.shop.price"))
        assert other.next(SubscribedMessage).request == 1

    in_loop(scene)


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize(
    "message",
    [
        SubscribeMessage(1, {}, "com.shop.price"),
        PublishMessage(1, {}, "com.shop.price"),
        CallMessage(1, {}, "com.shop.price"),
        GoodbyeMessage({}, "wamp.close.normal"),
        WelcomeMessage(1, {}),
        HelloMessage("relaycast", {}),  # names no role
        HelloMessage("relaycast", {"roles": {}}),
        HelloMessage("relaycast", {"roles": {"broker": {}}}),
        HelloMessage("relaycast", {"roles": {"caller": []}}),
        HelloMessage("relaycast", {"roles": {"caller": {"features": ["call_canceling"]}}}),
        HelloMessage("relaycast", {"roles": ROLES, "authmethods": "anonymous"}),
        HelloMessage("relaycast", {"roles": ROLES, "authid": 5}),
    ],
)
def test_a_session_begins_with_hello_and_nothing_else(message: WampMessage) -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        client = MemoryClient(router)
        client.say(message)
        assert client.next(AbortMessage).reason == VIOLATION
        assert client.link.is_closed
        client.say(HelloMessage("relaycast", {"roles": ROLES}))
        assert not client.waiting

    in_loop(scene)


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"[32]",
        b'[32,0,{},"com.shop.price"]',
        b'[32,-1,{},"com.shop.price"]',
        b'[32,9007199254740993,{},"com.shop.price"]',  # 2^53 + 1
        b'[32,1.5,{},"com.shop.price"]',
        b'[32,true,{},"com.shop.price"]',
        b'[32,"1",{},"com.shop.price"]',
        b"[34,1,0]",
        b"[999,1]",
        b"\xff\xfe",
    ],
)
def test_bytes_that_are_no_message_end_the_session(data: bytes) -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        client = MemoryClient(router)
        client.join()
        client.say_bytes(data)
        assert client.next(AbortMessage).reason == VIOLATION
        assert client.link.is_closed
        assert router.figures().sessions == 0

    in_loop(scene)


@pytest.mark.matrix("WAMP-66")
def test_request_ids_may_have_gaps_and_go_to_the_largest_by_default() -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        client = MemoryClient(router)
        client.join()
        for request in (7, 3, MOST_ID):
            client.say(SubscribeMessage(request, {}, f"com.shop.n{request}"))
            assert client.next(SubscribedMessage).request == request

    in_loop(scene)


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize("wrong", [1, 2, 4, MOST_ID])
def test_request_ids_count_up_from_1_where_that_is_asked_for(wrong: int) -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        client = MemoryClient(router)
        client.join()
        client.say(SubscribeMessage(1, {}, "com.shop.price"))
        client.say(PublishMessage(2, {"acknowledge": True}, "com.shop.price"))
        assert client.next(SubscribedMessage).request == 1
        client.say(RegisterMessage(wrong, {}, "com.shop.buy"))
        answers = [message for message in client.waiting if isinstance(message, AbortMessage)]
        assert [answer.reason for answer in answers] == [VIOLATION]
        assert answers[0].details["message"] == f"request id: got {wrong}, expected 3"

    in_loop(scene, sequential_request_ids=True)


def test_a_client_that_does_not_say_hello_in_time_is_sent_away() -> None:
    async def scene(router: Router, clock: VirtualClock) -> None:
        slow, quick = MemoryClient(router), MemoryClient(router)
        quick.join()
        await clock.advance(HANDSHAKE_SECONDS)
        assert slow.next(AbortMessage).reason == VIOLATION
        assert slow.link.is_closed
        assert not quick.link.is_closed

    in_loop(scene)


def test_a_session_whose_connection_is_lost_is_forgotten() -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        client = MemoryClient(router)
        client.join()
        assert len(router.realms["relaycast"].sessions) == 1
        client.session.lost()
        client.session.lost()
        assert not router.realms["relaycast"].sessions
        client.session.send(EventMessage(1, 1, {}))
        assert not client.waiting
        with pytest.raises(ConnectionResetError):
            await client.session.drain()

    in_loop(scene)


def test_a_defect_of_ours_ends_one_session_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Session, __: Any) -> None:
        raise RuntimeError("the inside of the router")

    async def scene(router: Router, _: VirtualClock) -> None:
        realm = router.realms["relaycast"]
        realm.handlers[CallMessage] = broken
        other, client = MemoryClient(router), MemoryClient(router)
        other.join()
        client.join()
        client.say(CallMessage(1, {}, "com.shop.price"))
        answer = client.next(AbortMessage)
        assert answer.reason == "wamp.error.router_failed"
        assert "inside" not in str(answer.details)
        assert not other.link.is_closed

    in_loop(scene)
    assert "the inside of the router" in caplog.text


@pytest.mark.parametrize("acknowledges", [True, False])
def test_a_refused_publication_is_answered_where_an_answer_is_asked_for(acknowledges: bool) -> None:
    def refuse(_: Session, __: Any) -> None:
        raise WampError(NOT_AUTHORIZED, "not there")

    async def scene(router: Router, _: VirtualClock) -> None:
        realm: Realm = router.realms["relaycast"]
        realm.handlers[PublishMessage] = refuse
        client = MemoryClient(router)
        client.join()
        client.say(PublishMessage(5, {"acknowledge": True} if acknowledges else {}, "com.shop.price"))
        if acknowledges:
            assert client.next(ErrorMessage) == ErrorMessage(16, 5, {}, NOT_AUTHORIZED, ["not there"])
        assert not client.waiting
        assert client.session.is_open

    in_loop(scene)


@pytest.mark.matrix("WAMP-13")
@pytest.mark.parametrize("has_history", [True, False])
def test_welcome_announces_event_history_where_there_is_one(has_history: bool) -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        features = MemoryClient(router).join().details["roles"]["broker"]["features"]
        assert features["event_history"] is has_history
        assert features["pattern_based_subscription"] is True

    in_loop(scene, **({} if has_history else {"history": ()}))


@pytest.mark.matrix("WAMP-72")
@pytest.mark.parametrize("announces", [False, True])
def test_welcome_has_the_role_of_a_callee_only_where_that_is_asked_for(announces: bool) -> None:
    async def scene(router: Router, _: VirtualClock) -> None:
        roles = MemoryClient(router).join().details["roles"]
        assert roles.keys() == ({"broker", "dealer", "callee"} if announces else {"broker", "dealer"})

    in_loop(scene, announce_callee=announces)
