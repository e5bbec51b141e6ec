"""Frequent host functions inside of each runtime that imports the allocator: WebAssembly that calls no Python.

A block of 100 transfers makes some 35,000 allocations and as many hashes of names. A call that stays inside of
WebAssembly costs next to nothing, one that goes to Python and back a microsecond and a half at least. The allocator's
state stands where ``FreeingBumpAllocator`` has it, in a second memory that no code of the runtime can name.
"""

from functools import cache

import wasmtime

from relaycast_wasm.engine.call_sites import redirected
from relaycast_wasm.engine.host_shortcuts import TEXT
from relaycast_wasm.engine.sections import (
    CODE,
    EXPORT,
    FUNCTION,
    FUNCTION_KIND,
    IMPORT,
    MEMORY,
    MEMORY_KIND,
    PREAMBLE_BYTES,
    TYPE,
    ModuleReader,
    Section,
    import_entries,
    joined,
    leb128,
    sections,
    vector,
)

STATE_EXPORT = "relaycast allocator state"
"""Under which name the second memory is exported."""

ALLOCATES, FREES, HASHES = b"\x60\x01\x7f\x01\x7f", b"\x60\x01\x7f\x00", b"\x60\x01\x7e\x01\x7f"
"""Types of functions: (i32) -> (i32), (i32) -> () and (i64) -> (i32)."""

MALLOC, FREE = b"ext_allocator_malloc_version_1", b"ext_allocator_free_version_1"

TYPES = {
    MALLOC: ALLOCATES,
    FREE: FREES,
    b"ext_hashing_twox_128_version_1": HASHES,
    b"ext_hashing_twox_64_version_1": HASHES,
}
"""The imports that are answered inside of the module where they have these types, in the order of ``TEXT``."""


def with_shortcuts(wasm: bytes) -> bytes:
    """Return a module that has one memory of its own with shortcuts inside, and their state as a second memory.

    A module that does not import the allocator stays as it is.
    """
    content = list(sections(wasm))
    there = dict(content)
    if not {TYPE, IMPORT, FUNCTION, MEMORY, EXPORT, CODE} <= there.keys():
        return wasm
    types, functions = _types(there[TYPE]), _entries(there[FUNCTION])
    imported = [it for it in import_entries(there[IMPORT]) if it.kind == FUNCTION_KIND]
    found: dict[bytes, list[int]] = {}
    for number, it in enumerate(imported):
        if it.module == b"env" and it.type < len(types) and types[it.type] == TYPES.get(it.name):
            found.setdefault(it.name, []).append(number)
    if not {MALLOC, FREE} <= found.keys():
        return wasm
    own_bodies = _own_bodies()
    # the functions of TEXT by number: host functions, then ``allocate``, then those that stand for host functions
    first = len(imported) + len(functions)
    numbers = {len(TYPES): first}
    bodies, new_types, targets = [own_bodies[0]], [imported[found[MALLOC][0]].type], dict[int, int]()
    for order, name in enumerate(TYPES):
        if name in found:
            numbers[order] = found[name][0]
            targets |= dict.fromkeys(found[name], first + len(bodies))
            bodies.append(own_bodies[1 + order])
            new_types.append(imported[found[name][0]].type)
    code = [redirected(it, targets) for it in _bodies(there[CODE])] + [redirected(it, numbers) for it in bodies]
    new = {
        FUNCTION: vector([*functions, *map(leb128, new_types)]),
        MEMORY: vector([there[MEMORY][1:], b"\x00\x01"]),
        EXPORT: _more(there[EXPORT], leb128(len(STATE_EXPORT)) + STATE_EXPORT.encode() + bytes([MEMORY_KIND, 1])),
        CODE: vector([leb128(len(it)) + it for it in code]),
    }
    return joined(wasm[:PREAMBLE_BYTES], [Section(number, new.get(number, data)) for number, data in content])


@cache
def _own_bodies() -> list[bytes]:
    """Return the code of the functions of ``TEXT``."""
    code = next(it.content for it in sections(bytes(wasmtime.wat2wasm(TEXT))) if it.number == CODE)
    return _bodies(code)


def _types(data: bytes) -> list[bytes]:
    reader = ModuleReader(data)
    found = []
    for _ in range(reader.number()):
        start = reader.at
        reader.take(1)
        for _side in range(2):
            reader.take(reader.number())
        found.append(data[start : reader.at])
    return found


def _entries(data: bytes) -> list[bytes]:
    reader = ModuleReader(data)
    return [leb128(reader.number()) for _ in range(reader.number())]


def _bodies(data: bytes) -> list[bytes]:
    reader = ModuleReader(data)
    return [reader.take(reader.number()) for _ in range(reader.number())]


def _more(data: bytes, entry: bytes) -> bytes:
    """Return a vector with one more entry."""
    reader = ModuleReader(data)
    return leb128(reader.number() + 1) + data[reader.at :] + entry
