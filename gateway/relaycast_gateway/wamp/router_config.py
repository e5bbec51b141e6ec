"""How a router is set up: its realms, who may join them and do what, and what history is kept."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.authentication import ANONYMOUS, AUTH_METHODS, AuthMethod, WampUser
from relaycast_gateway.wamp.authorization import PermissionRule, Role, everything

DEFAULT_REALM = "relaycast"
CHAIN_PREFIX = "io.relaycast."
"""Topics of the chains by default; in the first realm clients cannot publish there."""

ADMIN, USER = "admin", "user"

ResultShape = Literal["standard", "crossbar"]


@dataclass(frozen=True, slots=True)
class RouterLimits:
    """Bounds of one router."""

    most_sessions: int = 10_000
    most_message_bytes: int = 16 << 20
    most_waiting_bytes: int = 8 << 20
    """Bytes that a client has not taken yet; a session with more is ended."""

    most_history_events: int = 10_000
    """Events in one answer of ``wamp.subscription.get_events``."""

    most_history_bytes: int = 4 << 20
    handshake_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class RealmConfig:
    """One realm: topics, procedures and clients that see only one another."""

    name: str = DEFAULT_REALM
    roles: tuple[Role, ...] = ()
    users: tuple[WampUser, ...] = field(default=(), repr=False)
    anonymous_role: str | None = None
    """The role of clients that prove nothing; without one they are refused."""

    methods: tuple[AuthMethod, ...] = AUTH_METHODS
    """In the order of preference."""

    has_chains: bool = False
    """Whether the chains publish here; so it is in the first realm."""

    chain_prefix: str = CHAIN_PREFIX
    result_shape: ResultShape = "standard"
    timestamp_digits: int = 9
    announce_callee: bool = False
    """Whether WELCOME says that the router has the role of a callee; some clients refuse a router that does."""

    sequential_request_ids: bool = False
    """Whether a request id that is not the next one is a protocol violation."""

    @property
    def topic_prefix(self) -> str:
        """Return what stands before a topic of this realm in the log."""
        return "" if self.has_chains else f"{self.name}:"


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """Realms, the first one with the chains, and limits."""

    realms: tuple[RealmConfig, ...]
    limits: RouterLimits = RouterLimits()

    @classmethod
    def default(cls, users: Iterable[WampUser] = (), *, chain_prefix: str = CHAIN_PREFIX) -> "RouterConfig":
        """Return one realm. Without ``users`` everybody may join and do everything; with users nobody else joins."""
        known = tuple(users)
        kept_from_users = PermissionRule(TopicPattern("wamp.session.kill", Match.PREFIX), frozenset({"subscribe"}))
        roles = (everything(ADMIN), everything(USER, kept_from_users)) if known else (everything(ANONYMOUS),)
        realm = RealmConfig(
            roles=roles,
            users=known,
            anonymous_role=None if known else ANONYMOUS,
            has_chains=True,
            chain_prefix=chain_prefix,
        )
        return cls((realm,))
