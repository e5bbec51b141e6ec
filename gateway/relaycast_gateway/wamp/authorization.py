"""What a role may do, URI by URI.

Law: nothing is allowed that no rule allows. The most specific rule that selects a URI decides all four actions. An
exact rule comes before prefixes, a longer prefix before a shorter one, and any prefix before wildcards. Wildcards with
more given components come first; among equals, the one whose given components stand further left.

A pattern of a subscription or registration is allowed where one rule covers it wholly and allows the action. No rule
that comes before that one may refuse the action for any topic of the pattern. So a role that may subscribe to one topic
cannot reach it, or others, by a prefix; and a pattern that two rules cover only together is refused.

Closed prefixes are the router's own: no rule opens them for publications and registrations of clients, and a pattern
that shares a URI with one of them cannot be registered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from relaycast_gateway.access import ROUTER_PREFIX
from relaycast_gateway.matching.pattern_relations import covers, overlap
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.identity import Identity

Action = Literal["publish", "subscribe", "call", "register"]
ACTIONS: tuple[Action, ...] = ("publish", "subscribe", "call", "register")
CLOSED_ACTIONS: tuple[Action, ...] = ("publish", "register")
DISCLOSED_ACTIONS: tuple[Action, ...] = ("publish", "call")

MOST_REMEMBERED = 10_000
"""Decisions kept, so that a publication costs one look-up; all are forgotten when there are more."""


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """What is allowed for the URIs of ``pattern``; an empty ``allow`` refuses everything."""

    pattern: TopicPattern
    allow: frozenset[Action] = frozenset()
    disclose: frozenset[Action] = frozenset()
    """``publish``, ``call``: receivers and callees always learn who did it."""

    @property
    def rank(self) -> tuple[int, int, list[bool]]:
        """How specific the rule is: larger comes first."""
        uri, match = self.pattern.uri, self.pattern.match
        if match is Match.EXACT:
            return 2, 0, []
        if match is Match.PREFIX:
            return 1, len(uri), []
        given = [bool(part) for part in uri.split(".")]
        return 0, sum(given), given


@dataclass(frozen=True, slots=True)
class Role:
    """A named set of rules."""

    name: str
    rules: tuple[PermissionRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether an action is allowed, and what comes with it."""

    is_allowed: bool
    discloses: bool = False
    """Who publishes or calls is told to those who receive it, whatever the client asks for."""

    is_explicit: bool = False
    """Whether a rule for exactly this URI decided."""


REFUSED = Permission(is_allowed=False)


def everything(name: str, *others: PermissionRule) -> Role:
    """Return a role that may do everything but what ``others`` say."""
    return Role(name, (PermissionRule(TopicPattern("", Match.PREFIX), frozenset(ACTIONS)), *others))


class Roles:
    """The roles of a realm.

    >>> roles = Roles([everything("admin")], closed=("io.relaycast.",))
    >>> admin = Identity(1, "shop", "ann", "admin")
    >>> roles.permission(admin, "publish", "com.shop.price").is_allowed
    True
    >>> roles.permission(admin, "publish", "io.relaycast.block.imported").is_allowed
    False
    """

    def __init__(self, roles: Iterable[Role] = (), *, closed: Sequence[str] = ()) -> None:
        self._rules = {role.name: sorted(role.rules, key=lambda rule: rule.rank, reverse=True) for role in roles}
        self._closed = [TopicPattern(prefix, Match.PREFIX) for prefix in dict.fromkeys((ROUTER_PREFIX, *closed))]
        self._remembered: dict[tuple[str, Action, str, Match], Permission] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def permission(self, identity: Identity, action: Action, uri: str, match: Match = Match.EXACT) -> Permission:
        """Return what ``identity`` may do with ``uri``, which has the form that ``match`` asks for."""
        key = (identity.authrole, action, uri, match)
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[key] = self._decide(identity.authrole, action, TopicPattern(uri, match))
        return found

    def _decide(self, role: str, action: Action, pattern: TopicPattern) -> Permission:
        if action in CLOSED_ACTIONS and any(overlap(closed, pattern) for closed in self._closed):
            return REFUSED
        for rule in self._rules.get(role, ()):
            allows = action in rule.allow
            if covers(rule.pattern, pattern):
                return Permission(True, action in rule.disclose, rule.pattern == pattern) if allows else REFUSED
            if not allows and overlap(rule.pattern, pattern):
                return REFUSED
        return REFUSED
