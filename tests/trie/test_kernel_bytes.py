"""Kernels that move, compare and sort bytes do what slices, numbers and sorted lists do."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_inputs import array, column, numbers, slots, spread
from naive import byte_lists, nibbles, shared_nibbles
from relaycast_trie.kernels import build, compiling, decode, memory, packed_args, tables
from relaycast_trie.scale import encode_bytes, encode_vec
from strategies import keys
from twins import twin_of

NOISE = bytes(7 * i % 251 for i in range(600))
ROOM = b"\xee" * 700
words = st.integers(0, 2**64 - 1)
strings = st.lists(keys | st.binary(min_size=9, max_size=9), max_size=20)
lists = st.lists(st.binary(max_size=70), max_size=6).map(lambda some: encode_vec(map(encode_bytes, some)))


@twin_of("memory.copy", "memory.copy_loose", "memory.copy_padded", "memory.copy32", "memory.copy128")
@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 300))
def test_copies_write_what_slices_write(to: int, of: int, size: int) -> None:
    short = min(size, 128)
    for copy, sizes, amount, padded, loose in (
        (memory.copy, (size,), size, size, 0),
        (memory.copy_loose, (size,), size, size, 64),
        (memory.copy_padded, (short,), short, 128, 0),
        (memory.copy32, (), 32, 32, 0),
        (memory.copy128, (), 128, 128, 0),
    ):
        source, target = array(NOISE), array(ROOM)
        copy(target, to, source, of, *sizes)
        expected = ROOM[:to] + NOISE[of : of + amount] + bytes(padded - amount) + ROOM[to + padded :]
        written, end = target.tobytes(), to + padded
        assert (written[:end], written[end + loose :]) == (expected[:end], expected[end + loose :])
        assert source.tobytes() == NOISE


@twin_of("memory.load64", "memory.store64")
@given(words, st.integers(0, 9))
def test_words_are_loaded_high_byte_first_and_stored_low_byte_first(word: int, at: int) -> None:
    out = array(b"\xee" * 20)
    memory.store64(out, at, np.uint64(word))  # type: ignore[arg-type]
    assert out.tobytes() == b"\xee" * at + word.to_bytes(8, "little") + b"\xee" * (12 - at)
    assert memory.load64(out, at) % 2**64 == int.from_bytes(word.to_bytes(8, "little"), "big")


@twin_of("memory.count_ones", "memory.leading_zeros", "memory.lowest_bit")
@given(words | st.integers(0, 63).map(lambda shift: 1 << shift))
def test_bits_are_those_of_the_binary_number(word: int) -> None:
    assert memory.leading_zeros(np.uint64(word)) == len(f"{word:064b}") - len(f"{word:064b}".lstrip("0"))  # type: ignore[arg-type]
    bits = word >> 1
    assert memory.count_ones(bits) == f"{bits:b}".count("1")
    if bits:
        assert memory.lowest_bit(bits) == f"{bits:b}"[::-1].index("1")


@twin_of("tables.nibble", "tables.place")
@given(strings, st.booleans())
def test_a_column_holds_its_strings_nibble_by_nibble(some: list[bytes], spread_out: bool) -> None:
    held = spread(*some) if spread_out else column(*some)
    for index, expected in enumerate(some):
        at, size = tables.place(held, index)
        assert held.data[at : at + size].tobytes() == expected
        assert [tables.nibble(held.data, at, i) for i in range(2 * size)] == nibbles(expected)


@twin_of("tables.shared_nibbles")
@given(keys, keys)
def test_shared_nibbles(left: bytes, right: bytes) -> None:
    both = array(b"?" + left + right)
    found = tables.shared_nibbles(both, 1, len(left), both, 1 + len(left), len(right))
    assert found == shared_nibbles(left, right)


@twin_of("tables.copy_reference")
@pytest.mark.parametrize("node", [1, 3, -1, -3])
def test_the_slot_of_a_reference_is_copied_from_the_table_of_its_node(node: int) -> None:
    leaves, branches = array(bytes(range(4, 4 + 99))), array(bytes(range(120, 120 + 99)))
    out = array(b"\xee" * 80)
    first = tables.copy_reference(out, 5, leaves, branches, node)
    table = leaves if node > 0 else branches
    slot = table[33 * (abs(node) - 1) : 33 * abs(node)].tobytes()
    assert first == slot[0]
    assert out.tobytes() == b"\xee" * 5 + slot + b"\xee" * 42


@twin_of("build.take_words")
@given(strings, st.integers(0, 24), st.booleans())
def test_a_word_is_eight_bytes_of_a_string_with_zeros_behind(some: list[bytes], skip: int, spread_out: bool) -> None:
    out = np.full(len(some), 7, np.uint64)
    build.take_words(spread(*some) if spread_out else column(*some), skip, out)
    assert out.tolist() == [int.from_bytes(string[skip : skip + 8].ljust(8, b"\0"), "big") for string in some]


@twin_of("build._compare", "build._is_before", "build._sort_run", "build.settle_ties")
@given(
    strings | st.lists(st.sampled_from([b"", b"\0", b"\0" * 9, b"\0" * 8 + b"a"]), max_size=20),
    st.randoms(use_true_random=False),
)
def test_an_order_is_sorted_as_a_list_is(some: list[bytes], chance: Any) -> None:
    held, order = column(*some), list(range(len(some)))
    chance.shuffle(order)
    for left, right in pairwise(order):
        assert build._compare(held, left, right) == (some[left] > some[right]) - (some[left] < some[right])
        assert build._is_before(held, left, right) == ((some[left], left) < (some[right], right))
    expected = sorted(order, key=lambda index: (some[index], index))
    half = len(order) // 2
    run, spare = slots(*order), slots(*order)
    build._sort_run(held, run, spare, half, len(order))
    assert run.tolist() == order[:half] + sorted(order[half:], key=lambda index: (some[index], index))
    ranked = np.full(len(some), 7, np.uint64)
    build.rank_strings(held, max(map(len, some), default=0), ranked)
    kept = build.settle_ties(held, np.sort(ranked), run, spare)
    last = {some[index]: index for index in expected}
    assert run[:kept].tolist() == list(last.values())


@twin_of("build.rank_strings")
@given(strings, st.binary(max_size=20), st.binary(max_size=8))
def test_strings_are_ranked_by_bytes_in_which_they_differ(some: list[bytes], before: bytes, behind: bytes) -> None:
    some = [before + string + behind for string in some]
    most, ranked = max(map(len, some), default=0), np.full(len(some), 7, np.uint64)
    build.rank_strings(column(*some), most, ranked)
    words = [[string[skip : skip + 8].ljust(8, b"\0") for string in some] for skip in range(0, max(most, 1), 8)]
    word = next((some_words for some_words in words if len(set(some_words)) > 1), words[-1])
    bits = len(some).bit_length()
    expected = [int.from_bytes(one, "big") >> bits << bits | index for index, one in enumerate(word)]
    assert ranked.tolist() == expected


@twin_of("build.take_strings", "build.measure_strings")
@given(strings, st.data())
def test_chosen_strings_are_measured_and_taken_as_a_list_joins_them(some: list[bytes], data: st.DataObject) -> None:
    order = data.draw(st.lists(st.integers(-2, len(some) - 1), max_size=9))
    chosen = [some[index] if index >= 0 else b"" for index in order]
    offsets = numbers(*[-1] * (len(order) + 1))
    build.measure_strings(column(*some), slots(*order), offsets)
    assert offsets.tolist() == [sum(map(len, chosen[:i])) for i in range(len(order) + 1)]
    out = np.zeros(offsets[-1], np.uint8)
    build.take_strings(column(*some), slots(*order), out, offsets)
    assert out.tobytes() == b"".join(chosen)


@twin_of("decode.measure_lists", "decode.take_lists")
@given(st.lists(lists | st.binary(max_size=30), max_size=6), st.binary(max_size=5))
def test_encoded_lists_are_measured_and_taken_as_their_definition_reads_them(sent: list[bytes], before: bytes) -> None:
    data = array(before + b"".join(sent))
    ends = numbers(*[len(before) + sum(map(len, sent[:i])) for i in range(len(sent) + 1)])
    counts, sizes = numbers(*[9] * len(sent)), numbers(*[9] * len(sent))
    decode.measure_lists(data, ends, counts, sizes)
    found = [byte_lists(one) for one in sent]
    assert counts.tolist() == [decode.NOT_A_LIST if some is None else len(some) for some in found]
    assert sizes.tolist() == [sum(map(len, some or [])) for some in found]
    taken = [string for some in found for string in some or []]
    out, offsets = np.zeros(sizes.sum(), np.uint8), numbers(*[-1] * (len(taken) + 1))
    decode.take_lists(data, ends, counts, out, offsets)
    assert [out[a:b].tobytes() for a, b in pairwise(offsets)] == taken


@twin_of("packed_args._fill_cells")
@pytest.mark.skipif(not compiling.JIT, reason="without the compiler nothing is handed over by its address")
def test_what_is_handed_over_is_written_as_addresses_and_lengths() -> None:
    things = (array(b"abc"), 7, numbers(1, 2), -1, np.zeros((5, 24), np.int32))
    out = numbers(*[0] * 10)
    packed_args._fill_cells(things, out)
    cells = [(it, 0) if isinstance(it, int) else (it.ctypes.data, len(it)) for it in things]
    assert out.reshape(-1, 2).tolist() == [list(cell) for cell in cells]
