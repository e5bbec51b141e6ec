"""How many events a second came over the last minute."""

from collections import deque

from relaycast_gateway.clock import SECOND

WINDOW_SECONDS = 60


class EventRate:
    """Counts events by the second, from ``started_ns`` on."""

    def __init__(self, started_ns: int) -> None:
        self._started_ns = started_ns
        self._seconds: deque[tuple[int, int]] = deque()

    def count(self, now_ns: int) -> None:
        """Count an event."""
        second = now_ns // SECOND
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = second, self._seconds[-1][1] + 1
        else:
            self._seconds.append((second, 1))
            self._forget_before(second)

    def a_second(self, now_ns: int) -> float:
        """Return the rate over the last minute, or since the start where that is less."""
        self._forget_before(now_ns // SECOND)
        seconds = min(WINDOW_SECONDS, max(1.0, (now_ns - self._started_ns) / SECOND))
        return sum(events for _, events in self._seconds) / seconds

    def _forget_before(self, second: int) -> None:
        while self._seconds and self._seconds[0][0] <= second - WINDOW_SECONDS:
            self._seconds.popleft()
