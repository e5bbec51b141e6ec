"""Bounds of delivery, and its levels for metrics."""

from dataclasses import dataclass, field

from relaycast_gateway.delivery.circuit import CircuitLimits


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """Bounds of all subscriptions together, and the circuit of each."""

    in_flight: int = 512
    """Attempts at a time; more messages wait in the log."""

    circuit: CircuitLimits = field(default_factory=CircuitLimits)


@dataclass(frozen=True, slots=True)
class DeliveryGauges:
    """Levels now and the highest since the start, for metrics."""

    subscriptions: int
    in_flight: int
    in_flight_high: int
    buffered: int
    """Records in memory, selected and not begun."""

    buffered_high: int
    waiting_for_a_slot: int
    """Subscriptions that could send but for ``DeliveryLimits.in_flight``."""

    store_error: str | None
