"""A process that publishes and delivers is killed at any moment: nothing is lost, and nothing is overtaken."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.delivery.deliverer import WINDOWS
from long_hauls import soak
from relaycast_gateway.delivery.store import DeliveryStore
from relaycast_gateway.log import EventLog

EVENTS = 10_000
KILLS = 5
LONGEST_LIFE = 3.0
"""Seconds from the first word of a process to its kill."""


def is_refused(name: str, seq: int) -> bool:
    """Whether a failing sink will never take this event."""
    return name.startswith("failing") and seq % 211 == 0


class Receiver:
    """Answers slowly or badly, and notes what came when something before it was still open."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.bodies: dict[str, dict[int, str]] = {name: {} for name in WINDOWS}
        self.settled: dict[str, set[int]] = {name: set() for name in WINDOWS}
        self.first_open = dict.fromkeys(WINDOWS, 1)
        self.overtaken: list[tuple[str, int]] = []
        self.requests = 0

    async def answer(self, request: web.Request) -> web.Response:
        name = request.path.removeprefix("/")
        seq, _, content = (await request.read()).decode().partition(" ")
        return await self.judge(name, int(seq), content)

    async def judge(self, name: str, seq: int, content: str) -> web.Response:
        self.requests += 1
        settled = self.settled[name]
        while self.first_open[name] in settled:
            self.first_open[name] += 1
        still_open = sum(each not in settled for each in range(self.first_open[name], seq))
        if still_open >= WINDOWS[name]:
            self.overtaken.append((name, seq))
        assert self.bodies[name].setdefault(seq, content) == content
        if name == "slow":
            await asyncio.sleep(0.002)
        elif is_refused(name, seq):
            settled.add(seq)
            return web.Response(status=404)
        elif self.draw.random() < 0.1:
            return web.Response(status=self.draw.choice([429, 500, 503]), headers={"Retry-After": "0"})
        settled.add(seq)
        return web.Response(status=204)


async def started(folder: Path, seed: str, port: int) -> Process:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = str(Path(__file__).with_name("deliverer.py"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, program, str(folder), seed, str(EVENTS), str(port), stdout=PIPE, env=environment
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"open\n"
    return process


async def survive(folder: Path, seed: int, told: Callable[[str, object], None]) -> None:
    draw, receiver, acknowledged, kills = Random(seed), Receiver(seed), 0, 0
    application = web.Application()
    application.router.add_post("/{name}", receiver.answer)
    async with TestServer(application) as server:
        assert server.port is not None
        is_done = False
        while not is_done:
            process = await started(folder, f"{seed} {kills}", server.port)
            assert process.stdout is not None
            reading = asyncio.create_task(process.stdout.read())
            if kills < KILLS:
                await asyncio.wait([reading], timeout=draw.uniform(0, LONGEST_LIFE))
                if not reading.done():
                    process.kill()
                    kills += 1
            lines = (await reading).decode().rpartition("\n")[0].splitlines()
            await process.wait()
            is_done = bool(lines) and lines[-1] == "done"
            assert is_done or process.returncode == -9
            for line in lines[: -1 if is_done else None]:
                first, length = map(int, line.split())
                acknowledged = max(acknowledged, first + length - 1)
    told("told", f"killed {kills} times")
    assert receiver.overtaken == []
    with EventLog.open(folder / "events.sqlite") as log:
        records = log.read(limit=EVENTS + 1)
        assert acknowledged <= log.last_seq == EVENTS
    expected = {record.seq: str(record.data.content) for record in records}
    store = DeliveryStore.open(folder / "delivery.sqlite")
    for name in WINDOWS:
        assert receiver.bodies[name] == expected
        assert receiver.settled[name] == expected.keys()
        dead = {letter.seq for letter in store.dead_letters(name)}
        assert dead == {seq for seq in expected if is_refused(name, seq)}
    store.close()


@pytest.mark.slow
@pytest.mark.matrix("CE-03")
@pytest.mark.matrix("CE-106")
def test_nothing_is_lost_or_overtaken_where_a_process_is_killed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    asyncio.run(survive(tmp_path, 17, record_property))


@soak(20)
def test_nothing_is_lost_or_overtaken_where_a_process_is_killed_a_hundred_times(
    tmp_path: Path, soak_round: int, record_property: Callable[[str, object], None]
) -> None:
    asyncio.run(survive(tmp_path, 1_000 + soak_round, record_property))
