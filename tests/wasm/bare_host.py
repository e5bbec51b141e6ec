"""Host functions without a module: memory is a byte array, and a call is a call."""

from typing import Any

from relaycast_pallets.frame.state import State
from relaycast_wasm import OverlayedChanges, StateBacking
from relaycast_wasm.host.allocator import FreeingBumpAllocator
from relaycast_wasm.host.environment import HostEnvironment
from relaycast_wasm.host.everything import HOST_FUNCTIONS
from relaycast_wasm.host.host_call import HostCall
from relaycast_wasm.host.memory import U32
from wasm.byte_memory import ByteMemory


class BareHost:
    """One call's host. Bytes that are handed over become spans; ``at`` makes pointers of them."""

    def __init__(self, state: State | None = None, environment: HostEnvironment | None = None) -> None:
        memory = ByteMemory()
        overlay = OverlayedChanges(StateBacking(State(engine="plain") if state is None else state))
        allocator = FreeingBumpAllocator(memory, 8, max_pages=64)
        self.call = HostCall(memory, allocator, overlay, environment or HostEnvironment())

    def __getattr__(self, name: str) -> Any:
        function = HOST_FUNCTIONS[f"ext_{name}"]

        def run(*arguments: int | bytes) -> int | None:
            given = [self.call.give(it) if isinstance(it, bytes) else it for it in arguments]
            assert len(given) == len(function.parameters)
            return function.run(self.call, *given)

        return run

    def at(self, data: bytes) -> int:
        """Return a pointer to ``data``."""
        return self.call.give_at(data)

    def room(self, length: int) -> int:
        """Return the span of a buffer for the host to write into."""
        return self.call.give(bytes(length))

    def bytes_of(self, span: int | None) -> bytes:
        """Return what a span holds."""
        assert span is not None
        return self.call.read(span)

    def bytes_at(self, pointer: int | None, length: int) -> bytes:
        """Return the ``length`` bytes at a pointer."""
        assert pointer is not None
        return self.call.memory.read(pointer & U32, length)
