"""What some blocks of a ``relaycast.Network`` came to."""

from collections.abc import Mapping
from typing import Any

from relaycast.block_frame import block_frame
from relaycast.terminal import counted
from relaycast_ledger.outcome import FullBlock, RuntimeOutcome, Starvation
from relaycast_ledger.records import Invariants
from relaycast_ledger.run_statistics import DeliveryTotals, RunStatistics, SubscriberStatistics


class Run:
    """What some blocks came to: ``delivery`` over all subscribers, ``subscribers`` by parachain, ``invariants``.

    ``runtimes`` is what the blocks of real runtimes carry, by parachain.
    """

    def __init__(
        self,
        tally: RunStatistics,
        invariants: Invariants,
        *,
        blocks: int,
        seed: int = 0,
        waiting: Mapping[int, int] | None = None,
    ) -> None:
        self.blocks = blocks
        self.seed = seed
        self.subscribers = tally.subscribers
        self.delivery: DeliveryTotals = tally.delivery()
        self.runtimes: dict[int, RuntimeOutcome] = {
            para_id: it.outcome(para_id, "", waiting=(waiting or {}).get(para_id, 0))
            for para_id, it in tally.wasm_parachains.items()
        }
        self._refusals = tally.refusals
        self.invariants = invariants

    @property
    def panics(self) -> list[str]:
        """The blocks that were refused, and extrinsics at which a real runtime trapped, each with its reason."""
        panics = [f"{para_id}: {panic}" for para_id, it in self.subscribers.items() for panic in it.panics]
        return [*panics, *self._refusals]

    @property
    def oversize_blocks(self) -> int:
        """Blocks that the relay chain would refuse: their compressed PoV, or their computation time, is too large."""
        chains: list[SubscriberStatistics | RuntimeOutcome] = [*self.subscribers.values(), *self.runtimes.values()]
        return sum(it.oversize_blocks for it in chains)

    @property
    def starved(self) -> dict[int, Starvation]:
        """Subscribers that were not given what they subscribe to, by parachain."""
        found = ((para_id, it.starvation) for para_id, it in self.subscribers.items())
        return {para_id: it for para_id, it in found if it is not None and it.is_starved}

    @property
    def fullest_block(self) -> FullBlock | None:
        """The block that takes most of its limit, and what its bytes are for; ``None`` where none was built."""
        chains: list[SubscriberStatistics | RuntimeOutcome] = [*self.subscribers.values(), *self.runtimes.values()]
        found = [it.fullest_block for it in chains if it.fullest_block is not None]
        return max(found, key=lambda it: it.load, default=None)

    def to_pandas(self) -> Any:
        """Return a ``DataFrame`` with a row for each block of each subscriber; ``ImportError`` without pandas.

        The columns are ``para_id`` and the names of ``relaycast_ledger.outcome.Point``, sizes in bytes.
        """
        return block_frame(self.subscribers)

    def __repr__(self) -> str:
        panics = f", {counted(len(self.panics), 'panic')}" if self.panics else ""
        oversize = f", {counted(self.oversize_blocks, 'block')} too large" if self.oversize_blocks else ""
        starved = f", {counted(len(self.starved), 'starved reader')}" if self.starved else ""
        return f"<Run of {self.blocks} blocks: {self.delivery!r}, {self.invariants!r}{panics}{oversize}{starved}>"
