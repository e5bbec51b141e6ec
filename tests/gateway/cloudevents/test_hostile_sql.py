"""Whatever text comes, an expression gives a value or one of two errors."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cloudevents.sql_twin import ATTRIBUTES, random_expression, random_words
from relaycast_gateway.cloudevents import SqlEvaluationError, SqlParseError, evaluate_sql
from relaycast_gateway.cloudevents.sql.evaluation import sql_predicate


def verdict(text: str) -> str:
    """Return what became of a text; anything but a value and the two errors goes through."""
    kind = "value"
    try:
        value = evaluate_sql(text, ATTRIBUTES)
    except SqlParseError:
        return "parse"
    except SqlEvaluationError as error:
        kind, value = error.kind, error.value
    assert type(value) in {str, int, bool}
    assert sql_predicate(text)(ATTRIBUTES) is (value is True and kind == "value")
    return kind


@given(st.text() | st.text(alphabet="()'\"\\%_-+,=<>! aANDORx019\n"))
def test_any_text_gives_a_value_or_one_of_two_errors(text: str) -> None:
    verdict(text)


@given(st.randoms(use_true_random=False))
def test_any_words_and_any_tree_do_so_too(random: Random) -> None:
    verdict(random_words(random))
    assert verdict(random_expression(random, 4)) != "parse"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_hundred_thousand_hostile_expressions(seed: int) -> None:
    random = Random(seed)
    seen: set[str] = set()
    for _ in range(10_000):
        text = random.randbytes(random.randint(0, 60)).decode("latin-1")
        for hostile in (text, random_words(random)):
            seen.add(verdict(hostile))
        kind = verdict(random_expression(random, random.randint(0, 5)))
        assert kind != "parse"
        seen.add(kind)
    assert seen == {"parse", "value", "math", "cast", "missingAttribute", "functionEvaluation", "missingFunction"}
