"""Delivery event by event: order, retries, circuits, dead letters, restarts."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from delivery_scene import START, Scene, accept
from relaycast_gateway.clock import SECOND, settle
from relaycast_gateway.delivery.circuit import CircuitLimits
from relaycast_gateway.delivery.limits import DeliveryLimits
from relaycast_gateway.delivery.sender import Accepted, Gone, Refused, Retryable, SendOutcome

DOWN = Retryable("HTTP 503")


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


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


@pytest.mark.matrix("CE-105")
@pytest.mark.matrix("CE-111")
def test_attempts_come_at_the_listed_times_and_then_the_message_is_given_up() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: DOWN)
        async with scene.running(scene.order(attempts=7, first_seconds=2, longest_seconds=20)) as deliveries:
            scene.log.append()
            await scene.clock.advance(1_000)
            (letter,) = deliveries.dead_letters("sub")
        assert sink.times == [0, 2, 6, 14, 30, 50, 70]  # waits of 2, 4, 8, 16, and then 20
        assert letter.reason == "given up after 7 attempts: HTTP 503"
        assert (letter.seq, letter.attempts, letter.given_up_ns) == (1, 7, (START + 70) * SECOND)

    run(main())


@pytest.mark.matrix("CE-105")
def test_attempts_with_jitter_come_no_later_than_those_without() -> None:
    async def main(seed: int) -> list[float]:
        scene = Scene(dice=Random(seed))
        sink = scene.sink(plan=lambda seq, attempt: DOWN)
        async with scene.running(scene.order(attempts=6)):
            scene.log.append()
            await scene.clock.advance(100)
        return [after - before for before, after in zip(sink.times, sink.times[1:], strict=False)]

    for seed in range(20):
        waits = asyncio.run(main(seed))
        assert all(0 <= wait <= 2**n for n, wait in enumerate(waits))
        assert len(set(waits)) == 5


@pytest.mark.matrix("CE-105")
def test_a_message_is_given_up_when_its_next_attempt_would_come_too_late() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: DOWN)
        order = scene.order(attempts=100, first_seconds=10, longest_seconds=1_000, max_age_seconds=75)
        async with scene.running(order) as deliveries:
            scene.log.append()
            await scene.clock.advance(1_000)
            (letter,) = deliveries.dead_letters("sub")
        assert sink.times == [0, 10, 30, 70]  # the next one would come at 150
        assert letter.reason == "given up: the next attempt would come more than 75 s after the first: HTTP 503"

    run(main())


@pytest.mark.matrix("CE-105")
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_restart_in_the_middle_keeps_the_schedule_and_the_count(is_killed: bool) -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: DOWN)
        order = scene.order(attempts=6, first_seconds=8)
        async with scene.killed(order) if is_killed else scene.running(order) as deliveries:
            scene.log.append()
            await scene.clock.advance(9)  # attempts at 0 and 8, the next at 24
            assert deliveries.state("sub").next_attempt_ns == (START + 24) * SECOND
        async with scene.running(order) as deliveries:
            assert (deliveries.state("sub").status, deliveries.state("sub").retries) == ("waiting", 2)
            await scene.clock.advance(1_000)
            (letter,) = deliveries.dead_letters("sub")
        assert sink.times == [0, 8, 24, 56, 120, 248]
        assert letter.attempts == 6

    run(main())


def test_a_clock_that_was_set_back_while_delivery_was_down_delays_no_retry_beyond_the_longest_wait() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: DOWN if attempt == 1 else Accepted())
        order = scene.order(first_seconds=50, longest_seconds=60)
        async with scene.killed(order):
            scene.log.append()
            await scene.clock.advance(1)
        scene.clock.set((START - 1_000_000) * SECOND)
        async with scene.running(order):
            await scene.clock.advance(60)
            assert sink.acknowledged == [1]

    run(main())


def test_a_clock_that_is_set_back_or_forth_moves_no_retry_that_was_planned() -> None:
    async def main(step: int) -> list[int]:
        scene = Scene()
        passed: list[int] = []
        elapsed = 0

        def plan(seq: int, attempt: int) -> SendOutcome:
            passed.append(elapsed)
            return DOWN

        scene.sink(plan=plan)
        async with scene.running(scene.order(attempts=4, first_seconds=4)):
            scene.log.append()
            for elapsed in range(1, 40):
                await scene.clock.advance(1)
                if elapsed == 2:
                    scene.clock.set(scene.clock.now_ns() + step * SECOND)
        return passed

    assert asyncio.run(main(-100_000)) == asyncio.run(main(0)) == asyncio.run(main(50_000))


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


def test_a_smaller_window_takes_effect_when_an_order_is_replaced() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: DOWN if attempt == 1 else Accepted())
        async with scene.running(scene.order(window=4, first_seconds=5)) as deliveries:
            scene.log.append(8)
            await scene.clock.advance(1)
            assert sorted(sink.seqs) == [1, 2, 3, 4]
            deliveries.replace(scene.order(window=1, first_seconds=5))
            await scene.clock.advance(100)
        assert sink.seqs[4:] == [1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8]

    run(main())


def test_a_dead_sink_is_probed_and_flows_again_once_it_answers() -> None:
    async def main() -> None:
        limits = DeliveryLimits(circuit=CircuitLimits(failures=4, first_seconds=100, longest_seconds=400))
        scene = Scene(limits=limits)
        is_up = False
        sink = scene.sink(plan=lambda seq, attempt: Accepted() if is_up else DOWN)
        order = scene.order(window=4, attempts=50, first_seconds=1, longest_seconds=1)
        async with scene.running(order) as deliveries:
            scene.log.append(10)
            await scene.clock.advance(99)
            assert sink.times == [0, 0, 0, 0]
            assert deliveries.state("sub").status == "broken"
            await scene.clock.advance(601)
            assert sink.times[4:] == [100, 300, 700]
            is_up = True
            await scene.clock.advance(399)
            assert not sink.acknowledged
            await scene.clock.advance(2)
            assert sorted(sink.acknowledged) == list(range(1, 11))
            assert deliveries.state("sub").status == "active"

    run(main())


@pytest.mark.matrix("CE-61")
@pytest.mark.matrix("CE-111")
def test_a_peer_that_names_a_time_gets_nothing_before_it() -> None:
    async def main() -> None:
        scene = Scene()
        busy = Retryable("HTTP 429", 33.0)
        sink = scene.sink(plan=lambda seq, attempt: busy if seq == 1 and attempt == 1 else Accepted())
        async with scene.running(scene.order(window=2)):
            scene.log.append(4)
            await scene.clock.advance(50)
        assert sink.attempts == [(0, 1), (0, 2), (33, 1), (33, 3), (33, 4)]

    run(main())


@pytest.mark.matrix("CE-111")
def test_a_time_too_far_off_is_capped() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: Retryable("HTTP 503", 1e12) if attempt < 3 else Accepted())
        async with scene.running(scene.order(longest_seconds=60)):
            scene.log.append()
            await scene.clock.advance(200)
        assert sink.times == [0, 60, 120]

    run(main())


@pytest.mark.matrix("CE-61")
def test_no_answer_in_time_is_a_failure_that_is_tried_again() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: None if attempt == 1 else Accepted())
        async with scene.running(scene.order(timeout_seconds=7)) as deliveries:
            scene.log.append()
            await scene.clock.advance(7.5)
            assert deliveries.state("sub").last_error == "no answer within 7 s"
            assert sink.at_once == 0
            await scene.clock.advance(1)
        assert sink.times == [0, 8]
        assert sink.acknowledged == [1]

    run(main())


@pytest.mark.matrix("CE-61")
def test_a_sink_that_is_gone_stops_its_subscription_until_it_is_replaced() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: Gone("HTTP 410") if seq == 3 else Accepted())
        async with scene.running(scene.order()) as deliveries:
            scene.log.append(5)
            await scene.clock.advance(10)
            state = deliveries.state("sub")
            assert (state.status, state.last_error, state.dead) == ("stopped", "HTTP 410", 0)
            scene.log.append(5)
            await scene.clock.advance(1_000)
            assert sink.seqs == [1, 2, 3]
        async with scene.running(scene.order()) as deliveries:  # a restart does not forget it
            await scene.clock.advance(1_000)
            assert sink.seqs == [1, 2, 3]
            deliveries.replace(scene.order(sink="new"))
            await scene.clock.advance(1)
            assert deliveries.state("sub").status == "active"
        assert scene.sink("new").seqs == [3, 4, 5, 6, 7, 8, 9, 10]

    run(main())


def test_retries_of_a_subscription_that_stopped_are_made_once_it_is_replaced_after_a_restart() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink(plan=lambda seq, attempt: DOWN if seq == 1 else Gone("HTTP 410"))
        async with scene.running(scene.order(window=2)):
            scene.log.append(2)
            await scene.clock.advance(0.5)
        async with scene.running(scene.order(window=2)) as deliveries:
            await scene.clock.advance(100)
            deliveries.replace(scene.order(sink="new", window=2))
            await scene.clock.advance(1)
        assert scene.sink("new").seqs == [1, 2]

    run(main())


@pytest.mark.matrix("CE-96")
def test_attempts_in_flight_end_under_the_old_order_and_the_next_use_the_new_one() -> None:
    async def main() -> None:
        scene = Scene()
        old = scene.sink("old")
        old.answer_seconds = 5
        async with scene.running(scene.order(sink="old", prefix="old")) as deliveries:
            scene.log.append(3)
            await scene.clock.advance(1)
            deliveries.replace(scene.order(sink="new", prefix="new", selects=lambda it: it.seq != 2))
            await scene.clock.advance(1)
            assert old.closed == 0  # still in use
            assert scene.sink("new").attempts == []
            await scene.clock.advance(5)
            assert old.closed == 1
        assert (old.bodies, old.acknowledged) == ([b"old 1"], [1])
        assert scene.sink("new").bodies == [b"new 3"]

    run(main())


@pytest.mark.matrix("CE-96")
def test_what_failed_under_the_old_order_is_tried_again_under_the_new_one() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink("old", lambda seq, attempt: DOWN)
        async with scene.running(scene.order(sink="old", first_seconds=30)) as deliveries:
            scene.log.append(2)
            await scene.clock.advance(1)
            deliveries.replace(scene.order(sink="new", prefix="new"))
            await scene.clock.advance(100)
        assert scene.sink("new").attempts == [(30, 1), (30, 2)]

    run(main())


def test_an_old_sink_that_says_it_is_gone_does_not_stop_the_new_one() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink("old", lambda seq, attempt: Gone("HTTP 410")).answer_seconds = 5
        async with scene.running(scene.order(sink="old")) as deliveries:
            scene.log.append()
            await scene.clock.advance(1)
            deliveries.replace(scene.order(sink="new"))
            await scene.clock.advance(10)
            assert deliveries.state("sub").status == "active"
        assert scene.sink("new").acknowledged == [1]

    run(main())


@pytest.mark.matrix("CE-98")
def test_no_attempt_starts_after_a_subscription_was_removed() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: DOWN if seq == 1 else Accepted())
        async with scene.running(scene.order(window=2, first_seconds=5)) as deliveries:
            scene.log.append(2)
            await scene.clock.advance(1)
            scene.log.append(5)
            deliveries.remove("sub")  # with an attempt created and not begun, and a retry planned
            count = len(sink.attempts)
            await settle()
            await scene.clock.advance(1_000)
            assert len(sink.attempts) == count
            assert sink.closed == 1
            with pytest.raises(KeyError):
                deliveries.state("sub")
        assert scene.store.ids() == []
        assert scene.store.load("sub") is None

    run(main())


@pytest.mark.matrix("CE-98")
def test_an_attempt_created_but_not_begun_is_not_begun_after_the_removal() -> None:
    async def main() -> None:
        scene = Scene()
        async with scene.running(scene.order()) as deliveries:
            scene.log.append()
            for _ in range(50):
                await asyncio.sleep(0)
                if deliveries.gauges.in_flight:
                    break
            assert scene.sink().attempts == []
            deliveries.remove("sub")
            await scene.clock.advance(10)
            assert scene.sink().attempts == []
            assert deliveries.gauges.in_flight == 0

    run(main())


@pytest.mark.matrix("CE-111")
@pytest.mark.matrix("X-03")
def test_dead_letters_are_listed_in_pages_and_redelivered_byte_for_byte() -> None:
    async def main() -> None:
        scene = Scene()
        is_broken = True
        sink = scene.sink(plan=lambda seq, attempt: Refused("HTTP 404") if is_broken and seq % 2 else Accepted())
        async with scene.running(scene.order(prefix="body")) as deliveries:
            scene.log.append(10)
            await scene.clock.advance(1)
            assert deliveries.state("sub").dead == 5
            pages = [deliveries.dead_letters("sub", after=after, limit=2) for after in (0, 3, 7, 9)]
            assert [[letter.seq for letter in page] for page in pages] == [[1, 3], [5, 7], [9], []]
            is_broken = False
            assert deliveries.redeliver("sub", [3, 4, 99]) == 1
            await scene.clock.advance(1)
            assert [letter.seq for letter in deliveries.dead_letters("sub")] == [1, 5, 7, 9]
            assert deliveries.redeliver("sub") == 4
            await scene.clock.advance(1)
            state = deliveries.state("sub")
            assert (state.dead, state.pending, state.delivered) == (0, 0, 10)
        assert sink.seqs == [*range(1, 11), 3, 1, 5, 7, 9]
        assert sink.bodies[0] == sink.bodies[11] == b"body 1"

    run(main())


def test_a_redelivery_survives_a_kill_and_counts_attempts_from_one() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink(plan=lambda seq, attempt: Refused("HTTP 404"))
        async with scene.killed(scene.order()) as deliveries:
            scene.log.append(3)
            await scene.clock.advance(1)
            scene.sink().plan = lambda seq, attempt: None
            assert deliveries.redeliver("sub") == 3
        scene.sink().plan = lambda seq, attempt: DOWN
        scene.sink().attempts.clear()
        async with scene.running(scene.order(attempts=2)) as deliveries:
            await scene.clock.advance(100)
            assert [letter.attempts for letter in deliveries.dead_letters("sub")] == [2, 2, 2]
        assert scene.sink().seqs == [1, 1, 2, 2, 3, 3]

    run(main())


def test_a_dead_letter_whose_event_retention_dropped_stays_one() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink(plan=lambda seq, attempt: Refused("HTTP 404"))
        async with scene.running(scene.order()) as deliveries:
            scene.log.append(4)
            await scene.clock.advance(1)
            scene.log.purge(before=3)
            assert deliveries.redeliver("sub", [1, 2]) == 0
            assert len(deliveries.dead_letters("sub")) == 4

    run(main())


def test_history_older_than_retention_is_counted_as_skipped() -> None:
    async def main() -> None:
        scene = Scene()
        scene.log.append(100)
        scene.log.purge(before=41)
        async with scene.running(scene.order(), after=10) as deliveries:
            await scene.clock.advance(1)
            state = deliveries.state("sub")
        assert scene.sink().seqs == list(range(41, 101))
        assert (state.skipped, state.cursor) == (30, 100)

    run(main())


def test_retention_that_overtakes_a_slow_sink_is_counted() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink().answer_seconds = 1
        async with scene.running(scene.order()) as deliveries:
            scene.log.append(6_000)
            await scene.clock.advance(10.5)
            scene.log.purge(before=5_900)
            await scene.clock.advance(200)
            state = deliveries.state("sub")
        delivered = scene.sink().acknowledged
        assert delivered[-1] == 6_000
        assert delivered == sorted(delivered)
        assert state.skipped + len(delivered) == 6_000
        assert state.skipped > 4_000

    run(main())


def test_a_retry_whose_event_retention_dropped_becomes_a_dead_letter() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink(plan=lambda seq, attempt: DOWN)
        async with scene.killed(scene.order(first_seconds=50)):
            scene.log.append(1)
            await scene.clock.advance(1)
        scene.log.append(5)
        scene.log.purge(before=4)
        scene.sink().plan = accept
        async with scene.running(scene.order()) as deliveries:
            await scene.clock.advance(100)
            (letter,) = deliveries.dead_letters("sub")
            assert (letter.seq, letter.reason) == (1, "the log no longer holds the event")
        assert scene.sink().acknowledged == [4, 5, 6]

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


def test_a_protocol_without_its_library_is_tried_again_with_the_reason() -> None:
    async def main() -> None:
        scene = Scene()
        order = scene.order(sink="sink")
        deliveries = scene.deliveries()

        def no_library(target: object) -> Any:
            raise ValueError("KAFKA needs relaycast[kafka]")

        deliveries._senders._sender_of = no_library
        deliveries.add(order, 0)
        await deliveries.start()
        scene.log.append()
        await scene.clock.advance(0.5)
        state = deliveries.state("sub")
        assert (state.status, state.last_error) == ("waiting", "KAFKA needs relaycast[kafka]")
        await deliveries.stop()

    run(main())


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
