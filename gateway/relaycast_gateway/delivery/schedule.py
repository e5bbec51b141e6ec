"""When a message is tried again: full jitter, a peer's own ``Retry-After``, and the bounds of a policy.

Source: RFC 9110, section 10.2.3 (``Retry-After``: seconds or an HTTP date).
"""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Protocol

from relaycast_gateway.clock import SECOND
from relaycast_gateway.delivery.order import RetryPolicy

MOST_RETRY_AFTER = 7 * 86_400.0
"""Seconds. A longer wait that a peer asks for is cut to this."""

_SECONDS = re.compile(r"[0-9]+")
_MOST_DOUBLINGS = 60
"""More would leave the range of a float."""


class Dice(Protocol):
    """Where jitter comes from; ``random.Random`` is one."""

    def uniform(self, a: float, b: float, /) -> float: ...


def longest_wait(policy: RetryPolicy, attempts: int) -> float:
    """Return the upper bound of the wait after that many attempts, in seconds."""
    return min(policy.longest_seconds, policy.first_seconds * 2.0 ** min(attempts - 1, _MOST_DOUBLINGS))


def wait_seconds(policy: RetryPolicy, attempts: int, dice: Dice, *, retry_after: float | None = None) -> float:
    """Return the wait before the next attempt, after ``attempts`` failed."""
    if retry_after is not None:
        return min(max(retry_after, 0.0), MOST_RETRY_AFTER)
    return dice.uniform(0.0, longest_wait(policy, attempts))


def given_up(policy: RetryPolicy, attempts: int, *, age_seconds: float, wait: float) -> str | None:
    """Return why a message is not tried again, ``None`` where it is.

    ``age_seconds`` counts from the first attempt; a clock that was set back may make it negative, which is no age.
    A message is given up at once if the next attempt would come after its greatest age. A wait that the peer asked for
    is not counted: give 0 for it.
    """
    if attempts >= policy.attempts:
        return f"given up after {attempts} attempt{'s' if attempts > 1 else ''}"
    if max(age_seconds, 0.0) + wait > policy.max_age_seconds:
        return f"given up: the next attempt would come more than {policy.max_age_seconds:g} s after the first"
    return None


def retry_after_seconds(text: str, *, now_ns: int) -> float | None:
    """Return the wait that a ``Retry-After`` asks for, 0 s to seven days; ``None`` where it cannot be read."""
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), MOST_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return min(max(0.0, moment.timestamp() - now_ns / SECOND), MOST_RETRY_AFTER)
    except (OverflowError, ValueError):
        return None
