"""Which topics have a history, and how much of it is kept.

Law: one rule decides about a topic, the most specific one that matches. Exact comes before prefix, prefix before
wildcard, a longer prefix before a shorter one, and a wildcard with more named components before one with fewer. A topic
without a rule has no history.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from relaycast_gateway.log import Retention
from relaycast_gateway.matching.topics import Match, TopicPattern, is_topic

EVERYTHING = Retention()

MOST_KNOWN_TOPICS = 16_384
"""Topics whose rule is remembered; a hostile publisher names ever new ones."""

_FIRST_FRESH, _BEYOND_FRESH = 0xE000, 0xF900
"""Characters that stand for nothing: one that no rule has makes a topic that only patterns with gaps match."""


@dataclass(frozen=True, slots=True)
class HistoryRule:
    """What is kept of the topics of a pattern."""

    pattern: TopicPattern
    is_kept: bool = True
    """Without it the topics have no history, whatever a less specific rule says."""

    is_persistent: bool = True
    """Without it history begins anew with each run of the router."""

    retention: Retention = EVERYTHING


class HistoryRules:
    """Rules for the topics of a realm. ``ValueError`` for a pattern that is invalid or comes twice."""

    def __init__(self, rules: Iterable[HistoryRule] = ()) -> None:
        self.rules: Sequence[HistoryRule] = tuple(rules)
        self._exact: dict[str, HistoryRule] = {}
        self._by_prefix: list[HistoryRule] = []
        self._by_wildcard: list[HistoryRule] = []
        self._known: dict[str, HistoryRule | None] = {}
        seen: set[TopicPattern] = set()
        for rule in self.rules:
            pattern = rule.pattern
            if not pattern.is_valid:
                raise ValueError(f"history of {pattern}: expected a WAMP URI, got {pattern.uri!r}")
            if pattern in seen:
                raise ValueError(f"history of {pattern}: expected one rule, got two")
            seen.add(pattern)
            if pattern.match is Match.EXACT:
                self._exact[pattern.uri] = rule
            else:
                (self._by_prefix if pattern.match is Match.PREFIX else self._by_wildcard).append(rule)
        self._by_prefix.sort(key=lambda it: -len(it.pattern.uri))
        self._by_wildcard.sort(key=_named)
        used = {character for rule in self.rules for character in rule.pattern.uri}
        self._fresh = next(it for it in map(chr, range(_FIRST_FRESH, _BEYOND_FRESH)) if it not in used)

    def rule_for(self, topic: str) -> HistoryRule | None:
        """Return the rule that decides about a topic; ``None`` where there is none."""
        try:
            return self._known[topic]
        except KeyError:
            if len(self._known) >= MOST_KNOWN_TOPICS:
                self._known.clear()
            found = self._known[topic] = self._find(topic)
            return found

    def covers(self, pattern: TopicPattern) -> bool:
        """Return whether there could be a topic that ``pattern`` matches and that has a history."""
        if pattern.match is Match.EXACT:
            rule = self._find(pattern.uri)
            return rule is not None and rule.is_kept
        return any(
            found.is_kept
            for rule in self.rules
            if rule.is_kept
            for topic in _witnesses(pattern, rule.pattern, self._fresh)
            if is_topic(topic) and (found := self._find(topic)) is not None
        )

    def _find(self, topic: str) -> HistoryRule | None:
        rule = self._exact.get(topic)
        if rule is None:
            rule = next((it for it in self._by_prefix if topic.startswith(it.pattern.uri)), None)
        if rule is None:
            rule = next((it for it in self._by_wildcard if it.pattern.matches(topic)), None)
        return rule

    def __repr__(self) -> str:
        return f"<HistoryRules {', '.join(str(rule.pattern) for rule in self.rules)}>"


def _named(rule: HistoryRule) -> tuple[int, list[bool]]:
    """Order wildcards by the number of components that they name, then by how far left those stand."""
    gaps = [not part for part in rule.pattern.uri.split(".")]
    return sum(gaps) - len(gaps), gaps


def _witnesses(one: TopicPattern, other: TopicPattern, fresh: str) -> Iterator[str]:
    """Yield topics that both patterns match, if there are any, with ``fresh`` wherever both leave it open.

    INVARIANT: a rule that matches a topic with ``fresh`` in it matches all that both patterns match: its own text has
    no such character. So these topics stand for all, but for those that an exact rule names.
    """
    if Match.EXACT in (one.match, other.match):
        exact, pattern = (one, other) if one.match is Match.EXACT else (other, one)
        if pattern.matches(exact.uri):
            yield exact.uri
    elif one.match is other.match is Match.PREFIX:
        short, long = sorted((one.uri, other.uri), key=len)
        if long.startswith(short):
            yield long + fresh
            yield long
    else:
        yield from _between(_parts(one), _parts(other), fresh)


def _parts(pattern: TopicPattern) -> tuple[list[str], bool]:
    """Return components, and whether the last of them is only the beginning of what may follow."""
    return pattern.uri.split("."), pattern.match is Match.PREFIX


def _between(one: tuple[list[str], bool], other: tuple[list[str], bool], fresh: str) -> Iterator[str]:
    """Yield topics of two patterns of which at least one is a wildcard."""
    (mine, mine_open), (its, its_open) = one, other
    if mine_open:
        (mine, _), (its, its_open) = other, one
    if (len(its) > len(mine)) if its_open else (len(its) != len(mine)):
        return
    start = its.pop() if its_open else None
    topic = [part or (its[at] if at < len(its) else "") for at, part in enumerate(mine)]
    if any(part not in ("", topic[at]) for at, part in enumerate(its)):
        return
    if start:
        place = len(its)
        if not mine[place]:
            for end in (start + fresh, start):
                yield ".".join(part or fresh for part in [*topic[:place], end, *topic[place + 1 :]])
            return
        if not mine[place].startswith(start):
            return
    yield ".".join(part or fresh for part in topic)
