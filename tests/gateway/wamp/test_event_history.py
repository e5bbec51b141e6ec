"""The histories of subscriptions over one log: which events they have, in which order, and who sees them."""

import threading
from pathlib import Path
from typing import Any

import pytest

from gateway.wamp.logged_histories import (
    ADMIN_ONLY,
    AUTH,
    BASKET,
    CHECKOUT,
    EVERYTHING,
    LOGS,
    WILD,
    publish,
    refused,
    seqs,
)
from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc16 import nat, text
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.record import EVERYBODY, EventDraft, Visibility
from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, HistoryRule, HistoryRules
from relaycast_gateway.wamp.history import history as history_module


def example(log: EventLog) -> list[list[int]]:
    """Return the three histories of the specification's example."""
    rules = HistoryRules([HistoryRule(LOGS), HistoryRule(TopicPattern(AUTH))])
    histories = EventHistory(log, rules)
    return [seqs(histories, it) for it in (TopicPattern(AUTH), TopicPattern(BASKET), LOGS)]


@pytest.mark.matrix("WAMP-01")
def test_the_example_of_the_text(log: EventLog) -> None:
    publish(log, AUTH, BASKET, BASKET, BASKET, CHECKOUT)
    assert example(log) == [[1], [2, 3, 4], [1, 2, 3, 4, 5]]


@pytest.mark.matrix("WAMP-01")
def test_the_example_of_the_text_after_a_restart(tmp_path: Path) -> None:
    with EventLog.open(tmp_path / "log") as log:
        publish(log, AUTH, BASKET, BASKET, BASKET, CHECKOUT)
    with EventLog.open(tmp_path / "log") as log:
        assert example(log) == [[1], [2, 3, 4], [1, 2, 3, 4, 5]]


@pytest.mark.matrix("WAMP-38")
def test_a_history_without_events_is_empty(log: EventLog) -> None:
    histories = EventHistory(log, EVERYTHING)
    for given in ({}, {"reverse": True, "limit": 1}, {"topic": AUTH}, {"from_time": "2000-01-01T00:00:00Z"}):
        page = histories.page(LOGS, HistoryQuery.of([1], given), authid="", authrole="", most_events=5)
        assert page == ([], False, None)
    (record,) = publish(log, AUTH)
    page = histories.page(LOGS, HistoryQuery.of([1], {"topic": BASKET}), authid="", authrole="", most_events=5)
    assert page == ([], False, record.received_ns)
    assert seqs(histories, after_time="2100-01-01T00:00:00Z") == []


@pytest.mark.matrix("WAMP-12")
def test_a_topic_without_a_rule_has_no_history(log: EventLog) -> None:
    publish(log, AUTH, BASKET, CHECKOUT)
    rules = [HistoryRule(LOGS, is_kept=False), HistoryRule(TopicPattern(BASKET))]
    histories = EventHistory(log, HistoryRules(rules))
    assert seqs(histories) == [2]
    assert seqs(histories, TopicPattern(AUTH)) == []
    assert seqs(EventHistory(log, HistoryRules())) == []


@pytest.mark.matrix("WAMP-02")
def test_transient_rules_show_nothing_of_an_earlier_run(log: EventLog) -> None:
    before = publish(log, AUTH, BASKET)
    rules = HistoryRules([HistoryRule(LOGS), HistoryRule(TopicPattern(BASKET), is_persistent=False)])
    histories = EventHistory(log, rules, first_seq_of_run=log.last_seq + 1)
    assert (seqs(histories), seqs(histories, TopicPattern(BASKET))) == ([1], [])
    publish(log, BASKET, AUTH)
    assert (seqs(histories), seqs(histories, TopicPattern(BASKET))) == ([1, 3, 4], [3])
    assert "unknown or purged publication" in refused(histories, from_publication=before[1].pub_id)


@pytest.mark.matrix("WAMP-06")
def test_a_rule_keeps_the_newest_events_by_count(log: EventLog) -> None:
    rules = HistoryRules([HistoryRule(LOGS), HistoryRule(TopicPattern(BASKET), retention=Retention(count=2))])
    histories = EventHistory(log, rules)
    for _ in range(3):
        publish(log, AUTH, BASKET, CHECKOUT)
        seqs(histories)
    assert seqs(histories) == [1, 3, 4, 5, 6, 7, 8, 9]
    assert seqs(histories, topic=BASKET) == [5, 8]
    assert seqs(histories, TopicPattern(BASKET), reverse=True) == [8, 5]


@pytest.mark.matrix("WAMP-06")
def test_a_rule_keeps_events_by_age_and_never_shows_one_again(log: EventLog, clock: VirtualClock) -> None:
    rules = HistoryRules([HistoryRule(LOGS, retention=Retention(age_seconds=10))])
    histories = EventHistory(log, rules)
    publish(log, AUTH)
    clock.set(clock.now_ns() + 6 * SECOND)
    (second,) = publish(log, AUTH)
    assert seqs(histories) == [1, 2]
    clock.set(clock.now_ns() + 5 * SECOND)
    page = histories.page(LOGS, HistoryQuery(1), authid="", authrole="", most_events=5)
    assert ([record.seq for record in page.records], page.history_start_ns) == ([2], second.received_ns)
    clock.set(clock.now_ns() - 60 * SECOND)
    assert seqs(histories) == [2]
    clock.set(clock.now_ns() + 120 * SECOND)
    assert seqs(histories) == []
    publish(log, AUTH)
    assert seqs(histories) == [3]


@pytest.mark.matrix("WAMP-06")
def test_a_rule_keeps_events_by_stored_bytes(log: EventLog) -> None:
    rules = HistoryRules([HistoryRule(TopicPattern(AUTH), retention=Retention(bytes=3_000)), HistoryRule(LOGS)])
    histories = EventHistory(log, rules)
    for number in range(10):
        log.append(EventDraft(AUTH, text("x" * 980), b"", 0), EventDraft(BASKET, nat(number), b"", 0))
        assert seqs(histories, TopicPattern(AUTH)) == list(range(1, 2 * number + 2, 2))[-3:]
    log.append(EventDraft(AUTH, text("x" * 6_000), b"", 0))
    assert seqs(histories, TopicPattern(AUTH)) == []
    assert len(seqs(histories)) == 10


@pytest.mark.matrix("WAMP-06")
def test_a_purge_of_the_log_keeps_the_order_and_moves_the_beginning(clock: VirtualClock) -> None:
    with EventLog.open(clock=clock, retention=Retention(count=4)) as log:
        histories = EventHistory(log, EVERYTHING)
        for _ in range(20):
            clock.set(clock.now_ns() + SECOND)
            newest = publish(log, AUTH, BASKET)[1]
            page = histories.page(LOGS, HistoryQuery(1), authid="", authrole="", most_events=99)
            assert [it.seq for it in page.records] == list(range(max(1, newest.seq - 3), newest.seq + 1))
            assert page.history_start_ns == page.records[0].received_ns


@pytest.mark.matrix("WAMP-07")
def test_the_order_is_that_of_the_log_whoever_publishes_at_once(log: EventLog) -> None:
    def work(name: str) -> None:
        for _ in range(25):
            publish(log, f"com.mycompany.log.{name}", AUTH)

    publishers = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for publisher in publishers:
        publisher.start()
    for publisher in publishers:
        publisher.join()
    histories = EventHistory(log, EVERYTHING)
    records = log.read()
    assert seqs(histories) == seqs(histories, WILD) == [record.seq for record in records] == list(range(1, 201))
    assert seqs(histories, TopicPattern(AUTH)) == [record.seq for record in records if record.topic == AUTH]


@pytest.mark.matrix("WAMP-11")
def test_prefix_and_wildcard_subscriptions_have_histories(log: EventLog) -> None:
    publish(log, AUTH, "com.other.log.auth", "com.mycompany.logs", "org.x")
    histories = EventHistory(log, EVERYTHING)
    assert (seqs(histories), seqs(histories, WILD)) == ([1, 3], [1, 2])
    publish(log, "com.new.log.topic", "com.mycompany.log.new")
    assert (seqs(histories), seqs(histories, WILD)) == ([1, 3, 6], [1, 2, 5, 6])


VISIBILITIES: list[tuple[Visibility, str]] = [
    (EVERYBODY, "ann joe root"),
    (ADMIN_ONLY, "root"),
    (Visibility(eligible_authid=("ann", "root")), "ann root"),
    (Visibility(exclude_authrole=("user",)), "root"),
    (Visibility(exclude_authid=("joe",)), "ann root"),
    (Visibility(eligible_authid=("ann", "joe"), eligible_authrole=("user",), exclude_authid=("joe",)), "ann"),
    (Visibility(eligible_authrole=("user", "admin"), exclude_authrole=("admin",)), "ann joe"),
    (Visibility(eligible_authid=()), ""),
    (Visibility(eligible_authrole=()), ""),
]
CALLERS = {"ann": "user", "joe": "user", "root": "admin"}


def sees(histories: EventHistory, authid: str, **given: Any) -> list[int]:
    return seqs(histories, authid=authid, authrole=CALLERS[authid], **given)


@pytest.mark.matrix("WAMP-49", "WAMP-50", "WAMP-51", "WAMP-52", "WAMP-53", "WAMP-57")
def test_a_caller_sees_what_its_id_and_role_allow(log: EventLog) -> None:
    histories = EventHistory(log, EVERYTHING)
    expected: dict[str, list[int]] = {name: [] for name in CALLERS}
    for visibility, seen_by in VISIBILITIES * 2:
        (record,) = publish(log, AUTH, visibility=visibility)
        for name in seen_by.split():
            expected[name].append(record.seq)
        assert {name: sees(histories, name) for name in CALLERS} == expected
    for name, visible in expected.items():
        assert sees(histories, name, limit=3, reverse=True) == visible[:-4:-1]
        assert sees(histories, name, limit=2) == visible[:2]
    assert seqs(histories, authid="ann", authrole="admin") == expected["root"]


@pytest.mark.matrix("WAMP-53")
def test_hidden_events_do_not_count_and_are_no_beginning(log: EventLog, clock: VirtualClock) -> None:
    publish(log, AUTH, visibility=ADMIN_ONLY)
    clock.set(clock.now_ns() + SECOND)
    first = publish(log, AUTH)[0]
    publish(log, *[AUTH] * 5, visibility=ADMIN_ONLY)
    publish(log, AUTH)
    publish(log, *[AUTH] * 5, visibility=ADMIN_ONLY)
    histories = EventHistory(log, EVERYTHING)
    page = histories.page(LOGS, HistoryQuery(1, limit=2), authid="", authrole="user", most_events=99)
    assert ([it.seq for it in page.records], page.more, page.history_start_ns) == ([2, 8], False, first.received_ns)


@pytest.mark.matrix("WAMP-73")
def test_realms_know_nothing_of_each_other(log: EventLog) -> None:
    mine = publish(log, AUTH, "shop:" + AUTH, "shop:x.y", "shopping:" + AUTH)
    default, shop = EventHistory(log, EVERYTHING), EventHistory(log, EVERYTHING, realm_prefix="shop:")
    everything = TopicPattern("", Match.PREFIX)
    assert (seqs(default, everything), seqs(shop, everything)) == ([1], [2, 3])
    assert (seqs(shop, TopicPattern(AUTH)), seqs(shop, everything, topic="x.y")) == ([2], [3])
    assert "unknown" in refused(default, everything, from_publication=mine[1].pub_id)
    assert "unknown" in refused(shop, everything, from_publication=mine[0].pub_id)


def test_views_are_bounded_and_come_back(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MOST_VIEWS", 3)
    monkeypatch.setattr(history_module, "MOST_CALLERS", 2)
    publish(log, *(f"com.t{number}" for number in range(10)))
    publish(log, "com.t0", visibility=ADMIN_ONLY)
    histories = EventHistory(log, EVERYTHING)
    for _ in range(2):
        for number in range(10):
            for role, expected in (("user", []), ("admin", [11] if number == 0 else [])):
                pattern = TopicPattern(f"com.t{number}")
                assert seqs(histories, pattern, authid=role, authrole=role) == [number + 1, *expected]
        assert sum(map(len, histories._views.values())) == 3
        assert len(histories._callers) == 2
