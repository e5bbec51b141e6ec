"""The frequent cases of four host functions, as WebAssembly.

A function does all of a case or nothing. What it cannot do at once it hands on to the host function of its name.
Growing the memory, every fault and its words are therefore the host's alone.
"""

from relaycast_wasm.host.allocator import (
    ALLOCATED,
    BUMPER,
    HEADER_BYTES,
    IN_USE,
    IS_OPEN,
    LARGEST_BYTES,
    LISTS,
    NO_LINK,
    ORDERS,
    SMALLEST_BYTES,
)

PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
"""The constants of xxHash64."""

TWOX_BELOW_BYTES = 32
"""xxHash64 of fewer bytes has no lanes; names of pallets and items are that short."""


def _multiplied(number: str, prime: int) -> str:
    return f"(i64.mul {number} (i64.const 0x{PRIMES[prime - 1]:x}))"


def _avalanche(shift: int) -> str:
    return f"(i64.xor (local.get $hash) (i64.shr_u (local.get $hash) (i64.const {shift})))"


def _xxhash(seed: int) -> str:
    """Return code that hashes the bytes from ``$start`` up to ``$end`` into ``$hash``."""
    word, half, byte = "(i64.load $runtime (local.get $at))", "(i64.load32_u", "(i64.load8_u"
    lane = _multiplied(f"(i64.rotl {_multiplied(word, 2)} (i64.const 31))", 1)
    four = _multiplied(f"{half} $runtime (local.get $at))", 1)
    one = _multiplied(f"{byte} $runtime (local.get $at))", 5)

    def mixed(part: str, turn: int, prime: int) -> str:
        return _multiplied(f"(i64.rotl (i64.xor (local.get $hash) {part}) (i64.const {turn}))", prime)

    def added(number: str, prime: int) -> str:
        return f"(i64.add {number} (i64.const 0x{PRIMES[prime - 1]:x}))"

    def on(count: int) -> str:
        return f"(local.set $at (i32.add (local.get $at) (i32.const {count})))"

    def short_of(count: int) -> str:
        return f"(i32.lt_u (i32.sub (local.get $end) (local.get $at)) (i32.const {count}))"

    return f"""
      (local.set $at (local.get $start))
      (local.set $hash (i64.add {added("(local.get $length)", 5)} (i64.const {seed})))
      (block $done (loop $more (br_if $done {short_of(8)})
        (local.set $hash {added(mixed(lane, 27, 1), 4)}) {on(8)} (br $more)))
      (block $done (br_if $done {short_of(4)})
        (local.set $hash {added(mixed(four, 23, 2), 3)}) {on(4)})
      (block $done (loop $more (br_if $done {short_of(1)})
        (local.set $hash {mixed(one, 11, 1)}) {on(1)} (br $more)))
      (local.set $hash {_multiplied(_avalanche(33), 2)})
      (local.set $hash {_multiplied(_avalanche(29), 3)})
      (local.set $hash {_avalanche(32)})"""


def _twox(name: str, words: int) -> str:
    """Return a function that computes that many xxHash64 of a span, with seeds from 0 on, in memory of its own."""
    hashed = [f"{_xxhash(seed)} (local.set $word_{seed} (local.get $hash))" for seed in range(words)]
    stored = [f"(i64.store $runtime offset={8 * it} (local.get $at) (local.get $word_{it}))" for it in range(words)]
    return f"""(func ${name} (param $span i64) (result i32)
    (local $start i32) (local $end i32) (local $at i32)
    (local $length i64) (local $hash i64) (local $word_0 i64) (local $word_1 i64)
    (block $host
      (local.set $start (i32.wrap_i64 (local.get $span)))
      (local.set $length (i64.shr_u (local.get $span) (i64.const 32)))
      (br_if $host (i64.ge_u (local.get $length) (i64.const {TWOX_BELOW_BYTES})))
      (br_if $host (i64.gt_u (i64.add (i64.extend_i32_u (local.get $start)) (local.get $length))
        (i64.shl (i64.extend_i32_u (memory.size $runtime)) (i64.const 16))))
      (local.set $end (i32.add (local.get $start) (i32.wrap_i64 (local.get $length))))
      {"".join(hashed)}
      (local.set $at (call $allocate (i32.const {8 * words})))
      (br_if $host (i32.eqz (local.get $at)))
      {" ".join(stored)}
      (return (local.get $at)))
    (call $host_{name} (local.get $span)))"""


TEXT = f"""(module
  (import "env" "malloc" (func $host_malloc (param i32) (result i32)))
  (import "env" "free" (func $host_free (param i32)))
  (import "env" "twox_128" (func $host_twox_128 (param i64) (result i32)))
  (import "env" "twox_64" (func $host_twox_64 (param i64) (result i32)))
  (memory $runtime 0)
  (memory $state 1)
  (func $allocate (param $size i32) (result i32)
    (local $order i32) (local $whole i64) (local $header i64) (local $end i64) (local $word i64)
    (block $not_here
      (br_if $not_here (i64.eqz (i64.load $state offset={8 * IS_OPEN} (i32.const 0))))
      (br_if $not_here (i32.gt_u (local.get $size) (i32.const {LARGEST_BYTES})))
      (if (i32.gt_u (local.get $size) (i32.const {SMALLEST_BYTES})) (then
        (local.set $order (i32.sub (i32.const 29) (i32.clz (i32.sub (local.get $size) (i32.const 1)))))))
      (local.set $whole (i64.add (i64.const {HEADER_BYTES})
        (i64.shl (i64.const {SMALLEST_BYTES}) (i64.extend_i32_u (local.get $order)))))
      (local.set $header (i64.load $state offset={8 * LISTS} (i32.shl (local.get $order) (i32.const 3))))
      (if (i64.eq (local.get $header) (i64.const {NO_LINK}))
        (then
          (local.set $header (i64.load $state offset={8 * BUMPER} (i32.const 0)))
          (local.set $end (i64.add (local.get $header) (local.get $whole)))
          (br_if $not_here (i64.gt_u (local.get $end)
            (i64.shl (i64.extend_i32_u (memory.size $runtime)) (i64.const 16))))
          (i64.store $state offset={8 * BUMPER} (i32.const 0) (local.get $end)))
        (else
          (br_if $not_here (i64.gt_u (i64.add (local.get $header) (local.get $whole))
            (i64.shl (i64.extend_i32_u (memory.size $runtime)) (i64.const 16))))
          (local.set $word (i64.load $runtime (i32.wrap_i64 (local.get $header))))
          (br_if $not_here (i64.ne (i64.and (local.get $word) (i64.const {IN_USE})) (i64.const 0)))
          (i64.store $state offset={8 * LISTS} (i32.shl (local.get $order) (i32.const 3))
            (i64.and (local.get $word) (i64.const {NO_LINK})))))
      (i64.store $runtime (i32.wrap_i64 (local.get $header))
        (i64.or (i64.const {IN_USE}) (i64.extend_i32_u (local.get $order))))
      (i64.store $state offset={8 * ALLOCATED} (i32.const 0)
        (i64.add (i64.load $state offset={8 * ALLOCATED} (i32.const 0)) (local.get $whole)))
      (return (i32.wrap_i64 (i64.add (local.get $header) (i64.const {HEADER_BYTES})))))
    (i32.const 0))
  (func $malloc (param $size i32) (result i32) (local $pointer i32)
    (local.set $pointer (call $allocate (local.get $size)))
    (if (local.get $pointer) (then (return (local.get $pointer))))
    (call $host_malloc (local.get $size)))
  (func $free (param $pointer i32)
    (local $header i32) (local $list i32) (local $word i64) (local $whole i64) (local $allocated i64)
    (block $host
      (br_if $host (i64.eqz (i64.load $state offset={8 * IS_OPEN} (i32.const 0))))
      (br_if $host (i32.lt_u (local.get $pointer) (i32.const {HEADER_BYTES})))
      (br_if $host (i64.gt_u (i64.extend_i32_u (local.get $pointer))
        (i64.shl (i64.extend_i32_u (memory.size $runtime)) (i64.const 16))))
      (local.set $header (i32.sub (local.get $pointer) (i32.const {HEADER_BYTES})))
      (local.set $word (i64.load $runtime (local.get $header)))
      (br_if $host (i64.eqz (i64.and (local.get $word) (i64.const {IN_USE}))))
      (br_if $host (i32.ge_u (i32.wrap_i64 (local.get $word)) (i32.const {ORDERS})))
      (local.set $whole (i64.add (i64.const {HEADER_BYTES})
        (i64.shl (i64.const {SMALLEST_BYTES}) (i64.and (local.get $word) (i64.const {NO_LINK})))))
      (local.set $allocated (i64.load $state offset={8 * ALLOCATED} (i32.const 0)))
      (br_if $host (i64.lt_u (local.get $allocated) (local.get $whole)))
      (local.set $list (i32.shl (i32.wrap_i64 (local.get $word)) (i32.const 3)))
      (i64.store $runtime (local.get $header) (i64.load $state offset={8 * LISTS} (local.get $list)))
      (i64.store $state offset={8 * LISTS} (local.get $list) (i64.extend_i32_u (local.get $header)))
      (i64.store $state offset={8 * ALLOCATED} (i32.const 0) (i64.sub (local.get $allocated) (local.get $whole)))
      (return))
    (call $host_free (local.get $pointer)))
  {_twox("twox_128", 2)}
  {_twox("twox_64", 1)})
"""
