"""What a run leaves behind: one record for each subscriber block, and sums that are right for any number of blocks."""

from msgspec import Struct, field

from relaycast_collator.wasm_parachain import StorageItemShare
from relaycast_ledger.accounting import IN_THE_PROOF, BlockAccount
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

    @property
    def value_bytes(self) -> int:
        """Length of the value."""
        return len(self.entry.value)

    def __repr__(self) -> str:
        overtook = f", overtook {self.conflated}" if self.conflated else ""
        key, size = self.key.hex(), self.value_bytes
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

    @property
    def callbacks(self) -> int:
        """Values that were handed on."""
        return len(self.deliveries)

    @property
    def told_again(self) -> int:
        """Callbacks whose value had been handed on before."""
        return sum([it.told_again for it in self.deliveries])

    @property
    def received(self) -> int:
        """Callbacks with a value that the subscriber had not been given before."""
        return self.callbacks - self.told_again

    @property
    def conflated(self) -> int:
        """Values that the deliveries overtook."""
        return sum([it.conflated for it in self.deliveries])

    @property
    def latencies(self) -> list[int]:
        """Relay blocks from publication to delivery; what was told again is left out."""
        return [it.delivered_at - it.published_at for it in self.deliveries if not it.told_again]

    @property
    def told_deletions(self) -> int:
        """Keys that were told as deleted."""
        return len(self.deletions)

    @property
    def is_incomplete(self) -> bool:
        """Whether the block left keys to the next one."""
        return not self.complete

    @property
    def panicked(self) -> str | None:
        """Where the block panicked and why, ``None`` if it did not."""
        return None if self.panic is None else f"block on relay block {self.relay_parent}: {self.panic}"

    @property
    def pov_by_cause(self) -> dict[str, int]:
        """Bytes of the PoV by cause, without causes that take none; they add up to ``pov_bytes``.

        ``pubsub`` stands for the causes of the relay proof where no account is kept; ``rest`` is the header, validation
        data, and the lengths between nodes. Empty where there is no PoV.
        """
        account, pov = self.account, self.pov
        if pov is None:
            return {}
        causes = {"static": self.static_bytes}
        if account is None:
            causes["pubsub"] = self.proof_bytes - self.static_bytes
        else:
            causes |= dict(zip(IN_THE_PROOF, account.by_cause, strict=True))
        causes |= {"own": pov.own_bytes, "messages": pov.message_bytes, "callbacks": pov.callback_bytes}
        causes["rest"] = pov.pov_bytes - sum(causes.values())
        return {cause: size for cause, size in causes.items() if size}

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
        """Count a check; where it does not hold, note what was ``seen``, or what that returns."""
        self.checked += 1
        if holds:
            return
        self.violated += 1
        if len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append(Violation(invariant, tick, para_id, str(seen() if callable(seen) else seen)))

    def __repr__(self) -> str:
        return f"<Invariants {'ok' if self.ok else f'{self.violated} violated'}, {self.checked} checks>"


class WasmBlockRecord(Struct, frozen=True, kw_only=True):
    """One block of one Wasm parachain; sizes in bytes, times in ticks of the relay chain.

    Of a block that was refused there is the ``refusal``, and no sizes.
    """

    tick: int
    para_id: ParaId
    number: int
    relay_parent: int
    spec_name: str
    spec_version: int
    extrinsics: int = 0
    failed_extrinsics: int = 0
    """Extrinsics whose call failed."""

    left_out: int = 0
    """Extrinsics that were submitted and that the code does not take."""

    panics: tuple[str, ...] = ()
    """What the code said where it trapped at an extrinsic."""

    extrinsic_bytes: int = 0
    relay_proof_bytes: int = 0
    carried_relay_bytes: int = 0
    """Those of ``relay_proof_bytes`` that stand in the block's extrinsics: its code may drop others."""

    own_proof_bytes: int = 0
    """Nodes of its own state that the block reads and rewrites, in full."""

    upward_messages: int = 0
    shares: tuple[StorageItemShare, ...] = ()
    """``own_proof_bytes`` by storage item."""

    pov: PovSize | None = None
    """``None`` where the own proof is not one of the state of the block before."""

    refusal: str | None = None
    log: tuple[str, ...] = ()
    warm_up: bool = False
    """Whether the block is part of the warm-up, which percentiles leave out."""

    @property
    def built(self) -> "WasmBlockRecord | None":
        """The record itself, ``None`` of a block that was refused."""
        return self if self.refusal is None else None

    @property
    def logged(self) -> str | None:
        """The lines that the code logged, ``None`` where it logged nothing."""
        return "\n".join(self.log) or None

    @property
    def pov_by_cause(self) -> dict[str, int]:
        """Bytes of the PoV by cause; they add up to ``pov_bytes``. Empty where there is no PoV."""
        if self.pov is None:
            return {}
        relay, own = self.carried_relay_bytes, self.pov.own_bytes
        causes = {"relay": relay, "own": own, "extrinsics": self.extrinsic_bytes - relay}
        return {**causes, "rest": self.pov.pov_bytes - sum(causes.values())}
