"""Blake2b-256 of messages that enter the lanes one by one, each as soon as there is something to hash.

Each lane has a room of its own in a buffer: whoever starts a message writes it there with zeros up to a whole block.
A lane that works alone is hashed in general registers, in two thirds of the time that all lanes take together.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from relaycast_trie.kernels.blake2b import BLOCK, IV, LANES, _Lanes
from relaycast_trie.kernels.memory import (
    CHECKED,
    JIT,
    Bytes,
    Words,
    _address,
    inlined,
    intrinsic,
    kernel,
    store64,
)

DONE, SIZES = 8 * LANES, 9 * LANES
"""Where the bytes that are hashed and the sizes of messages lie, behind the eight rows of state."""
ROWS = 10 * LANES


class Rooms(NamedTuple):
    """Where messages are hashed: lane ``i`` has ``stride`` bytes from ``i * stride`` on, a multiple of a block."""

    words: Words
    buffer: Bytes
    stride: int


@intrinsic
def _mix(typingctx: Any, words: Any, buffer: Any, stride: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, write = ir.IntType(64), _Lanes(builder)
        state = _address(context, builder, signature.args[0], args[0], word(0))
        done, size = write.load(state, 8), write.load(state, 9)
        rows: list[list[Any]] = []
        for lane in range(LANES):
            at = builder.add(builder.mul(args[2], word(lane)), builder.extract_element(done, ir.IntType(32)(lane)))
            block = _address(context, builder, signature.args[1], args[1], at)
            rows.append([write.load(block, part) for part in range(16 // LANES)])
        message = [word for part in range(16 // LANES) for word in write.transposed([row[part] for row in rows])]
        last = _advance(builder, write, state, write.load, write.store, done, size, message)
        bits = builder.bitcast(last, ir.IntType(LANES))
        return builder.zext(bits, word)

    return types.int64(words, buffer, types.int64), generate


@intrinsic
def _mix_one(typingctx: Any, words: Any, buffer: Any, stride: Any, lane: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, write = ir.IntType(64), _Lanes(builder, lanes=1)
        at = builder.mul(args[3], word(8))
        state = _address(context, builder, signature.args[0], args[0], at)

        def load(address: Any, row: int) -> Any:
            return write.load(address, row * LANES)

        def store(value: Any, address: Any, row: int) -> None:
            write.store(value, address, row * LANES)

        done, size = load(state, 8), load(state, 9)
        at = builder.add(builder.mul(args[2], args[3]), builder.extract_element(done, ir.IntType(32)(0)))
        block = _address(context, builder, signature.args[1], args[1], at)
        message = [write.load(block, i) for i in range(16)]
        last = _advance(builder, write, state, load, store, done, size, message)
        return builder.zext(builder.extract_element(last, ir.IntType(32)(0)), word)

    return types.int64(words, buffer, types.int64, types.int64), generate


def _advance(
    builder: Any, write: _Lanes, state: Any, load: Any, store: Any, done: Any, size: Any, message: list[Any]
) -> Any:
    """Write what mixes one block into each state; return which of the messages are at their end."""
    none = write.constant(0)
    begins = builder.icmp_unsigned("==", done, none)
    first = [IV[0] ^ 0x0101_0020, *IV[1:]]
    before = [builder.select(begins, write.constant(first[row]), load(state, row)) for row in range(8)]
    done = builder.add(done, write.constant(BLOCK))
    last = builder.icmp_unsigned(">=", done, size)
    v = before + [write.constant(number) for number in IV]
    v[12] = builder.xor(v[12], builder.select(last, size, done))
    v[14] = builder.xor(v[14], builder.sext(last, write.vector))
    write.rounds(v, message)
    for row in range(8):
        store(builder.xor(builder.xor(before[row], v[row]), v[row + 8]), state, row)
    store(builder.select(last, none, done), state, 8)
    return last


if JIT:

    @kernel
    def mix(words: Words, buffer: Bytes, stride: int) -> int:
        """Hash one more block of the message in each lane; return a bitmap of those lanes whose message ends there.

        A lane begins anew after that: one that nobody gives a message to hashes its last one again.
        """
        if CHECKED:
            buffer[LANES * stride - 1] += 0
        return _mix(words, buffer, stride)  # type: ignore[no-any-return]

    @kernel
    def mix_one(words: Words, buffer: Bytes, stride: int, lane: int) -> int:
        """Do what ``mix`` does in one lane only; return whether its message ends."""
        if CHECKED:
            buffer[(lane + 1) * stride - 1] += 0
        return _mix_one(words, buffer, stride, lane)  # type: ignore[no-any-return]

else:

    def mix_one(words: Words, buffer: Bytes, stride: int, lane: int) -> int:
        """Do what ``mix`` does in one lane only; return whether its message ends."""
        size, done = int(words[SIZES + lane]), int(words[DONE + lane])
        if done == 0:
            digest = hashlib.blake2b(buffer[lane * stride : lane * stride + size].tobytes(), digest_size=32).digest()
            words[lane : 4 * LANES : LANES] = np.frombuffer(digest, np.uint64)
        ends = done + BLOCK >= size
        words[DONE + lane] = 0 if ends else done + BLOCK
        return int(ends)

    def mix(words: Words, buffer: Bytes, stride: int) -> int:
        """Hash one more block of the message in each lane; return a bitmap of those lanes whose message ends there.

        A lane begins anew after that: one that nobody gives a message to hashes its last one again.
        """
        return sum(mix_one(words, buffer, stride, lane) << lane for lane in range(LANES))


@intrinsic
def _clear(typingctx: Any, buffer: Any, at: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = ir.Constant(ir.VectorType(ir.IntType(8), BLOCK), None)
        to = _address(context, builder, signature.args[0], args[0], args[1])
        builder.store(zeros, builder.bitcast(to, zeros.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(buffer, types.int64), generate


if CHECKED:

    @kernel
    def clear_block(buffer: Bytes, at: int) -> None:
        """Write a block of zeros."""
        for i in range(BLOCK):
            buffer[at + i] = 0

else:

    @inlined
    def clear_block(buffer: Bytes, at: int) -> None:
        """Write a block of zeros."""
        _clear(buffer, at)


@inlined
def start(rooms: Rooms, lane: int, size: int) -> None:
    """Begin the message of ``size`` bytes that was written to the room of a lane."""
    clear_block(rooms.buffer, lane * rooms.stride + size)
    rooms.words[DONE + lane] = 0
    rooms.words[SIZES + lane] = size


@inlined
def take_hash(rooms: Rooms, lane: int, out: Bytes, at: int) -> None:
    """Write the hash of the message that has ended in a lane."""
    for row in range(4):
        store64(out, at + 8 * row, rooms.words[row * LANES + lane])
