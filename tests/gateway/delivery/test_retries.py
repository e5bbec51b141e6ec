"""When a message is tried again: the schedule, what a peer asks for, restarts, clocks that are set, circuits."""

import asyncio
from random import Random
from typing import Any

import pytest

from delivery_scene import DOWN, START, Scene, run
from relaycast_gateway.clock import SECOND
from relaycast_gateway.delivery.circuit import CircuitLimits
from relaycast_gateway.delivery.limits import DeliveryLimits
from relaycast_gateway.delivery.sender import Accepted, Retryable, SendOutcome

WEEK = 7 * 86_400


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
def test_a_time_too_far_off_is_capped_at_seven_days() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: Retryable("HTTP 503", 1e12) if attempt < 2 else Accepted())
        async with scene.running(scene.order(longest_seconds=60)):
            scene.log.append(2)
            await scene.clock.advance(WEEK - 1)
            assert sink.attempts == [(0, 1)]
            await scene.clock.advance(2)
        assert sink.attempts == [(0, 1), (WEEK, 1), (WEEK, 2)]

    run(main())


@pytest.mark.matrix("CE-111")
@pytest.mark.parametrize("days", [0.5, 3])
def test_a_peer_s_time_is_kept_over_a_restart_and_beyond_the_greatest_age(days: float) -> None:
    async def main() -> None:
        scene = Scene()
        seconds = days * 86_400
        busy = Retryable("HTTP 429", seconds)
        sink = scene.sink(plan=lambda seq, attempt: busy if seq == 1 and attempt == 1 else Accepted())
        order = scene.order(window=2)
        async with scene.killed(order):
            scene.log.append(1)
            await scene.clock.advance(1)
        scene.log.append(3)
        async with scene.running(order):
            await scene.clock.advance(seconds - 2)
            assert sink.attempts == [(0, 1)]
            await scene.clock.advance(2)
            assert sink.attempts == [(0, 1), *((seconds, seq) for seq in (1, 2, 3, 4))]

    run(main())


@pytest.mark.matrix("CE-111")
def test_a_peer_that_always_names_a_later_time_gets_no_event_beyond_the_greatest_age_again() -> None:
    async def main() -> None:
        scene = Scene()
        sink = scene.sink(plan=lambda seq, attempt: Retryable("HTTP 429", 100_000))
        async with scene.running(scene.order()) as deliveries:
            scene.log.append(1)
            await scene.clock.advance(400_000)
            (letter,) = deliveries.dead_letters("sub")
            assert letter.reason == "given up: the next attempt would come more than 86400 s after the first: HTTP 429"
        assert sink.times == [0, 100_000]

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
