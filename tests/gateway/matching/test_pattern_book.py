"""The book of patterns finds what comparing each pattern with a topic finds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.matching import pattern_book
from relaycast_gateway.matching.pattern_book import PatternBook
from relaycast_gateway.matching.topics import Match, TopicPattern

components = st.sampled_from(["a", "b", "ab"])
topics = st.lists(components, min_size=1, max_size=4).map(".".join)
gapped = st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=4).map(".".join)
patterns = st.one_of(
    topics.map(TopicPattern),
    st.builds(TopicPattern, st.text("ab.", max_size=4), st.just(Match.PREFIX)),
    st.builds(TopicPattern, gapped, st.just(Match.WILDCARD)),
)


@given(st.lists(st.tuples(st.booleans(), patterns, topics)))
def test_it_agrees_with_comparing_each_pattern_while_patterns_come_and_go(
    steps: list[tuple[bool, TopicPattern, str]],
) -> None:
    book: PatternBook[TopicPattern] = PatternBook()
    held: set[TopicPattern] = set()
    for adds, pattern, topic in steps:
        if adds and pattern not in held:
            book.add(pattern, pattern)
            held.add(pattern)
        elif not adds and pattern in held:
            assert book.remove(pattern) == pattern
            held.remove(pattern)
        found = book.matching(topic)
        assert len(found) == len(set(found))
        assert set(found) == {it for it in held if it.matches(topic)}
        assert set(book) == held
        assert len(book) == len(held)
        assert (book.get(pattern) is not None) == (pattern in held)


def test_the_exact_pattern_comes_first_then_prefixes_by_length_then_wildcards() -> None:
    book: PatternBook[str] = PatternBook()
    for uri, match in (("a..c", "wildcard"), ("a.b", "prefix"), ("a", "prefix"), ("a.b.c", "exact")):
        book.add(TopicPattern(uri, Match(match)), f"{match} {uri}")
    assert book.matching("a.b.c") == ("exact a.b.c", "prefix a", "prefix a.b", "wildcard a..c")


def test_a_pattern_is_held_once() -> None:
    book: PatternBook[int] = PatternBook()
    book.add(TopicPattern("a"), 1)
    with pytest.raises(KeyError):
        book.add(TopicPattern("a"), 2)
    assert book.matching("a") == (1,)
    book.remove(TopicPattern("a"))
    with pytest.raises(KeyError):
        book.remove(TopicPattern("a"))


def test_only_so_many_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_book, "MOST_ANSWERS", 3)
    book: PatternBook[int] = PatternBook()
    book.add(TopicPattern("t", Match.PREFIX), 1)
    for number in range(10):
        assert book.matching(f"t{number}") == (1,)
    assert len(book._answers) == 3
