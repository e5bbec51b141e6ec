"""How a subscriber follows its replays: their last event, their end, what they fill."""

from typing import Any

import pytest

from gateway.icrc.notifier import FIRST, TICKS, Desk, chain, replay_headers, send
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import HASH, REPLAY_END, REPLAY_END_ID, REPLAY_ID
from relaycast_gateway.icrc.subscriber.intake import EventGap
from relaycast_gateway.icrc.system_messages import (
    SUBSCRIBER_ADD,
    SUBSCRIBER_REMOVE,
    SystemItem,
    system_notification,
)
from relaycast_gateway.icrc16 import blob, nat


@pytest.mark.matrix("ICRC77-19")
def test_an_open_replay_is_complete_when_its_last_event_came(desk: Desk) -> None:
    send(desk, chain(desk, 20))
    send(desk, chain(desk, 3, 5, 8, before=2, headers=replay_headers(7, 9)))
    assert desk.ended == []
    send(desk, chain(desk, 9, before=8, headers=replay_headers(7, 9)))
    (progress,) = desk.ended
    assert (progress.replay_id, progress.end_id, progress.received) == (7, 9, 4)
    assert progress.is_complete
    assert not progress.is_removed


@pytest.mark.matrix("ICRC77-19")
def test_the_last_event_of_a_replay_counts_when_it_was_known_already(desk: Desk) -> None:
    send(desk, chain(desk, 1, 2, 3))
    send(desk, chain(desk, 2, 3, before=1, headers=replay_headers(7, 3)))
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
    send(desk, chain(desk, 1, headers=(*own, *replay_headers(7, 2))))
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
    send(desk, chain(desk, 1, 2, headers=replay_headers(7, 2)))
    desk.first.send(message(desk, SUBSCRIBER_REMOVE, 7))
    send(desk, chain(desk, 2, before=1, headers=replay_headers(7, 2)))
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
    send(desk, chain(desk, 2, before=1, headers=replay_headers(1, 2)))
    assert desk.ids == [1, 2, 3]
