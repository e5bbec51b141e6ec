"""The memory of one instance as Python reads and writes it: views of it, made anew when it has grown."""

import ctypes

import wasmtime

from relaycast_wasm.host.memory import OutOfBounds

NOTHING = memoryview(bytearray())


class InstanceMemory:
    """A ``LinearMemory``. It does not move when it grows; a view is only ever too short.

    INVARIANT: no view outlives the store; ``drop`` comes before the store is closed.
    """

    __slots__ = ("_bytes", "_memory", "_store", "seen", "words")

    def __init__(self) -> None:
        self._memory: wasmtime.Memory | None = None
        self.seen = 0
        self._bytes = self.words = NOTHING

    def bind(self, store: wasmtime.Store, memory: wasmtime.Memory) -> None:
        """Be the memory of an instance; before, it has no byte."""
        self._store, self._memory = store, memory
        self.look()

    @property
    def size(self) -> int:
        self.look()
        return self.seen

    def look(self) -> None:
        """See how large it is by now."""
        if self._memory is None:
            return
        length = self._memory.data_len(self._store)
        if length == self.seen:
            return
        self._bytes = _view(self._store, self._memory, length)
        self.words = self._bytes.cast("Q")
        self.seen = length

    def read(self, pointer: int, length: int) -> bytes:
        end = pointer + length
        if end > self.seen or pointer < 0 or length < 0:
            self.check(pointer, length)
        return self._bytes[pointer:end].tobytes()

    def write(self, pointer: int, data: bytes) -> None:
        end = pointer + len(data)
        if end > self.seen or pointer < 0:
            self.check(pointer, len(data))
        self._bytes[pointer:end] = data

    def read_u64(self, pointer: int) -> int:
        return int.from_bytes(self.read(pointer, 8), "little")

    def write_u64(self, pointer: int, number: int) -> None:
        self.write(pointer, number.to_bytes(8, "little"))

    def grow(self, pages: int) -> bool:
        if self._memory is None:
            return False
        try:
            self._memory.grow(self._store, pages)
        except wasmtime.WasmtimeError:
            return False
        self.look()
        return True

    def drop(self) -> None:
        """Let go of the memory: what is read later is out of bounds."""
        self._memory = None
        self.seen = 0
        self.words = self._bytes = NOTHING

    def check(self, pointer: int, length: int) -> None:
        """Raise ``OutOfBounds`` for what is not within the memory as it is now."""
        self.look()
        if pointer < 0 or length < 0 or pointer + length > self.seen:
            raise OutOfBounds(pointer, length, self.seen)


def words_of(store: wasmtime.Store, memory: wasmtime.Memory) -> memoryview:
    """Return a view of a memory that does not grow, in words of 8 bytes; it must not outlive the store."""
    return _view(store, memory, memory.data_len(store)).cast("Q")


def _view(store: wasmtime.Store, memory: wasmtime.Memory, length: int) -> memoryview:
    address = ctypes.addressof(memory.data_ptr(store).contents)
    return memoryview((ctypes.c_ubyte * length).from_address(address)).cast("B")
