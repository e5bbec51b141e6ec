"""Eras have the bytes, births and deaths of sp-runtime."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_node.extrinsic.era import IMMORTAL, Mortal, decode_era
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader

blocks = st.integers(0, (1 << 32) - 1)
mortals = st.builds(lambda block, exponent: Mortal.starting_at(block, period=1 << exponent), blocks, st.integers(2, 16))


def test_an_immortal_era_is_born_at_genesis_and_has_no_end() -> None:
    assert IMMORTAL.encode() == b"\x00"
    assert decode_era(ScaleReader(b"\x00")) == IMMORTAL
    assert [(IMMORTAL.birth(at), IMMORTAL.death(at)) for at in (0, 1, 1 << 40)] == [(0, (1 << 64) - 1)] * 3


@pytest.mark.parametrize(
    ("block", "period", "era", "encoded"),
    [
        (42, 64, Mortal(64, 42), bytes([5 + 42 % 16 * 16, 42 // 16])),  # sp-runtime: mortal_codec_works
        (20_000, 32_768, Mortal(32_768, 20_000), bytes([14 + 2_500 % 16 * 16, 2_500 // 16])),  # a long period
        (513, 200, Mortal(256, 1), b"\x17\x00"),  # a period is rounded up to a power of two
        (1, 2, Mortal(4, 1), b"\x11\x00"),  # the shortest is 4
        (5, 4, Mortal(4, 1), b"\x11\x00"),  # a phase is below the period
        (1_000_001, 1_000_000, Mortal(65_536, 1_000_001 % 65_536 // 4 * 4), None),  # the longest, its phase in fours
    ],
)
def test_an_era_starts_at(block: int, period: int, era: Mortal, encoded: bytes | None) -> None:
    assert Mortal.starting_at(block, period=period) == era
    assert encoded is None or era.encode() == encoded


def test_an_era_lives_for_its_period() -> None:
    era = Mortal.starting_at(6, period=4)
    assert [(era.birth(at), era.death(at)) for at in range(6, 10)] == [(6, 10)] * 4
    assert era.birth(10) == 10
    assert era.birth(5) == 2
    assert Mortal(4, 3).birth(1) == 3


@given(mortals)
def test_a_mortal_era_survives_its_bytes(era: Mortal) -> None:
    reader = ScaleReader(era.encode())
    assert decode_era(reader) == era
    reader.done()


@given(mortals, blocks)
def test_a_block_is_between_birth_and_death_of_its_era(era: Mortal, block: int) -> None:
    current = block + era.phase
    assert era.birth(current) <= current < era.death(current)
    assert era.birth(current) % era.period == era.phase


@given(st.binary(min_size=2, max_size=2))
def test_two_bytes_are_an_era_that_encodes_to_them_or_are_refused(data: bytes) -> None:
    reader = ScaleReader(data)
    with suppress(CodecError):
        assert decode_era(reader).encode() == data[: reader.offset]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "1 bytes expected"),
        (b"\x05", "1 bytes expected"),  # half an era
        (b"\x10\x00", "period 2 and phase 1"),  # the exponent 0 means 2, too short
        (b"\x41\x00", "period 4 and phase 4"),  # a phase reaches the period
    ],
)
def test_bytes_that_are_no_era_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(CodecError, match=reason):
        decode_era(ScaleReader(data))


@pytest.mark.parametrize(
    ("period", "phase", "message"),
    [
        (2, 0, "power of two from 4"),
        (65, 0, "power of two"),
        (64, 64, "below the period"),
        (65_536, 3, "multiple of 16"),
    ],
)
def test_an_era_that_no_bytes_express_is_a_slip(period: int, phase: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mortal(period, phase)
