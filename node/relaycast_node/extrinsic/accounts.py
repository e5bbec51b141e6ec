"""Key pairs, and the accounts of a development chain: ``//Alice`` to ``//Ferdie``, each with a ``//stash``.

All of them derive from one phrase that everybody knows ("bottom drive obey lake curtain smoke basket hold race lonely
fit walk"), by hard junctions: these keys protect nothing.
"""

from dataclasses import dataclass, field
from functools import cache

import sr25519

from relaycast_node.extrinsic.signature import MultiSignature, Scheme
from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import encode_bytes, encode_u64
from relaycast_xcm.primitives import U64_MAX

DEV_SEED = bytes.fromhex("fac7959dbfe72f052e5a0c3c8d6530f202b02fd8f9f5ca3580ec8deb7797479e")
"""The secret that sp-core's development phrase stands for (its BIP-39 entropy, hashed without a password)."""

DEV_NAMES = ("Alice", "Bob", "Charlie", "Dave", "Eve", "Ferdie")

STASH = "stash"

CHAIN_CODE_BYTES = 32


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A key that signs: its ``scheme``, its ``public`` key (33 bytes for ECDSA, otherwise 32) and its secret."""

    scheme: Scheme
    public: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def from_seed(cls, seed: bytes, scheme: Scheme = Scheme.SR25519) -> "KeyPair":
        """Return the pair of a secret of 32 bytes."""
        if len(seed) != 32:
            raise ValueError(f"a seed has 32 bytes, got {len(seed)}")
        match scheme:
            case Scheme.SR25519:
                return cls(scheme, *sr25519.pair_from_seed(seed))
            case Scheme.ED25519:
                from relaycast_node.extrinsic import ed25519  # noqa: PLC0415 - few clients sign with it

                return cls(scheme, ed25519.public_key(seed), seed)
            case Scheme.ECDSA:
                from relaycast_node.extrinsic import ecdsa  # noqa: PLC0415 - few clients sign with it

                return cls(scheme, ecdsa.public_key(seed), seed)

    @classmethod
    def from_uri(cls, uri: str, scheme: Scheme = Scheme.SR25519) -> "KeyPair":
        """Return the pair that hard junctions such as ``//Alice//stash`` derive from the development phrase."""
        first, *junctions = uri.split("//")
        if first or not junctions or any(not junction or "/" in junction for junction in junctions):
            raise ValueError(f"a key is named by hard junctions such as //Alice or //Alice//stash, got '{uri}'")
        pair = cls.from_seed(DEV_SEED, scheme)
        for junction in junctions:
            pair = pair.derive(junction)
        return pair

    def derive(self, junction: str) -> "KeyPair":
        """Return the pair behind one hard junction of this one."""
        code = chain_code(junction)
        if self.scheme is Scheme.SR25519:
            _, public, secret = sr25519.hard_derive_keypair((code, self.public, self.secret), b"")
            return KeyPair(self.scheme, public, secret)
        seed = blake2_256(encode_bytes(HARD_DERIVATION[self.scheme]) + self.secret + code)
        return KeyPair.from_seed(seed, self.scheme)

    @property
    def account(self) -> bytes:
        """The account that this key controls."""
        return blake2_256(self.public) if self.scheme is Scheme.ECDSA else self.public

    def sign(self, payload: bytes) -> MultiSignature:
        """Sign ``payload``. Two sr25519 signatures of one payload differ: they hold random bytes."""
        return MultiSignature(self.scheme, self._signature_of(payload))

    def _signature_of(self, payload: bytes) -> bytes:
        match self.scheme:
            case Scheme.SR25519:
                return bytes(sr25519.sign((self.public, self.secret), payload))
            case Scheme.ED25519:
                from relaycast_node.extrinsic import ed25519  # noqa: PLC0415 - few clients sign with it

                return ed25519.sign(self.secret, payload)
            case Scheme.ECDSA:
                from relaycast_node.extrinsic import ecdsa  # noqa: PLC0415 - few clients sign with it

                return ecdsa.sign(self.secret, payload)


HARD_DERIVATION = {Scheme.ED25519: b"Ed25519HDKD", Scheme.ECDSA: b"Secp256k1HDKD"}
"""What sp-core hashes before the seed and the chain code."""


def chain_code(junction: str) -> bytes:
    """Return the 32 bytes of a junction: a number as u64, a name as a SCALE string, hashed where that is longer."""
    is_number = junction.isascii() and junction.isdecimal() and int(junction) <= U64_MAX
    encoded = encode_u64(int(junction)) if is_number else encode_bytes(junction.encode())
    return blake2_256(encoded) if len(encoded) > CHAIN_CODE_BYTES else encoded.ljust(CHAIN_CODE_BYTES, b"\x00")


@cache
def dev_account(name: str, scheme: Scheme = Scheme.SR25519, *, stash: bool = False) -> KeyPair:
    """Return the key pair of ``//name``, or of ``//name//stash``."""
    if name not in DEV_NAMES:
        raise ValueError(f"a development account is one of {', '.join(DEV_NAMES)}, got '{name}'")
    return KeyPair.from_uri(f"//{name}//{STASH}" if stash else f"//{name}", scheme)


def dev_accounts(scheme: Scheme = Scheme.SR25519) -> dict[str, KeyPair]:
    """Return all key pairs of a development chain by their junctions: ``//Alice``, ..., ``//Ferdie//stash``."""
    pairs = {f"//{name}": dev_account(name, scheme) for name in DEV_NAMES}
    return pairs | {f"//{name}//{STASH}": dev_account(name, scheme, stash=True) for name in DEV_NAMES}
