"""The linear memory of one instance, checked: nothing outside of it is read or written."""

from typing import Protocol

PAGE_BYTES = 65_536
U32 = 0xFFFF_FFFF


class OutOfBounds(Exception):
    """A runtime named a place that its memory does not have; the call turns it into a ``HostFault``."""

    def __init__(self, pointer: int, length: int, size: int) -> None:
        super().__init__(pointer, length, size)
        self.pointer, self.length, self.size = pointer, length, size

    def __str__(self) -> str:
        return f"{self.length} bytes at {self.pointer} are not within a memory of {self.size} bytes"


class LinearMemory(Protocol):
    """Memory of ``size`` bytes, in pages of 64 KiB; ``read`` and ``write`` raise ``OutOfBounds``.

    It grows by itself while the runtime runs: ``seen`` is how large it was when last looked at, and ``words`` a view of
    that much in words of 8 bytes.
    """

    @property
    def seen(self) -> int: ...

    @property
    def words(self) -> memoryview: ...

    @property
    def size(self) -> int: ...

    def check(self, pointer: int, length: int) -> None:
        """Raise ``OutOfBounds`` for what is not within the memory."""
        ...

    def read(self, pointer: int, length: int) -> bytes: ...

    def write(self, pointer: int, data: bytes) -> None: ...

    def read_u64(self, pointer: int) -> int: ...

    def write_u64(self, pointer: int, number: int) -> None: ...

    def grow(self, pages: int) -> bool:
        """Return whether that many pages were added."""
        ...
