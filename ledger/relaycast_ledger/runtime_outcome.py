"""What the blocks of real runtimes come to in a run: their proofs of validity, by storage item."""

from msgspec import Struct

from relaycast_ledger.spreads import FullBlock, Share, Spread


class ItemCost(Struct, frozen=True, kw_only=True):
    """What one storage item took of a runtime's blocks, all of them together.

    A node that several items of a pallet need counts as the pallet's item ``shared``, one that several pallets need as
    ``trie.shared``. The ``proof_bytes`` of all items therefore add up.
    """

    pallet: str
    item: str
    blocks: int
    """Blocks that read or wrote it."""

    reads: int
    writes: int
    proof_bytes: int

    @property
    def name(self) -> str:
        """The item as metadata has it; an item without a name is a pallet's, or a key of its own."""
        return f"{self.pallet}.{self.item}" if self.pallet and self.item else self.pallet or self.item


class RuntimeOutcome(Struct, frozen=True, kw_only=True):
    """What the blocks of one parachain with a real runtime cost."""

    para_id: int
    name: str
    spec_name: str
    spec_version: int
    blocks: int
    refused_blocks: int
    """Blocks that its code did not build, or whose messages the relay chain refuses."""

    extrinsics: int
    failed_extrinsics: int
    """Extrinsics whose call failed."""

    left_out: int
    """Extrinsics beside them that were submitted, and that its code does not take."""

    waiting: int
    """Extrinsics for later blocks than those that were built."""

    upward_messages: int
    published: int
    """Values that the relay chain published for it."""

    refused_messages: int
    """Upward messages that failed on the relay chain."""

    relay_proof_bytes: Spread
    own_proof_bytes: Spread
    """Nodes of its own state that a block reads and rewrites, in full."""

    own_compact_bytes: Spread
    """The same as the compact proof that a block carries."""

    pov_bytes: Spread
    """Everything that a block carries, before compression."""

    compressed_bytes: Spread
    """The same as the relay chain gets it; it decides whether a block fits."""

    pov_share: Share
    compressed_share: Share
    oversize_blocks: int
    fullest_block: FullBlock | None
    by_item: list[ItemCost]
    """``own_proof_bytes`` of all blocks, the item that takes most first."""


class RuntimePoint(Struct, frozen=True):
    """One block of a real runtime, for charts."""

    block: int
    relay_proof_bytes: int
    own_proof_bytes: int
    own_compact_bytes: int
    pov_bytes: int
    compressed_bytes: int
    carried_relay_bytes: int
    """Part of ``pov_bytes``: nodes of the relay proof that the block's extrinsics hold."""
