"""Keeping score: subscriber blocks come in one by one, figures come out."""

from dataclasses import dataclass, field

from relaycast.outcome import Latency, Point, Spread, latency, spread
from relaycast_collator import BlockRecord


@dataclass(frozen=True, slots=True)
class Delivery:
    """How values reached their subscribers: callbacks, and relay blocks from publication to callback."""

    callbacks: int
    p50_blocks: int
    p99_blocks: int
    max_blocks: int


@dataclass(slots=True)
class SubscriberTally:
    """The blocks of one subscriber so far."""

    points: list[Point] = field(default_factory=list)
    latencies: list[int] = field(default_factory=list)
    conflated: int = 0
    incomplete_blocks: int = 0
    panics: list[str] = field(default_factory=list)
    disabled: list[int] = field(default_factory=list)

    def add(self, record: BlockRecord) -> None:
        """Count one block in."""
        self.points.append(
            Point(
                block=record.tick,
                proof_bytes=record.proof_bytes,
                static_bytes=record.static_bytes,
                own_bytes=record.own_bytes,
                callbacks=len(record.deliveries),
            )
        )
        self.latencies.extend(delivery.latency_blocks for delivery in record.deliveries)
        self.conflated += sum(delivery.conflated for delivery in record.deliveries)
        self.incomplete_blocks += not record.complete
        self.disabled.extend(map(int, record.disabled))
        if record.panic is not None:
            self.panics.append(f"block on relay block {record.relay_parent}: {record.panic}")

    @property
    def callbacks(self) -> int:
        """Values that were handed on."""
        return len(self.latencies)

    @property
    def proof_bytes(self) -> Spread:
        """Bytes of the relay proof in each block."""
        return spread([point.proof_bytes for point in self.points])

    @property
    def static_bytes(self) -> Spread:
        """Of them, what every block proves whether it subscribes or not."""
        return spread([point.static_bytes for point in self.points])

    @property
    def own_bytes(self) -> Spread:
        """Bytes of the parachain's own state in each block."""
        return spread([point.own_bytes for point in self.points])

    @property
    def pov_bytes(self) -> Spread:
        """Bytes of both together."""
        return spread([point.proof_bytes + point.own_bytes for point in self.points])

    @property
    def latency_blocks(self) -> Latency:
        """Relay blocks from publication to callback."""
        return latency(self.latencies)

    def __repr__(self) -> str:
        sizes = self.proof_bytes
        blocks = f"{len(self.points)} blocks, {self.callbacks} callbacks"
        return f"<SubscriberTally {blocks}, proof p50 {sizes.p50} p99 {sizes.p99} bytes>"


class Tally:
    """The blocks of all subscribers so far."""

    def __init__(self) -> None:
        self.subscribers: dict[int, SubscriberTally] = {}

    def add(self, record: BlockRecord) -> None:
        """Count one block in."""
        self.subscribers.setdefault(int(record.para_id), SubscriberTally()).add(record)

    def delivery(self) -> Delivery:
        """Return how values reached all subscribers together."""
        latencies = [value for subscriber in self.subscribers.values() for value in subscriber.latencies]
        blocks = latency(latencies)
        return Delivery(len(latencies), blocks.p50, blocks.p99, blocks.max)
