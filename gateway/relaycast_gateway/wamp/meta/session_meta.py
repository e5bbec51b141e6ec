"""Sessions of a realm, for clients: who is there, who comes and goes, and an end to any of them.

Law: nobody ends the session that it asks with. Who may ask, and who may end sessions, is a matter of permissions.
Source: WAMP specification, "Session Meta API".
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relaycast_gateway.matching.topics import is_topic
from relaycast_gateway.wamp.dealer import Dealer, TellMeta
from relaycast_gateway.wamp.errors import CLOSE_NORMAL, INVALID_ARGUMENT, INVALID_URI, NO_SUCH_SESSION, WampError
from relaycast_gateway.wamp.procedures import CallContext, CallOutcome
from relaycast_gateway.wamp.session import Session

ON_JOIN = "wamp.session.on_join"
ON_LEAVE = "wamp.session.on_leave"


class SessionMeta:
    """The procedures on ``sessions``, and the events of those that come and go."""

    def __init__(self, sessions: Mapping[int, Session], tell_meta: TellMeta) -> None:
        self._sessions = sessions
        self._tell_meta = tell_meta
        self._is_silent = False

    def offer(self, dealer: Dealer) -> None:
        """Offer the procedures."""
        dealer.offer("wamp.session.count", lambda context: CallOutcome([len(self._filtered(context))]))
        dealer.offer("wamp.session.list", lambda context: CallOutcome([self._filtered(context)]))
        dealer.offer("wamp.session.get", self._get)
        dealer.offer("wamp.session.kill", self._kill)
        dealer.offer("wamp.session.kill_by_authid", self._kill_by_authid)
        dealer.offer("wamp.session.kill_by_authrole", self._kill_by_authrole)
        dealer.offer("wamp.session.kill_all", self._kill_all)

    def joined(self, session: Session) -> None:
        """Tell that a session was opened."""
        self._tell_meta(ON_JOIN, [_details(session)], {})

    def left(self, session: Session) -> None:
        """Tell that a session has ended."""
        if not self._is_silent:
            identity = session.identity
            self._tell_meta(ON_LEAVE, [session.id, identity.authid, identity.authrole], {})

    def _filtered(self, context: CallContext) -> list[int]:
        roles = context.args[0] if context.args else None
        if roles is None:
            return list(self._sessions)
        if not isinstance(roles, list) or not all(isinstance(it, str) for it in roles):
            raise WampError(INVALID_ARGUMENT, f"filter_authroles must be a list of roles, got {roles!r}")
        return [it.id for it in self._sessions.values() if it.identity.authrole in roles]

    def _get(self, context: CallContext) -> CallOutcome:
        return CallOutcome([_details(self._session(context.id_argument(0, "session")))])

    def _kill(self, context: CallContext) -> CallOutcome:
        number = context.id_argument(0, "session")
        if number == context.identity.session:
            raise WampError(NO_SUCH_SESSION, "the session that asks can be closed by GOODBYE only")
        _end([self._session(number)], context)
        return CallOutcome()

    def _kill_by_authid(self, context: CallContext) -> CallOutcome:
        authid = context.text_argument(0, "authid")
        ended = self._others(context, lambda it: it.identity.authid == authid)
        _end(ended, context)
        return CallOutcome([[it.id for it in ended]])

    def _kill_by_authrole(self, context: CallContext) -> CallOutcome:
        authrole = context.text_argument(0, "authrole")
        ended = self._others(context, lambda it: it.identity.authrole == authrole)
        _end(ended, context)
        return CallOutcome([len(ended)])

    def _kill_all(self, context: CallContext) -> CallOutcome:
        """End all other sessions; no event tells of it."""
        ended = self._others(context, lambda _: True)
        self._is_silent = True
        try:
            _end(ended, context)
        finally:
            self._is_silent = False
        return CallOutcome([len(ended)])

    def _session(self, number: int) -> Session:
        found = self._sessions.get(number)
        if found is None:
            raise WampError(NO_SUCH_SESSION, f"there is no session {number}")
        return found

    def _others(self, context: CallContext, is_meant: Callable[[Session], bool]) -> list[Session]:
        return [it for it in self._sessions.values() if it.id != context.identity.session and is_meant(it)]


def _end(sessions: Iterable[Session], context: CallContext) -> None:
    """End sessions with the reason and the message that the caller gives."""
    reason, message = context.kwargs.get("reason"), context.kwargs.get("message")
    if reason is None:
        reason = CLOSE_NORMAL
    elif not isinstance(reason, str) or not is_topic(reason):
        raise WampError(INVALID_URI, f"reason must be a URI, got {reason!r}")
    if message is not None and not isinstance(message, str):
        raise WampError(INVALID_ARGUMENT, f"message must be text, got {message!r}")
    details = {} if message is None else {"message": message}
    for session in sessions:
        session.end(reason, **details)


def _details(session: Session) -> dict[str, Any]:
    return {**session.identity.details(), "transport": session.link.transport}
