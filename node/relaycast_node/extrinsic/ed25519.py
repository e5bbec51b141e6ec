"""Ed25519 by libsodium. Loaded when somebody signs with it, because the library takes its time."""

from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey


def public_key(seed: bytes) -> bytes:
    """Return the public key of a secret of 32 bytes."""
    return bytes(SigningKey(seed).verify_key)


def sign(seed: bytes, payload: bytes) -> bytes:
    """Return the signature of ``payload``, 64 bytes."""
    return bytes(SigningKey(seed).sign(payload).signature)


def verify(signature: bytes, payload: bytes, account: bytes) -> bool:
    """Return whether ``account`` made ``signature``; a malformed key does not."""
    try:
        VerifyKey(account).verify(payload, signature)
    except (CryptoError, ValueError):
        return False
    return True
