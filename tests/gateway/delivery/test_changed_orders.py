"""Orders that are replaced or removed while messages are under way, and sinks that are gone."""

import asyncio

import pytest

from delivery_scene import DOWN, Scene, run
from relaycast_gateway.clock import settle
from relaycast_gateway.delivery.sender import Accepted, Gone, Retryable


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


@pytest.mark.parametrize("is_in_flight", [False, True])
def test_a_new_sink_need_not_wait_as_long_as_the_old_one_asked(*, is_in_flight: bool) -> None:
    async def main() -> None:
        scene = Scene()
        old = scene.sink(plan=lambda seq, attempt: Retryable("HTTP 503", 86_400.0))
        old.answer_seconds = 5
        async with scene.running(scene.order()) as deliveries:
            scene.log.append(2)
            await scene.clock.advance(1 if is_in_flight else 10)
            deliveries.replace(scene.order(sink="new"))
            await scene.clock.advance(10)
            assert deliveries.state("sub").status == "active"
        assert (old.seqs, scene.sink("new").seqs) == ([1], [1, 2])

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
