"""Payload of clients comes back equal, and any data becomes a payload."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.icrc16 import DEEPEST, NOTHING, Icrc16, Property, Tag, array, blob, map_of, nat, text
from relaycast_gateway.record import EVERYBODY, EventRecord, Headers
from relaycast_gateway.wamp.errors import WampError
from relaycast_gateway.wamp.messages import EventMessage
from relaycast_gateway.wamp.payload import data_of, payload_of

numbers = st.integers(-(1 << 63), (1 << 64) - 1)
plain = st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | st.text(max_size=5) | st.binary(max_size=5)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
arguments = st.none() | st.binary(max_size=6) | st.lists(values, max_size=4)
keywords = st.none() | st.dictionaries(st.text(max_size=4) | st.sampled_from(["args", "kwargs"]), values, max_size=4)

leaves = st.one_of(
    st.text(max_size=3).map(text),
    st.integers(0, 1 << 70).map(nat),
    st.integers(-(1 << 70), 1 << 70).map(lambda it: Icrc16(Tag.INT, it)),
    st.binary(max_size=40).map(lambda it: Icrc16(Tag.PRINCIPAL, it)),
    st.binary(max_size=3).map(blob),
    st.binary(max_size=3).map(lambda it: Icrc16(Tag.BYTES, it)),
    st.booleans().map(lambda it: Icrc16(Tag.BOOL, it)),
    st.floats().map(lambda it: Icrc16(Tag.FLOAT, it)),
    st.lists(st.integers(0, 1 << 70), max_size=3).map(lambda it: Icrc16(Tag.NATS, tuple(it))),
    st.lists(st.floats(), max_size=3).map(lambda it: Icrc16(Tag.FLOATS, tuple(it))),
    st.sampled_from([Icrc16(Tag(f"{sign}{bits}"), 7) for sign in ("Nat", "Int") for bits in (8, 16, 32, 64)]),
    st.just(NOTHING),
)


def _inside(inner: st.SearchStrategy[Icrc16]) -> st.SearchStrategy[Icrc16]:
    several = st.lists(inner, max_size=3).map(tuple)
    names = st.sampled_from(["args", "kwargs", "a"])
    return st.one_of(
        several.map(lambda it: Icrc16(Tag.ARRAY, it)),
        several.map(lambda it: Icrc16(Tag.SET, it)),
        inner.map(lambda it: Icrc16(Tag.OPTION, it)),
        st.lists(st.tuples(names, inner), max_size=3).map(lambda it: Icrc16(Tag.MAP, tuple(it))),
        st.lists(st.tuples(inner, inner), max_size=3).map(lambda it: Icrc16(Tag.VALUE_MAP, tuple(it))),
        st.lists(st.builds(Property, names, inner, st.booleans()), max_size=3).map(
            lambda it: Icrc16(Tag.CLASS, tuple(it))
        ),
    )


trees = st.recursive(leaves, _inside, max_leaves=8)


def stored(data: Icrc16, headers: Headers = ()) -> EventRecord:
    return EventRecord(1, 1, None, 1, 0, 0, "a.b", b"", None, data, headers, EVERYBODY)


def wire(args: Any, kwargs: Any) -> list[Any]:
    return EventMessage(1, 2, {}, args, kwargs).to_wire()


@pytest.mark.matrix("WAMP-36")
@given(arguments, keywords)
def test_what_a_client_published_comes_back_equal(args: Any, kwargs: Any) -> None:
    if isinstance(args, bytes):
        kwargs = None
    data, headers = data_of(args, kwargs)
    assert wire(*payload_of(stored(data, headers))) == wire(args, kwargs)


@given(trees, st.sampled_from(["args+kwargs", "args+empty", "bytes", "other", ""]))
def test_any_data_becomes_a_payload_that_serializers_take(data: Icrc16, mark: str) -> None:
    args, kwargs = payload_of(stored(data, (("wamp:payload", text(mark)),) if mark else ()))
    assert args is None or isinstance(args, list | bytes)
    assert kwargs is None or all(isinstance(name, str) for name in kwargs)
    msgspec.msgpack.encode(wire(args, kwargs))
    msgspec.json.encode(wire(args, kwargs))


@pytest.mark.parametrize(
    ("data", "args", "kwargs"),
    [
        (NOTHING, None, None),
        (nat(7), [7], None),  # one value is one argument
        (array(nat(7), text("x")), [7, "x"], None),
        (map_of({"a": nat(7)}), None, {"a": 7}),
        (Icrc16(Tag.MAP, (("a", nat(1)), ("a", nat(2)))), [[["a", 1], ["a", 2]]], None),  # a dict would lose one
        (nat(1 << 64), [str(1 << 64)], None),  # no serializer has it as a number
        (Icrc16(Tag.PRINCIPAL, b"\x04"), ["2vxsx-fae"], None),
        (Icrc16(Tag.OPTION, NOTHING), [None], None),
        (Icrc16(Tag.CLASS, (Property("a", nat(1), True),)), [{"a": 1}], None),
        (Icrc16(Tag.VALUE_MAP, ((nat(1), text("x")),)), [[[1, "x"]]], None),
        (map_of({"args": array(nat(1)), "kwargs": map_of({})}), None, {"args": [1], "kwargs": {}}),
    ],
)
def test_data_from_elsewhere_is_read_by_its_form(data: Icrc16, args: Any, kwargs: Any) -> None:
    assert payload_of(stored(data)) == (args, kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs", "data"),
    [
        (None, None, NOTHING),
        ([], None, array()),
        ([1, -1, None], None, array(nat(1), Icrc16(Tag.INT, -1), NOTHING)),
        ([], {"a": b"\x00"}, map_of({"a": blob(b"\x00")})),
        ([1], {"a": 2}, map_of({"args": array(nat(1)), "kwargs": map_of({"a": nat(2)})})),
        ([1], {}, array(nat(1))),
        (b"\x01", None, blob(b"\x01")),
    ],
)
def test_payload_has_one_form_as_data(args: Any, kwargs: Any, data: Icrc16) -> None:
    assert data_of(args, kwargs)[0] == data


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_values_nest_up_to_64_deep() -> None:
    data_of(_nested(DEEPEST), None)
    with pytest.raises(WampError, match="at most 64 deep"):
        data_of(_nested(DEEPEST + 1), None)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (1 << 64, "expected whole numbers of 64 bits, got one of 65"),
        (-(1 << 63) - 1, "expected whole numbers of 64 bits, got one of 64"),
        ({1: 2}, "expected texts as keys, got int"),
        ({"a": {b"": 2}}, "expected texts as keys, got bytes"),
        (frozenset(), "expected values that JSON has, or bytes, got frozenset"),
    ],
)
def test_what_no_event_can_hold_is_refused(value: Any, says: str) -> None:
    with pytest.raises(WampError, match=f"wamp.error.invalid_argument: payload: {says}"):
        data_of([[value]], None)


def test_bytes_of_a_serializer_stand_alone() -> None:
    with pytest.raises(WampError, match="expected no kwargs beside the bytes"):
        data_of(b"\x01", {"a": 1})
    assert data_of(b"\x01", {}) == data_of(b"\x01", None)
