"""Messages enter and leave the lanes one by one: equal to ``hashlib``, whatever its neighbours are and when it came."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie.kernels.blake2b import BLOCK, LANES, ROWS, Rooms, mix, mix_one
from relaycast_trie.kernels.lanes import start, take_hash

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


@given(st.lists(st.integers(0, STRIDE - BLOCK), max_size=3 * LANES), st.lists(st.booleans(), max_size=20), st.binary())
def test_any_mix_of_messages_hashes_as_hashlib_does(sizes: list[int], alone: list[bool], seed: bytes) -> None:
    noise = hashlib.shake_128(seed).digest(STRIDE)
    messages = [noise[:size] for size in sizes]
    assert hash_all(messages, alone) == [hashlib.blake2b(one, digest_size=32).digest() for one in messages]
