"""Events that were given up or that retention dropped: listed, counted, delivered again."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from delivery_scene import DOWN, Scene, accept, run
from relaycast_gateway.clock import VirtualClock, settle
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.saver import GroupSaver
from relaycast_gateway.delivery.sender import Accepted, Refused
from relaycast_gateway.delivery.store import DeliveryStore, SavedSubscription, SaveGroup


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


def test_the_number_of_dead_letters_is_that_of_those_kept() -> None:
    async def main() -> None:
        scene = Scene()
        scene.store = DeliveryStore.open(dead_letters_kept=3)
        scene.sink(plan=lambda seq, attempt: Refused("HTTP 404"))
        async with scene.running(scene.order()) as deliveries:
            for expected in (2, 3, 3):
                scene.log.append(2)
                await settle()
                assert deliveries.state("sub").dead == expected
                assert len(deliveries.dead_letters("sub")) == expected
            scene.log.purge(before=5)
            assert deliveries.redeliver("sub") == 2
            assert deliveries.state("sub").dead == 1
            await scene.clock.advance(1)
            assert deliveries.state("sub").dead == len(deliveries.dead_letters("sub")) == 3

    run(main())


def test_a_listener_that_fails_ends_no_saving() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink()
        told = []

        def on_change(ids: frozenset[str]) -> None:
            told.append(ids)
            raise RuntimeError("a defect")

        deliveries = EventDeliveries(
            scene.log, scene.store, sender_of=lambda _: scene.sink().sender(), clock=scene.clock, on_change=on_change
        )
        deliveries.add(scene.order(), 0)
        await deliveries.start()
        for number in (1, 2, 3):
            scene.log.append()
            await settle()
            await scene.clock.advance(1)
            saved = scene.store.load("sub")
            assert saved is not None
            assert saved[0].delivered == number
        assert len(told) >= 3
        await deliveries.stop()

    run(main())


def test_a_group_that_cannot_be_collected_or_written_for_once_is_written_later() -> None:
    async def main() -> None:
        clock, store = VirtualClock(), DeliveryStore.open()
        damaged: Any = None
        groups: Iterator[Exception | SaveGroup] = iter(
            [RuntimeError("a defect"), SaveGroup(dead=[damaged]), SaveGroup(subscriptions=[SavedSubscription("a", 7)])]
        )

        def collect() -> SaveGroup:
            found = next(groups)
            if isinstance(found, Exception):
                raise found
            return found

        saver = GroupSaver(store, clock, collect)
        running = asyncio.create_task(saver.run())
        for _ in range(3):
            saver.changed()
            await settle()
            await clock.advance(2)
        assert not running.done()
        assert store.ids() == ["a"]
        running.cancel()

    run(main())
