"""Finds all patterns that match a topic, without looking at each of them.

Law: the answer is what ``TopicPattern.matches`` says of every pattern held. An exact one is looked up, a prefix for
each length that occurs, a wildcard for each set of gaps that occurs. Answers are kept until a pattern comes or goes
that may change them.
"""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

from relaycast_gateway.matching.topics import Match, TopicPattern

MOST_ANSWERS = 8_192
"""Topics whose answer is kept; the oldest one goes."""

T = TypeVar("T")

_Gaps = tuple[bool, ...]


class PatternBook(Generic[T]):
    """Values by their patterns, one for each.

    >>> book = PatternBook[str]()
    >>> book.add(TopicPattern("com.", Match.PREFIX), "first")
    >>> book.add(TopicPattern("com..start", Match.WILDCARD), "second")
    >>> book.matching("com.train.start"), book.matching("com.train.stop")
    (('first', 'second'), ('first',))
    """

    def __init__(self) -> None:
        self._values: dict[TopicPattern, T] = {}
        self._exact: dict[str, T] = {}
        self._prefixes: dict[str, T] = {}
        self._lengths: list[int] = []
        self._length_uses: Counter[int] = Counter()
        self._wildcards: dict[int, dict[_Gaps, dict[tuple[str, ...], T]]] = {}
        self._answers: dict[str, tuple[T, ...]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[TopicPattern]:
        return iter(self._values)

    def get(self, pattern: TopicPattern) -> T | None:
        """Return the value of this very pattern."""
        return self._values.get(pattern)

    def add(self, pattern: TopicPattern, value: T) -> None:
        """Hold ``value`` under ``pattern``; ``KeyError`` where the pattern is held already."""
        if pattern in self._values:
            raise KeyError(pattern)

        self._values[pattern] = value
        match pattern.match:
            case Match.EXACT:
                self._exact[pattern.uri] = value
            case Match.PREFIX:
                self._prefixes[pattern.uri] = value
                length = len(pattern.uri)
                if not self._length_uses[length]:
                    insort(self._lengths, length)
                self._length_uses[length] += 1
            case Match.WILDCARD:
                count, gaps, fixed = _parts(pattern.uri)
                self._wildcards.setdefault(count, {}).setdefault(gaps, {})[fixed] = value
        self._forget(pattern)

    def remove(self, pattern: TopicPattern) -> T:
        """Hold the pattern no more and return its value; ``KeyError`` where it is not held."""
        value = self._values.pop(pattern)
        match pattern.match:
            case Match.EXACT:
                del self._exact[pattern.uri]
            case Match.PREFIX:
                del self._prefixes[pattern.uri]
                length = len(pattern.uri)
                self._length_uses[length] -= 1
                if not self._length_uses[length]:
                    del self._length_uses[length]
                    self._lengths.remove(length)
            case Match.WILDCARD:
                self._remove_wildcard(pattern.uri)
        self._forget(pattern)
        return value

    def matching(self, topic: str) -> tuple[T, ...]:
        """Return the values of all patterns that match: the exact one, prefixes from the shortest on, wildcards."""
        found = self._answers.get(topic)
        if found is None:
            found = tuple(self._search(topic))
            if len(self._answers) >= MOST_ANSWERS:
                del self._answers[next(iter(self._answers))]
            self._answers[topic] = found
        return found

    def _search(self, topic: str) -> Iterator[T]:
        if topic in self._exact:
            yield self._exact[topic]
        for length in self._lengths[: bisect_right(self._lengths, len(topic))]:
            prefix = topic[:length]
            if prefix in self._prefixes:
                yield self._prefixes[prefix]
        if self._wildcards:
            components = topic.split(".")
            for gaps, held in self._wildcards.get(len(components), {}).items():
                fixed = tuple([part for part, is_gap in zip(components, gaps, strict=True) if not is_gap])
                if fixed in held:
                    yield held[fixed]

    def _forget(self, pattern: TopicPattern) -> None:
        """Drop the answers in which a pattern belongs."""
        if pattern.match is Match.EXACT:
            self._answers.pop(pattern.uri, None)
        else:
            self._answers.clear()

    def _remove_wildcard(self, uri: str) -> None:
        count, gaps, fixed = _parts(uri)
        of_count = self._wildcards[count]
        del of_count[gaps][fixed]
        if not of_count[gaps]:
            del of_count[gaps]
        if not of_count:
            del self._wildcards[count]


def _parts(uri: str) -> tuple[int, _Gaps, tuple[str, ...]]:
    """Return the number of components, which of them are gaps, and those that are not."""
    components = uri.split(".")
    return len(components), tuple([not part for part in components]), tuple([part for part in components if part])
