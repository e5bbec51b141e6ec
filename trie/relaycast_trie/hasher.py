"""Hash functions behind one interface: those that key storage, and those that a trie can be built with.

Substrate tries hash with Blake2b-256. Keccak-256, which Ethereum uses, and BLAKE3 stand beside it for what-if studies.
"""

import hashlib
from collections.abc import Callable

import xxhash
from msgspec import Struct

HASH_LENGTH = 32
"""Bytes of a trie hash, whichever the function."""


def blake2_256(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()


def blake2_128(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def blake2_128_concat(data: bytes) -> bytes:
    """``Blake2_128Concat``: the hash, then the data, so that keys can be read back (sp-core-hashing)."""
    return blake2_128(data) + data


def twox_64(data: bytes) -> bytes:
    """xxHash64 with seed 0, little-endian."""
    return xxhash.xxh64_intdigest(data, seed=0).to_bytes(8, "little")


def twox_128(data: bytes) -> bytes:
    """Two xxHash64 with seeds 0 and 1: pallet and storage item prefixes."""
    return twox_64(data) + xxhash.xxh64_intdigest(data, seed=1).to_bytes(8, "little")


def twox_64_concat(data: bytes) -> bytes:
    """``Twox64Concat``: the hash, then the data."""
    return twox_64(data) + data


def keccak_256(data: bytes) -> bytes:
    from Crypto.Hash import keccak  # noqa: PLC0415 - slow to load, and few ask for it

    return keccak.new(digest_bits=256, data=data).digest()


def blake3_256(data: bytes) -> bytes:
    import blake3  # noqa: PLC0415 - few ask for it

    return blake3.blake3(data).digest()


def blake2b_compressions(length: int) -> int:
    """Return how often Blake2b calls its compression function: once per 128 bytes begun, once for no bytes."""
    return max(1, -(-length // 128))


def keccak_permutations(length: int) -> int:
    """Return how often Keccak calls its permutation: once per 136 bytes of message and padding, at least a byte."""
    return length // 136 + 1


def blake3_compressions(length: int) -> int:
    """Return how often BLAKE3 calls its compression function.

    Once per 64 bytes begun of each chunk of 1,024 bytes, and once for each pair of subtrees that it joins.
    """
    whole, rest = divmod(length, 1_024)
    chunks = whole + (rest > 0 or not whole)
    return 16 * whole + (max(1, -(-rest // 64)) if chunks > whole else 0) + chunks - 1


class Hasher(Struct, frozen=True):
    """A hash function that tries can be built with: ``digest`` returns the 32-byte hash of any bytes.

    ``compressions`` takes the length of a message in bytes. It returns how often hashing that message calls the
    compression function, or the permutation in Keccak: the cost of a hash, measured without a clock.
    """

    name: str
    digest: Callable[[bytes], bytes]
    compressions: Callable[[int], int] = blake2b_compressions

    def __repr__(self) -> str:
        return f"Hasher({self.name})"


BLAKE2B_256 = Hasher("blake2b-256", blake2_256)
KECCAK_256 = Hasher("keccak-256", keccak_256, keccak_permutations)
BLAKE3_256 = Hasher("blake3", blake3_256, blake3_compressions)
HASHERS = {hasher.name: hasher for hasher in (BLAKE2B_256, KECCAK_256, BLAKE3_256)}
"""Every trie hasher by its name."""
