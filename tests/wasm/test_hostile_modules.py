"""Modules that mean harm: each gets one clear refusal, the process stays up, and the next call goes well."""

import resource

import pytest
import wasmtime

from relaycast_wasm import (
    CallFailed,
    CallTookTooLong,
    HostFault,
    Limits,
    MissingExport,
    MissingHostFunction,
    NotARuntime,
    RuntimePanicked,
    WasmRuntime,
)
from relaycast_wasm.code_blob import COMPRESSED
from relaycast_wasm.engine.callbacks import Callbacks
from relaycast_wasm.engine.limits import EXTRA_PAGES
from relaycast_wasm.exceptions import MemoryExhausted
from relaycast_wasm.host.call_log import MOST_CHARACTERS
from relaycast_wasm.runtime import empty_overlay
from wasm.text_modules import HEAP_BASE, IMPORTED_MEMORY, OWN_MEMORY, module

NOTHING = "(i64.const 0)"
FOREVER = "(loop $l (br $l))"
DATA, CUSTOM = 11, 0
"""Numbers of sections."""

SHORT = Limits(seconds=0.3)


@pytest.fixture(params=["direct", "checked"])
def way(request: pytest.FixtureRequest) -> Callbacks:
    return request.param  # type: ignore[no-any-return]


def loaded(code: bytes, way: Callbacks = "direct") -> WasmRuntime:
    return WasmRuntime.load(code, None, callbacks=way)


def failure(code: bytes, way: Callbacks = "direct", limits: Limits = SHORT, data: bytes = b"") -> CallFailed:
    """Return how a call fails, twice the same: the first leaves nothing behind."""
    runtime = loaded(code, way)
    failures = []
    for _ in range(2):
        with pytest.raises(CallFailed) as it:
            runtime.call("run", data, empty_overlay(), limits=limits)
        failures.append(it.value)
    assert type(failures[0]) is type(failures[1])
    assert failures[0].reason == failures[1].reason
    assert "\n" not in str(failures[0])
    return failures[0]


def test_a_loop_without_end_is_stopped(way: Callbacks) -> None:
    found = failure(module(f"{FOREVER} {NOTHING}"), way)
    assert isinstance(found, CallTookTooLong)
    assert str(found) == "run failed: it took longer than 0.3 s"


def test_a_loop_that_only_calls_host_functions_is_stopped(way: Callbacks) -> None:
    body = f"(loop $l (drop (call $ext_offchain_timestamp_version_1)) (br $l)) {NOTHING}"
    assert isinstance(failure(module(body, imports=["ext_offchain_timestamp_version_1"]), way), CallTookTooLong)


def test_a_loop_before_the_first_call_is_stopped(way: Callbacks) -> None:
    code = module(NOTHING, rest=f"(func $begin {FOREVER}) (start $begin)")
    assert isinstance(failure(code, way), CallTookTooLong)


def test_what_begins_before_it_has_a_heap_gets_none(way: Callbacks) -> None:
    begin = "(func $begin (drop (call $ext_allocator_malloc_version_1 (i32.const 8)))) (start $begin)"
    code = module(NOTHING, imports=["ext_allocator_malloc_version_1"], rest=begin)
    assert isinstance(failure(code, way), MemoryExhausted)


def test_calls_that_nest_without_end_exhaust_the_stack_and_nothing_else(way: Callbacks) -> None:
    found = failure(module("(call $run (local.get $at) (local.get $length))"), way)
    assert isinstance(found, RuntimePanicked)
    assert found.reason == "its calls are nested too deep: the stack is exhausted"


@pytest.mark.parametrize("memory", [IMPORTED_MEMORY, OWN_MEMORY])
def test_memory_does_not_grow_beyond_its_limit(memory: str, way: Callbacks) -> None:
    body = "(if (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0)) (then (unreachable)))" + NOTHING
    runtime = loaded(module(body, memory=memory), way)
    assert runtime.call("run", b"", empty_overlay()).output == b""


def test_an_allocation_without_end_is_refused(way: Callbacks) -> None:
    body = "(loop $l (drop (call $ext_allocator_malloc_version_1 (i32.const 1000000))) (br $l)) (i64.const 0)"
    found = failure(module(body, imports=["ext_allocator_malloc_version_1"]), way, Limits())
    assert isinstance(found, MemoryExhausted)
    said = f"the memory may have {EXTRA_PAGES + 1} pages of 64 KiB, {EXTRA_PAGES + 17} are asked for"
    assert found.reason == f"ext_allocator_malloc_version_1: {said}"


def test_data_that_do_not_fit_are_refused() -> None:
    found = failure(module(NOTHING), limits=Limits(memory_pages=2), data=bytes(1 << 20))
    assert isinstance(found, MemoryExhausted)


def test_a_memory_of_many_pages_is_none() -> None:
    with pytest.raises(NotARuntime, match=r"its memory begins with 65536 pages of 64 KiB, at most 16384 are given"):
        loaded(module(NOTHING, memory='(import "env" "memory" (memory 65536))'))


def test_a_table_of_many_elements_is_refused() -> None:
    found = failure(module(NOTHING, rest="(table 100000000 funcref)"))
    assert isinstance(found, MemoryExhausted)


def test_data_outside_of_the_memory_are_refused(way: Callbacks) -> None:
    found = failure(module(NOTHING, rest='(data (i32.const 65535) "two")'), way)
    assert isinstance(found, RuntimePanicked)
    assert "out of bounds" in found.reason


@pytest.mark.parametrize(
    "span", [0x0000_0010_FFFF_FFF8, 0x7FFF_FFFF_0000_0000, 0xFFFF_FFFF_FFFF_FFFF, 0x8000_0000_8000_0000]
)
def test_an_answer_outside_of_the_memory_is_refused(span: int, way: Callbacks) -> None:
    found = failure(module(f"(i64.const 0x{span:x})"), way)
    assert isinstance(found, HostFault)


def test_an_answer_that_is_too_long_is_refused() -> None:
    found = failure(module("(i64.const 0x0000040000000000)"), limits=Limits(output_bytes=1_000))
    assert found.reason == "its answer has 1,024 bytes, at most 1,000 are taken"


def test_a_host_function_that_is_not_there_is_missed_when_it_is_called(way: Callbacks) -> None:
    unknown = '(import "env" "ext_brand_new_version_9" (func $new (param i64) (result i32)))'
    body = "(if (local.get $length) (then (drop (call $new (i64.const 0))))) (i64.const 0)"
    runtime = loaded(module(body, memory=f"{unknown} {IMPORTED_MEMORY}"), way)
    assert runtime.missing_imports == ["ext_brand_new_version_9"]
    assert runtime.call("run", b"", empty_overlay()).output == b""
    with pytest.raises(MissingHostFunction, match=r"^run failed: there is no host function ext_brand_new_version_9$"):
        runtime.call("run", b"now", empty_overlay())


@pytest.mark.parametrize(("taken", "reason"), [
    (
        '(import "env" "ext_storage_get_version_1" (func (param i32) (result i64)))',
        "it imports ext_storage_get_version_1 as (i32) -> (i64), which is (i64) -> (i64)",
    ),
    (
        '(import "env" "ext_storage_set_version_1" (func (param i64 i64) (result i32)))',
        "it imports ext_storage_set_version_1 as (i64, i64) -> (i32), which is (i64, i64) -> ()",
    ),
    (
        '(import "env" "ext_storage_get_version_1" (func (param f64) (result i64)))',
        "it imports ext_storage_get_version_1 as (f64) -> (i64), which is (i64) -> (i64)",
    ),
    ('(import "env" "table" (table 1 funcref))', "it imports the table env.table, a host gives functions of env alone"),
    ('(import "env" "g" (global i32))', "it imports the global env.g, a host gives functions of env alone"),
    (
        '(import "wasi_snapshot_preview1" "fd_write" (func (param i32)))',
        "it imports the function wasi_snapshot_preview1.fd_write, a host gives functions of env alone",
    ),
    ('(import "env" "heap" (memory 1))', "it imports the memory env.heap, a host gives env.memory"),
    ('(memory 1) (import "env" "memory" (memory 1))', None),
])  # fmt: skip
def test_an_import_that_no_host_has_is_refused_by_name(taken: str, reason: str | None) -> None:
    memory = taken if "memory" in taken else f"{taken} {IMPORTED_MEMORY}"
    if reason is None:
        with pytest.raises((NotARuntime, wasmtime.WasmtimeError)):
            loaded(module(NOTHING, memory=memory))
        return
    with pytest.raises(NotARuntime) as it:
        loaded(module(NOTHING, memory=memory))
    assert it.value.reason == reason


@pytest.mark.parametrize(("code", "reason"), [
    (module(NOTHING, heap_base=""), "it exports no __heap_base, the place where its heap begins"),
    (
        module(NOTHING, heap_base='(func (export "__heap_base"))'),
        "it exports no __heap_base, the place where its heap begins",
    ),
    (module(NOTHING, memory=""), "it has 0 memories, a runtime has one"),
    (
        module(NOTHING, memory="(memory i64 1)"),
        "its memory is shared, or has addresses of 64 bits or pages of its own size",
    ),
    (b"", "it begins with 0x, WebAssembly with 0x0061736d01000000"),
    (b"(module)", "it begins with 0x286d6f64756c6529, WebAssembly with 0x0061736d01000000"),
    (bytes.fromhex("0061736d0d000100"), "it is a component, a runtime is a module"),
    (b"\x00asm\x01\x00\x00\x00", "it has 0 memories, a runtime has one"),
    (COMPRESSED + b"\x00" * 100, None),
])  # fmt: skip
def test_what_is_no_runtime_is_refused_in_one_line(code: bytes, reason: str | None) -> None:
    with pytest.raises(NotARuntime) as it:
        loaded(code)
    assert "\n" not in str(it.value)
    if reason is not None:
        assert it.value.reason == reason


@pytest.mark.parametrize(("what", "text"), [
    ("bulk memory", "(memory.copy (i32.const 0) (i32.const 0) (i32.const 0)) (i64.const 0)"),
    ("SIMD", "(drop (i8x16.splat (i32.const 0))) (i64.const 0)"),
])  # fmt: skip
def test_instructions_that_nodes_do_not_take_are_refused_here_too(what: str, text: str) -> None:
    with pytest.raises(NotARuntime, match=f"{what} support is not enabled"):
        loaded(module(text))


def test_every_cut_of_a_module_is_refused_in_one_line() -> None:
    whole = module(NOTHING, imports=["ext_storage_get_version_1"], rest='(data (i32.const 8) "some data")')
    complete = []
    for length in range(len(whole)):
        try:
            loaded(whole[:length])
        except NotARuntime as error:
            assert "\n" not in str(error)  # noqa: PT017 - or it is whole
        else:
            complete.append(whole[length])
    assert complete == [DATA, CUSTOM], "what is cut between two sections is whole"


def test_a_module_with_any_byte_changed_is_refused_or_runs_within_its_limits() -> None:
    whole = module(NOTHING, imports=["ext_storage_get_version_1"], rest='(data (i32.const 8) "some data")')
    for place in range(8, len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        try:
            runtime = loaded(bytes(changed))
            runtime.call("run", b"", empty_overlay(), limits=SHORT)
        except (NotARuntime, MissingExport, CallFailed) as error:
            assert "\n" not in str(error)  # noqa: PT017 - either is right


def test_a_method_of_another_type_is_none() -> None:
    runtime = loaded(module(NOTHING, rest='(func (export "other") (param i32) (result i32) (local.get 0))'))
    assert runtime.methods == {"run"}
    for name in ("other", "memory", "__heap_base", "nothing", ""):
        with pytest.raises(MissingExport):
            runtime.call(name, b"", empty_overlay())


def test_a_panic_comes_with_its_message_and_the_lines_before(way: Callbacks) -> None:
    data = '(data (i32.const 8) "runtimehellopanicked")'
    log = "(call $ext_logging_log_version_1 (i32.const {}) (i64.const 0x700000008) (i64.const 0x{}))"
    body = log.format(2, "50000000f") + log.format(0, "800000014") + "(unreachable)"
    found = failure(module(body, imports=["ext_logging_log_version_1"], rest=data), way)
    assert isinstance(found, RuntimePanicked)
    assert found.reason == "panicked"
    assert found.log == ("info runtime: hello", "error runtime: panicked")


def test_a_fault_without_a_message_says_which(way: Callbacks) -> None:
    assert failure(module("(unreachable)"), way).reason == "wasm trap: wasm `unreachable` instruction executed"
    found = failure(module("(i64.div_u (i64.const 1) (i64.const 0))"), way)
    assert found.reason == "wasm trap: integer divide by zero"


@pytest.mark.slow
def test_lines_without_end_are_counted_and_not_kept() -> None:
    body = (
        "(loop $l (call $ext_logging_log_version_1 (i32.const 2) (i64.const 8) (i64.const 0x2800000010))"
        " (local.set $at (i32.add (local.get $at) (i32.const 1)))"
        " (br_if $l (i32.lt_u (local.get $at) (i32.const 400000)))) (i64.const 0)"
    )
    log = loaded(module(body, imports=["ext_logging_log_version_1"])).call("run", b"", empty_overlay()).log
    assert sum(map(len, log)) <= MOST_CHARACTERS + 100
    assert log[-1].endswith(" more lines")


def test_transactions_that_are_opened_without_end_are_refused(way: Callbacks) -> None:
    body = f"(loop $l (call $ext_storage_start_transaction_version_1) (br $l)) {NOTHING}"
    found = failure(module(body, imports=["ext_storage_start_transaction_version_1"]), way, Limits())
    assert isinstance(found, HostFault)
    assert found.reason == "ext_storage_start_transaction_version_1: at most 1,024 transactions may be open"


def test_bytes_that_host_functions_take_are_bounded(way: Callbacks) -> None:
    body = "(loop $l (call $ext_offchain_index_set_version_1 (i64.const 0x1000000008) (i64.const 8)) (br $l))"
    code = module(body + NOTHING, imports=["ext_offchain_index_set_version_1"])
    found = failure(code, way, Limits(read_bytes=100_000))
    assert isinstance(found, HostFault)
    assert found.reason.endswith("one call may hand 100,000 bytes to host functions")


def test_a_failed_call_leaves_everything_usable(way: Callbacks) -> None:
    body = "(if (local.get $length) (then (unreachable))) (i64.const 0x400000008)"
    runtime = loaded(module(body, rest='(data (i32.const 8) "well")'), way)
    for _ in range(3):
        with pytest.raises(RuntimePanicked):
            runtime.call("run", b"!", empty_overlay())
        assert runtime.call("run", b"", empty_overlay()).output == b"well"


def test_calls_leave_no_memory_behind() -> None:
    touch = (
        "(loop $l (i32.store8 (local.get $at) (i32.const 1)) (local.set $at (i32.add (local.get $at) (i32.const 4096)))"
    )
    body = f"{touch} (br_if $l (i32.lt_u (local.get $at) (i32.const 8000000)))) (unreachable)"
    runtime = loaded(module(body))
    for round_ in range(120):
        with pytest.raises(RuntimePanicked):
            runtime.call("run", b"", empty_overlay())
        if round_ == 20:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000, "100 calls touched 800 MB"


def test_heap_bases_are_numbers_without_sign() -> None:
    high = HEAP_BASE.replace("1024", "0xfffffff0")
    assert isinstance(failure(module(NOTHING, heap_base=high)), MemoryExhausted)
