"""How many requests a second each caller may make: a bucket of requests that refills steadily.

A caller is the name of a token, else the client's address; of IPv6 the network of 64 bits that a client draws its
addresses from. A request is an HTTP request or a JSON-RPC message over a WebSocket; each request in a batch
counts. Messages of WAMP sessions are not counted.

Law: memory is bounded. Beyond ``MOST_CALLERS`` the caller that was quiet for longest is forgotten; a bucket is full
again after ``BURST_SECONDS``. Setting the system clock has no effect.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from relaycast_gateway.clock import SECOND, Clock, SystemClock

REQUESTS_A_SECOND = 20_000
BURST_SECONDS = 4
"""A bucket holds as many requests as come in this time."""

MOST_CALLERS = 10_000


@dataclass(frozen=True, slots=True)
class RateExceeded:
    """``count`` requests beyond the limit of ``a_second``."""

    a_second: int
    retry_seconds: int
    count: int = 1

    def __str__(self) -> str:
        got, at_once = "more requests", ""
        if self.count > 1:
            got, at_once = f"{self.count:,} more requests", f" and {self.a_second * BURST_SECONDS:,} at once"
        expected = f"at most {self.a_second:,} requests a second{at_once}"
        return f"the rate: got {got}, expected {expected}; try again in {self.retry_seconds} s"


Admission = Callable[[int], RateExceeded | None]
"""Admits a number of requests of a known caller, all or none."""


class RequestRates:
    """The buckets of all callers; ``refused`` counts what was turned away."""

    def __init__(self, a_second: int = REQUESTS_A_SECOND, *, clock: Clock | None = None) -> None:
        self.a_second = a_second
        self.refused = 0
        self._clock = clock or SystemClock()
        self._step_ns = SECOND / a_second
        self._burst_ns = BURST_SECONDS * SECOND
        self._full_at: dict[str, float] = {}
        """When each bucket is full again, the caller who asked last at the end."""

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, caller: str, count: int = 1) -> RateExceeded | None:
        """Take ``count`` requests out of a caller's bucket; return the refusal if it holds fewer."""
        now = self._clock.passed_ns()
        full_at = max(self._full_at.pop(caller, now), now)
        missing_ns = full_at + count * self._step_ns - now - self._burst_ns
        excess = None
        if missing_ns > 0:
            self.refused += 1
            excess = RateExceeded(self.a_second, ceil(missing_ns / SECOND), count)
        else:
            full_at += count * self._step_ns
        self._full_at[caller] = full_at
        if len(self._full_at) > MOST_CALLERS:
            del self._full_at[next(iter(self._full_at))]
        return excess
