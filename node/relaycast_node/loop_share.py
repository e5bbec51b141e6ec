"""What long work leaves of an event loop to others.

INVARIANT: after a piece of work that took t, the next piece begins t later, so that others have half of the time.
Work in a hurry begins earlier, but not before others had nothing to do for t/8.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import perf_counter, thread_time

GLANCE = 1 / 8
"""Time in which others are seen to have nothing to do, as a part of the time that a piece of work took."""

SHORTEST_GLANCE_SECONDS = 0.002
IDLE_SECONDS = 0.0002
"""Others have nothing to do if the thread works for less than this in a glance."""


class LoopShare:
    """Runs pieces of work one at a time, in the order in which they were asked for.

    ``clock`` and ``worked`` give seconds: those that passed, and those that this thread worked.
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
        """Wait until others had their share; what is done inside is one piece of work."""
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
