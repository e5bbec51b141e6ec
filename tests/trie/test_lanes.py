"""Messages enter and leave the lanes one by one: equal to ``hashlib``, whatever its neighbours are and when it came."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernel_inputs import array
from relaycast_trie.kernels import lanes
from relaycast_trie.kernels.blake2b import BLOCK, LANES, ROWS, SIZES, Rooms, mix, mix_one, mix_short
from relaycast_trie.kernels.lanes import start, take_hash
from twins import twin_of

STRIDE = 6 * BLOCK


def new_rooms() -> Rooms:
    return Rooms(np.zeros(ROWS, np.uint64), np.full(LANES * STRIDE, 0xEE, np.uint8), STRIDE)


def hash_all(messages: list[bytes], alone: list[bool]) -> list[bytes]:
    """Hash messages, each in the first lane that is free; ``alone`` says when one lane goes on by itself."""
    rooms, out = new_rooms(), np.zeros(32 * len(messages), np.uint8)
    waiting, inside, turns = list(range(len(messages))), dict[int, int](), list(alone)
    while waiting or inside:
        for lane in range(LANES):
            if lane not in inside and waiting:
                inside[lane] = number = waiting.pop(0)
                at, size = lane * STRIDE, len(messages[number])
                rooms.buffer[at : at + size] = np.frombuffer(messages[number], np.uint8)
                start(rooms, lane, size)
        if turns and turns.pop():
            lane = max(inside)
            ended = mix_one(rooms, lane) << lane
        else:
            ended = mix(rooms, 1)
        for lane in [lane for lane in inside if ended >> lane & 1]:
            take_hash(rooms, lane, out, 32 * inside.pop(lane))
    return [out[at : at + 32].tobytes() for at in range(0, len(out), 32)]


@twin_of("blake2b.mix", "blake2b.mix_one", "lanes.start", "lanes.take_hash")
@given(st.lists(st.integers(0, STRIDE - BLOCK), max_size=3 * LANES), st.lists(st.booleans(), max_size=20), st.binary())
def test_any_mix_of_messages_hashes_as_hashlib_does(sizes: list[int], alone: list[bool], seed: bytes) -> None:
    noise = hashlib.shake_128(seed).digest(STRIDE)
    messages = [noise[:size] for size in sizes]
    assert hash_all(messages, alone) == [hashlib.blake2b(one, digest_size=32).digest() for one in messages]


@twin_of("blake2b.mix_short")
@given(st.lists(st.binary(max_size=BLOCK), min_size=LANES, max_size=LANES))
def test_messages_of_one_block_hash_as_hashlib_does(messages: list[bytes]) -> None:
    rooms, out = Rooms(np.zeros(ROWS, np.uint64), np.zeros(LANES * BLOCK, np.uint8), BLOCK), array(bytes(32 * LANES))
    for lane, message in enumerate(messages):
        rooms.buffer[lane * BLOCK : lane * BLOCK + len(message)] = np.frombuffer(message, np.uint8)
        rooms.words[SIZES + lane] = len(message)
    mix_short(rooms)
    for lane in range(LANES):
        take_hash(rooms, lane, out, 32 * lane)
    assert out.tobytes() == b"".join(hashlib.blake2b(one, digest_size=32).digest() for one in messages)


@twin_of("lanes._clear_block")
def test_a_block_is_cleared_and_nothing_around_it() -> None:
    buffer = array(b"\xee" * 400)
    lanes._clear_block(buffer, 100)
    assert buffer.tobytes() == b"\xee" * 100 + bytes(BLOCK) + b"\xee" * (300 - BLOCK)
