"""Events reach a handler once, live or replayed, over restarts too."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.notifier import FIRST, PATIENCE, PUBLISHER, TICKS, Desk, chain, replay_headers, send
from relaycast_gateway.icrc.id_runs import IdRuns
from relaycast_gateway.icrc.names import OWN_HEADER
from relaycast_gateway.icrc.publisher.close_out import close_out
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.subscriber.handed_events import HandedEvents
from relaycast_gateway.icrc.subscriber.intake import EventGap, IntakeLimits
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc16 import blob, nat
from relaycast_gateway.log.unusable import UnusableLog
from searches import examples


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
    send(desk, chain(desk, 3, 4, 5, 6, 7, before=2, headers=replay_headers(1, 7)))
    send(desk, chain(desk, 8, before=7))
    assert desk.ids == [6, 7, 3, 4, 5, 8]
    assert desk.gaps == []


@pytest.mark.matrix("ICRC77-43")
def test_live_events_that_wait_follow_the_replay_that_brings_the_missing_ones(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, chain(desk, 5, 6, before=4))
    assert desk.gaps == [EventGap(TICKS, 4, 5)]
    send(desk, chain(desk, 2, 3, 4, 5, before=1, headers=replay_headers(1, 5)))
    assert desk.ids == [1, 2, 3, 4, 5, 6]
    assert len(desk.first.confirmed) == 7


@pytest.mark.matrix("ICRC77-43")
def test_replayed_events_of_before_the_beginning_do_not_wait_for_those_before_them(desk: Desk) -> None:
    send(desk, chain(desk, 9, before=8))
    send(desk, chain(desk, 5, 6, before=4, headers=replay_headers(1, 6)))
    assert desk.ids == [9, 5, 6]


@pytest.mark.matrix("ICRC77-43")
def test_replayed_events_of_after_the_beginning_wait_for_those_that_come_live(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, chain(desk, 3, 4, before=2, headers=replay_headers(1, 4)))
    assert desk.ids == [1]
    send(desk, chain(desk, 2, 3, before=1))
    assert desk.ids == [1, 2, 3, 4]
    send(desk, chain(desk, 7, before=6, headers=replay_headers(2, 7)))
    desk.subnet.run(PATIENCE)
    assert desk.ids == [1, 2, 3, 4, 7]  # nothing came live


@pytest.mark.matrix("ICRC77-43")
def test_replayed_events_do_not_overtake_one_before_them_that_waits(desk: Desk) -> None:
    send(desk, chain(desk, 1))
    send(desk, chain(desk, 4, before=3))
    send(desk, chain(desk, 5, 6, before=4, headers=replay_headers(1, 6)))
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
    send(desk, chain(desk, 1, 2, 3, 4, 5, 6, headers=replay_headers(1, 6)))
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
    oldest = desk.first.notification(ids[0], None, headers=replay_headers(1))
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


def test_a_namespace_knows_an_event_by_its_id_and_not_by_its_sender() -> None:
    event = NotifiedEvent(1, 5, None, TICKS, nat(1), (), PUBLISHER, 0, None, FIRST)
    handed = HandedEvents()
    handed.add(event)
    other = event._replace(source=b"\x01", headers=((OWN_HEADER, blob(b"\x02")),), notification_id=9)
    assert other in handed
    assert other in HandedEvents(handed.dump())
    assert event._replace(event_id=6) not in handed
