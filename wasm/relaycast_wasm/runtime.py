"""A runtime: its code, ready to be called. Every call is an instance of its own, with memory of its own."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import wasmtime

from relaycast_pallets.frame.state import State
from relaycast_trie.scale import ScaleReader
from relaycast_wasm.code_blob import wasm_of
from relaycast_wasm.exceptions import (
    CallFailed,
    HostFault,
    MissingExport,
    MissingHostFunction,
    NotARuntime,
    RuntimePanicked,
    WasmError,
)
from relaycast_wasm.host.allocator import AllocatorFault, FreeingBumpAllocator
from relaycast_wasm.host.environment import HostEnvironment
from relaycast_wasm.host.everything import HOST_FUNCTIONS
from relaycast_wasm.host.host_call import HostCall, HostRefusal, RuntimeAborted
from relaycast_wasm.host.memory import PAGE_BYTES, U32, OutOfBounds
from relaycast_wasm.host.registry import HostFunction
from relaycast_wasm.overlay import OverlayedChanges, StateBacking
from relaycast_wasm.runtime_version import RuntimeVersion

U64 = 0xFFFF_FFFF_FFFF_FFFF
EXTRA_PAGES = 2_048
"""Pages of 64 KiB that a heap may have beside what the code asks for: 128 MiB."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may take."""

    seconds: float = 30.0
    memory_pages: int = EXTRA_PAGES


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class RuntimeAnswer:
    """What a call gave: SCALE, and the lines that the runtime logged."""

    output: bytes
    log: tuple[str, ...] = ()


class WasmRuntime:
    """One runtime's code, compiled; use ``load``."""

    def __init__(self, code: bytes, engine: wasmtime.Engine, module: wasmtime.Module) -> None:
        self.code = code
        self._engine = engine
        self._module = module
        self._linker = wasmtime.Linker(engine)
        self._current: HostCall | None = None
        self._failure: BaseException | None = None
        self._imported: list[str] = []
        for it in module.imports:
            if isinstance(it.type, wasmtime.FuncType):
                name = it.name or ""
                self._imported.append(name)
                self._linker.define_func(it.module, name, it.type, self._callback(name))

    @classmethod
    def load(cls, code: bytes) -> "WasmRuntime":
        """Return the runtime that ``code`` is, compressed or not; raises ``NotARuntime``."""
        wasm = wasm_of(code)
        engine = wasmtime.Engine()
        try:
            return cls(code, engine, wasmtime.Module(engine, wasm))
        except wasmtime.WasmtimeError as error:
            raise NotARuntime(str(error).splitlines()[0]) from None

    @cached_property
    def version(self) -> RuntimeVersion:
        """What the runtime says of itself."""
        return RuntimeVersion.decode(self.call("Core_version", b"", empty_overlay()).output)

    @cached_property
    def methods(self) -> frozenset[str]:
        """The names that can be called."""
        return frozenset(it.name or "" for it in self._module.exports if isinstance(it.type, wasmtime.FuncType))

    @property
    def missing_imports(self) -> list[str]:
        """The host functions that it imports and that are not there: calling one fails, nothing else does."""
        return sorted(name for name in self._imported if name not in HOST_FUNCTIONS)

    def metadata(self) -> bytes:
        """Return the runtime's metadata, from its magic number on."""
        return ScaleReader(self.call("Metadata_metadata", b"", empty_overlay()).output).bytes_()

    def call(
        self,
        method: str,
        data: bytes,
        overlay: OverlayedChanges,
        *,
        limits: Limits = DEFAULT_LIMITS,
        environment: HostEnvironment | None = None,
    ) -> RuntimeAnswer:
        """Call a method with SCALE ``data`` over the storage ``overlay``; raises ``MissingExport`` and ``CallFailed``.

        What the call wrote stays in the overlay, after a failure too: transactions are the caller's. Those that the
        runtime leaves open are rolled back.
        """
        if method not in self.methods:
            raise MissingExport(method)
        store = wasmtime.Store(self._engine)
        instance, memory = self._instantiate(store)
        heap_base = exported(instance, store, "__heap_base").value(store)
        linear = StoreMemory(store, memory)
        most = linear.size // PAGE_BYTES + limits.memory_pages
        host = HostCall(
            linear,
            FreeingBumpAllocator(linear, heap_base, max_pages=most),
            overlay,
            environment or HostEnvironment(),
            version_of=version_of,
        )
        before, self._current, self._failure = self._current, host, None
        try:
            span = host.give(data)
            function = exported(instance, store, method)
            with overlay.in_runtime():
                answer = function(store, _signed32(span & U32), len(data)) & U64
            return RuntimeAnswer(host.read(answer), tuple(host.log))
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            raise self._failed(method, host, error) from None
        except (OutOfBounds, AllocatorFault) as error:
            raise HostFault(method, str(error), tuple(host.log)) from None
        finally:
            self._current = before

    def _instantiate(self, store: wasmtime.Store) -> tuple[wasmtime.Instance, Any]:
        memory: Any = None
        for it in self._module.imports:
            if not isinstance(it.type, wasmtime.MemoryType):
                continue
            least = it.type.limits.min + 16
            memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(least, None)))
            self._linker.allow_shadowing = True
            self._linker.define(store, it.module, it.name or "memory", memory)
        instance = self._linker.instantiate(store, self._module)
        if memory is None:
            memory = exported(instance, store, "memory")
        return instance, memory

    def _callback(self, name: str) -> Any:
        function: HostFunction | None = HOST_FUNCTIONS.get(name)

        def run(*arguments: int) -> int | None:
            host = self._current
            assert host is not None
            try:
                if function is None:
                    raise MissingHostFunction(name, f"there is no host function {name}")
                masks = (U32 if letter == "i" else U64 for letter in function.parameters)
                result = function.run(host, *(it & mask for it, mask in zip(arguments, masks, strict=True)))
                if result is None:
                    return None
                return _signed32(result) if function.result == "i" else _signed64(result)
            except BaseException as error:
                self._failure = error
                raise

        return run

    def _failed(self, method: str, host: HostCall, error: Exception) -> CallFailed:
        log, cause = tuple(host.log), self._failure
        if isinstance(cause, MissingHostFunction):
            return MissingHostFunction(method, cause.reason, log)
        if isinstance(cause, OutOfBounds | AllocatorFault | HostRefusal):
            return HostFault(method, str(cause), log)
        if cause is not None and not isinstance(cause, RuntimeAborted):
            raise cause
        return RuntimePanicked(method, host.panic or str(error).splitlines()[0], log)

    def __repr__(self) -> str:
        return f"<WasmRuntime {self.version.spec_name}-{self.version.spec_version}>"


class StoreMemory:
    """The memory of one instance (``LinearMemory``)."""

    def __init__(self, store: wasmtime.Store, memory: Any) -> None:
        self._store, self._memory = store, memory

    @property
    def size(self) -> int:
        return int(self._memory.data_len(self._store))

    def read(self, pointer: int, length: int) -> bytes:
        self._check(pointer, length)
        return bytes(self._memory.read(self._store, pointer, pointer + length))

    def write(self, pointer: int, data: bytes) -> None:
        self._check(pointer, len(data))
        self._memory.write(self._store, data, pointer)

    def read_u64(self, pointer: int) -> int:
        return int.from_bytes(self.read(pointer, 8), "little")

    def write_u64(self, pointer: int, number: int) -> None:
        self.write(pointer, number.to_bytes(8, "little"))

    def grow(self, pages: int) -> bool:
        try:
            self._memory.grow(self._store, pages)
        except wasmtime.WasmtimeError:
            return False
        return True

    def _check(self, pointer: int, length: int) -> None:
        if pointer + length > self.size:
            raise OutOfBounds(pointer, length, self.size)


def exported(instance: wasmtime.Instance, store: wasmtime.Store, name: str) -> Any:
    """Return what the instance exports under ``name``; raises ``MissingExport``."""
    found = instance.exports(store).get(name)
    if found is None:
        raise MissingExport(name)
    return found


def version_of(code: bytes) -> bytes | None:
    """Return what a runtime says of itself in SCALE, ``None`` where it cannot."""
    try:
        return WasmRuntime.load(code).call("Core_version", b"", empty_overlay()).output
    except WasmError:
        return None


def empty_overlay() -> OverlayedChanges:
    """Return storage that holds nothing, for calls that read none."""
    return OverlayedChanges(StateBacking(State(window=1, engine="plain")))


def _signed32(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def _signed64(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
