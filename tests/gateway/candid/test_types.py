"""Types as text: what they mean, and one refusal with line and column."""

import sys
from collections.abc import Callable, Sequence
from itertools import product
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.candid import CandidError, decode, encode, parse_types
from relaycast_gateway.candid.message_header import read_head, written_head
from relaycast_gateway.candid.type_graph import (
    BOOL,
    DEEPEST,
    INT,
    NAT,
    NAT8,
    NULL,
    TEXT,
    FuncType,
    Label,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    label_number,
)

INTERFACE = """
// what a feed offers
type Id = nat;                      /* of any size /* nested */ */
type Event = record { id : Id; "the data" : blob; next : opt Event; 7 : text };
type Answer = variant { Ok : Id; Err; 5 };
type Listener = func (vec Event) -> () oneway;
service feed : (init : text) -> {
  publish : (events : vec Event, opt text) -> (vec Answer);
  "get events" : (Id, Id) -> (vec Event) query;
  listen : Listener;
}
"""


def test_an_interface_is_read() -> None:
    types = parse_types(INTERFACE)
    nodes = types.nodes
    assert types.names["Id"] == NAT
    event, answer = nodes[types.names["Event"]], nodes[types.names["Answer"]]
    assert isinstance(event, RecordType)
    assert event.order == ("id", "the data", "next", 7)
    assert {label.name: label.of for label in event.labels}["id"] == NAT
    assert isinstance(answer, VariantType)
    assert {label.name: label.of for label in answer.labels} == {"Ok": NAT, "Err": NULL, 5: NULL}
    assert types.arguments is None
    assert types.init == (TEXT,)
    assert types.service is not None
    service = nodes[types.service]
    assert isinstance(service, ServiceType)
    methods = {name: nodes[of] for name, of in service.methods}
    assert list(methods) == ["get events", "listen", "publish"]
    vec = nodes.index(VecType(types.names["Event"]))
    assert methods["get events"] == FuncType((NAT, NAT), (vec,), (1,))
    assert methods["listen"] == nodes[types.names["Listener"]] == FuncType((vec,), (), (2,))


def test_types_that_are_alike_are_one() -> None:
    types = parse_types("type A = record { nat; B }; type B = record { nat; A }; (A, B, vec A, vec B, blob, vec nat8)")
    assert types.arguments is not None
    one, other, *vecs, blob, bytes_of = types.arguments
    assert len(types.nodes) <= 5
    assert blob == bytes_of
    assert types.nodes[blob] == VecType(NAT8)
    assert len({one, other}) + len(set(vecs)) <= 4


def chains(length: int) -> str:
    """Return two chains of types that are alike, each type named before the one it holds."""
    definitions = [f"type {name}{at} = opt {name}{at + 1};" for name in "AB" for at in range(length)]
    return " ".join([*definitions, f"type A{length} = nat; type B{length} = nat; (A0, B0)"])


def aliases(length: int) -> str:
    """Return types that are names of names."""
    return " ".join([*(f"type A{at} = A{at + 1};" for at in range(length)), f"type A{length} = nat; (A0)"])


def circle(length: int) -> str:
    """Return circles of records that become alike one after the other, and a record that holds all of them."""
    held = "; ".join(f"V{at}; W{at}" for at in range(length + 1))
    steps = [
        f"type {name}{at} = record {{ {name}{at - 1}; V{at + 1} }};" for at in range(1, length + 1) for name in "VW"
    ]
    ends = f"type V{length + 1} = All; type V0 = opt All; type W0 = opt All; type All = record {{ {held} }};"
    return " ".join([*steps, ends, "(V0, W0)"])


def steps_of(text: str) -> int:
    """Return how many calls it takes to read types."""
    calls = 0

    def note(_frame: FrameType, event: str, _of: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        parse_types.__wrapped__(text)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("text_of", [chains, aliases, circle])
def test_twice_as_many_types_take_about_twice_the_steps(text_of: Callable[[int], str]) -> None:
    types = parse_types(text_of(100))
    assert types.arguments is not None
    assert len(set(types.arguments)) == 1
    assert steps_of(text_of(400)) < 2.5 * steps_of(text_of(200))


def test_circles_that_share_no_type_stay_two() -> None:
    assert len(parse_types("type A = opt A; type B = opt B; (A, B)").nodes) == 2
    assert len(parse_types("type A = opt A; type B = opt A; (A, B)").nodes) == 1


FORMS = ("opt %s", "record {{ %s; %s }}", "variant {{ a : %s; b : %s }}", "func (%s) -> (%s)")


def merged_by_hand(bodies: Sequence[str]) -> dict[str, str]:
    """Call each type by the first one with the same body, until no body changes."""
    known = {f"T{at}": f"T{at}" for at in range(len(bodies))}
    for _ in bodies:
        first: dict[str, str] = {}
        known = {f"T{at}": first.setdefault(body.format_map(known), f"T{at}") for at, body in enumerate(bodies)}
    return known


@given(st.lists(st.sampled_from(FORMS), min_size=1, max_size=6), st.data())
def test_types_are_one_exactly_if_their_parts_are_one(forms: list[str], data: st.DataObject) -> None:
    parts = st.sampled_from(["nat", *(f"{{T{at}}}" for at in range(len(forms)))])
    bodies = [form % tuple(data.draw(parts) for _ in range(form.count("%s"))) for form in forms]
    names = {f"T{at}": f"T{at}" for at in range(len(forms))}
    types = parse_types(" ".join(f"type T{at} = {body.format_map(names)};" for at, body in enumerate(bodies)))
    expected = merged_by_hand(bodies)
    for one, other in product(types.names, repeat=2):
        assert (types.names[one] == types.names[other]) == (expected[one] == expected[other])


def test_fields_without_a_label_count_on() -> None:
    (of,) = parse_types("(record { nat; 5 : text; bool; int; named : nat })").arguments or ()
    node = parse_types("(record { nat; 5 : text; bool; int; named : nat })").nodes[of]
    assert isinstance(node, RecordType)
    assert node.labels == (
        Label(0, 0, NAT),
        Label(5, 5, TEXT),
        Label(6, 6, BOOL),
        Label(7, 7, INT),
        Label(label_number("named"), "named", NAT),
    )


@pytest.mark.parametrize(("name", "number"), [("", 0), ("id", 23515), ("foo", 5097222), ("☃", 11272781), (9, 9)])
def test_a_label_has_its_number(name: str | int, number: int) -> None:
    assert label_number(name) == number


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(nat)", "(x : nat,)"),
        ("(blob)", "(vec nat8)"),
        ("(variant { a })", '(variant { "a" : null; })'),
        ("(record { opt : nat })", '(record { "opt" : nat })'),
        ("(record { 0x10 : nat; 1_000 : int })", "(record { 16 : nat; 1000 : int })"),
        ("type A = B; type B = nat; (A)", "(nat)"),
        ("(func () -> () query)", "type f = func () -> () query; (f)"),
    ],
)
def test_two_texts_are_the_same_types(one: str, other: str) -> None:
    heads = [written_head(parsed.nodes, parsed.arguments or ()) for parsed in (parse_types(one), parse_types(other))]
    assert heads[0] == heads[1]


REFUSED = [
    ("(nat", "line 1, column 5: expected ',', got the end of the text"),
    ("(nat nat)", "line 1, column 6: expected ',', got 'nat'"),
    ("(unknown)", "line 1, column 2: the type unknown is not defined"),
    ("type A = B;\ntype B = A;\n(A)", "line 1, column 10: the type B is defined as itself"),
    ("type A = nat; type A = int;", "line 1, column 20: the type A is defined twice"),
    ("type nat = int;", "line 1, column 6: expected the name of a type, got 'nat'"),
    ("(record { a : nat; a : int })", "line 1, column 20: two fields have the number 97"),
    ("(record { a : nat; 97 : int })", "line 1, column 20: two fields have the number 97"),
    ("(record { 4294967296 : nat })", "line 1, column 11: a field's number must be less than 2^32, got 4294967296"),
    ("(record { 4294967295 : nat; int })", "line 1, column 29: a field's number must be less than 2^32"),
    ("(record { 7 })", "line 1, column 13: expected ':', got '}'"),
    ("(func () -> (nat) oneway)", "line 1, column 19: a oneway function has no results"),
    ("(func () -> () query query)", "line 1, column 22: query stands twice"),
    ("(service { a : nat })", "line 1, column 16: expected a type, got 'nat'"),
    ("type N = nat; (service { a : N })", "line 1, column 30: a method must be a function, got N"),
    ("service : N; ", "line 1, column 11: the type N is not defined"),
    ("type N = nat; service : N", "line 1, column 25: expected the type of a service, got N"),
    ("service : { a : () -> (); a : () -> () }", "line 1, column 27: the method a stands twice"),
    ('import "other.did";', "line 1, column 1: imports are not read"),
    ("/* open", "line 1, column 1: a comment does not end"),
    ('(record { "a : nat })', "line 1, column 11: expected a string that ends"),
    ('(record { "\\q" : nat })', "line 1, column 11: unknown escape"),
    ('(record { "\\u{d800}" : nat })', "line 1, column 11: \\u{d800} is no Unicode scalar value"),
    ('(record { "\\ff" : nat })', "line 1, column 11: a string must be UTF-8"),
    ("(nat) nat", "line 1, column 7: expected a definition, a list of types, a service or the end, got 'nat'"),
    ("(nat)\n  #", "line 2, column 3: expected a name, number, string or punctuation, got '#'"),
    ("(" + "opt " * (DEEPEST + 1) + "nat)", f"types nest at most {DEEPEST} deep"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_a_text_of_types_is_refused_at_its_place(text: str, reason: str) -> None:
    with pytest.raises(CandidError) as refusal:
        parse_types(text)
    assert reason in str(refusal.value)
    assert str(refusal.value).startswith("line ")


def test_a_message_needs_a_list_of_types() -> None:
    with pytest.raises(CandidError, match="expected a list of types in parentheses"):
        encode("type A = nat;", [])
    with pytest.raises(CandidError, match="expected a list of types in parentheses"):
        decode(b"DIDL\0\0", "type A = nat;")


def test_only_types_that_are_reached_are_sent() -> None:
    types = "type Unused = record { text }; type Used = vec opt nat; (Used)"
    nodes, arguments, _ = read_head(encode(types, [[]]))
    assert nodes == (VecType(1), OptType(NAT))
    assert arguments == (0,)
