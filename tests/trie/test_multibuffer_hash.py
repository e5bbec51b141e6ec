"""Hashing in lanes: equal to ``hashlib`` whatever the mix of messages and when each came, in vector registers."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import binding

from kernel_inputs import array, numbers
from relaycast_trie.kernels import multibuffer_hash
from relaycast_trie.kernels.compiling import JIT
from relaycast_trie.kernels.multibuffer_hash import (
    BLOCK,
    LANES,
    ROWS,
    SIZES,
    Rooms,
    hash_messages,
    mix,
    mix_one,
    mix_short,
    new_rooms,
    start,
    take_hash,
)
from twins import twin_of

ROOM = Path(__file__).parents[2] / "trie"


def hash_all(messages: list[bytes], *, gap: int = 0) -> list[bytes]:
    """Hash messages that lie ``gap`` bytes apart, into slots in the opposite order."""
    count = len(messages)
    sizes = np.array([len(message) for message in messages], np.int64)
    starts = np.cumsum([0, *(len(message) + gap for message in messages)])[:count].astype(np.int64)
    data = np.frombuffer(bytearray(b"".join(message + b"\xff" * gap for message in messages)), np.uint8)
    out = np.zeros(32 * count, np.uint8)
    slots = np.arange(count - 1, -1, -1, dtype=np.int64) * 32
    hash_messages(new_rooms(), data, starts, sizes, count, out, slots)
    return [out[at : at + 32].tobytes() for at in slots]


def plain(messages: list[bytes]) -> list[bytes]:
    return [hashlib.blake2b(message, digest_size=32).digest() for message in messages]


@twin_of("multibuffer_hash.hash_messages", "multibuffer_hash.new_rooms")
@given(st.lists(st.integers(0, 5 * BLOCK + 3), max_size=40), st.integers(0, 255), st.integers(0, 3))
def test_any_mix_of_lengths_hashes_as_hashlib_does(sizes: list[int], seed: int, gap: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, max(sizes, default=0), np.uint8).tobytes()
    messages = [noise[:size] for size in sizes]
    assert hash_all(messages, gap=gap) == plain(messages)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 65, 127, 128, 129, 255, 256, 257, 544, 1 << 16])
@pytest.mark.parametrize("count", [1, LANES - 1, LANES, LANES + 1, 3 * LANES])
def test_messages_of_one_length_hash_as_hashlib_does(size: int, count: int) -> None:
    messages = [bytes([i % 251]) * size for i in range(count)]
    assert hash_all(messages) == plain(messages)


def test_bytes_around_a_message_do_not_matter() -> None:
    messages = [b"a" * 30, b"b" * 100, b"c" * 130, b""]
    assert hash_all(messages, gap=64) == hash_all(messages) == plain(messages)


@twin_of("multibuffer_hash._hash_short")
@pytest.mark.skipif(not JIT, reason="without the compiler hashlib hashes")
@given(st.lists(st.binary(max_size=BLOCK), max_size=3 * LANES), st.integers(0, 99))
def test_only_messages_of_one_block_before_the_first_longer_one_are_hashed(messages: list[bytes], at: int) -> None:
    messages.insert(at, b"l" * (BLOCK + 1))
    sizes = [len(message) for message in messages]
    starts, slots = np.cumsum([0, *sizes])[:-1], numbers(*(32 * i for i in range(len(messages))))
    out = array(bytes(32 * len(messages)))
    done = multibuffer_hash._hash_short(
        new_rooms(), array(b"".join(messages)), starts, numbers(*sizes), len(messages), out, slots
    )
    assert done == min(at, len(messages) - 1) // LANES * LANES
    assert out.tobytes() == b"".join(plain(messages[:done])) + bytes(32 * (len(messages) - done))


def test_no_messages_write_nothing() -> None:
    assert hash_all([]) == []


@pytest.mark.parametrize(("function", "also"), [("mix", ", 1"), pytest.param("mix_short", "", marks=pytest.mark.slow)])
def test_the_rounds_are_vector_instructions(tmp_path: Path, function: str, also: str) -> None:
    features = binding.get_host_cpu_features()
    register, rotates = ("zmm", 12 * 8 * 4) if features.get("avx512f") else ("ymm", 0)
    if not features.get("avx2"):
        pytest.skip("this CPU has neither AVX-512 nor AVX2")
    script = (
        "import numpy as np\n"
        f"from relaycast_trie.kernels.multibuffer_hash import ROWS, LANES, Rooms, {function}\n"
        f"{function}(Rooms(np.zeros(ROWS, np.uint64), np.zeros(128 * LANES, np.uint8), 128){also})\n"
        f"print(next(iter({function}.inspect_asm().values())))\n"
    )
    environment = {"PYTHONPATH": str(ROOM), "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.count(f"%{register}") > 12 * 8 * 8, "the rounds work in general registers"
    folded = 4  # a compiler may work out the first rotations of constants beforehand
    assert len(re.findall(rf"vpro[lr]q.*%{register}", run.stdout)) >= rotates - folded
    assert not re.findall(r"\brorq\b|\brolq\b|\brorxq\b", run.stdout), "words are rotated one by one"


STRIDE = 6 * BLOCK


def wide_rooms() -> Rooms:
    return Rooms(np.zeros(ROWS, np.uint64), np.full(LANES * STRIDE, 0xEE, np.uint8), STRIDE)


def hash_in_turns(messages: list[bytes], alone: list[bool]) -> list[bytes]:
    """Hash messages, each in the first lane that is free; ``alone`` says when one lane goes on by itself."""
    rooms, out = wide_rooms(), np.zeros(32 * len(messages), np.uint8)
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


@twin_of("multibuffer_hash.mix", "multibuffer_hash.mix_one", "multibuffer_hash.start", "multibuffer_hash.take_hash")
@given(st.lists(st.integers(0, STRIDE - BLOCK), max_size=3 * LANES), st.lists(st.booleans(), max_size=20), st.binary())
def test_any_mix_of_messages_hashes_as_hashlib_does(sizes: list[int], alone: list[bool], seed: bytes) -> None:
    noise = hashlib.shake_128(seed).digest(STRIDE)
    messages = [noise[:size] for size in sizes]
    assert hash_in_turns(messages, alone) == [hashlib.blake2b(one, digest_size=32).digest() for one in messages]


@twin_of("multibuffer_hash.mix_short")
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


@twin_of("multibuffer_hash._clear_block")
def test_a_block_is_cleared_and_nothing_around_it() -> None:
    buffer = array(b"\xee" * 400)
    multibuffer_hash._clear_block(buffer, 100)
    assert buffer.tobytes() == b"\xee" * 100 + bytes(BLOCK) + b"\xee" * (300 - BLOCK)
