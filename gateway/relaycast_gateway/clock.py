"""The clock that the gateway is given: the system's, or one that tests move.

Law: nothing in this room asks the system for the time or sleeps by itself.
"""

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol

SECOND = 1_000_000_000
"""Nanoseconds."""


class Alarm(Protocol):
    """A callback that is due later."""

    def cancel(self) -> object:
        """Call nothing; without effect once it was called."""
        ...


class Clock(Protocol):
    """Tells the time and wakes sleeping tasks."""

    def now_ns(self) -> int:
        """Return nanoseconds since 1970 in UTC. A system's clock may be set back."""
        ...

    def passed_ns(self) -> int:
        """Return monotonic nanoseconds, for intervals. This clock is never set."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when ``seconds`` have passed; a clock that is set meanwhile changes nothing."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        """Have the running event loop call back when ``seconds`` have passed, as ``sleep`` counts them."""
        ...


class SystemClock:
    """The system's clock."""

    def now_ns(self) -> int:
        return time.time_ns()

    def passed_ns(self) -> int:
        return time.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        return asyncio.get_running_loop().call_later(seconds, callback)


class VirtualClock:
    """A clock that stands still until it is advanced."""

    def __init__(self, now_ns: int = 1_700_000_000 * SECOND) -> None:
        self._now_ns = now_ns
        self._passed_ns = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()

    def now_ns(self) -> int:
        return self._now_ns

    def passed_ns(self) -> int:
        return self._passed_ns

    def set(self, now_ns: int) -> None:
        """Set the time, as an operator does; sleepers are not woken."""
        self._now_ns = now_ns

    async def sleep(self, seconds: float) -> None:
        await self._future_in(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        future = self._future_in(seconds)
        future.add_done_callback(lambda done: None if done.cancelled() else callback())
        return future

    async def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass: each sleeper wakes at its own moment, and what it does then is done before the next."""
        end = self._passed_ns + round(seconds * SECOND)
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, future = heapq.heappop(self._sleepers)
            self._move_to(max(due, self._passed_ns))
            if not future.done():
                future.set_result(None)
            await settle()
        self._move_to(end)

    def _future_in(self, seconds: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        due = self._passed_ns + round(seconds * SECOND)
        heapq.heappush(self._sleepers, (due, next(self._order), future))
        return future

    def _move_to(self, passed_ns: int) -> None:
        self._now_ns += passed_ns - self._passed_ns
        self._passed_ns = passed_ns


async def settle(rounds: int = 20) -> None:
    """Let every task that can run do so."""
    for _ in range(rounds):
        await asyncio.sleep(0)
