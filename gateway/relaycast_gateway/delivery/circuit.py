"""A circuit for each subscription: a dead sink is probed, not hammered.

Closed, messages flow. After ``failures`` in a row, whatever messages they were of, it opens: nothing starts until a
wait is over. Then one attempt probes the sink. An answer, be it a refusal, closes the circuit; a failure opens it for
twice as long, up to ``longest_seconds``.
"""

from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class CircuitLimits:
    """When a circuit opens, and for how long."""

    failures: int = 20
    first_seconds: float = 30.0
    longest_seconds: float = 300.0


class CircuitPhase(Enum):
    """Flowing, waiting, or trying one message."""

    CLOSED = auto()
    OPEN = auto()
    PROBING = auto()


class Circuit:
    """Counts failures and says whether an attempt may start. Waits are the caller's."""

    __slots__ = ("_failures", "_limits", "_openings", "phase")

    def __init__(self, limits: CircuitLimits) -> None:
        self._limits = limits
        self._failures = 0
        self._openings = 0
        self.phase = CircuitPhase.CLOSED

    def may_start(self, in_flight: int) -> bool:
        """Return whether an attempt may start beside those in flight."""
        return self.phase is CircuitPhase.CLOSED or (self.phase is CircuitPhase.PROBING and in_flight == 0)

    def failed(self) -> float | None:
        """Count a failure; return the seconds to wait before ``probe`` if the circuit opened."""
        self._failures += 1
        if self.phase is CircuitPhase.OPEN or (
            self.phase is CircuitPhase.CLOSED and self._failures < self._limits.failures
        ):
            return None
        self.phase = CircuitPhase.OPEN
        wait = min(self._limits.longest_seconds, self._limits.first_seconds * 2.0 ** min(self._openings, 60))
        self._openings += 1
        return wait

    def probe(self) -> None:
        """Let one attempt through: the wait is over."""
        if self.phase is CircuitPhase.OPEN:
            self.phase = CircuitPhase.PROBING

    def answered(self) -> None:
        """Close: the sink answered."""
        self._failures = 0
        self._openings = 0
        self.phase = CircuitPhase.CLOSED
