"""``ext_crypto_*``: signatures of the schemes that chains use, and the keys of this node.

Signatures that nobody made are no error: they do not hold. sr25519 signs in Substrate's context (``b"substrate"``);
ECDSA signs the Blake2b-256 hash of a message. Version 1 of ``sr25519_verify`` once took signatures in the form from
before schnorrkel's audit too; those do not hold here. Generated keys follow from their seed, or from the chain's.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple

import sr25519
from coincurve import PrivateKey, PublicKey
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_option, encode_vec
from relaycast_wasm.host.host_call import NONE, HostCall, HostRefusal
from relaycast_wasm.host.memory import U32
from relaycast_wasm.host.registry import declare, host_function

BAD_RS, BAD_V, BAD_SIGNATURE = 0, 1, 2
"""``EcdsaVerifyError``; version 3 gives -1, -2 and -3."""


class KeyScheme(NamedTuple):
    """One scheme: the sizes of its keys and signatures, and what makes and checks them."""

    name: str
    public_bytes: int
    signature_bytes: int
    public_of: Callable[[bytes], bytes]
    """Takes a secret of 32 bytes."""

    sign: Callable[[bytes, bytes], bytes]
    """Takes a secret and a message."""

    verify: Callable[[bytes, bytes, bytes], bool]
    """Takes a signature, a message and a public key."""


def verify_ed25519(signature: bytes, message: bytes, public: bytes) -> bool:
    try:
        VerifyKey(public).verify(message, signature)
    except (CryptoError, ValueError):
        return False
    return True


def verify_sr25519(signature: bytes, message: bytes, public: bytes) -> bool:
    try:
        return bool(sr25519.verify(signature, message, public))
    except ValueError:
        return False


def _sign_sr25519(secret: bytes, message: bytes) -> bytes:
    public, private = sr25519.pair_from_seed(secret)
    return bytes(sr25519.sign((public, private), message))


def verify_ecdsa(signature: bytes, message: bytes, public: bytes) -> bool:
    return verify_ecdsa_hash(signature, blake2_256(message), public)


def verify_ecdsa_hash(signature: bytes, message_hash: bytes, public: bytes) -> bool:
    found = recover(signature, message_hash)
    return isinstance(found, PublicKey) and found.format(compressed=True) == public


def recover(signature: bytes, message_hash: bytes, *, overflowing: bool = False) -> PublicKey | int:
    """Return who signed, or the number of an ``EcdsaVerifyError``; ``overflowing`` takes numbers beyond the order."""
    recovery_id = signature[64] - 27 if signature[64] > 26 else signature[64]
    if recovery_id > 3:
        return BAD_V
    parts = [int.from_bytes(signature[at : at + 32], "big") for at in (0, 32)]
    if overflowing:
        parts = [part % ORDER for part in parts]
    elif max(parts) >= ORDER:
        return BAD_RS
    plain = b"".join(part.to_bytes(32, "big") for part in parts)
    try:
        return PublicKey.from_signature_and_message(plain + bytes([recovery_id]), message_hash, hasher=None)
    except (ValueError, Exception) as error:
        if type(error) not in {ValueError, Exception}:
            raise
        return BAD_SIGNATURE


ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
"""The order of secp256k1's group."""

ED25519 = KeyScheme(
    "ed25519",
    32,
    64,
    lambda secret: bytes(SigningKey(secret).verify_key),
    lambda secret, message: bytes(SigningKey(secret).sign(message).signature),
    verify_ed25519,
)
SR25519 = KeyScheme(
    "sr25519", 32, 64, lambda secret: bytes(sr25519.pair_from_seed(secret)[0]), _sign_sr25519, verify_sr25519
)
ECDSA = KeyScheme(
    "ecdsa",
    33,
    65,
    lambda secret: PrivateKey(secret).public_key.format(compressed=True),
    lambda secret, message: PrivateKey(secret).sign_recoverable(blake2_256(message), hasher=None),
    verify_ecdsa,
)


def _declare(scheme: KeyScheme) -> None:
    """Declare what there is of every scheme."""
    name = f"ext_crypto_{scheme.name}"

    def keys(host: HostCall, key_type: int) -> dict[bytes, bytes]:
        return host.environment.keys.setdefault((scheme.name, host.memory.read(key_type, 4)), {})

    def generated(host: HostCall, key_type: int, seed: int) -> bytes:
        secret = _secret_of(_seed(host.read(seed)), host)
        public = scheme.public_of(secret)
        keys(host, key_type)[public] = secret
        return public

    def signed(host: HostCall, key_type: int, public: int, message: bytes) -> bytes | None:
        secret = keys(host, key_type).get(host.memory.read(public, scheme.public_bytes))
        return None if secret is None else scheme.sign(secret, message)

    def holds(host: HostCall, signature: int, message: int, public: int) -> bool:
        made = host.memory.read(signature, scheme.signature_bytes)
        return scheme.verify(made, host.read(message), host.memory.read(public, scheme.public_bytes))

    def public_keys(host: HostCall, key_type: int) -> int:
        return host.give(encode_vec(sorted(keys(host, key_type))))

    def public_keys_out(host: HostCall, key_type: int, out: int) -> int:
        return host.fill(out, b"".join(sorted(keys(host, key_type))))

    def generate(host: HostCall, key_type: int, seed: int) -> int:
        return host.give_at(generated(host, key_type, seed))

    def generate_out(host: HostCall, key_type: int, seed: int, out: int) -> None:
        host.memory.write(out, generated(host, key_type, seed))

    def sign(host: HostCall, key_type: int, public: int, message: int) -> int:
        return host.give(encode_option(signed(host, key_type, public, host.read(message))))

    def sign_out(host: HostCall, key_type: int, public: int, message: int, out: int) -> int:
        return _written(host, out, signed(host, key_type, public, host.read(message)))

    def verify(host: HostCall, signature: int, message: int, public: int) -> int:
        return int(holds(host, signature, message, public))

    def batch_verify(host: HostCall, signature: int, message: int, public: int) -> int:
        found = holds(host, signature, message, public)
        if host.batch is not None:
            host.batch = host.batch and found
        return int(found)

    declare(f"{name}_public_keys_version_1", "i", "I", public_keys)
    declare(f"{name}_public_keys_version_2", "iI", "i", public_keys_out)
    declare(f"{name}_generate_version_1", "iI", "i", generate)
    declare(f"{name}_generate_version_2", "iIi", "", generate_out)
    declare(f"{name}_sign_version_1", "iiI", "I", sign)
    declare(f"{name}_sign_version_2", "iiIi", "i", sign_out)
    declare(f"{name}_verify_version_1", "iIi", "i", verify)
    declare(f"{name}_batch_verify_version_1", "iIi", "i", batch_verify)
    if scheme is not ED25519:
        declare(f"{name}_verify_version_2", "iIi", "i", verify)


for _scheme in (ED25519, SR25519, ECDSA):
    _declare(_scheme)


@host_function()
def ext_crypto_start_batch_verify_version_1(host: HostCall) -> None:
    if host.batch is not None:
        raise HostRefusal("a batch of signatures is open already")
    host.batch = True


@host_function("", "i")
def ext_crypto_finish_batch_verify_version_1(host: HostCall) -> int:
    if host.batch is None:
        raise HostRefusal("no batch of signatures is open")
    result, host.batch = host.batch, None
    return int(result)


@host_function("iii", "I")
def ext_crypto_ecdsa_sign_prehashed_version_1(host: HostCall, key_type: int, public: int, message_hash: int) -> int:
    return host.give(encode_option(_signed_hash(host, key_type, public, message_hash)))


@host_function("iiii", "i")
def ext_crypto_ecdsa_sign_prehashed_version_2(
    host: HostCall, key_type: int, public: int, message_hash: int, out: int
) -> int:
    return _written(host, out, _signed_hash(host, key_type, public, message_hash))


@host_function("iii", "i")
def ext_crypto_ecdsa_verify_prehashed_version_1(host: HostCall, signature: int, message_hash: int, public: int) -> int:
    read = host.memory.read
    return int(verify_ecdsa_hash(read(signature, 65), read(message_hash, 32), read(public, 33)))


def _declare_recovery(name: str, *, compressed: bool) -> None:
    def recovered(host: HostCall, signature: int, message_hash: int, *, overflowing: bool) -> bytes | int:
        signed, digest = host.memory.read(signature, 65), host.memory.read(message_hash, 32)
        found = recover(signed, digest, overflowing=overflowing)
        if isinstance(found, int):
            return found
        return found.format(compressed=True) if compressed else found.format(compressed=False)[1:]

    def gives(host: HostCall, signature: int, message_hash: int, *, overflowing: bool) -> int:
        found = recovered(host, signature, message_hash, overflowing=overflowing)
        return host.give(bytes([1, found]) if isinstance(found, int) else b"\x00" + found)

    def version_1(host: HostCall, signature: int, message_hash: int) -> int:
        return gives(host, signature, message_hash, overflowing=True)

    def version_2(host: HostCall, signature: int, message_hash: int) -> int:
        return gives(host, signature, message_hash, overflowing=False)

    def version_3(host: HostCall, signature: int, message_hash: int, out: int) -> int:
        found = recovered(host, signature, message_hash, overflowing=False)
        if isinstance(found, int):
            return (NONE - found) & U32
        host.memory.write(out, found)
        return 0

    declare(f"{name}_version_1", "ii", "I", version_1)
    declare(f"{name}_version_2", "ii", "I", version_2)
    declare(f"{name}_version_3", "iii", "i", version_3)


_declare_recovery("ext_crypto_secp256k1_ecdsa_recover", compressed=False)
_declare_recovery("ext_crypto_secp256k1_ecdsa_recover_compressed", compressed=True)


def _signed_hash(host: HostCall, key_type: int, public: int, message_hash: int) -> bytes | None:
    keys = host.environment.keys.get((ECDSA.name, host.memory.read(key_type, 4)), {})
    secret, digest = keys.get(host.memory.read(public, 33)), host.memory.read(message_hash, 32)
    return None if secret is None else PrivateKey(secret).sign_recoverable(digest, hasher=None)


def _written(host: HostCall, out: int, signature: bytes | None) -> int:
    if signature is None:
        return NONE & U32
    host.memory.write(out, signature)
    return 0


def _seed(data: bytes) -> bytes | None:
    reader = ScaleReader(data)
    try:
        seed = reader.bytes_() if reader.option() else None
        reader.done()
    except CodecError as error:
        raise HostRefusal(f"the seed of a key does not decode: {error}") from None
    return seed


def _secret_of(seed: bytes | None, host: HostCall) -> bytes:
    """Return the secret that a seed stands for: ``0x`` and 64 digits are the secret itself, other text is hashed."""
    if seed is None:
        return host.environment.random_seed()
    if seed.startswith(b"0x") and len(seed) == 66:
        try:
            return bytes.fromhex(seed[2:].decode())
        except ValueError:
            pass
    return blake2b(encode_bytes(seed), digest_size=32).digest()
