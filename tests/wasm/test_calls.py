"""What a call of a runtime is: an instance with memory of its own, the same by either way to host functions."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from relaycast_pallets.frame.state import State
from relaycast_wasm import HostFault, Limits, OverlayedChanges, RuntimePanicked, StateBacking, WasmRuntime
from relaycast_wasm.engine.callbacks import Callbacks, default_callbacks
from relaycast_wasm.exceptions import MemoryExhausted
from relaycast_wasm.host import registry
from relaycast_wasm.runtime import HEAP_PAGES, empty_overlay
from wasm.text_modules import IMPORTED_MEMORY, OWN_MEMORY, module

MALLOC, FREE = "ext_allocator_malloc_version_1", "ext_allocator_free_version_1"
NOTHING = "(i64.const 0)"
PAGES = "(i64.store (i32.const 8) (i64.extend_i32_u (memory.size))) (i64.const 0x800000008)"


@pytest.fixture(params=["direct", "checked"])
def way(request: pytest.FixtureRequest) -> Callbacks:
    return request.param  # type: ignore[no-any-return]


def loaded(code: bytes, way: Callbacks = "direct") -> WasmRuntime:
    return WasmRuntime.load(code, None, callbacks=way)


def run(runtime: WasmRuntime, data: bytes = b"", state: State | None = None, **limits: float) -> bytes:
    overlay = empty_overlay() if state is None else OverlayedChanges(StateBacking(state))
    return runtime.call("run", data, overlay, limits=Limits(**limits)).output  # type: ignore[arg-type]


def test_the_direct_way_is_the_one_for_the_wasmtime_that_is_pinned() -> None:
    assert default_callbacks() == "direct"


def test_numbers_reach_host_functions_without_sign_and_come_back(
    monkeypatch: pytest.MonkeyPatch, way: Callbacks
) -> None:
    """i32 and i64 in every place, with their highest bit set and not."""
    seen: list[tuple[int, ...]] = []

    def ext_mixed(_host: object, *arguments: int) -> int:
        seen.append(arguments)
        return 0xFFFF_FFFF_FFFF_FFFE

    mixed = registry.HostFunction("ext_mixed", "iIiIi", "I", ext_mixed)
    narrow = registry.HostFunction("ext_narrow", "i", "i", lambda _host, it: it)
    monkeypatch.setitem(registry._FUNCTIONS, "ext_mixed", mixed)
    monkeypatch.setitem(registry._FUNCTIONS, "ext_narrow", narrow)
    mixed_call = (
        "(call $ext_mixed (i32.const -1) (i64.const -2) (i32.const 0x80000000) (i64.const 0x7fffffffffffffff)"
        " (call $ext_narrow (i32.const 0xfffffff0)))"
    )
    body = f"(i64.store (i32.const 8) {mixed_call}) (i64.const 0x800000008)"
    assert run(loaded(module(body, imports=["ext_mixed", "ext_narrow"]), way)) == (2**64 - 2).to_bytes(8, "little")
    assert seen == [(2**32 - 1, 2**64 - 2, 2**31, 2**63 - 1, 0xFFFF_FFF0)]


@pytest.mark.parametrize("memory", [IMPORTED_MEMORY, OWN_MEMORY, '(import "env" "memory" (memory 1 1))'])
def test_data_go_in_and_an_answer_comes_out_by_either_memory(memory: str, way: Callbacks) -> None:
    body = "(i64.or (i64.shl (i64.extend_i32_u (local.get $length)) (i64.const 32)) (i64.extend_i32_u (local.get $at)))"
    runtime = loaded(module(body, memory=memory), way)
    for data in (b"", b"x", bytes(range(256)) * 1_000):
        assert run(runtime, data) == data


def test_a_heap_has_the_pages_that_the_state_says(way: Callbacks) -> None:
    runtime = loaded(module(PAGES), way)

    def pages(value: bytes | None) -> int:
        state = State(engine="plain")
        if value is not None:
            state.top.put(HEAP_PAGES, value)
        return int.from_bytes(run(runtime, state=state), "little")

    assert pages(None) == 1 + 2_048
    assert pages((64).to_bytes(8, "little")) == 1 + 64
    assert pages((2**64 - 1).to_bytes(8, "little")) == 16_384, "a limit of our own"
    assert pages(b"\x01") == 1 + 2_048, "what is no number is passed over"


def test_how_large_the_heap_is_is_no_part_of_the_proof() -> None:
    overlay = empty_overlay()
    loaded(module(PAGES)).call("run", b"", overlay)
    assert not overlay.reads
    assert not overlay.seeks


def test_memory_that_grew_while_webassembly_ran_is_seen(way: Callbacks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heap is grown before a call; a module whose limit lets it grow on meets a longer memory."""
    monkeypatch.setattr("relaycast_wasm.engine.memory.InstanceMemory.grow", lambda _self, _pages: True)
    body = (
        "(drop (memory.grow (i32.const 3))) (i64.store (i32.const 200000) (i64.const 0x6f6c6c6568))"
        "(call $ext_misc_print_utf8_version_1 (i64.const 0x500030d40)) (i64.const 0x500030d40)"
    )
    runtime = loaded(module(body, imports=["ext_misc_print_utf8_version_1"]), way)
    answer = runtime.call("run", b"", empty_overlay())
    assert answer.output == b"hello"
    assert answer.log == ("debug runtime: hello",)


def test_every_call_has_memory_of_its_own(way: Callbacks) -> None:
    body = "(i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1))) (i64.const 0x800000008)"
    runtime = loaded(module(body), way)
    assert {run(runtime) for _ in range(5)} == {(1).to_bytes(8, "little")}


def test_allocations_are_those_of_the_host(way: Callbacks) -> None:
    body = (
        f"(call ${FREE} (call ${MALLOC} (i32.const 100)))"
        f"(i64.store (i32.const 8) (i64.extend_i32_u (call ${MALLOC} (i32.const 128)))) (i64.const 0x800000008)"
    )
    runtime = loaded(module(body, imports=[MALLOC, FREE]), way)
    assert run(runtime) == (1_024 + 16 + 8).to_bytes(8, "little"), "behind the data of the call"
    twice = module(f"(call ${FREE} (i32.const 1032)) (call ${FREE} (i32.const 1032)) {NOTHING}", imports=[FREE])
    with pytest.raises(HostFault, match=f"^run failed: {FREE}: nothing was allocated at 1032$"):
        run(loaded(twice, way))


def test_threads_that_share_a_runtime_get_their_own_answers(way: Callbacks) -> None:
    body = (
        "(local $n i32) (loop $l (call $ext_storage_set_version_1 (local.tee $span (i64.or"
        " (i64.shl (i64.extend_i32_u (local.get $length)) (i64.const 32)) (i64.extend_i32_u (local.get $at))))"
        " (local.get $span)) (local.set $n (i32.add (local.get $n) (i32.const 1)))"
        " (br_if $l (i32.lt_u (local.get $n) (i32.const 50)))) (local.get $span)"
    ).replace("(local $n i32)", "(local $n i32) (local $span i64)")
    runtime = loaded(module(body, imports=["ext_storage_set_version_1"]), way)

    def one(number: int) -> None:
        overlay, data = empty_overlay(), str(number).encode()
        assert runtime.call("run", data, overlay).output == data
        assert overlay.changes() == {None: {data: data}}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(200)))


VERSIONED = '(func (export "Core_version") (param i32 i32) (result i64) {})'


def nested(code: bytes) -> str:
    """Return a body that asks for the version of ``code``, which is its data."""
    return (
        "(call $ext_misc_runtime_version_version_1 (i64.or (i64.shl (i64.extend_i32_u (local.get $length))"
        " (i64.const 32)) (i64.extend_i32_u (local.get $at))))"
    )


def test_another_runtime_is_asked_for_its_version_inside_of_a_call(way: Callbacks) -> None:
    asks = loaded(module(nested(b""), imports=["ext_misc_runtime_version_version_1"]), way)
    answers = module(NOTHING, rest=VERSIONED.format("(i64.const 0x400000008)") + '(data (i32.const 8) "said")')
    fails = module(NOTHING, rest=VERSIONED.format("(unreachable)"))
    assert run(asks, answers) == b"\x01\x10said"
    assert run(asks, fails) == b"\x00"
    assert run(asks, b"no code") == b"\x00"
    assert run(asks, answers) == b"\x01\x10said", "the call around goes on in its own memory"


def test_runtimes_that_ask_for_one_another_without_end_get_no_answer() -> None:
    body = "(call $run (i32.const 4096) (i32.load (i32.const 8)))"
    rest = VERSIONED.format("(drop (call $again)) (i64.const 0x100000008)")
    again = "(func $again (result i64) (call $ext_misc_runtime_version_version_1 (i64.const 0x300000008)))"
    code = module(nested(b""), imports=["ext_misc_runtime_version_version_1"], rest=rest + again)
    assert body
    assert run(loaded(code), code) == b"\x01\x04\x00"


def test_the_version_in_the_code_goes_before_the_runtimes_answer() -> None:
    apis = bytes.fromhex("df6acb689907609b") + (4).to_bytes(4, "little")
    version = b"\x08ab\x04c" + b"".join(it.to_bytes(4, "little") for it in (1, 9, 2)) + b"\x00" + bytes([5, 0, 0, 0, 1])

    def section(name: bytes, data: bytes) -> bytes:
        content = bytes([len(name)]) + name + data
        return b"\x00" + bytes([len(content)]) + content

    code = module(NOTHING) + section(b"runtime_version", version) + section(b"runtime_apis", apis)
    found = loaded(code).version
    assert (found.spec_name, found.spec_version, found.transaction_version, found.state_version) == ("ab", 9, 5, 1)
    assert found.apis == {apis[:8]: 4}
    asks = loaded(module(nested(b""), imports=["ext_misc_runtime_version_version_1"]))
    said = version[:17] + b"\x04" + apis + version[18:]
    assert run(asks, code) == b"\x01" + bytes([4 * len(said)]) + said


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Let SIGINT raise ``KeyboardInterrupt``, whatever ran in this process before."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_a_call_and_nothing_else(way: Callbacks) -> None:
    """While WebAssembly spins, and while it spins in host functions."""
    spins = "(if (local.get $length) (then (loop $l (drop (call $ext_offchain_timestamp_version_1)) (br $l))))"
    runtime = loaded(module(f"{spins} {NOTHING}", imports=["ext_offchain_timestamp_version_1"]), way)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(runtime, b"spin", seconds=20)
    assert run(runtime) == b""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_a_loop_that_calls_nobody() -> None:
    runtime = loaded(module(f"(loop $l (br $l)) {NOTHING}"))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(runtime, seconds=20)


def test_a_signal_whose_handler_goes_on_does_not_end_a_call(way: Callbacks) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: heard.append(number))
    try:
        body = (
            "(local $n i32) (loop $l (drop (call $ext_offchain_timestamp_version_1))"
            " (local.set $n (i32.add (local.get $n) (i32.const 1)))"
            " (br_if $l (i32.lt_u (local.get $n) (local.get $at))))"
        )
        runtime = loaded(module(body + NOTHING, imports=["ext_offchain_timestamp_version_1"]), way)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        assert run(runtime) == b""
        while not heard:
            signal.pause()
        assert heard == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_what_a_host_function_itself_does_wrong_is_not_laid_on_the_runtime(
    monkeypatch: pytest.MonkeyPatch, way: Callbacks
) -> None:
    def ext_broken(_host: object) -> None:
        raise AssertionError("an invariant of ours")

    monkeypatch.setitem(registry._FUNCTIONS, "ext_broken", registry.HostFunction("ext_broken", "", "", ext_broken))
    runtime = loaded(module(f"(call $ext_broken) {NOTHING}", imports=["ext_broken"]), way)
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"^an invariant of ours$"):
            run(runtime)


def test_memory_is_out_of_reach_once_a_call_is_over(monkeypatch: pytest.MonkeyPatch, way: Callbacks) -> None:
    hosts: list[object] = []
    monkeypatch.setitem(registry._FUNCTIONS, "ext_kept", registry.HostFunction("ext_kept", "", "", hosts.append))
    run(loaded(module(f"(call $ext_kept) {NOTHING}", imports=["ext_kept"]), way))
    (host,) = hosts
    with pytest.raises(Exception, match="1 bytes at 8 are not within a memory of 0 bytes"):
        host.memory.read(8, 1)  # type: ignore[attr-defined]
    with pytest.raises(Exception, match=r"asked for|cannot have"):
        host.allocator.allocate(2**20)  # type: ignore[attr-defined]
    assert host.memory.size == 0  # type: ignore[attr-defined]


def test_a_process_ends_while_the_clock_still_ticks() -> None:
    program = (
        "import sys; from relaycast_wasm import WasmRuntime\nfrom relaycast_wasm.runtime import empty_overlay\n"
        "WasmRuntime.load(bytes.fromhex(sys.argv[1]), None).call('run', b'', empty_overlay())"
    )
    command = [sys.executable, "-c", program, module(NOTHING).hex()]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}, capture_output=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_heap_base_behind_the_memory_leaves_no_heap() -> None:
    base = '(global (export "__heap_base") i32 (i32.const 0x7fffffff))'
    with pytest.raises(MemoryExhausted):
        run(loaded(module(NOTHING, heap_base=base)))


def test_a_trap_in_the_runtime_leaves_the_overlay_to_the_caller(way: Callbacks) -> None:
    body = "(call $ext_storage_set_version_1 (i64.const 0x100000008) (i64.const 0x100000009)) (unreachable)"
    runtime = loaded(module(body, imports=["ext_storage_set_version_1"], rest='(data (i32.const 8) "kv")'), way)
    overlay = empty_overlay()
    overlay.start_transaction()
    with pytest.raises(RuntimePanicked):
        runtime.call("run", b"", overlay)
    assert overlay.changes() == {None: {b"k": b"v"}}
    overlay.roll_back_transaction()
    assert overlay.changes() == {None: {}}
