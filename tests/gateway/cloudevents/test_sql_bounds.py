"""CloudEvents SQL: 32 bits, patterns by their definition, bounds of expressions and results."""

from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.cloudevents.sql_outcome import EVENT, LEAST, MOST, outcome
from gateway.cloudevents.sql_twin import divided, like
from relaycast_gateway.cloudevents.sql.functions import LONGEST_RESULT
from relaycast_gateway.cloudevents.sql.lexer import LONGEST
from relaycast_gateway.cloudevents.sql.like import matcher
from relaycast_gateway.cloudevents.sql.parser import DEEPEST, HIGHEST

numbers = st.integers(LEAST, MOST) | st.sampled_from([LEAST, -1, 0, 1, 2, 3, MOST])


@given(numbers, numbers)
@example(LEAST, -1)
def test_division_rounds_towards_zero(x: int, y: int) -> None:
    if y == 0:
        assert outcome(f"{x} / {y}") == outcome(f"{x} % {y}") == (0, "math")
        return
    quotient, remainder = divided(x, y)
    assert outcome(f"{x} / {y}") == ((quotient, None) if quotient <= MOST else (0, "math"))
    assert outcome(f"{x} % {y}") == (remainder, None)


@given(numbers, numbers, st.sampled_from("+-*"))
def test_what_does_not_fit_32_bits_is_a_math_error(x: int, y: int, operator: str) -> None:
    exact = {"+": x + y, "-": x - y, "*": x * y}[operator]
    assert outcome(f"{x} {operator} ({y})") == ((exact, None) if LEAST <= exact <= MOST else (0, "math"))


patterns = st.lists(st.sampled_from(["a", "b", "%", "_", "\\", "\\%", "\\_", "ab", ".", "\n", "*"])).map("".join)


@given(st.lists(st.sampled_from("ab%_\\.\n*")).map("".join), patterns)
@example("", "%")
@example("a\\", "a\\")
@example("aaab", "%a_b")
@example("abab", "ab%ab%ab")
def test_a_pattern_matches_what_its_definition_says(text: str, pattern: str) -> None:
    assert matcher(pattern)(text) is like(text, pattern)


def test_every_short_pattern_matches_what_its_definition_says() -> None:
    texts = ["".join(each) for length in range(4) for each in product("ab", repeat=length)]
    for length in range(6):
        for each in product("ab%_", repeat=length):
            pattern = "".join(each)
            matches = matcher(pattern)
            for text in texts:
                assert matches(text) is like(text, pattern), (text, pattern)


def test_expressions_are_bounded_in_length_depth_and_height() -> None:
    assert outcome("(" * (DEEPEST - 1) + "1" + ")" * (DEEPEST - 1)) == (1, None)
    assert outcome(" " * (LONGEST - 1) + "1") == (1, None)
    many = " OR ".join(["FALSE"] * 900)
    assert outcome(f"{many} OR TRUE") == (True, None)
    assert outcome("1" + "+1" * 4_000) == (4_001, None)
    assert outcome("TRUE" + " IN (TRUE)" * (HIGHEST - 1)) == (True, None)
    for hostile in (
        "(" * DEEPEST + "1" + ")" * DEEPEST,
        "(" * 4_000,
        "(" * 100_000,
        "NOT " * 2_000 + "TRUE",
        "-" * 8_000 + "'1'",
        "ABS(" * 2_000,
        "TRUE IN (" * 900,
        "TRUE" + " IN (TRUE)" * HIGHEST,
        "TRUE" + " NOT IN (TRUE)" * 500,
        " " * LONGEST + "1",
        "'" + "a" * 1_000_000,
    ):
        assert outcome(hostile) == (False, "parse")


def test_a_pattern_takes_no_longer_for_being_hostile() -> None:
    text = "a" * 60_000
    for pattern in ("%a" * 2_000 + "b", "%" + "_a" * 2_000 + "b%", "%_" * 2_000 + "%b%", "%" + "a" * 4_000 + "b%"):
        assert outcome(f"text LIKE '{pattern}'", EVENT | {"text": text}) == (False, None)


def test_a_result_is_bounded() -> None:
    event = EVENT | {"a": "x" * 65_536}
    assert outcome("LENGTH(CONCAT(" + ",".join("a" * 16) + "))", event) == (LONGEST_RESULT, None)
    assert outcome("CONCAT(" + ",".join("a" * 17) + ")", event) == ("", "functionEvaluation")
    assert outcome("CONCAT_WS(a" + ",''" * 20 + ")", event) == ("", "functionEvaluation")
