"""Linear memory that is a byte array."""

from relaycast_wasm.host.memory import PAGE_BYTES, OutOfBounds


class ByteMemory:
    """Memory that grows up to ``most`` pages (``LinearMemory``)."""

    def __init__(self, pages: int = 2, *, most: int = 64) -> None:
        self.data = bytearray(pages * PAGE_BYTES)
        self._most = most

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def seen(self) -> int:
        return len(self.data)

    @property
    def words(self) -> memoryview:
        return memoryview(self.data).cast("Q")

    def read(self, pointer: int, length: int) -> bytes:
        self.check(pointer, length)
        return bytes(self.data[pointer : pointer + length])

    def write(self, pointer: int, data: bytes) -> None:
        self.check(pointer, len(data))
        self.data[pointer : pointer + len(data)] = data

    def read_u64(self, pointer: int) -> int:
        return int.from_bytes(self.read(pointer, 8), "little")

    def write_u64(self, pointer: int, number: int) -> None:
        self.write(pointer, number.to_bytes(8, "little"))

    def grow(self, pages: int) -> bool:
        if len(self.data) // PAGE_BYTES + pages > self._most:
            return False
        self.data.extend(bytes(pages * PAGE_BYTES))
        return True

    def check(self, pointer: int, length: int) -> None:
        """Raise ``OutOfBounds`` for what is not within the memory."""
        if pointer < 0 or pointer + length > len(self.data):
            raise OutOfBounds(pointer, length, len(self.data))
