"""``ext_hashing_*``: digests. Version 1 gives them at a place of their own, version 2 where the runtime says."""

from collections.abc import Callable
from hashlib import sha256

from Crypto.Hash import keccak
from xxhash import xxh64_intdigest

from relaycast_trie.hasher import blake2_128, blake2_256, keccak_256, twox_64, twox_128
from relaycast_wasm.host.host_call import HostCall
from relaycast_wasm.host.registry import declare


def keccak_512(data: bytes) -> bytes:
    return keccak.new(data=data, digest_bits=512).digest()


def sha2_256(data: bytes) -> bytes:
    return sha256(data).digest()


def twox_256(data: bytes) -> bytes:
    """Return four xxHash64 of ``data``, with the seeds 0 to 3."""
    return b"".join(xxh64_intdigest(data, seed).to_bytes(8, "little") for seed in range(4))


def _declare(name: str, digest: Callable[[bytes], bytes]) -> None:
    def gives(host: HostCall, data: int) -> int:
        return host.give_at(digest(host.read(data)))

    def writes(host: HostCall, data: int, out: int) -> None:
        host.memory.write(out, digest(host.read(data)))

    declare(f"ext_hashing_{name}_version_1", "I", "i", gives)
    declare(f"ext_hashing_{name}_version_2", "Ii", "", writes)


for _name, _digest in (
    ("keccak_256", keccak_256),
    ("keccak_512", keccak_512),
    ("sha2_256", sha2_256),
    ("blake2_128", blake2_128),
    ("blake2_256", blake2_256),
    ("twox_256", twox_256),
    ("twox_128", twox_128),
    ("twox_64", twox_64),
):
    _declare(_name, _digest)
