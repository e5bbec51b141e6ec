"""The dealer of a realm: passes calls to those who offer the procedure, and what comes of them back.

Law: every call ends exactly once, in a RESULT that is no part or in an ERROR, or with the caller's session. What a
callee says of a call that has ended is ignored; what it says of one that never was ends its session. A request that is
refused raises ``WampError``: the session answers with ERROR.
Source: WAMP specification, "Remote Procedure Calls" and the Advanced Profile's chapters on them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from relaycast_gateway.clock import Clock
from relaycast_gateway.matching.topics import Match, TopicPattern, is_topic
from relaycast_gateway.wamp.authorization import Roles
from relaycast_gateway.wamp.calls import CallBook, PendingCall, can_send_parts, encoded_for
from relaycast_gateway.wamp.errors import (
    CANCELED,
    INVALID_ARGUMENT,
    INVALID_URI,
    NO_SUCH_PROCEDURE,
    NO_SUCH_REGISTRATION,
    NOT_AUTHORIZED,
    OPTION_DISALLOWED_DISCLOSE_ME,
    OPTION_NOT_ALLOWED,
    PROCEDURE_ALREADY_EXISTS,
    TIMEOUT,
    UNAVAILABLE,
    WampError,
    WampProtocolError,
)
from relaycast_gateway.wamp.messages import (
    PAYLOAD_OPTIONS,
    CallMessage,
    CancelMessage,
    ErrorMessage,
    InvocationMessage,
    RegisteredMessage,
    RegisterMessage,
    ResultMessage,
    UnregisteredMessage,
    UnregisterMessage,
    YieldMessage,
)
from relaycast_gateway.wamp.procedures import CallContext, CallOutcome, Procedure
from relaycast_gateway.wamp.registrations import Invoke, RegistrationBook, WampRegistration
from relaycast_gateway.wamp.session import Session

MOST_REGISTRATIONS = 4_096
"""Registrations of one session."""

MOST_PENDING_CALLS = 4_096
"""Calls of one session that have not ended: each one holds memory."""

LONGEST_TIMEOUT_MS = 1 << 32
"""Seven weeks; a longer one is a mistake."""

FEATURES = {
    "call_canceling": True,
    "call_timeout": True,
    "caller_identification": True,
    "pattern_based_registration": True,
    "payload_passthru_mode": True,
    "progressive_call_results": True,
    "registration_meta_api": True,
    "session_meta_api": True,
    "shared_registration": True,
}
"""What WELCOME announces for the dealer."""

TellMeta = Callable[[str, list[Any], dict[str, Any]], None]
"""Publishes a meta event: topic, arguments, arguments by name."""

Choice = TypeVar("Choice", bound=StrEnum)

_LOGGER = logging.getLogger(__name__)


class Dealer:
    """Registrations and calls of one realm."""

    def __init__(self, *, roles: Roles, clock: Clock, tell_meta: TellMeta) -> None:
        self.registrations = RegistrationBook()
        self._roles = roles
        self._clock = clock
        self._tell_meta = tell_meta
        self._book = CallBook(clock)

    @property
    def pending_calls(self) -> int:
        """Number of calls that have not ended."""
        return self._book.pending

    @property
    def pending_invocations(self) -> int:
        """Number of those that a client has to answer; the router itself answers the others."""
        return self._book.pending_invocations

    def offer(self, uri: str, procedure: Procedure) -> WampRegistration:
        """Offer a procedure of the router itself, which no client can register then."""
        return self.registrations.add(TopicPattern(uri), Invoke.SINGLE, self._clock.now_ns(), procedure)

    def register(self, session: Session, message: RegisterMessage) -> None:
        """Let a session offer a procedure."""
        registration, is_new = self._registered(session, message)
        session.send(RegisteredMessage(message.request, registration.id))
        if is_new:
            self._tell_meta("wamp.registration.on_create", [session.id, registration.details()], {})
        self._tell_meta("wamp.registration.on_register", [session.id, registration.id], {})

    def unregister(self, session: Session, message: UnregisterMessage) -> None:
        """Let a session offer a procedure no more; invocations on their way may still be answered."""
        registration = self._book.party(session).registrations.pop(message.registration, None)
        if registration is None:
            raise WampError(NO_SUCH_REGISTRATION, f"you have no registration {message.registration}")
        self._remove_callee(registration, session)
        session.send(UnregisteredMessage(message.request))
        self._tell_removed(registration, session)

    def call(self, session: Session, message: CallMessage) -> None:
        """Pass a call on to a callee, or answer it where the router itself offers the procedure."""
        options, uri = message.options, message.procedure
        calls = self._book.party(session).calls
        if message.request in calls:
            raise WampProtocolError(f"CALL {message.request}: a call with this request id has not ended yet")
        if len(calls) >= MOST_PENDING_CALLS:
            raise WampError(UNAVAILABLE, f"at most {MOST_PENDING_CALLS} calls may be pending in a session")
        if not is_topic(uri):
            raise WampError(INVALID_URI, f"{uri!r} is no URI")
        if options.get("progress") is True:
            raise WampError(OPTION_NOT_ALLOWED, "progress: arguments are taken in one CALL only")
        timeout_s = _timeout(options)
        permission = self._roles.permission(session.identity, "call", uri)
        if not permission.is_allowed:
            raise WampError(NOT_AUTHORIZED, f"you may not call {uri}")
        registration = self.registrations.find(uri)
        if registration is None:
            raise WampError(NO_SUCH_PROCEDURE, f"nobody offers {uri}")
        receives_progress = options.get("receive_progress") is True
        call = PendingCall(session, message.request, registration, receives_progress, timeout_s)
        if registration.procedure is not None:
            self._run(call, registration.procedure, message)
        else:
            self._invoke(call, message, discloses=permission.discloses or options.get("disclose_me") is True)

    def cancel(self, session: Session, message: CancelMessage) -> None:
        """End a call at its caller's wish; one that has ended already is left alone."""
        mode = message.options.get("mode", "killnowait")
        if mode not in ("skip", "kill", "killnowait"):
            raise WampError(INVALID_ARGUMENT, f"mode must be skip, kill or killnowait, got {mode!r}")
        call = self._book.party(session).calls.get(message.request)
        if call is None:
            return
        if mode == "kill" and call.can_interrupt:
            call.interrupt("kill", CANCELED)
        else:
            self._give_up(call, WampError(CANCELED, "the call was canceled"), interrupts=mode != "skip")

    def yield_(self, session: Session, message: YieldMessage) -> None:
        """Pass a result, or a part of one, to the caller."""
        call = self._answered(session, message.request)
        if call is None:
            return
        is_progress = message.options.get("progress") is True
        if is_progress and not call.receives_progress:
            raise WampProtocolError(f"YIELD {message.request}: a part of a result, and the caller takes none")
        if is_progress and call.is_interrupted:
            return
        details = _passed_on(message.options)
        if is_progress:
            details["progress"] = True
        result = ResultMessage(call.request, details, message.args, message.kwargs)
        if is_progress:
            self._send_part(call, result)
        else:
            self._finish(call, result)

    def error(self, session: Session, message: ErrorMessage) -> None:
        """Pass a callee's refusal to the caller."""
        if message.request_type != InvocationMessage.code:
            raise WampProtocolError(f"ERROR of request type {message.request_type}: clients refuse INVOCATION only")
        if not is_topic(message.error):
            raise WampProtocolError(f"ERROR {message.request}: expected a URI, got {message.error!r}")
        call = self._answered(session, message.request)
        if call is not None:
            details = _passed_on(message.details)
            self._finish(
                call,
                ErrorMessage(CallMessage.code, call.request, details, message.error, message.args, message.kwargs),
            )

    def leave(self, session: Session) -> None:
        """Forget a session that ended: its callers are told, its callees interrupted."""
        party = self._book.forget(session)
        for registration in party.registrations.values():
            self._remove_callee(registration, session)
        for call in list(party.invocations.values()):
            self._refuse(call, WampError(CANCELED, "the callee is gone"))
        for call in list(party.calls.values()):
            self._book.end(call)
            call.stop(CANCELED)
        for registration in party.registrations.values():
            self._tell_removed(registration, session)

    def _registered(self, session: Session, message: RegisterMessage) -> tuple[WampRegistration, bool]:
        """Return the registration that a session joined, and whether it is new; raises ``WampError``."""
        options = message.options
        match = _one_of(Match, options, "match", Match.EXACT)
        invoke = _one_of(Invoke, options, "invoke", Invoke.SINGLE)
        pattern = TopicPattern(message.procedure, match)
        if not pattern.is_valid:
            raise WampError(INVALID_URI, f"{message.procedure!r} is no {match} URI")
        if not self._roles.permission(session.identity, "register", pattern.uri, match).is_allowed:
            raise WampError(NOT_AUTHORIZED, f"you may not register {pattern}")
        if options.get("disclose_caller") is True:
            raise WampError(OPTION_DISALLOWED_DISCLOSE_ME, "callers are disclosed at their own wish, or by permission")
        party = self._book.party(session)
        if len(party.registrations) >= MOST_REGISTRATIONS:
            raise WampError(UNAVAILABLE, f"a session has at most {MOST_REGISTRATIONS} registrations")
        found = self.registrations.lookup(pattern)
        if found is not None:
            if found.procedure is not None or Invoke.SINGLE in (found.invoke, invoke) or session in found.callees:
                raise WampError(PROCEDURE_ALREADY_EXISTS, f"{pattern} is registered already")
            if found.invoke is not invoke:
                raise WampError(
                    PROCEDURE_ALREADY_EXISTS, f"{pattern} is registered with invoke {found.invoke}, not {invoke}"
                )
        registration = found or self.registrations.add(pattern, invoke, self._clock.now_ns(), None)
        registration.callees.append(session)
        party.registrations[registration.id] = registration
        return registration, found is None

    def _remove_callee(self, registration: WampRegistration, session: Session) -> None:
        registration.remove(session)
        if not registration.callees:
            self.registrations.delete(registration)

    def _tell_removed(self, registration: WampRegistration, session: Session) -> None:
        self._tell_meta("wamp.registration.on_unregister", [session.id, registration.id], {})
        if self.registrations.get(registration.id) is None:
            self._tell_meta("wamp.registration.on_delete", [session.id, registration.id], {})

    def _invoke(self, call: PendingCall, message: CallMessage, *, discloses: bool) -> None:
        """Send INVOCATION to the callee whose turn it is."""
        callee = call.registration.next_callee()
        call.receives_progress = call.receives_progress and can_send_parts(callee)
        details = _passed_on(message.options)
        if call.registration.pattern.match is not Match.EXACT:
            details["procedure"] = message.procedure
        if call.receives_progress:
            details["receive_progress"] = True
        if discloses:
            details |= call.caller.identity.disclosed("caller")
        invocation = self._book.party(callee).last_invocation + 1
        passed_on = InvocationMessage(invocation, call.registration.id, details, message.args, message.kwargs)
        data = encoded_for(callee, passed_on, "the callee")
        call.callee, call.invocation = callee, invocation
        self._book.begin(call)
        self._book.watch(call, self._expired)
        callee.send_bytes(data)

    def _run(self, call: PendingCall, procedure: Procedure, message: CallMessage) -> None:
        """Run a procedure of the router; one that takes longer becomes a task."""
        context = CallContext(call.caller, message, lambda part: self._send_part(call, part))
        try:
            outcome = procedure(context)
        except WampError:
            raise
        except Exception as error:
            raise _failed(call) from error
        if isinstance(outcome, CallOutcome):
            self._book.begin(call)
            self._finish(call, outcome.message(call.request))
            return

        async def finish() -> None:
            try:
                self._finish(call, (await outcome).message(call.request))
            except WampError as error:
                self._refuse(call, error)
            except ConnectionError:
                self._book.end(call)
            except Exception:
                self._refuse(call, _failed(call))

        self._book.begin(call)
        self._book.watch(call, self._expired)
        call.task = asyncio.ensure_future(finish())

    def _answered(self, session: Session, invocation: int) -> PendingCall | None:
        """Return the call that a callee speaks of, ``None`` for one that has ended."""
        party = self._book.party(session)
        if invocation > party.last_invocation:
            raise WampProtocolError(f"an answer to invocation {invocation}, which was never sent")
        return party.invocations.get(invocation)

    def _send_part(self, call: PendingCall, part: ResultMessage) -> None:
        """Send the caller a part of its result; a part that it cannot take ends the call."""
        if call.has_ended:
            return
        try:
            data = encoded_for(call.caller, part, "the caller")
        except WampError as error:
            self._give_up(call, error)
            return
        self._book.watch(call, self._expired)
        call.caller.send_bytes(data)

    def _finish(self, call: PendingCall, message: ResultMessage | ErrorMessage) -> None:
        """End a call with what came of it, or with ERROR where the caller cannot take that."""
        try:
            data = encoded_for(call.caller, message, "the caller")
        except WampError as error:
            self._refuse(call, error)
            return
        if self._book.end(call):
            call.caller.send_bytes(data)

    def _refuse(self, call: PendingCall, error: WampError) -> None:
        """End a call with ERROR."""
        if self._book.end(call):
            call.caller.refuse(CallMessage.code, call.request, error)

    def _give_up(self, call: PendingCall, error: WampError, *, interrupts: bool = True) -> None:
        """End a call with ERROR though its callee is still at work."""
        if self._book.end(call):
            call.caller.refuse(CallMessage.code, call.request, error)
            if interrupts or call.task is not None:
                call.stop(error.uri)

    def _expired(self, call: PendingCall) -> None:
        self._give_up(call, WampError(TIMEOUT, f"nothing came for {call.timeout_s:g} s"))


def _failed(call: PendingCall) -> WampError:
    """Log what went wrong in a procedure of the router, and return what the caller is told."""
    _LOGGER.exception("the procedure %s failed", call.registration.pattern)
    return WampError(UNAVAILABLE, f"{call.registration.pattern} failed; the router's log says why")


def _passed_on(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in PAYLOAD_OPTIONS if name in options}


def _timeout(options: Mapping[str, Any]) -> float:
    """Return the option ``timeout`` in seconds."""
    value = options.get("timeout", 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LONGEST_TIMEOUT_MS:
        raise WampError(INVALID_ARGUMENT, f"timeout must be milliseconds from 0 to {LONGEST_TIMEOUT_MS}, got {value!r}")
    return value / 1_000


def _one_of(kind: type[Choice], options: Mapping[str, Any], name: str, default: Choice) -> Choice:
    """Return an option that is one of a few words."""
    value = options.get(name, default)
    try:
        return kind(value)
    except ValueError:
        words = ", ".join(kind)
        raise WampError(INVALID_ARGUMENT, f"{name} must be one of {words}, got {value!r}") from None
