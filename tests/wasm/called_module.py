"""WebAssembly modules that call host functions one after the other, and tell what each of them gave."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import wasmtime

from relaycast_wasm import OverlayedChanges, WasmRuntime
from relaycast_wasm.host.everything import HOST_FUNCTIONS
from wasm.text_runtime import VERSION

DATA, OUT, HEAP = 0x1000, 0x8_0000, 0x18_0000
"""Where constants stand, where what calls gave is written, and where the heap begins."""

NUMBERS = {"read_version_2", "proof_size_version_1", "last_cursor_version_1"}
"""Ends of the names of functions whose i64 is no span."""

ROOTS = ("blake2_256_root", "blake2_256_ordered_root", "keccak_256_root", "keccak_256_ordered_root")
POINTED = {f"trie_{name}_version_{number}": 32 for name in ROOTS for number in (1, 2)} | {
    f"hashing_{name}_version_1": length
    for name, length in {"blake2_128": 16, "blake2_256": 32, "keccak_256": 32, "sha2_256": 32, "twox_64": 8}.items()
}
"""Functions that give a pointer, and to how many bytes."""


@dataclass(frozen=True)
class At:
    """Bytes of which the function takes the place alone."""

    data: bytes


@dataclass(frozen=True)
class Room:
    """A buffer. It is given as a span, or as a pointer where the function knows its length."""

    length: int


Call = tuple[Any, ...]
"""A host function's name without ``ext_``, and what it is given: bytes, numbers, ``At`` and ``Room``."""


@dataclass(frozen=True)
class Outcome:
    """What a call gave: bytes, a number or nothing, and what it left in each buffer."""

    result: bytes | int | None
    rooms: tuple[bytes, ...] = ()


def outcomes(calls: Sequence[Call], overlay: OverlayedChanges) -> list[Outcome]:
    """Run the calls in a module over ``overlay`` and return what each gave."""
    return read_output(calls, WasmRuntime.load(module_of(calls)).call("run", b"", overlay).output)


def read_output(calls: Sequence[Call], output: bytes) -> list[Outcome]:
    """Take apart what the method ``run`` gives."""
    pieces = []
    while output:
        end = 4 + int.from_bytes(output[:4], "little")
        pieces.append(output[4:end])
        output = output[end:]
    taken = iter(pieces)
    found = []
    for name, *given in calls:
        kind = _kind(name)
        raw = next(taken) if kind else None
        result = int.from_bytes(raw, "little") if raw is not None and kind == "number" else raw
        found.append(Outcome(result, tuple(next(taken) for it in given if isinstance(it, Room))))
    assert next(taken, None) is None
    return found


def _kind(name: str) -> str:
    function = HOST_FUNCTIONS[f"ext_{name}"]
    if not function.result:
        return ""
    if name in POINTED:
        return "pointer"
    return "span" if function.result == "I" and not name.endswith(tuple(NUMBERS)) else "number"


def module_of(calls: Sequence[Call]) -> bytes:
    """Return the module whose method ``run`` makes these calls."""
    constants, body, place = [], [], DATA

    def keep(data: bytes) -> int:
        nonlocal place
        at, place = place, place + len(data)
        escaped = "".join(f"\\{byte:02x}" for byte in data)
        constants.append(f'(data (i32.const {at}) "{escaped}")')
        assert place < OUT
        return at

    for name, *given in calls:
        pushed, rooms = [], []
        for letter, it in zip(HOST_FUNCTIONS[f"ext_{name}"].parameters, given, strict=True):
            kind = "i64" if letter == "I" else "i32"
            number = it if isinstance(it, int) else 0
            if isinstance(it, At):
                number = keep(it.data)
            elif isinstance(it, bytes | Room):
                data = bytes(it.length) if isinstance(it, Room) else it
                at = keep(data)
                number = at if letter == "i" else len(data) << 32 | at
                if isinstance(it, Room):
                    rooms.append(f"(call $emit (i64.const {len(data) << 32 | at}))")
            pushed.append(f"({kind}.const {number})")
        body += [_told(name, f"(call ${name} {' '.join(pushed)})"), *rooms]
    version = keep(VERSION)
    text = "\n".join(
        [
            "(module",
            *(_import(name) for name in sorted({name for name, *_ in calls})),
            '(memory (export "memory") 64)',
            f'(global (export "__heap_base") i32 (i32.const {HEAP}))',
            HELPERS,
            *constants,
            f'(func (export "Core_version") (param i32 i32) (result i64) (i64.const {len(VERSION) << 32 | version}))',
            '(func (export "run") (param i32 i32) (result i64)',
            *body,
            f"(i64.or (i64.const {OUT}) (i64.shl (i64.extend_i32_u (i32.sub (global.get $out) (i32.const {OUT})))"
            " (i64.const 32)))))",
        ]
    )
    return _compiled(text)


def _told(name: str, call: str) -> str:
    kind, letter = _kind(name), HOST_FUNCTIONS[f"ext_{name}"].result
    if kind == "span":
        return f"(call $emit {call})"
    if kind == "pointer":
        return f"(call $emit (i64.or (i64.const {POINTED[name] << 32}) (i64.extend_i32_u {call})))"
    if kind == "number":
        return f"(call $tell {call if letter == 'I' else f'(i64.extend_i32_u {call})'})"
    return call


def _import(name: str) -> str:
    function = HOST_FUNCTIONS[f"ext_{name}"]
    types = {"i": "i32", "I": "i64"}
    parameters = "".join(f" (param {types[it]})" for it in function.parameters)
    result = f" (result {types[function.result]})" if function.result else ""
    return f'(import "env" "ext_{name}" (func ${name}{parameters}{result}))'


@cache
def _compiled(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(text))


HELPERS = f"""
(global $out (mut i32) (i32.const {OUT}))
(func $emit (param $span i64) (local $from i32) (local $left i32)
  (local.set $from (i32.wrap_i64 (local.get $span)))
  (local.set $left (i32.wrap_i64 (i64.shr_u (local.get $span) (i64.const 32))))
  (i32.store (global.get $out) (local.get $left))
  (global.set $out (i32.add (global.get $out) (i32.const 4)))
  (block $done (loop $next
    (br_if $done (i32.eqz (local.get $left)))
    (i32.store8 (global.get $out) (i32.load8_u (local.get $from)))
    (global.set $out (i32.add (global.get $out) (i32.const 1)))
    (local.set $from (i32.add (local.get $from) (i32.const 1)))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br $next))))
(func $tell (param $number i64)
  (i32.store (global.get $out) (i32.const 8))
  (i64.store (i32.add (global.get $out) (i32.const 4)) (local.get $number))
  (global.set $out (i32.add (global.get $out) (i32.const 12))))
"""
