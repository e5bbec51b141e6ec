"""What a block holds beside messages where somebody asks for it: inherents, extrinsics, and what clients read of them.

A chain without a body executes messages and calls alone, and its header commits to no extrinsics but messages.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from relaycast_collator.header import DigestItem
from relaycast_pallets.parachain_system.pallet import ParachainInherentData


class ClosedBody(Struct, frozen=True):
    """What a header says of its block's body; ``logs`` where given take the place of those that its author knew."""

    extrinsics_root: bytes
    logs: tuple[DigestItem, ...] | None = None


class BlockBody(Protocol):
    """Takes part in a block: ``open``, then ``apply``, then ``close``; a block that panics is not closed."""

    @property
    def writes_consensus(self) -> bool:
        """Whether it writes the relay chain's slot and randomness itself."""
        ...

    def open(self, number: int, parent_hash: bytes, logs: Sequence[DigestItem]) -> None:
        """Begin a block whose number and parent are in the state; ``logs`` are those that its author knows now."""
        ...

    def apply(self, inherent: ParachainInherentData | None = None) -> None:
        """Apply inherents and extrinsics; a parachain has taken its ``inherent`` over already."""
        ...

    def close(self) -> ClosedBody:
        """Write what clients read of the block, and return what its header says of it."""
        ...
