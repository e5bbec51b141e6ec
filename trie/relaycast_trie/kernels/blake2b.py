"""Blake2b-256 of many messages at once: one 64-bit word of each message in one lane of a vector register.

Eight lanes where the CPU has AVX-512, four elsewhere. A lane that has finished its message takes the next one, so that
messages of any lengths keep all lanes busy. A few messages leave lanes idle: one block of all lanes takes as long as
two of a single message in general registers (``lanes.mix_one``).

The compression function (RFC 7693, section 3.2) is written as vector instructions, not as a loop that the compiler
might vectorise: twelve rounds, no memory traffic between them.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from relaycast_trie.kernels.memory import (
    JIT,
    Bytes,
    Int64s,
    Words,
    _address,
    allocating_kernel,
    cgutils,
    compiled_for,
    copy128,
    copy_padded,
    inlined,
    intrinsic,
    kernel,
    store64,
)

LANES = 8 if compiled_for("avx512f") else 4
BLOCK = 128

IV = (
    0x6A09E667F3BCC908,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
    0xA54FF53A5F1D36F1,
    0x510E527FADE682D1,
    0x9B05688C2B3E6C1F,
    0x1F83D9ABFB41BD6B,
    0x5BE0CD19137E2179,
)
SIGMA = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    (11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
    (7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
    (9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
    (2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
    (12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
    (13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
    (6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
    (10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
)
QUARTERS = (
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)


class Lanes(NamedTuple):
    """What the lanes work in; ``new_lanes`` makes one."""

    words: Words
    """Eight rows of state, then the byte counters, then a mask that is all ones for a last block."""
    blocks: Bytes
    message: Int64s
    """The message in each lane, -1 for an idle one."""
    done: Int64s
    """How many of its bytes are hashed."""


STATE = np.array([IV[0] ^ 0x0101_0020, *IV[1:]], dtype=np.uint64)
"""The state before the first block: 32 bytes of hash, no key."""

COUNTERS, FLAGS, ROWS = 8 * LANES, 9 * LANES, 10 * LANES
"""Where byte counters and last-block masks lie behind the eight rows of state."""


class _Lanes:
    """Writes vector instructions, one 64-bit number a lane; those for one lane need no vectors."""

    def __init__(self, builder: Any, *, lanes: int = LANES) -> None:
        self.builder = builder
        self.lanes = lanes
        self.vector = ir.VectorType(ir.IntType(64), lanes)
        rotate_type = ir.FunctionType(self.vector, (self.vector, self.vector, self.vector))
        self.rotate = cgutils.get_or_insert_function(builder.module, rotate_type, f"llvm.fshr.v{lanes}i64")

    def load(self, address: Any, index: int) -> Any:
        return self.builder.load(self._at(address, index), align=8)

    def store(self, value: Any, address: Any, index: int) -> None:
        self.builder.store(value, self._at(address, index), align=8)

    def _at(self, address: Any, index: int) -> Any:
        rows = self.builder.bitcast(address, self.vector.as_pointer())
        return self.builder.gep(rows, [ir.Constant(ir.IntType(64), index)])

    def constant(self, word: int) -> Any:
        return ir.Constant(self.vector, [word] * self.lanes)

    def mixed(self, left: Any, right: Any, amount: int) -> Any:
        """Exclusive or, rotated to the right."""
        both = self.builder.xor(left, right)
        return self.builder.call(self.rotate, (both, both, self.constant(amount)))

    def rounds(self, v: list[Any], words: list[Any]) -> None:
        """Mix the sixteen words of a block into the sixteen of ``v``."""
        add = self.builder.add
        for turn in range(12):
            order = SIGMA[turn % 10]
            for quarter, (a, b, c, d) in enumerate(QUARTERS):
                v[a] = add(add(v[a], v[b]), words[order[2 * quarter]])
                v[d] = self.mixed(v[d], v[a], 32)
                v[c] = add(v[c], v[d])
                v[b] = self.mixed(v[b], v[c], 24)
                v[a] = add(add(v[a], v[b]), words[order[2 * quarter + 1]])
                v[d] = self.mixed(v[d], v[a], 16)
                v[c] = add(v[c], v[d])
                v[b] = self.mixed(v[b], v[c], 63)

    def transposed(self, rows: list[Any]) -> list[Any]:
        """Turn rows that hold one message each into rows that hold one word of each message."""
        step = 1
        while step < LANES:
            low = [j if not j & step else LANES + j - step for j in range(LANES)]
            high = [j + step if not j & step else LANES + j for j in range(LANES)]
            for i in range(LANES):
                if not i & step:
                    a, b = rows[i], rows[i + step]
                    rows[i], rows[i + step] = self._shuffled(a, b, low), self._shuffled(a, b, high)
            step *= 2
        return rows

    def _shuffled(self, left: Any, right: Any, order: list[int]) -> Any:
        return self.builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(ir.IntType(32), LANES), order))


@intrinsic
def _compress(typingctx: Any, lanes: Any, blocks: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        write = _Lanes(builder)
        zero = ir.Constant(ir.IntType(64), 0)
        state = _address(context, builder, signature.args[0], args[0], zero)
        block = _address(context, builder, signature.args[1], args[1], zero)
        per_message = 16 // LANES
        words: list[Any] = []
        for part in range(per_message):
            words += write.transposed([write.load(block, lane * per_message + part) for lane in range(LANES)])
        before = [write.load(state, row) for row in range(8)]
        v = before + [write.constant(word) for word in IV]
        v[12] = builder.xor(v[12], write.load(state, 8))
        v[14] = builder.xor(v[14], write.load(state, 9))
        write.rounds(v, words)
        for row in range(8):
            write.store(builder.xor(builder.xor(before[row], v[row]), v[row + 8]), state, row)
        return context.get_dummy_value()

    return types.void(lanes, blocks), generate


if JIT:

    @kernel
    def compress(words: Words, blocks: Bytes) -> None:
        """Mix one 128-byte block of each lane into its state."""
        _compress(words, blocks)

    @allocating_kernel
    def new_lanes() -> Lanes:
        """Return room for the lanes to work in."""
        return Lanes(
            np.zeros(ROWS, np.uint64),
            np.zeros(LANES * BLOCK, np.uint8),
            np.zeros(LANES, np.int64),
            np.zeros(LANES, np.int64),
        )

    @inlined
    def _hash_short(
        lanes: Lanes, data: Bytes, starts: Int64s, sizes: Int64s, count: int, out: Bytes, slots: Int64s
    ) -> int:
        """Hash messages of one block, a register full at a time, up to the first longer one; return how many."""
        words, blocks = lanes.words, lanes.blocks
        first = 0
        while first + LANES <= count:
            for lane in range(LANES):
                if sizes[first + lane] > BLOCK:
                    return first
            for row in range(8):
                for lane in range(LANES):
                    words[row * LANES + lane] = STATE[row]
            for lane in range(LANES):
                i = first + lane
                copy_padded(blocks, lane * BLOCK, data, starts[i], sizes[i])
                words[COUNTERS + lane] = np.uint64(sizes[i])
                words[FLAGS + lane] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
            compress(words, blocks)
            for lane in range(LANES):
                at = slots[first + lane]
                for row in range(4):
                    store64(out, at + 8 * row, words[row * LANES + lane])
            first += LANES
        return first

    @kernel
    def hash_messages(
        lanes: Lanes, data: Bytes, starts: Int64s, sizes: Int64s, count: int, out: Bytes, slots: Int64s
    ) -> None:
        """Write the hash of ``data[starts[i] : starts[i] + sizes[i]]`` to ``out[slots[i] : slots[i] + 32]``."""
        words, blocks, message, done = lanes.words, lanes.blocks, lanes.message, lanes.done
        following = _hash_short(lanes, data, starts, sizes, count, out, slots)
        for lane in range(LANES):
            message[lane] = -1
            done[lane] = 0
            words[FLAGS + lane] = 0
        busy = 0
        for lane in range(min(count - following, LANES)):
            message[lane] = following
            following += 1
            busy += 1
            for row in range(8):
                words[row * LANES + lane] = STATE[row]
        while busy > 0:
            for lane in range(LANES):
                i = message[lane]
                if i < 0:
                    continue
                left = sizes[i] - done[lane]
                if left > BLOCK:
                    copy128(blocks, lane * BLOCK, data, starts[i] + done[lane])
                    done[lane] += BLOCK
                else:
                    copy_padded(blocks, lane * BLOCK, data, starts[i] + done[lane], left)
                    done[lane] += left
                    words[FLAGS + lane] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
                words[COUNTERS + lane] = np.uint64(done[lane])
            compress(words, blocks)
            for lane in range(LANES):
                if words[FLAGS + lane] == 0:
                    continue
                at = slots[message[lane]]
                for row in range(4):
                    store64(out, at + 8 * row, words[row * LANES + lane])
                words[FLAGS + lane] = 0
                done[lane] = 0
                if following < count:
                    message[lane] = following
                    following += 1
                    for row in range(8):
                        words[row * LANES + lane] = STATE[row]
                else:
                    message[lane] = -1
                    busy -= 1

else:

    def new_lanes() -> Lanes:
        """Return room for the lanes to work in."""
        return Lanes(np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def hash_messages(
        lanes: Lanes,  # noqa: ARG001 - hashlib needs no room
        data: Bytes,
        starts: Int64s,
        sizes: Int64s,
        count: int,
        out: Bytes,
        slots: Int64s,
    ) -> None:
        """Write the hash of ``data[starts[i] : starts[i] + sizes[i]]`` to ``out[slots[i] : slots[i] + 32]``."""
        for i in range(count):
            digest = hashlib.blake2b(data[starts[i] : starts[i] + sizes[i]].tobytes(), digest_size=32).digest()
            out[slots[i] : slots[i] + 32] = np.frombuffer(digest, np.uint8)
