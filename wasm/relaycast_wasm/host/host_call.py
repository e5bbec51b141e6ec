"""What a host function has at hand: the memory of the instance that called, the storage, and where log lines go."""

from dataclasses import dataclass, field

from relaycast_wasm.host.allocator import FreeingBumpAllocator
from relaycast_wasm.host.memory import U32, LinearMemory
from relaycast_wasm.overlay import OverlayedChanges


@dataclass(slots=True)
class HostCall:
    """One call into a runtime, as host functions see it.

    ``panic`` is what the runtime said last at level ``error`` (its panic hook logs there), for the refusal's text.
    """

    memory: LinearMemory
    allocator: FreeingBumpAllocator
    overlay: OverlayedChanges
    log: list[str] = field(default_factory=list)
    panic: str | None = None

    def read(self, span: int) -> bytes:
        """Return the bytes of a span; raises ``OutOfBounds``."""
        return self.memory.read(span & U32, span >> 32)

    def give(self, data: bytes) -> int:
        """Put ``data`` into memory of its own and return its span."""
        pointer = self.allocator.allocate(len(data))
        self.memory.write(pointer, data)
        return len(data) << 32 | pointer

    def give_at(self, data: bytes) -> int:
        """Put ``data``, whose length the runtime knows, into memory of its own and return where."""
        pointer = self.allocator.allocate(len(data))
        self.memory.write(pointer, data)
        return pointer
