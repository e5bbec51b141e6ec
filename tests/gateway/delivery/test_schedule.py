"""When a message is tried again."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.clock import SECOND
from relaycast_gateway.delivery.order import RetryPolicy
from relaycast_gateway.delivery.schedule import given_up, longest_wait, retry_after_seconds, wait_seconds

WEEK = 7 * 86_400.0
NOW_NS = 784_111_777 * SECOND  # Sun, 06 Nov 1994 08:49:37 GMT


def test_the_longest_wait_doubles_up_to_a_bound() -> None:
    policy = RetryPolicy(first_seconds=0.5, longest_seconds=10.0)
    assert [longest_wait(policy, attempts) for attempts in (1, 2, 3, 4, 5, 6, 10_000)] == [0.5, 1, 2, 4, 8, 10, 10]


@pytest.mark.matrix("CE-105")
@given(st.integers(1, 1_000), st.integers(0, 2**32), st.floats(0.001, 60), st.floats(0.001, 3_600))
def test_a_wait_is_drawn_between_nothing_and_the_longest(
    attempts: int, seed: int, first: float, longest: float
) -> None:
    policy = RetryPolicy(first_seconds=first, longest_seconds=longest)
    wait = wait_seconds(policy, attempts, Random(seed))
    assert 0 <= wait <= min(longest, first * 2.0 ** min(attempts - 1, 60))


@pytest.mark.matrix("CE-105")
def test_waits_fill_the_whole_range_from_nothing_on() -> None:
    dice = Random(1)
    waits = [wait_seconds(RetryPolicy(), 4, dice) for _ in range(2_000)]
    assert 0 <= min(waits) < 0.1
    assert 7.9 < max(waits) <= 8
    assert 3.8 < sum(waits) / len(waits) < 4.2


@pytest.mark.matrix("CE-111")
@pytest.mark.parametrize(
    ("asked", "wait"), [(0, 0), (7, 7), (301, 301), (WEEK, WEEK), (WEEK + 1, WEEK), (1e30, WEEK), (-5, 0)]
)
def test_a_peer_s_own_wait_counts_in_full_up_to_seven_days(asked: float, wait: float) -> None:
    assert wait_seconds(RetryPolicy(longest_seconds=300), 1, Random(0), retry_after=asked) == wait


@pytest.mark.matrix("CE-61")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("604800", WEEK),
        ("0000000000000000604800", WEEK),
        ("Sun, 13 Nov 1994 08:49:37 GMT", WEEK),
        ("604801", WEEK),  # beyond seven days, seven days
        ("Sun, 13 Nov 1994 08:49:38 GMT", WEEK),
        ("Fri, 31 Dec 9999 23:59:59 GMT", WEEK),
        ("1" * 400, WEEK),
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30.0),  # the form that HTTP prefers
        ("Sunday, 06-Nov-94 08:50:07 GMT", 30.0),  # RFC 850
        ("Sun Nov  6 08:50:07 1994", 30.0),  # asctime
        ("Sun, 06 Nov 1994 08:49:07 GMT", 0.0),  # over
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),  # a digit, not of ASCII
        ("Sun, 99 Nov 1994 08:50:07 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(text: str, seconds: float | None) -> None:
    assert retry_after_seconds(text, now_ns=NOW_NS) == seconds


@given(st.text(max_size=40))
def test_retry_after_never_raises(text: str) -> None:
    seconds = retry_after_seconds(text, now_ns=NOW_NS)
    assert seconds is None or seconds >= 0


@pytest.mark.matrix("CE-105")
@pytest.mark.matrix("CE-111")
@pytest.mark.parametrize(
    ("attempts", "age", "wait", "reason"),
    [
        (1, 0.0, 1.0, None),
        (9, 50.0, 50.0, None),  # the last moment is in time
        (9, 50.1, 50.0, "more than 100 s after the first"),
        (10, 0.0, 0.0, "after 10 attempts"),
        (2, -1_000.0, 99.0, None),  # the clock was set back
        (2, -1_000.0, 101.0, "more than 100 s"),
    ],
)
def test_a_message_is_given_up_by_attempts_and_by_age(
    attempts: int, age: float, wait: float, reason: str | None
) -> None:
    found = given_up(RetryPolicy(attempts=10, max_age_seconds=100), attempts, age_seconds=age, wait=wait)
    assert (found is None) if reason is None else (found is not None and reason in found)
