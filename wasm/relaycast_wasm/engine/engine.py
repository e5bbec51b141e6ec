"""The engine that compiles and runs modules: wasmtime, set as nodes set it (``sc-executor-wasmtime``).

One for a process. A thread advances its epoch while calls run, so that each of them gets to look at the clock.
"""

import platform
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

import wasmtime
from wasmtime import _ffi as private

from relaycast_wasm.engine.host_shortcuts import TEXT
from relaycast_wasm.engine.kept_modules import KeptModules, Place, folder_of
from relaycast_wasm.engine.sections import with_own_memory
from relaycast_wasm.engine.shortcuts import with_shortcuts
from relaycast_wasm.exceptions import NotARuntime

TICK_SECONDS = 0.1
IDLE_TICKS = 20
"""After how many ticks without a call the thread ends."""

STACK_BYTES = 1024 * 1024

SWITCHES: dict[str, Any] = {
    "epoch_interruption": True,
    "max_wasm_stack": STACK_BYTES,
    "cranelift_opt_level": "speed",
    "memory_may_move": False,
    "wasm_component_model": False,
    "wasm_bulk_memory": False,
    "wasm_multi_value": False,
    "wasm_reference_types": False,
    "wasm_simd": False,
    "wasm_relaxed_simd": False,
    "wasm_threads": False,
    "wasm_multi_memory": False,
    "wasm_memory64": False,
    "wasm_tail_call": False,
    "wasm_exceptions": False,
    "wasm_function_references": False,
    "wasm_gc": False,
    "wasm_custom_page_sizes": False,
    "wasm_stack_switching": False,
    "wasm_wide_arithmetic": False,
}
"""What nodes take is WebAssembly's first version; what is beyond, they refuse, and so does this engine."""

COMPILES = SWITCHES | {"wasm_multi_memory": True}
"""What modules are compiled with once they are found valid: the shortcuts have a memory of their own."""

WASMTIME_VERSION = version("wasmtime")

DEPENDS_ON = repr(
    (WASMTIME_VERSION, platform.system(), platform.machine(), sys.byteorder, sorted(SWITCHES.items()), TEXT)
)
"""What compiled code depends on beside its source; of the processor's own instructions wasmtime keeps account."""


class Engine:
    """wasmtime's engine, and the thread that advances its epoch."""

    def __init__(self) -> None:
        self.wasmtime = wasmtime.Engine(_config(COMPILES))
        self._strict = wasmtime.Engine(_config(SWITCHES))
        self._lock = threading.Lock()
        self._calls = 0
        self._thread: threading.Thread | None = None

    def module(self, wasm: bytes, kept: Place) -> wasmtime.Module:
        """Return the compiled module, from disk where it is kept there; raises ``NotARuntime``."""
        folder = folder_of(kept)
        if folder is None:
            return self._compiled(wasm)
        modules = KeptModules(folder, DEPENDS_ON)
        name = modules.name_of(wasm)
        found = modules.find(name)
        if found is not None:
            try:
                return wasmtime.Module.deserialize(self.wasmtime, found)
            except wasmtime.WasmtimeError:  # of another processor
                pass
        module = self._compiled(wasm)
        modules.keep(name, bytes(module.serialize()))
        return module

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """Let the epoch advance meanwhile."""
        with self._lock:
            self._calls += 1
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._tick, name="relaycast epochs", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1

    def _compiled(self, wasm: bytes) -> wasmtime.Module:
        own = with_own_memory(wasm)
        try:
            # INVARIANT: code that names a second memory is refused before there is one
            wasmtime.Module.validate(self._strict, own)
            return wasmtime.Module(self.wasmtime, with_shortcuts(own))
        except wasmtime.WasmtimeError as error:
            raise NotARuntime(one_line(error)) from None

    def _tick(self) -> None:
        idle = 0
        while True:
            time.sleep(TICK_SECONDS)
            with self._lock:
                idle = 0 if self._calls else idle + 1
                if idle > IDLE_TICKS:
                    self._thread = None
                    return
            self.wasmtime.increment_epoch()


def _config(switches: dict[str, Any]) -> wasmtime.Config:
    config = wasmtime.Config()
    for name, value in switches.items():
        setattr(config, name, value)
    # on by default, and wasmtime ends the process where it is and reference types are not
    private.wasmtime_config_wasm_component_model_async_set(config.ptr(), False)
    return config


@cache
def shared_engine() -> Engine:
    """Return the engine of this process."""
    return Engine()


def one_line(error: Exception) -> str:
    """Return what wasmtime says is the cause of an error, without the addresses where it happened."""
    lines = [it.strip() for it in str(error).splitlines() if it.strip()]
    if "Caused by:" in lines:
        lines = lines[lines.index("Caused by:") + 1 :]
        return ": ".join(it.split(": ", 1)[-1] if it[0].isdigit() else it for it in lines[:3])
    return lines[0] if lines else "wasmtime gives no reason"
