"""The clock of served chains: blocks one by one, time for others between them, and what it says of its pace."""

import asyncio
import logging
import time

import pytest

from node.chains import live_chains
from relaycast_collator import ChainSimulator
from relaycast_node.chain_clock import PACE_BLOCKS, ChainClock, log
from relaycast_node.loop_share import GLANCE, LoopShare


class Others:
    """A virtual loop: time passes while somebody sleeps, and others work all of it or not at all."""

    def __init__(self, *, busy: bool) -> None:
        self.busy = busy
        self.now = self.worked = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds if self.busy else 0.0

    def share(self) -> LoopShare:
        return LoopShare(clock=lambda: self.now, worked=lambda: self.worked, sleep=self.sleep)


async def rested(others: Others, seconds: float, *, in_a_hurry: bool) -> float:
    """Return how long a piece of work waits after one that took ``seconds``."""
    share = others.share()
    async with share.piece():
        others.now += seconds
    ended = others.now
    async with share.piece(in_a_hurry=in_a_hurry):
        return others.now - ended


@pytest.mark.parametrize("seconds", [0.001, 0.04, 2.0])
@pytest.mark.parametrize(("in_a_hurry", "busy"), [(False, True), (False, False), (True, True)])
def test_after_work_that_took_t_others_have_as_long(seconds: float, in_a_hurry: bool, busy: bool) -> None:
    assert asyncio.run(rested(Others(busy=busy), seconds, in_a_hurry=in_a_hurry)) == pytest.approx(seconds)


def test_work_in_a_hurry_waits_only_a_moment_for_others_that_have_nothing_to_do() -> None:
    assert asyncio.run(rested(Others(busy=False), 2.0, in_a_hurry=True)) == pytest.approx(2.0 * GLANCE)


def test_pieces_of_work_come_in_the_order_in_which_they_were_asked_for() -> None:
    async def run() -> list[str]:
        share, done = LoopShare(), list[str]()

        async def series(name: str) -> None:
            for _ in range(5):
                async with share.piece():
                    done.append(name)

        await asyncio.gather(series("a"), series("b"))
        return done

    assert asyncio.run(run()) == ["a", "b"] * 5


def slow_chains(happened: list[str], *, seconds: float = 0.004) -> ChainClock:
    """Return chains whose ticks take ``seconds`` at least; each leaves a word in ``happened``."""
    chains = ChainSimulator()

    def step() -> None:
        chains.step()
        time.sleep(seconds)
        happened.append("block")

    return ChainClock(chains, step)


async def work(happened: list[str]) -> None:
    """Work in small pieces, as answers and deliveries do, until 10 blocks were built."""
    while happened.count("block") < 10:
        end = time.thread_time() + 0.0005
        while time.thread_time() < end:
            pass
        happened.append("other")
        await asyncio.sleep(0)


def between_blocks(happened: list[str]) -> list[int]:
    """Return how often others worked between each two blocks."""
    return [part.count("other") for part in " ".join(happened).split("block")[1:-1]]


@pytest.mark.parametrize("how", ["clock", "two series"])
def test_others_work_many_times_between_two_blocks_that_take_longer_than_the_block_time(how: str) -> None:
    async def run() -> list[str]:
        happened: list[str] = []
        live = slow_chains(happened)

        async def series() -> None:
            for _ in range(10):
                await live.build()

        if how == "clock":
            live.block_time = 0.001
        building = [live.run()] if how == "clock" else [series(), series()]
        tasks = [asyncio.create_task(it) for it in building]
        await asyncio.wait_for(work(happened), 60)
        for task in tasks:
            task.cancel()
        return happened

    assert all(count >= 3 for count in between_blocks(asyncio.run(run())))


def test_a_pace_that_is_not_kept_is_said_once_with_what_is_reached(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "filters", [])  # lines of other tests in this minute count against its limit

    async def run() -> float | None:
        happened: list[str] = []
        live = slow_chains(happened)
        live.block_time = 0.001
        clock = asyncio.create_task(live.run())
        while len(happened) < 3 * PACE_BLOCKS:
            await asyncio.sleep(0.001)
        clock.cancel()
        return live.reached_block_time

    with caplog.at_level(logging.WARNING):
        reached = asyncio.run(run())
    assert reached is not None
    assert reached >= 0.004
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("block time: expected a block every 1ms, got one every 0.0")
    assert line.endswith(f"s over the last {PACE_BLOCKS} blocks")


@pytest.mark.parametrize(("seconds", "reached"), [(0.5, None), (0.54, None), (0.6, 0.6)])
def test_a_pace_is_kept_while_blocks_come_almost_as_asked(seconds: float, reached: float | None) -> None:
    live = live_chains()
    live.block_time = 0.5
    live._built_at.extend(number * seconds for number in range(PACE_BLOCKS))
    assert live.reached_block_time is None
    live._built_at.append(PACE_BLOCKS * seconds)
    assert live.reached_block_time == (None if reached is None else pytest.approx(reached))


def test_a_clock_that_is_stopped_while_its_tick_waits_builds_no_block() -> None:
    async def run() -> int:
        live = live_chains()
        live.block_time = 0.001
        async with live._share.piece():  # somebody else builds
            clock = asyncio.create_task(live.run())
            await asyncio.sleep(0.01)
            live.block_time = "manual"
        await asyncio.sleep(0.01)
        clock.cancel()
        return live.relay.best.number

    assert asyncio.run(run()) == 0
