"""Numbers in groups of seven bits: by the vectors of the standard, by their definition, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.candid.leb128 import signed, signed_at, unsigned, unsigned_at


@pytest.mark.parametrize(
    ("number", "natural", "integer"),
    [
        (0, "00", "00"),
        (63, "3f", "3f"),
        (64, "40", "c000"),  # bit 6 is the sign of the last group
        (127, "7f", "ff00"),
        (128, "8001", "8001"),
        (624485, "e58e26", "e58e26"),  # the example of the DWARF standard
        (-1, None, "7f"),
        (-64, None, "40"),
        (-65, None, "bf7f"),
        (-123456, None, "c0bb78"),
    ],
)
def test_numbers_are_written_seven_bits_at_a_time(number: int, natural: str | None, integer: str) -> None:
    assert natural is None or unsigned(number).hex() == natural
    assert signed(number).hex() == integer


@given(st.integers(min_value=0) | st.integers(min_value=0, max_value=1 << 600))
def test_a_number_comes_back_from_its_groups(number: int) -> None:
    for written, expected in ((unsigned(number), number), (signed(number), number), (signed(-number), -number)):
        assert all(each & 0x80 for each in written[:-1])
        assert not written[-1] & 0x80
        total = sum((each & 0x7F) << 7 * place for place, each in enumerate(written))
        negative = expected < 0 and written[-1] & 0x40
        assert total - (1 << 7 * len(written) if negative else 0) == expected


@given(st.integers(0, 1 << 300), st.binary(max_size=3))
def test_numbers_of_any_size_come_back_from_leb128(number: int, behind: bytes) -> None:
    written = unsigned(number)
    assert unsigned_at(written + behind, 0) == (number, len(written))
    for value in (number, -number, ~number):
        written = signed(value)
        assert signed_at(written + behind, 0) == (value, len(written))
        assert len(written) == 1 or signed_at(written[:-2] + bytes([written[-2] & 0x7F]), 0)[0] != value
