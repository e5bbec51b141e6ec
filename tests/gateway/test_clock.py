"""The clock that tests move."""

import asyncio

from relaycast_gateway.clock import SECOND, VirtualClock


def test_sleepers_wake_at_their_own_moments_in_order() -> None:
    async def main() -> list[tuple[str, int]]:
        clock, woken = VirtualClock(0), []

        async def sleep(name: str, seconds: float, again: float) -> None:
            await clock.sleep(seconds)
            woken.append((name, clock.now_ns() // SECOND))
            await clock.sleep(again)
            woken.append((name, clock.now_ns() // SECOND))

        tasks = [asyncio.create_task(sleep("a", 5, 1)), asyncio.create_task(sleep("b", 2, 9))]
        await clock.advance(10)
        assert clock.now_ns() == 10 * SECOND
        await clock.advance(1)
        await asyncio.gather(*tasks)
        return woken

    assert asyncio.run(main()) == [("b", 2), ("a", 5), ("a", 6), ("b", 11)]


def test_a_clock_that_is_set_back_wakes_nobody_earlier_or_later() -> None:
    async def main() -> int:
        clock = VirtualClock(100 * SECOND)
        task = asyncio.create_task(clock.sleep(5))
        await clock.advance(1)
        clock.set(0)
        await clock.advance(3)
        assert not task.done()
        await clock.advance(1)
        await task
        return clock.now_ns()

    assert asyncio.run(main()) == 4 * SECOND
