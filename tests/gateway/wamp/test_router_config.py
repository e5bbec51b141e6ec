"""A file sets up a router, or is refused in one line that says where and why."""

from pathlib import Path

import pytest

from relaycast_gateway.log import Retention
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.authentication import WampUser
from relaycast_gateway.wamp.authorization import Roles
from relaycast_gateway.wamp.config_table import InvalidRouterConfig
from relaycast_gateway.wamp.history import HistoryRule, HistoryRules
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.router_config import RouterConfig
from relaycast_gateway.wamp.router_file import read_router_config

EXAMPLE = Path(__file__).parents[3] / "docs" / "guides" / "wamp-router.toml"

ROLE = '[[realms.roles]]\nname = "guest"\npermissions = [{ uri = "com.", match = "prefix", allow = ["call"] }]\n'
REALM = f'[[realms]]\nname = "shop"\n{ROLE}'
SECRET = "a secret nobody guesses"


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "router.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.fixture
def example(tmp_path: Path) -> RouterConfig:
    """The example of the guide, with the files of secrets that it names."""
    for name in ("ann.ticket", "ann.secret"):
        file = tmp_path / name
        file.write_text(f"{SECRET} in {name}\n")
        file.chmod(0o600)
    return read_router_config(written(tmp_path, EXAMPLE.read_text(), 0o644))


def test_the_example_of_the_guide_sets_up_two_realms(example: RouterConfig) -> None:
    first, second = example.realms
    assert (first.name, second.name) == ("relaycast", "com.example.lab")
    assert (first.has_chains, second.has_chains) == (True, False)
    assert (first.topic_prefix, second.topic_prefix) == ("", "com.example.lab:")
    assert first.anonymous_role == "reader"
    assert [user.methods for user in first.users] == [{"ticket", "wampcra"}]
    assert example.limits.most_sessions == 5_000
    assert example.limits.handshake_seconds == 5
    assert SECRET not in repr(example)


def test_the_example_keeps_what_it_says(example: RouterConfig) -> None:
    first, second = (HistoryRules(realm.history) for realm in example.realms)
    bounds = Retention(count=100_000, age_seconds=86_400, bytes=100_000_000)
    assert first.rule_for("com.example.price") == HistoryRule(
        TopicPattern("com.example.", Match.PREFIX), retention=bounds
    )
    ticks, chains = first.rule_for("com.example.ticks"), first.rule_for("io.relaycast.block.imported.relay")
    assert ticks is not None
    assert not ticks.is_persistent
    assert chains is not None
    assert chains.is_persistent
    assert second.rule_for("io.relaycast.block.imported.relay") is None
    assert second.rule_for("lab.results") is not None


def test_the_example_lets_roles_do_what_it_says(example: RouterConfig) -> None:
    roles = Roles(example.realms[0].roles, closed=("io.relaycast.",))
    reader, trader = (Identity(1, "relaycast", "x", role) for role in ("reader", "trader"))
    assert roles.permission(reader, "subscribe", "io.relaycast.", Match.PREFIX).is_allowed
    assert not roles.permission(reader, "publish", "com.example.price").is_allowed
    assert not roles.permission(reader, "subscribe", "", Match.PREFIX).is_allowed
    assert roles.permission(trader, "publish", "com.example.orders.new").discloses
    assert not roles.permission(trader, "call", "com.example.audit.shop").is_allowed
    assert not roles.permission(trader, "call", "wamp.session.kill_all").is_allowed


@pytest.mark.parametrize(
    ("text", "place", "got", "expected"),
    [
        ("", "realms", "nothing", "at least one realm: [[realms]]"),
        ("realms = 5", "realms", "5", "a list of tables: [[realms]]"),
        ('[realms]\nname = "shop"', "realms", "a table", "a list of tables: [[realms]]"),
        ("[[realm]]", "realm", "an unknown name", "a setting (did you mean realms?)"),
        (f"{REALM}[limit]", "limit", "an unknown name", "a setting (did you mean limits?)"),
        (
            f"[limits]\nmost_sesions = 5\n{REALM}",
            "limits.most_sesions",
            "an unknown name",
            "a setting (did you mean most_sessions?)",
        ),
        (f"[limits]\nmost_sessions = 0\n{REALM}", "limits.most_sessions", "0", "a whole number from 1 to 1,000,000"),
        (
            f"[limits]\nmost_sessions = true\n{REALM}",
            "limits.most_sessions",
            "true",
            "a whole number from 1 to 1,000,000",
        ),
        (f'[limits]\nhandshake_seconds = "5"\n{REALM}', "limits.handshake_seconds", "'5'", "seconds from 0.1 to 3,600"),
        ("[[realms]]", "realms[0].name", "nothing", "the name of a realm, such as com.example.shop"),
        (
            '[[realms]]\nname = "a:b"',
            "realms[0].name",
            "'a:b'",
            "a name such as com.example.shop: no space, no # and no :, and not icrc72",
        ),
        (
            '[[realms]]\nname = "icrc72"',
            "realms[0].name",
            "'icrc72'",
            "a name such as com.example.shop: no space, no # and no :, and not icrc72",
        ),
        (f"{REALM}\n{REALM}", "realms[1].name", "'shop'", "each realm once"),
        (
            '[[realms]]\nname = "a"\n[[realms]]\nname = "b"\nchain_prefix = "x."',
            "realms[1].chain_prefix",
            "'x.'",
            "it in the first realm only, which has the chains",
        ),
        (
            '[[realms]]\nname = "a"\nchain_prefix = "x"',
            "realms[0].chain_prefix",
            "'x'",
            "a prefix of topics that ends with a dot, such as io.relaycast.",
        ),
        (
            '[[realms]]\nname = "a"\nmethods = ["tickets"]',
            "realms[0].methods[0]",
            "'tickets'",
            "one of wampcra, ticket, anonymous (did you mean ticket?)",
        ),
        (
            '[[realms]]\nname = "a"\nresult_shape = "crosbar"',
            "realms[0].result_shape",
            "'crosbar'",
            "one of standard, crossbar (did you mean crossbar?)",
        ),
        ('[[realms]]\nname = "a"\nannounce_callee = 1', "realms[0].announce_callee", "1", "true or false"),
        (
            '[[realms]]\nname = "a"\ntimestamp_digits = 2',
            "realms[0].timestamp_digits",
            "2",
            "a whole number from 3 to 9",
        ),
        (
            f'[[realms]]\nname = "a"\nanonymous_role = "gest"\n{ROLE}',
            "realms[0].anonymous_role",
            "'gest'",
            "the name of a role of the realm (did you mean guest?)",
        ),
        (f"{REALM}{ROLE}", "realms[0].roles[1].name", "'guest'", "each role once in a realm"),
        (
            REALM.replace("call", "cal"),
            "realms[0].roles[0].permissions[0].allow[0]",
            "'cal'",
            "one of publish, subscribe, call, register (did you mean call?)",
        ),
        (
            REALM.replace("prefix", "prefx"),
            "realms[0].roles[0].permissions[0].match",
            "'prefx'",
            "one of exact, prefix, wildcard (did you mean prefix?)",
        ),
        (
            REALM.replace('match = "prefix"', 'match = "exact"'),
            "realms[0].roles[0].permissions[0].uri",
            "'com.'",
            "a URI such as com.example.price (for a prefix, match = prefix)",
        ),
        (
            REALM.replace('["call"]', '["call"], disclose = ["publish"]'),
            "realms[0].roles[0].permissions[0].disclose",
            "a list",
            "actions that stand in allow, too",
        ),
        (
            REALM.replace('"com."', '"wamp.session."').replace("call", "register"),
            "realms[0].roles[0].permissions[0].allow",
            "a list",
            "subscribe and call only: URIs with wamp. are the router's own",
        ),
        (
            f'{REALM}[[realms.history]]\nuri = "a b"',
            "realms[0].history[0].uri",
            "'a b'",
            "a URI such as com.example.price",
        ),
        (
            f'{REALM}[[realms.history]]\nuri = "a"\ncount = -1',
            "realms[0].history[0].count",
            "-1",
            "a number of events, 0 or more",
        ),
        (
            f'{REALM}[[realms.history]]\nuri = "a"\nkeeps = true',
            "realms[0].history[0].keeps",
            "an unknown name",
            "a setting (did you mean keep?)",
        ),
        (
            f'{REALM}[[realms.history]]\nuri = "a"\n[[realms.history]]\nuri = "a"',
            "realms[0].history[1].uri",
            "'a'",
            "each pattern once in a realm",
        ),
        (
            f'{REALM}[[realms.users]]\nauthid = "ann"\nrole = "gest"\nticket = "{SECRET}"',
            "realms[0].users[0].role",
            "'gest'",
            "the name of a role of the realm (did you mean guest?)",
        ),
        (
            f'{REALM}[[realms.users]]\nauthid = "ann"\nrole = "guest"',
            "realms[0].users[0]",
            "no proof",
            "a ticket or a secret",
        ),
        (
            f'{REALM}[[realms.users]]\nauthid = "ann"\nrole = "guest"\nticket = "short"',
            "realms[0].users[0].ticket",
            "5 characters",
            "at least 16 characters",
        ),
        (
            f'{REALM}[[realms.users]]\nauthid = "ann"\nrole = "guest"\nticket = 5',
            "realms[0].users[0].ticket",
            "no text",
            "at least 16 characters",
        ),
        (
            f'{REALM}[[realms.users]]\nauthid = "ann"\nrole = "guest"\nderived_secret = "{SECRET}"',
            "realms[0].users[0].salt",
            "nothing",
            "the salt of derived_secret, iterations or keylen",
        ),
        (
            f'{REALM}[[realms.users]]\nauthid = "ann"\nrole = "guest"\nticket = "{SECRET}"\nsecrt = "{SECRET}"',
            "realms[0].users[0].secrt",
            "an unknown name",
            "a setting (did you mean secret?)",
        ),
        (
            f'{REALM}[[realms.users]]\nauthid = "ann"\nrole = "guest"\nticket_file = "no.ticket"',
            "realms[0].users[0].ticket_file",
            "'no.ticket': no such file or directory",
            "a file",
        ),
    ],
)
def test_a_mistake_is_named_in_one_line(tmp_path: Path, text: str, place: str, got: str, expected: str) -> None:
    with pytest.raises(InvalidRouterConfig) as caught:
        read_router_config(written(tmp_path, text))
    assert str(caught.value) == f"{place}: got {got}, expected {expected}"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "got"),
    [(b"[[realms", "a mistake: "), (b"\xff", "bytes that are no text"), (None, "no such file or directory")],
)
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, data: bytes | None, got: str) -> None:
    file = tmp_path / "router.toml"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(InvalidRouterConfig) as caught:
        read_router_config(file)
    assert caught.value.place == ""
    assert caught.value.got.startswith(got)


def test_a_file_with_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    text = f'{REALM}[[realms.users]]\nauthid = "ann"\nrole = "guest"\nticket = "{SECRET}"\n'
    assert read_router_config(written(tmp_path, text)).realms[0].users[0].authid == "ann"
    with pytest.raises(InvalidRouterConfig, match=r"users\[0\].ticket: got a secret in a file of mode 0644, .* 0600"):
        read_router_config(written(tmp_path, text, 0o644))
    beside = tmp_path / "ann.ticket"
    beside.write_text(SECRET)
    beside.chmod(0o640)
    text = text.replace(f'ticket = "{SECRET}"', 'ticket_file = "ann.ticket"')
    with pytest.raises(InvalidRouterConfig, match=r"users\[0\].ticket_file: got a secret in a file of mode 0640"):
        read_router_config(written(tmp_path, text, 0o644))
    beside.chmod(0o400)
    assert read_router_config(written(tmp_path, text, 0o644)).realms[0].users[0].methods == {"ticket"}


def test_bearers_of_tokens_join_the_first_realm_with_the_roles_that_they_need(example: RouterConfig) -> None:
    config = example.with_users([WampUser.of_token("bob", "admin", SECRET)])
    first, second = config.realms
    assert [user.authid for user in first.users] == ["ann", "bob"]
    assert {role.name for role in first.roles} == {"reader", "trader", "admin", "user"}
    assert second == example.realms[1]


def test_more_topics_are_kept_in_the_first_realm() -> None:
    pattern = TopicPattern("com.shop.", Match.PREFIX)
    config = RouterConfig.default().with_history([pattern, pattern])
    assert [rule.pattern.uri for rule in config.realms[0].history] == ["io.relaycast.", "com.shop."]


def test_without_users_everybody_may_do_everything_but_pose_as_the_chains() -> None:
    (realm,) = RouterConfig.default().realms
    roles = Roles(realm.roles, closed=(realm.chain_prefix,))
    anybody = Identity(1, realm.name, "x", realm.anonymous_role or "")
    assert roles.permission(anybody, "publish", "com.shop.price").is_allowed
    assert roles.permission(anybody, "call", "wamp.session.kill").is_allowed
    assert not roles.permission(anybody, "publish", "io.relaycast.block.imported").is_allowed


def test_with_users_nobody_joins_without_a_proof() -> None:
    (realm,) = RouterConfig.default([WampUser.of_token("ann", "user", SECRET)]).realms
    assert realm.anonymous_role is None
    roles, ann = Roles(realm.roles), Identity(1, realm.name, "ann", "user")
    assert roles.permission(ann, "subscribe", "", Match.PREFIX).is_allowed
    assert not roles.permission(ann, "call", "wamp.session.kill_by_authid").is_allowed
