"""Which topics have a history."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wamp.history_twin import rule_for
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.history import HistoryRule, HistoryRules
from relaycast_gateway.wamp.history.rules import MOST_KNOWN_TOPICS

PARTS = ("a", "b", "ab", "z")
TOPICS = [".".join(parts) for length in (1, 2, 3, 4) for parts in product((*PARTS, "az", "bz", "abz"), repeat=length)]
"""Components that patterns below name, one that none does, and longer ones."""

named = st.sampled_from(("a", "b", "ab"))
exact = st.lists(named, min_size=1, max_size=3).map(lambda parts: TopicPattern(".".join(parts)))
prefix = st.tuples(st.lists(named, max_size=3), st.booleans()).map(
    lambda it: TopicPattern(".".join(it[0]) + "." * (bool(it[0]) and it[1]), Match.PREFIX)
)
wildcard = st.lists(st.just("") | named, min_size=1, max_size=3).map(
    lambda parts: TopicPattern(".".join(parts), Match.WILDCARD)
)
patterns = exact | prefix | wildcard
rules = st.lists(
    st.builds(HistoryRule, patterns, is_kept=st.booleans()), max_size=5, unique_by=lambda rule: rule.pattern
)


@given(rules, st.lists(st.sampled_from(TOPICS), max_size=200))
def test_the_most_specific_rule_decides(given: list[HistoryRule], topics: list[str]) -> None:
    found = HistoryRules(given)
    for topic in topics * 2:
        assert found.rule_for(topic) is rule_for(topic, given)


@given(rules, patterns)
def test_a_pattern_is_covered_where_it_matches_a_topic_that_is_kept(given: list[HistoryRule], it: TopicPattern) -> None:
    matched = (topic for topic in TOPICS if it.matches(topic))
    kept = any((rule := rule_for(topic, given)) is not None and rule.is_kept for topic in matched)
    assert HistoryRules(given).covers(it) == kept


@pytest.mark.matrix("WAMP-03")
def test_a_topic_is_left_out_of_a_pattern() -> None:
    rules = HistoryRules(
        [
            HistoryRule(TopicPattern("com.", Match.PREFIX)),
            HistoryRule(TopicPattern("com.noise.", Match.PREFIX), is_kept=False),
            HistoryRule(TopicPattern("com.noise.level")),
            HistoryRule(TopicPattern("com.secret"), is_kept=False),
        ]
    )
    kept = {topic: (rule := rules.rule_for(topic)) and rule.is_kept for topic in ("com.x", "com.noise.x", "org.x")}
    assert kept == {"com.x": True, "com.noise.x": False, "org.x": None}
    assert rules.covers(TopicPattern("com.noise.", Match.PREFIX))
    assert not rules.covers(TopicPattern("com.noise.x", Match.PREFIX))
    assert not rules.covers(TopicPattern("com.secret"))
    assert rules.covers(TopicPattern("com.", Match.WILDCARD))
    assert not rules.covers(TopicPattern("org.", Match.WILDCARD))


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        ([TopicPattern("a..b")], r"history of a..b: expected a WAMP URI, got 'a..b'"),
        ([TopicPattern("a b", Match.PREFIX)], r"history of a b \(prefix\): expected a WAMP URI"),
        ([TopicPattern("a"), TopicPattern("a")], r"history of a: expected one rule, got two"),
    ],
)
def test_rules_that_make_no_sense_are_refused(patterns: list[TopicPattern], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        HistoryRules(map(HistoryRule, patterns))


def test_a_topic_of_the_greatest_length_is_covered() -> None:
    rules = HistoryRules([HistoryRule(TopicPattern("a" * 1_024, Match.PREFIX))])
    assert rules.covers(TopicPattern("", Match.PREFIX))
    assert not rules.covers(TopicPattern("a.", Match.PREFIX))


def test_ever_new_topics_are_forgotten_again() -> None:
    rules = HistoryRules([HistoryRule(TopicPattern("t", Match.PREFIX))])
    for number in range(MOST_KNOWN_TOPICS + 10):
        assert rules.rule_for(f"t{number}") is rules.rules[0]
    assert len(rules._known) <= MOST_KNOWN_TOPICS
