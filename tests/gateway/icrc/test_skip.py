"""Skips: their forms, and the subscribers that divide the events of a namespace among themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.icrc import Skip, skip_of
from relaycast_gateway.icrc16 import Icrc16, Tag, array, nat, option, text


@pytest.mark.parametrize(
    ("value", "expected", "ordinals"),
    [
        (nat(5), Skip(5), [5, 10, 15, 20]),
        (array(nat(5)), Skip(5), [5, 10, 15, 20]),
        (array(nat(5), nat(2)), Skip(5, 2), [2, 7, 12, 17]),
        (array(nat(5), nat(12)), Skip(5, 12), [2, 7, 12, 17]),  # an offset counts by its remainder
        (nat(1), Skip(1), list(range(1, 21))),
        (nat(1 << 80), Skip(1 << 80), []),
    ],
)
def test_a_skip_selects(value: Icrc16, expected: Skip, ordinals: list[int]) -> None:
    skip = skip_of(value)
    assert skip == expected
    assert [ordinal for ordinal in range(1, 21) if skip.selects(ordinal)] == ordinals


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (nat(0), "a divisor of at least 1, got 0"),
        (array(nat(0), nat(1)), "a divisor of at least 1, got 0"),
        (array(), r"got Array\[\]"),
        (array(nat(1), nat(2), nat(3)), r"got Array\[Nat, Nat, Nat\]"),
        (array(*[nat(1)] * 9), r"got Array\[Nat, Nat, Nat, \.\.\.\]"),
        (array(nat(5), option(nat(1))), r"got Array\[Nat, Option\]"),
        (text("5"), "got Text"),
        (Icrc16(Tag.NAT8, 5), "got Nat8"),
        (Icrc16(Tag.NATS, (5, 2)), "got Nats"),
    ],
)
def test_another_form_is_refused(value: Icrc16, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^skip: expected .*{reason}$"):
        skip_of(value)


def test_an_offset_is_natural() -> None:
    with pytest.raises(ValueError, match="natural number as offset, got -1"):
        Skip(5, -1)


@given(st.integers(1, 60), st.integers(0, 1_000))
def test_skips_with_all_offsets_divide_the_events(mod: int, first: int) -> None:
    skips = [Skip(mod, first + offset) for offset in range(mod)]
    for ordinal in range(1, 200):
        assert sum(skip.selects(ordinal) for skip in skips) == 1


@given(*[st.builds(Skip, st.integers(1, 4), st.integers(0, 9))] * 2)
def test_skips_agree_that_select_the_same(left: Skip, right: Skip) -> None:
    same = all(left.selects(ordinal) == right.selects(ordinal) for ordinal in range(1, 30))
    assert left.agrees_with(right) == same
