"""Delivery against a model: events, answers, restarts, kills and clocks come in any order, and nothing is lost."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from delivery_scene import Scene
from relaycast_gateway.clock import SECOND, settle
from relaycast_gateway.delivery.circuit import CircuitLimits
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.limits import DeliveryLimits
from relaycast_gateway.delivery.order import DeliveryOrder
from relaycast_gateway.delivery.sender import Accepted, Gone, Refused, Retryable, SendOutcome

SUBSCRIPTIONS = {"every": (1, 1), "third": (3, 1), "wide": (1, 4), "wide-half": (2, 2)}
"""For each, which part of the events it selects, and its window."""


class DeliveryModel(RuleBasedStateMachine):
    """Four subscriptions over one log."""

    @initialize(seed=st.integers(0, 2**32), in_flight=st.sampled_from([2, 100]))
    def begin(self, seed: int, in_flight: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.random = Random(seed)
        limits = DeliveryLimits(in_flight, CircuitLimits(failures=5, first_seconds=20, longest_seconds=100))
        self.scene = Scene(dice=self.random, limits=limits)
        self.refused: dict[str, set[int]] = {name: set() for name in SUBSCRIPTIONS}
        self.settled: dict[str, set[int]] = {name: set() for name in SUBSCRIPTIONS}
        self.first_open = {name: part for name, (part, _) in SUBSCRIPTIONS.items()}
        self.counted = dict.fromkeys(SUBSCRIPTIONS, 0)
        self.overtaken: list[tuple[str, int, list[int]]] = []
        self.was_killed = False
        self.generation = 0
        self.trouble = 0.5
        self.run(self._start())

    def run(self, steps: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(steps)

    def order(self, name: str) -> DeliveryOrder:
        part, window = SUBSCRIPTIONS[name]
        return self.scene.order(
            name,
            sink=name,
            selects=lambda it: it.seq % part == 0,
            window=window,
            prefix=f"{self.generation}",
            attempts=10**9,
            max_age_seconds=1e12,
            longest_seconds=60,
        )

    def answer(self, name: str, seq: int, attempt: int) -> SendOutcome | None:
        """Check that nothing was overtaken, and draw an answer."""
        part, window = SUBSCRIPTIONS[name]
        settled, acknowledged = self.settled[name], self.scene.sink(name).acknowledged
        settled.update(acknowledged[self.counted[name] :])
        self.counted[name] = len(acknowledged)
        while self.first_open[name] in settled:
            self.first_open[name] += part
        open_before = [each for each in range(self.first_open[name], seq, part) if each not in settled]
        if len(open_before) >= window:
            self.overtaken.append((name, seq, open_before))
        drawn = self.random.random()
        if drawn > self.trouble:
            return Accepted()
        if drawn > 0.4 * self.trouble:
            return Retryable("HTTP 503", self.random.choice([None, None, 0.0, 7.0]))
        if drawn > 0.1 * self.trouble:
            self.refused[name].add(seq)
            settled.add(seq)
            return Refused("HTTP 400")
        return None if drawn > 0.03 * self.trouble else Gone("HTTP 410")

    async def _start(self) -> None:
        before = asyncio.all_tasks()
        self.deliveries: EventDeliveries = self.scene.deliveries()
        for name in SUBSCRIPTIONS:
            self.deliveries.add(self.order(name), 0)
            self.scene.sink(name).plan = partial(self.answer, name)
            self.scene.sink(name).answer_seconds = self.random.choice([0, 0.5])
        await self.deliveries.start()
        await settle()
        self.before = before

    async def _stop(self) -> None:
        stopping = asyncio.create_task(self.deliveries.stop())
        await settle()
        await self.scene.clock.advance(6)
        await stopping

    @rule(count=st.sampled_from([1, 2, 9, 60]))
    def append(self, count: int) -> None:
        async def steps() -> None:
            self.scene.log.append(count)
            await settle()

        self.run(steps())

    @rule(seconds=st.sampled_from([0.1, 3, 50, 400]))
    def pass_time(self, seconds: float) -> None:
        self.run(self.scene.clock.advance(seconds))

    @rule(trouble=st.sampled_from([0, 0.1, 0.5, 1]))
    def change_luck(self, trouble: float) -> None:
        self.trouble = trouble

    @rule(step=st.sampled_from([-(10**6), -100, 100, 10**6]))
    def set_clock(self, step: int) -> None:
        self.scene.clock.set(self.scene.clock.now_ns() + step * SECOND)

    @rule()
    def restart(self) -> None:
        self.run(self._stop())
        self.run(self._start())

    @rule()
    def kill(self) -> None:
        async def steps() -> None:
            current = asyncio.current_task()
            await self.scene.kill(self.deliveries, {task for task in asyncio.all_tasks() if task is not current})
            await self._start()

        self.was_killed = True
        self.run(steps())

    @rule(name=st.sampled_from(sorted(SUBSCRIPTIONS)))
    def replace(self, name: str) -> None:
        async def steps() -> None:
            self.generation += 1
            self.deliveries.replace(self.order(name))
            await settle()

        self.run(steps())

    @rule(name=st.sampled_from(sorted(SUBSCRIPTIONS)))
    def redeliver(self, name: str) -> None:
        async def steps() -> None:
            count = self.deliveries.state(name).dead
            assert self.deliveries.redeliver(name) == count
            await settle()

        self.run(steps())

    @invariant()
    def the_states_add_up(self) -> None:
        async def steps() -> None:
            for state in self.deliveries.states():
                letters = self.deliveries.dead_letters(state.subscription_id, limit=10**6)
                assert len(letters) == state.dead
                assert {letter.seq for letter in letters} <= self.refused[state.subscription_id]
                assert state.cursor <= self.scene.log.last_seq
                if not self.was_killed:
                    assert state.delivered == len(self.scene.sink(state.subscription_id).acknowledged)
            assert self.overtaken == []
            gauges = self.deliveries.gauges
            assert gauges.in_flight >= 0
            assert gauges.buffered >= 0

        self.run(steps())

    def teardown(self) -> None:
        async def steps() -> None:
            self.trouble = 0
            await self.scene.clock.advance(1)  # what is under way is answered
            for state in self.deliveries.states():
                self.scene.sink(state.subscription_id).answer_seconds = 0
                if state.status == "stopped":
                    self.deliveries.replace(self.order(state.subscription_id))
            await self.scene.clock.advance(5_000)
            for state in self.deliveries.states():
                part, _ = SUBSCRIPTIONS[state.subscription_id]
                selected = set(range(part, self.scene.log.last_seq + 1, part))
                dead = {it.seq for it in self.deliveries.dead_letters(state.subscription_id, limit=10**6)}
                acknowledged = self.scene.sink(state.subscription_id).acknowledged
                missing = sorted(selected - dead.union(acknowledged))
                assert not missing, (missing, state)
                assert dead.isdisjoint(acknowledged) or self.was_killed, sorted(dead.intersection(acknowledged))
                assert (state.pending, state.cursor) == (0, self.scene.log.last_seq)
                if not self.was_killed:
                    assert len(set(acknowledged)) == len(acknowledged)
            await self._stop()
            assert all(sink.opened == sink.closed or self.was_killed for sink in self.scene.sinks.values())

        if hasattr(self, "deliveries"):
            try:
                self.run(steps())
            finally:
                for task in asyncio.all_tasks(self.loop):
                    task.cancel()
                self.loop.run_until_complete(settle())
                self.loop.close()


TestDeliveryModel = pytest.mark.matrix("CE-106")(pytest.mark.matrix("CE-105")(DeliveryModel.TestCase))
TestDeliveryModel.settings = settings(max_examples=settings().max_examples // 3, stateful_step_count=20, deadline=None)
