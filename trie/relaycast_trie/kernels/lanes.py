"""Messages into the lanes and hashes out of them.

There are two ways in. Whoever writes messages one by one writes each to the room of a free lane, with zeros up to a
whole block, and starts it there. Lanes end and begin in any order (``start``, ``blake2b.mix``, ``take_hash``). Messages
that lie in memory already go through ``hash_messages``: a lane that has finished its message takes the next one, so
that messages of any lengths keep all lanes busy.
"""

import hashlib
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from relaycast_trie.kernels.blake2b import BLOCK, DONE, ITEMS, LANES, ROWS, SIZES, Rooms, mix, mix_short
from relaycast_trie.kernels.compiling import JIT, allocating_kernel, inlined, kernel
from relaycast_trie.kernels.memory import (
    CHECKED,
    Bytes,
    Int64s,
    _address,
    copy128,
    copy_padded,
    int64,
    intrinsic,
    lowest_bit,
    store64,
)


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
    def _clear_block(buffer: Bytes, at: int) -> None:
        """Write 128 zeros from ``buffer[at]`` on."""
        for i in range(BLOCK):
            buffer[at + i] = 0

else:

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


if JIT:

    @allocating_kernel
    def new_rooms() -> Rooms:
        """Return rooms of one block each, for ``hash_messages``."""
        return Rooms(np.zeros(ROWS, np.uint64), np.zeros(LANES * BLOCK, np.uint8), int64(BLOCK))

    @inlined
    def _hash_short(
        rooms: Rooms, data: Bytes, starts: Int64s, sizes: Int64s, count: int, out: Bytes, slots: Int64s
    ) -> int:
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

    def new_rooms() -> Rooms:
        """Return rooms of one block each, for ``hash_messages``."""
        return Rooms(np.zeros(0, np.uint64), np.zeros(0, np.uint8), 0)

    def hash_messages(
        rooms: Rooms,  # noqa: ARG001 - hashlib needs no room
        data: Bytes,
        starts: Int64s,
        sizes: Int64s,
        count: int,
        out: Bytes,
        slots: Int64s,
    ) -> None:
        """Write the hash of ``data[starts[i] : starts[i] + sizes[i]]`` to ``out[slots[i] : slots[i] + 32]``.

        That is for each ``i`` below ``count``. ``rooms`` are what ``new_rooms`` returns.
        """
        for i in range(count):
            digest = hashlib.blake2b(data[starts[i] : starts[i] + sizes[i]].tobytes(), digest_size=32).digest()
            out[slots[i] : slots[i] + 32] = np.frombuffer(digest, np.uint8)
