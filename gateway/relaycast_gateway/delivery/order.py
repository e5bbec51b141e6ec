"""What delivery is asked to do for one subscription, and what it tells about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from relaycast_gateway.delivery.sender import Target
from relaycast_gateway.delivery.wire_message import WireMessage
from relaycast_gateway.record import EventRecord


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a message that could not be delivered is tried again, and when it is given up.

    The wait before attempt n is drawn from 0 to ``min(longest_seconds, first_seconds * 2 ** (n - 2))`` (full jitter).
    A peer's own ``Retry-After`` counts instead, up to seven days.
    """

    attempts: int = 10
    """Attempts at one message, the first included."""

    first_seconds: float = 1.0
    longest_seconds: float = 300.0
    max_age_seconds: float = 86_400.0
    """From the first attempt; a message older than this is given up."""

    timeout_seconds: float = 30.0
    """For one attempt."""


@dataclass(frozen=True, slots=True)
class DeliveryOrder:
    """A subscription as delivery knows it.

    ``selects`` is asked for each event of the log in order, and ``encode`` for each event selected. Where
    ``namespaces`` is given, events of others are not selected and ``selects`` is not asked for them.

    A ``window`` of 1 keeps the order: nothing is sent before what precedes it was acknowledged or given up. With a
    window of N, up to N messages are unfinished at a time, in flight or waiting for a retry. They start in order and
    end in any order, so an event can overtake at most N - 1 earlier ones.
    """

    subscription_id: str
    target: Target
    selects: Callable[[EventRecord], bool]
    encode: Callable[[EventRecord], WireMessage]
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    window: int = 1
    namespaces: frozenset[str] | None = None


DeliveryStatus = Literal["active", "waiting", "broken", "stopped"]
"""Delivering; waiting for a retry; the circuit is open; stopped because the sink is gone."""


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """How a subscription fares."""

    subscription_id: str
    status: DeliveryStatus
    cursor: int
    """Everything up to this ``seq`` is done with, but for what waits in ``pending``."""

    pending: int
    """Messages in flight or waiting for a retry."""

    delivered: int
    retries: int
    dead: int
    last_error: str | None
    next_attempt_ns: int | None
    skipped: int = 0
    """Events that the log had dropped (retention) before they were looked at."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up: why, when, after how many attempts."""

    subscription_id: str
    seq: int
    reason: str
    attempts: int
    given_up_ns: int
