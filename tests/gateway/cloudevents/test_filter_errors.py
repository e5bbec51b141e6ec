"""Filters that are refused: the member that is wrong, what it holds, what was expected."""

from typing import Any

import pytest

from gateway.cloudevents.filter_events import EVENT, OTHER, TYPE
from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.dialects import DEEPEST, MOST_FILTERS
from relaycast_gateway.cloudevents.invalid_member import InvalidMember


def too_deep(depth: int) -> dict[str, Any]:
    return {"not": too_deep(depth - 1)} if depth > 1 else TYPE


WRONG: list[Any] = [
    ({"regex": {"type": "x"}}, "filter", 'the dialect "regex"'),
    ({"Exact": {"type": "x"}}, "filter", 'the dialect "Exact"'),
    ({"http://[": {"type": "x"}}, "filter", 'the dialect "http://["'),
    ({"": {"type": "x"}}, "filter", 'the dialect ""'),
    ({5: {"type": "x"}}, "filter", "the dialect 5"),
    ({**TYPE, "not": TYPE}, "filter", "exact, not"),
    ({"all": [{**TYPE, "any": [TYPE]}]}, "filter.all[0]", "exact, any"),
    (None, "filter", "null"),
    ("exact", "filter", '"exact"'),
    ({"not": {}}, "filter.not", "{}"),
    ({"not": None}, "filter.not", "null"),
    ([{}], "filters[0]", "{}"),
    ([TYPE, None], "filters[1]", "null"),
    ({"all": [TYPE, {}]}, "filter.all[1]", "{}"),
    ([[TYPE]], "filters[0]", "an array"),
    ({"all": []}, "filter.all", "[]"),
    ({"all": TYPE}, "filter.all", "an object"),
    ({"all": "exact"}, "filter.all", '"exact"'),
    ({"any": []}, "filter.any", "[]"),
    ({"any": TYPE}, "filter.any", "an object"),
    ({"any": None}, "filter.any", "null"),
    ({"not": [TYPE]}, "filter.not", "an array"),
    ({"not": {"any": [OTHER, {"not": [TYPE]}]}}, "filter.not.any[1].not", "an array"),
    (too_deep(DEEPEST + 1), "filter" + ".not" * DEEPEST, "a filter 33 deep"),
    ({"any": [OTHER] * MOST_FILTERS}, f"filter.any[{MOST_FILTERS - 1}]", "more than 256 filters"),
    ([{"any": [OTHER] * 127}, {"all": [OTHER] * 128}], "filters[1].all[127]", "more than 256 filters"),
    ({"sql": 5}, "filter.sql", "5"),
    ({"sql": "type = "}, "filter.sql", "the end at character 8"),
    ({"not": {"sql": ""}}, "filter.not.sql", "the end at character 1"),
]
for dialect in ("exact", "prefix", "suffix"):
    here = f"filter.{dialect}"
    WRONG += [
        ({dialect: {}}, here, "0 attributes"),
        ({dialect: {"type": "a", "id": "b"}}, here, "2 attributes"),
        ({dialect: "type"}, here, '"type"'),
        ({dialect: [TYPE]}, here, "an array"),
        ({dialect: None}, here, "null"),
        ({dialect: {"": "a"}}, here, '""'),
        ({dialect: {"Type": "a"}}, here, '"Type"'),
        ({dialect: {"my_ext": "a"}}, here, '"my_ext"'),
        ({dialect: {"data": "a"}}, here, '"data"'),
        ({dialect: {"type": ""}}, f"{here}.type", '""'),
        ({dialect: {"count": 5}}, f"{here}.count", "5"),
        ({dialect: {"flag": True}}, f"{here}.flag", "true"),
        ({dialect: {"type": None}}, f"{here}.type", "null"),
        ({dialect: {"type": ["a"]}}, f"{here}.type", "an array"),
    ]


@pytest.mark.matrix("CE-21", "CE-33", "CE-34", "CE-36", "CE-37", "CE-39", "CE-40", "CE-43", "CE-44", "CE-48", "CE-49")
@pytest.mark.matrix("CE-50", "CE-55", "CE-56", "CE-108")
@pytest.mark.parametrize(("wrong", "member", "got"), WRONG)
def test_what_is_wrong_is_named_with_its_place(wrong: Any, member: str, got: str) -> None:
    with pytest.raises(InvalidMember) as caught:
        compile_filter(wrong)
    assert (caught.value.member, caught.value.got) == (member, got)
    assert str(caught.value).startswith(f"{member}: got {got}, expected ")


@pytest.mark.parametrize(
    "wrong",
    [
        {"x" * 100_000: 1},
        {f"dialect{number}": 1 for number in range(10_000)},
        {"exact": {"type": 10**4_000}},
        {"exact": {"T" * 100_000: "x"}},
        {"exact": "x" * 100_000},
        {"sql": "'" + "x" * 8_000 + "' 'y"},
        {"sql": "type " + "x" * 8_000},
        {"sql": "9" * 8_000},
        {"sql": "9" * 100_000},
    ],
    ids=lambda wrong: str(wrong)[:30],
)
def test_an_error_stays_short_however_long_what_it_is_about(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidMember) as caught:
        compile_filter(wrong)
    assert len(str(caught.value)) < 300


@pytest.mark.matrix("CE-33", "CE-34", "CE-36", "CE-37", "CE-39", "CE-40")
@pytest.mark.parametrize("dialect", ["exact", "prefix", "suffix"])
def test_one_attribute_and_its_text_are_expected(dialect: str) -> None:
    for attributes in ({}, {"type": "a", "id": "b"}, {"": "a"}, {"type": ""}, {"type": 1}):
        with pytest.raises(InvalidMember, match=rf"^filter\.{dialect}"):
            compile_filter({dialect: attributes})
    compile_filter({dialect: {"type": "a"}})


@pytest.mark.matrix("CE-43", "CE-44", "CE-48")
@pytest.mark.parametrize("dialect", ["all", "any"])
def test_an_array_of_at_least_one_filter_is_expected(dialect: str) -> None:
    wrong: tuple[Any, ...] = ([], {}, TYPE, None, "x", 5)
    for content in wrong:
        with pytest.raises(InvalidMember, match=rf"^filter\.{dialect}: .*, expected an array of at least one filter$"):
            compile_filter({dialect: content})


@pytest.mark.matrix("CE-50")
def test_filters_may_be_32_deep_and_256_in_all() -> None:
    assert compile_filter(too_deep(DEEPEST))(EVENT) is False  # 31 times not
    assert compile_filter({"any": [OTHER] * (MOST_FILTERS - 2) + [TYPE]})(EVENT) is True
    nested: Any = TYPE
    for _ in range(100_000):
        nested = {"not": nested}
    with pytest.raises(InvalidMember, match="expected at most 32 inside one another"):
        compile_filter(nested)
    while nested is not TYPE:  # one by one: Python frees nested objects recursively
        nested = nested["not"]
