"""Events reach a handler in the order of their chains, whatever way and order notifications come in."""

from itertools import chain as joined
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.notifier import FIRST, PATIENCE, PUBLISHER, TICKS, Desk, chain, send, settled
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.names import OWN_HEADER
from relaycast_gateway.icrc.publisher.close_out import close_out
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.subscriber.intake import EventGap, IntakeLimits
from relaycast_gateway.icrc16 import blob, nat
from searches import examples


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
