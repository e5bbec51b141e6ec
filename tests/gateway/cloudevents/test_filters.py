"""Filters: the dialects event by event, their order, what is refused and with which words."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given

from gateway.cloudevents.filter_twin import events, filters, holds, in_sql, random_event, random_filter
from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.dialects import DEEPEST, DIALECT_BASE, MOST_FILTERS, DialectBook
from relaycast_gateway.cloudevents.event import Timestamp
from relaycast_gateway.cloudevents.invalid_member import InvalidMember

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "A-1",
    "source": "/sensors/tn-1",
    "type": "com.github.push.created",
    "subject": "Étoile.PNG",
    "time": Timestamp(1_524_746_889_000_000_000),  # 2018-04-26T12:48:09Z
    "ext": "custom.value",
    "count": 5,
    "debt": -17,
    "flag": True,
    "off": False,
    "seen": Timestamp(1_524_746_889_000_000_120),
    "raw": b"\x00\xff",
    "none": None,
    "data": "com.github",
}

TYPE = {"exact": {"type": "com.github.push.created"}}
OTHER = {"exact": {"type": "com.github.pull"}}
ABSENT = {"exact": {"missing": "x"}}

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


class Asked:
    """A dialect that notes when it is asked: ``{"asked": {"name": ..., "holds": ...}}``."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.book = DialectBook()
        self.book.add("asked", self.dialect)

    def dialect(self, content: Any, member: str) -> Callable[[Mapping[str, object]], bool]:
        if not isinstance(content, dict) or set(content) != {"name", "holds"}:
            raise InvalidMember(member, str(content), "a name and a verdict")

        def ask(attributes: Mapping[str, object]) -> bool:
            self.names.append(content["name"])
            return bool(content["holds"])

        return ask

    def run(self, given_filter: Any) -> tuple[bool, str]:
        """Return the verdict, and who was asked in which order."""
        self.names.clear()
        return compile_filter(given_filter, dialects=self.book)(EVENT), "".join(self.names)


def asked(name: str, verdict: bool) -> dict[str, Any]:
    return {"asked": {"name": name, "holds": verdict}}


@pytest.mark.matrix("CE-42", "CE-46", "CE-47")
def test_filters_are_asked_in_the_order_listed_until_the_result_is_certain() -> None:
    run = Asked().run
    no, yes = asked("n", False), asked("y", True)
    assert run({"any": [no, yes, asked("z", True)]}) == (True, "ny")
    assert run({"any": [asked("a", False), asked("b", False), asked("c", False)]}) == (False, "abc")
    assert run({"all": [asked("c", True), asked("b", True), asked("a", True)]}) == (True, "cba")
    assert run({"all": [yes, no, asked("z", True)]}) == (False, "yn")
    assert run([yes, {"not": asked("m", False)}, no, asked("z", True)]) == (False, "ymn")
    assert run({"any": [{"all": [yes, no]}, {"not": no}, asked("z", True)]}) == (True, "ynn")


def test_a_dialect_is_compiled_once_and_evaluated_each_time() -> None:
    one = Asked()
    predicate = compile_filter({"all": [asked("a", True), asked("b", True)]}, dialects=one.book)
    assert one.names == []
    assert [predicate(EVENT), predicate({})] == [True, True]
    assert one.names == ["a", "b", "a", "b"]


@pytest.mark.matrix("CE-20")
@pytest.mark.parametrize("name", ["exact", "all", "sql", f"{DIALECT_BASE}exact", "./exact"])
def test_a_dialect_of_a_known_name_is_refused(name: str) -> None:
    book = DialectBook()
    with pytest.raises(ValueError, match=r"expected a new name for a dialect, got '.*', which the book has"):
        book.add(name, lambda content, member: lambda attributes: False)
    assert compile_filter(TYPE, dialects=book)(EVENT)


def test_books_are_independent_of_each_other() -> None:
    one = Asked()
    assert one.book.names() == ["exact", "prefix", "suffix", "all", "any", "not", "sql", "asked"]
    with pytest.raises(InvalidMember):
        compile_filter(asked("a", True))
    with pytest.raises(ValueError, match="got 'asked', which the book has"):
        one.book.add("asked", one.dialect)


@pytest.mark.parametrize("name", ["", "two words", "exäct", "a\n"])
def test_a_dialect_has_a_uri_reference_as_its_name(name: str) -> None:
    with pytest.raises(ValueError, match="expected a URI reference as a dialect's name"):
        DialectBook().add(name, lambda content, member: lambda attributes: True)


@pytest.mark.matrix("CE-57")
def test_a_dialect_may_be_named_by_its_absolute_uri() -> None:
    whole = {f"{DIALECT_BASE}all": [{f"{DIALECT_BASE}exact": {"type": "com.github.push.created"}}, {"./not": OTHER}]}
    assert compile_filter(whole)(EVENT) is True
    book = DialectBook()
    book.add("https://example.com/dialects/never", lambda content, member: lambda attributes: False)
    assert compile_filter({"https://example.com/dialects/never": 1}, dialects=book)(EVENT) is False
    with pytest.raises(InvalidMember, match=r'got the dialect "https://example.com/exact", expected one of exact, '):
        compile_filter({"https://example.com/exact": {"type": "x"}})


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
