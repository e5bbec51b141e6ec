"""How WebAssembly gets to host functions, in two ways that do the same.

``direct`` hands wasmtime a C function for each of them (``wasmtime_linker_define_func_unchecked``). Arguments and the
result stand in slots of 16 bytes, which a Python function reads and writes in place. It is a private part of wasmtime's
Python package, for one version of it. ``checked`` is its public way, at some 20 times the cost.
"""

import ctypes
from collections.abc import Callable
from typing import Any, Literal

import wasmtime
from wasmtime import _ffi as private
from wasmtime._extern import wrap_extern

from relaycast_wasm.engine.engine import WASMTIME_VERSION
from relaycast_wasm.engine.running_call import Calls
from relaycast_wasm.exceptions import MissingHostFunction
from relaycast_wasm.host.memory import U32
from relaycast_wasm.host.registry import HostFunction

Callbacks = Literal["direct", "checked"]

DIRECT_IN = "50.0.1"
"""The version of wasmtime's package whose private part ``direct`` is written for."""

U64 = 0xFFFF_FFFF_FFFF_FFFF
TRAPPED = b"a host function failed"
MALLOC, FREE = "ext_allocator_malloc_version_1", "ext_allocator_free_version_1"

Slots = Any
"""A pointer to u64: argument ``n`` stands at ``2 * n``, the result at 0."""

HOST_FUNCTION_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t
)
DEADLINE_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint8),
)


def default_callbacks() -> Callbacks:
    """Return ``direct`` where wasmtime's package is the one that it is written for."""
    return "direct" if WASMTIME_VERSION == DIRECT_IN and hasattr(private, "dll") else "checked"


class DirectCallbacks:
    """The direct way; keeps alive what wasmtime points to."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._kept: list[Any] = []
        pointer, text, length = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
        define = [pointer, text, length, text, length, pointer, HOST_FUNCTION_TYPE, pointer, pointer]
        self._define = _c_function("wasmtime_linker_define_func_unchecked", pointer, define)
        self._trap = _c_function("wasmtime_trap_new", pointer, [text, length])
        self._error = _c_function("wasmtime_error_new", pointer, [text])
        watch = [pointer, DEADLINE_TYPE, pointer, pointer]
        self._on_deadline = _c_function("wasmtime_store_epoch_deadline_callback", None, watch)
        export = [pointer, pointer, text, length, pointer]
        self._export = _c_function("wasmtime_instance_export_get", ctypes.c_bool, export)
        self._deadline = DEADLINE_TYPE(self._tick)

    def define(self, linker: wasmtime.Linker, it: wasmtime.ImportType, function: HostFunction | None) -> None:
        """Let ``linker`` have a host function; calling one that is ``None`` fails."""
        module, name = it.module.encode(), (it.name or "").encode()
        callback = HOST_FUNCTION_TYPE(self._entry(it.name or "", function))
        self._kept.append(callback)
        given = (linker.ptr(), module, len(module), name, len(name), it.type.ptr(), callback, None, None)
        error = self._define(*given)
        assert not error, f"wasmtime does not take the host function {it.name}"

    def watch(self, store: wasmtime.Store, *, ticks: int) -> None:  # noqa: ARG002 - the clock itself is looked at
        """Let a call in ``store`` look up at every tick."""
        self._on_deadline(store.ptr(), self._deadline, None, None)
        store.set_epoch_deadline(1)

    def exported(self, instance: wasmtime.Instance, store: wasmtime.Store, name: str) -> Any:
        """Return one export; the public way wraps all of them."""
        item, encoded = private.wasmtime_extern_t(), name.encode()
        given = (store._context(), ctypes.byref(instance._instance), encoded, len(encoded), ctypes.byref(item))
        found = self._export(*given)
        assert found, f"{name} is exported"
        return wrap_extern(item)

    def _tick(self, _context: Any, _data: Any, more: Slots, kind: Slots) -> int:
        call = self._calls.running()
        try:
            call.look_up()
        except BaseException as error:
            call.fail("", error)
            return int(self._error(TRAPPED))
        more[0] = 1
        kind[0] = 0
        return 0

    def _entry(self, name: str, function: HostFunction | None) -> Callable[[Any, Any, Slots, int], int]:
        calls = self._calls

        def failed(error: BaseException) -> int:
            calls.running().fail(name, error)
            return int(self._trap(TRAPPED, len(TRAPPED)))

        if function is None:

            def missing(_env: Any, _caller: Any, _slots: Slots, _count: int) -> int:
                return failed(MissingHostFunction(name, f"there is no host function {name}"))

            return missing
        if name == MALLOC:

            def malloc(_env: Any, _caller: Any, slots: Slots, _count: int) -> int:
                try:
                    slots[0] = calls.current.allocate(slots[0] & U32)  # type: ignore[union-attr]
                except BaseException as error:
                    return failed(error)
                return 0

            return malloc
        if name == FREE:

            def free(_env: Any, _caller: Any, slots: Slots, _count: int) -> int:
                try:
                    calls.current.free(slots[0] & U32)  # type: ignore[union-attr]
                except BaseException as error:
                    return failed(error)
                return 0

            return free
        return _plain_entry(function, calls, failed)


def _plain_entry(
    function: HostFunction, calls: Calls, failed: Callable[[BaseException], int]
) -> Callable[[Any, Any, Slots, int], int]:
    """Return the entry of a host function: one for each number of arguments that is frequent, for their speed."""
    run, has_result = function.run, bool(function.result)
    masks = [U32 if letter == "i" else U64 for letter in function.parameters]
    places = [(2 * at, mask) for at, mask in enumerate(masks)]
    first, second, *_ = *masks, U64, U64

    def one(_env: Any, _caller: Any, slots: Slots, _count: int) -> int:
        try:
            result = run(calls.current.host, slots[0] & first)  # type: ignore[union-attr]
            if has_result:
                slots[0] = result
        except BaseException as error:
            return failed(error)
        return 0

    def two(_env: Any, _caller: Any, slots: Slots, _count: int) -> int:
        try:
            result = run(calls.current.host, slots[0] & first, slots[2] & second)  # type: ignore[union-attr]
            if has_result:
                slots[0] = result
        except BaseException as error:
            return failed(error)
        return 0

    def several(_env: Any, _caller: Any, slots: Slots, _count: int) -> int:
        try:
            result = run(calls.running().host, *[slots[at] & mask for at, mask in places])
            if has_result:
                slots[0] = result
        except BaseException as error:
            return failed(error)
        return 0

    return {1: one, 2: two}.get(len(masks), several)


class CheckedCallbacks:
    """The public way."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def define(self, linker: wasmtime.Linker, it: wasmtime.ImportType, function: HostFunction | None) -> None:
        """Let ``linker`` have a host function; calling one that is ``None`` fails."""
        name = it.name or ""

        def run(*arguments: int) -> int | None:
            call = self._calls.running()
            try:
                call.look_up()
                if function is None:
                    raise MissingHostFunction(name, f"there is no host function {name}")
                masks = [U32 if letter == "i" else U64 for letter in function.parameters]
                result = function.run(call.host, *(it & mask for it, mask in zip(arguments, masks, strict=True)))
                return None if result is None else signed(result, 32 if function.result == "i" else 64)
            except BaseException as error:
                call.fail(name, error)
                raise

        assert isinstance(it.type, wasmtime.FuncType)
        linker.define_func(it.module, name, it.type, run)

    def watch(self, store: wasmtime.Store, *, ticks: int) -> None:
        """Let a call in ``store`` be trapped after ``ticks``."""
        store.set_epoch_deadline(ticks)

    def exported(self, instance: wasmtime.Instance, store: wasmtime.Store, name: str) -> Any:
        """Return one export."""
        return instance.exports(store)[name]


HostCallbacks = DirectCallbacks | CheckedCallbacks


def host_callbacks(way: Callbacks, calls: Calls) -> HostCallbacks:
    """Return what defines host functions that way."""
    return DirectCallbacks(calls) if way == "direct" else CheckedCallbacks(calls)


def signed(number: int, bits: int) -> int:
    """Return a number without sign as WebAssembly's Python face has it, with one."""
    return number - (1 << bits) if number >> (bits - 1) & 1 else number


def _c_function(name: str, result: Any, arguments: list[Any]) -> Any:
    """Return a C function of wasmtime with types of its own, whatever the package gave it."""
    function = private.dll[name]
    function.restype = result
    function.argtypes = arguments
    return function
