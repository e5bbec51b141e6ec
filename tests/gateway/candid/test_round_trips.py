"""Any value of any type comes back from its message and from its text; a supertype reads what it asks for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.candid.candid_shapes import Shape, shapes
from relaycast_gateway.candid import CandidError, FuncReference, Principal, decode, encode, format_values, parse_values
from relaycast_gateway.candid.type_graph import DEEPEST
from searches import examples


@settings(max_examples=examples(200))
@given(st.lists(shapes, max_size=3), st.data())
def test_values_come_back_from_their_message_and_their_text(drawn: list[Shape], data: st.DataObject) -> None:
    types = f"({', '.join(shape.text for shape in drawn)})"
    values = [data.draw(shape.values) for shape in drawn]
    message = encode(types, values)
    assert decode(message, types) == values
    assert encode(types, decode(message, types)) == message
    assert parse_values(format_values(values, types), types) == values


@settings(max_examples=examples(200))
@given(st.lists(shapes, max_size=3), st.data())
def test_a_supertype_reads_what_it_asks_for(drawn: list[Shape], data: st.DataObject) -> None:
    values = [data.draw(shape.values) for shape in drawn]
    message = encode(f"({', '.join(shape.text for shape in drawn)})", values)
    asked = [*(shape.above for shape in drawn), "opt nat"]
    expected = [shape.read(value) for shape, value in zip(drawn, values, strict=True)]
    assert decode(message, f"({', '.join(asked)})") == [*expected, None]
    assert decode(message, "()") == []
    assert decode(message, f"({', '.join(['reserved'] * len(drawn))})") == [None] * len(drawn)


def test_functions_that_cannot_be_compared_are_refused_each_time() -> None:
    deep = " ".join(f"type T{at} = record {{ T{at + 1} }};" for at in range(2 * DEEPEST))
    given, asked = (f"{deep} type T{2 * DEEPEST} = {end}; (func () -> (T0))" for end in ("nat", "text"))
    message = encode(given, [FuncReference(Principal(b""), "f")])
    for _ in range(2):
        with pytest.raises(CandidError, match=f"types to compare nest more than {DEEPEST} deep"):
            decode(message, asked)


def test_a_number_of_a_million_digits_comes_back() -> None:
    number = 1 << 3_000_000
    (found,) = decode(encode("(int)", [-number]), "(int)")
    assert found == -number
