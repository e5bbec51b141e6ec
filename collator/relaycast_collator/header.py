"""A block's header as Substrate encodes it, the logs in it, and what a body beside messages does to a block.

The Blake2b-256 hash of a header is the block's. What cannot be encoded cannot be made: a header whose parts have the
wrong sizes is a ``ValueError``. Sizes and encodings of logs are exact. Modelled are the slots (one a relay block), the
authority of a relay block, and the signature in a parachain's seal, which follows from its header and so from the seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol

from msgspec import Struct

from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_trie import EMPTY_ROOT, StateVersion, blake2_256, trie_root
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact, encode_u32, encode_u64, encode_vec
from relaycast_xcm import ParaId
from relaycast_xcm.primitives import U32_MAX

OTHER, CONSENSUS, SEAL, PRE_RUNTIME, RUNTIME_ENVIRONMENT_UPDATED = 0, 4, 5, 6, 8
ENGINE_ITEMS = frozenset({CONSENSUS, SEAL, PRE_RUNTIME})
ALL_ITEMS = ENGINE_ITEMS | {OTHER, RUNTIME_ENVIRONMENT_UPDATED}
ENGINE_BYTES, HASH_BYTES = 4, 32


class DigestItem(Struct, frozen=True):
    """One log of a header (sp-runtime ``DigestItem``): variant, data, and a four-byte engine id where it has one."""

    variant: int
    data: bytes = b""
    engine: bytes = b""

    def __post_init__(self) -> None:
        if self.variant not in ALL_ITEMS:
            raise ValueError(f"no digest item has the variant {self.variant}")
        if len(self.engine) != (ENGINE_BYTES if self.variant in ENGINE_ITEMS else 0):
            raise ValueError(f"consensus items have an engine of four bytes and others have none, got {self.engine!r}")
        if self.data and self.variant == RUNTIME_ENVIRONMENT_UPDATED:
            raise ValueError("a digest item that tells of a runtime upgrade has no data")

    @classmethod
    def read(cls, reader: ScaleReader) -> "DigestItem":
        """Return the item that begins where ``reader`` stands; raises ``CodecError``."""
        start = reader.offset
        variant = reader.u8()
        if variant == RUNTIME_ENVIRONMENT_UPDATED:
            return cls(variant)
        if variant in ENGINE_ITEMS:
            engine = reader.take(ENGINE_BYTES)
            return cls(variant, reader.bytes_(), engine)
        if variant == OTHER:
            return cls(variant, reader.bytes_())
        raise CodecError(f"no digest item has the variant {variant}", start)

    @classmethod
    def pre_runtime(cls, engine: bytes, data: bytes) -> "DigestItem":
        return cls(PRE_RUNTIME, data, engine)

    @classmethod
    def consensus(cls, engine: bytes, data: bytes) -> "DigestItem":
        return cls(CONSENSUS, data, engine)

    @classmethod
    def seal(cls, engine: bytes, data: bytes) -> "DigestItem":
        return cls(SEAL, data, engine)

    def encode(self) -> bytes:
        if self.variant == RUNTIME_ENVIRONMENT_UPDATED:
            return bytes([self.variant])
        return bytes([self.variant]) + self.engine + encode_bytes(self.data)


@dataclass(frozen=True)
class Header:
    """A block's header: parent, number, state, extrinsics, digest. It is encoded and hashed once."""

    parent_hash: bytes
    number: int
    state_root: bytes
    extrinsics_root: bytes = EMPTY_ROOT
    digest: tuple[DigestItem, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.number <= U32_MAX:
            raise ValueError(f"a block's number is a u32, got {self.number}")
        for digest in (self.parent_hash, self.state_root, self.extrinsics_root):
            if len(digest) != HASH_BYTES:
                raise ValueError(f"a hash has {HASH_BYTES} bytes, got {len(digest)}")

    def encode(self) -> bytes:
        return self._encoded

    @cached_property
    def _encoded(self) -> bytes:
        roots = self.state_root + self.extrinsics_root
        return (
            self.parent_hash + encode_compact(self.number) + roots + encode_vec(item.encode() for item in self.digest)
        )

    @classmethod
    def decode(cls, data: bytes) -> "Header":
        """Return the header that all of ``data`` encodes; raises ``CodecError``."""
        reader = ScaleReader(data)
        header = cls.read(reader)
        reader.done()
        return header

    @classmethod
    def read(cls, reader: ScaleReader) -> "Header":
        """Return the header that begins where ``reader`` stands; raises ``CodecError``."""
        start = reader.offset
        parent_hash, number = reader.take(HASH_BYTES), reader.compact()
        if number > U32_MAX:
            raise CodecError(f"a block's number is a u32, got {number}", start + HASH_BYTES)
        state_root, extrinsics_root = reader.take(HASH_BYTES), reader.take(HASH_BYTES)
        digest = tuple(DigestItem.read(reader) for _ in range(reader.length()))
        return cls(parent_hash, number, state_root, extrinsics_root, digest)

    @cached_property
    def hash(self) -> bytes:
        """The block's hash."""
        return blake2_256(self._encoded)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return f"<Header #{self.number} 0x{self.hash.hex()}>"


def ordered_root(items: list[bytes], *, state_version: StateVersion = StateVersion.V0) -> bytes:
    """Return the root of the trie of ``items`` under their compact indices: a block's extrinsics root."""
    return trie_root({encode_compact(index): item for index, item in enumerate(items)}, state_version=state_version)


BABE, AURA, RPSR = b"BABE", b"aura", b"RPSR"
"""Engine ids: of the relay chain's consensus, of a parachain's, and of relay-parent storage roots (cumulus)."""

SECONDARY_PLAIN = b"\x02"
"""The variant of sp-consensus-babe's ``PreDigest`` without a VRF output."""

MODELLED_AUTHORITIES = 600
SIGNATURE_BYTES = 64


def babe_pre_digest(*, authority_index: int, slot: int) -> DigestItem:
    """Return the log of a relay block built in a secondary slot: ``SecondaryPlainPreDigest``, 13 bytes of data."""
    return DigestItem.pre_runtime(BABE, SECONDARY_PLAIN + encode_u32(authority_index) + encode_u64(slot))


def aura_pre_digest(*, slot: int) -> DigestItem:
    """Return the log of a parachain block built in ``slot``: a u64."""
    return DigestItem.pre_runtime(AURA, encode_u64(slot))


def relay_parent_storage_root_item(storage_root: bytes, number: int) -> DigestItem:
    """Return the log that names the relay parent: its state root and its number, compact (cumulus ``rpsr_digest``)."""
    return DigestItem.consensus(RPSR, storage_root + encode_compact(number))


def authority_of(seed: bytes, slot: int) -> int:
    """Return the modelled authority of a relay chain slot."""
    return int.from_bytes(blake2_256(seed + b"author" + encode_u64(slot))[:8], "little") % MODELLED_AUTHORITIES


def modelled_seal(para_id: ParaId, header: Header) -> DigestItem:
    """Return the seal of a header that is complete but for it: 64 bytes in the place of its author's signature.

    They follow from the parachain and the header's hash, so the same block always has the same seal.
    """
    author = blake2_256(b"collator" + para_id.encode())
    return DigestItem.seal(AURA, blake2b(header.hash, key=author, digest_size=SIGNATURE_BYTES).digest())


class ClosedBody(Struct, frozen=True):
    """The fields of a header that follow from the block's body; given ``logs`` replace those of its author."""

    extrinsics_root: bytes
    logs: tuple[DigestItem, ...] | None = None


class BlockBody(Protocol):
    """Takes part in a block: ``open``, then ``apply``, then ``close``; a block that panics is not closed.

    It brings inherents, extrinsics, and what clients read of them. A chain without a body executes messages and calls
    alone, and its header commits to no extrinsics but messages.
    """

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
