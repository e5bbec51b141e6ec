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


IS_OPEN, BUMPER, ALLOCATED, LISTS = 0, 1, 2, 4
"""Where an allocator's state has what, in words of 8 bytes: is it open (1), where is the end, how many bytes are
allocated. From ``LISTS`` on it says for each order where the list of what is free begins."""

STATE_WORDS = LISTS + ORDERS
EMPTY_LISTS = memoryview(NO_LINK.to_bytes(8, "little") * ORDERS).cast("Q")


class AllocatorFault(Exception):
    """An allocation that cannot be made, or a pointer that was not given out."""


class OutOfSpace(AllocatorFault):
    """The memory has no room for an allocation, and may not grow as far."""


class FreeingBumpAllocator:
    """Gives out memory from ``heap_base`` on, up to ``max_pages`` of it all; a fault poisons it.

    Many host calls of a block come here, so that headers are read where they lie, as words of the memory. Its own state
    is ``state``, words too: the frequent cases are there as WebAssembly (``host_shortcuts``), which shares it.
    """

    __slots__ = ("_max_pages", "_memory", "_state")

    def __init__(
        self, memory: LinearMemory, heap_base: int, *, max_pages: int, state: memoryview | None = None
    ) -> None:
        self._memory = memory
        self._max_pages = max_pages
        self._state = memoryview(bytearray(8 * STATE_WORDS)).cast("Q") if state is None else state
        self._state[BUMPER] = -(-heap_base // 8) * 8
        self._state[ALLOCATED] = 0
        self._state[LISTS:STATE_WORDS] = EMPTY_LISTS
        self._state[IS_OPEN] = 1

    @property
    def allocated_bytes(self) -> int:
        """What is allocated, headers included."""
        return int(self._state[ALLOCATED])

    def drop(self) -> None:
        """Let go of the state that WebAssembly shares, and go on with a copy."""
        self._state = memoryview(bytearray(self._state[:STATE_WORDS])).cast("Q")

    def allocate(self, size: int) -> int:
        """Return where ``size`` bytes are; raises ``AllocatorFault``."""
        state = self._state
        if not state[IS_OPEN] or size > LARGEST_BYTES:
            self._refuse(size)
        order = (size - 1).bit_length() - 3 if size > SMALLEST_BYTES else 0
        whole = WHOLE_BYTES[order]
        memory = self._memory
        header = state[LISTS + order]
        if header == NO_LINK:
            header = state[BUMPER]
            if header + whole > memory.seen:
                self._make_room(header + whole)
            state[BUMPER] = header + whole
            memory.words[header >> 3] = IN_USE | order
        else:
            if header + whole > memory.seen and header + whole > memory.size:
                self._fail(f"the list of what is free leads to {header}, outside of the memory")
            word = memory.read_u64(header) if header & 7 else memory.words[header >> 3]
            if word & IN_USE:
                self._fail(f"what stands at {header} is in use, and in the list of what is free")
            state[LISTS + order] = word & U32
            if header & 7:
                memory.write_u64(header, IN_USE | order)
            else:
                memory.words[header >> 3] = IN_USE | order
        state[ALLOCATED] += whole
        return header + HEADER_BYTES

    def free(self, pointer: int) -> None:
        """Take back what stands at ``pointer``; raises ``AllocatorFault``."""
        header = pointer - HEADER_BYTES
        memory = self._memory
        state = self._state
        if not state[IS_OPEN] or header < 0 or pointer > memory.seen:
            self._check(pointer)
        word = memory.read_u64(header) if header & 7 else memory.words[header >> 3]
        order = word & U32
        if not word & IN_USE or order >= ORDERS:
            self._fail(f"nothing was allocated at {pointer}")
        if header & 7:
            memory.write_u64(header, state[LISTS + order])
        else:
            memory.words[header >> 3] = state[LISTS + order]
        state[LISTS + order] = header
        if state[ALLOCATED] < WHOLE_BYTES[order]:
            self._fail("more was freed than was allocated")
        state[ALLOCATED] -= WHOLE_BYTES[order]

    def _make_room(self, needed: int) -> None:
        size = self._memory.size
        if needed <= size:
            return
        pages, there = -(-needed // PAGE_BYTES), size // PAGE_BYTES
        if pages > self._max_pages:
            self._state[IS_OPEN] = 0
            raise OutOfSpace(f"the memory may have {self._max_pages} pages of 64 KiB, {pages} are asked for")
        target = max(min(2 * there, self._max_pages), pages)
        if not self._memory.grow(target - there):
            self._state[IS_OPEN] = 0
            raise OutOfSpace(f"the memory cannot have {target} pages of 64 KiB")

    def _refuse(self, size: int) -> None:
        if not self._state[IS_OPEN]:
            raise AllocatorFault("the allocator has failed before")
        self._fail(f"{size} bytes are more than one allocation may have, {LARGEST_BYTES}")

    def _check(self, pointer: int) -> None:
        """Raise ``AllocatorFault`` unless a header can stand before ``pointer``."""
        if not self._state[IS_OPEN]:
            raise AllocatorFault("the allocator has failed before")
        if pointer < HEADER_BYTES or pointer > self._memory.size:
            self._fail(f"nothing was allocated at {pointer}")

    def _fail(self, reason: str) -> None:
        self._state[IS_OPEN] = 0
        raise AllocatorFault(reason)
