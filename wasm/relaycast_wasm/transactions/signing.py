"""Keys that sign transactions for real runtimes, among them those of development chains: ``//Alice`` and the others.

A signature follows from key and payload, so that the block which carries it has the same hash each time it is built.
"""

from dataclasses import dataclass, field
from typing import Literal

import sr25519
from nacl.signing import SigningKey

from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import encode_bytes
from relaycast_wasm.transactions import schnorrkel

Scheme = Literal["ed25519", "sr25519"]
VARIANTS = {"ed25519": b"\x00", "sr25519": b"\x01"}
"""sp-runtime ``MultiSignature``."""

DEV_SEED = bytes.fromhex("fac7959dbfe72f052e5a0c3c8d6530f202b02fd8f9f5ca3580ec8deb7797479e")
"""The secret that sp-core's development phrase stands for ("bottom drive obey lake ..."): it protects nothing."""

CHAIN_CODE_BYTES = 32
SEED_BYTES = 32


@dataclass(frozen=True, slots=True)
class Signer:
    """A key that signs; its account is the ``public`` key."""

    scheme: Scheme
    public: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def from_seed(cls, seed: bytes, scheme: Scheme = "sr25519") -> "Signer":
        """Return the key of a secret of 32 bytes."""
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes, got {len(seed)}")
        if scheme == "ed25519":
            return cls(scheme, bytes(SigningKey(seed).verify_key), seed)
        return cls(scheme, *sr25519.pair_from_seed(seed))

    @classmethod
    def dev(cls, name: str, scheme: Scheme = "sr25519") -> "Signer":
        """Return the key of ``//name``."""
        code = encode_bytes(name.encode())
        code = blake2_256(code) if len(code) > CHAIN_CODE_BYTES else code.ljust(CHAIN_CODE_BYTES, b"\x00")
        if scheme == "ed25519":
            return cls.from_seed(blake2_256(encode_bytes(b"Ed25519HDKD") + DEV_SEED + code), scheme)
        public, secret = sr25519.pair_from_seed(DEV_SEED)
        return cls(scheme, *sr25519.hard_derive_keypair((code, public, secret), b"")[1:])

    def sign(self, payload: bytes) -> bytes:
        """Return the 64 bytes of a signature."""
        if self.scheme == "ed25519":
            return bytes(SigningKey(self.secret).sign(payload).signature)
        return schnorrkel.sign(self.public, self.secret, payload)

    def multi_signature(self, payload: bytes) -> bytes:
        """Return a signature as transactions carry it: behind the variant of its scheme."""
        return VARIANTS[self.scheme] + self.sign(payload)
