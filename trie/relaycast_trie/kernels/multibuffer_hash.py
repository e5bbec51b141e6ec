"""Blake2b-256 in the lanes of vector registers: one 64-bit word of each message in each lane.

There are eight lanes where the CPU has AVX-512, four elsewhere. The compression function (RFC 7693, section 3.2) is
written as vector instructions rather than as a loop that the compiler might vectorise: twelve rounds without memory
traffic between them. ``_Lanes.rounds`` is the only copy of it. ``mix`` hashes a block in every lane, ``mix_short`` a
whole message of one block in every lane. ``mix_one`` hashes a block in one lane, in general registers. That takes two
thirds of the time that all lanes take together.

Messages come in by two ways. Whoever writes messages one by one writes each to the room of a free lane, with zeros up
to a whole block, and starts it there. Lanes end and begin in any order (``start``, ``mix``, ``take_hash``). Messages
that lie in memory already go through ``hash_messages``: a lane that has finished its message takes the next one, so
that messages of any lengths keep all lanes busy.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from relaycast_trie.kernels.compiling import JIT, allocating_kernel, inlined, kernel
from relaycast_trie.kernels.memory import (
    CHECKED,
    Bytes,
    Int64s,
    Words,
    _address,
    cgutils,
    compiled_for,
    copy128,
    copy_padded,
    instruction,
    int64,
    lowest_bit,
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
FIRST = (IV[0] ^ 0x0101_0020, *IV[1:])
"""The state before the first block: 32 bytes of hash, no key."""

DONE, SIZES, ITEMS, ROWS = 8 * LANES, 9 * LANES, 10 * LANES, 11 * LANES
"""Where three more rows begin, behind the eight rows of state, and where they end."""


class Rooms(NamedTuple):
    """Where messages are hashed. Lane ``i`` has the ``stride`` bytes of ``buffer`` from ``i * stride`` on."""

    words: Words
    """Eight rows of state; then, for each lane, the hashed bytes of its message, its size, and the caller's number."""

    buffer: Bytes
    """Zeros follow each message up to the end of its last block."""

    stride: int
    """A multiple of ``BLOCK``."""


class _Lanes:
    """Writes vector instructions, one 64-bit number a lane. For one lane they work in general registers."""

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
        """Return the exclusive or, rotated to the right by ``amount`` bits."""
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

    def message(self, blocks: list[Any]) -> list[Any]:
        """Return the sixteen words of the lanes' blocks, which start at these addresses; a row for each word."""
        parts = range(16 // self.lanes)
        return [word for part in parts for word in self.transposed([self.load(block, part) for block in blocks])]

    def mixed_in(self, before: list[Any], words: list[Any], counter: Any, last: Any) -> list[Any]:
        """Return the state after a block: ``counter`` bytes are hashed with it, ``last`` is all ones for a last one."""
        xor = self.builder.xor
        v = before + [self.constant(word) for word in IV]
        v[12], v[14] = xor(v[12], counter), xor(v[14], last)
        self.rounds(v, words)
        return [xor(xor(before[row], v[row]), v[row + 8]) for row in range(8)]

    def transposed(self, rows: list[Any]) -> list[Any]:
        """Return rows that hold one word of each message, given rows that hold words of one message each."""
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


def _mix_one_plainly(rooms: Rooms, lane: int) -> int:
    words, at = rooms.words, lane * rooms.stride
    size, done = int(words[SIZES + lane]), int(words[DONE + lane])
    if done == 0:
        digest = hashlib.blake2b(rooms.buffer[at : at + size].tobytes(), digest_size=32).digest()
        words[lane : 4 * LANES : LANES] = np.frombuffer(digest, np.uint64)
    ends = done + BLOCK >= size
    words[DONE + lane] = 0 if ends else done + BLOCK
    return int(ends)


def _mix_plainly(rooms: Rooms, ahead: int) -> int:
    assert ahead == 1, "uncompiled, messages are hashed whole"
    return sum(_mix_one_plainly(rooms, lane) << lane for lane in range(LANES))


@instruction(_mix_plainly)
def _mix(typingctx: Any, rooms: Any, ahead: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, write = ir.IntType(64), _Lanes(builder)
        state, buffer = _places(context, builder, signature, args)
        stride = builder.extract_value(args[0], 2)
        done = write.load(state, 8)
        blocks: list[Any] = []
        for lane in range(LANES):
            gone = builder.mul(args[1], builder.extract_element(done, ir.IntType(32)(lane)))
            blocks.append(builder.gep(buffer, [builder.add(builder.mul(stride, word(lane)), gone)]))
        last = _advance(write, state, done, write.message(blocks), load=write.load, store=write.store)
        return builder.zext(builder.bitcast(last, ir.IntType(LANES)), word)

    return types.int64(rooms, types.int64), generate


@instruction(_mix_one_plainly)
def _mix_one(typingctx: Any, rooms: Any, lane: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, write = ir.IntType(64), _Lanes(builder, lanes=1)
        state, buffer = _places(context, builder, signature, args)
        state = builder.gep(state, [builder.mul(args[1], word(8))])

        def load(address: Any, row: int) -> Any:
            return write.load(address, row * LANES)

        def store(value: Any, address: Any, row: int) -> None:
            write.store(value, address, row * LANES)

        done = load(state, 8)
        at = builder.mul(builder.extract_value(args[0], 2), args[1])
        block = builder.gep(buffer, [builder.add(at, builder.extract_element(done, ir.IntType(32)(0)))])
        message = [write.load(block, i) for i in range(16)]
        last = _advance(write, state, done, message, load=load, store=store)
        return builder.zext(builder.extract_element(last, ir.IntType(32)(0)), word)

    return types.int64(rooms, types.int64), generate


@instruction(lambda rooms: _mix_plainly(rooms, 1))
def _mix_short(typingctx: Any, rooms: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, write = ir.IntType(64), _Lanes(builder)
        state, buffer = _places(context, builder, signature, args)
        message = write.message([builder.gep(buffer, [word(lane * BLOCK)]) for lane in range(LANES)])
        before = [write.constant(number) for number in FIRST]
        after = write.mixed_in(before, message, write.load(state, 9), write.constant(-1))
        for row in range(4):
            write.store(after[row], state, row)
        return context.get_dummy_value()

    return types.void(rooms), generate


def _places(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any]:
    """Return the addresses of the words and of the buffer of rooms."""
    kinds, zero = signature.args[0].types, ir.IntType(64)(0)
    words, buffer = (_address(context, builder, kinds[i], builder.extract_value(args[0], i), zero) for i in range(2))
    return words, buffer


def _advance(
    write: _Lanes,
    state: Any,
    done: Any,
    message: list[Any],
    *,
    load: Callable[[Any, int], Any],
    store: Callable[[Any, Any, int], None],
) -> Any:
    """Write what mixes one block into each state; return in which lanes it was the last of its message."""
    builder, none = write.builder, write.constant(0)
    begins = builder.icmp_unsigned("==", done, none)
    before = [builder.select(begins, write.constant(FIRST[row]), load(state, row)) for row in range(8)]
    size = load(state, 9)
    done = builder.add(done, write.constant(BLOCK))
    last = builder.icmp_unsigned(">=", done, size)
    after = write.mixed_in(before, message, builder.select(last, size, done), builder.sext(last, write.vector))
    for row in range(8):
        store(after[row], state, row)
    store(builder.select(last, none, done), state, 8)
    return last


@kernel
def mix(rooms: Rooms, ahead: int) -> int:
    """Hash one more block of the message in each lane; return a bitmap of the lanes whose message ends with it.

    With ``ahead`` 1 the rooms hold whole messages; with 0 each holds the next block of its message. After its last
    block a lane begins a message again: if nobody starts a new one, it hashes the old one once more.
    """
    if CHECKED:
        rooms.buffer[LANES * rooms.stride - 1] += 0
    return _mix(rooms, ahead)  # type: ignore[no-any-return]


@kernel
def mix_short(rooms: Rooms) -> None:
    """Hash one message of at most 128 bytes in each lane; ``rooms`` have a stride of one block.

    ``rooms.words`` gives the bytes of each message in the row ``SIZES``, and gets the hash in rows 0 to 3.
    """
    if CHECKED:
        rooms.buffer[LANES * BLOCK - 1] += 0
    _mix_short(rooms)


@kernel
def mix_one(rooms: Rooms, lane: int) -> int:
    """Hash one more block of the message in one lane, whose room holds all of it; return 1 if it ends, else 0."""
    if CHECKED:
        rooms.buffer[(lane + 1) * rooms.stride - 1] += 0
    return _mix_one(rooms, lane)  # type: ignore[no-any-return]


def _clear_plainly(buffer: Bytes, at: int) -> None:
    for i in range(BLOCK):
        buffer[at + i] = 0


@instruction(_clear_plainly, checked=True)
def _clear(typingctx: Any, buffer: Any, at: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = ir.Constant(ir.VectorType(ir.IntType(8), BLOCK), None)
        to = _address(context, builder, signature.args[0], args[0], args[1])
        builder.store(zeros, builder.bitcast(to, zeros.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(buffer, types.int64), generate


@inlined
def _clear_block(buffer: Bytes, at: int) -> None:
    """Write 128 zeros from ``buffer[at]`` on."""
    _clear(buffer, at)


@inlined
def start(rooms: Rooms, lane: int, size: int) -> None:
    """Begin the message of ``size`` bytes that stands at the start of the room of a lane.

    Zeros are written behind it, a block of them: the room is that much longer.
    """
    _clear_block(rooms.buffer, lane * rooms.stride + size)
    rooms.words[DONE + lane] = 0
    rooms.words[SIZES + lane] = size


@inlined
def take_hash(rooms: Rooms, lane: int, out: Bytes, at: int) -> None:
    """Write the hash of the message that ended last in a lane, 32 bytes, to ``out[at]`` on."""
    for row in range(4):
        store64(out, at + 8 * row, rooms.words[row * LANES + lane])


@allocating_kernel
def new_rooms() -> Rooms:
    """Return rooms of one block each, for ``hash_messages``."""
    return Rooms(np.zeros(ROWS, np.uint64), np.zeros(LANES * BLOCK, np.uint8), int64(BLOCK))


@inlined
def _hash_short(rooms: Rooms, data: Bytes, starts: Int64s, sizes: Int64s, count: int, out: Bytes, slots: Int64s) -> int:
    """Hash messages of one block, one for each lane at a time, until a longer one comes; return how many.

    Arguments are those of ``hash_messages``; what is left, fewer messages than there are lanes or longer ones, is
    not hashed.
    """
    first = 0
    while first + LANES <= count:
        for lane in range(LANES):
            if sizes[first + lane] > BLOCK:
                return first
        for lane in range(LANES):
            i = first + lane
            copy_padded(rooms.buffer, lane * BLOCK, data, starts[i], sizes[i])
            rooms.words[SIZES + lane] = sizes[i]
        mix_short(rooms)
        for lane in range(LANES):
            take_hash(rooms, lane, out, slots[first + lane])
        first += LANES
    return first


if JIT:

    @kernel
    def hash_messages(
        rooms: Rooms, data: Bytes, starts: Int64s, sizes: Int64s, count: int, out: Bytes, slots: Int64s
    ) -> None:
        """Write the hash of ``data[starts[i] : starts[i] + sizes[i]]`` to ``out[slots[i] : slots[i] + 32]``.

        That is for each ``i`` below ``count``. ``rooms`` are what ``new_rooms`` returns.
        """
        words = rooms.words
        following = _hash_short(rooms, data, starts, sizes, count, out, slots)
        busy = int64(0)
        for lane in range(min(count - following, LANES)):
            words[DONE + lane] = 0
            words[SIZES + lane] = sizes[following]
            words[ITEMS + lane] = following
            busy |= int64(1) << lane
            following += 1
        while busy:
            waiting = busy
            while waiting:
                lane = lowest_bit(waiting)
                waiting &= waiting - 1
                i = int64(words[ITEMS + lane])
                done = int64(words[DONE + lane])
                if sizes[i] - done >= BLOCK:
                    copy128(rooms.buffer, lane * BLOCK, data, starts[i] + done)
                else:
                    copy_padded(rooms.buffer, lane * BLOCK, data, starts[i] + done, sizes[i] - done)
            ended = mix(rooms, 0) & busy
            while ended:
                lane = lowest_bit(ended)
                ended &= ended - 1
                take_hash(rooms, lane, out, slots[int64(words[ITEMS + lane])])
                if following < count:
                    words[SIZES + lane] = sizes[following]
                    words[ITEMS + lane] = following
                    following += 1
                else:
                    busy ^= int64(1) << lane

else:

    def hash_messages(
        rooms: Rooms,  # noqa: ARG001 - hashlib needs no room
        data: Bytes,
        starts: Int64s,
        sizes: Int64s,
        count: int,
        out: Bytes,
        slots: Int64s,
    ) -> None:
        """Do the same by hashlib, where nothing is compiled."""
        for i in range(count):
            digest = hashlib.blake2b(data[starts[i] : starts[i] + sizes[i]].tobytes(), digest_size=32).digest()
            out[slots[i] : slots[i] + 32] = np.frombuffer(digest, np.uint8)
