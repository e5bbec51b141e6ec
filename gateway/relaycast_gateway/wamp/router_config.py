"""How a router is set up: its realms, who may join them and do what, and what history is kept."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.authentication import ANONYMOUS, AUTH_METHODS, AuthMethod, WampUser
from relaycast_gateway.wamp.authorization import PermissionRule, Role, everything
from relaycast_gateway.wamp.connections import ConnectionLimits
from relaycast_gateway.wamp.history import HistoryRule

DEFAULT_REALM = "relaycast"
CHAIN_PREFIX = "io.relaycast."
"""Topics of the chains by default; in the first realm clients cannot publish there."""

ADMIN, USER = "admin", "user"

ResultShape = Literal["standard", "crossbar"]


STANDARD_ROLES = (
    everything(ADMIN),
    everything(USER, PermissionRule(TopicPattern("wamp.session.kill", Match.PREFIX), frozenset({"subscribe"}))),
)
"""Roles of clients with a token: an admin may do everything, a user may not end the sessions of others."""


def chain_history(prefix: str) -> HistoryRule:
    """Return the rule by which all that the chains publish is kept."""
    return HistoryRule(TopicPattern(prefix, Match.PREFIX))


@dataclass(frozen=True, slots=True)
class RouterLimits(ConnectionLimits):
    """Bounds of one router: of its connections, and of one answer of ``wamp.subscription.get_events``."""

    most_history_events: int = 10_000
    most_history_bytes: int = 4 << 20


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

    history: tuple[HistoryRule, ...] = ()
    """What is kept, the chains' own topics among them; the most specific rule decides."""

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
        realm = RealmConfig(
            roles=(everything(ANONYMOUS),),
            anonymous_role=ANONYMOUS,
            history=(chain_history(chain_prefix),),
            has_chains=True,
            chain_prefix=chain_prefix,
        )
        known = tuple(users)
        if not known:
            return cls((realm,))
        return cls((replace(realm, roles=(), anonymous_role=None),)).with_users(known)

    def with_users(self, users: Iterable[WampUser]) -> "RouterConfig":
        """Return the router with more users of the first realm; it gets the roles ``admin`` and ``user`` if need be."""
        first, *others = self.realms
        known = {role.name for role in first.roles}
        roles = (*first.roles, *(role for role in STANDARD_ROLES if role.name not in known))
        return replace(self, realms=(replace(first, roles=roles, users=(*first.users, *users)), *others))

    def with_history(self, patterns: Iterable[TopicPattern]) -> "RouterConfig":
        """Return the router with more topics of the first realm kept, as long as the log keeps events."""
        first, *others = self.realms
        known = {rule.pattern: rule for rule in first.history}
        more = {pattern: HistoryRule(pattern) for pattern in patterns}
        return replace(self, realms=(replace(first, history=tuple({**known, **more}.values())), *others))
