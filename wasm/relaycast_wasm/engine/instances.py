"""Instances of one compiled module: each call has one, and nothing of it is there for the next."""

import threading
from collections.abc import Callable

import wasmtime

from relaycast_wasm.engine.callbacks import U64, Callbacks, host_callbacks, signed
from relaycast_wasm.engine.engine import TICK_SECONDS, one_line, shared_engine
from relaycast_wasm.engine.kept_modules import Place
from relaycast_wasm.engine.limits import Limits, RuntimeAnswer
from relaycast_wasm.engine.memory import InstanceMemory, words_of
from relaycast_wasm.engine.running_call import Calls, RunningCall, TookTooLong
from relaycast_wasm.engine.shortcuts import STATE_EXPORT
from relaycast_wasm.exceptions import (
    CallFailed,
    CallTookTooLong,
    HostFault,
    MemoryExhausted,
    MissingHostFunction,
    NotARuntime,
    RuntimePanicked,
)
from relaycast_wasm.host.allocator import AllocatorFault, FreeingBumpAllocator, OutOfSpace
from relaycast_wasm.host.environment import HostEnvironment
from relaycast_wasm.host.everything import HOST_FUNCTIONS
from relaycast_wasm.host.host_call import HostCall, HostRefusal, RuntimeAborted
from relaycast_wasm.host.memory import PAGE_BYTES, U32, OutOfBounds
from relaycast_wasm.overlay import OverlayedChanges

MOST_PAGES = 16_384
"""The most pages that a memory may have, 1 GiB, whatever code and state ask for."""

MOST_TABLE_ELEMENTS = 65_536
MEMORIES = 2
"""The runtime's own, and that of the allocator's state."""

METHOD_TYPE = (("i32", "i32"), ("i64",))
LETTERS = {"i32": "i", "i64": "I"}


class Instances:
    """Makes instances of a module and calls them, one at a time; raises ``NotARuntime`` for what cannot be called."""

    def __init__(self, wasm: bytes, kept: Place, way: Callbacks) -> None:
        self._engine = shared_engine()
        self._module = self._engine.module(wasm, kept)
        self._calls = Calls()
        self._callbacks = host_callbacks(way, self._calls)
        self._lock = threading.RLock()
        self._shares_state = any(it.name == STATE_EXPORT for it in self._module.exports)
        self.imports: list[str] = []
        self.methods, self._pages = _exports(self._module)
        linker = wasmtime.Linker(self._engine.wasmtime)
        for it in self._module.imports:
            function = HOST_FUNCTIONS.get(it.name or "")
            _check_import(it)
            if it.name in self.imports:
                continue
            self.imports.append(it.name or "")
            self._callbacks.define(linker, it, function)
        self._ready = linker.instantiate_pre(self._module)

    @property
    def missing_imports(self) -> list[str]:
        """The host functions that are not there."""
        return sorted(name for name in self.imports if name not in HOST_FUNCTIONS)

    def run(
        self,
        method: str,
        data: bytes,
        overlay: OverlayedChanges,
        *,
        limits: Limits,
        heap_pages: int,
        environment: HostEnvironment,
        version_of: Callable[[bytes], bytes | None],
    ) -> RuntimeAnswer:
        """Call ``method`` in a new instance; raises ``CallFailed``."""
        store = wasmtime.Store(self._engine.wasmtime)
        most = min(self._pages + heap_pages, MOST_PAGES)
        store.set_limits(most * PAGE_BYTES, MOST_TABLE_ELEMENTS, 1, 1, MEMORIES)
        memory = InstanceMemory()
        allocator = FreeingBumpAllocator(memory, 0, max_pages=0)
        host = HostCall(memory, allocator, overlay, environment, version_of=version_of)
        host.read_bytes = limits.read_bytes
        call = RunningCall(host, seconds=limits.seconds)
        with self._lock, self._engine.ticking(), call.deferring_signals(), overlay.in_runtime():
            before, self._calls.current = self._calls.current, call
            try:
                self._callbacks.watch(store, ticks=int(limits.seconds / TICK_SECONDS) + 1)
                return self._answer(method, data, store, call, most, limits)
            except BaseException as error:
                raise _failure(method, call, call.failure or error, limits) from None
            finally:
                self._calls.current = before
                host.allocator.drop()
                memory.drop()
                store.close()

    def _answer(
        self, method: str, data: bytes, store: wasmtime.Store, call: RunningCall, most: int, limits: Limits
    ) -> RuntimeAnswer:
        instance = self._ready.instantiate(store)
        host = call.host
        memory = host.memory
        assert isinstance(memory, InstanceMemory)
        exported = self._callbacks.exported
        memory.bind(store, exported(instance, store, "memory"))
        memory.grow(most - self._pages)
        heap_base = exported(instance, store, "__heap_base").value(store)
        state = words_of(store, exported(instance, store, STATE_EXPORT)) if self._shares_state else None
        call.use(FreeingBumpAllocator(memory, heap_base & U32, max_pages=most, state=state))
        span = host.give(data)
        function = exported(instance, store, method)
        answer = function(store, signed(span & U32, 32), len(data)) & U64
        if answer >> 32 > limits.output_bytes:
            raise HostRefusal(f"its answer has {answer >> 32:,} bytes, at most {limits.output_bytes:,} are taken")
        return RuntimeAnswer(memory.read(answer & U32, answer >> 32), host.log.lines)


def _failure(method: str, call: RunningCall, error: BaseException, limits: Limits) -> BaseException:
    """Return what a call raises that ``error`` stopped: a ``CallFailed``, or the error itself where it is our own."""
    log, named = call.host.log.lines, f"{call.failed_in}: " if call.failed_in else ""
    failed: BaseException = error
    match error:
        case MissingHostFunction():
            failed = MissingHostFunction(method, error.reason, log)
        case RuntimeAborted():
            failed = RuntimePanicked(method, str(error), log)
        case TookTooLong():
            failed = CallTookTooLong(method, f"it took longer than {limits.seconds:g} s", log)
        case OutOfSpace() | MemoryError():
            failed = MemoryExhausted(method, f"{named}{error}", log)
        case OutOfBounds() | AllocatorFault() | HostRefusal():
            failed = HostFault(method, f"{named}{error}", log)
        case wasmtime.Trap() | wasmtime.WasmtimeError():
            failed = _trapped(method, call, error, limits)
    return failed


def _trapped(
    method: str, call: RunningCall, error: wasmtime.Trap | wasmtime.WasmtimeError, limits: Limits
) -> CallFailed:
    code = error.trap_code if isinstance(error, wasmtime.Trap) else None
    log, said = call.host.log.lines, one_line(error)
    if code is wasmtime.TrapCode.INTERRUPT:
        return CallTookTooLong(method, f"it took longer than {limits.seconds:g} s", log)
    if code is None and "exceeds" in said and "limits" in said:
        return MemoryExhausted(method, said, log)
    if code is wasmtime.TrapCode.STACK_OVERFLOW:
        return RuntimePanicked(method, "its calls are nested too deep: the stack is exhausted", log)
    return RuntimePanicked(method, call.host.panic or said, log)


def _exports(module: wasmtime.Module) -> tuple[frozenset[str], int]:
    """Return the names of a module's methods, and how many pages its memory begins with."""
    methods, pages, has_base = [], 0, False
    for it in module.exports:
        match it.type:
            case wasmtime.FuncType() if _types(it.type) == METHOD_TYPE:
                methods.append(it.name or "")
            case wasmtime.MemoryType() if it.name == "memory":
                pages = it.type.limits.min
            case wasmtime.GlobalType() if it.name == "__heap_base":
                has_base = str(it.type.content) == "i32"
    if not has_base:
        raise NotARuntime("it exports no __heap_base, the place where its heap begins")
    if pages > MOST_PAGES:
        raise NotARuntime(f"its memory begins with {pages} pages of 64 KiB, at most {MOST_PAGES} are given")
    return frozenset(methods), pages


def _check_import(it: wasmtime.ImportType) -> None:
    """Raise ``NotARuntime`` for an import that is no host function, or one of another type than this host has."""
    if not isinstance(it.type, wasmtime.FuncType) or it.module != "env":
        kind = type(it.type).__name__.removesuffix("Type").lower()
        kind = {"func": "function"}.get(kind, kind)
        raise NotARuntime(f"it imports the {kind} {it.module}.{it.name}, a host gives functions of env alone")
    known = HOST_FUNCTIONS.get(it.name or "")
    if known is None:
        return
    takes, gives = _types(it.type)
    if [LETTERS.get(one) for one in takes] != list(known.parameters) or "".join(
        LETTERS.get(one, "?") for one in gives
    ) != known.result:
        raise NotARuntime(
            f"it imports {it.name} as {_arrow(takes, gives)}, which is "
            f"{_arrow(_wasm_types(known.parameters), _wasm_types(known.result))}"
        )


def _types(function: wasmtime.FuncType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(map(str, function.params)), tuple(map(str, function.results))


def _wasm_types(letters: str) -> tuple[str, ...]:
    return tuple("i32" if letter == "i" else "i64" for letter in letters)


def _arrow(takes: tuple[str, ...], gives: tuple[str, ...]) -> str:
    return f"({', '.join(takes)}) -> ({', '.join(gives)})"
