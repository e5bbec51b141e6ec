"""All groups of host functions: importing this module fills ``HOST_FUNCTIONS``."""

from relaycast_wasm.host import (
    allocator_functions,
    crypto,
    hashing,
    logging,
    misc,
    offchain,
    proof_size,
    storage,
    trie,
)
from relaycast_wasm.host.registry import HOST_FUNCTIONS

GROUPS = (allocator_functions, crypto, hashing, logging, misc, offchain, proof_size, storage, trie)

__all__ = ["GROUPS", "HOST_FUNCTIONS"]
