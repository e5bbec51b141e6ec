"""Runtimes in WebAssembly text whose methods answer what a test wants, log, trap, or call what is not there."""

from collections.abc import Iterable, Mapping

import wasmtime

from relaycast_trie.scale import encode_bytes, encode_u8, encode_u32, encode_vec
from relaycast_wasm.metadata.api_names import api_id

FIRST_ANSWER = 1_024
KEY = b"greeting"
WRITTEN = bytes(range(40))
"""What the method ``root`` writes: longer than a trie node of version 1 holds."""

CONSTANTS = {"the key": KEY, "the value": WRITTEN, "the target": b"runtime", "the line": b"no money"}


def version(
    spec: int = 1, transaction: int = 1, apis: Iterable[str] = ("Core", "Metadata"), *, state_version: int = 1
) -> bytes:
    """Return a ``RuntimeVersion`` of the runtime ``bank``."""
    listed = encode_vec(api_id(name) + encode_u32(4) for name in apis)
    numbers = b"".join(map(encode_u32, (1, spec, 1)))
    return (
        encode_bytes(b"bank")
        + encode_bytes(b"relaycast")
        + numbers
        + listed
        + encode_u32(transaction)
        + encode_u8(state_version)
    )


def runtime_code(answers: Mapping[str, bytes], *, state_version: int = 1) -> bytes:
    """Return WebAssembly that gives these answers.

    ``greeting`` answers what stands under ``KEY`` (an ``Option<Vec<u8>>``), ``panic`` logs an error and traps,
    ``absent`` calls a host function that no host has. ``root`` writes ``WRITTEN`` under ``KEY`` and answers the state
    root in ``state_version``.
    """
    at, data, methods = FIRST_ANSWER, [], []
    for name, answer in {**CONSTANTS, **answers}.items():
        span = at | len(answer) << 32
        escaped = "".join(f"\\{byte:02x}" for byte in answer)
        data.append(f'(data (i32.const {at}) "{escaped}")')
        if name.startswith("the "):
            data[-1] += f" (global ${name.replace(' ', '_')} i64 (i64.const {span}))"
        else:
            methods.append(f'(func (export "{name}") (param i32 i32) (result i64) (i64.const {span}))')
        at += len(answer)
    pages = at // 65_536 + 1
    return bytes(
        wasmtime.wat2wasm(f"""(module
(import "env" "memory" (memory {pages}))
(import "env" "ext_storage_get_version_1" (func $get (param i64) (result i64)))
(import "env" "ext_logging_log_version_1" (func $log (param i32 i64 i64)))
(import "env" "ext_storage_set_version_1" (func $set (param i64 i64)))
(import "env" "ext_storage_root_version_2" (func $root (param i32) (result i64)))
(import "env" "ext_from_another_planet_version_1" (func $absent))
(global (export "__heap_base") i32 (i32.const {pages * 65_536}))
{" ".join(data)}
{" ".join(methods)}
(func (export "greeting") (param i32 i32) (result i64) (call $get (global.get $the_key)))
(func (export "root") (param i32 i32) (result i64)
  (call $set (global.get $the_key) (global.get $the_value)) (call $root (i32.const {state_version})))
(func (export "panic") (param i32 i32) (result i64)
  (call $log (i32.const 0) (global.get $the_target) (global.get $the_line)) unreachable)
(func (export "absent") (param i32 i32) (result i64) (call $absent) (i64.const 0)))""")
    )


def bank(
    metadata: bytes,
    *,
    spec: int = 1,
    transaction: int = 1,
    state_version: int = 1,
    answers: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return the runtime ``bank`` with this metadata, and these ``answers`` of other methods."""
    said = version(spec, transaction, state_version=state_version)
    given = {"Core_version": said, "Metadata_metadata": encode_bytes(metadata)}
    return runtime_code({**given, **(answers or {})}, state_version=state_version)
