"""Byte strings of Python objects in one array: what joining gives, and nothing of what is not exactly ``bytes``."""

import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import together
from relaycast_trie import ArrayTrie, StorageProof
from relaycast_trie.array.array_proofs import trace_paths, verify_many
from relaycast_trie.array.columns import column_of_list, strings_of, strings_together
from relaycast_trie.kernels import python_lists
from twins import twin_of

ALIKE = st.sampled_from((0, 5, 32, 128, 129)).flatmap(lambda size: st.lists(st.binary(min_size=size, max_size=size)))
LISTS = (
    st.lists(st.binary(max_size=300), max_size=30)
    | ALIKE
    | st.tuples(ALIKE, st.lists(st.binary(max_size=300), max_size=5)).map(lambda parts: [*parts[0], *parts[1]])
)
"""Strings of any sizes, of one size, and of one size up to a certain one."""
WAYS = [python_lists.gathered, python_lists.gathered_plainly]


class Liar(bytes):
    """Bytes that say there are more of them than there are."""

    def __len__(self) -> int:
        return 1 << 40


class Child(bytes):
    """Bytes of another type."""


@twin_of("python_lists._gather")
@pytest.mark.parametrize("way", WAYS)
@given(strings=LISTS)
def test_strings_are_gathered_as_their_twin_joins_them(way: Any, strings: list[bytes]) -> None:
    data, offsets, sizes, width = way(strings)
    assert (data.tobytes(), offsets.tolist(), sizes.tolist(), width) == together(strings)
    assert (data.dtype, offsets.dtype, sizes.dtype) == (np.uint8, np.int64, np.int32)
    assert data.flags.writeable, "kernels are compiled for such arrays alone"


@twin_of("python_lists._gather_pairs")
@pytest.mark.parametrize("way", [python_lists.gathered_pairs, python_lists.gathered_pairs_plainly])
@given(keys=LISTS, values=LISTS, removed=st.sets(st.integers(0, 30)))
def test_pairs_of_a_dict_are_gathered_as_two_lists_are(
    way: Any, keys: list[bytes], values: list[bytes], removed: set[int]
) -> None:
    pairs: dict[Any, Any] = dict(zip(keys, values, strict=False))
    for key in [key for i, key in enumerate(pairs) if i in removed]:
        del pairs[key]
    for strings, found in zip((list(pairs), list(pairs.values())), way(pairs), strict=True):
        data, offsets, sizes, width = found
        expected = together(strings)
        assert (data.tobytes(), width) == (expected[0], expected[3])
        assert width >= 0 or (offsets.tolist(), sizes.tolist()) == expected[1:3]
    for wrong in (pairs | {5: b"a"}, pairs | {b"a": None}):
        assert python_lists.NOT_BYTES in [found[3] for found in way(wrong)]


@pytest.mark.parametrize("pairs", [[b"ab"], None, type("Kin", (dict,), {})({b"ab": b"c"})])
def test_only_a_dict_is_looked_into(pairs: Any) -> None:
    with pytest.raises(TypeError, match="expected a dict"):
        python_lists.gathered_pairs(pairs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "other", [Liar(b"ab"), Child(b"ab"), bytearray(b"ab"), memoryview(b"ab"), "ab", 5, None, [b"ab"], b"ab".hex, Liar]
)
@pytest.mark.parametrize("before", [0, 1, 40])
def test_nothing_is_read_of_what_is_not_exactly_bytes(way: Any, other: Any, before: int) -> None:
    strings = [b"x" * 33] * before + [other, b"y"]
    assert way(strings)[3] == python_lists.NOT_BYTES


@pytest.mark.parametrize("strings", [(b"ab",), {b"ab"}, None, type("Kin", (list,), {})([b"ab"])])
def test_only_a_list_is_looked_into(strings: Any) -> None:
    with pytest.raises(TypeError, match="expected a list"):
        python_lists.gathered(strings)


def test_no_reference_is_taken_or_lost() -> None:
    string = bytes(bytearray(b"only here"))
    strings = [string] * 3
    before = sys.getrefcount(string), sys.getrefcount(strings)
    for _ in range(1_000):
        python_lists.gathered(strings)
        python_lists.gathered([*strings, None])
        python_lists.gathered_pairs({string: string, b"a": None})
    assert (sys.getrefcount(string), sys.getrefcount(strings)) == before


def test_a_list_that_another_thread_changes_is_read_as_it_is_at_one_moment() -> None:
    states = [[bytes([i]) * size for i in range(200)] * (40_000 // size) for size in (9, 40)]
    expected = {b"".join(state) for state in states}
    strings, done = list(states[0]), threading.Event()

    def change() -> None:
        while not done.is_set():
            for state in states:
                strings[:] = state

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(25):
            time.sleep(0)
            assert python_lists.gathered(strings)[0].tobytes() in expected
    finally:
        done.set()
        changer.join()
        sys.setswitchinterval(interval)


def test_the_lock_is_kept_while_python_objects_are_read() -> None:
    kept: Any
    for kept in (python_lists._gather, python_lists._gather_pairs):
        assert kept.targetoptions["nogil"] is False


@pytest.mark.parametrize("way", WAYS)
def test_a_string_whose_size_does_not_fit_is_not_taken(way: Any) -> None:
    long = bytes(python_lists.TOO_LONG)
    assert way([b"a", long])[3] == python_lists.NOT_BYTES
    with pytest.raises(ValueError, match="longer than 2 GiB"):
        column_of_list([b"a", long])


def test_more_than_there_is_memory_for_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        python_lists.gathered([bytes(1 << 30)] * (1 << 20))


class Boastful(frozenset[bytes]):
    """A set that says it has more than it gives."""

    def __len__(self) -> int:
        return 50


def test_groups_that_say_another_size_than_they_have_are_not_walked() -> None:
    trie = ArrayTrie.from_pairs({b"\x01": b"v" * 40})
    proofs = [StorageProof([b"a"]), StorageProof([b"b"])]
    proofs[1]._set = Boastful([b"b"])
    with pytest.raises(RuntimeError, match="changed while they were read: 51 are left of 2"):
        verify_many([trie.root] * 2, proofs, [[b"\x01"]] * 2)
    (alone,) = verify_many([trie.root], proofs[1:], [[b"\x01"]])
    assert isinstance(alone, Exception)


class Grown(list[bytes]):
    """A list that says it has more than it gives."""

    def __len__(self) -> int:
        return 1_000


def test_keys_are_as_many_as_are_read() -> None:
    trie = ArrayTrie.from_pairs({b"\x01": b"v" * 20})
    traced = trace_paths(trie.root, trie.prove([b"\x01"]), Grown([b"\x01"]), cached=Grown())
    assert (traced.complete.tolist(), traced.needed.tolist()) == ([True], [True])


@pytest.mark.parametrize("container", [list, tuple, iter])
def test_whatever_holds_bytes_is_taken_for_them(container: Any) -> None:
    wide: Any = np.array([1, 2], np.uint16)
    strings = [b"a", Liar(b"bc"), bytearray(b"d"), memoryview(wide)]
    data, offsets, _, _ = strings_together(container(strings))
    assert data.tobytes() == b"abcd\x01\x00\x02\x00"
    assert offsets.tolist() == [0, 1, 3, 4, 8]


@pytest.mark.parametrize("other", ["ab", 5, None])
def test_what_holds_no_bytes_is_a_type_error(other: Any) -> None:
    with pytest.raises(TypeError, match="a bytes-like object is required"):
        column_of_list([b"a", other])


def test_bytes_that_lie_about_their_length_are_keys_of_their_true_length() -> None:
    column, count = column_of_list([Liar(b"ab"), b"c"])
    assert strings_of(column, count) == [b"ab", b"c"]
    trie = ArrayTrie.from_pairs({bytes([i]) * 2: bytes([i]) * 40 for i in range(20)})
    keys, proof = [Liar(b"\x01\x01")], StorageProof(trie.prove([b"\x01\x01"]).nodes)
    (result,) = verify_many([trie.root], [proof], [keys])
    assert not isinstance(result, Exception)
    assert list(result.values.values()) == [b"\x01" * 40]
