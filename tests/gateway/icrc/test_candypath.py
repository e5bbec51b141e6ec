"""CandyPath, case by case: every operator, every step, every literal, every error."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.icrc.candypath_twin import random_filter, random_tree, selects, written
from icrc16_values import values
from relaycast_gateway.icrc import CandyPathError, candy_path
from relaycast_gateway.icrc16 import (
    NOTHING,
    Icrc16,
    Property,
    Tag,
    array,
    blob,
    boolean,
    from_json,
    map_of,
    nat,
    option,
    text,
)

BOOKS = array(
    map_of({"title": text("Tries"), "author": map_of({"name": text("John Doe")}), "pages": nat(250)}),
    map_of({"title": text("Proofs"), "author": map_of({"name": text("Jane")}), "pages": nat(90)}),
    map_of({"title": text("Relays"), "author": map_of({"name": text("John Roe")}), "pages": nat(400)}),
)
EVENT = map_of(
    {
        "category": text("sports"),
        "first": text("Jane"),
        "count": nat(7),
        "same": nat(7),
        "small": Icrc16(Tag.NAT8, 7),
        "debt": Icrc16(Tag.INT, -3),
        "ratio": Icrc16(Tag.FLOAT, 1.5),
        "open": boolean(True),
        "shut": boolean(False),
        "raw": blob(b"sports"),
        "owner": Icrc16(Tag.PRINCIPAL, b"\x04"),
        "nothing": NOTHING,
        "maybe": option(option(nat(7))),
        "tags": array(text("red"), text("green"), text("Blue")),
        "none": array(),
        "mixed": array(text("red"), nat(5), NOTHING),
        "nats": Icrc16(Tag.NATS, (1, 5, 9)),
        "floats": Icrc16(Tag.FLOATS, (0.5, 2.0)),
        "bytes": Icrc16(Tag.BYTES, b"\x01\xff"),
        "set": Icrc16(Tag.SET, (nat(1), nat(2))),
        "class": Icrc16(Tag.CLASS, (Property("name", text("Ann"), True), Property("name", text("Bob"), True))),
        "by value": Icrc16(Tag.VALUE_MAP, ((nat(1), text("one")), (text("two"), nat(2)))),
        "12": text("a name of digits"),
        "com.foo": text("dotted"),
        "a*b": text("starred"),
        "space": text("two words"),
        "question": text("?"),
        "five": text("5"),
        "list": text("a,b]"),
        "Straße": text("Straße"),
        "books": BOOKS,
        "icrc72:broadcaster:received": nat(1_000),
    }
)

SELECTED = [
    "category == sports",
    "category != music",
    "category <> music",
    "category > music",
    "category >= sports",
    "category < technology",
    "category <= sports",
    "category ~= port",
    "category ~~= PORT",
    "category !~= PORT",
    "category !~~= music",
    "category == sports & count == 7",
    "category == music | count == 7",
    "count == 1 & count == 2 | count == 7",  # "&" first
    "count == 7 | count == 1 & count == 2",
    "category: [sports, technology]",
    "category: [music, sports] & count > 6",
    "count: [6, 7]",
    "nothing: [a, ?]",
    "count == 7",
    "count > 6",
    "count <= 7",
    "small == 7",
    "debt == -3",
    "debt < 0",
    "ratio == 1.5",
    "ratio > 1",  # a whole literal is a number, too
    "ratio > -.5",
    "open == true",
    "open > false",
    "shut < true",
    "raw == sports",
    "raw > sport",
    "owner == 2vxsx-fae",
    "nothing == ?",
    "missing == ?",
    "count != ?",
    "missing.deeper == ?",
    "maybe == 7",
    "tags.0 == red",
    "tags.-1 == Blue",
    "tags.-3 == red",
    "tags.3 == ?",
    "tags.-4 == ?",
    "tags.* == green",
    "tags.* != yellow",
    "tags.* <> yellow",
    "tags.* !~= yell",
    "none.* == ?",
    "nats.-1 == 9",
    "nats.* > 8",
    "floats.1 == 2",
    "bytes.1 == 255",
    "set.* == 2",
    "class.name == Ann",
    "by\\ value.two == 2",
    "12 == a\\ name\\ of\\ digits",
    "com\\.foo == dotted",
    "a\\*b == starred",
    "space == two\\ words",
    "question == \\?",
    "five == 5",
    "five == \\5",
    "count != \\7",  # an escaped literal is text alone
    "list == a,b\\]",
    "list: [a\\,b\\]]",
    "Straße ~~= STRASSE",
    "icrc72:broadcaster:received == 1000",
    "books.0.author.name ~= John",
    "books.-2.author.name == Jane",
    "books[author.name ~= John].pages > 300",
    "books[author.name == $.first].pages == 90",
    "books[author.name == $.first | pages < @.pages].title == Proofs",
    "books[pages > 100][title ~= x].title == ?",
    "books.*.author.name ~= Roe",
    "books[author.name ~= John & pages < 300].title == Tries",
    "tags[@ == red] == red",
    "tags[@ ~~= blue].0 == ?",
    "$.tags[@ == $.tags.1] == green",
    "count == $.same",
    "count == @.maybe",
    "nothing == $.missing",
    "count != $.small",  # two types
    "tags != $.tags",  # arrays do not compare
    "mixed.* == 5",
    "mixed.* == ?",
    "missing != 5",
    "$.category == sports",
    "@.category == sports",
    "category",
    "count",
    "tags.*",
    "books[pages > 300]",
    "$",
]

NOT_SELECTED = [
    "category == Sports",
    "category != sports",
    "category <> sports",
    "category > sports",
    "category >= technology",
    "category < sports",
    "category <= rugby",
    "category ~= PORT",
    "category ~~= music",
    "category !~= port",
    "category !~~= PORT",
    "category == sports & count == 8",
    "category == music | count == 8",
    "count == 7 & category == music | count == 8",
    "category: [music, technology]",
    "category: [?]",
    "count == 7.0",  # a whole number compares with a whole literal
    "count > 6.5",
    "count ~= 7",
    "count !~= 8",
    "count == seven",
    "small == $.count",
    "small <> $.count",
    "ratio > one",
    "open > true",
    "shut < false",
    "open == 1",
    "open == yes",
    "raw ~= sport",
    "owner ~= 2vx",
    "owner == aaaaa-aa",
    "nothing != ?",
    "nothing <> 5",
    "missing <> 5",
    "missing !~= 5",
    "missing",
    "nothing",
    "shut",
    "none.*",
    "tags == red",
    "tags.1.0 == g",
    "tags.* == yellow",
    "tags.* != green",
    "tags.* <> green",
    "tags.* !~= ree",
    "tags[@ == yellow]",
    "set.0 == 1",
    "category.* == s",
    "class.other == Ann",
    "class.name == Bob",
    "by\\ value.1 == one",
    "books[author.name == $.missing].pages > 0",
    "books[pages > 500].title ~= r",
    "books[pages > 300].title == Tries",
    "mixed.* > z",
    "question == ?",
    "$.books.title == Tries",
    "count == ",
]


@pytest.mark.matrix("ICRC72-32")
@pytest.mark.parametrize("filter_text", SELECTED)
def test_a_filter_selects(filter_text: str) -> None:
    assert candy_path(filter_text)(EVENT) is True


@pytest.mark.matrix("ICRC72-32")
@pytest.mark.parametrize("filter_text", NOT_SELECTED)
def test_a_filter_does_not_select(filter_text: str) -> None:
    assert candy_path(filter_text)(EVENT) is False


@pytest.mark.matrix("ICRC72-103")
@pytest.mark.parametrize(
    "filter_text", ["category: [sports, technology]", "category == sports | category == technology"]
)
def test_the_example_of_the_text_selects_both_categories(filter_text: str) -> None:
    events = [from_json({"category": category}) for category in ("sports", "music", "technology", "sport")]
    assert [event for event in events if candy_path(filter_text)(event)] == [events[0], events[2]]


@pytest.mark.parametrize(
    ("filter_text", "place", "expected"),
    [
        ("", 0, "a name"),
        (" a == b", 0, "a name"),
        (".a == b", 0, "a name"),
        ("a..b == c", 2, "a name"),
        ("a. == c", 2, "a name"),
        ("a==b", 1, "a name"),
        ("a*b == c", 1, "a name"),
        ("*a == c", 1, "'.', '['"),
        ("$a == c", 1, "'.', '['"),
        ("a.$ == c", 2, "a name"),
        ("a ", 1, "an operator"),
        ("a = b", 1, "an operator"),
        ("a === b", 1, "an operator"),
        ("a ==b", 1, "an operator"),
        ("a  == b", 1, "an operator"),
        ("a & b == c", 1, "an operator"),
        ("a == b c", 6, "' & '"),
        ("a == b &c == d", 6, "' & '"),
        ("a == b && c == d", 6, "' & '"),
        ("a == b]", 6, "' & '"),
        ("a == b & ", 9, "a name"),
        ("a == b | c", 10, "an operator"),
        ("a]", 1, "an operator"),
        ("a == ?b", 5, "'?' alone"),
        ("a == b?", 6, "'?' alone"),
        ("a <> ?", 5, "a literal after <> other than '?'"),
        ("a == b | c >= ?", 14, "a literal after >= other than '?'"),
        ("a[b ~= ?] == c", 7, "a literal after ~= other than '?'"),
        ("garbage((", 7, "a name"),
        ("a.(b) == c", 2, "a name"),
        ("{a} == c", 0, "a name"),
        ('"a" == c', 0, "a name"),
        ("a.'b' == c", 2, "a name"),
        ("a == $b", 6, "'.', '['"),
        ("a == b\\", 7, "a character after the backslash"),
        ("a\\", 2, "a character after the backslash"),
        ("a[b]", 3, "an operator"),
        ("a[]", 2, "a name"),
        ("a[b == c", 8, "' & ', ' | ' or ']'"),
        ("a[b == c]d", 9, "'.', '['"),
        ("a: []", 4, "a literal"),
        ("a: [b", 5, "', ' or ']'"),
        ("a: [b,c]", 5, "', ' or ']'"),
        ("a: [b, ]", 7, "a literal"),
        ("a: [$.b]", 4, "a literal"),
        ("a == \ud800", 5, "text without lone surrogates"),
        ("a" * 1_025, 1_024, "at most 1024 characters"),
        ("a[b" * 9 + " == 1" + "]" * 9, 25, "brackets at most 8 deep"),
    ],
)
def test_an_error_names_the_place_and_what_was_expected(filter_text: str, place: int, expected: str) -> None:
    with pytest.raises(CandyPathError) as caught:
        candy_path(filter_text)
    assert caught.value.place == place
    assert caught.value.expected.startswith(expected)
    assert str(caught.value).startswith(f"filter, character {place + 1}: expected {expected}")
    assert len(str(caught.value)) < 200


def test_filters_at_the_bounds_are_taken() -> None:
    assert candy_path(f"{'a' * 1_017} == bcd")(map_of({"a" * 1_017: text("bcd")}))
    condition = "@ == 1"
    for _ in range(8):
        condition = f"@[{condition}] == ?"
    assert candy_path(condition)(EVENT)


@pytest.mark.matrix("ICRC72-34")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_a_filter_selects_what_the_definition_says_in_a_thousand_trees(seed: int) -> None:
    random = Random(seed)
    trees = [random_tree(random, 3) for _ in range(1_000)]
    chosen = 0
    for _ in range(30):
        said = random_filter(random)
        compiled = candy_path(written(said))
        expected = [selects(said, tree) for tree in trees]
        assert [compiled(tree) for tree in trees] == expected, written(said)
        chosen += sum(expected)
    assert 0 < chosen < 30_000


@given(st.randoms(use_true_random=False), values)
def test_compiled_and_defined_agree_on_any_tree(random: Random, tree: Icrc16) -> None:
    said = random_filter(random)
    assert candy_path(written(said))(tree) is selects(said, tree)
