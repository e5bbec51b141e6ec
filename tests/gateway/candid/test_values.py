"""Python values as Candid: what each type takes, and a refusal that names the path to what it does not."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from relaycast_gateway.candid import (
    CandidError,
    FuncReference,
    Present,
    Principal,
    Variant,
    decode,
    encode,
    format_values,
    parse_types,
    parse_values,
)
from relaycast_gateway.candid.type_graph import DEEPEST

SERVICE = Principal(bytes.fromhex("caffee"))

WRITTEN: list[tuple[str, Any, str]] = [
    # a type, a value, its text
    ("nat", 1 << 70, "1180591620717411303424"),
    ("int8", -128, "-128"),
    ("float64", 1e300, "1e+300"),
    ("float32", 0.5, "0.5"),
    ("float64", -math.inf, "-inf"),
    ("bool", True, "true"),
    ("null", None, "null"),
    ("reserved", None, "null"),
    ("text", 'a"\\\n☃', '"a\\u{22}\\u{5c}\\u{a}☃"'),
    ("blob", b"a\xff", 'blob "\\61\\ff"'),
    ("vec nat16", [1, 65535], "vec { 1; 65535 }"),
    ("opt nat", None, "null"),
    ("opt nat", 1, "opt 1"),
    ("opt opt null", Present(Present(None)), "opt opt null"),
    ("record { nat; bool }", {0: 1, 1: False}, "record { 0 = 1; 1 = false }"),
    ('record { "a b" : nat; c : opt nat }', {"a b": 1, "c": None}, 'record { "a b" = 1; c = null }'),
    ("variant { a; b : nat }", Variant("b", 2), "variant { b = 2 }"),
    ("variant { a; 7 : nat }", Variant("a"), "variant { a }"),
    ('variant { "true"; "false" }', Variant("true"), 'variant { "true" }'),
    ('record { "vec" : nat; "false" : nat }', {"vec": 1, "false": 2}, 'record { "vec" = 1; "false" = 2 }'),
    ("principal", Principal(b""), 'principal "aaaaa-aa"'),
    ("service {}", SERVICE, 'service "w7x7r-cok77-xa"'),
    ("func () -> ()", FuncReference(SERVICE, "f"), 'func "w7x7r-cok77-xa"."f"'),
]


@pytest.mark.parametrize(("of", "value", "text"), WRITTEN, ids=range(len(WRITTEN)))
def test_a_value_is_written_and_comes_back(of: str, value: Any, text: str) -> None:
    types = f"({of})"
    (found,) = decode(encode(types, [value]), types)
    assert found == value
    assert type(found) is type(value)
    assert format_values([value], types) == f"({text})"
    assert parse_values(f"({text})", types) == [value]


@pytest.mark.parametrize(
    ("of", "value", "found"),
    [
        ("float64", 3, 3.0),
        ("record { nat; opt text }", (1, None), {0: 1, 1: None}),
        (
            "record { a : nat; b : opt text; c : null; d : reserved }",
            {"a": 1},
            {"a": 1, "b": None, "c": None, "d": None},
        ),
        ("reserved", object(), None),
        ("blob", [1, 2], b"\1\2"),
        ("blob", bytearray(b"a"), b"a"),
        ("vec text", ("a",), ["a"]),
    ],
)
def test_other_forms_are_taken(of: str, value: Any, found: Any) -> None:
    assert decode(encode(f"({of})", [value]), f"({of})") == [found]


NESTED = "(record { list : vec record { of : variant { a : nat } } })"

REFUSED: list[tuple[str, list[Any], str]] = [
    ("(nat)", [], "expected 1 arguments, got 0"),
    ("(nat)", [-1], "argument 0: expected a natural number, got a negative one"),
    ("(nat)", [True], "argument 0: expected a natural number, got bool"),
    ("(null, int)", [None, 1.0], "argument 1: expected an integer, got float"),
    ("(nat8)", [256], "argument 0: the number is out of the range of nat8"),
    ("(float32)", [1e39], "argument 0: the number is out of the range of float32"),
    ("(bool)", [1], "argument 0: expected a bool, got int"),
    ("(null)", [0], "argument 0: expected None, got int"),
    ("(empty)", [None], "argument 0: there is no value of the type empty"),
    ("(text)", [b"a"], "argument 0: expected a text, got bytes"),
    ("(text)", ["\ud800"], "argument 0: a text holds a lone surrogate"),
    ("(blob)", ["a"], "argument 0: expected bytes, got str"),
    ("(blob)", [[0, 256]], "argument 0[1]: expected an integer from 0 to 255"),
    ("(vec nat)", ["a"], "argument 0: expected a list, got str"),
    ("(vec nat)", [[1, -1]], "argument 0[1]: expected a natural number, got a negative one"),
    ("(vec int8)", [[1, 300]], "argument 0[1]: the number is out of the range of int8"),
    ("(opt opt nat)", [1], "argument 0: expected None or Present(...), got int"),
    ("(record { a : nat })", [{}], "argument 0.a: the field is missing"),
    ("(record { a : nat })", [{"a": 1, "b": 2}], "argument 0: unknown field 'b'"),
    ("(record { a : nat })", [(1,)], "argument 0: expected a dict, got tuple"),
    ("(variant { a })", [Variant("b")], "argument 0: unknown case 'b'"),
    ("(variant { a })", ["a"], "argument 0: expected a Variant, got str"),
    ("(principal)", [b"a"], "argument 0: expected a Principal, got bytes"),
    ("(func () -> ())", [SERVICE], "argument 0: expected a FuncReference, got Principal"),
    (
        NESTED,
        [{"list": [{"of": Variant("a", 1)}, {"of": Variant("a", "x")}]}],
        "argument 0.list[1].of.a: expected a natural number, got str",
    ),
]


@pytest.mark.parametrize(("types", "values", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_a_value_is_refused_at_its_path(types: str, values: list[Any], reason: str) -> None:
    with pytest.raises(CandidError) as refusal:
        encode(types, values)
    assert str(refusal.value) == reason
    with pytest.raises(CandidError):
        format_values(values, types)


def test_what_nests_too_deep_is_refused_both_ways() -> None:
    types = "type Deep = opt Deep; (Deep)"
    deep: Any = None
    for _ in range(DEEPEST):
        deep = Present(deep)
    assert decode(encode(types, [deep]), types) == [deep]
    with pytest.raises(CandidError, match="nest at most"):
        encode(types, [Present(deep)])
    message = encode(types, [None])[:-1]
    with pytest.raises(CandidError, match="nest at most"):
        decode(message + b"\1" * (DEEPEST + 1) + b"\0", types)
    with pytest.raises(CandidError, match="nest at most"):
        decode(message + b"\1" * 100_000 + b"\0", "()")


@pytest.mark.parametrize(
    ("types", "bottom", "around"),
    [
        ("type Deep = vec Deep; (Deep)", [], lambda value: [value]),
        ("type Deep = record { opt Deep }; (Deep)", {0: None}, lambda value: {0: value}),
        ("type Deep = variant { end; on : Deep }; (Deep)", Variant("end"), lambda value: Variant("on", value)),
    ],
)
def test_every_composite_nests_deep(types: str, bottom: Any, around: Callable[[Any], Any]) -> None:
    deep = bottom
    for _ in range(DEEPEST // 2 - 1):
        deep = around(deep)
    assert decode(encode(types, [deep]), types) == [deep]
    assert decode(encode(types, [deep]), "()") == []
    assert parse_values(format_values([deep], types), types) == [deep]
    for _ in range(DEEPEST):
        deep = around(deep)
    with pytest.raises(CandidError, match="nest at most"):
        encode(types, [deep])


@pytest.mark.parametrize("count", [DEEPEST - 10, DEEPEST + 10, 5_000])
def test_texts_that_nest_deep_are_read_or_refused(count: int) -> None:
    for text, types in (("vec {", "vec "), ("record {", "vec "), ("opt (", "record { a : opt ")):
        close = ")" if "(" in text else "}"
        for call in (
            lambda text=text, close=close: parse_values(f"({text * count}1{close * count})", "(reserved)"),
            lambda types=types: parse_types(f"({types * count}nat{' }' * count if 'record' in types else ''})"),
        ):
            try:
                call()
            except CandidError as error:
                assert "nest at most" in str(error)  # noqa: PT017
            else:
                assert count < DEEPEST


def test_only_bytes_are_a_message() -> None:
    assert decode(memoryview(b"DIDL\0\0"), "()") == decode(bytearray(b"DIDL\0\0"), "()") == []
    with pytest.raises(CandidError, match="expected bytes, got int"):
        decode(6, "()")  # type: ignore[arg-type]


def test_a_principal_has_one_text() -> None:
    assert str(SERVICE) == "w7x7r-cok77-xa"
    assert Principal.of("w7x7r-cok77-xa") == SERVICE
    for text in ("", "aaaaa", "w7x7r-cok77-xb", "w7x7rcok77xa", "W7X7R-COK77-XA", "w7x7r-cok77-xa\n", "☃"):
        with pytest.raises(CandidError, match="expected the text of a principal"):
            Principal.of(text)
    with pytest.raises(CandidError, match="at most 29 bytes long, got 30"):
        Principal(bytes(30))


@pytest.mark.parametrize(
    ("text", "types", "reason"),
    [
        ("(1", "(nat)", "line 1, column 3: expected ',', got the end of the text"),
        ("(1) 2", "(nat)", "line 1, column 5: expected the end, got '2'"),
        ("(\n -1)", "(nat)", "line 2, column 2: expected a natural number, got a negative one"),
        ("(256)", "(nat8)", "line 1, column 2: the number is out of the range of nat8"),
        ("(1.5)", "(nat)", "line 1, column 2: expected nat, got float"),
        ("(1e999)", "(float64)", "line 1, column 2: the number is out of the range of float64"),
        ('("a")', "(opt nat)", "line 1, column 2: expected nat, got text"),
        ("(vec { 1; true })", "(vec nat)", "line 1, column 11: expected nat, got bool"),
        ("(record { a = 1 })", "(record { b : nat })", "line 1, column 2: the field b is missing"),
        ("(record { 1; 0 = 2 })", "(record { nat })", "line 1, column 14: two fields have the number 0"),
        ("(variant { b })", "(variant { a })", "line 1, column 2: unknown case of the variant"),
        ('(principal "aaaaa-ab")', "(principal)", "line 1, column 12: expected the text of a principal"),
        ('(principal "aaaaa-aa")', "(service {})", "line 1, column 2: expected service, got principal"),
        ("(1 : int)", "(nat)", "line 1, column 2: expected nat, got a value of type int"),
        ("(300 : nat8)", "(reserved)", "line 1, column 2: the number is out of the range of nat8"),
        ("(1 : Unknown)", "(nat)", "line 1, column 6: the type Unknown is not defined"),
        ("()", "(nat)", "expected a further argument (nat)"),
        ("(" + "9" * 5000 + ")", "(nat)", "line 1, column 2: a decimal number has too many digits"),
        ("(" + "opt " * 300 + "1)", "(reserved)", f"values nest at most {DEEPEST} deep"),
    ],
)
def test_a_text_of_values_is_refused_at_its_place(text: str, types: str, reason: str) -> None:
    with pytest.raises(CandidError) as refusal:
        parse_values(text, types)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "types", "values"),
    [
        ("(1_000, 0xff, +5)", "(nat, nat8, int)", [1000, 255, 5]),
        ("(1, 2,)", "(nat)", [1]),  # a further argument
        ("((5 : nat))", "(int)", [5]),
        ("(5)", "(opt nat)", [5]),
        ("()", "(opt nat)", [None]),
        ("(vec { 1; 2 } : Bytes)", "type Bytes = vec nat8; (Bytes)", [b"\1\2"]),
        ("(record { 5; 6; 9 = 7; 8 })", "(record { nat; nat; 10 : nat })", [{0: 5, 1: 6, 10: 8}]),
        ("(0x1p4, 1_0.5, 3)", "(float64, float64, float32)", [16.0, 10.5, 3.0]),
        ("(0.1)", "(float32)", [0.10000000149011612]),
        ('(/* a */ "b" // c\n)', "(text)", ["b"]),
        ('(func "aaaaa-aa".f)', "(func () -> ())", [FuncReference(Principal(b""), "f")]),
        ('(service "aaaaa-aa")', "(principal)", [Principal(b"")]),
    ],
)
def test_a_text_of_values_is_read(text: str, types: str, values: list[Any]) -> None:
    assert parse_values(text, types) == values
