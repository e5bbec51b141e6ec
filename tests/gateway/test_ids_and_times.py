"""Ids as Crockford Base32, principals as text, moments as RFC 3339."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway import crockford
from relaycast_gateway.principal import ANONYMOUS, principal_of, principal_text
from relaycast_gateway.rfc3339 import format_time, parse_time

naturals = st.integers(0, 1 << 210)
moments = st.integers(-62_135_596_800, 253_402_300_799).flatmap(
    lambda second: st.integers(0, 999_999_999).map(lambda ns: second * 1_000_000_000 + ns)
)


@pytest.mark.matrix("ICRC72-03")
@given(naturals)
def test_a_number_comes_back_from_its_text(number: int) -> None:
    text = crockford.encode(number)
    assert crockford.decode(text) == number
    assert not set(text) & set("ILOU")


@pytest.mark.matrix("ICRC72-04")
@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("o", 0), ("iL1", 1057), ("z-z", 1023), ("16J", 1234), ("00A", 10)]
)
def test_reading_is_lenient(text: str, number: int) -> None:
    assert crockford.decode(text) == number


@pytest.mark.matrix("ICRC72-04")
@pytest.mark.parametrize("text", ["", "-", "U", "a b", "5!", "é"])
def test_other_characters_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected Crockford Base32"):
        crockford.decode(text)


def test_zero_has_one_digit_and_a_negative_number_has_no_text() -> None:
    assert crockford.encode(0) == "0"
    with pytest.raises(ValueError, match="natural"):
        crockford.encode(-1)


@given(moments)
def test_a_moment_comes_back_from_its_text(ns: int) -> None:
    assert parse_time(format_time(ns)) == ns
    assert parse_time(format_time(ns, digits=9)) == ns


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t02:00:00.000000001+02:00", 1),
        ("1969-12-31T23:59:59.9z", -100_000_000),
        ("2000-02-29T12:00:00-00:30", 951_827_400 * 1_000_000_000),
        ("1970-01-01T00:00:00.0000000019999Z", 1),  # more than nine digits are cut
        ("1969-12-31T23:59:59.99999999999999999999Z", -1),
        ("2016-12-31T23:59:60Z", 1_483_228_800 * 1_000_000_000),  # a leap second is the start of the next one
        ("2017-01-01T01:59:60.75+02:00", 1_483_228_800 * 1_000_000_000),
    ],
)
def test_times_of_any_offset_are_read(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00",
        "2026-01-31",
        "2026-13-01T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-02-29T00:00:00Z",
        "2016-12-31T23:59:61Z",
        "2026-01-31T12:00:00.12345678901234567890",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00.Z",
        "٢026-01-31T12:00:00Z",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected an"):
        parse_time(text)


def test_digits_of_the_fraction_are_chosen() -> None:
    assert format_time(1_500_000_000) == "1970-01-01T00:00:01.5Z"
    assert format_time(1_500_000_000, digits=3) == "1970-01-01T00:00:01.500Z"
    assert format_time(1_500_000_000, digits=0) == "1970-01-01T00:00:01Z"


@given(st.binary(max_size=29))
def test_a_principal_comes_back_from_its_text(principal: bytes) -> None:
    assert principal_of(principal_text(principal)) == principal


@pytest.mark.parametrize(("principal", "text"), [(b"", "aaaaa-aa"), (ANONYMOUS, "2vxsx-fae")])
def test_known_principals(principal: bytes, text: str) -> None:
    assert principal_text(principal) == text


@pytest.mark.parametrize("text", ["", "aaaaa-ab", "2VXSX-FAE", "2vxsxfae", "2vxsx-fa1", "é"])
def test_other_texts_are_no_principals(text: str) -> None:
    with pytest.raises(ValueError, match="expected the text of a principal"):
        principal_of(text)
