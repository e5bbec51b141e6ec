"""All groups of host functions: importing this module fills ``HOST_FUNCTIONS``."""

from relaycast_wasm.host import allocator_functions, hashing, logging, storage
from relaycast_wasm.host.registry import HOST_FUNCTIONS

GROUPS = (allocator_functions, hashing, logging, storage)

__all__ = ["GROUPS", "HOST_FUNCTIONS"]
