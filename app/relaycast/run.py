"""What some blocks of a ``relaycast.Network`` came to."""

from typing import Any

from relaycast.block_frame import block_frame
from relaycast.terminal import counted
from relaycast_ledger.records import Invariants
from relaycast_ledger.spreads import FullBlock
from relaycast_ledger.tally import DeliveryTotals, Tally


class Run:
    """What some blocks came to: ``delivery`` over all subscribers, ``subscribers`` by parachain, ``invariants``."""

    def __init__(self, tally: Tally, invariants: Invariants, *, blocks: int, seed: int = 0) -> None:
        self.blocks = blocks
        self.seed = seed
        self.subscribers = tally.subscribers
        self.delivery: DeliveryTotals = tally.delivery()
        self.invariants = invariants

    @property
    def panics(self) -> list[str]:
        """The blocks that were refused, each with its reason."""
        return [f"{para_id}: {panic}" for para_id, it in self.subscribers.items() for panic in it.panics]

    @property
    def oversize_blocks(self) -> int:
        """Blocks that the relay chain would refuse: their compressed PoV, or their computation time, is too large."""
        return sum(it.oversize_blocks for it in self.subscribers.values())

    @property
    def fullest_block(self) -> FullBlock | None:
        """The block that takes most of its limit, and what its bytes are for; ``None`` where none was built."""
        found = [it.fullest_block for it in self.subscribers.values() if it.fullest_block is not None]
        return max(found, key=lambda it: it.load, default=None)

    def to_pandas(self) -> Any:
        """Return a ``DataFrame`` with a row for each block of each subscriber; ``ImportError`` without pandas.

        The columns are ``para_id`` and the names of ``relaycast_ledger.outcome.Point``, sizes in bytes.
        """
        return block_frame(self.subscribers)

    def __repr__(self) -> str:
        panics = f", {counted(len(self.panics), 'panic')}" if self.panics else ""
        oversize = f", {counted(self.oversize_blocks, 'block')} too large" if self.oversize_blocks else ""
        return f"<Run of {self.blocks} blocks: {self.delivery!r}, {self.invariants!r}{panics}{oversize}>"
