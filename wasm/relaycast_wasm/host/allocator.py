"""The freeing-bump allocator that hosts give to runtimes (``sc-allocator``, ``FreeingBumpHeapAllocator``).

Sizes are rounded up to a power of two, 8 bytes to 32 MiB: an order each. In front of every allocation stand 8 bytes:
while it is in use its order, with bit 32 set; when it is free the next free one of its order. What is not reused is
taken from the end, which grows the memory, to twice its size where that is allowed.
"""

from relaycast_wasm.host.memory import PAGE_BYTES, U32, LinearMemory

ORDERS = 23
SMALLEST_BYTES = 8
LARGEST_BYTES = SMALLEST_BYTES << (ORDERS - 1)
HEADER_BYTES = 8
IN_USE = 1 << 32
NO_LINK = U32


class AllocatorFault(Exception):
    """An allocation that cannot be made, or a pointer that was not given out."""


class FreeingBumpAllocator:
    """Gives out memory from ``heap_base`` on, up to ``max_pages`` of it all; a fault poisons it."""

    __slots__ = ("_bumper", "_free", "_max_pages", "_memory", "_poisoned")

    def __init__(self, memory: LinearMemory, heap_base: int, *, max_pages: int) -> None:
        self._memory = memory
        self._bumper = -(-heap_base // 8) * 8
        self._free = [NO_LINK] * ORDERS
        self._max_pages = max_pages
        self._poisoned = False

    def allocate(self, size: int) -> int:
        """Return where ``size`` bytes are; raises ``AllocatorFault``."""
        if self._poisoned:
            raise AllocatorFault("the allocator has failed before")
        if size > LARGEST_BYTES:
            self._fail(f"{size} bytes are more than one allocation may have, {LARGEST_BYTES}")
        order = (max(size, SMALLEST_BYTES) - 1).bit_length() - 3
        header = self._free[order]
        if header == NO_LINK:
            header = self._bump(HEADER_BYTES + (SMALLEST_BYTES << order))
        else:
            self._check(header)
            link = self._memory.read_u64(header)
            if link & IN_USE:
                self._fail(f"what stands at {header} is in use, and in the list of what is free")
            self._free[order] = link & U32
        self._memory.write_u64(header, IN_USE | order)
        return header + HEADER_BYTES

    def free(self, pointer: int) -> None:
        """Take back what stands at ``pointer``; raises ``AllocatorFault``."""
        if self._poisoned:
            raise AllocatorFault("the allocator has failed before")
        header = pointer - HEADER_BYTES
        self._check(header)
        word = self._memory.read_u64(header)
        order = word & U32
        if not word & IN_USE or order >= ORDERS:
            self._fail(f"nothing was allocated at {pointer}")
        self._memory.write_u64(header, self._free[order])
        self._free[order] = header

    def _bump(self, size: int) -> int:
        needed = self._bumper + size
        if needed > self._memory.size:
            self._grow(needed)
        header = self._bumper
        self._bumper = needed
        return header

    def _grow(self, needed: int) -> None:
        pages, there = -(-needed // PAGE_BYTES), self._memory.size // PAGE_BYTES
        if pages > self._max_pages:
            self._fail(f"the memory may have {self._max_pages} pages, {pages} are asked for")
        target = max(min(2 * there, self._max_pages), pages)
        if not self._memory.grow(target - there):
            self._fail(f"the memory cannot have {target} pages")

    def _check(self, header: int) -> None:
        if header < 0 or header + HEADER_BYTES > min(self._bumper, self._memory.size):
            self._fail(f"nothing was allocated at {header + HEADER_BYTES}")

    def _fail(self, reason: str) -> None:
        self._poisoned = True
        raise AllocatorFault(reason)
