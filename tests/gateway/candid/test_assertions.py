"""The official assertions about what decodes and to what, and a selection of our own that stands alone."""

import json
from typing import Any

import pytest

from relaycast_gateway.candid import CandidError, Present, Variant, decode, encode, format_values, parse_values
from shared_vectors import shared

LIST = "type List = opt record { head : int; tail : List };\n"
EMPTY = "type E = record { E };\n"

OURS: list[tuple[str, str, list[Any]]] = [
    # the bytes of a message, the types it is read at, the values
    ("4449444c0000", "()", []),
    ("4449444c00017d00", "()", []),  # a further argument
    ("4449444c0000", "(opt nat, null, reserved)", [None, None, None]),  # missing arguments
    ("4449444c00037c7d7ee58e2681800001", "(int, nat, bool)", [624485, 1, True]),  # overlong LEB128
    ("4449444c00027b750cfeffffff", "(nat8, int32)", [12, -2]),
    ("4449444c000272730000000000000cc00000003f", "(float64, float32)", [-3.5, 0.5]),
    ("4449444c00017103e29883", "(text)", ["☃"]),
    ("4449444c016d7b010003616263", "(blob)", [b"abc"]),
    ("4449444c016d790100020100000002000000", "(vec nat32)", [[1, 2]]),
    ("4449444c016e7d01000105", "(opt nat)", [5]),
    ("4449444c016e7d01000105", "(opt int)", [5]),
    ("4449444c016e7d01000105", "(opt bool)", [None]),  # what does not fit below an opt is null
    ("4449444c00017d05", "(opt opt nat)", [Present(5)]),  # a value where an opt is asked for
    ("4449444c016e7f010001", "(opt null)", [Present(None)]),
    ("4449444c016e70010001", "(opt reserved)", [Present(None)]),
    ("4449444c016c01017c01002a", "(record {1 : int; 2 : opt text})", [{1: 42, 2: None}]),
    ("4449444c016c02007c017e01002a01", "(record {1 : bool})", [{1: True}]),  # a field is skipped
    ("4449444c016c02007c017e01002a01", "(record {opt bool})", [{0: None}]),
    ("4449444c016b02b3d3c9017fe6fdd5017f010000", "(variant {Foo; Bar})", [Variant("Bar")]),
    ("4449444c016b02b3d3c9017fe6fdd5017f010000", "(opt variant {Foo})", [None]),  # an unknown case
    (
        "4449444c026e016c02a0d2aca8047c90eddae7040001000101010200",
        LIST + "(List)",
        [{"head": 1, "tail": {"head": 2, "tail": None}}],
    ),
    ("4449444c01670341424302007e050068656c6c6f01", "(opt empty, bool)", [None, True]),  # a future type
]

REFUSED: list[tuple[str, str]] = [
    ("", "()"),
    ("4449444d0000", "()"),
    ("4449444c000000", "()"),  # bytes behind the arguments
    ("4449444c0000", "(nat)"),  # a missing argument
    ("4449444c00015e", "()"),  # an unknown primitive type
    ("4449444c000100", "()"),  # no such entry of the table
    ("4449444c017d00", "()"),  # a primitive type in the table
    ("4449444c00017d80", "(nat)"),  # a number without an end
    ("4449444c00017e02", "(bool)"),
    ("4449444c00017e02", "(reserved)"),  # what is skipped is checked
    ("4449444c00017102ff00", "(reserved)"),
    ("4449444c016e7d010002", "(opt nat)"),
    ("4449444c016c02017c007e01002a01", "(reserved)"),  # unsorted fields
    ("4449444c016c02007c007e01002a01", "(reserved)"),  # a field twice
    ("4449444c016c0180808080107c01002a", "(reserved)"),  # a number of 2^32
    ("4449444c016b01007f010001", "(reserved)"),  # no such case
    ("4449444c016b01007f010000", "(variant {1})"),
    ("4449444c016c01007c01002a", "(record {1 : int})"),
    ("4449444c016c0100000100", EMPTY + "(E)"),  # a value without an end
    ("4449444c016c0100000100", EMPTY + "(opt E)"),
    ("4449444c00017003", "(nat)"),
    ("4449444c00016f", "(opt nat)"),  # a value of the type empty
    ("4449444c000168011e" + "00" * 30, "(principal)"),  # 30 bytes
    ("4449444c00016800", "(principal)"),  # an opaque reference
    ("4449444c0169020162010161010000", "()"),  # unsorted methods
    ("4449444c016a0000010400", "()"),  # an unknown annotation
]


@pytest.mark.parametrize(("message", "types", "values"), OURS)
def test_a_message_is_read(message: str, types: str, values: list[Any]) -> None:
    assert decode(bytes.fromhex(message), types) == values
    assert decode(encode(types, values), types) == values
    assert parse_values(format_values(values, types), types) == values


@pytest.mark.parametrize(("message", "types"), REFUSED)
def test_a_message_is_refused(message: str, types: str) -> None:
    with pytest.raises(CandidError) as refusal:
        decode(bytes.fromhex(message), types)
    assert str(refusal.value).startswith("byte ")


def official(name: str) -> list[dict[str, Any]]:
    found = json.loads(shared("vectors/candid/assertions.json").read_text())
    cases: list[dict[str, Any]] = [case for case in found["cases"] if case["file"] == name]
    head = "\n".join(found["definitions"].get(name, []))
    return [{**case, "types": f"{head}\n{case['types']}"} for case in cases]


def read(form: dict[str, str], types: str) -> list[Any]:
    return decode(bytes.fromhex(form["blob"]), types) if "blob" in form else parse_values(form["text"], types)


@pytest.mark.matrix("ICRC72-96")
@pytest.mark.parametrize(
    ("name", "count"),
    [("prim", 112), ("construct", 109), ("reference", 33), ("subtypes", 39), ("spacebomb", 11), ("overshoot", 7)],
)
def test_every_official_assertion_holds(name: str, count: int) -> None:
    cases = official(name)
    assert len(cases) == count
    for case in cases:
        types, says = case["types"], case["says"]
        if case["kind"] == "rejects":
            with pytest.raises(CandidError):
                pytest.fail(f"{says}: read as {read(case['input'], types)}")
            continue
        values = read(case["input"], types)
        if case["kind"] != "accepts":
            assert (values == read(case["other"], types)) == (case["kind"] == "equal"), says
        if "NaN" not in says:
            assert decode(encode(types, values), types) == values, says
            assert parse_values(format_values(values, types), types) == values, says
