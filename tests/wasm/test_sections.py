"""Sections of WebAssembly modules, and the memory that is made the module's own."""

import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st

from relaycast_wasm.engine.sections import custom_sections, sections, with_own_memory
from relaycast_wasm.exceptions import NotARuntime
from wasm.text_modules import IMPORTED_MEMORY, module


def memory_of(wasm: bytes) -> tuple[int, int | None]:
    compiled = wasmtime.Module(wasmtime.Engine(), wasm)
    assert not any(isinstance(it.type, wasmtime.MemoryType) for it in compiled.imports)
    (found,) = [it.type for it in compiled.exports if it.name == "memory"]
    assert isinstance(found, wasmtime.MemoryType)
    return found.limits.min, found.limits.max


@pytest.mark.parametrize(("memory", "pages"), [
    ('(import "env" "memory" (memory 17))', 17),
    ('(import "env" "memory" (memory 3 40))', 3),                    # what nodes give knows no maximum
    ('(memory (export "memory") 200)', 200),                         # more than a byte of LEB128 holds
    ('(memory (export "memory") 2 2)', 2),
    ("(memory 5)", 5),                                               # not exported: it is, from here on
    ('(memory (export "memory") (export "heap") 1)', 1),
    ('(import "env" "memory" (memory 1)) (export "memory" (memory 0))', 1),
])  # fmt: skip
def test_the_memory_is_the_modules_own_exported_and_without_a_maximum(memory: str, pages: int) -> None:
    whole = module("(i64.const 1)", imports=["ext_storage_get_version_1"], memory=memory)
    assert memory_of(with_own_memory(whole)) == (pages, None)


def test_all_else_stays_as_it_is() -> None:
    rest = '(table 3 funcref) (global i32 (i32.const 5)) (elem (i32.const 0) $run) (data (i32.const 8) "data")'
    whole = module("(i64.const 1)", imports=["ext_storage_get_version_1", "ext_storage_set_version_1"], rest=rest)
    before = {it.number: it.content for it in sections(whole) if it.number not in {2, 5, 7}}
    changed = with_own_memory(whole)
    assert {it.number: it.content for it in sections(changed) if it.number not in {2, 5, 7}} == before
    names = [it.name for it in wasmtime.Module(wasmtime.Engine(), changed).imports]
    assert names == ["ext_storage_get_version_1", "ext_storage_set_version_1"]


def test_a_module_whose_memory_is_its_own_is_changed_once() -> None:
    once = with_own_memory(module("(i64.const 1)"))
    assert with_own_memory(once) == once


def test_what_is_exported_as_memory_is_one() -> None:
    with pytest.raises(NotARuntime, match="what it exports as memory is none"):
        with_own_memory(module("(i64.const 1)", rest='(func (export "memory"))'))


def test_custom_sections_are_found_by_name_every_one() -> None:
    whole = module("(i64.const 1)", memory=IMPORTED_MEMORY)
    whole += b"\x00\x08\x04apisone" + b"\x00\x05\x05empty"[:0] + b"\x00\x08\x04apistwo" + b"\x00\x06\x05other"
    assert custom_sections(whole, "apis") == [b"one", b"two"]
    assert custom_sections(whole, "other") == [b""]
    assert custom_sections(whole, "none") == []


@given(st.binary(max_size=200))
def test_any_bytes_are_sections_or_refused(data: bytes) -> None:
    for act in (
        lambda: list(sections(b"\x00asm\x01\x00\x00\x00" + data)),
        lambda: with_own_memory(b"\x00asm\x01\x00\x00\x00" + data),
    ):
        try:
            act()
        except NotARuntime as error:
            assert "\n" not in str(error)  # noqa: PT017 - or they are sections
