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
WHOLE_BYTES = tuple(HEADER_BYTES + (SMALLEST_BYTES << order) for order in range(ORDERS))
"""What an allocation of each order takes, its header included."""


class AllocatorFault(Exception):
    """An allocation that cannot be made, or a pointer that was not given out."""


class OutOfSpace(AllocatorFault):
    """The memory has no room for an allocation, and may not grow as far."""


class FreeingBumpAllocator:
    """Gives out memory from ``heap_base`` on, up to ``max_pages`` of it all; a fault poisons it.

    Most host calls of a block come here, so that headers are read where they lie, as words of the memory.
    """

    __slots__ = ("_bumper", "_free", "_max_pages", "_memory", "_poisoned", "allocated_bytes")

    def __init__(self, memory: LinearMemory, heap_base: int, *, max_pages: int) -> None:
        self._memory = memory
        self._bumper = -(-heap_base // 8) * 8
        self._free = [NO_LINK] * ORDERS
        self._max_pages = max_pages
        self._poisoned = False
        self.allocated_bytes = 0
        """What is allocated, headers included."""

    def allocate(self, size: int) -> int:
        """Return where ``size`` bytes are; raises ``AllocatorFault``."""
        if self._poisoned or size > LARGEST_BYTES:
            self._refuse(size)
        order = (size - 1).bit_length() - 3 if size > SMALLEST_BYTES else 0
        whole = WHOLE_BYTES[order]
        memory = self._memory
        header = self._free[order]
        if header == NO_LINK:
            header = self._bumper
            if header + whole > memory.seen:
                self._make_room(header + whole)
            self._bumper = header + whole
            memory.words[header >> 3] = IN_USE | order
        else:
            if header + whole > memory.seen and header + whole > memory.size:
                self._fail(f"the list of what is free leads to {header}, outside of the memory")
            word = memory.read_u64(header) if header & 7 else memory.words[header >> 3]
            if word & IN_USE:
                self._fail(f"what stands at {header} is in use, and in the list of what is free")
            self._free[order] = word & U32
            if header & 7:
                memory.write_u64(header, IN_USE | order)
            else:
                memory.words[header >> 3] = IN_USE | order
        self.allocated_bytes += whole
        return header + HEADER_BYTES

    def free(self, pointer: int) -> None:
        """Take back what stands at ``pointer``; raises ``AllocatorFault``."""
        header = pointer - HEADER_BYTES
        memory = self._memory
        if self._poisoned or header < 0 or pointer > memory.seen:
            self._check(pointer)
        word = memory.read_u64(header) if header & 7 else memory.words[header >> 3]
        order = word & U32
        if not word & IN_USE or order >= ORDERS:
            self._fail(f"nothing was allocated at {pointer}")
        if header & 7:
            memory.write_u64(header, self._free[order])
        else:
            memory.words[header >> 3] = self._free[order]
        self._free[order] = header
        self.allocated_bytes -= WHOLE_BYTES[order]
        if self.allocated_bytes < 0:
            self._fail("more was freed than was allocated")

    def _make_room(self, needed: int) -> None:
        size = self._memory.size
        if needed <= size:
            return
        pages, there = -(-needed // PAGE_BYTES), size // PAGE_BYTES
        if pages > self._max_pages:
            self._poisoned = True
            raise OutOfSpace(f"the memory may have {self._max_pages} pages of 64 KiB, {pages} are asked for")
        target = max(min(2 * there, self._max_pages), pages)
        if not self._memory.grow(target - there):
            self._poisoned = True
            raise OutOfSpace(f"the memory cannot have {target} pages of 64 KiB")

    def _refuse(self, size: int) -> None:
        if self._poisoned:
            raise AllocatorFault("the allocator has failed before")
        self._fail(f"{size} bytes are more than one allocation may have, {LARGEST_BYTES}")

    def _check(self, pointer: int) -> None:
        """Raise ``AllocatorFault`` unless a header can stand before ``pointer``."""
        if self._poisoned:
            raise AllocatorFault("the allocator has failed before")
        if pointer < HEADER_BYTES or pointer > self._memory.size:
            self._fail(f"nothing was allocated at {pointer}")

    def _fail(self, reason: str) -> None:
        self._poisoned = True
        raise AllocatorFault(reason)
