"""The freeing-bump allocator once more, from its description and nothing else: the twin of the fast one."""

from collections.abc import Iterator
from contextlib import contextmanager

HEADER = 8
NIL = 2**32 - 1


class NaiveFault(Exception):
    """No memory, or nothing that was allocated there."""


class NaiveAllocator:
    """Keeps its headers in a memory of bytes; orders are searched for one by one."""

    def __init__(self, memory: bytearray, heap_base: int, most_pages: int) -> None:
        self.memory, self.most_pages = memory, most_pages
        self.end = heap_base
        while self.end % 8:
            self.end += 1
        self.heads = dict.fromkeys(range(23), NIL)
        self.used = 0
        self.broken = False

    def allocate(self, size: int) -> int:
        with self._breaking():
            return self._allocate(size)

    def free(self, pointer: int) -> None:
        with self._breaking():
            self._free(pointer)

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Let a fault be the last that happens."""
        if self.broken:
            raise NaiveFault
        try:
            yield
        except NaiveFault:
            self.broken = True
            raise

    def _allocate(self, size: int) -> int:
        order = next((order for order in range(23) if 8 * 2**order >= size), None)
        if order is None:
            raise NaiveFault
        content = 8 * 2**order
        header = self.heads[order]
        if header == NIL:
            header = self.end
            while len(self.memory) < header + HEADER + content:
                self._grow(header + HEADER + content)
            self.end = header + HEADER + content
        else:
            if header + HEADER + content > len(self.memory):
                raise NaiveFault
            link, occupied = self._header(header)
            if occupied:
                raise NaiveFault
            self.heads[order] = link
        self._set_header(header, order, occupied=True)
        self.used += HEADER + content
        return header + HEADER

    def _free(self, pointer: int) -> None:
        if pointer < HEADER or pointer > len(self.memory):
            raise NaiveFault
        order, occupied = self._header(pointer - HEADER)
        if not occupied or order > 22:
            raise NaiveFault
        self._set_header(pointer - HEADER, self.heads[order], occupied=False)
        self.heads[order] = pointer - HEADER
        self.used -= HEADER + 8 * 2**order
        if self.used < 0:
            raise NaiveFault

    def _grow(self, needed: int) -> None:
        there = len(self.memory) // 65_536
        wanted = there
        while wanted * 65_536 < needed:
            wanted += 1
        if wanted > self.most_pages:
            raise NaiveFault
        target = max(wanted, min(2 * there, self.most_pages))
        self.memory.extend(bytes((target - there) * 65_536))

    def _header(self, at: int) -> tuple[int, bool]:
        number = int.from_bytes(self.memory[at : at + 4], "little")
        return number, bool(self.memory[at + 4] & 1)

    def _set_header(self, at: int, number: int, *, occupied: bool) -> None:
        self.memory[at : at + 8] = number.to_bytes(4, "little") + occupied.to_bytes(4, "little")
