"""ECDSA over secp256k1. Loaded when somebody signs with it, because the library takes its time."""

from coincurve import PrivateKey, PublicKey

from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import encode_u8


def public_key(seed: bytes) -> bytes:
    """Return the compressed public key of a secret of 32 bytes."""
    return PrivateKey(seed).public_key.format(compressed=True)


def sign(seed: bytes, payload: bytes) -> bytes:
    """Return the recoverable signature of ``payload``, hashed with Blake2b-256: 65 bytes."""
    return PrivateKey(seed).sign_recoverable(blake2_256(payload), hasher=None)


def verify(signature: bytes, payload: bytes, account: bytes) -> bool:
    """Return whether ``account`` made ``signature``; a malformed one holds for nobody."""
    recovery_id = signature[64] - 27 if signature[64] > 26 else signature[64]  # Ethereum's 27 and 28 mean 0 and 1
    try:
        recoverable = signature[:64] + encode_u8(recovery_id)
        key = PublicKey.from_signature_and_message(recoverable, blake2_256(payload), hasher=None)
    except ValueError:
        return False
    return blake2_256(key.format(compressed=True)) == account
