"""Where a peer is wrong, exactly: what the random values of other tests leave out, each with its reason."""

import math
from typing import Any

import pytest

from candid_peers.peer_process import NODE, Codec, PeerProcess, Refused, TextCodec, peer
from relaycast_gateway.candid import CandidError, Principal, Variant, decode, encode
from relaycast_gateway.candid.type_graph import label_number

pytestmark = pytest.mark.brokers

SERVICE = "service { a : () -> (nat) query }"
HERE = Principal(b"\x01")


def test_dfinity_candid_drops_a_byte_order_mark_at_the_start_of_a_text(dfinity_candid: Codec) -> None:
    assert dfinity_candid.both_ways("(text)", ["\ufeffa\ufeff"]) == (["\ufeffa\ufeff"], ["a\ufeff"])


@pytest.mark.parametrize(
    ("types", "value", "above", "read", "theirs"),
    [
        ("(nat)", 5, "(int)", 5, "type mismatch: type on the wire nat, expect type int"),
        ("(nat)", 5, "(opt int)", 5, None),
        (f"({SERVICE})", HERE, "(principal)", HERE, "type mismatch: type on the wire rec_"),
        (f"({SERVICE})", HERE, "(opt principal)", HERE, None),
    ],
)
def test_dfinity_candid_does_not_know_two_subtypes(  # a natural number is an integer, a service a principal
    dfinity_candid: Codec, types: str, value: Any, above: str, read: Any, theirs: str | None
) -> None:
    message = encode(types, [value])
    assert decode(message, above) == [read]
    if theirs is None:
        assert dfinity_candid.decoded(above, message) == [None]
    else:
        with pytest.raises(Refused, match=theirs):
            dfinity_candid.decoded(above, message)


def test_dfinity_candid_asks_for_arguments_that_may_be_missing(dfinity_candid: Codec) -> None:
    message = encode("(nat)", [5])
    assert decode(message, "(nat, opt text)") == [5, None]
    with pytest.raises(Refused, match="Wrong number of return values"):
        dfinity_candid.decoded("(nat, opt text)", message)


@pytest.mark.parametrize("name", ["_5_", "_0x5_"])
def test_dfinity_candid_takes_some_names_for_numbers(dfinity_candid: Codec, name: str) -> None:
    message = dfinity_candid.process.ask(
        ask="encode", did=f'service : {{ take : (record {{ "{name}" : nat8 }}) -> () }}', values=[[[5, "7"]]]
    )
    assert decode(bytes.fromhex(message), "(record { 5 : nat8 })") == [{5: 7}]
    with pytest.raises(CandidError, match=f"the field {name} is missing"):
        decode(bytes.fromhex(message), f'(record {{ "{name}" : nat8 }})')


@pytest.mark.parametrize(("name", "number"), [("5", 5), ("_5_", 5)])
def test_icp_py_core_takes_some_names_for_numbers(icp_py_core: Codec, name: str, number: int) -> None:
    types = f'(record {{ "{name}" : nat8 }})'
    message = icp_py_core.process.ask(
        ask="encode", did=f"service : {{ take : {types} -> () }}", values=[[[number, "7"]]]
    )
    assert decode(bytes.fromhex(message), f"(record {{ {number} : nat8 }})") == [{number: 7}]
    assert label_number(name) != number


def test_icp_py_core_hashes_the_digits_of_a_number_from_a_thousand(icp: PeerProcess) -> None:
    did = "service : { take : (record { 999 : nat8; 1000 : nat8 }) -> () }"
    hashed = label_number("1_000")  # as the numbers of fields are printed
    message = bytes.fromhex(icp.ask(ask="encode", did=did, values=[[[999, "7"], [hashed, "8"]]]))
    assert decode(message, '(record { 999 : nat8; "1_000" : nat8 })') == [{999: 7, "1_000": 8}]
    with pytest.raises(CandidError):
        decode(message, "(record { 999 : nat8; 1000 : nat8 })")


def test_icp_py_core_forgets_the_methods_of_a_service_among_types(icp_py_core: Codec) -> None:
    message = icp_py_core.encoded(f"({SERVICE})", [HERE])
    assert message == encode("(service {})", [HERE])
    with pytest.raises(CandidError, match="expected service, got service"):
        decode(message, f"({SERVICE})")


def test_icp_py_core_cannot_name_vectors_of_themselves(icp_py_core: Codec) -> None:
    types = "type Deep = vec Deep;\n(Deep)"
    assert decode(icp_py_core.encoded(types, [[[]]]), types) == [[[]]]
    with pytest.raises(Refused, match="RecursionError"):
        icp_py_core.decoded(types, encode(types, [[[]]]))


@pytest.mark.parametrize(
    ("types", "value", "above", "read"),
    [
        ("(nat)", 5, "(opt nat)", 5),
        ("(opt nat)", 5, "(opt text)", None),
        (f"({SERVICE})", HERE, "(principal)", HERE),
    ],
)
def test_icp_py_core_knows_few_subtypes(icp_py_core: Codec, types: str, value: Any, above: str, read: Any) -> None:
    message = encode(types, [value])
    assert decode(message, above) == [read]
    with pytest.raises(Refused, match="Type mismatch"):
        icp_py_core.decoded(above, message)


@pytest.mark.parametrize(("above", "read"), [("(principal)", HERE), ("(opt principal)", HERE)])
def test_didc_reads_no_service_as_a_principal(didc: TextCodec, above: str, read: Any) -> None:
    message = encode(f"({SERVICE})", [HERE])
    assert decode(message, above) == [read]
    if above == "(opt principal)":
        assert didc.decoded(above, message) == [None]
    else:
        with pytest.raises(Refused, match="Fail to decode argument 0 from table0 to principal"):
            didc.decoded(above, message)


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_didc_prints_an_infinity_and_does_not_take_it(didc: TextCodec, number: float) -> None:
    assert didc.decoded("(float64)", encode("(float64)", [number])) == [number]
    with pytest.raises(Refused, match="parser error: Unrecognized token"):
        didc.encoded("(float64)", f"({number})")


def test_didc_prints_a_text_with_an_escape_that_candid_does_not_have(didc: TextCodec) -> None:
    with pytest.raises(CandidError, match=r"unknown escape \\0"):
        didc.decoded("(text)", encode("(text)", ["\0"]))
    with pytest.raises(Refused, match="Unknown escape character 0"):
        didc.encoded("(text)", '("\\0")')


def test_didc_leaves_out_a_field_with_the_name_of_an_underscore(didc: TextCodec) -> None:
    types = '(record { "_" : bool; b : nat })'
    message = encode(types, [{"_": False, "b": 3}])
    assert decode(message, types) == [{"_": False, "b": 3}]
    with pytest.raises(CandidError, match="the field _ is missing"):
        didc.decoded(types, message)


def test_didc_ends_where_it_prints_a_case_with_a_comma_in_its_name() -> None:
    types = '(variant { "a,b" })'
    with peer(NODE, "dfinity_candid.mjs") as one, pytest.raises(Refused, match="unreachable"):
        TextCodec(one).decoded(types, encode(types, [Variant("a,b")]))
