"""Filters: the dialects event by event, their order, what is refused and with which words."""

from random import Random
from typing import Any

import pytest
from hypothesis import given

from gateway.cloudevents.filter_events import ABSENT, EVENT, OTHER, TYPE
from gateway.cloudevents.filter_twin import events, filters, holds, in_sql, random_event, random_filter
from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.invalid_member import InvalidMember

ROWS: list[tuple[dict[str, Any], bool]] = [
    # exact: equality, case, what is absent, what is no text
    ({"exact": {"type": "com.github.push.created"}}, True),
    ({"exact": {"type": "com.github.push"}}, False),
    ({"exact": {"type": "com.github.push.created."}}, False),
    ({"exact": {"type": "Com.github.push.created"}}, False),
    ({"exact": {"id": "A-1"}}, True),
    ({"exact": {"id": "a-1"}}, False),
    ({"exact": {"source": "/sensors/tn-1"}}, True),
    ({"exact": {"source": "/sensors/tn-1/"}}, False),
    ({"exact": {"specversion": "1.0"}}, True),
    ({"exact": {"subject": "Étoile.PNG"}}, True),
    ({"exact": {"subject": "E\u0301toile.PNG"}}, False),
    ({"exact": {"ext": "custom.value"}}, True),
    ({"exact": {"ext": "CUSTOM.VALUE"}}, False),
    ({"exact": {"missing": "custom.value"}}, False),
    ({"exact": {"none": "None"}}, False),
    ({"exact": {"none": "null"}}, False),
    ({"exact": {"count": "5"}}, True),
    ({"exact": {"count": "05"}}, False),
    ({"exact": {"count": "5.0"}}, False),
    ({"exact": {"debt": "-17"}}, True),
    ({"exact": {"flag": "true"}}, True),
    ({"exact": {"flag": "True"}}, False),
    ({"exact": {"flag": "1"}}, False),
    ({"exact": {"off": "false"}}, True),
    ({"exact": {"time": "2018-04-26T12:48:09Z"}}, True),
    ({"exact": {"time": "2018-04-26T12:48:09.0Z"}}, False),
    ({"exact": {"time": "2018-04-26T14:48:09+02:00"}}, False),
    ({"exact": {"seen": "2018-04-26T12:48:09.00000012Z"}}, True),
    ({"exact": {"seen": "2018-04-26T12:48:09Z"}}, False),
    ({"exact": {"raw": "AP8="}}, True),
    # prefix
    ({"prefix": {"type": "com.github."}}, True),
    ({"prefix": {"type": "com.github.push.created"}}, True),
    ({"prefix": {"type": "com.github.push.created.x"}}, False),
    ({"prefix": {"type": "COM."}}, False),
    ({"prefix": {"type": "github"}}, False),
    ({"prefix": {"source": "/sensors/"}}, True),
    ({"prefix": {"subject": "É"}}, True),
    ({"prefix": {"subject": "é"}}, False),
    ({"prefix": {"ext": "custom"}}, True),
    ({"prefix": {"ext": "Custom"}}, False),
    ({"prefix": {"missing": "custom"}}, False),
    ({"prefix": {"none": "N"}}, False),
    ({"prefix": {"count": "5"}}, True),
    ({"prefix": {"debt": "-1"}}, True),
    ({"prefix": {"debt": "1"}}, False),
    ({"prefix": {"flag": "t"}}, True),
    ({"prefix": {"flag": "T"}}, False),
    ({"prefix": {"time": "2018-04-26T"}}, True),
    ({"prefix": {"time": "2018-04-27"}}, False),
    ({"prefix": {"seen": "2018-04-26T12:48:09.000000"}}, True),
    # suffix
    ({"suffix": {"type": ".created"}}, True),
    ({"suffix": {"type": "com.github.push.created"}}, True),
    ({"suffix": {"type": "x.com.github.push.created"}}, False),
    ({"suffix": {"type": ".Created"}}, False),
    ({"suffix": {"type": "push"}}, False),
    ({"suffix": {"source": "tn-1"}}, True),
    ({"suffix": {"subject": ".PNG"}}, True),
    ({"suffix": {"subject": ".png"}}, False),
    ({"suffix": {"ext": "value"}}, True),
    ({"suffix": {"missing": "value"}}, False),
    ({"suffix": {"none": "e"}}, False),
    ({"suffix": {"debt": "7"}}, True),
    ({"suffix": {"debt": "-"}}, False),
    ({"suffix": {"off": "lse"}}, True),
    ({"suffix": {"time": ":09Z"}}, True),
    ({"suffix": {"time": ":09z"}}, False),
    ({"suffix": {"seen": "12Z"}}, True),
    # all, any, not
    ({"all": [TYPE]}, True),
    ({"all": [TYPE, {"prefix": {"ext": "custom"}}, {"suffix": {"subject": ".PNG"}}]}, True),
    ({"all": [TYPE, OTHER]}, False),
    ({"all": [OTHER, TYPE]}, False),
    ({"all": [TYPE, ABSENT]}, False),
    ({"any": [OTHER]}, False),
    ({"any": [OTHER, TYPE]}, True),
    ({"any": [TYPE, OTHER]}, True),
    ({"any": [ABSENT, {"exact": {"flag": "true"}}]}, True),
    ({"any": [OTHER, ABSENT]}, False),
    ({"not": TYPE}, False),
    ({"not": OTHER}, True),
    ({"not": ABSENT}, True),
    ({"not": {"prefix": {"missing": "x"}}}, True),
    ({"not": {"suffix": {"missing": "x"}}}, True),
    ({"not": {"not": TYPE}}, True),
    ({"not": {"any": [OTHER, {"not": {"all": [TYPE, {"exact": {"count": "5"}}]}}]}}, True),
    ({"all": [{"any": [OTHER, TYPE]}, {"not": {"exact": {"flag": "false"}}}]}, True),
]


@pytest.mark.matrix("CE-17", "CE-18", "CE-32", "CE-35", "CE-38", "CE-41", "CE-45", "CE-49", "CE-51", "CE-52", "CE-53")
@pytest.mark.parametrize(("given_filter", "expected"), ROWS, ids=str)
def test_a_filter_selects_an_event(given_filter: dict[str, Any], expected: bool) -> None:
    assert compile_filter(given_filter)(EVENT) is expected
    assert compile_filter([given_filter])(EVENT) is expected
    assert compile_filter({"not": given_filter})(EVENT) is not expected


@pytest.mark.matrix("CE-19", "CE-108")
@pytest.mark.parametrize("nothing", [{}, [], ()])
def test_no_filter_selects_everything(nothing: Any) -> None:
    assert compile_filter(nothing)(EVENT) is True
    assert compile_filter(nothing)({}) is True


@pytest.mark.matrix("CE-109")
@pytest.mark.parametrize(
    ("example", "selected", "left_out"),
    [
        ({"exact": {"type": "com.github.push"}}, {"type": "com.github.push"}, {"type": "com.github.Push"}),
        ({"prefix": {"type": "com.github."}}, {"type": "com.github.issue"}, {"type": "com.example"}),
        ({"prefix": {"type": "com.github.issue"}}, {"type": "com.github.issue.opened"}, {"type": "com.github"}),
        ({"prefix": {"type": "com.example."}}, {"type": "com.example.object.deleted"}, {"type": "com.exampl"}),
        ({"suffix": {"type": ".created"}}, {"type": "com.x.created"}, {"type": "com.x.created.y"}),
        (
            {
                "all": [
                    {"exact": {"type": "com.github.push"}},
                    {"exact": {"subject": "https://github.com/cloudevents/spec"}},
                ]
            },
            {"type": "com.github.push", "subject": "https://github.com/cloudevents/spec"},
            {"type": "com.github.push"},
        ),
        (
            {
                "any": [
                    {"exact": {"type": "com.github.push"}},
                    {"exact": {"subject": "https://github.com/cloudevents/spec"}},
                ]
            },
            {"type": "com.github.pull", "subject": "https://github.com/cloudevents/spec"},
            {"type": "com.github.pull", "subject": "https://github.com"},
        ),
        ({"not": {"exact": {"type": "com.github.push"}}}, {"type": "x"}, {"type": "com.github.push"}),
    ],
    ids=str,
)
def test_the_examples_of_the_text_do_what_it_says(
    example: dict[str, Any], selected: dict[str, str], left_out: dict[str, str]
) -> None:
    predicate = compile_filter(example)
    assert predicate(selected)
    assert not predicate(left_out)


@pytest.mark.matrix("CE-54")
def test_every_filter_of_an_array_has_to_hold() -> None:
    assert compile_filter([TYPE, {"exact": {"count": "5"}}])(EVENT) is True
    assert compile_filter([TYPE, OTHER])(EVENT) is False
    assert compile_filter([OTHER, TYPE])(EVENT) is False


def test_several_attributes_in_one_object_have_to_hold_together_where_that_is_switched_on() -> None:
    both = {"exact": {"type": "com.github.push.created", "count": "5"}}
    one = {"exact": {"type": "com.github.push.created", "count": "6"}}
    assert compile_filter(both, multi_attribute=True)(EVENT) is True
    assert compile_filter(one, multi_attribute=True)(EVENT) is False
    assert compile_filter({"not": one}, multi_attribute=True)(EVENT) is True
    with pytest.raises(InvalidMember, match="got 0 attributes, expected an object of attributes and texts"):
        compile_filter({"exact": {}}, multi_attribute=True)


@pytest.mark.parametrize(
    "hostile", ["') or True or ('", "\\", "{v0}", "v0", "__import__('os')", "\x00", "a\nb", "\ud800"]
)
def test_what_a_subscriber_wrote_is_compared_and_never_run(hostile: str) -> None:
    for dialect in ("exact", "prefix", "suffix"):
        predicate = compile_filter({dialect: {"ext": hostile}})
        assert predicate({"ext": hostile}) is True
        assert predicate({"ext": "custom"}) is False


@pytest.mark.matrix("CE-56")
def test_an_expression_selects_where_it_is_true_without_an_error() -> None:
    def selected(expression: str) -> bool:
        return compile_filter({"sql": expression})(EVENT)

    assert selected("type LIKE 'com.github.%' AND count = 5") is True
    assert selected("count = 6") is False
    assert selected("missing = 'x'") is False
    assert selected("missing = 'x' OR TRUE") is False  # an error, whatever the value
    assert selected("TRUE OR missing = 'x'") is True  # which is not met here
    assert selected("1") is False  # no boolean
    assert selected("'true'") is False
    assert selected("LEFT('true', -1)") is False
    assert selected("NOSUCH(type)") is False
    assert compile_filter({"not": {"sql": "missing = 'x'"}})(EVENT) is True


@pytest.mark.matrix("CE-51")
@given(filters, events)
def test_compiled_filters_agree_with_the_definition(given_filter: dict[str, Any], event: dict[str, Any]) -> None:
    assert compile_filter(given_filter)(event) is holds(given_filter, event)


@pytest.mark.matrix("X-04")
@given(filters, events)
def test_a_filter_and_its_expression_select_the_same_events(
    given_filter: dict[str, Any], event: dict[str, Any]
) -> None:
    event = {"type": "a", "source": "b", **event}  # EXISTS takes them for granted
    assert compile_filter({"sql": in_sql(given_filter)})(event) is compile_filter(given_filter)(event)


@pytest.mark.slow
@pytest.mark.matrix("CE-51", "X-04")
@pytest.mark.parametrize("seed", range(4))
def test_a_hundred_thousand_random_filters_agree_with_the_definition(seed: int) -> None:
    random = Random(seed)
    selected = 0
    for number in range(25_000):
        given_filter, event = random_filter(random), random_event(random)
        expected = holds(given_filter, event)
        selected += expected
        assert compile_filter(given_filter)(event) is expected, (given_filter, event)
        if number % 5 == 0:
            assert compile_filter({"sql": in_sql(given_filter)})(event) is expected, (given_filter, event)
    assert 5_000 < selected < 20_000  # both verdicts are met
