"""Procedures are registered, shared and given up, and the best registration takes the call."""

from typing import Any

import pytest

from gateway.wamp.dealt_sessions import ADD, Dealt, in_loop, refusing
from relaycast_gateway.wamp import dealer as dealer_module
from relaycast_gateway.wamp.errors import (
    INVALID_ARGUMENT,
    INVALID_URI,
    NO_SUCH_PROCEDURE,
    NO_SUCH_REGISTRATION,
    NOT_AUTHORIZED,
    OPTION_DISALLOWED_DISCLOSE_ME,
    PROCEDURE_ALREADY_EXISTS,
    UNAVAILABLE,
)
from relaycast_gateway.wamp.messages import (
    CallMessage,
    ErrorMessage,
    InvocationMessage,
    RegisterMessage,
    ResultMessage,
    UnregisteredMessage,
    UnregisterMessage,
    YieldMessage,
)
from relaycast_gateway.wamp.procedures import CallOutcome


@pytest.mark.parametrize(
    ("uri", "options", "refusal"),
    [
        ("com..add", {}, INVALID_URI),  # an empty component is a gap, and exact URIs have none
        ("com.shop add", {}, INVALID_URI),
        ("com.shop.#", {"match": "wildcard"}, INVALID_URI),
        (ADD, {"match": "fuzzy"}, INVALID_ARGUMENT),
        (ADD, {"invoke": "all"}, INVALID_ARGUMENT),
        (ADD, {"disclose_caller": True}, OPTION_DISALLOWED_DISCLOSE_ME),
        ("wamp.session.count", {}, NOT_AUTHORIZED),  # the protocol's own
        ("wamp.", {"match": "prefix"}, NOT_AUTHORIZED),
        ("io.relaycast.mine", {}, NOT_AUTHORIZED),  # what consumers read there comes from chains
        ("com.secret", {}, NOT_AUTHORIZED),
        ("com.router.time", {}, PROCEDURE_ALREADY_EXISTS),
        ("com.taken", {}, PROCEDURE_ALREADY_EXISTS),
        ("com.taken", {"invoke": "first"}, PROCEDURE_ALREADY_EXISTS),
        ("com.shared", {"invoke": "last"}, PROCEDURE_ALREADY_EXISTS),
        ("com.shared", {}, PROCEDURE_ALREADY_EXISTS),
    ],
)
@in_loop
async def test_a_registration_is_refused(uri: str, options: dict[str, Any], refusal: str) -> None:
    dealt = Dealt(*refusing("register", "com.secret"))
    dealt.dealer.offer("com.router.time", lambda _: CallOutcome())
    other = dealt.client()
    other.register("com.taken")
    other.register("com.shared", invoke="first")
    before = len(dealt.dealer.registrations)
    assert dealt.client().refused(RegisterMessage(1, options, uri)) == refusal
    assert len(dealt.dealer.registrations) == before


@in_loop
async def test_a_session_registers_a_shared_procedure_once() -> None:
    callee = Dealt().client()
    callee.register(ADD, invoke="random")
    assert callee.refused(RegisterMessage(9, {"invoke": "random"}, ADD)) == PROCEDURE_ALREADY_EXISTS


@in_loop
async def test_a_session_has_only_so_many_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealer_module, "MOST_REGISTRATIONS", 2)
    callee = Dealt().client()
    callee.register("com.a")
    callee.register("com.b")
    assert callee.refused(RegisterMessage(9, {}, "com.c")) == UNAVAILABLE


@pytest.mark.parametrize(
    ("called", "reached"),
    [
        ("a1.b2.c3.d4.e55", "a1.b2.c3.d4.e55"),  # an exact match comes first
        ("a1.b2.c3.d98.e74", "a1.b2.c3"),  # the only prefix
        ("a1.b2.c3.d4.e325", "a1.b2.c3.d4"),  # the longer prefix
        ("a1.b2.c55.d4.e5", "a1.b2..d4.e5"),  # the only pattern with a gap
        ("a1.b2.c44.d4.e5", "a1.b2.c44..e5"),  # the longer first portion
        ("a1.b2.c88.d4.e5.f6.g7", "a1.b2..d4.e5..g7"),  # the longer second portion
    ],
)
@in_loop
async def test_the_best_of_several_registrations_takes_the_call(called: str, reached: str) -> None:
    dealt = Dealt()
    caller, callee = dealt.client(), dealt.client()
    patterns = {
        "a1.b2..d4..f6.g7": "wildcard",
        "a1.b2.c3": "prefix",
        "a1.b2.c44..e5": "wildcard",
        "a1.b2.c3.d4": "prefix",
        "a1.b2..d4.e5": "wildcard",
        "a1.b2..d4.e5..g7": "wildcard",
        "a1.b2.c3.d4.e55": "exact",
    }
    ids = {uri: callee.register(uri, match=match) for uri, match in patterns.items()}
    caller.call(called)
    invocation = callee.next(InvocationMessage)
    assert invocation.registration == ids[reached]
    assert invocation.details == ({} if patterns[reached] == "exact" else {"procedure": called})
    assert caller.refused(CallMessage(9, {}, "a2.b2.c2.d2.e2")) == NO_SUCH_PROCEDURE


@in_loop
async def test_a_broad_pattern_does_not_take_what_is_the_routers() -> None:
    dealt = Dealt()
    dealt.dealer.offer("com.router.time", lambda _: CallOutcome([12]))
    caller, callee = dealt.client(), dealt.client()
    callee.register("com.", match="prefix")
    assert callee.refused(RegisterMessage(8, {"match": "prefix"}, "")) == NOT_AUTHORIZED
    assert callee.refused(RegisterMessage(9, {"match": "wildcard"}, ".session.count")) == NOT_AUTHORIZED
    answer = caller.ask("com.router.time")
    assert isinstance(answer, ResultMessage)
    assert answer.args == [12]
    caller.call("com.router.date")
    callee.next(InvocationMessage)


@pytest.mark.parametrize(
    ("invoke", "takers"), [("first", "AAAA"), ("last", "CCCC"), ("roundrobin", "ABCA"), ("random", None)]
)
@in_loop
async def test_callees_share_a_procedure(invoke: str, takers: str | None) -> None:
    dealt = Dealt()
    caller = dealt.client()
    callees = {name: dealt.client() for name in "ABC"}
    for callee in callees.values():
        callee.register(ADD, invoke=invoke)
    taken = ""
    for _ in range(4):
        caller.call(ADD)
        (taker,) = [name for name, callee in callees.items() if callee.waiting]
        callees[taker].answer()
        taken += taker
    assert taken == takers or (takers is None and set(taken) <= set("ABC"))


@in_loop
async def test_turns_go_on_when_a_callee_leaves() -> None:
    dealt = Dealt()
    caller, first, second, third = (dealt.client() for _ in range(4))
    for callee in (first, second, third):
        callee.register(ADD, invoke="roundrobin")
    for callee in (first, second):
        caller.call(ADD)
        callee.answer()
    first.leave()
    for callee in (third, second, third):
        caller.call(ADD)
        callee.answer()
    assert [len(it.waiting) for it in (first, second, third)] == [0, 0, 0]
    third.leave()
    second.leave()
    caller.waiting.clear()
    assert caller.refused(CallMessage(99, {}, ADD)) == NO_SUCH_PROCEDURE


@in_loop
async def test_a_callee_may_answer_what_it_was_sent_before_it_unregistered() -> None:
    dealt = Dealt()
    caller, callee = dealt.client(), dealt.client()
    registration = callee.register(ADD)
    caller.call(ADD)
    invocation = callee.next(InvocationMessage).request
    callee.say(UnregisterMessage(5, registration))
    assert callee.next(UnregisteredMessage).request == 5
    callee.say(YieldMessage(invocation, {}, ["the last one"]))
    assert caller.next(ResultMessage).args == ["the last one"]
    callee.say(UnregisterMessage(6, registration))
    assert callee.next(ErrorMessage).error == NO_SUCH_REGISTRATION
    assert caller.refused(CallMessage(9, {}, ADD)) == NO_SUCH_PROCEDURE


@in_loop
async def test_nobody_unregisters_the_procedure_of_another() -> None:
    dealt = Dealt()
    other, callee = dealt.client(), dealt.client()
    registration = callee.register(ADD)
    other.say(UnregisterMessage(5, registration))
    assert other.next(ErrorMessage).error == NO_SUCH_REGISTRATION
    other.call(ADD)
    callee.next(InvocationMessage)


@in_loop
async def test_registrations_are_told_of_in_order() -> None:
    dealt = Dealt()
    first, second = dealt.client(), dealt.client()
    registration = first.register(ADD, invoke="first")
    second.register(ADD, invoke="first")
    first.say(UnregisterMessage(5, registration))
    second.leave()
    details = {
        "id": registration,
        "created": "2023-11-14T22:13:20.000Z",
        "uri": ADD,
        "match": "exact",
        "invoke": "first",
    }
    assert dealt.told_of("registration") == [
        ("wamp.registration.on_create", [first.id, details]),
        ("wamp.registration.on_register", [first.id, registration]),
        ("wamp.registration.on_register", [second.id, registration]),
        ("wamp.registration.on_unregister", [first.id, registration]),
        ("wamp.registration.on_unregister", [second.id, registration]),
        ("wamp.registration.on_delete", [second.id, registration]),
    ]
