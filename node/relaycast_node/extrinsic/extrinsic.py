"""Extrinsics as bytes (sp-runtime ``UncheckedExtrinsic``): a call, bare or signed.

An extrinsic is a ``Vec<u8>``: a compact length, then a byte that says what follows. ``04`` and ``05`` is a bare call,
``84`` an address, a signature and the extra before the call. A general transaction (``45``) is refused by name.

A signature covers the call, the extra, and what both sides know without being told (``Implicit``). A payload of more
than 256 bytes is hashed before it is signed. Which call the bytes are, and where they end, is for a runtime to say.
"""

from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum

from relaycast_node.extrinsic.accounts import KeyPair
from relaycast_node.extrinsic.era import IMMORTAL, Era, decode_era
from relaycast_node.extrinsic.signature import MultiAddress, MultiSignature
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact, encode_option, encode_u8, encode_u32
from relaycast_xcm.primitives import U32_MAX

U128_MAX = (1 << 128) - 1

LONGEST_SIGNED_PAYLOAD = 256
"""A longer payload is hashed before it is signed (sp-runtime ``SignedPayload``)."""


LARGEST_BARE = 0x3F
"""The first byte of a bare extrinsic has nothing in its high two bits."""


class Preamble(IntEnum):
    """The first byte of an extrinsic: a version in the low six bits, what follows in the high two."""

    BARE_V4 = 0x04
    BARE_V5 = 0x05
    SIGNED_V4 = 0x84
    GENERAL_V5 = 0x45


class MetadataHashMode(IntEnum):
    """Whether the payload holds the hash of the metadata (``CheckMetadataHash``)."""

    DISABLED = 0
    ENABLED = 1


@dataclass(frozen=True, slots=True)
class Extra:
    """What a signed extrinsic says beside its call: ``CheckMortality``, ``CheckNonce``, the tip, the mode.

    The other extensions (``metadata/signed_extensions.py``) have no bytes here.
    """

    nonce: int
    _: KW_ONLY
    era: Era = IMMORTAL
    tip: int = 0
    mode: MetadataHashMode = MetadataHashMode.DISABLED

    def __post_init__(self) -> None:
        if not 0 <= self.nonce <= U32_MAX:
            raise ValueError(f"a nonce is a u32, got {self.nonce}")
        if not 0 <= self.tip <= U128_MAX:
            raise ValueError(f"a tip is a u128, got {self.tip}")

    def encode(self) -> bytes:
        return self.era.encode() + encode_compact(self.nonce) + encode_compact(self.tip) + encode_u8(self.mode)

    @classmethod
    def decode(cls, reader: ScaleReader) -> "Extra":
        era = decode_era(reader)
        nonce = _bounded(reader, U32_MAX, "nonce", "u32")
        tip = _bounded(reader, U128_MAX, "tip", "u128")
        start = reader.offset
        mode = reader.u8()
        if mode > max(MetadataHashMode):
            raise CodecError(f"the mode of CheckMetadataHash is 0 or 1, got {mode}", start)
        return cls(nonce, era=era, tip=tip, mode=MetadataHashMode(mode))


def _bounded(reader: ScaleReader, largest: int, what: str, type_name: str) -> int:
    start = reader.offset
    number = reader.compact()
    if number > largest:
        raise CodecError(f"a {what} is a {type_name}, got {number}", start)
    return number


@dataclass(frozen=True, slots=True)
class Implicit:
    """What a signature covers and no extrinsic holds; ``birth_hash`` is that of the block at which the era began."""

    spec_version: int
    transaction_version: int
    genesis_hash: bytes
    birth_hash: bytes
    metadata_hash: bytes | None = None

    def encode(self) -> bytes:
        versions = encode_u32(self.spec_version) + encode_u32(self.transaction_version)
        return versions + self.genesis_hash + self.birth_hash + encode_option(self.metadata_hash)


def signing_payload(call: bytes, extra: Extra, implicit: Implicit) -> bytes:
    """Return the bytes that are signed: the payload, or its Blake2b-256 hash where it has more than 256 bytes."""
    payload = call + extra.encode() + implicit.encode()
    return blake2_256(payload) if len(payload) > LONGEST_SIGNED_PAYLOAD else payload


@dataclass(frozen=True, slots=True)
class Bare:
    """A call that nobody signed: an inherent, or a transaction that would have to be valid without a signer."""

    call: bytes
    version: int = field(default=4, kw_only=True)

    def __post_init__(self) -> None:
        if self.version not in (4, 5):
            raise ValueError(f"a bare extrinsic has version 4 or 5, got {self.version}")

    def encode(self) -> bytes:
        return encode_bytes(encode_u8(self.version) + self.call)


@dataclass(frozen=True, slots=True)
class Signed:
    """A call in the name of ``address``."""

    address: MultiAddress
    signature: MultiSignature
    extra: Extra
    call: bytes

    def encode(self) -> bytes:
        signed = self.address.encode() + self.signature.encode() + self.extra.encode()
        return encode_bytes(encode_u8(Preamble.SIGNED_V4) + signed + self.call)


Extrinsic = Bare | Signed


def sign(pair: KeyPair, call: bytes, extra: Extra, implicit: Implicit) -> Signed:
    """Return ``call`` signed by ``pair``."""
    signature = pair.sign(signing_payload(call, extra, implicit))
    return Signed(MultiAddress.of(pair.account), signature, extra, call)


def extrinsic_hash(data: bytes) -> bytes:
    """Return the hash by which clients know an extrinsic: of its bytes, the length included."""
    return blake2_256(data)


def take_extrinsic(data: bytes) -> bytes:
    """Return what the length in front of an extrinsic announces; refuse fewer bytes, and more.

    This is all that a node looks at before its runtime does (sp-runtime ``OpaqueExtrinsic``).
    """
    reader = ScaleReader(data)
    length = _bounded(reader, U32_MAX, "length", "u32")
    if length != reader.remaining:
        raise CodecError(f"the extrinsic announces {length} bytes, {reader.remaining} follow", 0)
    return reader.take(length)


def is_bare(data: bytes) -> bool:
    """Return whether an extrinsic with its length in front is a call that nobody signed, whatever its version."""
    return take_extrinsic(data)[:1] <= bytes([LARGEST_BARE])


def decode_extrinsic(data: bytes) -> Extrinsic:
    """Decode an extrinsic with its length in front; raises ``CodecError`` unless it is bare (V4, V5) or signed (V4)."""
    take_extrinsic(data)
    reader = ScaleReader(data)
    reader.compact()
    start = reader.offset
    match reader.u8():
        case Preamble.BARE_V4 | Preamble.BARE_V5 as bare:
            return Bare(reader.take(reader.remaining), version=bare)
        case Preamble.SIGNED_V4:
            address = MultiAddress.decode(reader)
            signature = MultiSignature.decode(reader)
            return Signed(address, signature, Extra.decode(reader), reader.take(reader.remaining))
        case Preamble.GENERAL_V5:
            raise CodecError("a general transaction (0x45) is not accepted, expected a signed one (0x84)", start)
        case other:
            raise CodecError(f"an extrinsic starts with 0x04, 0x05 or 0x84, got 0x{other:02x}", start)
