"""ICRC-16 values and JSON: both ways without loss."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.icrc16 import (
    NOTHING,
    WHOLE_NUMBERS,
    Icrc16,
    Property,
    Tag,
    array,
    blob,
    from_json,
    map_of,
    nat,
    text,
    to_json,
)

finite = st.floats(allow_nan=False)
of_bytes = st.sampled_from([Tag.BLOB, Tag.BYTES, Tag.PRINCIPAL])


def whole(tag: Tag) -> st.SearchStrategy[Icrc16]:
    least, most = WHOLE_NUMBERS[tag]
    return st.integers(least, most).map(lambda number: Icrc16(tag, number))


leaves = st.one_of(
    st.text(max_size=8).map(text),
    st.sampled_from(["0x", "0x00", "0x0", "0xAB"]).map(text),
    st.builds(Icrc16, of_bytes, st.binary(max_size=8)),
    st.booleans().map(lambda value: Icrc16(Tag.BOOL, value)),
    finite.map(lambda value: Icrc16(Tag.FLOAT, value)),
    st.lists(finite, max_size=3).map(lambda values: Icrc16(Tag.FLOATS, tuple(values))),
    st.lists(st.integers(0, 1 << 80), max_size=3).map(lambda values: Icrc16(Tag.NATS, tuple(values))),
    st.just(NOTHING),
    *(whole(tag) for tag in WHOLE_NUMBERS),
)
names = st.sampled_from(["a", "b", "$Nat", "", "$"])


def nested(inner: st.SearchStrategy[Icrc16]) -> st.SearchStrategy[Icrc16]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda values: Icrc16(Tag.ARRAY, values)),
        several.map(lambda values: Icrc16(Tag.SET, values)),
        inner.map(lambda value: Icrc16(Tag.OPTION, value)),
        st.lists(st.tuples(names, inner), max_size=3).map(lambda it: Icrc16(Tag.MAP, tuple(it))),
        st.lists(st.tuples(inner, inner), max_size=2).map(lambda it: Icrc16(Tag.VALUE_MAP, tuple(it))),
        st.lists(st.builds(Property, names, inner, st.booleans()), max_size=2).map(
            lambda it: Icrc16(Tag.CLASS, tuple(it))
        ),
    )


values = st.recursive(leaves, nested, max_leaves=12)


@given(values)
def test_a_value_comes_back_from_its_json(value: Icrc16) -> None:
    assert from_json(json.loads(json.dumps(to_json(value)))) == value


@given(values)
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
