"""ICRC-16 values and JSON: both ways without loss."""

import json

import pytest
from hypothesis import example, given

from icrc16_values import values
from relaycast_gateway.icrc16 import (
    NOTHING,
    Icrc16,
    Tag,
    array,
    blob,
    from_json,
    map_of,
    nat,
    text,
    to_json,
)


@given(values)
@example(Icrc16(Tag.OPTION, NOTHING))
def test_a_value_comes_back_from_its_json(value: Icrc16) -> None:
    assert from_json(json.loads(json.dumps(to_json(value)))) == value


@given(values)
@example(Icrc16(Tag.OPTION, NOTHING))
def test_values_of_one_json_are_one_value(value: Icrc16) -> None:
    assert to_json(from_json(to_json(value))) == to_json(value)


def test_what_most_events_hold_reads_like_any_json() -> None:
    value = map_of({"publisher": nat(2000), "key": blob(b"\xab"), "tags": array(text("a")), "ttl": NOTHING})
    assert to_json(value) == {"publisher": 2000, "key": "0xab", "tags": ["a"], "ttl": None}


@pytest.mark.parametrize(
    ("given_json", "reason"),
    [
        ({"$Nat8": 256}, "expected 0 to 255"),
        ({"$Nat": -1}, "expected 0 to any"),
        ({"$Nat8": True}, "expected a whole number"),
        ({"$Nat8": 1, "a": 2}, "alone"),
        ({"$Other": 1}, "one tag of ICRC-16"),
        ({"$Blob": "00"}, "hex digits after 0x"),
        ({"$Map": [["a"]]}, "not enough values"),
        ({"$Map": "ab"}, "expected an array"),
        ({"$Class": [{"name": "a"}]}, "content of Class"),
        ({"$Text": 5}, "content of Text"),
        ({"$Float": "x"}, "float"),
        (float("nan"), "number of JSON"),
        (object(), "expected JSON"),
    ],
)
def test_json_that_stands_for_no_value_is_refused(given_json: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_json(given_json)


def test_values_nest_64_deep_and_no_deeper() -> None:
    value: list[object] = []
    for _ in range(63):
        value = [value]
    assert from_json(value).tag is Tag.ARRAY
    with pytest.raises(ValueError, match="at most 64 deep"):
        from_json([value])
