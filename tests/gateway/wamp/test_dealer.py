"""Calls find their callee, and what comes of them finds the caller: once, whole or in parts."""

from typing import Any

import pytest

from gateway.wamp.dealt_sessions import ADD, Dealt, in_loop, met, refusing
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.wamp import dealer as dealer_module
from relaycast_gateway.wamp.authorization import ACTIONS, Action, PermissionRule
from relaycast_gateway.wamp.errors import (
    CANCELED,
    INVALID_ARGUMENT,
    INVALID_URI,
    NO_SUCH_PROCEDURE,
    NOT_AUTHORIZED,
    OPTION_NOT_ALLOWED,
    PAYLOAD_SIZE_EXCEEDED,
    PROTOCOL_VIOLATION,
    UNAVAILABLE,
)
from relaycast_gateway.wamp.messages import (
    AbortMessage,
    CallMessage,
    ErrorMessage,
    InterruptMessage,
    InvocationMessage,
    ResultMessage,
    YieldMessage,
)


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
        ("com..add", {}, INVALID_URI),
        ("com.nobody", {}, NO_SUCH_PROCEDURE),
        ("com.secret", {}, NOT_AUTHORIZED),
        ("com.secret.that.nobody.offers", {}, NOT_AUTHORIZED),  # a refusal does not tell whether it is there
        ("wamp.nothing", {}, NO_SUCH_PROCEDURE),
        (ADD, {"timeout": -1}, INVALID_ARGUMENT),
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
