"""Clients ask who else is there, and those who may end sessions."""

from typing import Any

import pytest

from gateway.wamp.dealt_sessions import Dealt, DealtClient, in_loop, refusing
from relaycast_gateway.wamp.errors import (
    CLOSE_NORMAL,
    INVALID_ARGUMENT,
    INVALID_URI,
    NO_SUCH_REGISTRATION,
    NO_SUCH_SESSION,
    NOT_AUTHORIZED,
)
from relaycast_gateway.wamp.messages import CallMessage, ErrorMessage, GoodbyeMessage, ResultMessage


def asked(client: DealtClient, uri: str, *args: Any, **kwargs: Any) -> Any:
    """Return the one thing that a procedure answers with, ``None`` where it answers with nothing."""
    answer = client.ask(uri, *args, **kwargs)
    assert isinstance(answer, ResultMessage), answer
    assert answer.kwargs is None
    return answer.args[0] if answer.args else None


def refusal(client: DealtClient, uri: str, *args: Any, **kwargs: Any) -> str:
    answer = client.ask(uri, *args, **kwargs)
    assert isinstance(answer, ErrorMessage), answer
    return answer.error


@in_loop
async def test_sessions_are_counted_listed_and_described() -> None:
    dealt = Dealt()
    first, second = dealt.client(), dealt.client()
    assert asked(first, "wamp.session.count") == 2
    assert asked(first, "wamp.session.list") == [first.id, second.id]
    assert asked(first, "wamp.session.count", ["user", "admin"]) == 2
    assert asked(first, "wamp.session.count", ["admin"]) == 0
    assert asked(first, "wamp.session.list", ["admin"]) == []
    assert asked(first, "wamp.session.get", second.id) == {
        "session": second.id,
        "authid": second.authid,
        "authrole": "user",
        "authmethod": "anonymous",
        "authprovider": second.session.identity.authprovider,
        "transport": second.link.transport,
    }
    second.leave()
    assert asked(first, "wamp.session.count") == 1
    assert refusal(first, "wamp.session.get", second.id) == NO_SUCH_SESSION


@pytest.mark.parametrize(
    ("uri", "args", "expected"),
    [
        ("wamp.session.get", (), INVALID_ARGUMENT),
        ("wamp.session.get", ("x",), INVALID_ARGUMENT),
        ("wamp.session.get", (True,), INVALID_ARGUMENT),
        ("wamp.session.get", (0,), INVALID_ARGUMENT),
        ("wamp.session.get", (77,), NO_SUCH_SESSION),
        ("wamp.session.kill", (77,), NO_SUCH_SESSION),
        ("wamp.session.count", ("user",), INVALID_ARGUMENT),
        ("wamp.session.list", ([1],), INVALID_ARGUMENT),
        ("wamp.session.kill_by_authid", (), INVALID_ARGUMENT),
        ("wamp.session.kill_by_authrole", (5,), INVALID_ARGUMENT),
    ],
)
@in_loop
async def test_a_question_is_refused(uri: str, args: tuple[Any, ...], expected: str) -> None:
    assert refusal(Dealt().client(), uri, *args) == expected


@in_loop
async def test_a_session_is_killed_with_a_reason() -> None:
    dealt = Dealt()
    killer, victim, other = (dealt.client() for _ in range(3))
    assert asked(killer, "wamp.session.kill", victim.id, reason="com.shop.closed", message="come back") is None
    assert victim.next(GoodbyeMessage) == GoodbyeMessage({"message": "come back"}, "com.shop.closed")
    assert asked(killer, "wamp.session.list") == [killer.id, other.id]
    assert other.waiting == []


@in_loop
async def test_a_session_is_killed_without_a_reason() -> None:
    dealt = Dealt()
    killer, victim = dealt.client(), dealt.client()
    asked(killer, "wamp.session.kill", victim.id)
    assert victim.next(GoodbyeMessage) == GoodbyeMessage({}, CLOSE_NORMAL)


@pytest.mark.parametrize("how", ["wamp.session.kill_by_authid", "wamp.session.kill_by_authrole"])
@in_loop
async def test_sessions_are_killed_by_what_they_were_authenticated_as_but_never_the_one_that_asks(how: str) -> None:
    dealt = Dealt()
    killer, victim, other = (dealt.client() for _ in range(3))
    if how.endswith("authid"):
        assert asked(killer, how, victim.authid) == [victim.id]
        assert asked(killer, how, killer.authid) == []
        assert other.waiting == []
    else:
        assert asked(killer, how, "admin") == 0
        assert asked(killer, how, "user") == 2
        other.next(GoodbyeMessage)
    assert victim.next(GoodbyeMessage).reason == CLOSE_NORMAL
    assert killer.waiting == []


@in_loop
async def test_all_other_sessions_are_killed_and_no_event_tells_of_it() -> None:
    dealt = Dealt()
    killer, first, second = (dealt.client() for _ in range(3))
    dealt.told.clear()
    assert asked(killer, "wamp.session.kill_all", message="closing") == 2
    for victim in (first, second):
        assert victim.next(GoodbyeMessage) == GoodbyeMessage({"message": "closing"}, CLOSE_NORMAL)
    assert asked(killer, "wamp.session.list") == [killer.id]
    assert dealt.told == []


@in_loop
async def test_nobody_kills_the_session_that_asks() -> None:
    client = Dealt().client()
    assert refusal(client, "wamp.session.kill", client.id) == NO_SUCH_SESSION
    assert asked(client, "wamp.session.count") == 1


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({"reason": ""}, INVALID_URI),
        ({"reason": "no uri"}, INVALID_URI),
        ({"reason": 5}, INVALID_URI),
        ({"message": 5}, INVALID_ARGUMENT),
    ],
)
@in_loop
async def test_a_kill_with_a_wrong_reason_kills_nobody(kwargs: dict[str, Any], expected: str) -> None:
    dealt = Dealt()
    killer, victim = dealt.client(), dealt.client()
    assert refusal(killer, "wamp.session.kill", victim.id, **kwargs) == expected
    assert refusal(killer, "wamp.session.kill_all", **kwargs) == expected
    assert asked(killer, "wamp.session.count") == 2


@in_loop
async def test_who_may_not_kill_does_not() -> None:
    dealt = Dealt(*refusing("call", "wamp.session.kill_all"))
    killer, victim = dealt.client(), dealt.client()
    assert killer.refused(CallMessage(1, {}, "wamp.session.kill_all")) == NOT_AUTHORIZED
    assert victim.waiting == []


@in_loop
async def test_sessions_that_come_and_go_are_told_of() -> None:
    dealt = Dealt()
    client = dealt.client()
    details = asked(client, "wamp.session.get", client.id)
    client.leave()
    assert dealt.told == [
        ("wamp.session.on_join", [details]),
        ("wamp.session.on_leave", [client.id, client.authid, "user"]),
    ]


@in_loop
async def test_registrations_are_listed_found_and_described() -> None:
    dealt = Dealt()
    first, second = dealt.client(), dealt.client()
    exact, prefix = first.register("com.a.b", invoke="random"), first.register("com.", match="prefix")
    wildcard = second.register("com..b", match="wildcard")
    second.register("com.a.b", invoke="random")
    listed = asked(first, "wamp.registration.list")
    assert (listed["prefix"], listed["wildcard"]) == ([prefix], [wildcard])
    assert exact in listed["exact"]
    assert asked(first, "wamp.registration.lookup", "com.a.b") == exact
    assert asked(first, "wamp.registration.lookup", "com.", {"match": "prefix"}) == prefix
    assert asked(first, "wamp.registration.lookup", "com..b", {"match": "wildcard"}) == wildcard
    assert asked(first, "wamp.registration.lookup", "com.a") is None
    assert asked(first, "wamp.registration.match", "com.a.b") == exact
    assert asked(first, "wamp.registration.match", "com.c.b") == prefix
    assert asked(first, "wamp.registration.match", "org.c") is None
    assert asked(first, "wamp.registration.get", wildcard) == {
        "id": wildcard,
        "created": "2023-11-14T22:13:20.000Z",
        "uri": "com..b",
        "match": "wildcard",
        "invoke": "single",
    }
    assert asked(first, "wamp.registration.list_callees", exact) == [first.id, second.id]
    assert asked(first, "wamp.registration.count_callees", exact) == 2
    first.leave()
    assert asked(second, "wamp.registration.list_callees", exact) == [second.id]


@pytest.mark.matrix("WAMP-14")
@in_loop
async def test_the_routers_own_procedures_are_registrations_without_a_callee() -> None:
    client = Dealt().client()
    number = asked(client, "wamp.registration.lookup", "wamp.session.count")
    assert number in asked(client, "wamp.registration.list")["exact"]
    assert asked(client, "wamp.registration.match", "wamp.session.count") == number
    assert asked(client, "wamp.registration.get", number)["uri"] == "wamp.session.count"
    assert asked(client, "wamp.registration.list_callees", number) == []
    assert asked(client, "wamp.registration.count_callees", number) == 0


@pytest.mark.parametrize(
    ("uri", "args", "expected"),
    [
        ("wamp.registration.get", (77,), NO_SUCH_REGISTRATION),
        ("wamp.registration.list_callees", (77,), NO_SUCH_REGISTRATION),
        ("wamp.registration.count_callees", (77,), NO_SUCH_REGISTRATION),
        ("wamp.registration.get", ("77",), INVALID_ARGUMENT),
        ("wamp.registration.lookup", (), INVALID_ARGUMENT),
        ("wamp.registration.lookup", ("com.a", {"match": "fuzzy"}), INVALID_ARGUMENT),
        ("wamp.registration.lookup", ("com.a", 5), INVALID_ARGUMENT),
        ("wamp.registration.lookup", ("com..a",), INVALID_URI),
        ("wamp.registration.match", ("com..a",), INVALID_URI),
        ("wamp.registration.match", (5,), INVALID_ARGUMENT),
    ],
)
@in_loop
async def test_a_question_about_registrations_is_refused(uri: str, args: tuple[Any, ...], expected: str) -> None:
    assert refusal(Dealt().client(), uri, *args) == expected
