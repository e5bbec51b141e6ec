"""Replays while they run: slow readers, cancels, live events beside them, restarts, rights that go."""

import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gateway.icrc.replay_stage import (
    ARCHIVIST,
    READER,
    ReplayingStage,
    event_ids,
    events,
    replayed,
    system_items,
)
from gateway.icrc.stage import NAMESPACE, PUBLISHER, header
from relaycast_gateway.candid import Variant
from relaycast_gateway.clock import Alarm
from relaycast_gateway.icrc import system_messages as messages
from relaycast_gateway.icrc.broadcaster import BroadcastPolicy
from relaycast_gateway.icrc.store import IcrcStore, Notes
from relaycast_gateway.icrc.system_messages import SystemItem
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import array, blob, boolean, nat, text
from relaycast_gateway.record import EventDraft, EventRecord

SMALL_WINDOW = BroadcastPolicy(most_waiting_replayed=50, notifications_a_call=10, most_unconfirmed=10)


@pytest.mark.matrix("ICRC77-45")
def test_a_slow_reader_slows_its_replay_and_nothing_piles_up() -> None:
    with ReplayingStage(policy=SMALL_WINDOW) as stage:
        stage.register()
        stage.publish_many(300)
        stage.subscribe(READER)
        reader = stage.subscriber(READER)
        reader.confirms = False
        replay_id = stage.request()
        most_waited = []
        while waiting := list(stage.broadcaster.outstanding()):
            most_waited.append(stage.broadcaster.replays.most_waited(replay_id))
            reader.confirm(*waiting, broadcaster=stage.broadcaster.principal)
            stage.run(1)
        assert max(most_waited) == 50
        assert event_ids(replayed(reader)) == list(range(1, 301))
        assert stage.state(replay_id) == Variant("completed", 300)


def cancel(stage: ReplayingStage, replay_id: int) -> None:
    assert stage.ask(READER, "icrc77_cancel_replay", [replay_id]) == [Variant("Ok", replay_id)]


def revoke_the_right(stage: ReplayingStage, _replay_id: int) -> None:
    publication_id = stage.orchestrator.registry.publications[NAMESPACE].id
    stage.configure(publication_id, {"icrc72:publication:subscribers:disallowed:list": array(blob(READER))})


@pytest.mark.matrix("ICRC77-40", "ICRC77-53")
@pytest.mark.parametrize(("end", "state"), [(cancel, "canceled"), (revoke_the_right, "errored")])
def test_what_ends_a_replay_stops_what_was_not_sent_yet(end: Callable[[ReplayingStage, int], None], state: str) -> None:
    with ReplayingStage(policy=SMALL_WINDOW) as stage:
        stage.register()
        stage.publish_many(300)
        stage.subscribe(READER)
        reader = stage.subscriber(READER)
        reader.confirms = False
        replay_id = stage.request()
        sent = len(replayed(reader))
        assert sent == SMALL_WINDOW.most_unconfirmed
        end(stage, replay_id)
        stage.run(10)
        reader.confirms = True
        reader.confirm(*(it["id"] for it in replayed(reader)), broadcaster=stage.broadcaster.principal)
        stage.run(100)
        assert len(replayed(reader)) == sent
        assert stage.state(replay_id).tag == state
        assert system_items(reader)[-1] == SystemItem(messages.SUBSCRIBER_REMOVE, replay_id)
        assert stage.archivist.jobs == {}


@pytest.mark.matrix("ICRC77-38")
def test_live_events_go_on_during_a_replay() -> None:
    policy = BroadcastPolicy(most_waiting_replayed=20, notifications_a_call=5, most_unconfirmed=5)
    with ReplayingStage(policy=policy, latency=lambda _from, _to: 10_000_000) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(100)
        stage.run(10)
        reader = stage.subscriber(READER)
        reader.calls.clear()
        stage.request(runs=0.1)
        for _ in range(20):
            stage.publish(stage.event())
            stage.run(0.05)
        stage.run(60)
        kinds = [header(it, "icrc77:replay:id") is None for it in events(reader)]
        first_live, last_live = kinds.index(True), len(kinds) - 1 - kinds[::-1].index(True)
        assert not all(kinds[first_live:last_live])  # they overlap
        live = [it["eventId"] for it, is_live in zip(events(reader), kinds, strict=True) if is_live]
        assert live == list(range(101, 121))
        assert event_ids(replayed(reader)) == list(range(1, 101))  # as of its registration


@pytest.mark.matrix("ICRC77-41")
def test_a_replay_goes_on_after_a_restart_and_loses_nothing(tmp_path: Path) -> None:
    policy = BroadcastPolicy(most_waiting_replayed=20, notifications_a_call=5, most_unconfirmed=5)
    with ReplayingStage(folder=tmp_path, policy=policy, latency=lambda _from, _to: 10_000_000) as stage:
        stage.register()
        stage.publish_many(200)
        stage.run(5)
        stage.subscribe(READER)
        reader = stage.subscriber(READER)
        replay_id = stage.request(runs=0.1)
        for _ in range(4):
            assert stage.state(replay_id).tag == "running"
            stage.restart()
            stage.run(0.1)
        stage.run(200)
        assert sorted(set(event_ids(replayed(reader)))) == list(range(1, 201))
        assert stage.state(replay_id).tag == "completed"
        numbers = [(it["id"], it["eventId"]) for it in replayed(reader)]
        assert len({number for number, _ in set(numbers)}) == len(set(numbers))  # no id stands for two events


def test_a_replay_goes_on_where_the_disk_refuses_every_other_write(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, attempts = IcrcStore._write, count()

    def write(store: IcrcStore, noted: Notes) -> None:
        if noted and next(attempts) % 2:
            raise sqlite3.OperationalError("disk is full")
        whole(store, noted)

    with ReplayingStage(latency=lambda _from, _to: 10_000_000) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(200)
        replay_id = stage.request(runs=0)
        with monkeypatch.context() as patch:
            patch.setattr(IcrcStore, "_write", write)
            stage.run(120)
        assert next(attempts) > 10
        assert event_ids(replayed(stage.subscriber(READER))) == list(range(1, 201))
        assert stage.state(replay_id) == Variant("completed", 200)
        assert stage.archivist.jobs == {}


@pytest.mark.matrix("ICRC77-21")
@pytest.mark.parametrize("relay", [None, 1])
def test_an_event_that_a_publisher_sends_twice_arrives_once(relay: int | None, tmp_path: Path) -> None:
    with ReplayingStage(broadcasters=2, folder=tmp_path) as stage:
        near, far = stage.principals
        stage.homes |= {READER: near, b"capable": near if relay is None else far}
        stage.orchestrator.registry.homes = stage.homes
        stage.register(publisher=b"capable", config={"icrc77:capable": boolean(True)})
        stage.publish(*(stage.event() for _ in range(10)), publisher=b"capable", broadcaster=relay or 0)
        stage.subscribe(READER)
        replay_id = stage.request()  # its publisher does not do anything by itself
        mark = pairs_of([("icrc77:replay", boolean(True)), ("icrc77:replay:id", nat(replay_id))])

        def send(*ids: int) -> list[bool]:
            items = [stage.event(it, nat(it)) | {"headers": mark} for it in ids]
            results = stage.publish(*items, publisher=b"capable", broadcaster=relay or 0)
            return [bool(it.value) for it in results]

        assert send(1, 2, 2, 5) == [True, True, False, True]
        assert send(5, 1, 6) == [False, False, True]
        stage.restart()
        stage.run(1)
        assert send(6, 4, 2) == [False, True, False]
        assert event_ids(replayed(stage.subscriber(READER))) == [1, 2, 5, 6, 4]


@pytest.mark.parametrize("given", [{"config": {"filter": text("v == 1")}}, {"start": 1 << 60, "end": 1 << 61}])
def test_a_replay_that_finds_nothing_lets_others_have_their_turn(given: dict[str, Any]) -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.log.append(*(EventDraft(NAMESPACE, nat(it), PUBLISHER, 0) for it in range(5_000)))
        stage.broadcaster.catch_up()
        stage.subscribe(READER)
        read, turns = stage.log.read, [0]
        later = stage.subnet.call_later

        def counted(*args: Any, **options: Any) -> list[EventRecord]:
            found = read(*args, **options)
            turns[-1] += len(found)
            return found

        def next_turn(seconds: float, callback: Callable[[], None]) -> Alarm:
            turns.append(0)
            return later(seconds, callback)

        stage.log.read, stage.subnet.call_later = counted, next_turn  # type: ignore[method-assign]
        replay_id = stage.request(**given)
        assert stage.state(replay_id) == Variant("completed", 0)
        assert max(turns) <= 2 * 1_024


@pytest.mark.matrix("ICRC77-55")
def test_an_event_of_a_replay_is_refused_from_others_outside_the_range_and_with_other_data() -> None:
    policy = BroadcastPolicy(notifications_a_call=2, most_unconfirmed=2, most_waiting_replayed=2)
    with ReplayingStage(policy=policy) as stage:
        stage.register()
        stage.publish_many(20)
        stage.subscribe(READER)
        stage.subscriber(READER).confirms = False
        replay_id = stage.request(start=3, end=9)
        assert stage.state(replay_id).tag == "running"
        mark = pairs_of([("icrc77:replay", boolean(True)), ("icrc77:replay:id", nat(replay_id))])

        def attempt(event_id: int, value: int, publisher: bytes) -> object:
            item = stage.event(event_id, nat(value)) | {"headers": mark}
            return stage.subnet.ask(publisher, stage.broadcaster.principal, "icrc72_publish", [item])[0]  # type: ignore[index]

        for event_id, value, publisher in (
            (4, 4, PUBLISHER),  # not the one that was chosen
            (2, 2, ARCHIVIST),  # before the range
            (9, 9, ARCHIVIST),  # its end
            (4, 5, ARCHIVIST),  # other data
            (99, 99, ARCHIVIST),
        ):
            result = attempt(event_id, value, publisher)
            assert result.tag == "Err"  # type: ignore[attr-defined]
            assert result.value.tag == "ImproperId", (event_id, publisher)  # type: ignore[attr-defined]
        assert set(event_ids(replayed(stage.subscriber(READER)))) <= set(range(3, 9))
