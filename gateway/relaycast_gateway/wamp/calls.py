"""Calls that have not ended yet, by who called and by who was called.

INVARIANT: a pending call stands under its caller and, unless the router itself answers it, under its callee. It leaves
both at once, and the code that takes it out tells the caller how it ended.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from relaycast_gateway.clock import Alarm, Clock
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, PAYLOAD_SIZE_EXCEEDED, WampError
from relaycast_gateway.wamp.messages import InterruptMessage, WampMessage
from relaycast_gateway.wamp.registrations import WampRegistration
from relaycast_gateway.wamp.session import Session


@dataclass(slots=True, eq=False)
class PendingCall:
    """A call on its way."""

    caller: Session
    request: int
    registration: WampRegistration
    receives_progress: bool
    timeout_s: float = 0.0
    """Seconds from the call to its result, or from one part of it to the next; 0 for as long as it takes."""

    callee: Session | None = None
    invocation: int = 0
    task: "asyncio.Task[None] | None" = None
    """The router's own procedure at work."""

    is_interrupted: bool = False
    has_ended: bool = False
    alarm: Alarm | None = None

    @property
    def can_interrupt(self) -> bool:
        """Whether its callee knows INTERRUPT."""
        return self.callee is not None and self.callee.announces("callee", "call_canceling")

    def interrupt(self, mode: str, reason: str) -> None:
        """Tell the callee, once, that the caller no longer waits for the result."""
        if self.callee is not None and not self.is_interrupted:
            self.is_interrupted = True
            self.callee.send(InterruptMessage(self.invocation, {"mode": mode, "reason": reason}))

    def stop(self, reason: str) -> None:
        """Have the callee, or the router's own procedure, stop working on a call that has ended."""
        if self.task is not None:
            self.task.cancel()
        elif self.can_interrupt:
            self.interrupt("killnowait", reason)


@dataclass(slots=True, eq=False)
class Party:
    """What a session has to do with calls."""

    session: Session
    calls: dict[int, PendingCall] = field(default_factory=dict)
    """Its own, by request."""

    invocations: dict[int, PendingCall] = field(default_factory=dict)
    """Those that it has to answer, by the router's request."""

    registrations: dict[int, WampRegistration] = field(default_factory=dict)
    last_invocation: int = 0


class CallBook:
    """All sessions of a realm that call or are called."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._parties: dict[int, Party] = {}

    def party(self, session: Session) -> Party:
        """Return what there is of a session; a new one has nothing."""
        found = self._parties.get(session.id)
        if found is None:
            found = self._parties[session.id] = Party(session)
        return found

    def forget(self, session: Session) -> Party:
        """Return what there was of a session that ended."""
        return self._parties.pop(session.id, None) or Party(session)

    @property
    def pending(self) -> int:
        """Number of calls that have not ended."""
        return sum(len(party.calls) for party in self._parties.values())

    @property
    def pending_invocations(self) -> int:
        """Number of those that a callee has to answer."""
        return sum(len(party.invocations) for party in self._parties.values())

    def begin(self, call: PendingCall) -> None:
        """Take in a call, before anything of it is sent."""
        self.party(call.caller).calls[call.request] = call
        if call.callee is not None:
            party = self.party(call.callee)
            party.invocations[call.invocation] = call
            party.last_invocation = call.invocation

    def end(self, call: PendingCall) -> bool:
        """Take out a call; return whether it was there: else somebody else ended it."""
        if call.has_ended:
            return False
        call.has_ended = True
        if call.alarm is not None:
            call.alarm.cancel()
        caller = self._parties.get(call.caller.id)
        if caller is not None:
            caller.calls.pop(call.request, None)
        callee = None if call.callee is None else self._parties.get(call.callee.id)
        if callee is not None:
            callee.invocations.pop(call.invocation, None)
        return True

    def watch(self, call: PendingCall, expired: Callable[[PendingCall], None]) -> None:
        """Call back when nothing of the call came for as long as its caller waits, from now."""
        if call.alarm is not None:
            call.alarm.cancel()
        if call.timeout_s:
            call.alarm = self._clock.call_later(call.timeout_s, lambda: expired(call))


def can_send_parts(callee: Session) -> bool:
    """Return whether a callee sends results in parts: one that cannot be interrupted is not asked for any."""
    return callee.announces("callee", "progressive_call_results") and callee.announces("callee", "call_canceling")


def encoded_for(receiver: Session, message: WampMessage, whom: str) -> bytes:
    """Return a message as its receiver takes it; ``WampError`` where it cannot be written or is too large."""
    try:
        data = receiver.serializer.encode(message)
    except (ValueError, TypeError, OverflowError) as error:
        raise WampError(INVALID_ARGUMENT, f"the payload cannot be sent to {whom}: {error}") from None
    most = receiver.link.most_message_bytes
    if len(data) > most:
        raise WampError(
            PAYLOAD_SIZE_EXCEEDED, f"a message of {len(data)} bytes for {whom}, whose connection takes at most {most}"
        )
    return data
