"""What is published once is published once: repeated calls, restarts, and a process that is killed."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.icrc.stage import NAMESPACE, PUBLISHER, Stage
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.store import IcrcStore, Notes
from relaycast_gateway.icrc16 import Icrc16, array, blob, nat, text
from relaycast_gateway.log import Retention


@pytest.mark.matrix("ICRC72-79")
def test_the_same_event_again_is_taken_and_not_sent_again() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        event = stage.event(5)
        assert stage.publish(event) == [Variant("Ok", [1])]
        assert stage.publish(event, stage.event(6), stage.event(6)) == [
            Variant("Ok", []),
            Variant("Ok", [2]),
            Variant("Ok", []),
        ]
        (other,) = stage.publish(stage.event(5, text("other")))
        assert other == Variant("Err", Variant("ImproperId", f"{NAMESPACE} has another event with the id 5"))
        assert stage.log.last_seq == 2
        stage.run(100)
        assert stage.subscribers[b"alice"].event_ids == [5, 6]


@pytest.mark.matrix("ICRC72-79")
def test_an_id_belongs_to_its_source() -> None:
    allowed = {"icrc72:publication:publishers:allowed:list": _principals(PUBLISHER, b"other")}
    with Stage(broadcasters=2) as stage:
        stage.register(config=allowed)
        stage.register(publisher=b"other")
        assert stage.publish(stage.event(5))[0].tag == "Ok"
        (refused,) = stage.publish(stage.event(5), publisher=b"other")
        assert refused.value.tag == "ImproperId"
        assert stage.publish(stage.event(5), broadcaster=1) == [Variant("Ok", [])]


@pytest.mark.matrix("ICRC72-79")
def test_ids_are_known_after_a_restart_and_after_the_log_dropped_them(tmp_path: Path) -> None:
    with Stage(folder=tmp_path, retention=Retention(count=2)) as stage:
        stage.register()
        stage.subscribe(b"alice")
        event, large = stage.event(1), stage.event(1 << 80)
        stage.publish(event, large)
        stage.restart()
        assert stage.publish(event, large, stage.event(1, text("other"))) == [
            Variant("Ok", []),
            Variant("Ok", []),
            Variant("Err", Variant("ImproperId", f"{NAMESPACE} has another event with the id 1")),
        ]
        stage.run(100)
        assert stage.subscribers[b"alice"].event_ids == [1, 1 << 80]
        stage.publish(stage.event(7), stage.event(8))
        assert stage.log.history_start == 3
        assert stage.publish(event, large) == [Variant("Ok", [])] * 2
        assert stage.publish(stage.event(1, text("other")))[0].tag == "Err"


def test_a_restart_sends_what_was_not_confirmed_with_the_same_ids(tmp_path: Path) -> None:
    with Stage(folder=tmp_path) as stage:
        stage.register()
        for name in (b"alice", b"bob"):
            stage.subscribe(name)
        alice, bob = (stage.subscribers[name] for name in (b"alice", b"bob"))
        alice.confirms = False
        stage.subnet.stop(b"bob")
        results = stage.publish(*(stage.event() for _ in range(5)))
        alice.confirm(*[alice.messages[at]["id"] for at in (0, 3)])
        stage.run()
        stage.restart()
        stage.subnet.restart(b"bob")
        stage.run(1)
        assert alice.event_ids == [1, 2, 3, 4, 5, 2, 3, 5]
        assert bob.event_ids == [1, 2, 3, 4, 5]
        ids = {(it["eventId"], it["id"]) for it in alice.messages}
        assert sorted([*ids, *((it["eventId"], it["id"]) for it in bob.messages)]) == sorted(
            (number, it) for number, result in enumerate(results, 1) for it in result.value
        )
        assert stage.publish(stage.event()) == [Variant("Ok", [11, 12])]
        assert stage.stats()["outstanding"] == 4


def test_a_confirmation_of_what_the_last_run_sent_is_taken(tmp_path: Path) -> None:
    with Stage(folder=tmp_path) as stage:
        stage.register()
        subscription = stage.subscribe(b"alice")
        alice = stage.subscribers[b"alice"]
        alice.confirms = False
        stage.publish(stage.event(), stage.event())
        first, second = (it["id"] for it in alice.messages)
        stage.run(1)
        stage.subnet.stop(b"alice")
        stage.restart()
        assert stage.subnet.ask(b"alice", stage.principals[0], "icrc72_confirm_messages", [first]) == Variant(
            "allAccepted"
        )
        stage.subnet.restart(b"alice")
        stage.run(30)
        assert [it["id"] for it in alice.messages] == [first, second, second]
        it = stage.orchestrator.registry.subscriptions[subscription]
        counted = dict(stage.orchestrator.statistics.of_subscription(it, of_the_subscriber=1))
        assert counted["icrc72:subscription:stats:notifications"] == nat(2)
        assert counted["icrc72:subscription:stats:confirmations"] == nat(1)


def test_what_came_into_the_log_while_the_broadcaster_was_away_is_sent(tmp_path: Path) -> None:
    """A process that ended between the log and the store: the log has events that no broadcaster has seen."""
    with Stage(folder=tmp_path) as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.publish(stage.event(50))
        behind = stage.event(60)
        stage.broadcaster.close()
        stage.subnet.call(PUBLISHER, stage.principals[0], "icrc72_publish", [behind])
        stage.run()
        assert stage.log.last_seq == 2
        assert stage.subscribers[b"alice"].event_ids == [50]
        stage.restart()
        assert stage.publish(behind) == [Variant("Ok", [])]
        stage.run(1)
        assert stage.subscribers[b"alice"].event_ids == [50, 60]


@pytest.mark.matrix("ICRC72-79")
def test_a_killed_process_lost_nothing_that_it_answered_and_sends_nothing_twice(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("publishing_process.py")), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert child.stdout is not None
    answered = [child.stdout.readline() for _ in range(30)]
    child.send_signal(signal.SIGKILL)
    answered += child.stdout.read().splitlines()
    child.wait()
    child.stdout.close()
    newest = max(int(line) for line in answered if line.strip().isdigit())
    with Stage(folder=tmp_path) as stage:
        stage.subscriber(b"alice")
        again = [stage.event(number, nat(number), timestamp=1) for number in range(1, newest + 1)]
        results = stage.publish(*again)
        assert results == [Variant("Ok", [])] * newest
        stage.run(5)
        got = stage.subscribers[b"alice"].messages
        assert [it["eventId"] for it in got] == list(range(1, stage.log.last_seq + 1))
        ids = [it["id"] for it in got]
        assert ids == sorted(set(ids))


def test_a_disk_that_refuses_delays_and_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Stage(folder=tmp_path) as stage:
        stage.register()
        stage.subscribe(b"alice")
        write, failures = IcrcStore._write, iter(range(3))

        def failing(store: IcrcStore, noted: Notes) -> None:
            if next(failures, None) is not None:
                raise sqlite3.OperationalError("disk is full")
            write(store, noted)

        monkeypatch.setattr(IcrcStore, "_write", failing)
        answers: list[Any] = []
        stage.subnet.call(PUBLISHER, stage.principals[0], "icrc72_publish", [stage.event()], answers.append)
        stage.run(0.5)
        assert stage.log.last_seq == 1
        assert answers == stage.subscribers[b"alice"].messages == []
        stage.run(5)
        assert answers[0].value == [Variant("Ok", [1])]
        assert stage.subscribers[b"alice"].event_ids == [1]


def test_an_event_that_the_log_refuses_can_be_published_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        event = stage.event()
        write = stage.log._table.write

        def failing(*_: Any) -> None:
            raise OSError("disk is full")

        monkeypatch.setattr(stage.log._table, "write", failing)
        (refused, same) = stage.publish(event, event)
        assert refused == same
        assert refused.value.value["message"] == "disk is full"
        monkeypatch.setattr(stage.log._table, "write", write)
        assert stage.publish(event) == [Variant("Ok", [1])]
        assert stage.subscribers[b"alice"].event_ids == [1]


def test_nothing_stays_in_the_store_of_what_is_finished() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.subscribe(b"bob", skip=(2, 0))
        stage.publish(*(stage.event() for _ in range(10)))
        stage.run(1)
        assert len({key for table, key, _ in stage.store.dump() if table.endswith(":audiences")}) == 0
        stage.subnet.stop(b"bob")
        stage.publish(*(stage.event() for _ in range(10)))
        stage.run(1)
        assert len({key for table, key, _ in stage.store.dump() if table.endswith(":audiences")}) == 5


def _principals(*raw: bytes) -> Icrc16:
    return array(*map(blob, raw))
