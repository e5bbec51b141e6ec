"""Delivery event by event: order, retries, circuits, dead letters, restarts."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from delivery_scene import DOWN, Scene, TwinLog, accept, run
from relaycast_gateway.delivery.sender import Accepted, Refused, SendOutcome
from relaycast_gateway.log import UnusableLog
from relaycast_gateway.record import EventRecord


@pytest.mark.matrix("CE-23")
def test_every_selected_event_reaches_its_sink_in_order() -> None:
    async def main() -> None:
        scene = Scene()
        scene.log.append(100)
        async with scene.running(scene.order(selects=lambda it: it.seq % 3 == 0)) as deliveries:
            await scene.clock.advance(1)
            scene.log.append(100)
            await scene.clock.advance(1)
            state = deliveries.state("sub")
        assert scene.sink().seqs == [seq for seq in range(1, 201) if seq % 3 == 0]
        assert (state.delivered, state.cursor, state.pending, state.status) == (66, 200, 0, "active")

    run(main())


@pytest.mark.matrix("CE-106")
def test_at_a_window_of_one_nothing_overtakes_an_event_that_fails() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: DOWN if seq == 2 and attempt < 4 else Accepted())
        async with scene.running(scene.order()):
            scene.log.append(4)
            await scene.clock.advance(100)
        assert sink.seqs == [1, 2, 2, 2, 2, 3, 4]
        assert sink.most_at_once == 1

    run(main())


@pytest.mark.matrix("CE-106")
def test_at_a_window_of_one_an_event_that_becomes_a_dead_letter_lets_the_next_go() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: Refused("HTTP 415") if seq == 2 else Accepted())
        async with scene.running(scene.order()) as deliveries:
            scene.log.append(4)
            await scene.clock.advance(1)
            (letter,) = deliveries.dead_letters("sub")
        assert sink.seqs == [1, 2, 3, 4]
        assert (letter.seq, letter.reason, letter.attempts) == (2, "HTTP 415", 1)

    run(main())


@pytest.mark.matrix("CE-106")
def test_a_window_of_n_starts_in_order_and_never_has_more_than_n_unfinished() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: DOWN if seq == 2 and attempt < 3 else Accepted())
        sink.answer_seconds = 0.5
        async with scene.running(scene.order(window=3, first_seconds=4)) as deliveries:
            scene.log.append(20)
            await scene.clock.advance(0.6)
            assert deliveries.state("sub").pending == 3
            await scene.clock.advance(100)
        first = list(dict.fromkeys(sink.seqs))
        assert first == list(range(1, 21))
        assert sink.most_at_once == 3
        assert sink.acknowledged[:2] == [1, 3]
        assert sorted(sink.acknowledged) == first

    run(main())


def test_a_subscription_may_begin_ahead_of_the_log() -> None:
    async def main() -> None:
        scene = Scene()
        async with scene.running(scene.order(), after=7) as deliveries:
            scene.log.append(5)
            await scene.clock.advance(1)
            assert scene.sink().seqs == []
            scene.log.append(5)
            await scene.clock.advance(1)
            assert deliveries.state("sub").cursor == 10
        assert scene.sink().seqs == [8, 9, 10]

    run(main())


def test_what_breaks_one_event_stops_no_other() -> None:
    async def main() -> None:
        scene = Scene()

        def selects(record: Any) -> bool:
            return bool(1 // (record.seq - 2)) or True

        def plan(seq: int, attempt: int) -> SendOutcome:
            if seq == 4 and attempt == 1:
                raise RuntimeError("a password")
            return Accepted()

        scene.sink(plan=plan)
        order = scene.order(selects=selects)
        broken = order.encode

        def encode(record: Any) -> Any:
            if record.seq == 3:
                raise UnicodeError
            return broken(record)

        object.__setattr__(order, "encode", encode)
        async with scene.running(order) as deliveries:
            scene.log.append(4)
            await scene.clock.advance(0.5)
            assert deliveries.state("sub").last_error == "the sender failed: RuntimeError"
            await scene.clock.advance(10)
            reasons = [(letter.seq, letter.reason) for letter in deliveries.dead_letters("sub")]
        assert reasons == [
            (2, "the filter failed: ZeroDivisionError"),
            (3, "the event cannot be encoded: UnicodeError"),
        ]
        assert scene.sink().acknowledged == [1, 4]

    run(main())


class FailingLog(TwinLog):
    """A log that cannot be read while ``fails`` is set."""

    fails = False

    def read(self, after: int = 0, *, limit: int = 1_000) -> Sequence[EventRecord]:
        if self.fails:
            raise UnusableLog("events.sqlite", "disk I/O error", "a file that can be read")
        return super().read(after, limit=limit)


def test_a_log_that_cannot_be_read_for_a_while_holds_deliveries_up_and_ends_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        scene = Scene()
        scene.log = log = FailingLog()
        log.append(5)
        log.fails = True
        async with scene.running(scene.order("behind"), after=2) as deliveries:
            deliveries.add(scene.order("new", sink="other"), 5)
            log.append(2)
            await scene.clock.advance(3.5)
            assert scene.sink().seqs == scene.sink("other").seqs == []
            log.fails = False
            await scene.clock.advance(2)
        assert scene.sink().acknowledged == [3, 4, 5, 6, 7]
        assert scene.sink("other").acknowledged == [6, 7]

    run(main())
    assert {it.getMessage() for it in caplog.records} == {
        "cannot read events, next try in 1 s: events.sqlite: got disk I/O error, expected a file that can be read"
    }
    caplog.clear()


def test_stopping_lets_attempts_end_and_breaks_off_the_rest() -> None:
    async def main() -> None:
        scene = Scene()
        quick, stuck = scene.sink("quick"), scene.sink("stuck", lambda seq, attempt: None)
        quick.answer_seconds = 2
        deliveries = scene.deliveries()
        deliveries.add(scene.order("a", sink="quick"), 0)
        deliveries.add(scene.order("b", sink="stuck", timeout_seconds=1_000), 0)
        await deliveries.start()
        scene.log.append(3)
        await scene.clock.advance(1)
        stopping = asyncio.create_task(deliveries.stop(grace_seconds=5))
        await scene.clock.advance(4)
        assert quick.acknowledged == [1]
        assert not stopping.done()
        await scene.clock.advance(2)
        await stopping
        assert (quick.seqs, stuck.seqs, quick.closed, stuck.closed) == ([1], [1], 1, 1)
        stuck.plan = accept
        async with scene.running(scene.order("a", sink="quick"), scene.order("b", sink="stuck")):
            await scene.clock.advance(10)
        assert (quick.seqs, stuck.seqs) == ([1, 2, 3], [1, 1, 2, 3])

    run(main())
