"""How patterns stand to each other, against every topic of a small world."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.matching.pattern_relations import covers, overlap
from relaycast_gateway.matching.topics import Match, TopicPattern

PARTS = ("a", "b", "ab")
TOPICS = [".".join(parts) for count in (1, 2, 3, 4) for parts in product((*PARTS, "ba", "abb"), repeat=count)]
"""More components and more letters than any pattern below has, so that prefixes show what they are."""

patterns = st.one_of(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(lambda parts: TopicPattern(".".join(parts))),
    st.tuples(st.lists(st.sampled_from(PARTS), max_size=2), st.sampled_from(["", "."])).map(
        lambda drawn: TopicPattern(".".join(drawn[0]) + (drawn[1] if drawn[0] else ""), Match.PREFIX)
    ),
    st.lists(st.sampled_from(["", *PARTS]), min_size=1, max_size=3).map(
        lambda parts: TopicPattern(".".join(parts), Match.WILDCARD)
    ),
)


@given(patterns, patterns)
def test_one_pattern_covers_another_where_it_selects_all_its_topics(wide: TopicPattern, narrow: TopicPattern) -> None:
    assert covers(wide, narrow) == all(wide.matches(topic) for topic in TOPICS if narrow.matches(topic))


@given(patterns, patterns)
def test_two_patterns_overlap_where_they_share_a_topic(one: TopicPattern, other: TopicPattern) -> None:
    assert overlap(one, other) == any(one.matches(topic) and other.matches(topic) for topic in TOPICS)


@pytest.mark.parametrize("uri", ["", "com", "com."])
def test_every_pattern_is_covered_by_the_empty_prefix(uri: str) -> None:
    assert covers(TopicPattern("", Match.PREFIX), TopicPattern(uri, Match.PREFIX))
