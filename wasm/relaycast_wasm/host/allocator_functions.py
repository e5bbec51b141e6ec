"""``ext_allocator_*``: memory for the runtime's own heap."""

from relaycast_wasm.host.host_call import HostCall
from relaycast_wasm.host.registry import host_function


@host_function("i", "i")
def ext_allocator_malloc_version_1(host: HostCall, size: int) -> int:
    return host.allocator.allocate(size)


@host_function("i")
def ext_allocator_free_version_1(host: HostCall, pointer: int) -> None:
    host.allocator.free(pointer)
