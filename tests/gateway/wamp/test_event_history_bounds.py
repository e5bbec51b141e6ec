"""Limits, times, topics and publications bound what a query takes of a history."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from gateway.wamp.history_twin import answer
from gateway.wamp.logged_histories import ADMIN_ONLY, AUTH, BASKET, EVERYTHING, LOGS, WILD, publish, refused, seqs
from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, receipt_times


@pytest.mark.matrix("WAMP-15", "WAMP-16", "WAMP-17", "WAMP-19")
def test_a_page_has_the_first_events_of_the_traversal(log: EventLog) -> None:
    publish(log, *[AUTH] * 10)
    histories = EventHistory(log, EVERYTHING)
    assert seqs(histories) == seqs(histories, reverse=False) == list(range(1, 11))
    assert seqs(histories, reverse=True) == list(range(10, 0, -1))
    assert (seqs(histories, limit=3), seqs(histories, limit=3, reverse=True)) == ([1, 2, 3], [10, 9, 8])
    assert seqs(histories, limit=11) == seqs(histories, limit=1 << 70) == list(range(1, 11))
    for limit, most, expected in ((9, 99, (9, True)), (10, 99, (10, False)), (50, 4, (4, True)), (4, 4, (4, True))):
        page = histories.page(LOGS, HistoryQuery(1, limit=limit), authid="", authrole="", most_events=most)
        assert (len(page.records), page.more) == expected


@pytest.mark.matrix("WAMP-20", "WAMP-21", "WAMP-22", "WAMP-23")
def test_times_bound_a_history_on_both_sides(log: EventLog, clock: VirtualClock) -> None:
    """Three events at each of three seconds; the second one's time in several spellings."""
    for _ in range(3):
        publish(log, AUTH, BASKET, AUTH)
        clock.set(clock.now_ns() + SECOND)
    histories = EventHistory(log, EVERYTHING)
    for moment in (
        "2026-02-02T02:40:01Z",
        "2026-02-02T02:40:01.0z",
        "2026-02-02t04:40:01.000+02:00",
        "2026-02-01T21:40:01.000000000-05:00",
    ):
        assert seqs(histories, from_time=moment) == [4, 5, 6, 7, 8, 9]
        assert seqs(histories, after_time=moment) == [7, 8, 9]
        assert seqs(histories, before_time=moment) == [1, 2, 3]
        assert seqs(histories, until_time=moment) == [1, 2, 3, 4, 5, 6]
    assert seqs(histories, from_time="2026-02-02T02:40:01.000000001Z") == [7, 8, 9]
    assert seqs(histories, until_time="2026-02-02T02:40:00.999999999Z") == [1, 2, 3]
    assert seqs(histories, from_time="0001-01-01T00:00:00Z", until_time="9999-12-31T23:59:59Z") == list(range(1, 10))
    assert seqs(histories, from_time="9999-12-31T23:59:59Z") == []
    assert seqs(histories, before_time="0001-01-01T00:00:00Z") == []


@pytest.mark.matrix("WAMP-25")
@pytest.mark.parametrize("digits", [0, 3, 6, 9])
def test_a_time_that_was_told_finds_its_event_again_or_leaves_it_out(
    log: EventLog, clock: VirtualClock, digits: int
) -> None:
    for step in (123_456_789, 7, 1_000, 5_000_000, SECOND):
        clock.set(clock.now_ns() + step)
        publish(log, AUTH)
    histories = EventHistory(log, EVERYTHING, digits=digits)
    for record in log.read():
        told = format_time(record.received_ns, digits=digits)
        assert record.seq in seqs(histories, from_time=told)
        assert record.seq not in seqs(histories, after_time=told)
        assert record.seq not in seqs(histories, before_time=told)
        assert record.seq in seqs(histories, until_time=told)


@pytest.mark.matrix("WAMP-26")
def test_a_topic_narrows_a_pattern(log: EventLog) -> None:
    publish(log, AUTH, BASKET, "com.other.log.auth", AUTH)
    histories = EventHistory(log, EVERYTHING)
    assert [seqs(histories, it, topic=AUTH) for it in (LOGS, WILD, TopicPattern(AUTH))] == [[1, 4]] * 3
    assert seqs(histories, WILD, topic="com.other.log.auth") == [3]
    assert seqs(histories, LOGS, topic="com.other.log.auth") == []
    assert seqs(histories, TopicPattern(BASKET), topic=AUTH) == []


@pytest.mark.matrix("WAMP-27", "WAMP-28", "WAMP-29", "WAMP-30")
def test_publications_bound_a_history_by_place(log: EventLog) -> None:
    records = publish(log, *[AUTH] * 6)
    ids = [record.pub_id for record in records]
    assert ids != sorted(ids)
    histories = EventHistory(log, EVERYTHING)
    for at, pub_id in enumerate(ids, 1):
        assert seqs(histories, from_publication=pub_id) == list(range(at, 7))
        assert seqs(histories, after_publication=pub_id) == list(range(at + 1, 7))
        assert seqs(histories, before_publication=pub_id) == list(range(1, at))
        assert seqs(histories, until_publication=pub_id) == list(range(1, at + 1))


def pages(histories: EventHistory, log: EventLog, name: str, *, reverse: bool) -> Iterator[int]:
    """Yield numbers page by page, while events arrive."""
    last: dict[str, object] = {}
    while True:
        query = HistoryQuery.of([1], {"limit": 7, "reverse": reverse, **last})
        page = histories.page(LOGS, query, authid="", authrole="", most_events=99)
        yield from (record.seq for record in page.records)
        if not page.more:
            return
        last = {name: page.records[-1].pub_id}
        if log.last_seq < 150:
            publish(log, "org.other", AUTH, BASKET)


@pytest.mark.matrix("WAMP-31", "WAMP-32")
def test_pages_neither_skip_nor_repeat_while_events_arrive(log: EventLog) -> None:
    publish(log, *[AUTH] * 100)
    histories = EventHistory(log, EVERYTHING)
    backward = list(pages(histories, log, "before_publication", reverse=True))
    assert backward == list(range(100, 0, -1))
    forward = list(pages(histories, log, "after_publication", reverse=False))
    assert forward == [record.seq for record in log.read() if LOGS.matches(record.topic)]


@pytest.mark.matrix("WAMP-34")
def test_unknown_purged_and_foreign_publications_are_refused_alike(clock: VirtualClock) -> None:
    with EventLog.open(clock=clock, retention=Retention(count=3)) as log:
        purged = publish(log, AUTH)[0].pub_id
        other, hidden = publish(log, "org.x")[0].pub_id, publish(log, AUTH, visibility=ADMIN_ONLY)[0].pub_id
        shown = publish(log, AUTH)[0].pub_id
        histories = EventHistory(log, EVERYTHING)
        unknown = next(it for it in range(1, 99) if it not in {purged, other, hidden, shown})
        for name in ("from_publication", "after_publication", "before_publication", "until_publication"):
            for pub_id in (purged, other, hidden, unknown):
                given: dict[str, Any] = {name: pub_id}
                said = refused(histories, **given)
                assert (
                    said
                    == f"{name}: expected a publication of this history, got unknown or purged publication {pub_id}"
                )
            anchor: dict[str, Any] = {name: shown}
            assert seqs(histories, **anchor) == ([4] if name in {"from_publication", "until_publication"} else [])
        assert seqs(histories, authrole="admin", after_publication=hidden) == [4]


@pytest.mark.matrix("WAMP-42")
@pytest.mark.parametrize("block", [256, pytest.param(receipt_times.BLOCK, marks=pytest.mark.slow)])
def test_a_clock_that_is_set_back_changes_no_order_and_hides_no_time(
    block: int, log: EventLog, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many blocks of the index, with the clock set back now and then."""
    monkeypatch.setattr(receipt_times, "BLOCK", block)
    draw = Random(42)
    while log.last_seq < 6 * block:
        clock.set(clock.now_ns() + draw.choice([SECOND, SECOND, SECOND, 5, 0, -300 * SECOND]))
        publish(log, *[AUTH, BASKET] * draw.randrange(1, 40))
    histories, records = EventHistory(log, EVERYTHING), log.read(limit=1 << 20)
    assert seqs(histories, most=1 << 20) == [record.seq for record in records]
    for _ in range(30):
        chosen = sorted((draw.choice(records) for _ in range(2)), key=lambda it: it.received_ns)
        first, last = (format_time(record.received_ns) for record in chosen)
        given: dict[str, Any] = {
            "from_time": first,
            draw.choice(["until_time", "before_time"]): last,
            "reverse": draw.random() < 0.5,
        }
        if draw.random() < 0.5:
            given["limit"] = 10
        if draw.random() < 0.5:
            given["topic"] = BASKET
        if draw.random() < 0.3:
            given["after_publication"] = draw.choice(records).pub_id
        expected = answer(records, HistoryQuery.of([1], given))
        assert seqs(histories, most=1 << 20, **given) == [record.seq for record in expected or ()]
