"""What is done inside of WebAssembly is what the host functions do: every digest, every pointer, every fault."""

from dataclasses import dataclass
from typing import NoReturn

import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie.hasher import twox_64, twox_128
from relaycast_wasm import CallFailed, HostFault, Limits, NotARuntime, WasmRuntime
from relaycast_wasm.engine.call_sites import redirected
from relaycast_wasm.engine.host_shortcuts import TWOX_BELOW_BYTES
from relaycast_wasm.engine.sections import (
    CODE,
    MEMORY,
    PREAMBLE_BYTES,
    ModuleReader,
    Section,
    joined,
    leb128,
    sections,
    with_own_memory,
)
from relaycast_wasm.engine.shortcuts import STATE_EXPORT, with_shortcuts
from relaycast_wasm.host import registry
from relaycast_wasm.host.allocator import AllocatorFault, FreeingBumpAllocator
from relaycast_wasm.host.host_call import HostRefusal
from relaycast_wasm.runtime import empty_overlay
from wasm.byte_memory import ByteMemory
from wasm.text_modules import module

MALLOC, FREE = "ext_allocator_malloc_version_1", "ext_allocator_free_version_1"
TWOX_128, TWOX_64 = "ext_hashing_twox_128_version_1", "ext_hashing_twox_64_version_1"
HEAP_BASE, HEAP_PAGES = 1024, 3
SPAN = "(i64.or (i64.extend_i32_u (local.get $at)) (i64.shl (i64.extend_i32_u (local.get $length)) (i64.const 32)))"


def hashes(name: str, digest_bytes: int) -> bytes:
    """Return a module that answers with a digest of its data."""
    body = f"(i64.or (i64.const {digest_bytes << 32}) (i64.extend_i32_u (call ${name} {SPAN})))"
    return module(body, imports=[MALLOC, FREE, name])


def answer(runtime: WasmRuntime, data: bytes) -> bytes:
    return runtime.call("run", data, empty_overlay(), limits=Limits(memory_pages=HEAP_PAGES)).output


@pytest.mark.parametrize(("name", "digest"), [(TWOX_128, twox_128), (TWOX_64, twox_64)])
def test_names_of_every_length_have_the_digest_that_the_host_gives(name: str, digest: type[bytes]) -> None:
    runtime = WasmRuntime.load(hashes(name, len(digest(b""))), None)
    for length in range(3 * TWOX_BELOW_BYTES):
        data = bytes(7 + 31 * at & 0xFF for at in range(length))
        assert answer(runtime, data) == digest(data), length


@pytest.mark.parametrize("name", [TWOX_128, TWOX_64])
def test_short_names_are_hashed_without_the_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> NoReturn:
        raise HostRefusal("the host is asked")

    monkeypatch.setitem(registry._FUNCTIONS, name, registry.HostFunction(name, "I", "i", refuse))
    runtime = WasmRuntime.load(hashes(name, 8), None)
    assert answer(runtime, b"Balances") == twox_64(b"Balances")
    with pytest.raises(HostFault, match=f"^run failed: {name}: the host is asked$"):
        answer(runtime, bytes(TWOX_BELOW_BYTES))


@pytest.mark.parametrize(("span", "reason"), [
    (0x0000_0004_7FFF_0000, "4 bytes at 2147418112 are not within a memory of 262144 bytes"),
    (0x0000_0005_0003_FFFC, "5 bytes at 262140 are not within a memory of 262144 bytes"),
    (0x0000_0000_FFFF_FFFF, "0 bytes at 4294967295 are not within a memory of 262144 bytes"),
])  # fmt: skip
def test_a_name_outside_of_the_memory_is_refused_in_the_hosts_words(span: int, reason: str) -> None:
    body = f"(drop (call ${TWOX_128} (i64.const 0x{span:x}))) (i64.const 0)"
    runtime = WasmRuntime.load(module(body, imports=[MALLOC, FREE, TWOX_128]), None)
    with pytest.raises(HostFault, match=f"^run failed: {TWOX_128}: {reason}$"):
        answer(runtime, b"")


@pytest.mark.parametrize("imports", [[MALLOC, FREE, TWOX_128], [TWOX_128]])
def test_a_digest_that_finds_no_room_fails_as_the_hosts_does(imports: list[str]) -> None:
    """The memory is full to its last 8 bytes with the data of the call; with the allocator inside, and without."""
    body = f"(loop $l (drop (call ${TWOX_128} (i64.const 0x400000008))) (br $l)) (i64.const 0)"
    runtime = WasmRuntime.load(module(body, imports=imports), None)
    with pytest.raises(CallFailed) as it:
        answer(runtime, b"")
    assert it.value.reason == f"{TWOX_128}: the memory may have 4 pages of 64 KiB, 5 are asked for"


SCRIPT = f"""
  (local $next i32) (local $end i32)
  (local.set $next (local.get $at))
  (local.set $end (i32.add (local.get $at) (local.get $length)))
  (block $done (loop $more
    (br_if $done (i32.ge_u (local.get $next) (local.get $end)))
    (if (i32.eq (i32.load (local.get $next)) (i32.const 0)) (then
      (i32.store offset=4 (local.get $next) (call ${MALLOC} (i32.load offset=4 (local.get $next))))))
    (if (i32.eq (i32.load (local.get $next)) (i32.const 1)) (then
      (call ${FREE} (i32.load offset=4 (local.get $next)))))
    (if (i32.eq (i32.load (local.get $next)) (i32.const 2)) (then
      (i64.store (i32.load offset=4 (local.get $next)) (i64.load offset=8 (local.get $next)))))
    (local.set $next (i32.add (local.get $next) (i32.const 16)))
    (br $more)))
  {SPAN}
"""
ALLOCATE, GIVE_BACK, WRITE = 0, 1, 2


@pytest.fixture(scope="module")
def scripted() -> WasmRuntime:
    return WasmRuntime.load(module(SCRIPT, imports=[MALLOC, FREE]), None)


@dataclass(frozen=True)
class Step:
    """Allocate ``number`` bytes; free what was given out as that number, or what stands there; or write over one."""

    act: str
    number: int
    word: int = 0


STEPS = st.one_of(
    st.builds(Step, st.just("allocate"), st.one_of(st.integers(0, 300), st.integers(0, 70_000), st.just(2**25 + 1))),
    st.builds(Step, st.just("free"), st.integers(0, 30)),
    st.builds(Step, st.just("free at"), st.one_of(st.integers(0, 300_000), st.integers(0, 2**32 - 1))),
    st.builds(Step, st.just("write over"), st.integers(0, 30), st.integers(0, 2**34)),
)


@given(steps=st.lists(STEPS, max_size=60))
def test_the_allocator_inside_agrees_with_the_hosts(scripted: WasmRuntime, steps: list[Step]) -> None:
    memory = ByteMemory(1 + HEAP_PAGES, most=1 + HEAP_PAGES)
    twin = FreeingBumpAllocator(memory, HEAP_BASE, max_pages=1 + HEAP_PAGES)
    twin.allocate(16 * len(steps))
    script, expected, given_out, fault = b"", b"", [0], ""
    for step in steps:
        pointer = given_out[step.number % len(given_out)]
        act, argument = ALLOCATE, step.number
        if step.act in ("free", "free at"):
            act, argument = GIVE_BACK, pointer if step.act == "free" else step.number
        elif step.act == "write over":
            act, argument = WRITE, max(pointer - 8, 0)
        script += act.to_bytes(4, "little") + argument.to_bytes(4, "little") + step.word.to_bytes(8, "little")
        if fault:
            continue
        result = argument
        try:
            if act == ALLOCATE:
                result = twin.allocate(argument)
                given_out.append(result)
            elif act == GIVE_BACK:
                twin.free(argument)
            else:
                memory.write_u64(argument, step.word)
        except AllocatorFault as error:
            fault = f"{MALLOC if act == ALLOCATE else FREE}: {error}"
        expected += act.to_bytes(4, "little") + result.to_bytes(4, "little") + step.word.to_bytes(8, "little")
    if fault:
        with pytest.raises(CallFailed) as it:
            answer(scripted, script)
        assert it.value.reason == fault
    else:
        assert answer(scripted, script) == expected


def test_allocating_and_freeing_asks_the_host_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> NoReturn:
        raise HostRefusal("the host is asked")

    monkeypatch.setitem(registry._FUNCTIONS, MALLOC, registry.HostFunction(MALLOC, "i", "i", refuse))
    monkeypatch.setitem(registry._FUNCTIONS, FREE, registry.HostFunction(FREE, "i", "", refuse))
    runtime = WasmRuntime.load(module(SCRIPT, imports=[MALLOC, FREE]), None, callbacks="checked")
    first = HEAP_BASE + 16 + 64
    script = b"".join(
        act.to_bytes(4, "little") + argument.to_bytes(12, "little")
        for act, argument in [(ALLOCATE, 100), (GIVE_BACK, first), (ALLOCATE, 100)]
    )
    assert [answer(runtime, script)[at : at + 4] for at in (4, 36)] == [first.to_bytes(4, "little")] * 2


@pytest.mark.parametrize("imports", [[], [MALLOC], [FREE, TWOX_128]])
def test_a_module_without_the_allocator_stays_as_it_is(imports: list[str]) -> None:
    whole = with_own_memory(module("(i64.const 0)", imports=imports))
    assert with_shortcuts(whole) == whole


def test_the_state_is_a_memory_that_the_module_did_not_have() -> None:
    changed = with_shortcuts(with_own_memory(module("(i64.const 0)", imports=[MALLOC, FREE])))
    config = wasmtime.Config()
    config.wasm_multi_memory = True
    compiled = wasmtime.Module(wasmtime.Engine(config), changed)
    memories = [it.name for it in compiled.exports if isinstance(it.type, wasmtime.MemoryType)]
    assert memories == ["memory", STATE_EXPORT]


def test_code_that_names_a_second_memory_is_refused() -> None:
    """It would be valid once the module has that of the state."""
    body = "(i64.store $state (i32.const 8) (i64.const 64)) (i64.const 0)"
    both = module(body, imports=[MALLOC, FREE], memory='(memory (export "memory") 1) (memory $state 1)')
    one = [Section(MEMORY, b"\x01\x00\x01") if it.number == MEMORY else it for it in sections(both)]
    with pytest.raises(NotARuntime, match="malformed memop alignment"):
        WasmRuntime.load(joined(both[:PREAMBLE_BYTES], one), None)


def body_of(text: str) -> bytes:
    code = next(it.content for it in sections(bytes(wasmtime.wat2wasm(f"(module {text})"))) if it.number == CODE)
    reader = ModuleReader(code)
    return [reader.take(reader.number()) for _ in range(reader.number())][-1]


EVERYTHING = """
  (type $t (func)) (table 1 funcref) (memory 1) (func $a) (func $b)
  (func (local i32 i64 i64 f32) (f32.const 7e-45) drop (f64.const 1e300) drop (i32.const -4080) drop (i64.const 16) drop
    (block (loop (br_table 0 1 1 0 (i32.const 16))))
    (drop (i32.trunc_sat_f32_s (f32.const 16))) (drop (i64.extend32_s (i64.const 4096)))
    (i64.store offset=4096 (i32.const 16) (i64.const 2064)) (drop (memory.grow (memory.size)))
    (if (i32.const 0) (then (call_indirect (type $t) (i32.const 0)))) (call %s) (call $b))
"""


def test_a_call_goes_elsewhere_and_nothing_else_changes() -> None:
    assert redirected(body_of(EVERYTHING % "$a"), {0: 1}) == body_of(EVERYTHING % "$b")


def test_a_call_with_a_padded_number_goes_elsewhere_too() -> None:
    assert redirected(b"\x00\x10\x83\x80\x80\x80\x00\x0b", {3: 300}) == b"\x00\x10" + leb128(300) + b"\x0b"


@pytest.mark.parametrize("body", [
    b"\x00\x10\x03\xfd\x0c\x0b",  # an instruction that is not known
    b"\x00\x10\x03\x41",          # cut off
    b"\x00\x10\x03\xfc\x08\x0b",  # bulk memory
    b"\x00\x41\x10\x41\x03\x0b",  # no call at all
])  # fmt: skip
def test_a_body_that_is_not_understood_stays_as_it_is(body: bytes) -> None:
    assert redirected(body, {3: 300}) == body
