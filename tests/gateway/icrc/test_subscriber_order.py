"""Events reach a handler once and in the order of their chains, whatever way and order notifications come in."""

from collections.abc import Sequence
from itertools import chain as joined
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.notifier import FIRST, PUBLISHER, TICKS, Desk, settled
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.id_runs import IdRuns
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import HASH, OWN_HEADER, REPLAY, REPLAY_END, REPLAY_END_ID, REPLAY_ID
from relaycast_gateway.icrc.publisher.close_out import close_out
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.subscriber.handed_events import HandedEvents
from relaycast_gateway.icrc.subscriber.intake import EventGap, IntakeLimits
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc.system_messages import (
    SUBSCRIBER_ADD,
    SUBSCRIBER_REMOVE,
    SystemItem,
    system_notification,
)
from relaycast_gateway.icrc16 import blob, boolean, nat
from relaycast_gateway.log.unusable import UnusableLog
from relaycast_gateway.record import Headers
from searches import examples

PATIENCE = IntakeLimits().patience_seconds


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.subscribe()
    return desk


def chain(desk: Desk, *ids: int, before: int | None = None, headers: Headers = ()) -> list[dict[str, Any]]:
    """Return notifications of events of which each names the one before it."""
    return [
        desk.first.notification(each, prev, headers=headers)
        for prev, each in zip([before, *ids[:-1]], ids, strict=True)
    ]


def send(desk: Desk, notifications: Sequence[dict[str, Any]], *, trusted: bool = False) -> None:
    for each in notifications:
        desk.first.send(each, trusted=trusted)
    desk.subnet.run(1)


def replayed(replay_id: int, end_id: int | None = None) -> Headers:
    end = () if end_id is None else ((REPLAY_END_ID, nat(end_id)),)
    return ((REPLAY, boolean(True)), (REPLAY_ID, nat(replay_id)), *end)


# order


@pytest.mark.matrix("ICRC72-90")
def test_events_that_come_out_of_order_are_handed_over_in_the_order_of_their_chain(desk: Desk) -> None:
    first, *others = chain(desk, *range(1, 9))
    send(desk, [first])
    send(desk, list(reversed(others)))
    assert desk.ids == [1, 2, 3, 4, 5, 6, 7, 8]
    assert desk.first.confirmed == [first["id"], *(it["id"] for it in others)]


@pytest.mark.matrix("ICRC72-90")
def test_a_gap_is_told_once_and_at_once(desk: Desk) -> None:
    send(desk, chain(desk, 1, 2))
    send(desk, chain(desk, 4, 5, before=3))
    send(desk, chain(desk, 6, before=5))
    assert desk.gaps == [EventGap(TICKS, 3, 4)]
    assert desk.ids == [1, 2]
    assert desk.first.confirmed == [1, 2]


@pytest.mark.matrix("ICRC72-90")
def test_an_event_that_waits_too_long_goes_on_without_the_one_before(desk: Desk) -> None:
    send(desk, chain(desk, 1, 2))
    send(desk, chain(desk, 4, 5, before=3))
    desk.subnet.run(PATIENCE - 3)
    assert desk.ids == [1, 2]
    desk.subnet.run(3)
    assert desk.ids == [1, 2, 4, 5]
    send(desk, chain(desk, 3, before=2))
    assert desk.ids == [1, 2, 4, 5, 3]


@pytest.mark.matrix("ICRC72-90")
def test_the_backlog_is_bounded() -> None:
    desk = Desk(limits=IntakeLimits(patience_seconds=1_000, most_held=10))
    desk.subscribe()
    send(desk, chain(desk, 1))
    for number in range(10, 110, 2):  # each misses the one before
        send(desk, [desk.first.notification(number, number - 1)])
        assert desk.stat("icrc72:subscriber:stats:resources:held") <= 10
    assert desk.ids == [1, *range(10, 90, 2)]


def test_a_subscription_that_is_started_again_misses_nothing_of_the_time_between(desk: Desk) -> None:
    send(desk, chain(desk, 1, 2))
    for is_stopped in (True, False):
        assert settled(desk.subnet, desk.subscriber.set_stopped(TICKS, is_stopped=is_stopped)) is True
        assert desk.orchestrator.registry.subscriptions[1].is_stopped == is_stopped
    send(desk, chain(desk, 9, 10, before=8))
    send(desk, chain(desk, 12, before=11))
    assert desk.ids == [1, 2, 9, 10]
    assert desk.gaps == [EventGap(TICKS, 11, 12)]
    with pytest.raises(ValueError, match=r"'com\.example\.tocks', expected one that is subscribed to"):
        desk.subscriber.set_stopped("com.example.tocks", is_stopped=True)


def test_waiting_events_are_taken_out_from_the_front_of_their_chain() -> None:
    desk = Desk(limits=IntakeLimits(most_held=3))
    desk.subscribe()
    send(desk, chain(desk, 1))
    send(desk, list(reversed(chain(desk, 3, 4, 5, 6, before=2))))
    assert desk.ids == [1, 3, 4, 5, 6]


def test_events_that_name_each_other_do_not_wait_for_ever(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, [desk.first.notification(5, 6), desk.first.notification(6, 5), desk.first.notification(7, 7)])
    desk.subnet.run(PATIENCE + 2)
    assert sorted(desk.ids) == [1, 5, 6, 7]


def test_what_was_published_before_the_beginning_is_not_missed(desk: Desk) -> None:
    other = ((OWN_HEADER, blob(b"\x0d\x02")),)
    send(desk, chain(desk, 101, 103, before=99, headers=((OWN_HEADER, blob(FIRST)),)))
    send(desk, chain(desk, 100, 102, before=98, headers=other))
    assert desk.ids == [101, 103, 100, 102]
    assert desk.gaps == []


@pytest.mark.parametrize(("text", "skip"), [("price > 5", None), (None, Skip(5))])
def test_a_subscription_with_a_filter_or_skip_does_not_wait_for_what_it_does_not_get(
    text: str | None, skip: Skip | None
) -> None:
    desk = Desk()
    desk.subscribe(filter=text, skip=skip)
    send(desk, [desk.first.notification(it, it - 1, filter=text) for it in (5, 10, 15)])
    assert desk.ids == [5, 10, 15]
    assert desk.gaps == []


def test_a_skip_of_one_selects_all_and_keeps_the_order() -> None:
    desk = Desk()
    desk.subscribe(skip=Skip(1))
    send(desk, chain(desk, 1))
    send(desk, list(reversed(chain(desk, 2, 3, before=1))))
    assert desk.ids == [1, 2, 3]


@pytest.mark.matrix("ICRC72-10")
def test_a_close_out_waits_for_the_last_event_of_each_partition(desk: Desk) -> None:
    data, headers = close_out(0, [4, 3])
    send(desk, chain(desk, 1, 3) + chain(desk, 2))
    send(desk, [desk.first.notification(5, 3, data=data, headers=headers), *chain(desk, 6, before=5)])
    assert desk.ids == [1, 3, 2]
    send(desk, chain(desk, 4, before=2))
    assert desk.ids == [1, 3, 2, 4, 5, 6]


@pytest.mark.matrix("ICRC72-88")
def test_a_trusted_call_does_not_hold_up_the_events_that_it_waits_for(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    later = chain(desk, 3, before=2)
    assert desk.came(desk.first.send(*later, trusted=True)) == [Variant("Err", "an event waits for those before it")]
    assert desk.came(desk.first.send(*chain(desk, 2, before=1), trusted=True)) == [Variant("Ok", None)]
    assert desk.ids == [1, 2, 3]
    assert desk.came(desk.first.send(*later, trusted=True)) == [Variant("Ok", None)]
    assert desk.ids == [1, 2, 3]


@pytest.mark.matrix("ICRC72-90")
@settings(max_examples=examples(60))
@given(st.data())
def test_any_order_of_chains_is_put_right(data: st.DataObject) -> None:
    """Three chains with sparse ids, in any order with repetitions: each one comes once, in its order."""
    desk = Desk()
    desk.subscribe()
    random = Random(data.draw(st.integers(0, 2**32)))
    notifications: list[dict[str, Any]] = []
    chains: list[list[int]] = []
    for source in (PUBLISHER, b"\x0b\x02", b"\x0b\x03"):
        base = 1000 * (len(chains) + 1) + (1 << 200) * (len(chains) == 2)
        ids = [base + it for it in sorted(random.sample(range(900), random.randint(1, 12)))]
        chains.append(ids)
        first, *others = [
            desk.first.notification(each, prev, source=source, headers=((OWN_HEADER, blob(FIRST)),))
            for prev, each in zip([None, *ids[:-1]], ids, strict=True)
        ]
        send(desk, [first])
        notifications += others
    notifications += random.sample(notifications, len(notifications) // 2)
    random.shuffle(notifications)
    send(desk, notifications)
    assert sorted(desk.ids) == sorted(joined.from_iterable(chains))
    for ids in chains:
        assert [it for it in desk.ids if it in ids] == ids
    assert desk.subscriber.statistics()["icrc72:subscriber:stats:resources:held"] == nat(0)
    assert len(desk.first.confirmed) == len(notifications) + len(chains)


# once


@pytest.mark.matrix("ICRC77-43")
def test_an_event_that_comes_again_is_confirmed_and_not_handed_over(desk: Desk) -> None:
    send(desk, chain(desk, 1, 2, 3))
    send(desk, chain(desk, 2, before=1))
    assert desk.ids == [1, 2, 3]
    assert desk.first.confirmed == [1, 2, 3, 4]
    assert desk.stat("icrc72:subscriber:stats:duplicates") == 1


@pytest.mark.matrix("ICRC77-43")
def test_an_event_that_comes_again_while_it_waits_is_handed_over_once(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, chain(desk, 3, before=2) + chain(desk, 3, before=2))
    assert desk.first.confirmed == [1]
    send(desk, chain(desk, 2, before=1))
    assert desk.ids == [1, 2, 3]
    assert sorted(desk.first.confirmed) == [1, 2, 3, 4]


@pytest.mark.matrix("ICRC77-43")
def test_live_events_and_their_replay_are_handed_over_once_each(desk: Desk) -> None:
    send(desk, chain(desk, 6, 7, before=5))
    send(desk, chain(desk, 3, 4, 5, 6, 7, before=2, headers=replayed(1, 7)))
    send(desk, chain(desk, 8, before=7))
    assert desk.ids == [6, 7, 3, 4, 5, 8]
    assert desk.gaps == []


@pytest.mark.matrix("ICRC77-43")
def test_live_events_that_wait_follow_the_replay_that_brings_the_missing_ones(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, chain(desk, 5, 6, before=4))
    assert desk.gaps == [EventGap(TICKS, 4, 5)]
    send(desk, chain(desk, 2, 3, 4, 5, before=1, headers=replayed(1, 5)))
    assert desk.ids == [1, 2, 3, 4, 5, 6]
    assert len(desk.first.confirmed) == 7


@pytest.mark.matrix("ICRC77-43")
def test_replayed_events_of_before_the_beginning_do_not_wait_for_those_before_them(desk: Desk) -> None:
    send(desk, chain(desk, 9, before=8))
    send(desk, chain(desk, 5, 6, before=4, headers=replayed(1, 6)))
    assert desk.ids == [9, 5, 6]


@pytest.mark.matrix("ICRC77-43")
def test_replayed_events_of_after_the_beginning_wait_for_those_that_come_live(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, chain(desk, 3, 4, before=2, headers=replayed(1, 4)))
    assert desk.ids == [1]
    send(desk, chain(desk, 2, 3, before=1))
    assert desk.ids == [1, 2, 3, 4]
    send(desk, chain(desk, 7, before=6, headers=replayed(2, 7)))
    desk.subnet.run(PATIENCE)
    assert desk.ids == [1, 2, 3, 4, 7]  # nothing came live


@pytest.mark.matrix("ICRC77-43")
def test_replayed_events_do_not_overtake_one_before_them_that_waits(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, chain(desk, 4, before=3))
    send(desk, chain(desk, 5, 6, before=4, headers=replayed(1, 6)))
    send(desk, chain(desk, 7, before=6))
    assert desk.ids == [1]
    desk.subnet.run(PATIENCE)
    assert desk.ids == [1, 4, 5, 6, 7]
    assert [it.is_complete for it in desk.ended] == [True]


def test_a_beginning_that_waits_is_known_after_a_restart(desk: Desk) -> None:
    data, headers = close_out(0, [1])
    send(desk, [desk.first.notification(2, 1, data=data, headers=headers)])
    desk.start()
    desk.subscribe()
    send(desk, [desk.first.notification(3, 2)])
    assert desk.ids == []
    send(desk, [desk.first.notification(1), desk.first.notification(2, 1, data=data, headers=headers)])
    assert desk.ids == [1, 2, 3]


@pytest.mark.matrix("ICRC77-43")
def test_a_restart_forgets_no_event_that_was_handed_over(desk: Desk) -> None:
    send(desk, chain(desk, 1, 2, 3))
    send(desk, chain(desk, 5, before=4))
    desk.start()
    desk.subscribe()
    send(desk, chain(desk, 2, 3, 4, 5, 6, before=1))
    assert desk.ids == [1, 2, 3, 4, 5, 6]
    desk.start()
    desk.subscribe()
    send(desk, chain(desk, 1, 2, 3, 4, 5, 6, headers=replayed(1, 6)))
    assert desk.ids == [1, 2, 3, 4, 5, 6]


def test_a_confirmation_goes_out_after_the_memory_is_durable(desk: Desk) -> None:
    kept_at: list[int] = []

    original = desk.store.flush

    def flush() -> None:
        kept_at.append(len(desk.first.confirmed))
        original()

    desk.store.flush = flush  # type: ignore[method-assign]
    send(desk, chain(desk, 1))
    assert kept_at == [0]
    assert desk.first.confirmed == [1]
    assert [key for key, _ in desk.store.items("subscriber 0c01")] == [TICKS.encode()]


def test_a_damaged_memory_is_named_in_one_line(desk: Desk) -> None:
    desk.store.put("subscriber 0c01", TICKS.encode(), b"\xc1")
    desk.store.flush()
    with pytest.raises(
        UnusableLog, match=r"^memory, subscriber 0c01, b.com\.example\.ticks.: got .*, expected a store"
    ):
        desk.start()


def test_memory_stays_small_over_long_chains_and_old_events_do_not_come_back() -> None:
    desk = Desk(limits=IntakeLimits(most_runs=16))
    desk.subscribe(skip=Skip(7))
    random = Random(5)
    ids = sorted(random.sample(range(100_000), 2_000))
    send(desk, [desk.first.notification(it, it - 1) for it in ids])
    assert desk.ids == ids
    assert desk.stat("icrc72:subscriber:stats:resources:runs") <= 16
    send(desk, [desk.first.notification(it, it - 1) for it in ids])
    assert desk.ids == ids
    oldest = desk.first.notification(ids[0], None, headers=replayed(1))
    send(desk, [oldest])
    assert desk.ids == [*ids, ids[0]]


def test_ids_that_do_not_increase_are_handed_over() -> None:
    desk = Desk(limits=IntakeLimits(most_runs=4))
    desk.subscribe(skip=Skip(2))
    ids = [100, 50, 7, 1000, 3, 999, 2, 5, 400, 1]
    send(desk, [desk.first.notification(it, prev) for prev, it in zip([None, *ids[:-1]], ids, strict=True)])
    assert desk.ids == ids


@settings(max_examples=examples(100))
@given(st.lists(st.integers(0, 60) | st.integers(0, 2**70), unique=True, max_size=80), st.data())
def test_runs_of_ids_are_a_set(ids: list[int], data: st.DataObject) -> None:
    runs, model = IdRuns(), set[int]()
    for each in ids:
        assert not runs.has(each)
        runs.add(each)
        model.add(each)
        if data.draw(st.booleans()):
            runs = IdRuns(runs.dump(), floor=runs.floor)
    assert {it for it in range(200) if runs.has(it)} == {it for it in model if it < 200}
    assert all(runs.has(it) for it in model)


@settings(max_examples=examples(100))
@given(st.lists(st.integers(0, 1_000), unique=True, max_size=80))
def test_a_bounded_set_of_ids_forgets_only_what_its_floor_covers(ids: list[int]) -> None:
    runs = IdRuns(most_runs=5)
    for each in ids:
        runs.add(each)
        assert len(runs) <= 5
    assert all(runs.has(it) or it <= runs.floor for it in ids)
    assert not any(runs.has(it) for it in range(1_001) if it not in set(ids))


@pytest.mark.parametrize(
    ("ids", "runs"),
    [
        (range(1, 1_001), 1),  # every event
        (range(2, 5_000, 5), 1),  # one of five
        ([*range(1, 10), *range(11, 20), 10], 1),  # a gap that is filled joins both sides
        ([1, 2, 4, 5, 3], 1),
        (range(10, 0, -1), 10),  # backwards: no run
    ],
)
def test_regular_ids_take_one_run(ids: Sequence[int], runs: int) -> None:
    found = IdRuns()
    for each in ids:
        found.add(each)
    assert len(found) == runs


def test_a_namespace_remembers_by_id_whoever_sends_the_event() -> None:
    event = NotifiedEvent(1, 5, None, TICKS, nat(1), (), PUBLISHER, 0, None, FIRST)
    handed = HandedEvents()
    handed.add(event)
    other = event._replace(source=b"\x01", headers=((OWN_HEADER, blob(b"\x02")),), notification_id=9)
    assert other in handed
    assert other in HandedEvents(handed.dump())
    assert event._replace(event_id=6) not in handed


# replays


@pytest.mark.matrix("ICRC77-19")
def test_an_open_replay_is_complete_when_its_last_event_came(desk: Desk) -> None:
    send(desk, chain(desk, 20))
    send(desk, chain(desk, 3, 5, 8, before=2, headers=replayed(7, 9)))
    assert desk.ended == []
    send(desk, chain(desk, 9, before=8, headers=replayed(7, 9)))
    (progress,) = desk.ended
    assert (progress.replay_id, progress.end_id, progress.received) == (7, 9, 4)
    assert progress.is_complete
    assert not progress.is_removed


@pytest.mark.matrix("ICRC77-19")
def test_the_last_event_of_a_replay_counts_when_it_was_known_already(desk: Desk) -> None:
    send(desk, chain(desk, 1, 2, 3))
    send(desk, chain(desk, 2, 3, before=1, headers=replayed(7, 3)))
    assert [it.replay_id for it in desk.ended] == [7]
    assert desk.ids == [1, 2, 3]


@pytest.mark.matrix("ICRC77-19")
def test_the_end_may_have_its_other_name_on_the_first_event(desk: Desk) -> None:
    headers = ((REPLAY_ID, nat(7)),)
    send(desk, chain(desk, 1, headers=(*headers, (REPLAY_END, nat(2)))))
    send(desk, chain(desk, 2, before=1, headers=headers))
    assert [it.end_id for it in desk.ended] == [2]


@pytest.mark.matrix("ICRC77-19")
def test_headers_of_an_event_itself_do_not_end_a_replay(desk: Desk) -> None:
    own = ((REPLAY_ID, nat(1)), (REPLAY_END_ID, nat(1)))
    send(desk, chain(desk, 1, headers=(*own, *replayed(7, 2))))
    assert desk.ended == []
    assert list(desk.subscriber.replays) == [7]


def message(desk: Desk, key: str, replay_id: int) -> dict[str, Any]:
    item = SystemItem(key, replay_id, broadcaster=FIRST)
    return system_notification(item, CanisterRole.SUBSCRIBER, desk.subscriber.principal, FIRST, 0, 1)


@pytest.mark.matrix("ICRC77-52")
def test_a_replay_that_sends_nothing_ends_with_the_message_that_removes_it(desk: Desk) -> None:
    desk.first.send(message(desk, SUBSCRIBER_ADD, 7))
    desk.subnet.run(1)
    assert desk.subscriber.replays[7].broadcaster == FIRST
    assert desk.ended == []
    desk.first.send(message(desk, SUBSCRIBER_REMOVE, 7))
    desk.subnet.run(1)
    assert [(it.replay_id, it.received, it.is_complete, it.is_removed) for it in desk.ended] == [(7, 0, False, True)]
    assert desk.ids == []
    assert desk.first.confirmed == []


@pytest.mark.matrix("ICRC77-52")
def test_a_replay_ends_once(desk: Desk) -> None:
    send(desk, chain(desk, 1, 2, headers=replayed(7, 2)))
    desk.first.send(message(desk, SUBSCRIBER_REMOVE, 7))
    send(desk, chain(desk, 2, before=1, headers=replayed(7, 2)))
    assert len(desk.ended) == 1
    assert desk.subscriber.replays[7].is_complete
    assert desk.subscriber.replays[7].is_removed


def test_a_system_message_that_cannot_be_read_is_noted(desk: Desk) -> None:
    bad = message(desk, SUBSCRIBER_REMOVE, 7)
    bad["data"] = Variant("Map", [{0: SUBSCRIBER_REMOVE, 1: Variant("Text", "7")}])
    answers = desk.first.send(bad)
    desk.subnet.run(1)
    assert answers[0].refusal is None
    assert desk.subscriber.last_error == f"{SUBSCRIBER_REMOVE}: expected an Array, got Text"


@pytest.mark.matrix("ICRC72-22")
def test_a_forged_event_leaves_a_gap_that_its_replay_fills(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, [desk.first.notification(2, 1, headers=((HASH, blob(bytes(32))),)), *chain(desk, 3, before=2)])
    assert desk.gaps == [EventGap(TICKS, 2, 3)]
    send(desk, chain(desk, 2, before=1, headers=replayed(1, 2)))
    assert desk.ids == [1, 2, 3]
