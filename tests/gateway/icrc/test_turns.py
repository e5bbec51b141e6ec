"""Others have their turns while a broadcaster reads a long log, also while the disk writes what it noted."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event, get_ident

import pytest

from gateway.icrc.http_stage import principal
from gateway.icrc.stage import NAMESPACE, PUBLISHER, Stage
from relaycast_gateway.clock import SystemClock
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.icrc.broadcaster.broadcaster import EVENTS_A_TURN
from relaycast_gateway.icrc.store import IcrcStore, Notes
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.icrc_face import BROADCASTER, ORCHESTRATOR, GatewayCanisters, IcrcSettings
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventDraft

ALICE = principal("alice")


def drafts(count: int) -> list[EventDraft]:
    return [EventDraft(NAMESPACE, nat(number), ALICE, number) for number in range(count)]


async def turns_until(done: Callable[[], bool]) -> int:
    """Return how many turns of the loop another task gets until something is done."""
    turns = 0
    async with asyncio.timeout(300):
        while not done():
            await asyncio.sleep(0)
            turns += 1
    return turns


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("events", [3_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_others_have_their_turns_while_events_are_caught_up(tmp_path: Path, events: int, kept: bool) -> None:
    async def run(log: EventLog) -> None:
        file = tmp_path / "icrc" if kept else None
        canisters = GatewayCanisters.open(file, log, SinkGuard(()), SystemClock(), IcrcSettings())
        wire, broadcaster = canisters.wire, canisters.broadcaster
        canisters.start()
        registration: dict[str, object] = {
            "namespace": NAMESPACE,
            "config": [],
            "filter": None,
            "skip": None,
            "stopped": None,
            "memo": None,
        }
        wire.received(ALICE, ORCHESTRATOR, "icrc72_register_publication", [registration])
        wire.received(ALICE, ORCHESTRATOR, "icrc72_register_subscription", [registration])
        for at in range(0, events, 1_000):
            log.append(*drafts(min(1_000, events - at)))  # blocks the loop: nothing is read meanwhile
        event: dict[str, object] = dict.fromkeys(("prev_id", "prevId", "source", "headers"))
        published = wire.received(
            ALICE,
            BROADCASTER,
            "icrc72_publish",
            [event | {"id": 1 << 70, "timestamp": 1, "namespace": NAMESPACE, "data": ("Nat", 1)}],
        )
        answers: list[object] = []
        published.then(answers.append)  # type: ignore[attr-defined]
        turns = await turns_until(lambda: bool(answers))
        assert turns >= events / EVENTS_A_TURN
        assert answers[0] == [("Ok", [events + 1])]  # behind the notifications of all events before it
        assert broadcaster.events == events + 1
        await canisters.stop()
        canisters.close()

    with EventLog.open() as log:
        asyncio.run(run(log))


def test_the_disk_is_written_in_another_thread_and_nothing_is_sent_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, threads, gate = IcrcStore._write, set[int](), Event()

    def slow(store: IcrcStore, noted: Notes) -> None:
        if get_ident() != loop_thread:
            threads.add(get_ident())
            gate.wait(60)
        whole(store, noted)

    loop_thread = get_ident()

    async def run(log: EventLog) -> None:
        canisters = GatewayCanisters.open(tmp_path / "icrc", log, SinkGuard(()), SystemClock(), IcrcSettings())
        canisters.start()
        registration: dict[str, object] = {"namespace": NAMESPACE, "config": [], "memo": None}
        canisters.wire.received(ALICE, ORCHESTRATOR, "icrc72_register_publication", [registration])
        with monkeypatch.context() as patch:
            patch.setattr(IcrcStore, "_write", slow)
            log.append(*drafts(3))
            await turns_until(lambda: bool(threads))
            turns = 0
            while turns < 1_000:  # the disk is busy, the loop is not
                await asyncio.sleep(0)
                turns += 1
            assert canisters.broadcaster.events == 3
            gate.set()
            await canisters.stop()
        canisters.close()

    with EventLog.open() as log:
        asyncio.run(run(log))
    assert loop_thread not in threads


def test_a_stopped_subscription_leaves_its_backlog_out_in_turns() -> None:
    with Stage() as stage:
        stage.register()
        number = stage.subscribe(b"alice")
        stage.subnet.stop(b"alice")
        for _ in range(5):
            stage.publish(*(stage.event() for _ in range(1_000)), publisher=PUBLISHER)
        source = stage.broadcaster._lanes[number][1]
        stage.update(b"alice", number, newStopped=True)
        assert not source.is_open()
        assert source._is_behind  # the rest has its turn later
        stage.run(120)
        assert len(stage.broadcaster._audiences) == 0
        stage.subnet.restart(b"alice")
        stage.update(b"alice", number, newStopped=False)
        stage.publish(stage.event())
        stage.run(120)
        assert stage.subscribers[b"alice"].event_ids == [5_001]


def test_an_event_that_cannot_be_decoded_stops_no_event_after_it(tmp_path: Path) -> None:
    with Stage(folder=tmp_path) as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.log.append(*(draft._replace(source=PUBLISHER) for draft in drafts(300)))
        with closing(sqlite3.connect(tmp_path / "log")) as database, database:
            database.execute("UPDATE events SET body = x'c1' WHERE seq IN (1, 2, 200, 300)")
        stage.broadcaster.catch_up()
        stage.run(5)
        assert stage.subscribers[b"alice"].event_ids == [it for it in range(1, 301) if it not in {1, 2, 200, 300}]
        assert stage.stats()["errors"] == 4
        stage.publish(stage.event(400))
        assert stage.subscribers[b"alice"].event_ids[-1] == 400
