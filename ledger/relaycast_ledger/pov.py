"""A block's proof of validity (PoV): its bytes as a collator sends them, and whether the relay chain takes them.

A PoV is SCALE ``ParachainBlockData`` (cumulus): the header, the extrinsics with the ``set_validation_data`` inherent,
and the parachain's own state as a compact proof. A collator compresses it with zstd; the relay chain refuses a PoV
whose compressed bytes exceed ``max_pov_size``. Law: ``pov_bytes`` are before compression and ``compressed_bytes`` after
it; only the latter decide. A block's computation time has a limit of its own.

Modelled: no other inherent (a timestamp takes 11 bytes).
"""

from functools import cache
from typing import Any

from msgspec import Struct

from relaycast_collator.parachain import ParachainBlock
from relaycast_collator.wasm_parachain import WasmBlock
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_trie.proofs.compact_proof import CompactProof
from relaycast_trie.scale import encode_bytes, encode_compact, encode_vec

ZSTD_PREFIX = bytes([82, 188, 83, 118, 70, 219, 142, 5])
"""What a compressed blob begins with (sp-maybe-compressed-blob)."""

COMPRESSION_LEVEL = 3
"""Level of zstd at which sp-maybe-compressed-blob compresses a PoV."""

MAX_BLOCK_REF_TIME = 2_000_000_000_000
"""Picoseconds that a parachain block may take: two seconds of execution (cumulus ``MAXIMUM_BLOCK_WEIGHT``)."""

BARE_EXTRINSIC = 5
PARACHAIN_SYSTEM, SET_VALIDATION_DATA = 1, 0
"""The pallet's index in the parachain template, and the call's index in the pallet."""

NO_RELAY_PARENT_DESCENDANTS, NO_COLLATOR_PEER = b"\x00", b"\x00"


class PovSize(Struct, frozen=True, kw_only=True):
    """What a block carries, in bytes, and the computation time it takes, in picoseconds; each with its limit."""

    pov_bytes: int
    """The encoded ``ParachainBlockData``, before compression."""

    compressed_bytes: int | None
    """The PoV as the relay chain gets it; ``None`` where it fits whatever compression makes of it, and nobody asked."""

    own_bytes: int
    """Part of ``pov_bytes``: the parachain's own state as a compact proof."""

    message_bytes: int
    """Part of ``pov_bytes``: messages, in full and hashed."""

    max_pov_bytes: int
    ref_time: int
    """Weight of the pass, of callbacks, and of what the subscriptions declare."""

    max_ref_time: int = MAX_BLOCK_REF_TIME
    callback_bytes: int = 0
    """Part of ``pov_bytes``: proof size that callbacks returned. Modelled, and assumed incompressible."""

    @property
    def is_oversize(self) -> bool:
        """Whether the relay chain would refuse the block."""
        return self.sent_bytes > self.max_pov_bytes or self.ref_time > self.max_ref_time

    @property
    def is_large(self) -> bool:
        """Whether the block fits only because it is compressed: a warning."""
        return self.pov_bytes > self.max_pov_bytes and not self.is_oversize

    @property
    def load(self) -> float:
        """How much of its limit the block takes, in the dimension that decides; above 1 it is refused."""
        return max(self.sent_bytes / self.max_pov_bytes, self.ref_time / self.max_ref_time)

    @property
    def sent_bytes(self) -> int:
        """The compressed bytes, or, where they are not known, those before compression."""
        return self.pov_bytes if self.compressed_bytes is None else self.compressed_bytes

    def __repr__(self) -> str:
        sizes = f"{self.pov_bytes:,} bytes, {self.sent_bytes:,} as it is sent, of {self.max_pov_bytes:,}"
        return f"<PovSize {sizes}{', oversize' if self.is_oversize else ''}>"


def pov_size(
    block: ParachainBlock, *, own_root: bytes, ref_time: int, callback_bytes: int = 0, compresses: bool = True
) -> PovSize:
    """Return the size of the block's PoV; ``own_root`` is the state root of its parent.

    Without ``compresses`` only a PoV that may not fit is compressed.
    """
    own, messages = own_state(block, own_root), _messages(block.inherent)
    data, most = _joined(block, messages, own), block.inherent.validation_data.max_pov_size
    compresses = compresses or _most_compressed(len(data)) + callback_bytes > most
    return PovSize(
        pov_bytes=len(data) + callback_bytes,
        compressed_bytes=len(compressed(data)) + callback_bytes if compresses else None,
        own_bytes=len(own),
        message_bytes=sum(map(len, messages)),
        max_pov_bytes=most,
        ref_time=ref_time,
        callback_bytes=callback_bytes,
    )


def wasm_pov_size(block: WasmBlock, *, own_root: bytes, max_pov_bytes: int) -> PovSize:
    """Return the size of a Wasm block's PoV; its extrinsics include messages, and its computation time is unknown."""
    own = own_state(block, own_root)
    data = b"".join([block.header.encode(), encode_vec(block.extrinsics), own])
    return PovSize(
        pov_bytes=len(data),
        compressed_bytes=len(compressed(data)),
        own_bytes=len(own),
        message_bytes=0,
        max_pov_bytes=max_pov_bytes,
        ref_time=0,
    )


def block_data(block: ParachainBlock, *, own_root: bytes) -> bytes:
    """Return the block as SCALE ``ParachainBlockData``: header, extrinsics, own state."""
    return _joined(block, _messages(block.inherent), own_state(block, own_root))


def compressed(data: bytes) -> bytes:
    """Return the PoV of this block data as it is sent: SCALE ``Vec<u8>`` of a prefix and a zstd frame."""
    return encode_bytes(ZSTD_PREFIX + _zstd().compress(data, asbytes=True))


def own_state(block: ParachainBlock | WasmBlock, own_root: bytes) -> bytes:
    """Return the nodes of the own state that the block carries as a SCALE ``CompactProof``."""
    proof = block.own_proof
    if not len(proof):
        return encode_vec([])
    compacted = proof.compacted()
    if compacted is not None:
        return compacted
    nodes = proof.by_hash() if proof.recorded is None else proof.recorded
    return CompactProof.of_nodes(nodes, own_root).to_bytes()


def _most_compressed(size: int) -> int:
    """Return the most that compression makes of that many bytes (zstd ``ZSTD_compressBound``), as it is sent."""
    return size + (size >> 8) + (1 << 6) + len(ZSTD_PREFIX) + 4


def _joined(block: ParachainBlock, messages: list[bytes], own: bytes) -> bytes:
    """Return the block's data, whose one extrinsic is ``set_validation_data``; long messages are copied once."""
    inherent = block.inherent
    call = [
        bytes([BARE_EXTRINSIC, PARACHAIN_SYSTEM, SET_VALIDATION_DATA]),
        inherent.validation_data.encode(),
        encode_vec(map(encode_bytes, inherent.relay_chain_state)),
        NO_RELAY_PARENT_DESCENDANTS,
        NO_COLLATOR_PEER,
        *messages,
    ]
    one_extrinsic = encode_compact(1) + encode_compact(sum(map(len, call)))
    return b"".join([block.header.encode(), one_extrinsic, *call, own])


def _messages(inherent: ParachainInherentData) -> list[bytes]:
    """Return the messages as the parts of SCALE ``InboundMessagesData``: downward ones, then horizontal ones."""
    return [inherent.downward_messages.encode(), inherent.horizontal_messages.encode()]


@cache
def _zstd() -> Any:
    import pyarrow as pa  # noqa: PLC0415 - slow to load

    return pa.Codec("zstd", compression_level=COMPRESSION_LEVEL)
