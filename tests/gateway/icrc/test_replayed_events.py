"""Replays at the broadcaster: what it takes from publishers, and what requesters get."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.icrc.stage import NAMESPACE, PUBLISHER, Stage
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc import Skip, candy_path
from relaycast_gateway.icrc.broadcaster import AssignedReplay, BroadcastPolicy
from relaycast_gateway.icrc.names import REPLAY, REPLAY_ID
from relaycast_gateway.icrc.variants import headers_of
from relaycast_gateway.icrc16 import boolean, nat, text

ARCHIVE = b"archivist"


def replayed(stage: Stage, replay_id: int, event_id: int) -> dict[str, Any]:
    """Return an event of the log as its archive publishes it again."""
    record = next(it for it in stage.log.read(limit=10_000) if it.event_id == event_id)
    headers = (*record.headers, (REPLAY, boolean(True)), (REPLAY_ID, nat(replay_id)))
    return stage.event(event_id, record.data, prev_id=record.prev_id, timestamp=record.occurred_ns, headers=headers)


def with_history(events: int = 10, **options: Any) -> Stage:
    """Return a stage on which alice and bob have got some events, which the archive may replay to alice."""
    stage = Stage(**options)
    stage.register()
    for name in (b"alice", b"bob"):
        stage.subscribe(name)
    stage.publish(*(stage.event(100 + number) for number in range(events)))
    stage.run(1)
    for subscriber in stage.subscribers.values():
        subscriber.calls.clear()
    return stage


def replay(**changes: Any) -> AssignedReplay:
    usual = AssignedReplay(7, NAMESPACE, subscriber=b"alice", publisher=ARCHIVE, start=102, end=108)
    return replace(usual, **changes)


@pytest.mark.matrix("ICRC77-37", "ICRC77-22", "ICRC77-17", "ICRC77-18", "ICRC77-21")
def test_only_the_requester_gets_replayed_events() -> None:
    with with_history() as stage:
        stage.broadcaster.assign_replay(replay())
        last_seq, stats = stage.log.last_seq, stage.stats()
        events = [replayed(stage, 7, number) for number in range(102, 108)]
        results = stage.publish(*events, publisher=ARCHIVE)
        alice = stage.subscribers[b"alice"]
        assert alice.event_ids == list(range(102, 108))
        assert stage.subscribers[b"bob"].messages == []
        assert stage.log.last_seq == last_seq
        assert results == [Variant("Ok", [it["id"]]) for it in alice.messages]
        assert min(it["id"] for it in alice.messages) > 20
        for sent, message in zip(events, alice.messages, strict=True):
            given = headers_of(sent["headers"])
            assert headers_of(message["headers"])[: len(given)] == given
            assert message["data"] == sent["data"]
            assert message["source"].raw == PUBLISHER
        assert stage.stats()["events"] == stats["events"]
        live = stage.publish(stage.event(200))
        assert live[0].value[0] > max(it["id"] for it in alice.messages[:6])


@pytest.mark.matrix("ICRC77-55")
def test_events_that_are_not_of_the_replay_are_refused() -> None:
    with with_history() as stage:
        stage.register("com.example.other")
        stage.broadcaster.assign_replay(replay())
        event = replayed(stage, 7, 104)

        def told(changes: dict[str, Any], publisher: bytes = ARCHIVE) -> str:
            (result,) = stage.publish({**event, **changes}, publisher=publisher)
            return str(result.value.tag) if result.tag == "Err" else "Ok"

        assert told({}, publisher=PUBLISHER) == "ImproperId"
        assert told({}, publisher=b"stranger") == "ImproperId"
        for outside in (101, 108):
            assert told({"id": outside, "data": replayed(stage, 7, outside)["data"]}) == "ImproperId"
        assert told({"data": stage.event(0, text("forged"))["data"]}) == "ImproperId"
        assert told({"namespace": "com.example.other"}) == "ImproperId"
        assert told({"headers": replayed(stage, 8, 104)["headers"]}) == "ImproperId"
        assert told({"id": 1_000}) == "ImproperId"
        assert stage.subscribers[b"alice"].messages == []
        assert told({}) == "Ok"
        stage.broadcaster.drop_replay(7)
        assert told({}) == "ImproperId"
        assert stage.subscribers[b"alice"].event_ids == [104]


def test_filter_and_skip_of_the_replay_hold() -> None:
    with with_history() as stage:
        stage.broadcaster.assign_replay(replay(start=0, end=None, skip=Skip(2, 0)))
        results = stage.publish(*(replayed(stage, 7, number) for number in range(100, 110)), publisher=ARCHIVE)
        assert stage.subscribers[b"alice"].event_ids == [101, 103, 105, 107, 109]
        assert [len(it.value) for it in results] == [0, 1] * 5
        stage.broadcaster.assign_replay(replay(start=0, filter="@ > 107", selects=candy_path("@ > 107")))
        stage.publish(*(replayed(stage, 7, number) for number in range(100, 108)), publisher=ARCHIVE)
        assert stage.subscribers[b"alice"].event_ids[5:] == []


@pytest.mark.matrix("ICRC77-42")
def test_replayed_notifications_need_confirmations_and_count() -> None:
    with with_history() as stage:
        alice = stage.subscribers[b"alice"]
        alice.confirms = False
        stage.broadcaster.assign_replay(replay())
        stage.publish(replayed(stage, 7, 103), replayed(stage, 7, 104), publisher=ARCHIVE)
        first, second = (it["id"] for it in alice.messages)
        assert sorted(it.content for it in stage.stats()["outstanding:ids"]) == [first, second]
        theirs = stage.subnet.ask(b"bob", stage.principals[0], "icrc72_confirm_messages", [first])
        assert theirs == Variant("itemized", [Variant("Err", Variant("NotFound"))])
        alice.confirm(first)
        stage.run(61)
        assert [it["id"] for it in alice.messages] == [first, second, second]
        alice.confirm(first, second)
        stage.run(61)
        assert alice.confirmations[-1].value[0].value.tag == "AlreadyConfirmed"  # type: ignore[attr-defined]
        assert stage.stats()["outstanding"] == 0
        of = next(it for it in stage.orchestrator.registry.subscriptions.values() if it.subscriber == b"alice")
        counted = dict(stage.orchestrator.statistics.of_subscription(of, of_the_subscriber=1))
        assert counted["icrc72:subscription:stats:notifications"] == nat(12)
        assert counted["icrc72:subscription:stats:confirmations"] == nat(12)


@pytest.mark.matrix("ICRC77-45")
def test_a_slow_requester_holds_its_publisher_back() -> None:
    policy = BroadcastPolicy(most_waiting_replayed=20, notifications_a_call=5, most_unconfirmed=10)
    with with_history(120, policy=policy) as stage:
        alice = stage.subscribers[b"alice"]
        alice.confirms = False
        stage.broadcaster.assign_replay(replay(start=0, end=None))
        answers: list[Any] = []
        for start in (100, 160):
            events = [replayed(stage, 7, number) for number in range(start, start + 60)]
            stage.subnet.call(ARCHIVE, stage.principals[0], "icrc72_publish", events, answers.append)
            stage.run(1)
        assert answers == []
        assert len(alice.messages) == 10
        assert stage.broadcaster.replays.most_waited(7) == 20
        live = stage.publish(stage.event(900))
        assert live[0].tag == "Ok"
        confirmed = 0
        while len(answers) < 2:
            alice.confirm(*(it["id"] for it in alice.messages[confirmed:]))
            confirmed = len(alice.messages)
            stage.run(1)
        assert stage.broadcaster.replays.most_waited(7) == 20
        alice.confirms = True
        alice.confirm(*(it["id"] for it in alice.messages[confirmed:]))
        stage.run(10)
        assert [it for it in alice.event_ids if it != 900] == list(range(100, 220))


def test_a_discarded_replay_sends_nothing_further_and_answers_its_publisher() -> None:
    policy = BroadcastPolicy(most_waiting_replayed=5, notifications_a_call=2, most_unconfirmed=4)
    with with_history(30, policy=policy) as stage:
        alice = stage.subscribers[b"alice"]
        alice.confirms = False
        stage.broadcaster.assign_replay(replay(start=0, end=None))
        answers: list[Any] = []
        events = [replayed(stage, 7, number) for number in range(100, 130)]
        stage.subnet.call(ARCHIVE, stage.principals[0], "icrc72_publish", events, answers.append)
        stage.run(1)
        assert len(alice.messages) == 4
        stage.broadcaster.drop_replay(7, discards=True)
        stage.run(1)
        assert [it.tag for it in answers[0].value] == ["Ok"] * 9 + ["Err"] * 21
        alice.confirm(*(it["id"] for it in alice.messages))
        stage.run(200)
        assert len(alice.messages) == 4
        assert alice.confirmations == [Variant("allAccepted")]
        assert stage.stats()["outstanding"] == 0


def test_what_a_replay_took_survives_a_restart(tmp_path: Path) -> None:
    with with_history(folder=tmp_path) as stage:
        stage.subnet.stop(b"alice")
        stage.broadcaster.assign_replay(replay())
        results = stage.publish(*(replayed(stage, 7, number) for number in range(102, 108)), publisher=ARCHIVE)
        stage.restart()
        stage.subnet.restart(b"alice")
        stage.run(60)
        alice = stage.subscribers[b"alice"]
        assert alice.event_ids == list(range(102, 108))
        assert [it["id"] for it in alice.messages] == [it.value[0] for it in results]
        assert dict(stage.stats()["resources"])["replays:waiting"].content == 0


def test_a_replay_and_live_events_share_a_call() -> None:
    with with_history() as stage:
        stage.broadcaster.assign_replay(replay(publisher=PUBLISHER))
        results = stage.publish(stage.event(300), replayed(stage, 7, 103), stage.event(301))
        assert [it.tag for it in results] == ["Ok"] * 3
        assert sorted(stage.subscribers[b"alice"].event_ids) == [103, 300, 301]
        assert stage.subscribers[b"bob"].event_ids == [300, 301]
