"""Event history by its definition: every event of the log is looked at, one condition after the other."""

from collections.abc import Iterable, Sequence

from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.record import EventRecord
from relaycast_gateway.wamp.history import HistoryQuery, HistoryRule, HistoryRules


def history(
    records: Iterable[EventRecord], pattern: TopicPattern, rules: HistoryRules, *, authid: str, authrole: str
) -> list[EventRecord]:
    """Return the whole history of a pattern for a caller, without regard to retention by rule."""
    return [
        record
        for record in records
        if pattern.matches(record.topic)
        and (rule := rules.rule_for(record.topic)) is not None
        and rule.is_kept
        and record.visibility.allows(authid, authrole)
    ]


def answer(whole: Sequence[EventRecord], query: HistoryQuery, *, digits: int = 9) -> list[EventRecord] | None:
    """Return the events of a history that a query asks for; ``None`` where one of its publications is not there."""
    places = {record.pub_id: record.seq for record in whole}
    anchors = (query.from_publication, query.after_publication, query.before_publication, query.until_publication)
    if any(anchor is not None and anchor not in places for anchor in anchors):
        return None
    first, after, before, until = (None if anchor is None else places[anchor] for anchor in anchors)
    unit = 10 ** (9 - digits)
    found = []
    for record in whole:
        told_ns = record.received_ns - record.received_ns % unit
        if (
            (query.topic is None or record.topic == query.topic)
            and (query.from_time is None or told_ns >= query.from_time)
            and (query.after_time is None or told_ns > query.after_time)
            and (query.before_time is None or told_ns < query.before_time)
            and (query.until_time is None or told_ns <= query.until_time)
            and (first is None or record.seq >= first)
            and (after is None or record.seq > after)
            and (before is None or record.seq < before)
            and (until is None or record.seq <= until)
        ):
            found.append(record)
    if query.reverse:
        found.reverse()
    return found if query.limit is None else found[: query.limit]


def rule_for(topic: str, rules: Iterable[HistoryRule]) -> HistoryRule | None:
    """Return the most specific rule, by trying all."""

    def weight(rule: HistoryRule) -> tuple[int, int, list[bool]]:
        parts = rule.pattern.uri.split(".")
        kind = {"exact": 2, "prefix": 1, "wildcard": 0}[rule.pattern.match]
        size = len(rule.pattern.uri) if kind else sum(map(bool, parts))
        return kind, size, [bool(part) for part in parts]

    return max((rule for rule in rules if rule.pattern.matches(topic)), key=weight, default=None)
