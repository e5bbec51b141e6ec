"""Calls that end before their result: their caller cancels, their time is over, or a session leaves."""

import pytest

from gateway.wamp.dealt_sessions import ADD, Dealt, in_loop, met
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.wamp.errors import CANCELED, INVALID_ARGUMENT, NO_SUCH_PROCEDURE, TIMEOUT
from relaycast_gateway.wamp.messages import (
    CallMessage,
    CancelMessage,
    ErrorMessage,
    InterruptMessage,
    InvocationMessage,
    ResultMessage,
    YieldMessage,
)


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
