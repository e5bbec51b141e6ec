"""Bytes that are gathered, moved and hashed."""

from typing import Any

import numpy as np

from exercise.drawing import Exercise
from kernel_inputs import array
from relaycast_trie import blake2_256
from relaycast_trie.kernels import encode, memory
from relaycast_trie.kernels.multibuffer_hash import BLOCK, LANES, ROWS, SIZES, Rooms, mix_short, take_hash
from relaycast_trie.kernels.python_lists import NOT_BYTES, gathered, gathered_pairs
from relaycast_trie.scale import encode_compact


class Pretender(bytes):
    """Bytes that say there are more of them than there are."""

    def __len__(self) -> int:
        return 1 << 40


def strings_are_gathered(draw: Exercise) -> None:
    """Strings out of Python lists and dicts; where something only looks like bytes, nothing is read of it."""
    strings = [draw.value() for _ in range(draw.random.randrange(40))]
    pairs = {bytes([i]): string for i, string in enumerate(strings)}
    assert [data.tobytes() for data, *_ in gathered_pairs(pairs)] == [b"".join(pairs), b"".join(strings)]
    data, offsets, sizes, width = gathered(strings)
    assert data.tobytes() == b"".join(strings)
    assert (np.diff(offsets).tolist(), sizes.tolist()) == (list(map(len, strings)),) * 2
    assert width == (-1 if len({*sizes.tolist()}) > 1 else max(sizes, default=0))
    for other in (Pretender(b"ab"), bytearray(b"ab"), memoryview(b"ab"), "ab", None, 5, strings):
        mixed: list[Any] = [*strings, other, *strings]
        draw.random.shuffle(mixed)
        assert gathered(mixed)[3] == NOT_BYTES


def long_lengths() -> None:
    """Lengths that no trie of this size has."""
    out = np.zeros(8, np.uint8)
    for number in (1 << 30, (1 << 32) - 1):
        size = encode.write_compact(out, 0, number)
        assert out[:size].tobytes() == encode_compact(number)


def bytes_are_copied(draw: Exercise) -> None:
    """Copies of a block, which only hashing in lanes needs."""
    noise, at, size = draw.random.randbytes(300), draw.random.randrange(100), draw.random.randrange(129)
    whole, padded = array(b"\xee" * 300), array(b"\xee" * 300)
    memory.copy128(whole, at, array(noise), at)
    memory.copy_padded(padded, at, array(noise), at, size)
    for target, copied in ((whole, noise[at : at + 128]), (padded, noise[at : at + size].ljust(128, b"\0"))):
        assert target.tobytes() == b"\xee" * at + copied + b"\xee" * (172 - at)


def blocks_are_hashed(draw: Exercise) -> None:
    """A message of one block in each lane."""
    messages = [draw.random.randbytes(draw.random.randrange(BLOCK + 1)) for _ in range(LANES)]
    rooms = Rooms(
        np.zeros(ROWS, np.uint64), array(b"".join(message.ljust(BLOCK, b"\0") for message in messages)), BLOCK
    )
    rooms.words[SIZES : SIZES + LANES] = [len(message) for message in messages]
    mix_short(rooms)
    out = array(bytes(32 * LANES))
    for lane in range(LANES):
        take_hash(rooms, lane, out, 32 * lane)
    assert out.tobytes() == b"".join(map(blake2_256, messages))
