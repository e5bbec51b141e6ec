"""Who signed an extrinsic, and whether the signature holds (sp-runtime ``MultiAddress`` and ``MultiSignature``).

An sr25519 or ed25519 account is its public key. An ECDSA account is the Blake2b-256 hash of the compressed public key,
which verification recovers from the signature. ECDSA signs the Blake2b-256 hash of the payload, the others sign the
payload itself, sr25519 in Substrate's context (``b"substrate"``).
"""

from dataclasses import dataclass
from enum import IntEnum

import sr25519

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_u8

ACCOUNT_BYTES = 32


class AddressKind(IntEnum):
    """The variants of ``MultiAddress``."""

    ID = 0
    INDEX = 1
    RAW = 2
    ADDRESS32 = 3
    ADDRESS20 = 4


ADDRESS_BYTES = {
    AddressKind.ID: ACCOUNT_BYTES,
    AddressKind.INDEX: 0,
    AddressKind.ADDRESS32: 32,
    AddressKind.ADDRESS20: 20,
}
"""How many bytes follow each variant's number; those of ``RAW`` have a length. An index is ``()``, as on Polkadot."""


@dataclass(frozen=True, slots=True)
class MultiAddress:
    """``MultiAddress<AccountId32, ()>``: only an account's ``ID`` resolves to an account."""

    kind: AddressKind
    value: bytes

    def __post_init__(self) -> None:
        size = ADDRESS_BYTES.get(self.kind)
        if size is not None and len(self.value) != size:
            raise ValueError(f"an address of kind {self.kind.name} has {size} bytes, got {len(self.value)}")

    @classmethod
    def of(cls, account: bytes) -> "MultiAddress":
        """Return the address of an account."""
        return cls(AddressKind.ID, account)

    @property
    def account(self) -> bytes | None:
        """The account, ``None`` for every kind but ``ID`` (frame-system ``AccountIdLookup``)."""
        return self.value if self.kind is AddressKind.ID else None

    def encode(self) -> bytes:
        return encode_u8(self.kind) + (encode_bytes(self.value) if self.kind is AddressKind.RAW else self.value)

    @classmethod
    def decode(cls, reader: ScaleReader) -> "MultiAddress":
        start = reader.offset
        number = reader.u8()
        if number > max(AddressKind):
            raise CodecError(f"a MultiAddress starts with 0 to 4, got {number}", start)
        kind = AddressKind(number)
        return cls(kind, reader.bytes_() if kind is AddressKind.RAW else reader.take(ADDRESS_BYTES[kind]))


class Scheme(IntEnum):
    """The kinds of keys, by their variant of ``MultiSignature``."""

    ED25519 = 0
    SR25519 = 1
    ECDSA = 2


SIGNATURE_BYTES = {Scheme.ED25519: 64, Scheme.SR25519: 64, Scheme.ECDSA: 65}


@dataclass(frozen=True, slots=True)
class MultiSignature:
    """The bytes of a signature and the kind of key that made them."""

    scheme: Scheme
    data: bytes

    def __post_init__(self) -> None:
        if len(self.data) != SIGNATURE_BYTES[self.scheme]:
            wanted = SIGNATURE_BYTES[self.scheme]
            raise ValueError(f"a signature of {self.scheme.name} has {wanted} bytes, got {len(self.data)}")

    def encode(self) -> bytes:
        return encode_u8(self.scheme) + self.data

    @classmethod
    def decode(cls, reader: ScaleReader) -> "MultiSignature":
        start = reader.offset
        number = reader.u8()
        if number > max(Scheme):
            raise CodecError(f"a MultiSignature starts with 0, 1 or 2, got {number}", start)
        return cls(Scheme(number), reader.take(SIGNATURE_BYTES[Scheme(number)]))


def verify(signature: MultiSignature, payload: bytes, account: bytes) -> bool:
    """Return whether ``account`` made ``signature`` over ``payload``; a malformed key or signature does not hold."""
    match signature.scheme:
        case Scheme.SR25519:
            return _verify_sr25519(signature.data, payload, account)
        case Scheme.ED25519:
            from relaycast_node.extrinsic import ed25519  # noqa: PLC0415 - few clients sign with it

            return ed25519.verify(signature.data, payload, account)
        case Scheme.ECDSA:
            from relaycast_node.extrinsic import ecdsa  # noqa: PLC0415 - few clients sign with it

            return ecdsa.verify(signature.data, payload, account)


def _verify_sr25519(signature: bytes, payload: bytes, account: bytes) -> bool:
    try:
        return bool(sr25519.verify(signature, payload, account))
    except ValueError:
        return False
