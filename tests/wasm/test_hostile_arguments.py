"""Every host function, called by a module with arguments that no honest runtime gives: one clear refusal or an answer.

The module takes the function's number and the arguments from the call's data, so that it is compiled once, and exports
one method: each call makes an instance, which costs as much as it has exports.
"""

import random
from collections.abc import Callable, Iterator

import pytest

from relaycast_pallets.frame.state import State
from relaycast_wasm import CallFailed, Limits, OverlayedChanges, StateBacking, WasmRuntime
from relaycast_wasm.engine.callbacks import Callbacks
from relaycast_wasm.host.everything import HOST_FUNCTIONS
from wasm.text_modules import module

PAGES = 17
"""Pages of the memory: one of its own and 16 of heap."""

MEMORY_BYTES = PAGES * 65_536
NEVER = 0xFFFF_FFFF_FFFF_FFFF

POINTERS = (0, 1, 7, 8, 1_000, 1_024, 1_031, MEMORY_BYTES - 1, MEMORY_BYTES, 2**31 - 1, 2**31, 2**32 - 8, 2**32 - 1)
LENGTHS = (0, 1, 4, 31, 32, 33, 65_536, MEMORY_BYTES, 2**25, 2**31, 2**32 - 1)
NUMBERS = (0, 1, 2, 3, 255, 2**31, 2**32 - 1, 2**32, 2**63, NEVER)

NUMBER_OF = {name: number for number, name in enumerate(HOST_FUNCTIONS)}
"""Places of the host functions in the module's table."""


@pytest.fixture(scope="module", params=["direct", pytest.param("checked", marks=pytest.mark.slow)])
def runtime(request: pytest.FixtureRequest) -> WasmRuntime:
    """A module with a method that hands over to a host function what its data say, and gives nothing."""
    way: Callbacks = request.param
    return WasmRuntime.load(caller_of_all(), None, callbacks=way)


def caller_of_all() -> bytes:
    noise = random.Random(1).randbytes(900)
    data = "".join(f"\\{byte:02x}" for byte in noise)
    callers = " ".join(map(_caller, HOST_FUNCTIONS))
    table = f"(table funcref (elem {' '.join(f'$call_{name}' for name in HOST_FUNCTIONS)}))"
    number = "(i32.wrap_i64 (i64.load (local.get $at)))"
    method = (
        "(type $caller (func (param i32)))"
        '(func (export "call") (param $at i32) (param i32) (result i64)'
        f" (call_indirect (type $caller) (local.get $at) {number}) (i64.const 0))"
    )
    rest = f'(data (i32.const 8) "{data}") {callers} {table} {method}'
    return module("(i64.const 0)", imports=HOST_FUNCTIONS, rest=rest)


def _caller(name: str) -> str:
    function = HOST_FUNCTIONS[name]
    given = [f"(i64.load offset={8 + 8 * at} (local.get $at))" for at in range(len(function.parameters))]
    taken = [
        f"(i32.wrap_i64 {it})" if letter == "i" else it for it, letter in zip(given, function.parameters, strict=True)
    ]
    called = f"(call ${name} {' '.join(taken)})"
    return f"(func $call_{name} (param $at i32) {f'(drop {called})' if function.result else called})"


def data_of(name: str, arguments: list[int]) -> bytes:
    """Return the data of a call that hands ``arguments`` to a host function."""
    return b"".join((it & NEVER).to_bytes(8, "little") for it in (NUMBER_OF[name], *arguments))


def outcome(runtime: WasmRuntime, name: str, arguments: list[int]) -> str:
    """Call a host function; return how it ended. Nothing but a ``CallFailed`` is let through."""
    overlay = OverlayedChanges(StateBacking(State(window=1, engine="plain")))
    try:
        runtime.call("call", data_of(name, arguments), overlay, limits=Limits(seconds=20, memory_pages=PAGES - 1))
    except CallFailed as error:
        assert "\n" not in str(error), name  # noqa: PT017 - an answer is as good
        assert len(str(error)) < 2_000, name  # noqa: PT017
        return type(error).__name__
    return "answered"


def anything(draw: random.Random) -> Iterator[int]:
    """Yield spans, pointers, numbers and noise."""
    kinds: tuple[Callable[[], int], ...] = (
        lambda: draw.choice(LENGTHS) << 32 | draw.choice(POINTERS),
        lambda: draw.randrange(200) << 32 | draw.randrange(2_000),
        lambda: draw.choice(NUMBERS),
        lambda: draw.choice(POINTERS),
        lambda: draw.getrandbits(64),
    )
    while True:
        yield draw.choice(kinds)()


def tried(runtime: WasmRuntime, name: str, rounds: int) -> set[str]:
    draw = random.Random(name)
    values = anything(draw)
    count = len(HOST_FUNCTIONS[name].parameters)
    return {outcome(runtime, name, [next(values) for _ in range(count)]) for _ in range(rounds if count else 1)}


def test_every_argument_out_of_bounds_is_refused_or_not_looked_at(runtime: WasmRuntime) -> None:
    """An argument that is bytes or a place leads outside of the memory, one at a time; the others are empty."""
    for name, function in HOST_FUNCTIONS.items():
        for place in range(len(function.parameters)):
            for outside in (2**32 - 8, 0x10_FFFF_FFF0, 0x7FFF_FFFF_0000_0008, NEVER):
                arguments = [0] * len(function.parameters)
                arguments[place] = outside
                assert outcome(runtime, name, arguments) in {
                    "answered",
                    "HostFault",
                    "RuntimePanicked",
                    "MemoryExhausted",
                }


@pytest.mark.parametrize("name", ["ext_storage_set_version_1", "ext_hashing_twox_128_version_1"])
def test_bytes_outside_of_the_memory_are_named_with_the_function(runtime: WasmRuntime, name: str) -> None:
    arguments = [0x10_FFFF_FFF0] * len(HOST_FUNCTIONS[name].parameters)
    overlay = OverlayedChanges(StateBacking(State(window=1, engine="plain")))
    with pytest.raises(CallFailed) as it:
        runtime.call("call", data_of(name, arguments), overlay, limits=Limits(memory_pages=PAGES - 1))
    assert it.value.reason == f"{name}: 16 bytes at 4294967280 are not within a memory of {MEMORY_BYTES} bytes"


def test_any_arguments_are_answered_or_refused(runtime: WasmRuntime) -> None:
    for name in HOST_FUNCTIONS:
        tried(runtime, name, 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", HOST_FUNCTIONS)
def test_many_arguments_are_answered_or_refused(runtime: WasmRuntime, name: str) -> None:
    assert tried(runtime, name, 400)
