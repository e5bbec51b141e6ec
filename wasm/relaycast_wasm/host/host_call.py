"""What a host function has at hand: the memory of the instance that called, the storage, and where log lines go."""

from collections.abc import Callable
from dataclasses import dataclass, field

from relaycast_wasm.host.allocator import FreeingBumpAllocator
from relaycast_wasm.host.call_log import CallLog
from relaycast_wasm.host.environment import HostEnvironment
from relaycast_wasm.host.memory import U32, LinearMemory
from relaycast_wasm.overlay import OverlayedChanges

NONE = 0xFFFF_FFFF_FFFF_FFFF
"""What functions give that write into a buffer of the runtime and have nothing to write: -1."""

COST_OF_A_READ = 128
"""Counted for each read beside its bytes: what is kept of it takes that much at least."""


class HostRefusal(Exception):
    """A host function was called with what it does not take; the call turns it into a ``HostFault``."""


class RuntimeAborted(Exception):
    """The runtime said why it cannot go on, and asked to be stopped."""


@dataclass(slots=True)
class HostCall:
    """One call into a runtime, as host functions see it.

    ``panic`` is what the runtime said last at level ``error`` (its panic hook logs there), for the refusal's text.
    """

    memory: LinearMemory
    allocator: FreeingBumpAllocator
    overlay: OverlayedChanges
    environment: HostEnvironment = field(default_factory=HostEnvironment)
    log: CallLog = field(default_factory=CallLog)
    panic: str | None = None
    version_of: Callable[[bytes], bytes | None] = lambda _code: None
    """Returns the SCALE of another runtime's ``RuntimeVersion``, ``None`` for code that is none."""

    batch: bool | None = None
    """Whether all signatures of the open batch held; ``None`` while no batch is open."""

    cursor: bytes | None = None
    """Where the last removal of many keys stopped."""

    read_bytes: int = 1 << 30
    """How many bytes functions may take from the runtime in all; nothing that they keep is larger."""

    taken_bytes: int = 0

    def read(self, span: int) -> bytes:
        """Return the bytes of a span; raises ``OutOfBounds``, and ``HostRefusal`` where the call took too many."""
        self.taken_bytes += (span >> 32) + COST_OF_A_READ
        if self.taken_bytes > self.read_bytes:
            self.memory.check(span & U32, span >> 32)
            raise HostRefusal(f"one call may hand {self.read_bytes:,} bytes to host functions")
        return self.memory.read(span & U32, span >> 32)

    def text(self, span: int) -> str:
        """Return the text of a span; raises ``HostRefusal``."""
        try:
            return self.read(span).decode()
        except UnicodeDecodeError as error:
            raise HostRefusal(f"text is UTF-8, got {error.object[:32]!r}") from None

    def give(self, data: bytes) -> int:
        """Put ``data`` into memory of its own and return its span."""
        return len(data) << 32 | self.give_at(data)

    def give_at(self, data: bytes) -> int:
        """Put ``data``, whose length the runtime knows, into memory of its own and return where."""
        pointer = self.allocator.allocate(len(data))
        self.memory.write(pointer, data)
        return pointer

    def fill(self, span: int, data: bytes, *, partly: bool = False) -> int:
        """Write ``data`` into a buffer of the runtime where it fits, or what fits of it; return its whole length."""
        room = span >> 32
        if partly or len(data) <= room:
            self.memory.write(span & U32, data[:room])
        else:
            self.memory.read(span & U32, room)
        return len(data)
