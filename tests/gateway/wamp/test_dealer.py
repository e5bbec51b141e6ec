"""Calls find their callee, and what comes of them finds the caller: once, whoever leaves meanwhile."""

import logging
from typing import Any

import pytest

from gateway.wamp.dealt_sessions import Dealt, DealtClient, in_loop, refusing
from relaycast_gateway.clock import settle
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.wamp import dealer as dealer_module
from relaycast_gateway.wamp.authorization import ACTIONS, Action, PermissionRule
from relaycast_gateway.wamp.errors import (
    CANCELED,
    INVALID_ARGUMENT,
    INVALID_URI,
    NO_SUCH_PROCEDURE,
    NO_SUCH_REGISTRATION,
    NOT_AUTHORIZED,
    OPTION_DISALLOWED_DISCLOSE_ME,
    OPTION_NOT_ALLOWED,
    PAYLOAD_SIZE_EXCEEDED,
    PROCEDURE_ALREADY_EXISTS,
    PROTOCOL_VIOLATION,
    TIMEOUT,
    UNAVAILABLE,
    WampError,
)
from relaycast_gateway.wamp.messages import (
    AbortMessage,
    CallMessage,
    CancelMessage,
    ErrorMessage,
    InterruptMessage,
    InvocationMessage,
    RegisterMessage,
    ResultMessage,
    UnregisteredMessage,
    UnregisterMessage,
    YieldMessage,
)
from relaycast_gateway.wamp.procedures import CallContext, CallOutcome

ADD = "com.shop.add"


def met(dealt: Dealt, **options: Any) -> tuple[DealtClient, DealtClient]:
    """Return a caller, and a callee that offers ``ADD``."""
    caller, callee = dealt.client(), dealt.client()
    callee.register(ADD, **options)
    return caller, callee


@pytest.mark.matrix("WAMP-64")
@in_loop
async def test_a_call_reaches_the_callee_and_its_result_the_caller() -> None:
    dealt = Dealt()
    caller, callee = dealt.client(), dealt.client()
    registration = callee.register(ADD)
    caller.say(CallMessage(7, {}, ADD, [1, 2], {"unit": "kg"}))
    invocation = callee.next(InvocationMessage)
    assert invocation == InvocationMessage(1, registration, {}, [1, 2], {"unit": "kg"})
    callee.say(YieldMessage(1, {}, [3], {"unit": "kg"}))
    assert caller.next(ResultMessage) == ResultMessage(7, {}, [3], {"unit": "kg"})
    assert dealt.dealer.pending_calls == 0


@pytest.mark.matrix("WAMP-64")
@in_loop
async def test_a_callees_error_reaches_the_caller_with_all_that_it_says() -> None:
    caller, callee = met(Dealt())
    request = caller.call(ADD)
    callee.say(ErrorMessage(68, callee.next(InvocationMessage).request, {}, "com.shop.closed", ["at 8"], {"days": 2}))
    assert caller.next(ErrorMessage) == ErrorMessage(48, request, {}, "com.shop.closed", ["at 8"], {"days": 2})


@in_loop
async def test_a_payload_that_the_router_cannot_read_passes_through_both_ways() -> None:
    caller, callee = met(Dealt())
    scheme = {"ppt_scheme": "x_mine", "ppt_serializer": "cbor", "ppt_cipher": "xsalsa20poly1305", "ppt_keyid": "k1"}
    caller.call(ADD, "sealed", **scheme, other=1)
    invocation = callee.next(InvocationMessage)
    assert (invocation.details, invocation.args) == (scheme, ["sealed"])
    callee.say(YieldMessage(invocation.request, {"ppt_scheme": "x_mine"}, ["sealed too"]))
    assert caller.next(ResultMessage).details == {"ppt_scheme": "x_mine"}


@pytest.mark.parametrize(
    ("uri", "options", "refusal"),
    [
        ("com..add", {}, INVALID_URI),  # an empty component is a gap, and exact URIs have none
        ("com.shop add", {}, INVALID_URI),
        ("com.shop.#", {"match": "wildcard"}, INVALID_URI),
        (ADD, {"match": "fuzzy"}, INVALID_ARGUMENT),
        (ADD, {"match": ["exact"]}, INVALID_ARGUMENT),
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


@pytest.mark.parametrize(
    ("uri", "options", "refusal"),
    [
        ("com..add", {}, INVALID_URI),
        ("com.nobody", {}, NO_SUCH_PROCEDURE),
        ("com.secret", {}, NOT_AUTHORIZED),
        ("com.secret.that.nobody.offers", {}, NOT_AUTHORIZED),  # a refusal does not tell whether it is there
        ("wamp.nothing", {}, NO_SUCH_PROCEDURE),
        (ADD, {"timeout": -1}, INVALID_ARGUMENT),
        (ADD, {"timeout": 1.5}, INVALID_ARGUMENT),
        (ADD, {"timeout": True}, INVALID_ARGUMENT),
        (ADD, {"timeout": 1 << 40}, INVALID_ARGUMENT),
        (ADD, {"progress": True}, OPTION_NOT_ALLOWED),
    ],
)
@in_loop
async def test_a_call_is_refused(uri: str, options: dict[str, Any], refusal: str) -> None:
    dealt = Dealt(*refusing("call", "com.secret", "com.secret.that.nobody.offers"))
    caller, callee = met(dealt)
    callee.register("com.secret")
    assert caller.refused(CallMessage(1, options, uri)) == refusal
    assert callee.waiting == []
    assert dealt.dealer.pending_calls == 0


@in_loop
async def test_a_request_id_in_use_breaks_the_protocol() -> None:
    caller, _ = met(Dealt())
    request = caller.call(ADD)
    caller.say(CallMessage(request, {}, ADD))
    assert "has not ended" in caller.next(AbortMessage).details["message"]


@in_loop
async def test_a_session_has_only_so_many_calls_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealer_module, "MOST_PENDING_CALLS", 3)
    caller, callee = met(Dealt())
    for _ in range(3):
        caller.call(ADD)
    assert caller.refused(CallMessage(99, {}, ADD)) == UNAVAILABLE
    callee.answer("done")
    caller.next(ResultMessage)
    caller.call(ADD)
    assert caller.waiting == []


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


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("discloses", [True, False])
@in_loop
async def test_a_caller_is_named_at_its_wish_or_by_permission(*, asks: bool, discloses: bool) -> None:
    everything = frozenset[Action](ACTIONS)
    rule = PermissionRule(TopicPattern(ADD), everything, frozenset({"call"} if discloses else ()))
    dealt = Dealt(rule)
    caller, callee = met(dealt)
    caller.call(ADD, disclose_me=asks)
    named = {"caller": caller.id, "caller_authid": caller.authid, "caller_authrole": "user"}
    assert callee.next(InvocationMessage).details == (named if asks or discloses else {})


@in_loop
async def test_a_result_comes_in_parts_where_caller_and_callee_both_can() -> None:
    caller, callee = met(Dealt())
    request = caller.call(ADD, receive_progress=True)
    invocation = callee.next(InvocationMessage)
    assert invocation.details == {"receive_progress": True}
    for part in (1, 2):
        callee.say(YieldMessage(invocation.request, {"progress": True}, [part]))
        assert caller.next(ResultMessage) == ResultMessage(request, {"progress": True}, [part])
    callee.say(YieldMessage(invocation.request, {}))
    assert caller.next(ResultMessage) == ResultMessage(request, {}, None)


@in_loop
async def test_a_callee_that_cannot_be_interrupted_is_not_asked_for_parts() -> None:
    dealt = Dealt()
    caller, callee = dealt.client(), dealt.client(features=("progressive_call_results",))
    callee.register(ADD)
    caller.call(ADD, receive_progress=True)
    invocation = callee.next(InvocationMessage)
    assert invocation.details == {}
    callee.say(YieldMessage(invocation.request, {"progress": True}, [1]))
    assert "part of a result" in callee.next(AbortMessage).details["message"]
    assert caller.next(ErrorMessage).error == CANCELED


@in_loop
async def test_what_a_callee_says_of_a_call_that_has_ended_is_ignored() -> None:
    caller, callee = met(Dealt())
    caller.call(ADD)
    request = callee.waiting[0].request
    callee.answer("first")
    callee.say(YieldMessage(request, {}, ["second"]))
    callee.say(ErrorMessage(68, request, {}, "com.shop.late"))
    assert caller.next(ResultMessage).args == ["first"]
    assert caller.waiting == []


@pytest.mark.parametrize(
    "message",
    [
        YieldMessage(2, {}),  # an invocation that was never sent
        ErrorMessage(68, 2, {}, "com.shop.closed"),
        ErrorMessage(48, 1, {}, "com.shop.closed"),  # clients refuse invocations only
        ErrorMessage(68, 1, {}, "no uri"),
    ],
)
@in_loop
async def test_a_callee_breaks_the_protocol_by(message: YieldMessage | ErrorMessage) -> None:
    caller, callee = met(Dealt())
    caller.call(ADD)
    callee.next(InvocationMessage)
    callee.say(message)
    assert callee.next(AbortMessage).reason == PROTOCOL_VIOLATION
    assert caller.next(ErrorMessage).error == CANCELED


@pytest.mark.parametrize("mode", ["skip", "kill", "killnowait", None])
@pytest.mark.parametrize("can_cancel", [True, False])
@in_loop
async def test_a_caller_cancels_its_call(mode: str | None, *, can_cancel: bool) -> None:
    dealt = Dealt()
    caller, callee = dealt.client(), dealt.client(features=("call_canceling",) if can_cancel else ())
    callee.register(ADD)
    request = caller.call(ADD)
    invocation = callee.next(InvocationMessage).request
    caller.say(CancelMessage(request, {} if mode is None else {"mode": mode}))

    if can_cancel and mode != "skip":
        assert callee.next(InterruptMessage) == InterruptMessage(
            invocation, {"mode": mode or "killnowait", "reason": CANCELED}
        )
    assert callee.waiting == []
    if can_cancel and mode == "kill":
        assert caller.waiting == [], "the callee has the last word"
        callee.say(ErrorMessage(68, invocation, {}, CANCELED, ["stopped"]))
        assert caller.next(ErrorMessage) == ErrorMessage(48, request, {}, CANCELED, ["stopped"])
    else:
        error = caller.next(ErrorMessage)
        assert (error.request_type, error.request, error.error) == (48, request, CANCELED)
        callee.say(YieldMessage(invocation, {}, ["too late"]))
    assert caller.waiting == []
    assert dealt.dealer.pending_calls == 0


@in_loop
async def test_a_killed_call_can_still_give_its_result_but_no_more_parts() -> None:
    caller, callee = met(Dealt())
    request = caller.call(ADD, receive_progress=True)
    invocation = callee.next(InvocationMessage).request
    caller.say(CancelMessage(request, {"mode": "kill"}))
    caller.say(CancelMessage(request, {"mode": "kill"}))
    callee.next(InterruptMessage)
    assert callee.waiting == []
    callee.say(YieldMessage(invocation, {"progress": True}, ["a part"]))
    callee.say(YieldMessage(invocation, {}, ["done"]))
    assert caller.next(ResultMessage).args == ["done"]
    assert caller.waiting == []


@in_loop
async def test_cancelling_what_has_ended_does_nothing_and_an_unknown_mode_is_refused() -> None:
    caller, callee = met(Dealt())
    request = caller.call(ADD)
    caller.say(CancelMessage(request, {"mode": "softly"}))
    assert caller.next(ErrorMessage).error == INVALID_ARGUMENT
    callee.answer()
    caller.next(ResultMessage)
    caller.say(CancelMessage(request, {}))
    assert (caller.waiting, callee.waiting) == ([], [])


@in_loop
async def test_a_call_ends_at_its_timeout() -> None:
    dealt = Dealt()
    caller, callee = met(dealt)
    caller.call(ADD, timeout=500)
    invocation = callee.next(InvocationMessage).request
    await dealt.clock.advance(0.499)
    assert caller.waiting == []
    await dealt.clock.advance(0.001)
    assert caller.next(ErrorMessage).error == TIMEOUT
    assert callee.next(InterruptMessage) == InterruptMessage(invocation, {"mode": "killnowait", "reason": TIMEOUT})


@in_loop
async def test_each_part_of_a_result_gives_the_callee_the_whole_timeout_again() -> None:
    dealt = Dealt()
    caller, callee = met(dealt)
    caller.call(ADD, timeout=500, receive_progress=True)
    invocation = callee.next(InvocationMessage).request
    for _ in range(3):
        await dealt.clock.advance(0.4)
        callee.say(YieldMessage(invocation, {"progress": True}))
        caller.next(ResultMessage)
    await dealt.clock.advance(0.5)
    assert caller.next(ErrorMessage).error == TIMEOUT


@in_loop
async def test_a_result_before_the_timeout_is_the_only_answer() -> None:
    dealt = Dealt()
    caller, callee = met(dealt)
    caller.call(ADD, timeout=500)
    callee.answer("in time")
    await dealt.clock.advance(10)
    assert caller.next(ResultMessage).args == ["in time"]
    assert (caller.waiting, callee.waiting) == ([], [])


@in_loop
async def test_a_caller_learns_that_its_callee_is_gone() -> None:
    dealt = Dealt()
    caller, callee = met(dealt)
    caller.call(ADD, timeout=500)
    callee.leave()
    assert caller.next(ErrorMessage).error == CANCELED
    assert caller.refused(CallMessage(9, {}, ADD)) == NO_SUCH_PROCEDURE
    await dealt.clock.advance(1)
    assert caller.waiting == []


@in_loop
async def test_a_callee_is_interrupted_when_its_caller_is_gone() -> None:
    dealt = Dealt()
    caller, callee = met(dealt)
    caller.call(ADD, timeout=500)
    invocation = callee.next(InvocationMessage).request
    caller.leave()
    assert caller.waiting == []
    assert callee.next(InterruptMessage) == InterruptMessage(invocation, {"mode": "killnowait", "reason": CANCELED})
    callee.say(YieldMessage(invocation, {}, ["for nobody"]))
    await dealt.clock.advance(1)
    assert callee.waiting == []
    assert dealt.dealer.pending_calls == 0


@in_loop
async def test_a_session_may_call_itself_and_leave_meanwhile() -> None:
    dealt = Dealt()
    lonely = dealt.client()
    lonely.register(ADD)
    lonely.call(ADD)
    lonely.answer("me")
    assert lonely.next(ResultMessage).args == ["me"]
    lonely.call(ADD)
    lonely.leave()
    assert dealt.dealer.pending_calls == 0
    assert dealt.dealer.registrations.lookup(TopicPattern(ADD)) is None


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
async def test_a_message_too_large_for_its_receiver_is_refused_and_numbers_stay_dense() -> None:
    dealt = Dealt()
    caller, callee = met(dealt)
    callee.link.most_message_bytes = 300
    assert caller.refused(CallMessage(90, {}, ADD, ["x" * 300])) == PAYLOAD_SIZE_EXCEEDED
    caller.call(ADD)
    assert callee.waiting[0].request == 1
    caller.link.most_message_bytes = 300
    callee.answer("y" * 300)
    assert caller.next(ErrorMessage).error == PAYLOAD_SIZE_EXCEEDED
    assert callee.waiting == []


@in_loop
async def test_a_part_too_large_for_the_caller_ends_the_call_and_stops_the_callee() -> None:
    caller, callee = met(Dealt())
    caller.link.most_message_bytes = 300
    caller.call(ADD, receive_progress=True)
    invocation = callee.next(InvocationMessage).request
    callee.say(YieldMessage(invocation, {"progress": True}, ["y" * 300]))
    assert caller.next(ErrorMessage).error == PAYLOAD_SIZE_EXCEEDED
    assert callee.next(InterruptMessage).request == invocation


@in_loop
async def test_a_result_that_cannot_be_written_ends_the_call() -> None:
    dealt = Dealt()
    dealt.dealer.offer("com.router.odd", lambda _: CallOutcome([object()]))
    assert dealt.client().refused(CallMessage(1, {}, "com.router.odd")) == INVALID_ARGUMENT
    assert dealt.dealer.pending_calls == 0


@pytest.mark.parametrize("theirs", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize("mine", ["json", "msgpack", "cbor"])
@in_loop
async def test_clients_call_one_another_in_their_own_serializers(mine: str, theirs: str) -> None:
    dealt = Dealt()
    caller, callee = dealt.client(serializer=mine), dealt.client(serializer=theirs)
    callee.register(ADD)
    caller.call(ADD, b"\x00\xff", 1.5, None, {"a": [True]})
    invocation = callee.next(InvocationMessage)
    assert invocation.args == [b"\x00\xff", 1.5, None, {"a": [True]}]
    callee.say(YieldMessage(invocation.request, {}, [b"\x01"]))
    assert caller.next(ResultMessage).args == [b"\x01"]


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


@in_loop
async def test_the_routers_own_procedure_answers_at_once_or_refuses() -> None:
    dealt = Dealt()

    def double(context: CallContext) -> CallOutcome:
        if context.argument(0, "number") == 13:
            raise WampError("com.router.unlucky", "13", kwargs={"hint": 12})
        return CallOutcome([2 * context.args[0]], {"for": context.identity.authid})

    dealt.dealer.offer("com.router.double", double)
    caller = dealt.client()
    assert caller.ask("com.router.double", 4) == ResultMessage(1, {}, [8], {"for": caller.authid})
    assert caller.ask("com.router.double", 13) == ErrorMessage(48, 2, {}, "com.router.unlucky", ["13"], {"hint": 12})
    missing = caller.ask("com.router.double")
    assert isinstance(missing, ErrorMessage)
    assert (missing.error, missing.args) == (INVALID_ARGUMENT, ["com.router.double expects the argument number"])
    assert caller.refused(CallMessage(9, {}, "com.router.double", b"opaque")) == INVALID_ARGUMENT


@in_loop
async def test_a_defect_in_the_routers_procedure_ends_the_call_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    dealt = Dealt()

    def at_once(context: CallContext) -> CallOutcome:
        raise ZeroDivisionError

    async def later(context: CallContext) -> CallOutcome:
        raise ZeroDivisionError

    dealt.dealer.offer("com.router.now", at_once)
    dealt.dealer.offer("com.router.later", later)
    caller = dealt.client()
    with caplog.at_level(logging.CRITICAL, logger="relaycast_gateway.wamp.dealer"):
        for uri in ("com.router.now", "com.router.later"):
            caller.call(uri)
            await settle()
            error = caller.next(ErrorMessage)
            assert (error.error, error.args) == (UNAVAILABLE, [f"{uri} failed; the router's log says why"])
    assert dealt.dealer.pending_calls == 0


@in_loop
async def test_the_routers_procedure_sends_parts_and_waits_for_its_caller() -> None:
    dealt = Dealt()

    async def count(context: CallContext) -> CallOutcome:
        for number in range(3):
            await context.send_part(CallOutcome([number]))
        return CallOutcome((), {"count": 3})

    dealt.dealer.offer("com.router.count", count)
    caller = dealt.client()
    request = caller.call("com.router.count", receive_progress=True)
    await settle()
    parts = [caller.next(ResultMessage) for _ in range(4)]
    assert parts == [
        *[ResultMessage(request, {"progress": True}, [number]) for number in range(3)],
        ResultMessage(request, {}, [], {"count": 3}),
    ]


@pytest.mark.parametrize("end", ["cancel", "leave", "timeout"])
@in_loop
async def test_the_routers_procedure_stops_when_its_call_ends(end: str) -> None:
    dealt = Dealt()
    ended: list[str] = []

    async def wait(context: CallContext) -> CallOutcome:
        try:
            await dealt.clock.sleep(60)
        finally:
            ended.append("stopped")
        return CallOutcome()

    dealt.dealer.offer("com.router.wait", wait)
    caller = dealt.client()
    request = caller.call("com.router.wait", timeout=1_000)
    await settle()
    if end == "cancel":
        caller.say(CancelMessage(request, {"mode": "kill"}))
    elif end == "leave":
        caller.leave()
    else:
        await dealt.clock.advance(1)
    await settle()
    assert ended == ["stopped"]
    expected = {"cancel": [CANCELED], "leave": [], "timeout": [TIMEOUT]}[end]
    assert [it.error for it in caller.waiting if isinstance(it, ErrorMessage)] == expected
    assert dealt.dealer.pending_calls == 0
