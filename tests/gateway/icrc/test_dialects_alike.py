"""One predicate in three languages: CandyPath over a map of attributes, dialects of CloudEvents, CloudEvents SQL."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cloudevents.filter_twin import NAMES, PIECES, in_sql
from gateway.icrc.candypath_twin import escaped
from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.icrc import candy_path
from relaycast_gateway.icrc16 import from_json, map_of, text

texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("".join)
terms = st.tuples(st.sampled_from(NAMES), st.booleans(), texts)
predicates = st.lists(st.lists(terms, min_size=1, max_size=3), min_size=1, max_size=3)
events = st.dictionaries(st.sampled_from(NAMES), texts | st.booleans() | st.integers(-60, 60))


def in_dialects(predicate: list[list[tuple[str, bool, str]]]) -> dict[str, Any]:
    return {"any": [{"all": [_exact(*term) for term in alternative]} for alternative in predicate]}


def _exact(name: str, equal: bool, value: str) -> dict[str, Any]:
    exact = {"exact": {name: value}}
    return exact if equal else {"not": exact}


def in_candypath(predicate: list[list[tuple[str, bool, str]]]) -> str:
    return " | ".join(
        " & ".join(f"{name} {'==' if equal else '!='} {escaped(value, numbers=True)}" for name, equal, value in terms)
        for terms in predicate
    )


@pytest.mark.matrix("X-04")
@given(predicates, events)
def test_three_languages_select_the_same_events(
    predicate: list[list[tuple[str, bool, str]]], event: dict[str, Any]
) -> None:
    event = {"type": "a", "source": "b", **event}  # EXISTS takes them for granted
    tree = map_of({name: text(value) if isinstance(value, str) else from_json(value) for name, value in event.items()})
    selected = compile_filter(in_dialects(predicate))(event)
    assert candy_path(in_candypath(predicate))(tree) is selected
    assert compile_filter({"sql": in_sql(in_dialects(predicate))})(event) is selected
