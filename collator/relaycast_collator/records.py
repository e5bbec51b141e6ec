"""What a run leaves behind: one record for each subscriber block, and sums that are right for any number of blocks."""

from dataclasses import dataclass, field

from relaycast_pallets.published_entry import PublishedEntry
from relaycast_pallets.subscription import SubscribedKey
from relaycast_xcm import ParaId, Weight


@dataclass(frozen=True, slots=True)
class Delivery:
    """One callback: what was published at tick ``published_at`` reached the subscriber at ``delivered_at``.

    ``conflated`` counts the values of the key that were overwritten before this subscriber could see them.
    """

    publisher: ParaId
    key: SubscribedKey
    entry: PublishedEntry
    published_at: int
    delivered_at: int
    conflated: int = 0

    @property
    def latency_blocks(self) -> int:
        """Relay chain blocks from publication to callback."""
        return self.delivered_at - self.published_at


@dataclass(frozen=True, slots=True)
class ReadTotals:
    """Nodes and bytes by where they were read from."""

    nodes: int = 0
    proof_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """One block of one subscriber; sizes in bytes, times in ticks of the relay chain."""

    tick: int
    para_id: ParaId
    number: int
    relay_parent: int
    collected_bytes: int
    proof_bytes: int
    proof_nodes: int
    static_bytes: int
    own_bytes: int
    """Nodes of the parachain's own state that the block carries: the price of the cache."""

    reads: dict[str, ReadTotals]
    budget_bytes: int
    consumed: Weight
    complete: bool
    deliveries: tuple[Delivery, ...]
    disabled: tuple[ParaId, ...] = ()
    panic: str | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold: which, where, and what was seen."""

    invariant: str
    tick: int
    para_id: ParaId
    seen: str

    def __str__(self) -> str:
        return f"{self.invariant} (tick {self.tick}, parachain {self.para_id}): {self.seen}"


@dataclass(slots=True)
class Invariants:
    """The invariants checked while a run went on, and those that did not hold."""

    checked: int = 0
    violations: list[Violation] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.violations

    def __repr__(self) -> str:
        return f"<Invariants {'ok' if self.ok else f'{len(self.violations)} violated'}, {self.checked} checks>"
