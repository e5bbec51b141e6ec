"""CandyPath under hostile texts and trees: a filter or one error, and an end in bounded time."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gateway.icrc.candypath_twin import random_filter, random_tree, written
from icrc16_values import values
from relaycast_gateway.icrc import CandyPathError, candy_path
from relaycast_gateway.icrc.candypath.compiled import TreePredicate
from relaycast_gateway.icrc16 import Icrc16, Tag, map_of, nat, option, text


def hostile(random: Random) -> str:
    pieces = (
        "a",
        "b",
        " ",
        " == ",
        " & ",
        " | ",
        ".",
        "[",
        "]",
        "*",
        "$",
        "@",
        "?",
        "\\",
        ": [",
        ", ",
        "0",
        "-1",
        "~~=",
    )
    if random.random() < 0.3:
        return random.randbytes(random.randint(0, 60)).decode("latin-1")
    if random.random() < 0.5:
        return "".join(random.choices(pieces, k=random.randint(0, 20)))
    text_of_one = written(random_filter(random))
    at = random.randint(0, len(text_of_one))
    return text_of_one[:at] + random.choice(pieces) + text_of_one[at + random.randint(0, 2) :]


def tried(filter_text: str) -> tuple[TreePredicate | None, int]:
    """Return the filter, or the place of the error; anything but the two goes through."""
    try:
        return candy_path(filter_text), 0
    except CandyPathError as error:
        return None, error.place


def test_twenty_thousand_hostile_texts_give_a_filter_or_one_error() -> None:
    random = Random(5)
    trees = [random_tree(random, 3) for _ in range(5)]
    outcomes = {"error": 0, "filter": 0}
    for _ in range(20_000):
        filter_text = hostile(random)
        compiled, place = tried(filter_text)
        outcomes["filter" if compiled else "error"] += 1
        assert 0 <= place <= len(filter_text)
        assert compiled is None or {compiled(tree) for tree in trees} <= {True, False}
    assert min(outcomes.values()) > 2_000


@given(st.text() | st.text(alphabet="ab.[]*$@?\\ =!<>~&|:,0-"), values)
def test_any_text_gives_a_filter_or_the_one_error(filter_text: str, tree: Icrc16) -> None:
    compiled, _ = tried(filter_text)
    assert compiled is None or compiled(tree) in (True, False)


def test_a_filter_that_looks_at_too_much_selects_nothing() -> None:
    many = map_of({"items": Icrc16(Tag.NATS, tuple(range(1_000)))})
    squared = candy_path("items[@ > $.items.*] == 5")
    assert candy_path("items[@ == 999] == 999")(many)
    assert not squared(many)
    assert squared(map_of({"items": Icrc16(Tag.NATS, tuple(range(100)))}))
    wide = map_of({str(number): nat(number) for number in range(1_000)} | {"all": many})
    assert not candy_path("all.items[$.none == ?]")(wide)


def test_long_values_count_by_their_length() -> None:
    tree = map_of({"items": Icrc16(Tag.NATS, tuple(range(1_000))), "long": text("x" * 1_000_000)})
    assert candy_path("long ~= x")(tree)
    assert candy_path("items.0.* == ? & long ~= x")(tree)
    assert not candy_path("items[$.long ~= x] == 0")(tree)


def test_an_option_stands_for_its_value_however_deep() -> None:
    value = map_of({"a": nat(5)})
    for _ in range(5_000):
        value = option(value)
    assert candy_path("a == 5")(value)


def test_text_that_sounds_like_code_is_text() -> None:
    tree = map_of({"a'); import os #": text("__import__('os')")})
    assert candy_path("a\\'\\);\\ import\\ os\\ # == __import__('os')")(tree)
