"""Small modules in WebAssembly text: what runtimes import and export, around one method."""

from collections.abc import Iterable

import wasmtime

from relaycast_wasm.host.everything import HOST_FUNCTIONS

IMPORTED_MEMORY = '(import "env" "memory" (memory 1))'
OWN_MEMORY = '(memory (export "memory") 1)'
HEAP_BASE = '(global (export "__heap_base") i32 (i32.const 1024))'

TYPES = {"i": "i32", "I": "i64"}


def module(
    body: str,
    *,
    imports: Iterable[str] = (),
    memory: str = IMPORTED_MEMORY,
    heap_base: str = HEAP_BASE,
    rest: str = "",
) -> bytes:
    """Return a module whose method ``run`` is ``body``: it has ``$at`` and ``$length`` of its data and gives an i64."""
    run = f'(func $run (export "run") (param $at i32) (param $length i32) (result i64) {body})'
    parts = [*map(imported, imports), memory, heap_base, rest, run]
    return bytes(wasmtime.wat2wasm(f"(module {' '.join(parts)})"))


def imported(name: str) -> str:
    """Return the import of a host function, under its own name."""
    function = HOST_FUNCTIONS[name]
    takes = " ".join(f"(param {TYPES[it]})" for it in function.parameters)
    gives = f"(result {TYPES[function.result]})" if function.result else ""
    return f'(import "env" "{name}" (func ${name} {takes} {gives}))'
