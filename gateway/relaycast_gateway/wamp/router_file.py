"""Reads the TOML file that sets up a router; ``docs`` show one.

Law: a file is read wholly or refused in one line, ``InvalidRouterConfig``. Secrets stand in the file or in files of
their own; a file that holds one must not be readable by others. No refusal shows a secret.
"""

import re
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from stat import S_IMODE
from typing import get_args

from relaycast_gateway.access import ROUTER_PREFIX
from relaycast_gateway.log import Retention
from relaycast_gateway.matching.topics import Match, TopicPattern, is_topic
from relaycast_gateway.wamp.authentication import AUTH_METHODS, MOST_ITERATIONS, MOST_KEY_BYTES, Salting, WampUser
from relaycast_gateway.wamp.authorization import (
    ACTIONS,
    CLOSED_ACTIONS,
    DISCLOSED_ACTIONS,
    PermissionRule,
    Role,
)
from relaycast_gateway.wamp.config_table import ConfigTable, InvalidRouterConfig, nearest_of, shown
from relaycast_gateway.wamp.history import HistoryRule
from relaycast_gateway.wamp.router_config import (
    RealmConfig,
    ResultShape,
    RouterConfig,
    RouterLimits,
    chain_history,
)

SHORTEST_SECRET = 16
"""Characters of a ticket or a secret: too many to guess over a network."""

LONGEST_AUTHID = 64
OTHERS_MAY_READ = 0o077

_MATCHES: tuple[str, ...] = tuple(Match)
_SHAPES: tuple[ResultShape, ...] = get_args(ResultShape)
_RESERVED_REALM = re.compile(r"icrc\d+", re.ASCII)
_SECRET_NAMES = ("ticket", "secret", "derived_secret")


def read_router_config(file: str | Path) -> RouterConfig:
    """Return what ``file`` says; raises ``InvalidRouterConfig``, whose places are inside the file.

    An empty place stands for the file itself.
    """
    path = Path(file)
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidRouterConfig("", (error.strerror or "an error").lower(), "a TOML file") from None
    except UnicodeDecodeError:
        raise InvalidRouterConfig("", "bytes that are no text", "a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidRouterConfig("", f"a mistake: {error}", "a TOML file") from None
    return _Reading(path).router(ConfigTable("", values))


class _Reading:
    """One file while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def router(self, top: ConfigTable) -> RouterConfig:
        limits = _limits(top.table("limits"))
        realms: list[RealmConfig] = []
        for table in top.tables("realms"):
            realm = self._realm(table, is_first=not realms)
            if realm.name in {other.name for other in realms}:
                raise table.refuse("name", "each realm once")
            realms.append(realm)
        top.end()
        if not realms:
            raise InvalidRouterConfig("realms", "nothing", "at least one realm: [[realms]]")
        return RouterConfig(tuple(realms), limits)

    def _realm(self, table: ConfigTable, *, is_first: bool) -> RealmConfig:
        name = table.text("name", "the name of a realm, such as com.example.shop")
        if not is_topic(name) or ":" in name or _RESERVED_REALM.fullmatch(name):
            raise table.refuse("name", "a name such as com.example.shop: no space, no # and no :, and not icrc72")
        default = RealmConfig(name, has_chains=is_first)
        chain_prefix = default.chain_prefix
        if table.has("chain_prefix"):
            if not is_first:
                raise table.refuse("chain_prefix", "it in the first realm only, which has the chains")
            chain_prefix = table.text("chain_prefix", "a prefix of topics")
            if not chain_prefix.endswith(".") or not TopicPattern(chain_prefix, Match.PREFIX).is_valid:
                raise table.refuse("chain_prefix", "a prefix of topics that ends with a dot, such as io.relaycast.")
        roles = _roles(table)
        history, chains = _history(table), chain_history(chain_prefix)
        realm = RealmConfig(
            name,
            roles=tuple(roles),
            users=tuple(self._users(table, [role.name for role in roles])),
            anonymous_role=_role_name(table, "anonymous_role", roles) if table.has("anonymous_role") else None,
            methods=table.choices("methods", AUTH_METHODS, default=AUTH_METHODS),
            history=tuple({**({chains.pattern: chains} if is_first else {}), **history}.values()),
            has_chains=is_first,
            chain_prefix=chain_prefix,
            result_shape=table.choice("result_shape", _SHAPES, default=default.result_shape),
            timestamp_digits=table.number("timestamp_digits", default=default.timestamp_digits, least=3, most=9),
            announce_callee=table.flag("announce_callee", default=default.announce_callee),
            sequential_request_ids=table.flag("sequential_request_ids", default=default.sequential_request_ids),
        )
        table.end()
        return realm

    def _users(self, table: ConfigTable, roles: Collection[str]) -> list[WampUser]:
        found: dict[str, WampUser] = {}
        for each in table.tables("users"):
            user = self._user(each, roles)
            if user.authid in found:
                raise each.refuse("authid", "each authid once in a realm")
            found[user.authid] = user
        return list(found.values())

    def _user(self, table: ConfigTable, roles: Collection[str]) -> WampUser:
        authid = table.text("authid", "a name")
        if len(authid) > LONGEST_AUTHID or not authid.isprintable():
            raise table.refuse("authid", f"1 to {LONGEST_AUTHID} printable characters")
        role = table.text("role", "the name of a role of the realm")
        if role not in roles:
            raise table.refuse("role", "the name of a role of the realm", hint=nearest_of(role, roles))
        ticket, secret, derived = (self._secret(table, name) for name in _SECRET_NAMES)
        if secret is not None and derived is not None:
            raise table.refuse("derived_secret", "either secret or derived_secret", got="both")
        salting = None
        if table.has("salt"):
            salting = Salting(
                table.text("salt", "a text"),
                table.number("iterations", default=1_000, least=1, most=MOST_ITERATIONS),
                table.number("keylen", default=32, least=16, most=MOST_KEY_BYTES),
            )
        elif derived is not None or table.has("iterations") or table.has("keylen"):
            raise table.refuse("salt", "the salt of derived_secret, iterations or keylen")
        if salting is not None and secret is None and derived is None:
            raise table.refuse("salt", "a secret beside it")
        table.end()
        if ticket is None and secret is None and derived is None:
            raise InvalidRouterConfig(table.place, "no proof", "a ticket or a secret")
        user = WampUser.of(authid, role, ticket=ticket, secret=secret, salt=salting)
        return user if derived is None else WampUser(authid, role, user.ticket_digest, derived.encode(), salting)

    def _secret(self, table: ConfigTable, name: str) -> str | None:
        """Return a secret by value or from a file of its own."""
        expected = f"at least {SHORTEST_SECRET} characters"
        if table.has(f"{name}_file"):
            file = table.text(f"{name}_file", "the name of a file")
            if table.has(name):
                raise table.refuse(name, f"either {name} or {name}_file", got="both")
            path = self._path.parent / file
            place = table.at(f"{name}_file")
            try:
                text = path.read_text("utf-8").strip()
            except OSError as error:
                got = f"{shown(file)}: {(error.strerror or 'an error').lower()}"
                raise InvalidRouterConfig(place, got, "a file") from None
            except UnicodeDecodeError:
                raise InvalidRouterConfig(place, "bytes that are no text", expected) from None
            _ensure_private(path, place)
            if len(text) < SHORTEST_SECRET:
                raise InvalidRouterConfig(place, f"{len(text)} characters", expected)
            return text
        table.know(name, f"{name}_file")
        if not table.has(name):
            return None
        value = table.secret(name, expected, shortest=SHORTEST_SECRET)
        _ensure_private(self._path, table.at(name))
        return value


def _limits(table: ConfigTable) -> RouterLimits:
    default = RouterLimits()
    seconds = table.seconds("handshake_seconds", default=default.handshake_seconds, least=0.1, most=3_600)
    limits = RouterLimits(
        most_sessions=table.number("most_sessions", default=default.most_sessions, least=1, most=1_000_000),
        most_message_bytes=table.number(
            "most_message_bytes", default=default.most_message_bytes, least=512, most=16 << 20
        ),
        most_waiting_bytes=table.number(
            "most_waiting_bytes", default=default.most_waiting_bytes, least=1 << 10, most=1 << 30
        ),
        most_history_events=table.number(
            "most_history_events", default=default.most_history_events, least=1, most=1_000_000
        ),
        most_history_bytes=table.number(
            "most_history_bytes", default=default.most_history_bytes, least=1 << 10, most=16 << 20
        ),
        handshake_seconds=default.handshake_seconds if seconds is None else seconds,
    )
    table.end()
    return limits


def _roles(table: ConfigTable) -> list[Role]:
    found: dict[str, Role] = {}
    for each in table.tables("roles"):
        name = each.text("name", "the name of a role")
        if name in found:
            raise each.refuse("name", "each role once in a realm")
        rules: dict[TopicPattern, PermissionRule] = {}
        for permission in each.tables("permissions"):
            rule = _permission(permission)
            if rule.pattern in rules:
                raise permission.refuse("uri", "each pattern once in a role")
            rules[rule.pattern] = rule
        each.end()
        found[name] = Role(name, tuple(rules.values()))
    return list(found.values())


def _permission(table: ConfigTable) -> PermissionRule:
    pattern = _pattern(table)
    allow = table.choices("allow", ACTIONS, default=())
    disclose = table.choices("disclose", DISCLOSED_ACTIONS, default=())
    for action in disclose:
        if action not in allow:
            raise table.refuse("disclose", "actions that stand in allow, too")
    if pattern.uri.startswith(ROUTER_PREFIX) and any(action in CLOSED_ACTIONS for action in allow):
        raise table.refuse("allow", "subscribe and call only: URIs with wamp. are the router's own")
    table.end()
    return PermissionRule(pattern, frozenset(allow), frozenset(disclose))


def _role_name(table: ConfigTable, name: str, roles: Sequence[Role]) -> str:
    known = [role.name for role in roles]
    found = table.text(name, "the name of a role of the realm")
    if found not in known:
        raise table.refuse(name, "the name of a role of the realm", hint=nearest_of(found, known))
    return found


def _history(table: ConfigTable) -> dict[TopicPattern, HistoryRule]:
    found: dict[TopicPattern, HistoryRule] = {}
    for each in table.tables("history"):
        pattern = _pattern(each)
        if pattern in found:
            raise each.refuse("uri", "each pattern once in a realm")
        found[pattern] = HistoryRule(
            pattern,
            is_kept=each.flag("keep", default=True),
            is_persistent=each.flag("persistent", default=True),
            retention=Retention(
                each.bound("count", "events"),
                each.seconds("age_seconds", default=None, least=0, most=10_000_000_000),
                each.bound("bytes", "bytes"),
            ),
        )
        each.end()
    return found


def _pattern(table: ConfigTable) -> TopicPattern:
    uri = table.any_text("uri", "a URI such as com.example.price")
    match = Match(table.choice("match", _MATCHES, default=Match.EXACT.value))
    pattern = TopicPattern(uri, match)
    if not pattern.is_valid:
        expected = {
            Match.EXACT: "a URI such as com.example.price",
            Match.PREFIX: "the beginning of a URI, such as com.example.",
            Match.WILDCARD: "a URI with empty components, such as com..price",
        }[match]
        hint = "for a prefix, match = prefix" if match is Match.EXACT and uri.endswith(".") else ""
        raise table.refuse("uri", expected, hint=hint)
    return pattern


def _ensure_private(path: Path, place: str) -> None:
    mode = S_IMODE(path.stat().st_mode)
    if mode & OTHERS_MAY_READ:
        raise InvalidRouterConfig(place, f"a secret in a file of mode {mode:04o}", f"0600: chmod 600 {path}")
