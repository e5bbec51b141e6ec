"""How many requests a second each caller may make: a bucket of requests that refills steadily.

A caller is the name of a token, else the client's address; of IPv6 the network of 64 bits that a client draws its
addresses from. A request is an HTTP request or a JSON-RPC message over a WebSocket; a batch is one. Messages of WAMP
sessions are not counted.

Law: memory is bounded. Beyond ``MOST_CALLERS`` the caller that was quiet for longest is forgotten; a bucket is full
again after ``BURST_SECONDS``. A clock that is set back locks nobody out for longer than that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from math import ceil

from relaycast_gateway.clock import SECOND, Clock, SystemClock

REQUESTS_A_SECOND = 5_000
BURST_SECONDS = 4
"""A bucket holds as many requests as come in this time."""

MOST_CALLERS = 10_000


@dataclass(frozen=True, slots=True)
class RateExceeded:
    """A request beyond the limit of ``a_second``."""

    a_second: int
    retry_seconds: int

    def __str__(self) -> str:
        expected = f"at most {self.a_second:,} requests a second"
        return f"the rate: got more requests, expected {expected}; try again in {self.retry_seconds} s"


Admission = Callable[[], RateExceeded | None]
"""Takes one request of a caller who is known."""


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

    def take(self, caller: str) -> RateExceeded | None:
        """Take one request out of a caller's bucket; return why not where it is empty."""
        now = self._clock.now_ns()
        full_at = min(max(self._full_at.pop(caller, 0), now), now + self._burst_ns) + self._step_ns
        missing_ns = full_at - now - self._burst_ns
        if missing_ns > 0:
            full_at -= self._step_ns
            self.refused += 1
        self._full_at[caller] = full_at
        if len(self._full_at) > MOST_CALLERS:
            del self._full_at[next(iter(self._full_at))]
        return RateExceeded(self.a_second, ceil(missing_ns / SECOND)) if missing_ns > 0 else None


@lru_cache(maxsize=MOST_CALLERS)
def caller_at(address: str) -> str:
    """Return who asks from an address where no token says so."""
    if ":" not in address:
        return address
    number = IPv6Address(address)
    mapped = number.ipv4_mapped
    return str(mapped or IPv6Address(int(number) >> 64 << 64))
