"""A block header as Substrate encodes it; its Blake2b-256 hash is the block's.

What cannot be encoded cannot be made: a header whose parts have the wrong sizes is a ``ValueError``.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from msgspec import Struct

from relaycast_trie import EMPTY_ROOT, StateVersion, blake2_256, trie_root
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact, encode_vec
from relaycast_xcm.primitives import U32_MAX

OTHER, CONSENSUS, SEAL, PRE_RUNTIME, RUNTIME_ENVIRONMENT_UPDATED = 0, 4, 5, 6, 8
ENGINE_ITEMS = frozenset({CONSENSUS, SEAL, PRE_RUNTIME})
ENGINE_BYTES, HASH_BYTES = 4, 32


class DigestItem(Struct, frozen=True):
    """One log of a header (sp-runtime ``DigestItem``): variant, data, and a four-byte engine id where it has one."""

    variant: int
    data: bytes = b""
    engine: bytes = b""

    def __post_init__(self) -> None:
        if self.variant not in ENGINE_ITEMS | {OTHER, RUNTIME_ENVIRONMENT_UPDATED}:
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
