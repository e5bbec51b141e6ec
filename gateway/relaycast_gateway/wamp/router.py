"""The router: realms, and the sessions of all connections.

Law: every call is made in the event loop's thread.
"""

import asyncio
from dataclasses import dataclass

from relaycast_gateway.access import EVERYTHING, EventAccess
from relaycast_gateway.clock import Clock, SystemClock
from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.errors import CLOSE_SYSTEM_SHUTDOWN, UNAVAILABLE
from relaycast_gateway.wamp.link import Link
from relaycast_gateway.wamp.messages import unused_id
from relaycast_gateway.wamp.realm import Realm
from relaycast_gateway.wamp.router_config import RouterConfig
from relaycast_gateway.wamp.serializers import serializer_named
from relaycast_gateway.wamp.session import Session


@dataclass(frozen=True, slots=True)
class RouterFigures:
    """What a router does, for metrics."""

    sessions: int = 0
    subscriptions: int = 0
    registrations: int = 0
    published: int = 0
    delivered: int = 0
    dropped_sessions: int = 0
    """Sessions ended because their client took too little of what was sent."""


class Router:
    """Realms by name; ``attach`` gives each new connection a session."""

    def __init__(
        self, config: RouterConfig, log: EventLog, clock: Clock | None = None, access: EventAccess = EVERYTHING
    ) -> None:
        self.config = config
        self.log = log
        self.clock = clock or SystemClock()
        self.realms = {realm.name: Realm(realm, log, self.clock, config.limits, access) for realm in config.realms}
        self._sessions: dict[int, Session] = {}
        self._has_ended: asyncio.Event | None = None
        self._is_running = False
        self._dropped_sessions = 0

    async def start(self) -> None:
        """Begin to deliver."""
        for realm in self.realms.values():
            realm.start()
        self._is_running = True

    async def stop(self) -> None:
        """Deliver what was accepted, say GOODBYE to every client, and return when their sessions have ended."""
        if not self._is_running:
            return
        self._is_running = False
        for realm in self.realms.values():
            await realm.stop()
        for session in list(self._sessions.values()):
            session.end(CLOSE_SYSTEM_SHUTDOWN)
        if self._sessions:
            self._has_ended = asyncio.Event()
            await self._has_ended.wait()

    def attach(self, link: Link) -> Session:
        """Return the session of a new connection; what the client sends is handed to its ``receive``."""
        session = Session(
            unused_id(self._sessions),
            link,
            serializer_named(link.serializer),
            realm_named=self.realms.get,
            on_end=self._forget,
            clock=self.clock,
            handshake_seconds=self.config.limits.handshake_seconds,
        )
        self._sessions[session.id] = session
        if not self._is_running:
            session.abort(CLOSE_SYSTEM_SHUTDOWN, "the router does not run")
        elif len(self._sessions) > self.config.limits.most_sessions:
            session.abort(UNAVAILABLE, f"the router has {self.config.limits.most_sessions} sessions already")
        return session

    def count_dropped(self) -> None:
        """Count a session that was ended because its client took too little."""
        self._dropped_sessions += 1

    def figures(self) -> RouterFigures:
        """Return what there is to count."""
        realms = self.realms.values()
        return RouterFigures(
            sessions=len(self._sessions),
            subscriptions=sum(len(realm.broker.subscriptions) for realm in realms),
            registrations=sum(len(realm.dealer.registrations) for realm in realms),
            published=sum(realm.broker.accepted for realm in realms),
            delivered=sum(realm.broker.events_sent for realm in realms),
            dropped_sessions=self._dropped_sessions,
        )

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        if not self._sessions and self._has_ended is not None:
            self._has_ended.set()
