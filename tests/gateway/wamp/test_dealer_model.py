"""Callers and callees come and go in any order: each call ends exactly once, and with nothing but its own answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.wamp.dealt_sessions import FEATURES, Dealt, DealtClient
from relaycast_gateway.wamp.errors import CANCELED, NO_SUCH_PROCEDURE, TIMEOUT
from relaycast_gateway.wamp.messages import (
    CancelMessage,
    ErrorMessage,
    InterruptMessage,
    InvocationMessage,
    ResultMessage,
    UnregisteredMessage,
    UnregisterMessage,
    YieldMessage,
)
from searches import examples

PROCEDURES = ("com.a", "com.b")

Given = TypeVar("Given")


@dataclass(eq=False)
class Known:
    """A client that is there, as the model knows it."""

    client: DealtClient
    can_cancel: bool
    registrations: dict[str, int] = field(default_factory=dict)
    unanswered: list[int] = field(default_factory=list)
    """Its invocations, whether their calls have ended or not."""


@dataclass(eq=False)
class KnownCall:
    """A call that has to be pending."""

    caller: Known
    request: int
    callee: Known
    invocation: int
    timeout: int
    due: int | None
    is_interrupted: bool = False


class DealerMachine(RuleBasedStateMachine):
    """Clients with one dealer, and the list of the calls that have to be pending."""

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.dealt = self.do(Dealt)
        self.clients: list[Known] = []
        self.pending: list[KnownCall] = []
        self.now = 0

    def teardown(self) -> None:
        for known in self.clients:
            self.do(known.client.leave)
        assert self.dealt.dealer.pending_calls == 0
        self.runner.close()

    def do(self, work: Callable[[], Given]) -> Given:
        """Do something in the event loop."""

        async def done() -> Given:
            return work()

        return self.runner.run(done())

    @invariant()
    def nobody_is_told_more_than_the_model_expects(self) -> None:
        if hasattr(self, "dealt"):
            assert [it.client.waiting for it in self.clients if it.client.waiting] == []
            assert self.dealt.dealer.pending_calls == len(self.pending)
            assert self.dealt.dealer.pending_invocations == len(self.pending)

    @rule(can_cancel=st.booleans())
    def join(self, can_cancel: bool) -> None:
        client = self.do(lambda: self.dealt.client(features=FEATURES if can_cancel else ()))
        self.clients.append(Known(client, can_cancel))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), uri=st.sampled_from(PROCEDURES))
    def register_or_unregister(self, data: st.DataObject, uri: str) -> None:
        known = data.draw(st.sampled_from(self.clients))
        if uri in known.registrations:
            message = UnregisterMessage(1, known.registrations.pop(uri))
            self.do(lambda: known.client.say(message))
            known.client.next(UnregisteredMessage)
        else:
            known.registrations[uri] = self.do(lambda: known.client.register(uri, invoke="roundrobin"))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), uri=st.sampled_from(PROCEDURES), timeout=st.sampled_from([0, 1, 5]))
    def call(self, data: st.DataObject, uri: str, timeout: int) -> None:
        caller = data.draw(st.sampled_from(self.clients))
        request = self.do(lambda: caller.client.call(uri, timeout=1_000 * timeout, receive_progress=True))
        if not any(uri in it.registrations for it in self.clients):
            assert caller.client.next(ErrorMessage).error == NO_SUCH_PROCEDURE
            return
        (callee,) = [it for it in self.clients if it.client.waiting]
        invocation = callee.client.next(InvocationMessage)
        assert invocation.registration == callee.registrations[uri]
        callee.unanswered.append(invocation.request)
        due = self.now + timeout if timeout else None
        self.pending.append(KnownCall(caller, request, callee, invocation.request, timeout, due))

    @precondition(lambda self: any(it.unanswered for it in self.clients))
    @rule(data=st.data(), fails=st.booleans())
    def answer(self, data: st.DataObject, fails: bool) -> None:
        """Answer any invocation, whether its call has ended or not."""
        callee = data.draw(st.sampled_from([it for it in self.clients if it.unanswered]))
        invocation = data.draw(st.sampled_from(callee.unanswered))
        callee.unanswered.remove(invocation)
        error = ErrorMessage(68, invocation, {}, "com.failed", [invocation])
        result = YieldMessage(invocation, {}, [invocation])
        self.do(lambda: callee.client.say(error if fails else result))
        for call in [it for it in self.pending if (it.callee, it.invocation) == (callee, invocation)]:
            if fails:
                answer = call.caller.client.next(ErrorMessage)
                assert answer == ErrorMessage(48, call.request, {}, "com.failed", [invocation])
            else:
                assert call.caller.client.next(ResultMessage) == ResultMessage(call.request, {}, [invocation])
            self.pending.remove(call)

    @precondition(lambda self: any(it.callee.can_cancel for it in self.pending))
    @rule(data=st.data())
    def send_part(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from([it for it in self.pending if it.callee.can_cancel]))
        part = YieldMessage(call.invocation, {"progress": True}, ["part"])
        self.do(lambda: call.callee.client.say(part))
        if not call.is_interrupted:
            assert call.caller.client.next(ResultMessage) == ResultMessage(call.request, {"progress": True}, ["part"])
            call.due = self.now + call.timeout if call.timeout else None

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), mode=st.sampled_from(["skip", "kill", "killnowait"]))
    def cancel(self, data: st.DataObject, mode: str) -> None:
        call = data.draw(st.sampled_from(self.pending))
        self.do(lambda: call.caller.client.say(CancelMessage(call.request, {"mode": mode})))
        if mode == "kill" and call.callee.can_cancel:
            self.expect_interrupt(call, "kill")
        else:
            self.expect_end(call, CANCELED, interrupts=mode != "skip")

    @rule(seconds=st.sampled_from([1, 3, 10]))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        self.runner.run(self.dealt.clock.advance(seconds))
        for call in sorted(self.pending, key=lambda it: it.due or 0):
            if call.due is not None and call.due <= self.now:
                self.expect_end(call, TIMEOUT, interrupts=True)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.clients))
        self.clients.remove(gone)
        self.do(gone.client.leave)
        assert gone.client.waiting == []
        for call in list(self.pending):
            if gone is call.caller is call.callee:
                self.pending.remove(call)
            elif gone is call.callee:
                self.expect_end(call, CANCELED, interrupts=False)
            elif gone is call.caller:
                self.pending.remove(call)
                self.expect_interrupt(call, "killnowait")

    def expect_end(self, call: KnownCall, reason: str, *, interrupts: bool) -> None:
        self.pending.remove(call)
        if interrupts:
            self.expect_interrupt(call, "killnowait")
        errors = [it for it in call.caller.client.waiting if isinstance(it, ErrorMessage)]
        (error,) = [it for it in errors if it.request == call.request]
        assert (error.request_type, error.error) == (48, reason)
        call.caller.client.waiting.remove(error)

    def expect_interrupt(self, call: KnownCall, mode: str) -> None:
        if call.callee.can_cancel and not call.is_interrupted:
            call.is_interrupted = True
            told = [it for it in call.callee.client.waiting if isinstance(it, InterruptMessage)]
            (interrupt,) = [it for it in told if it.request == call.invocation]
            assert interrupt.options["mode"] == mode
            call.callee.client.waiting.remove(interrupt)


TestDealer = DealerMachine.TestCase
TestDealer.settings = settings(max_examples=examples(30), stateful_step_count=40, deadline=None)
