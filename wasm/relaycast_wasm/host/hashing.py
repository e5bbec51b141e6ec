"""``ext_hashing_*``: digests, given at a place of their own whose length follows from the function."""

from hashlib import blake2b

from relaycast_wasm.host.host_call import HostCall
from relaycast_wasm.host.registry import host_function


@host_function("I", "i")
def ext_hashing_blake2_256_version_1(host: HostCall, data: int) -> int:
    return host.give_at(blake2b(host.read(data), digest_size=32).digest())
