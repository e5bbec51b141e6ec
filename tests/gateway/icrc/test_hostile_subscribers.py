"""Subscribers that confirm what they like: they cost a broadcaster a bounded share of time and memory."""

from pathlib import Path

import pytest

from gateway.icrc.replay_stage import READER, ReplayingStage, events, system_items
from gateway.icrc.stage import Stage
from relaycast_gateway.icrc.broadcaster import BroadcastPolicy, subscription_source
from relaycast_gateway.icrc.system_messages import SUBSCRIBER_REMOVE


def test_confirming_all_but_the_first_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription_source, "MOST_OUT_OF_ORDER", 50)
    with Stage() as stage:
        stage.register()
        subscription = stage.subscribe(b"mallory")
        mallory = stage.subscribers[b"mallory"]
        mallory.confirms = False
        mallory.on_call = lambda messages: mallory.confirm(*(it["id"] for it in messages if it["id"] > 1))
        for _ in range(30):
            stage.publish(*(stage.event() for _ in range(10)))
        _, source = stage.broadcaster._lanes[subscription]
        assert len(source._finished) == 50
        mallory.on_call = lambda _messages: None
        mallory.confirms = True
        mallory.confirm(1)
        stage.run()
        assert mallory.event_ids == list(range(1, 301))
        assert source._finished == set()


def test_what_was_confirmed_out_of_order_goes_on_after_a_restart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(subscription_source, "MOST_OUT_OF_ORDER", 50)
    with Stage(folder=tmp_path) as stage:
        stage.register()
        stage.subscribe(b"mallory")
        mallory = stage.subscribers[b"mallory"]
        mallory.confirms = False
        mallory.on_call = lambda messages: mallory.confirm(*(it["id"] for it in messages if it["id"] > 1))
        for _ in range(30):
            stage.publish(*(stage.event() for _ in range(10)))
        stage.run(1)
        mallory.on_call = lambda _messages: None
        mallory.confirms = True
        stage.restart()
        stage.run(1)
        assert set(mallory.event_ids) == set(range(1, 301))
        assert list(stage.broadcaster.outstanding()) == []


def test_a_confirmation_of_a_replay_is_found_without_looking_at_other_replays() -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(3)
        reader = stage.subscribers[READER]
        reader.confirms = False
        numbers = [stage.request() for _ in range(3)]
        replays = stage.broadcaster.replays
        assert sorted(set(replays._replay_of.values())) == numbers
        ids = list(replays._replay_of)
        reader.confirm(*ids, broadcaster=stage.principals[0])
        reader.confirm(*ids, broadcaster=stage.principals[0])
        stage.run()
        first, second = reader.confirmations
        assert first.tag == "allAccepted"  # type: ignore[attr-defined]
        assert {it.value.tag for it in second.value} == {"AlreadyConfirmed"}  # type: ignore[attr-defined]
        assert (replays._replay_of, replays._lanes) == ({}, {})


def test_a_canceled_replay_leaves_nothing_behind() -> None:
    with ReplayingStage(policy=BroadcastPolicy(most_unconfirmed=2, most_waiting_replayed=4)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(20)
        reader = stage.subscribers[READER]
        reader.confirms = False
        number = stage.request()
        stage.ask(READER, "icrc77_cancel_replay", [number])
        stage.run(1)
        reader.confirm(*(it["id"] for it in events(reader)[-2:]))
        stage.run(1)
        replays = stage.broadcaster.replays
        assert (replays._replay_of, replays._lanes) == ({}, {})


def test_the_end_of_a_replay_is_told_once_although_a_restart_found_it_without_work(tmp_path: Path) -> None:
    with ReplayingStage(folder=tmp_path, policy=BroadcastPolicy(most_unconfirmed=4, most_waiting_replayed=4)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(100)
        reader = stage.subscribers[READER]
        reader.confirms = False
        reader.calls.clear()
        number = stage.request(runs=0)
        reader.confirms = True
        stage.restart()
        assert stage.orchestrator.registry.replays[number].is_active
        stage.servings[0]._over(number)  # what waited was confirmed before the replay was assigned again
        stage.run(5)
        assert [it.key for it in system_items(reader)].count(SUBSCRIBER_REMOVE) == 1
        assert {it["eventId"] for it in events(reader)} == set(range(1, 101))
