"""Patterns of topics as users write them on a command line."""

import pytest

from relaycast_gateway.matching.topics import Match, TopicPattern


@pytest.mark.parametrize(
    ("text", "match", "written"),
    [
        ("com.example.feed", None, Match.EXACT),
        ("com.example.", None, Match.PREFIX),  # a dot at the end: all below
        ("com..price", None, Match.WILDCARD),  # an empty component: any
        (".price", None, Match.WILDCARD),
        ("com..", None, Match.WILDCARD),  # two gaps: no prefix ends so
        ("com.exam", Match.PREFIX, Match.PREFIX),
        ("com.", Match.WILDCARD, Match.WILDCARD),
        ("", Match.PREFIX, Match.PREFIX),  # every topic
    ],
)
def test_dots_say_how_a_topic_is_meant(text: str, match: Match | None, written: Match) -> None:
    assert TopicPattern.written(text, match) == TopicPattern(text, written)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", None),
        ("a b", None),
        ("a#", None),
        ("com.example.", Match.EXACT),
        ("a..b", Match.PREFIX),
        ("x" * 1_025, None),
    ],
)
def test_what_is_no_topic_is_refused(text: str, match: Match | None) -> None:
    with pytest.raises(ValueError, match=r"expected a topic such as com\.example\.feed"):
        TopicPattern.written(text, match)
