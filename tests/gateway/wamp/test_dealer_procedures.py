"""The router's own procedures: they answer at once, later or in parts, and a defect ends only its call."""

import logging

import pytest

from gateway.wamp.dealt_sessions import Dealt, in_loop
from relaycast_gateway.clock import settle
from relaycast_gateway.wamp.errors import CANCELED, INVALID_ARGUMENT, TIMEOUT, UNAVAILABLE, WampError
from relaycast_gateway.wamp.messages import CallMessage, CancelMessage, ErrorMessage, ResultMessage
from relaycast_gateway.wamp.procedures import CallContext, CallOutcome


@in_loop
async def test_a_result_that_cannot_be_written_ends_the_call() -> None:
    dealt = Dealt()
    dealt.dealer.offer("com.router.odd", lambda _: CallOutcome([object()]))
    assert dealt.client().refused(CallMessage(1, {}, "com.router.odd")) == INVALID_ARGUMENT
    assert dealt.dealer.pending_calls == 0


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
