"""CloudEvents SQL: values, casts, operators, functions, errors with the value that evaluation went on with."""

from typing import Any

import pytest

from gateway.cloudevents.sql_outcome import EVENT, LEAST, MOST, Outcome, outcome
from relaycast_gateway.cloudevents import SqlEvaluationError, SqlParseError, compile_filter, evaluate_sql
from shared_vectors import OWN, Case, cases_in, over, shared


def event_of(case: Case) -> dict[str, Any]:
    """Return the case's event, or any event with what the case overrides."""
    required = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t"}
    event: dict[str, Any] = case.get("event") or required | case.get("eventOverrides", {})
    return event


def test_the_own_cases_are_official_ones_and_of_every_file() -> None:
    own, official = cases_in(OWN / "cesql/cases.json"), cases_in(shared("vectors/cesql/cases.json"))
    assert all(case in official for case in own)
    assert {case["file"] for case in own} == {case["file"] for case in official}


@pytest.mark.matrix("CE-56")
@over("cesql/cases.json")
def test_the_official_cases_give_what_they_say(cases: list[Case]) -> None:
    assert len(cases) >= 100
    for case in cases:
        event = event_of(case)
        value, error = outcome(case["expression"], event)
        assert error == case.get("error"), case
        if "result" in case:
            assert (type(value), value) == (type(case["result"]), case["result"]), case
        if error != "parse":
            passes = value is True and error is None
            assert compile_filter({"sql": str(case["expression"])})(event) is passes, case


RECREATIONS: dict[str, dict[str, Any]] = {
    "source LIKE 'https://%'": {"prefix": {"source": "https://"}},
    "myext LIKE 'custom%'": {"prefix": {"myext": "custom"}},
    "type like '%.error'": {"suffix": {"type": ".error"}},
    "myext LIKE '%ext'": {"suffix": {"myext": "ext"}},
    "id = 'myId'": {"exact": {"id": "myId"}},
    "myext = 'customext'": {"exact": {"myext": "customext"}},
    "id LIKE 'my%' AND source LIKE '%.ca'": {"all": [{"prefix": {"id": "my"}}, {"suffix": {"source": ".ca"}}]},
    "type LIKE 'example.%' AND myext LIKE 'custom%'": {
        "all": [{"prefix": {"type": "example."}}, {"prefix": {"myext": "custom"}}]
    },
    "id LIKE 'my%' OR source LIKE '%.ca'": {"any": [{"prefix": {"id": "my"}}, {"suffix": {"source": ".ca"}}]},
    "(id = 'myId' AND type LIKE '%.success') OR "
    "(id = 'notmyId' AND source LIKE 'http://%' AND type LIKE '%.warning')": {
        "any": [
            {"all": [{"exact": {"id": "myId"}}, {"suffix": {"type": ".success"}}]},
            {
                "all": [
                    {"exact": {"id": "notmyId"}},
                    {"prefix": {"source": "http://"}},
                    {"suffix": {"type": ".warning"}},
                ]
            },
        ]
    },
}


_CONJUNCTIVE = {
    "all": [
        {"any": [{"exact": {"id": "myId"}}, {"suffix": {"type": ".success"}}]},
        {"any": [{"exact": {"id": "notmyId"}}, {"prefix": {"source": "https://"}}, {"suffix": {"type": ".warning"}}]},
    ]
}


_CONJUNCTION = (
    "(id = 'myId' OR type LIKE '%.success') AND (id = 'notmyId' OR source LIKE 'https://%' OR type LIKE '%.warning')"
)
RECREATIONS[_CONJUNCTION] = _CONJUNCTIVE
RECREATIONS[f"{_CONJUNCTION} AND (myext = 'customext')"] = {
    "all": [*_CONJUNCTIVE["all"], {"exact": {"myext": "customext"}}]
}


@pytest.mark.matrix("CE-51", "X-04")
@over("cesql/cases.json")
def test_the_recreations_select_the_same_as_dialect_filters(cases: list[Case]) -> None:
    recreations = [case for case in cases if case["file"] == "subscriptions_api_recreations"]
    assert len(recreations) >= 8
    for case in recreations:
        event = event_of(case)
        assert compile_filter(RECREATIONS[case["expression"]])(event) is case["result"], case


@pytest.mark.matrix("CE-51", "X-04")
@pytest.mark.parametrize("expression", RECREATIONS)
@pytest.mark.parametrize("myext", [None, "customext", "custom", "ext", "x"])
@pytest.mark.parametrize("id_", ["myId", "notmyId"])
@pytest.mark.parametrize("type_", ["example.event.success", "example.event.warning", "com.github.error"])
def test_each_recreation_selects_the_same_events_in_both_languages(
    expression: str, myext: str | None, id_: str, type_: str
) -> None:
    for source in ("https://example.com", "http://www.some-website.ca", "/x"):
        event = {"specversion": "1.0", "id": id_, "source": source, "type": type_}
        event |= {} if myext is None else {"myext": myext}
        selected = compile_filter(RECREATIONS[expression])(event)
        assert compile_filter({"sql": expression})(event) is selected


@pytest.mark.matrix("CE-56")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # literals
        ("2147483647", (MOST, None)),
        ("-2147483648", (LEAST, None)),
        ("+7", (7, None)),
        ("007", (7, None)),
        ("2147483648", (False, "parse")),
        ("-2147483649", (False, "parse")),
        ("- 2147483648", (False, "parse")),  # only a sign at the digits belongs to the literal
        ("99999999999999999999999999", (False, "parse")),
        ("+ 7", (False, "parse")),
        ("+'7'", (False, "parse")),
        ("1.5", (False, "parse")),
        ("''", ("", None)),
        ('"it\'s"', ("it's", None)),
        (r"'it\'s'", ("it's", None)),
        (r"'say \"x\"'", (r"say \"x\"", None)),  # only the own quote is escaped
        (r"'a\nb\\c'", (r"a\nb\\c", None)),
        ("'a\nb\t☃'", ("a\nb\t☃", None)),
        ("'open", (False, "parse")),
        (r"'open\'", (False, "parse")),
        ("'a' 'b'", (False, "parse")),
        ("'a''b'", (False, "parse")),
        # attributes
        ("count", (5, None)),
        ("flag", (True, None)),
        ("time", ("2018-04-26T12:48:09Z", None)),
        ("raw", ("AP8=", None)),
        ("large", ("1099511627776", None)),  # no integer of 32 bits: text
        ("missing", (False, "missingAttribute")),
        ("null", (False, "missingAttribute")),
        ("data", (False, "missingAttribute")),
        ("Count", (5, None)),  # looked up in lower case
        ("NUMBER + cOuNt", (15, None)),
        ("EXISTS Count", (True, None)),
        ("EXISTS Missing", (False, None)),
        ("TYPE LIKE 'com.%'", (True, None)),
        ("Data", (False, "missingAttribute")),
        ("my_ext", (False, "parse")),
        ("EXISTS count", (True, None)),
        ("exists null", (False, None)),
        ("EXISTS data", (False, None)),
        ("EXISTS 'count'", (False, "parse")),
        ("EXISTS (count)", (False, "parse")),
        ("NOT EXISTS missing", (True, None)),
        # precedence: prefixes, LIKE and IN, * / %, + -, comparisons, logic; each from the left
        ("2 + 3 * 4", (14, None)),
        ("20 / 2 * 5 % 7", (1, None)),
        ("10 - 4 - 3", (3, None)),
        ("10 -4", (6, None)),
        ("10-4", (6, None)),
        ("--5", (5, None)),
        ("-count * 2", (-10, None)),
        ("1 + 1 = 2", (True, None)),
        ("NOT TRUE = FALSE", (True, None)),
        ("NOT 1 = 2", (False, None)),  # (NOT 1) = 2
        ("1 < 2 = TRUE", (True, None)),
        ("TRUE OR FALSE AND FALSE", (False, None)),
        ("FALSE AND TRUE OR TRUE", (True, None)),
        ("TRUE XOR TRUE OR TRUE", (True, None)),
        ("TRUE OR TRUE XOR TRUE", (False, None)),
        ("3 + 1 IN (1)", (4, None)),  # 3 + (1 IN (1))
        ("-5 LIKE '-_'", (True, None)),
        ("NOT 'x' LIKE 'x'", (False, "cast")),  # (NOT 'x') LIKE 'x': 'true' LIKE 'x'
        ("NOT 'x' LIKE 'true'", (True, "cast")),
        ("NOT 'true' LIKE 'false'", (True, None)),
        ("-'5' IN (-5)", (True, None)),
        ("TRUE AND 'x' LIKE 'x'", (True, None)),
        ("'x' LIKE 'x' IN (TRUE)", (True, None)),
        ("'x' NOT LIKE 'y' NOT IN (FALSE)", (True, None)),
        # arithmetic
        ("7 / -2", (-3, None)),
        ("-7 / 2", (-3, None)),
        ("-7 % 3", (-1, None)),
        ("7 % -3", (1, None)),
        ("2147483647 + 1", (0, "math")),
        ("-2147483648 - 1", (0, "math")),
        ("65536 * 32768", (0, "math")),
        ("-2147483648 / -1", (0, "math")),
        ("-2147483648 % -1", (0, None)),
        ("-(-2147483648)", (0, "math")),
        ("1 / 0", (0, "math")),
        ("1 % 0", (0, "math")),
        ("1 / missing", (0, "missingAttribute")),
        ("1 / 'x'", (0, "cast")),
        ("TRUE + TRUE", (2, None)),
        ("'+5' - '-3'", (8, None)),
        # equality casts the left to the type of the right
        ("'5' = 5", (True, None)),
        ("5 = '5'", (True, None)),
        ("5 = '05'", (False, None)),
        ("'05' = 5", (True, None)),
        ("'x' = 5", (False, "cast")),
        ("'x' != 5", (True, "cast")),  # goes on as 0 != 5
        ("7 = TRUE", (True, None)),
        ("TRUE = 7", (False, None)),
        ("TRUE = 1", (True, None)),
        ("TRUE = 'true'", (True, None)),
        ("TRUE = 'TRUE'", (False, None)),
        ("'TrUe' = TRUE", (True, None)),
        ("flag = 'true'", (True, None)),
        ("number > 9", (True, None)),
        ("number > count", (True, None)),
        ("'b' > 'a'", (False, "cast")),
        ("'a' < missing", (False, "missingAttribute")),
        # casts
        ("INT('2147483648')", (0, "cast")),
        ("INT('-2147483648')", (LEAST, None)),
        ("INT('+00000000000000012')", (12, None)),
        ("INT(' 1')", (0, "cast")),
        ("INT('1\n')", (0, "cast")),
        ("INT('')", (0, "cast")),
        ("INT('+')", (0, "cast")),
        ("INT('\u0661')", (0, "cast")),
        ("INT('1_0')", (0, "cast")),
        ("BOOL('yes')", (False, "cast")),
        ("BOOL(' true')", (False, "cast")),
        ("STRING(-0)", ("0", None)),
        ("STRING(missing)", ("", "missingAttribute")),
        ("int(number) = 10 aNd bool(flag)", (True, None)),
        # a cast that fails goes on with the default of its type, and the first error is kept
        ("NOT 'x'", (True, "cast")),
        ("-'x'", (0, "cast")),
        ("'x' + 5", (5, "cast")),
        ("5 - 'x' * 2", (5, "cast")),
        ("INT('x') + 1", (1, "cast")),
        ("BOOL('x') = FALSE", (True, "cast")),
        ("NOT BOOL('x') AND INT('y') = 0", (True, "cast")),
        ("'x' < 1", (True, "cast")),
        ("'x' >= 1", (False, "cast")),
        ("'x' OR TRUE", (True, "cast")),
        ("'x' AND missing", (False, "cast")),
        ("'x' OR missing", (False, "cast")),
        ("CONCAT(INT('x'), 'a')", ("0a", "cast")),
        ("LEFT('abc', 1 + 'x')", ("a", "cast")),
        ("SUBSTRING('abc', 'x', 2)", ("", "cast")),
        ("ABS('x' - 5)", (5, "cast")),
        ("missing + 'x'", (0, "missingAttribute")),
        ("'x' + 2147483647 + 1", (0, "cast")),
        ("FALSE AND NOT 'x'", (False, None)),
        # logic
        ("FALSE AND missing", (False, None)),
        ("TRUE OR missing", (True, None)),
        ("missing AND FALSE", (False, "missingAttribute")),
        ("missing OR TRUE", (False, "missingAttribute")),
        ("TRUE XOR missing", (False, "missingAttribute")),
        ("FALSE AND 'x'", (False, None)),
        ("TRUE AND 'x'", (False, "cast")),
        ("1 AND -1", (True, None)),
        ("NOT 0", (True, None)),
        ("NOT (missing = 'x')", (False, "missingAttribute")),
        # IN casts each element to the type of the left, up to the first that is equal
        ("5 IN ('4', '5', 'x')", (True, None)),
        ("5 IN ('x', 5)", (True, "cast")),
        ("0 IN ('x', 5)", (True, "cast")),
        ("5 NOT IN ('x', 6)", (True, "cast")),
        ("count IN ('x', number, 5)", (True, "cast")),
        ("count IN ('4', number)", (False, None)),
        ("count IN (id, 5)", (True, "cast")),
        ("number IN (9 + 1)", (True, None)),
        ("missing IN ('x')", (False, "missingAttribute")),
        ("missing NOT IN ('x')", (False, "missingAttribute")),
        ("'x' IN ('x', missing)", (True, None)),
        ("'y' IN ('x', missing)", (False, "missingAttribute")),
        ("'x' IN ()", (False, "parse")),
        ("'x' IN 'x'", (False, "parse")),
        ("'x' NOT 'x'", (False, "parse")),
        # LIKE
        ("missing LIKE '%'", (False, "missingAttribute")),
        ("missing NOT LIKE '%'", (False, "missingAttribute")),
        ("id LIKE id", (False, "parse")),
        ("'ABC' LIKE 'abc'", (False, None)),
        ("count LIKE '5'", (True, None)),
        ("time LIKE '2018-%Z'", (True, None)),
        # functions
        ("LENGTH('☃é𐍈')", (3, None)),
        ("length(flag)", (4, None)),
        ("LENGTH()", (False, "missingFunction")),
        ("LENGTH('a', 'b')", (False, "missingFunction")),
        ("NOSUCH(missing)", (False, "missingFunction")),
        ("1 + NOSUCH()", (0, "missingFunction")),
        ("ABC1()", (False, "parse")),
        ("_A()", (False, "parse")),
        ("CONCAT()", ("", None)),
        ("CONCAT(1, TRUE, 'x')", ("1truex", None)),
        ("CONCAT('a', missing)", ("", "missingAttribute")),
        ("CONCAT_WS(', ')", ("", None)),
        ("CONCAT_WS(0, 1, 2)", ("102", None)),
        ("LOWER('ÀÉ')", ("àé", None)),
        ("UPPER(TRUE)", ("TRUE", None)),
        ("TRIM('\u3000\xa0\u2028 a b \t\r\n')", ("a b", None)),
        ("TRIM('\x1c\u200b\x00 a \x1f')", ("\x1c\u200b\x00 a \x1f", None)),  # no white space of Unicode
        ("LEFT('abc', 0)", ("", None)),
        ("LEFT('abc', -1)", ("abc", "functionEvaluation")),
        ("LENGTH(LEFT('abc', -1))", (0, "functionEvaluation")),
        ("LEFT(LEFT('abc', -1), 2)", ("", "functionEvaluation")),
        ("LEFT('abc', 'x')", ("", "cast")),
        ("RIGHT('abc', 3)", ("abc", None)),
        ("RIGHT('abc', 0)", ("", None)),
        ("RIGHT('abc', 9)", ("abc", None)),
        ("RIGHT('abc', -2147483648)", ("abc", "functionEvaluation")),
        ("SUBSTRING('abcdef', -2)", ("ef", None)),
        ("SUBSTRING('abcdef', -6)", ("abcdef", None)),
        ("SUBSTRING('abcdef', -7)", ("", "functionEvaluation")),
        ("SUBSTRING('abcdef', 6)", ("f", None)),
        ("SUBSTRING('abcdef', 7)", ("", "functionEvaluation")),
        ("SUBSTRING('abcdef', -3, 2)", ("de", None)),
        ("SUBSTRING('abcdef', 5, 2147483647)", ("ef", None)),
        ("SUBSTRING('abcdef', 2, 0)", ("", None)),
        ("SUBSTRING('abcdef', 2, -1)", ("", "functionEvaluation")),
        ("SUBSTRING('', 0)", ("", None)),
        ("SUBSTRING('', 1)", ("", "functionEvaluation")),
        ("ABS(-2147483647)", (MOST, None)),
        ("abs('-5')", (5, None)),
        ("ABS(missing)", (0, "missingAttribute")),
        ("ABS(ABS(-2147483648))", (0, "math")),
        ("(ABS(-2147483648))", (MOST, "math")),
        # the result of an error is the zero value of the whole expression's type
        ("true AND (missing = '')", (False, "missingAttribute")),
        ("missing * 5", (0, "missingAttribute")),
        ("CONCAT('a', 1 / 0)", ("", "math")),
        ("1 != 1 / 0", (False, "math")),
        # no expressions
        ("", (False, "parse")),
        (" \t\r\n", (False, "parse")),
        ("()", (False, "parse")),
        ("(1", (False, "parse")),
        ("1)", (False, "parse")),
        ("1 2", (False, "parse")),
        ("AND", (False, "parse")),
        ("1 AND", (False, "parse")),
        ("1 == 1", (False, "parse")),
        ("1 ! = 1", (False, "parse")),
        ("ABS(1,)", (False, "parse")),
        ("ABS(,1)", (False, "parse")),
        ("ABS (1)", (1, None)),
        ("1 -- comment", (0, "missingAttribute")),
        ("1;", (False, "parse")),
        ("id\u00a0= 'x'", (False, "parse")),
        ("true.x", (False, "parse")),
    ],
)
def test_an_expression_has_a_value_and_an_error(expression: str, expected: Outcome) -> None:
    value, error = outcome(expression)
    assert (value, type(value), error) == (expected[0], type(expected[0]), expected[1])


def test_an_error_says_what_happened() -> None:
    with pytest.raises(
        SqlParseError, match=r"^character 6: got '\)', expected a literal, an attribute, a function or \($"
    ):
        evaluate_sql("1 + ()", EVENT)
    with pytest.raises(SqlEvaluationError, match=r"^missingAttribute: the event has no attribute missing$"):
        evaluate_sql("missing", EVENT)
    with pytest.raises(SqlEvaluationError, match=r"^functionEvaluation: SUBSTRING: got position 9, expected -1 to 1$"):
        evaluate_sql("SUBSTRING('a', 9)", EVENT)


def test_a_literal_that_a_reader_has_taken_from_its_text_is_an_expression() -> None:
    assert outcome(True) == (True, None)
    assert outcome(-10) == (-10, None)


def test_an_event_stays_as_it_is() -> None:
    event = dict(EVENT)
    evaluate_sql("count = '5' AND time = 'x'", event)
    assert event == EVENT
