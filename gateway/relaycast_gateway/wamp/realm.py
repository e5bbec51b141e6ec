"""A realm: its sessions, and the parts that answer their requests."""

from collections.abc import Mapping

from relaycast_gateway.clock import Clock
from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.authentication import Authenticator
from relaycast_gateway.wamp.authorization import Roles
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.router_config import RealmConfig
from relaycast_gateway.wamp.session import Handler, Session


class Realm:
    """Clients that see one another."""

    def __init__(self, config: RealmConfig, log: EventLog, clock: Clock) -> None:
        self.config = config
        self.name = config.name
        self.log = log
        self.clock = clock
        closed = (config.chain_prefix,) if config.has_chains else ()
        self.roles = Roles(config.roles, closed=closed)
        self.authenticator = Authenticator(
            config.users, anonymous_role=config.anonymous_role, preference=config.methods, clock=clock
        )
        self.counts_requests = config.sequential_request_ids
        self.sessions: dict[int, Session] = {}
        self.handlers: Mapping[type, Handler] = {}

    def welcome_details(self, identity: Identity) -> dict[str, object]:
        """Return what WELCOME says: who the client is, and what the router can do."""
        features: dict[str, object] = {"broker": {"features": {}}, "dealer": {"features": {}}}
        return {"realm": self.name, **identity.details(), "roles": features}

    def join(self, session: Session) -> None:
        """Count in a session that was just opened."""
        self.sessions[session.id] = session

    def leave(self, session: Session) -> None:
        """Forget a session and all that it subscribed to and registered."""
        del self.sessions[session.id]
