"""SCALE primitives: the bytes that Substrate writes, and nothing but those when reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import (
    ScaleReader,
    encode_bytes,
    encode_compact,
    encode_option,
    encode_u8,
    encode_u32,
    encode_u64,
    encode_u128,
    encode_vec,
)
from shared_vectors import Case, over, unhex

BIGGEST = (1 << 536) - 1


@over("smoldot/scale_hash_xcm.json")
def test_compact_integers_have_the_bytes_of_the_vectors(cases: list[Case]) -> None:
    for vector in cases[0]["compact"]:
        encoded = unhex(vector["enc"])
        assert encode_compact(vector["n"]) == encoded
        assert read_compact(encoded) == vector["n"]


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (63, "fc"),  # the last of one byte
        (64, "0101"),
        ((1 << 14) - 1, "fdff"),  # the last of two
        (1 << 14, "02000100"),
        ((1 << 30) - 1, "feffffff"),  # the last of four
        (1 << 30, "0300000040"),  # from here on a length byte goes first
        ((1 << 32) - 1, "03ffffffff"),
        (1 << 32, "070000000001"),
        ((1 << 64) - 1, "13ffffffffffffffff"),
        ((1 << 128) - 1, "33" + "ff" * 16),
        (BIGGEST, "ff" + "ff" * 67),
    ],
)
def test_compact_integers_change_width_at(number: int, encoded: str) -> None:
    assert encode_compact(number).hex() == encoded
    assert read_compact(bytes.fromhex(encoded)) == number


@pytest.mark.parametrize(
    "encoded",
    [
        "0100",  # 0 in two bytes
        "fd00",  # 63 in two bytes
        "02000000",  # 0 in four bytes
        "feff0000",  # 16,383 in four bytes
        "0300000000",  # 0 behind a length byte
        "03ffffff3f",  # 2^30 - 1 behind a length byte
        "07ffffffff00",  # 2^32 - 1 with a zero byte on top
        "ff" + "00" * 67,  # 0 in the longest form
    ],
)
def test_a_compact_integer_in_more_bytes_than_it_needs_is_refused(encoded: str) -> None:
    with pytest.raises(CodecError) as refusal:
        read_compact(bytes.fromhex(encoded))
    assert refusal.value.offset == 0


@pytest.mark.parametrize("number", [-1, BIGGEST + 1])
def test_a_number_out_of_reach_is_a_slip_of_the_caller(number: int) -> None:
    with pytest.raises(ValueError, match="compact integer"):
        encode_compact(number)


@given(st.integers(0, BIGGEST))
def test_compact_integers_come_back(number: int) -> None:
    assert read_compact(encode_compact(number)) == number


@given(st.binary(max_size=70))
def test_any_bytes_are_one_compact_integer_or_refused(data: bytes) -> None:
    reader = ScaleReader(data)
    try:
        number = reader.compact()
    except CodecError as refusal:
        offset = refusal.offset
    else:
        offset = reader.offset
        assert encode_compact(number) == data[:offset]
    assert 0 <= offset <= len(data)


@given(
    st.integers(0, 255),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**128 - 1),
)
def test_fixed_width_integers_come_back_in_their_order(u8: int, u32: int, u64: int, u128: int) -> None:
    data = encode_u8(u8) + encode_u32(u32) + encode_u64(u64) + encode_u128(u128)
    reader = ScaleReader(data)
    assert len(data) == 1 + 4 + 8 + 16
    assert (reader.u8(), reader.u32(), reader.u64(), reader.u128()) == (u8, u32, u64, u128)
    reader.done()


@given(st.lists(st.binary(max_size=80), max_size=70))
def test_a_vec_of_byte_strings_comes_back(items: list[bytes]) -> None:
    reader = ScaleReader(encode_vec(encode_bytes(item) for item in items))
    assert [reader.bytes_() for _ in range(reader.length())] == items
    reader.done()


def test_an_option_is_a_byte_and_what_it_holds() -> None:
    assert encode_option(None) == b"\x00"
    assert encode_option(b"\x2a") == b"\x01\x2a"
    assert [ScaleReader(data).option() for data in (b"\x00", b"\x01")] == [False, True]
    with pytest.raises(CodecError):
        ScaleReader(b"\x02").option()


@pytest.mark.parametrize("width", ["u8", "u32", "u64", "u128", "compact", "bytes_", "option"])
def test_nothing_can_be_read_from_no_bytes(width: str) -> None:
    with pytest.raises(CodecError):
        getattr(ScaleReader(b""), width)()


def test_bytes_left_over_are_refused_where_they_start() -> None:
    reader = ScaleReader(b"\x08abc")
    assert reader.bytes_() == b"ab"
    with pytest.raises(CodecError) as refusal:
        reader.done()
    assert refusal.value.offset == 3


@pytest.mark.parametrize(
    "announced",
    [
        "feffffff",  # a gigabyte that is not there
        "03ffffffff",  # four of them
        "13ffffffffffffffff",  # 2^64 - 1
        "ff" + "ff" * 67,  # 2^536 - 1
    ],
)
def test_a_length_beyond_the_bytes_is_refused_before_anything_is_reserved(announced: str) -> None:
    with pytest.raises(CodecError):
        ScaleReader(bytes.fromhex(announced) + b"ab").bytes_()


def read_compact(data: bytes) -> int:
    reader = ScaleReader(data)
    number = reader.compact()
    reader.done()
    return number
