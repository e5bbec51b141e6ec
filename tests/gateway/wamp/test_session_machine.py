"""Clients that send anything at any time: sessions end by the rules, and nobody else is harmed."""

import asyncio
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from gateway.wamp.memory_link import ROLES, MemoryClient
from gateway.wamp.running_router import running
from relaycast_gateway.clock import settle
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.authentication import WampUser
from relaycast_gateway.wamp.authorization import PermissionRule, everything
from relaycast_gateway.wamp.history import HistoryRule
from relaycast_gateway.wamp.messages import (
    MOST_ID,
    AbortMessage,
    AuthenticateMessage,
    CallMessage,
    CancelMessage,
    ChallengeMessage,
    ErrorMessage,
    EventMessage,
    EventReceivedMessage,
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
    YieldMessage,
)
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RealmConfig, RouterConfig
from relaycast_gateway.wamp.session import SessionState
from searches import examples

TICKET = "the ticket of ann"
KEPT_FROM_ALL = PermissionRule(TopicPattern("wamp.session.kill", Match.PREFIX))
REALM = RealmConfig(
    "shop",
    roles=(everything("guest", KEPT_FROM_ALL),),
    users=(WampUser.of("ann", "guest", ticket=TICKET),),
    anonymous_role="guest",
    history=(HistoryRule(TopicPattern("com.kept.", Match.PREFIX)),),
)

ids = st.sampled_from([1, 1, 2, 3, 7, MOST_ID])
wrong_ids: st.SearchStrategy[Any] = st.sampled_from([0, -1, MOST_ID + 1, 2.5, "1", None, True, [], {}])
uris = st.sampled_from(
    [
        "com.shop.price",
        "com.kept.price",
        "com.",
        "com..price",
        "",
        "a b",
        "wamp.session.count",
        "wamp.session.kill_all",
        "wamp.subscription.get_events",
        "wamp.registration.list",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
WORDS = """acknowledge match exclude eligible eligible_authrole disclose_me exclude_me invoke mode receive_progress
progress timeout roles authmethods authid message limit topic"""
names = st.sampled_from(WORDS.split())
options: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(
    names, st.sampled_from(["prefix", "wildcard", "kill", "skip", "roundrobin"]) | values, max_size=3
)
args = st.none() | st.lists(values, max_size=3)
kwargs = st.none() | st.dictionaries(names, values, max_size=2)
payloads = st.tuples(args, kwargs).map(
    lambda both: ([] if both[0] is None and both[1] is not None else both[0], both[1])
)

hellos = st.builds(
    lambda realm, more: HelloMessage(realm, {"roles": ROLES, **more}),
    st.sampled_from(["shop", "shop", "shop", "elsewhere", ""]),
    st.sampled_from([{}, {}, {"authmethods": ["ticket"], "authid": "ann"}, {"authmethods": ["magic"]}]) | options,
)
requests = st.one_of(
    st.builds(SubscribeMessage, ids, options, uris),
    st.builds(lambda number, given, uri, load: PublishMessage(number, given, uri, *load), ids, options, uris, payloads),
    st.builds(lambda number, given, uri, load: CallMessage(number, given, uri, *load), ids, options, uris, payloads),
    st.builds(RegisterMessage, ids, options, uris),
    st.builds(UnsubscribeMessage, ids, ids),
    st.builds(UnregisterMessage, ids, ids),
    st.builds(CancelMessage, ids, options),
    st.builds(EventReceivedMessage, ids),
)
answers = st.one_of(
    st.builds(lambda number, given, load: YieldMessage(number, given, *load), ids, options, payloads),
    st.builds(lambda number, uri: ErrorMessage(68, number, {}, uri), ids, uris),
)
others = st.one_of(
    st.builds(AuthenticateMessage, st.sampled_from([TICKET, "", "wrong"]), st.just({})),
    st.builds(GoodbyeMessage, options, uris),
    st.builds(AbortMessage, options, uris),
    st.builds(ErrorMessage, st.integers(-1, 80), ids, options, uris),
    st.sampled_from(
        [
            WelcomeMessage(1, {}),
            ChallengeMessage("ticket", {}),
            PublishedMessage(1, 1),
            SubscribedMessage(1, 1),
            UnsubscribedMessage(1),
            EventMessage(1, 1, {}),
            ResultMessage(1, {}),
            RegisteredMessage(1, 1),
            UnregisteredMessage(1),
            InvocationMessage(1, 1, {}),
            InterruptMessage(1, {}),
        ]
    ),
)
broken = st.one_of(
    st.binary(max_size=20),
    st.tuples(st.integers(-1, 340), wrong_ids | ids, options, uris).map(lambda parts: repr(list(parts)).encode()),
    st.sampled_from([b"[" * 200 + b"]" * 200, b"[1]", b'[32,1,{},"com.shop.price",[],{},5]', b'{"a":1}']),
)
steps = st.sampled_from([requests] * 12 + [answers, hellos, others, broken, st.just("lost")]).flatmap(lambda kind: kind)
scripts = st.lists(st.tuples(st.integers(0, 2), steps), min_size=5, max_size=25)

ENDING = (AbortMessage, GoodbyeMessage)


def check(client: MemoryClient) -> None:
    """Assert that a session that has ended said so, last of all, and has closed its link."""
    assert client.session.state is not SessionState.CLOSING
    ends = [at for at, message in enumerate(client.waiting) if isinstance(message, ENDING)]
    assert ends in ([], [len(client.waiting) - 1])
    assert client.link.is_closed is (client.session.state is SessionState.ENDED)
    if client.session.state is not SessionState.ENDED:
        assert not ends
    for message in client.waiting:
        if isinstance(message, AbortMessage):
            assert message.reason != "wamp.error.router_failed", message.details
            event(message.reason)
        elif isinstance(message, ErrorMessage):
            event(message.error)
        else:
            event(type(message).__name__)


def newcomer(router: Router, serializer: str, *, joins: bool) -> MemoryClient:
    client = MemoryClient(router, serializer)
    if joins:
        client.join("shop")
    return client


async def step(client: MemoryClient, what: Any) -> None:
    if isinstance(what, WampMessage):
        client.say(what)
    elif isinstance(what, bytes):
        client.say_bytes(what)
    else:
        client.session.lost()
    await settle(1)
    check(client)


async def works(bystander: MemoryClient, number: int) -> None:
    """Assert that a session is still served: what it publishes comes to itself."""
    bystander.waiting.clear()
    bystander.say(PublishMessage(number, {"exclude_me": False}, "org.bystander", [number]))
    await settle(1)
    got = bystander.next(EventMessage)
    assert got.args == [number]
    assert bystander.session.is_open


async def play(router: Router, serializer: str, script: list[tuple[int, Any]]) -> None:
    bystander = MemoryClient(router)
    bystander.join("shop")
    bystander.say(SubscribeMessage(1, {}, "org.bystander"))
    clients = [newcomer(router, serializer, joins=at > 0) for at in range(3)]
    for number, (at, what) in enumerate(script, 2):
        await step(clients[at], what)
        await works(bystander, number)
        if clients[at].session.state is SessionState.ENDED:
            clients[at] = newcomer(router, serializer, joins=at > 0)
    open_now = sum(1 for client in (*clients, bystander) if client.session.is_open)
    assert len(router.realms["shop"].sessions) == open_now
    assert router.figures().sessions == 4


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(["json", "msgpack", "cbor"]), scripts)
def test_whatever_clients_send_ends_their_own_sessions_only(serializer: str, script: list[tuple[int, Any]]) -> None:
    async def run() -> None:
        async with running(RouterConfig((REALM,))) as (router, _):
            await play(router, serializer, script)

    asyncio.run(run())
