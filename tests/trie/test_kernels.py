"""Each kernel computes what its slow twin computes; and kernels run checked, uncompiled and forked."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_inputs import array
from kernel_process import ROOT, run
from naive import ascending_unique, by_height, nibbles, packed
from relaycast_trie import ArrayTrie, CodecError, HashedValue, Leaf, decode_node, node
from relaycast_trie.array.columns import ascending, column_of_list, joined, strings_of, take
from relaycast_trie.array.warm_up import all_kernels
from relaycast_trie.kernels import decode, encode
from relaycast_trie.kernels.build import order_by_height
from relaycast_trie.node_codec import encode_node
from relaycast_trie.scale import encode_compact
from strategies import keys, nodes
from twins import twin_of


@given(
    st.lists(keys | st.binary(min_size=9, max_size=9), max_size=30),
    st.sampled_from([b"", b"p" * 5, b"p" * 8, b"p" * 16, bytes(24)]),
)
def test_strings_ascend(some: list[bytes], prefix: bytes) -> None:
    strings = [prefix + string for string in some]
    given_column, count = column_of_list(strings)
    order = ascending(given_column, count)
    assert order.tolist() == ascending_unique(strings)
    assert strings_of(take(given_column, order), len(order)) == sorted(set(strings))
    both, total = joined([(given_column, count), (given_column, count)])
    assert strings_of(both, total) == strings * 2


@twin_of("build.order_by_height")
@given(st.lists(st.integers(0, 6), max_size=30))
def test_nodes_are_ordered_by_height(heights: list[int]) -> None:
    order, levels = np.zeros(len(heights), np.int32), np.zeros(9, np.int64)
    steps = order_by_height(np.array(heights, np.int32), len(heights), order, levels)
    assert [order[levels[i] : levels[i + 1]].tolist() for i in range(steps)] == by_height(heights)


@twin_of("encode.write_partial")
@given(keys, st.data())
def test_partial_keys_are_packed(key: bytes, data: st.DataObject) -> None:
    path = nibbles(key)
    start = data.draw(st.integers(0, len(path)))
    end = data.draw(st.integers(start, len(path)))
    out = np.zeros(len(key) + 80, np.uint8)
    size = encode.write_partial(out, 0, array(key), 0, start, end)
    assert out[:size].tobytes() == packed(path[start:end])


@twin_of("encode.write_compact")
@given(st.sampled_from([0, 1, 63, 64, 16383, 16384, (1 << 30) - 1, 1 << 30, (1 << 32) - 1]))
def test_compact_lengths_are_written(number: int) -> None:
    out = np.zeros(8, np.uint8)
    size = encode.write_compact(out, 0, number)
    assert out[:size].tobytes() == encode_compact(number)


@twin_of("encode.write_header", "encode.header_size")
@pytest.mark.parametrize(("kind", "mask"), [(0x40, 0x3F), (0x20, 0x1F), (0x10, 0x0F)])
@pytest.mark.parametrize(
    "count", [0, 1, 13, 14, 15, 16, 30, 31, 62, 63, 64, 268, 269, 270, 285, 286, 317, 318, 573, 65535]
)
def test_headers_are_written(kind: int, mask: int, count: int) -> None:
    out = np.zeros(300, np.uint8)
    size = encode.write_header(out, 0, kind, mask, count)
    value: node.Value = b"" if kind == 0x40 else HashedValue(b"\x00" * 32)
    if kind != 0x10:
        assert encode_node(Leaf(b"\x00" * count, value)).startswith(out[:size].tobytes())
    assert encode.header_size(mask, count) == size


@twin_of("decode.plan_node", "decode.child_place", "decode.partial_fits")
@given(st.binary(max_size=80) | nodes.map(encode_node), st.binary(max_size=3), st.data())
def test_plans_say_what_the_codec_says(encoded: bytes, behind: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(encoded)) | st.just(len(encoded)))
    encoded = encoded[:cut]
    whole = array(b"\xff" + encoded + behind)
    plan = np.zeros(decode.PLAN, np.int64)
    accepted = decode.plan_node(whole, 1, len(encoded), plan, 0)
    try:
        expected = decode_node(encoded)
    except CodecError:
        assert not accepted
        return
    assert accepted
    assert (
        plan[decode.KIND]
        == {"Empty": decode.EMPTY, "Leaf": decode.LEAF, "Branch": decode.BRANCH}[type(expected).__name__]
    )
    if isinstance(expected, node.Empty):
        return
    start, size = int(plan[decode.VALUE_AT]), int(plan[decode.VALUE_SIZE])
    value = expected.value
    if value is None:
        assert size == decode.NO_VALUE
    elif isinstance(value, HashedValue):
        assert size == decode.HASHED
        assert whole[start : start + 32].tobytes() == value.hash
    else:
        assert whole[start : start + size].tobytes() == value
    path = [*expected.partial, 7]
    for depth in (0, 1):
        key = packed([0] * depth + path + [0] * ((depth + len(path)) % 2))
        assert decode.partial_fits(whole, plan, 0, array(key), 0, len(key), depth)
    if expected.partial:
        path[data.draw(st.integers(0, len(expected.partial) - 1))] ^= data.draw(st.integers(1, 15))
        for depth in (0, 1):
            key = packed([0] * depth + path + [0] * ((depth + len(path)) % 2))
            assert not decode.partial_fits(whole, plan, 0, array(key), 0, len(key), depth)
    if isinstance(expected, node.Branch):
        for way, child in enumerate(expected.children):
            at, length = decode.child_place(whole, plan, 0, way)
            assert (None if length < 0 else whole[at : at + length].tobytes()) == child


def kernel_names() -> set[str]:
    return {f"{it.py_func.__module__.rpartition('.')[2]}.{it.py_func.__name__}" for it in all_kernels()}


EXERCISE = str(ROOT / "tests" / "kernel_exercise.py")

COMPILED_ALONE = {
    "multibuffer_hash._hash_short",
    *(f"python_lists.{name}" for name in ("_copy_string", "_gather", "_gather_items", "_gather_pairs")),
    "packed_args._fill_cells",
    "python_lists._scatter",
    "python_lists.put_string",
    *(f"at_once.{name}_at_once" for name in ("decode", "encode", "get", "prove", "root", "verify")),
    "at_once._largest",
    "at_once._put_values",
    "at_once._sort_few",
}
"""Where nothing is compiled, hashlib, Python's own functions and other kernels stand in their place."""


@pytest.mark.slow
def test_kernels_work_uncompiled_and_none_is_left_out() -> None:
    """A kernel that fails here is new, or no longer called: ``kernel_exercise`` is to call every one."""
    called = set(run(EXERCISE, "3", NUMBA_DISABLE_JIT="1").split())
    assert kernel_names() - called == COMPILED_ALONE


@pytest.mark.slow
def test_kernels_work_with_every_index_checked_and_none_is_left_out(tmp_path: Path) -> None:
    """Nothing was compiled before, so what is compiled was called, or is called by a kernel that was.

    Which of the latter are reached shows where nothing is compiled.
    """
    called = set(run(EXERCISE, "60", NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path)).split())
    assert not kernel_names() - called


def test_the_plain_engine_loads_neither_the_compiler_nor_numpy() -> None:
    script = """
import sys, relaycast_trie as t
db, root = t.build_database({b'a': b'b'}, state_version=t.StateVersion.V1)
proof = t.StorageProof.generate(db, root, [b'a'])
(verified,) = t.StorageProof.verify_many([t.trie_root({b'a': b'b'})], [proof], [[b'a']])
print(verified[b'a'], {'numba', 'numpy'} & sys.modules.keys())
"""
    assert run("-c", script).strip() == "b'b' set()"


def _prove(trie: ArrayTrie) -> bytes:
    return trie.prove([b"\x01" * 32]).encode()


def test_forked_workers_prove_what_their_parent_proves() -> None:
    trie = ArrayTrie.from_arrays([bytes([i]) * 32 for i in range(100)], [bytes([i]) * 40 for i in range(100)])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert set(pool.map(_prove, [trie] * 4)) == {_prove(trie)}
