"""Paths of half bytes: where keys part, how a node packs its partial key, how a database prefixes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie.nibbles import (
    digits,
    from_nibbles,
    pack,
    prefix_of,
    prefixed_key,
    shared_key_nibbles,
    shared_length,
    to_nibbles,
    unpack,
)
from strategies import crowded_keys, paths


@pytest.mark.parametrize(
    ("left", "right", "shared"),
    [
        (b"", b"", 0),
        (b"", b"dog", 0),  # the empty key is above every other
        (b"do", b"dog", 4),  # one key ends where the other goes on: a value on a branch
        (b"\x10", b"\x1f", 1),  # keys part inside a byte: the branch stands on a half byte
        (b"\x10", b"\x20", 0),
        (b"\x00", b"\x0f", 1),  # a shared zero counts
        (b"\x00\x00", b"\x00\x00\x00", 4),
        (b"dog", b"dog", 6),
        (b"\xff" * 40 + b"\x01", b"\xff" * 40 + b"\x02", 81),
    ],
)
def test_keys_part_at(left: bytes, right: bytes, shared: int) -> None:
    assert shared_key_nibbles(left, right) == shared_key_nibbles(right, left) == shared
    assert shared_length(to_nibbles(left), to_nibbles(right)) == shared


@given(st.binary(max_size=40))
def test_a_key_comes_back_from_its_path(key: bytes) -> None:
    path = to_nibbles(key)
    assert len(path) == 2 * len(key)
    assert digits(path) == key.hex()
    assert from_nibbles(path) == key


@given(paths)
def test_a_packed_path_comes_back(path: bytes) -> None:
    packed = pack(path)
    assert packed.hex() == ("0" + digits(path) if len(path) % 2 else digits(path))
    assert unpack(packed, len(path)) == path


@given(crowded_keys, crowded_keys)
def test_shared_nibbles_are_the_longest_common_beginning(left: bytes, right: bytes) -> None:
    shared = shared_key_nibbles(left, right)
    a, b = left.hex(), right.hex()
    assert a[:shared] == b[:shared]
    assert a[shared : shared + 1] != b[shared : shared + 1] or len(a) == shared or len(b) == shared


@given(paths, paths)
def test_shared_length_of_paths_is_the_longest_common_beginning(left: bytes, right: bytes) -> None:
    shared = shared_length(left, right)
    assert left[:shared] == right[:shared]
    assert shared in {len(left), len(right)} or left[shared] != right[shared]


def test_half_a_byte_is_no_key() -> None:
    with pytest.raises(ValueError, match="3 nibbles"):
        from_nibbles(b"\x01\x02\x03")


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        (b"", (b"", None)),
        (b"\x0a", (b"", 0xA0)),  # the odd nibble stands in the high half
        (b"\x0a\x0b", (b"\xab", None)),
        (b"\x0a\x0b\x0c", (b"\xab", 0xC0)),
    ],
)
def test_a_database_prefix_pads_an_odd_path_on_the_right(path: bytes, prefix: tuple[bytes, int | None]) -> None:
    assert prefix_of(path) == prefix
    assert prefixed_key(path, b"\xee" * 32).hex() == digits(path) + "0" * (len(path) % 2) + "ee" * 32
