"""What a run leaves behind: one record for each subscriber block, and sums that are right for any number of blocks."""

from msgspec import Struct, field

from relaycast_ledger.account_records import BlockAccount
from relaycast_ledger.pov import PovSize
from relaycast_ledger.proof_picture import ProofPicture
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId, Weight

VIOLATIONS_KEPT = 100
"""Violations of which all is remembered; a run that breaks something in every block has bounded memory too."""


class Delivery(Struct, frozen=True):
    """One callback: what was published at tick ``published_at`` reached the subscriber at ``delivered_at``.

    A value is published at the tick of the first block that could send it: time spent in the outbox counts.
    ``conflated`` counts the values of the key that were overwritten before this subscriber could see them.
    """

    publisher: ParaId
    key: SubscribedKey
    entry: PublishedEntry
    published_at: int
    delivered_at: int
    conflated: int = 0
    told_again: bool = False
    """Whether the subscriber was told this very entry before: no delivery, and no part of latencies."""

    is_first: bool = False
    """Whether the subscriber had no value of the key before."""

    @property
    def latency_blocks(self) -> int:
        """Relay chain blocks from publication to callback."""
        return self.delivered_at - self.published_at

    def __repr__(self) -> str:
        overtook = f", overtook {self.conflated}" if self.conflated else ""
        key, size = self.key.hex(), len(self.entry.value)
        again = ", told again" if self.told_again else ""
        return (
            f"<Delivery 0x{key} of {self.publisher}: {size} bytes after {self.latency_blocks} blocks{overtook}{again}>"
        )


class ToldDeletion(Struct, frozen=True):
    """One callback without a value: the subscriber learned at tick ``told_at`` that a key is no longer published."""

    publisher: ParaId
    key: SubscribedKey
    told_at: int


class ReadTotals(Struct, frozen=True):
    """Nodes and bytes by where they were read from."""

    nodes: int = 0
    proof_bytes: int = 0


class Uncharged(Struct, frozen=True):
    """A node or value that a block read, ``excess_bytes`` longer than it was charged for; ``name`` is its key."""

    name: str
    excess_bytes: int


class BlockRecord(Struct, frozen=True):
    """One block of one subscriber; sizes in bytes, times in ticks of the relay chain.

    For a block that panicked, whose chain stays at ``number``, the sizes are those of the honest inherent.
    """

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
    cursor: tuple[ParaId, SubscribedKey] | None = None
    """The first key that was not dealt with; ``None`` when the pass is complete."""

    message_bytes: int = 0
    """Bytes of messages that the block took in full before pub-sub was considered, and of its hashes of the others."""

    hashed_bytes: int = 0
    """Bytes of the hashes alone: 36 for each downward message that had no room, 40 for each horizontal one."""

    waiting_bytes: int = 0
    """Bytes of the messages that are left for the next block."""

    refused_bytes: int = 0
    """Bytes of the messages refused so far because the queue was full."""

    uncharged: tuple[Uncharged, ...] = ()
    """Nodes and values of the relay chain that are longer than any read is charged for."""

    account: BlockAccount | None = None
    """Nodes and bytes by publisher and by cause, where the network keeps accounts."""

    picture: ProofPicture | None = None
    """Every node path by path, of a few blocks that the network is asked to picture."""

    pov: PovSize | None = None
    """What the whole block carries; ``None`` of one that panicked, which nobody sends."""

    callback_weight: Weight = Weight.ZERO
    """Weight of the block's callbacks."""

    ended_by_callbacks: bool = False
    """Whether the pass ended because the limit of a block had no room for one more callback."""

    overweight_callbacks: int = 0
    """Callbacks that weighed more than they had declared."""

    deletions: tuple[ToldDeletion, ...] = ()
    """Callbacks without a value; none where deletions are silent."""

    owed: bool = False
    """Whether the block left a key without its current value; the pass is incomplete then."""

    behind: bool = False
    """Whether it left one more than ``BLOCKS_BEHIND`` relay blocks behind."""

    warm_up: bool = False
    """Whether the block is part of the warm-up, which percentiles leave out."""

    @property
    def is_oversize(self) -> bool:
        """Whether the relay chain would refuse the block, because it carries or computes too much."""
        return self.pov is not None and self.pov.is_oversize

    def __repr__(self) -> str:
        sizes = f"proof {self.proof_bytes:,} bytes, {self.static_bytes:,} of them static, own {self.own_bytes:,}"
        ending = "panicked" if self.panic is not None else "complete" if self.complete else "cut short"
        block = f"{self.para_id} #{self.number} on relay block {self.relay_parent}"
        return f"<BlockRecord {block}: {len(self.deliveries)} callbacks, {sizes}, {ending}>"


class Violation(Struct, frozen=True):
    """An invariant that did not hold: which, where, and what was seen."""

    invariant: str
    tick: int
    para_id: ParaId
    seen: str

    def __str__(self) -> str:
        return f"{self.invariant} (tick {self.tick}, parachain {self.para_id}): {self.seen}"


class Invariants(Struct):
    """The invariants checked while a run went on, and those that did not hold: how often, and the first of them."""

    checked: int = 0
    violations: list[Violation] = field(default_factory=list)
    violated: int = 0

    @property
    def ok(self) -> bool:
        return not self.violations

    def check(self, invariant: str, holds: bool, tick: int, para_id: ParaId, *, seen: object = "") -> None:
        """Count a check; where it does not hold, note what was ``seen``."""
        self.checked += 1
        if holds:
            return
        self.violated += 1
        if len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append(Violation(invariant, tick, para_id, str(seen)))

    def __repr__(self) -> str:
        return f"<Invariants {'ok' if self.ok else f'{self.violated} violated'}, {self.checked} checks>"
