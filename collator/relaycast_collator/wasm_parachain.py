"""Parachains that run a supplied Wasm runtime, next to those that are modelled here.

A Wasm parachain has its own state and its own laws. The network gives it relay parents, takes its head and its
messages, and reports what it built.
"""

from typing import Protocol

from msgspec import Struct

from relaycast_collator.collator import RelayProver
from relaycast_collator.header import Header
from relaycast_collator.relay_chain import RelayBlock
from relaycast_pallets.frame.state import State, StateDump
from relaycast_pallets.parachain_system.inbound_messages import MessagesTaken
from relaycast_trie import StorageProof
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import U32, Dump, Version


class StorageItemShare(Struct, frozen=True):
    """What one storage item has to do with a block: keys read and written, and the bytes of the proof that are its."""

    pallet: str
    item: str
    reads: int
    writes: int
    proof_bytes: int


class ExtrinsicLeftOut(Struct, frozen=True):
    """An extrinsic that no block holds, and why; ``panicked`` where the code trapped at it."""

    extrinsic: bytes
    reason: str
    panicked: bool


class WasmBlock(Struct, frozen=True):
    """A block that a Wasm parachain built: header and body, and what they brought along."""

    header: Header
    extrinsics: tuple[bytes, ...]
    """Each with its length in front, as a block holds them."""

    results: tuple[bytes, ...]
    """What applying each extrinsic gave, an ``ApplyExtrinsicResult`` in SCALE."""

    relay_proof: StorageProof
    own_proof: StorageProof
    """The nodes of the Wasm parachain's own state that the block reads and rewrites."""

    shares: tuple[StorageItemShare, ...]
    """``own_proof`` by pallet and storage item; they add up to its bytes."""

    upward_messages: tuple[bytes, ...]
    taken: MessagesTaken
    log: tuple[str, ...] = ()
    left_out: tuple[ExtrinsicLeftOut, ...] = ()
    """Extrinsics that were submitted, and that the code does not take."""

    horizontal_messages: tuple[tuple[ParaId, bytes], ...] = ()
    """Messages to other parachains, each with who is to get it."""

    def __repr__(self) -> str:
        proofs = f"relay proof {self.relay_proof.proof_bytes:,} bytes, own proof {self.own_proof.proof_bytes:,} bytes"
        return f"<WasmBlock #{self.header.number}, {len(self.extrinsics)} extrinsics, {proofs}>"


class WasmParachainDump(Dump, frozen=True):
    """The state between two blocks; ``head`` is the header in SCALE, ``waiting`` are extrinsics that no block holds."""

    version: Version
    para_id: U32
    head: bytes
    state: StateDump
    waiting: list[bytes]


class BlockNotBuilt(RelaycastError, message="{reason}"):
    """A Wasm parachain built no block on its relay parent; it stays as it was. ``log`` is what its code said before."""

    reason: str
    log: tuple[str, ...] = ()


class WasmParachain(Protocol):
    """A parachain that runs a supplied Wasm runtime; between blocks ``state`` is that of ``head``."""

    @property
    def para_id(self) -> ParaId: ...

    @property
    def head(self) -> Header: ...

    @property
    def state(self) -> State: ...

    @property
    def spec_name(self) -> str:
        """What its code calls itself."""
        ...

    @property
    def spec_version(self) -> int: ...

    @property
    def max_pov_size(self) -> int:
        """The most bytes that the proof of validity of a block may have, compressed."""
        ...

    def submit(self, extrinsic: bytes) -> None:
        """Let the next block hold ``extrinsic``, its length in front, after those that wait already."""
        ...

    def build_block(self, relay_parent: RelayBlock, relay_chain: RelayProver) -> WasmBlock:
        """Build the next block on ``relay_parent``; raises ``BlockNotBuilt``, or ``StateDiscarded`` if that is gone."""
        ...

    def dump(self) -> WasmParachainDump:
        """Return where it stands between two blocks."""
        ...

    def load(self, dump: WasmParachainDump) -> None:
        """Stand where another Wasm parachain stood that was made like this one; raises ``CheckpointRefused``."""
        ...
