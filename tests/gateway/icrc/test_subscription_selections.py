"""What a subscription selects: filter, skip and stop, by field or by key, and its other keys."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    DAN,
    FIVE,
    RegistryOffice,
    err,
    office_of,
    ok,
    pairs,
    registered,
    running,
)
from relaycast_gateway.icrc import Skip
from relaycast_gateway.icrc.names import FILTER, FILTER_LANGUAGE, PRIORITY, SKIP, STOPPED, SUBSCRIBER_URL, TRUSTED
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag, array, boolean, from_json, nat, text


@pytest.mark.matrix("ICRC72-35")
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("a ==", "filter, character 2: expected"),
        ("a == 1 & ", "filter, character 10: expected"),
        ("[[[[[[[[[a]]]]]]]]]", "filter, character 9: expected"),
        ("x" * 1_025, "filter, character 1025: expected"),
    ],
)
def test_a_filter_that_is_none_is_refused_and_nothing_is_stored(given: str, reason: str) -> None:
    office = office_of("com.foo", "com.bar")
    office.subscribe(BOB, "com.bar", filter="a == 1")
    before = office.state()
    by_key = pairs({FILTER: text(given)})
    answers = [
        *office.subscribe(CLEO, "com.foo", filter=given),
        *office.subscribe(CLEO, "com.foo", config=by_key),
        office.change(BOB, "subscription", subscriptionId=1, newFilter=given),
        office.change(BOB, "subscription", subscriptionId=1, newConfig=by_key),
    ]
    for answer in answers:
        error: Any = answer.value
        assert error.tag == "ImproperConfig"
        assert error.value.startswith(reason)
    assert office.state() == before


@pytest.mark.matrix("ICRC72-36", "ICRC72-46")
@pytest.mark.parametrize(
    ("by_key", "field", "expected"),
    [
        (nat(5), FIVE, Skip(5)),
        (array(nat(5)), FIVE, Skip(5)),
        (array(nat(5), nat(2)), {0: 5, 1: 2}, Skip(5, 2)),
        (nat(1), {0: 1, 1: None}, Skip(1)),
        (nat(1 << 15_000), {0: 1 << 15_000, 1: None}, Skip(1 << 15_000)),
        (array(nat(3), nat(1 << 70)), {0: 3, 1: 1 << 70}, Skip(3, 1 << 70)),
    ],
)
def test_a_skip_is_asked_for_by_key_or_by_field(
    by_key: Icrc16, field: Mapping[int, int | None], expected: Skip
) -> None:
    office = office_of("com.foo")
    office.subscribe(BOB, "com.foo", config=pairs({SKIP: by_key}))
    office.subscribe(CLEO, "com.foo", skip=field)
    again = RegistryOffice(office.store)
    for each in (office, again):
        for subscription_id in (1, 2):
            assert registered(each, subscription_id).skip == expected
            assert each.subscription(subscription_id)["skip"] == field
    assert again.kept() == office.kept()


@pytest.mark.matrix("ICRC72-36")
@pytest.mark.parametrize(
    "item",
    [
        {"skip": {0: 0, 1: None}},
        {"skip": {0: 0, 1: 3}},
        {"config": pairs({SKIP: nat(0)})},
        {"config": pairs({SKIP: array(nat(0), nat(1))})},
    ],
)
def test_a_divisor_of_zero_is_refused(item: dict[str, Any]) -> None:
    office = office_of("com.foo")
    before = office.state()
    (answer,) = office.subscribe(BOB, "com.foo", **item)
    error: Any = answer.value
    assert error.tag == "ImproperConfig"
    assert error.value.endswith("expected a divisor of at least 1, got 0")
    assert office.state() == before


@pytest.mark.matrix("ICRC72-39")
@pytest.mark.parametrize(
    "item",
    [
        {"filter": "a == 1", "config": pairs({FILTER: text("a == 2")})},
        {"filter": "", "config": pairs({FILTER: text("a == 2")})},
        {"skip": FIVE, "config": pairs({SKIP: nat(4)})},
        {"skip": {0: 5, 1: 1}, "config": pairs({SKIP: nat(5)})},
    ],
)
def test_a_field_and_a_key_that_differ_are_refused(item: dict[str, Any]) -> None:
    office = office_of("com.foo")
    before = office.state()
    (answer,) = office.subscribe(BOB, "com.foo", **item)
    error: Any = answer.value
    assert (error.tag, "what the field says" in error.value or "that the field says" in error.value) == (
        "ImproperConfig",
        True,
    )
    assert office.state() == before


@pytest.mark.matrix("ICRC72-39", "ICRC72-46")
def test_a_field_alone_or_a_key_alone_or_both_alike_are_taken() -> None:
    keys = pairs({FILTER: text("a == 1"), SKIP: array(nat(5), nat(7))})
    items: list[dict[str, Any]] = [
        {"filter": "a == 1", "skip": {0: 5, 1: 7}},
        {"config": keys},
        {"filter": "a == 1", "skip": {0: 5, 1: 2}, "config": keys},  # offsets 2 and 7 select the same
    ]
    for number, item in enumerate(items):
        office = office_of("com.foo")
        assert office.subscribe(BOB, "com.foo", **item) == [ok(1)], number
        found = registered(office)
        assert (found.filter, found.skip and found.skip.selects(7)) == ("a == 1", True)
        assert found.selects is not None
        assert [found.selects(from_json({"a": it})) for it in (1, 2)] == [True, False]


@pytest.mark.matrix("ICRC72-46", "ICRC72-101")
@pytest.mark.parametrize(
    ("field", "key", "is_stopped"),
    [
        (None, None, False),
        (False, None, False),
        (True, None, True),
        (None, boolean(True), True),
        (None, boolean(False), False),
        (False, boolean(True), True),  # a field that is not opt in the text: false may mean nothing
        (True, boolean(False), True),
    ],
)
def test_field_or_key_stops_a_subscription(field: bool | None, key: Icrc16 | None, is_stopped: bool) -> None:
    office = office_of("com.foo")
    office.subscribe(BOB, "com.foo", stopped=field, config=pairs({} if key is None else {STOPPED: key}))
    assert office.subscription(1)["stopped"] is is_stopped
    assert bool(running(office, "com.foo")) is not is_stopped


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (FILTER, nat(1), "expected Text, got Nat"),
        (STOPPED, text("true"), "expected Bool, got Text"),
        (SKIP, text("5"), "expected Nat, Array[Nat] or Array[Nat, Nat], got Text"),
        (TRUSTED, NOTHING, "expected Bool, got Option"),
        (PRIORITY, Icrc16(Tag.INT, 3), f"expected a Nat of at most {2**63 - 1}, got Int"),
        (PRIORITY, nat(1 << 63), f"expected a Nat of at most {2**63 - 1}, got {1 << 63}"),
        (PRIORITY, nat(1 << 15_000), f"expected a Nat of at most {2**63 - 1}, got Nat"),
        (SUBSCRIBER_URL, nat(1), "expected Text, got Nat"),
        (SUBSCRIBER_URL, text("ftp://a.example"), "expected a URL of http or https, got 'ftp://a.example'"),
        (SUBSCRIBER_URL, text("http://"), "expected a URL of http or https, got 'http://'"),
        (SUBSCRIBER_URL, text("http://a:b"), "expected a URL of http or https, got 'http://a:b'"),
        (SUBSCRIBER_URL, text("http://a\r\nX: y"), "expected a URL of http or https, got 'http://a\\r\\nX: y'"),
        (SUBSCRIBER_URL, text("http://u:p@a"), "expected a URL without user, password, query and fragment"),
        (SUBSCRIBER_URL, text("http://a?b=c"), "expected a URL without user, password, query and fragment"),
    ],
)
def test_a_key_of_another_form_is_refused(key: str, value: Icrc16, reason: str) -> None:
    office = office_of("com.foo")
    before = office.state()
    assert office.subscribe(BOB, "com.foo", config=pairs({key: value})) == [err("ImproperConfig", f"{key}: {reason}")]
    assert office.state() == before


def test_our_own_keys_are_honoured() -> None:
    office = office_of("com.foo")
    entries = {TRUSTED: boolean(True), PRIORITY: nat(7), SUBSCRIBER_URL: text("https://a.example:8443/x/")}
    office.subscribe(BOB, "com.foo", config=pairs(entries))
    office.subscribe(CLEO, "com.foo", config=pairs({PRIORITY: nat(9)}))
    office.subscribe(DAN, "com.foo")
    found = registered(office)
    assert (found.is_trusted, found.priority, found.url) == (True, 7, "https://a.example:8443/x")
    assert [it.subscriber for it in running(office, "com.foo")] == [CLEO, BOB, DAN]
    assert (registered(office, 3).is_trusted, registered(office, 3).url) == (False, None)


@pytest.mark.matrix("ICRC72-33")
def test_a_publication_has_filters_in_a_language_of_its_own() -> None:
    def words(said: str) -> Any:
        if " " in said:
            raise ValueError("filter: expected one word")
        return lambda tree: tree == text(said)

    office = RegistryOffice(filter_languages={"words": words})
    office.publish(ANN, "com.foo", config=pairs({FILTER_LANGUAGE: text("words")}))
    office.publish(ANN, "com.bar")
    assert office.subscribe(BOB, "com.foo", filter="a == 1") == [err("ImproperConfig", "filter: expected one word")]
    assert office.subscribe(BOB, "com.foo", "com.bar", "com.*", filter="a") == [ok(1), ok(2), ok(3)]
    seen = [registered(office, it).selects for it in (1, 2, 3)]
    assert [it is not None and it(text("a")) for it in seen] == [True, False, False]
    again = RegistryOffice(office.store, filter_languages={"words": words})
    assert again.kept() == office.kept()
