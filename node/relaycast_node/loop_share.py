"""Fair sharing of an event loop between long work and other tasks.

INVARIANT: after a piece of work that took t, the next piece starts t later, so that other tasks get half of the time.
Urgent work starts earlier, but only once the other tasks were idle for t/8.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import perf_counter, thread_time

GLANCE = 1 / 8
"""Idle time that urgent work waits for, as a fraction of the time of the last piece of work."""

SHORTEST_GLANCE_SECONDS = 0.002
IDLE_SECONDS = 0.0002
"""Other tasks are idle if the thread works for less than this in a glance."""


class LoopShare:
    """Runs pieces of work one at a time, in the order of the requests.

    ``clock`` returns wall seconds, ``worked`` the CPU seconds of this thread.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = perf_counter,
        worked: Callable[[], float] = thread_time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._worked = worked
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._ended = clock()
        self._took = 0.0

    @asynccontextmanager
    async def piece(self, *, in_a_hurry: bool = False) -> AsyncIterator[None]:
        """Wait until other tasks had their share; the ``with`` body is one piece of work."""
        async with self._turn:
            await self._rest(in_a_hurry=in_a_hurry)
            began = self._clock()
            try:
                yield
            finally:
                self._ended = self._clock()
                self._took = self._ended - began

    async def _rest(self, *, in_a_hurry: bool) -> None:
        await self._sleep(0)
        glance = max(GLANCE * self._took, SHORTEST_GLANCE_SECONDS) if in_a_hurry else self._took
        while (left := self._ended + self._took - self._clock()) > 0:
            before = self._worked()
            await self._sleep(min(left, glance))
            if in_a_hurry and self._worked() - before < IDLE_SECONDS:
                return
