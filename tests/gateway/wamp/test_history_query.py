"""The arguments of ``get_events``: what is taken, and what is refused by name."""

from typing import Any

import pytest

from relaycast_gateway.clock import SECOND
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, INVALID_URI, WampError
from relaycast_gateway.wamp.history import HistoryQuery

MOMENT = 1_770_000_000 * SECOND


def refusal(args: Any, kwargs: Any) -> tuple[str, str]:
    with pytest.raises(WampError) as caught:
        HistoryQuery.of(args, kwargs)
    (said,) = caught.value.arguments
    return caught.value.uri, said


def test_all_arguments_are_read() -> None:
    given = {
        "reverse": True,
        "limit": 7,
        "from_time": "2026-02-02T02:40:00Z",
        "after_time": "2026-02-02T04:40:00.5+02:00",
        "before_time": "2026-02-02t02:40:00.000000001z",
        "until_time": "2026-02-01T21:40:00.123456789-05:00",
        "topic": "com.a",
        "from_publication": 1,
        "after_publication": 1 << 53,
        "before_publication": 3,
        "until_publication": 4,
    }
    assert HistoryQuery.of([9], given) == HistoryQuery(
        9, True, 7, MOMENT, MOMENT + SECOND // 2, MOMENT + 1, MOMENT + 123_456_789, "com.a", 1, 1 << 53, 3, 4
    )
    assert HistoryQuery.of([9], None) == HistoryQuery.of((9,), {}) == HistoryQuery(9)


@pytest.mark.matrix("WAMP-18", "WAMP-71")
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *[("limit", value, "a whole number from 1 on") for value in (0, -1, "x", 1.5, True, None, [1])],
        *[("reverse", value, "true or false") for value in (1, 0, "true", None)],
        *[("topic", value, "a URI") for value in (5, None, b"com.a", ["com.a"])],
        *[
            (f"{which}_publication", value, "an id from 1 to 2^53")
            for which in ("from", "after", "before", "until")
            for value in (0, -1, (1 << 53) + 1, True, "5", 5.5, None)
        ],
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(name: str, value: object, expected: str) -> None:
    assert refusal([1], {name: value}) == (INVALID_ARGUMENT, f"{name}: expected {expected}, got {value!r}")


@pytest.mark.matrix("WAMP-24")
@pytest.mark.parametrize("name", ["from_time", "after_time", "before_time", "until_time"])
@pytest.mark.parametrize(
    "value",
    [
        "2026-01-31T12:00:00",  # no offset
        "2026-01-31",
        "2026-13-01T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2016-12-31T23:59:61Z",
        "2026-01-31 12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+24:00",
        "",
        1_770_000_000,
        None,
    ],
)
def test_a_time_that_is_malformed_is_refused_by_name(name: str, value: object) -> None:
    uri, said = refusal([1], {name: value})
    assert (uri, said.partition(",")[0]) == (INVALID_ARGUMENT, f"{name}: expected an RFC 3339 time with an offset")
    assert said.endswith(f"got {value!r}")


@pytest.mark.matrix("WAMP-35")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (None, "expected one positional argument, the subscription's id, got 0"),
        ([], "expected one positional argument, the subscription's id, got 0"),
        ([1, 2], "expected one positional argument, the subscription's id, got 2"),
        (["com.a"], "subscription: expected an id from 1 to 2^53, got 'com.a'"),
        ([0], "subscription: expected an id from 1 to 2^53, got 0"),
        ([1.5], "subscription: expected an id from 1 to 2^53, got 1.5"),
        ([True], "subscription: expected an id from 1 to 2^53, got True"),
        ([None], "subscription: expected an id from 1 to 2^53, got None"),
    ],
)
def test_a_subscription_is_named_by_its_id(args: Any, said: str) -> None:
    assert refusal(args, {}) == (INVALID_ARGUMENT, said)


@pytest.mark.matrix("WAMP-35")
def test_an_unknown_argument_is_refused() -> None:
    uri, said = refusal([1], {"limit": 5, "from": 1})
    assert (uri, said[:44]) == (INVALID_ARGUMENT, "'from': no such argument, expected some of r")


@pytest.mark.matrix("WAMP-26")
@pytest.mark.parametrize("topic", ["", "com..a", "com.a.", ".com", "com a", "com.#"])
def test_a_topic_that_is_no_uri_is_refused(topic: str) -> None:
    uri, said = refusal([1], {"topic": topic})
    assert (uri, said) == (INVALID_URI, f"topic: expected a URI without empty components, got {topic!r}")


def test_an_error_repeats_little_of_a_long_value() -> None:
    assert len(refusal([1], {"from_time": "x" * 100_000})[1]) < 200
    assert len(refusal([1], {"x" * 100_000: 1})[1]) < 300


@pytest.mark.matrix("WAMP-25")
def test_times_are_compared_as_they_are_told() -> None:
    moment = MOMENT + 123_456_789
    told = MOMENT + 123_000_000
    for query, expected in (
        (HistoryQuery(1, from_time=told), True),
        (HistoryQuery(1, after_time=told), False),
        (HistoryQuery(1, before_time=told), False),
        (HistoryQuery(1, until_time=told), True),
        (HistoryQuery(1, from_time=told + 1), False),
        (HistoryQuery(1, before_time=told + 1), True),
    ):
        first, end = query.received_within(3)
        assert (first <= moment < end) == expected
