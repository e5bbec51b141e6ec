"""What a relay chain's validators do with a parachain's block: run its own ``validate_block`` over the proof alone.

The block goes as ``ParachainBlockData`` with a compact proof of the parachain's own state: header, extrinsics and proof
in a row. For runtimes whose ``CollectCollationInfo`` is of version 3 they stand behind a prefix and a version
(cumulus).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from relaycast_collator.header import Header
from relaycast_pallets.parachain_system.inbound_messages import MessagesTaken
from relaycast_trie import CompactProof, StorageProof
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_u8, encode_u32, encode_vec
from relaycast_wasm.blocks.collation import CollationInfo, read_messages, read_outbound
from relaycast_wasm.blocks.runtime_calls import api_id
from relaycast_wasm.chain import BuiltBlock
from relaycast_wasm.engine.limits import DEFAULT_LIMITS, Limits
from relaycast_wasm.runtime import WasmRuntime, empty_overlay

VERSIONED = b"VERSIONEDPBD"
"""What stands in front of block data with a version (``VERSIONED_PARACHAIN_BLOCK_DATA_PREFIX``)."""

FIRST_VERSIONED = 3
"""The version of ``CollectCollationInfo`` from which on a runtime takes block data with a version."""


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """What ``validate_block`` answers: the new head, and what the block tells the relay chain."""

    head_data: bytes
    info: CollationInfo

    @classmethod
    def decode(cls, data: bytes) -> "ValidationResult":
        """Return what the bytes encode; raises ``CodecError``."""
        reader = ScaleReader(data)
        head = reader.bytes_()
        code = reader.bytes_() if reader.option() else None
        upward, horizontal = read_messages(reader), read_outbound(reader)
        taken = MessagesTaken(reader.u32(), reader.u32())
        reader.done()
        return cls(head, CollationInfo(upward, horizontal, code, taken))


def block_data(runtime: WasmRuntime, header: Header, extrinsics: Iterable[bytes], proof: CompactProof) -> bytes:
    """Return a block with the proof of its own state, in the newest form that ``runtime`` takes."""
    block = header.encode() + encode_vec(extrinsics)
    if runtime.version.apis.get(api_id("CollectCollationInfo"), 1) < FIRST_VERSIONED:
        return block + proof.to_bytes()
    return VERSIONED + encode_u8(1) + encode_vec([block]) + proof.to_bytes()


def validate_block(
    runtime: WasmRuntime,
    parent: Header,
    block: BuiltBlock,
    *,
    relay_parent_number: int,
    relay_parent_root: bytes,
    proof: StorageProof | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> ValidationResult:
    """Let the parachain's ``runtime`` validate a block on ``parent`` by its own proof, or by another ``proof``.

    Raises ``CallFailed`` where it refuses, and what ``CompactProof.encode`` raises for a proof without its root.
    """
    compact = CompactProof.encode(block.own_proof if proof is None else proof, parent.state_root)
    data = block_data(runtime, block.header, block.extrinsics, compact)
    parameters = encode_bytes(parent.encode()) + encode_bytes(data)
    parameters += encode_u32(relay_parent_number) + relay_parent_root
    answer = runtime.call("validate_block", parameters, empty_overlay(), limits=limits)
    return ValidationResult.decode(answer.output)
