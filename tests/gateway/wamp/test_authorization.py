"""Who may do what: the most specific rule decides, and a pattern is no way around it."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.authorization import (
    ACTIONS,
    MOST_REMEMBERED,
    Action,
    PermissionRule,
    Role,
    Roles,
    everything,
)
from relaycast_gateway.wamp.identity import Identity

ANN = Identity(1, "shop", "ann", "user")


def rule(uri: str, match: str = "exact", *allow: Action) -> PermissionRule:
    return PermissionRule(TopicPattern(uri, Match(match)), frozenset(allow))


def roles(*rules: PermissionRule) -> Roles:
    return Roles([Role("user", rules)], closed=("io.relaycast.",))


def may(book: Roles, action: Action, uri: str, match: str = "exact") -> bool:
    return book.permission(ANN, action, uri, Match(match)).is_allowed


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_allowed_that_no_rule_allows(action: Action) -> None:
    assert not may(roles(), action, "com.shop.price")
    assert not may(roles(rule("com.mill.", "prefix", action)), action, "com.shop.price")
    assert not may(Roles(), action, "com.shop.price")
    assert not Roles([everything("admin")]).permission(ANN, action, "com.shop.price").is_allowed


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (rule("com.shop.price"), rule("com.shop.price", "prefix", "call")),
        (rule("com.shop.price"), rule("com..price", "wildcard", "call")),
        (rule("com.shop.", "prefix"), rule("com.", "prefix", "call")),
        (rule("c", "prefix"), rule("com.shop.", "wildcard", "call")),  # any prefix comes before wildcards
        (rule("com.shop.", "wildcard"), rule("com..price", "wildcard", "call")),  # given further left
        (rule("com.shop.", "wildcard"), rule("..price", "wildcard", "call")),
    ],
)
def test_the_most_specific_rule_decides(first: PermissionRule, second: PermissionRule) -> None:
    assert not may(roles(first, second), "call", "com.shop.price")
    assert may(roles(second), "call", "com.shop.price")
    assert not may(roles(second, first), "call", "com.shop.price")


def test_a_rule_decides_all_actions_also_those_that_it_does_not_name() -> None:
    book = roles(rule("com.", "prefix", *ACTIONS), rule("com.shop.", "prefix", "subscribe"))
    assert [action for action in ACTIONS if may(book, action, "com.shop.price")] == ["subscribe"]
    assert [action for action in ACTIONS if may(book, action, "com.mill.price")] == list(ACTIONS)


@pytest.mark.matrix("WAMP-46")
@pytest.mark.parametrize(
    ("uri", "match", "is_allowed"),
    [
        ("com.shop.price", "exact", True),
        ("com.shop.stock", "exact", False),
        ("", "prefix", False),  # would bring everything
        ("com.shop.price", "prefix", False),  # selects com.shop.price.secret, too
        ("com.shop.", "prefix", False),
        ("com..price", "wildcard", False),
        ("..", "wildcard", False),
        ("com.mill.", "prefix", True),
        ("com.mill.flour.", "prefix", True),
        ("com.mill", "prefix", False),  # selects com.miller
        ("com.mill..price", "wildcard", True),
        ("com..flour.price", "wildcard", False),
        ("com.pond.", "prefix", False),  # a part of it is refused
        ("com.pond.fish", "prefix", True),
        ("com.pond.", "wildcard", False),
        ("com.pond..carp", "wildcard", False),
    ],
)
def test_a_pattern_is_allowed_where_one_rule_covers_it_and_no_part_is_refused(
    uri: str, match: str, is_allowed: bool
) -> None:
    book = roles(
        rule("com.shop.price", "exact", "subscribe"),
        rule("com.mill.", "prefix", "subscribe"),
        rule("com.pond.", "prefix", "subscribe"),
        rule("com.pond.frog", "prefix"),
    )
    assert may(book, "subscribe", uri, match) is is_allowed


TOPICS = [".".join(parts) for count in (1, 2, 3) for parts in product(("a", "b", "ab", "x"), repeat=count)]

uris = st.one_of(
    st.tuples(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=2).map(".".join), st.just("exact")),
    st.tuples(st.sampled_from(["", "a", "a.", "b", "a.b", "a.a."]), st.just("prefix")),
    st.tuples(st.sampled_from(["", "a.", ".b", "..", "a..b", ".a."]), st.just("wildcard")),
)
rules = st.builds(lambda uri, allow: rule(*uri, *allow), uris, st.sampled_from([(), ("subscribe",)]))


@given(st.lists(rules, max_size=5), uris)
def test_a_pattern_never_brings_a_topic_that_is_refused(some: list[PermissionRule], wanted: tuple[str, str]) -> None:
    book = roles(*some)
    if may(book, "subscribe", *wanted):
        pattern = TopicPattern(wanted[0], Match(wanted[1]))
        assert not [topic for topic in TOPICS if pattern.matches(topic) and not may(book, "subscribe", topic)]


@pytest.mark.parametrize(
    ("action", "uri", "match", "is_allowed"),
    [
        ("publish", "io.relaycast.block.imported", "exact", False),
        ("publish", "wamp.session.on_join", "exact", False),
        ("publish", "io.relaycasting", "exact", True),
        ("register", "io.relaycast.head", "exact", False),
        ("register", "wamp.session.get", "exact", False),
        ("register", "", "prefix", False),  # would answer for the router
        ("register", "io.", "prefix", False),
        ("register", ".relaycast.", "wildcard", False),
        ("register", "io.mill.", "prefix", True),
        ("subscribe", "io.relaycast.block.imported", "exact", True),
        ("subscribe", "", "prefix", True),
        ("call", "wamp.session.count", "exact", True),
    ],
)
def test_what_is_the_routers_own_stays_closed_whatever_rules_say(
    action: Action, uri: str, match: str, is_allowed: bool
) -> None:
    book = roles(
        rule("", "prefix", *ACTIONS),
        rule("io.relaycast.block.imported", "exact", *ACTIONS),
        rule("wamp.", "prefix", *ACTIONS),
    )
    assert may(book, action, uri, match) is is_allowed


@pytest.mark.matrix("WAMP-47")
def test_a_permission_says_whether_it_was_given_for_this_very_uri() -> None:
    book = roles(rule("", "prefix", "call"), rule("wamp.subscription.get_events", "exact", "call"))
    assert book.permission(ANN, "call", "wamp.subscription.get_events").is_explicit
    assert not book.permission(ANN, "call", "wamp.subscription.lookup").is_explicit


@pytest.mark.matrix("WAMP-48")
def test_a_meta_procedure_can_be_closed_to_a_role() -> None:
    book = roles(rule("", "prefix", *ACTIONS), rule("wamp.session.kill", "prefix", "subscribe"))
    assert may(book, "call", "wamp.session.count")
    assert not may(book, "call", "wamp.session.kill_by_authid")
    assert may(book, "subscribe", "", "prefix")


def test_who_publishes_is_disclosed_where_the_rule_says_so() -> None:
    disclosing = PermissionRule(TopicPattern("com.", Match.PREFIX), frozenset(ACTIONS), frozenset({"publish"}))
    book = roles(disclosing)
    assert book.permission(ANN, "publish", "com.shop.price").discloses
    assert not book.permission(ANN, "call", "com.shop.price").discloses


def test_decisions_are_remembered_up_to_a_bound() -> None:
    book = roles(rule("com.", "prefix", "publish"))
    for number in range(MOST_REMEMBERED + 10):
        assert may(book, "publish", f"com.n{number}")
    assert len(book._remembered) <= MOST_REMEMBERED
