"""Subscriptions: what may be asked for, in which spelling, by whom, and how it changes."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    DAN,
    FIRST,
    ORCHESTRATOR,
    SECOND,
    SUBSCRIBERS,
    RegistryOffice,
    err,
    ok,
    pairs,
    principals,
    raw,
    unauthorized_subscriber,
)
from relaycast_gateway.candid import Present, Variant
from relaycast_gateway.icrc import Skip
from relaycast_gateway.icrc.names import FILTER, FILTER_LANGUAGE, PRIORITY, SKIP, STOPPED, SUBSCRIBER_URL, TRUSTED
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from relaycast_gateway.icrc.registry import IcrcSubscription
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag, array, blob, boolean, from_json, nat, text
from relaycast_gateway.principal import principal_text

CLEAR, FIVE = Present(None), {0: 5, 1: None}


def office_of(*namespaces: str, **options: Any) -> RegistryOffice:
    """Return an office in which Ann publishes."""
    office = RegistryOffice(**options)
    office.publish(ANN, *namespaces)
    return office


def running(office: RegistryOffice, namespace: str, broadcaster: bytes = FIRST) -> list[IcrcSubscription]:
    return list(office.orchestrator.registry.subscriptions_to(namespace, broadcaster))


def registered(office: RegistryOffice, subscription_id: int = 1) -> IcrcSubscription:
    return office.orchestrator.registry.subscriptions[subscription_id]


@pytest.mark.matrix("ICRC72-52")
def test_a_batch_with_an_unknown_namespace_registers_the_others() -> None:
    office = office_of("com.foo", "com.bar")
    assert office.subscribe(BOB, "com.foo", "com.none", "com.bar") == [ok(1), err("PublicationNotFound"), ok(2)]
    assert [it.namespace for it in office.orchestrator.registry.subscriptions.values()] == ["com.foo", "com.bar"]


@pytest.mark.matrix("ICRC72-53")
def test_a_subscriber_has_one_subscription_to_a_namespace() -> None:
    office = office_of("com.foo")
    some: dict[str, Any] = {"filter": "a == 1", "skip": FIVE, "config": pairs({"a": nat(1), "b": nat(2)})}
    assert office.subscribe(BOB, "com.foo", **some) == [ok(1)]
    before = office.state()
    assert office.subscribe(BOB, "com.foo", "com.foo", **some) == [ok(1), ok(1)]
    assert office.subscribe(BOB, "com.foo", **{**some, "config": some["config"][::-1]}) == [ok(1)]
    others: list[dict[str, Any]] = [{"filter": "a == 2"}, {"skip": {0: 5, 1: 1}}, {"stopped": True}, {"config": []}]
    for other in others:
        assert office.subscribe(BOB, "com.foo", **{**some, **other}) == [err("Exists", 1)]
    assert office.state() == before
    assert office.subscribe(CLEO, "com.foo", **some) == [ok(2)]
    assert office.subscribe(BOB, "com.*", **some) == [ok(3)]


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


@pytest.mark.matrix("ICRC72-43")
def test_lists_of_subscribers_hold_at_registration_and_later() -> None:
    office = RegistryOffice()
    office.publish(ANN, "com.foo", config=pairs({SUBSCRIBERS + "allowed:list": principals(BOB, CLEO)}))
    receives = office.orchestrator.may_receive
    assert office.subscribe(BOB, "com.foo") == [ok(1)]
    assert office.subscribe(DAN, "com.foo") == [unauthorized_subscriber("com.foo")]
    assert office.subscribe(DAN, "com.*") == [ok(2)]  # the lists of what it selects are asked at each event
    assert [receives("com.foo", it) for it in (BOB, CLEO, DAN)] == [True, True, False]

    change = {SUBSCRIBERS + "disallowed:list": principals(BOB), SUBSCRIBERS + "allowed:list": principals(BOB, DAN)}
    office.change(ANN, "publication", publicationId=1, config=pairs(change))
    assert [receives("com.foo", it) for it in (BOB, CLEO, DAN)] == [False, False, True]
    office.change(ANN, "publication", publicationId=1, config=pairs(dict.fromkeys(change, NOTHING)))
    assert all(receives("com.foo", it) for it in (BOB, CLEO, DAN))
    office.change(ANN, "publication", publicationId=1, config=pairs({SUBSCRIBERS + "allowed:list": array()}))
    assert not any(receives("com.foo", it) for it in (ANN, BOB, CLEO, DAN))
    assert receives("org.nobody.registered", BOB)


@pytest.mark.matrix("ICRC72-44")
def test_lists_of_other_canisters_hold_for_subscribers() -> None:
    office = RegistryOffice()
    rules = {
        SUBSCRIBERS + "allowed:icrc75": array(blob(CLEO), text("readers")),
        SUBSCRIBERS + "allowed:list": principals(DAN),
        SUBSCRIBERS + "disallowed:icrc75": array(blob(CLEO), text("banned")),
    }
    office.publish(ANN, "com.foo", config=pairs(rules))
    lists, receives = office.orchestrator.lists, office.orchestrator.may_receive
    assert office.subscribe(BOB, "com.foo") == [unauthorized_subscriber("com.foo")]
    lists.add(CLEO, "readers", BOB)
    assert office.subscribe(BOB, "com.foo") == [ok(1)]
    assert [receives("com.foo", it) for it in (BOB, DAN)] == [True, True]
    lists.add(CLEO, "banned", DAN)
    assert [receives("com.foo", it) for it in (BOB, DAN)] == [True, False]
    assert not RegistryOffice(office.store).orchestrator.may_receive("com.foo", DAN)
    lists.remove(CLEO, "readers", BOB)
    lists.remove(CLEO, "banned", DAN)
    assert [receives("com.foo", it) for it in (BOB, DAN)] == [False, True]


@pytest.mark.matrix("ICRC72-47")
def test_a_stopped_subscription_gets_what_comes_after_its_start() -> None:
    office = office_of("com.foo")
    office.last_seq = 10
    office.subscribe(BOB, "com.foo", stopped=True)
    assert (running(office, "com.foo"), registered(office).since) == ([], 10)
    office.last_seq = 20
    office.change(BOB, "subscription", subscriptionId=1, newStopped=False)
    assert [it.since for it in running(office, "com.foo")] == [20]
    office.last_seq = 30
    office.change(BOB, "subscription", subscriptionId=1, newStopped=False, newFilter="a == 1")
    assert registered(office).since == 20  # it was running
    office.change(BOB, "subscription", subscriptionId=1, newStopped=True)
    assert running(office, "com.foo") == []
    office.change(BOB, "subscription", subscriptionId=1, newConfig=pairs({STOPPED: boolean(False)}))
    assert [it.since for it in running(office, "com.foo")] == [30]


@pytest.mark.matrix("ICRC72-48")
def test_a_pattern_selects_namespaces_of_now_and_later() -> None:
    office = office_of("com.foo.icrc1.transfer")
    assert office.subscribe(CLEO, "*.icrc1.transfer") == [ok(1)]
    office.publish(BOB, "org.bar.baz.icrc1.transfer", "org.bar.icrc1.burn")
    names = "com.foo.icrc1.transfer", "org.bar.baz.icrc1.transfer", "org.bar.icrc1.burn", "icrc1.transfer"
    assert [bool(running(office, it)) for it in names] == [True, True, False, False]
    assert office.subscribe(DAN, "nobody.*.yet") == [ok(2)]


@pytest.mark.matrix("ICRC72-55")
@pytest.mark.parametrize(
    ("change", "filter_", "skip", "is_stopped", "kept"),
    [
        ({}, "a == 1", FIVE, True, {"x": nat(1)}),
        ({"newFilter": "a == 2"}, "a == 2", FIVE, True, {"x": nat(1)}),
        ({"newFilter": ""}, None, FIVE, True, {"x": nat(1)}),
        ({"newSkip": Present({0: 3, 1: 1})}, "a == 1", {0: 3, 1: 1}, True, {"x": nat(1)}),
        ({"newSkip": CLEAR}, "a == 1", None, True, {"x": nat(1)}),
        ({"newStopped": False}, "a == 1", FIVE, False, {"x": nat(1)}),
        ({"newStopped": True}, "a == 1", FIVE, True, {"x": nat(1)}),
        ({"newConfig": pairs({"x": NOTHING, "y": nat(2)})}, "a == 1", FIVE, True, {"y": nat(2)}),
        ({"config": pairs({"y": nat(2)})}, "a == 1", FIVE, True, {"x": nat(1), "y": nat(2)}),
        ({"newConfig": pairs({FILTER: text("b")})}, "b", FIVE, True, {"x": nat(1), FILTER: text("b")}),
        ({"newConfig": pairs({FILTER: NOTHING, SKIP: NOTHING})}, None, None, True, {"x": nat(1)}),
        ({"newConfig": pairs({SKIP: nat(9)})}, "a == 1", {0: 9, 1: None}, True, {"x": nat(1), SKIP: nat(9)}),
        ({"newConfig": pairs({STOPPED: NOTHING})}, "a == 1", FIVE, False, {"x": nat(1)}),
        (
            {
                "newFilter": "b",
                "newSkip": CLEAR,
                "newStopped": False,
                "newConfig": pairs({"x": nat(2), FILTER: text("b")}),
            },
            "b",
            None,
            False,
            {"x": nat(2), FILTER: text("b")},
        ),
    ],
)
def test_an_update_changes_what_it_names_alone(
    change: dict[str, Any], filter_: str | None, skip: object, is_stopped: bool, kept: dict[str, Icrc16]
) -> None:
    office = office_of("com.foo")
    office.subscribe(BOB, "com.foo", filter="a == 1", skip=FIVE, stopped=True, config=pairs({"x": nat(1)}))
    assert office.change(BOB, "subscription", subscriptionId=1, **change) == ok(True)
    info = office.subscription(1)
    assert (info["filter"], info["skip"], info["stopped"], info["config"]) == (filter_, skip, is_stopped, pairs(kept))
    assert RegistryOffice(office.store).kept() == office.kept()


@pytest.mark.matrix("ICRC72-55", "ICRC72-39")
def test_a_field_takes_a_key_that_says_otherwise_out_of_the_configuration() -> None:
    office = office_of("com.foo")
    keys = {FILTER: text("a"), SKIP: nat(5), STOPPED: boolean(True), "x": nat(1)}
    office.subscribe(BOB, "com.foo", config=pairs(keys))
    office.change(BOB, "subscription", subscriptionId=1, newFilter="b")
    assert office.subscription(1)["config"] == pairs({SKIP: nat(5), STOPPED: boolean(True), "x": nat(1)})
    office.change(BOB, "subscription", subscriptionId=1, newSkip=CLEAR, newStopped=False)
    info = office.subscription(1)
    assert (info["config"], info["filter"], info["skip"], info["stopped"]) == (pairs({"x": nat(1)}), "b", None, False)


@pytest.mark.matrix("ICRC72-55", "ICRC72-39")
@pytest.mark.parametrize(
    "change",
    [
        {"newFilter": "a", "newConfig": pairs({FILTER: text("b")})},
        {"newFilter": "a", "newConfig": pairs({FILTER: NOTHING})},
        {"newSkip": CLEAR, "newConfig": pairs({SKIP: nat(5)})},
        {"newSkip": Present({0: 4, 1: None}), "newConfig": pairs({SKIP: NOTHING})},
        {"newSkip": Present({0: 0, 1: None})},
        {"newStopped": True, "newConfig": pairs({STOPPED: boolean(False)})},
        {"newConfig": pairs({"x": nat(1)}), "config": pairs({"x": nat(2)})},
        {"newConfig": pairs({"x": blob(bytes(65_536))})},
        {"newConfig": pairs({FILTER: nat(1)})},
    ],
)
def test_an_update_that_cannot_be_meant_changes_nothing(change: dict[str, Any]) -> None:
    office = office_of("com.foo")
    office.subscribe(BOB, "com.foo", filter="z", skip=FIVE)
    before = office.state()
    error: Any = office.change(BOB, "subscription", subscriptionId=1, **change).value
    assert error.tag == "ImproperConfig"
    assert office.state() == before


@pytest.mark.matrix("ICRC72-55")
def test_nobody_but_the_subscriber_updates_a_subscription() -> None:
    office = office_of("com.foo")
    office.subscribe(BOB, "com.foo")
    before = office.state()
    assert office.change(CLEO, "subscription", subscriptionId=1, newFilter="a") == err("Unauthorized")
    assert office.change(ANN, "subscription", subscription=Variant("id", 1), newStopped=True) == err("Unauthorized")
    for caller, named in (
        (BOB, {"subscriptionId": 2}),
        (BOB, {"subscriptionId": 1 << 15_000}),
        (CLEO, {"subscription": Variant("namespace", "com.foo")}),
        (BOB, {"subscription": Variant("id", 0)}),
    ):
        assert office.change(caller, "subscription", newFilter="a", **named) == err("NotFound")
    assert office.change(BOB, "subscription", newFilter="a") == err(
        "ImproperConfig", "subscriptionId: expected the id of a subscription"
    )
    assert office.change(BOB, "subscription", subscriptionId=2, subscription=Variant("id", 1)) == err(
        "ImproperConfig", "subscriptionId and subscription: expected one subscription, got two"
    )
    assert office.state() == before


@pytest.mark.parametrize(
    "named",
    [
        {"subscriptionId": 2},
        {"subscription": Variant("id", 2)},
        {"subscription": Variant("namespace", "com.bar")},
        {"subscriptionId": 2, "subscription": Variant("namespace", "com.bar")},
    ],
)
def test_an_update_names_the_subscription_in_either_spelling(named: dict[str, Any]) -> None:
    office = office_of("com.foo", "com.bar")
    office.subscribe(BOB, "com.foo", "com.bar")
    assert office.change(BOB, "subscription", newFilter="a", **named) == ok(True)
    assert [registered(office, it).filter for it in (1, 2)] == [None, "a"]


@pytest.mark.matrix("ICRC72-100")
def test_each_field_comes_back_as_it_was_registered() -> None:
    office = office_of("com.foo")
    kept = pairs({FILTER: text("a == 1"), STOPPED: boolean(True), "odd": from_json({"b": [1, None, "c"]})})
    office.subscribe(BOB, "com.foo", config=kept, skip={0: 5, 1: 0}, memo=b"memo")
    office.publish(CLEO, "com.bar", config=kept[2:])
    infos = (
        office.subscription(1),
        office.query("subscriptions")[0],
        office.query("subscriber_subscriptions", caller=BOB)[0],
        office.query("broadcaster_subscriptions")[0],
    )
    for info in infos:
        assert raw(info.pop("subscriber")) == BOB
        del info["stats"]
        assert info == {
            "subscriptionId": 1,
            "namespace": "com.foo",
            "config": kept,
            "filter": "a == 1",
            "skip": {0: 5, 1: 0},
            "stopped": True,
        }
    (publication,) = office.query("publications", prev="com.foo")
    assert (publication["publicationId"], publication["namespace"], publication["config"]) == (2, "com.bar", kept[2:])
    (pair,) = office.query("publication_publishers", namespace="com.bar")
    assert raw(pair["publisher"]) == CLEO
    assert (pair["publicationId"], pair["namespace"], pair["config"]) == (2, "com.bar", kept[2:])


@pytest.mark.matrix("ICRC72-102")
def test_only_the_named_principal_subscribes_to_its_system_namespace() -> None:
    office = RegistryOffice()
    own = [f"icrc72:{role}:sys:{principal_text(BOB)}" for role in ("subscriber", "publisher", "broadcaster")]
    assert office.subscribe(BOB, *own) == [ok(1), ok(2), ok(3)]
    assert office.subscribe(CLEO, *own) == [unauthorized_subscriber(it) for it in own]
    assert office.subscribe(ORCHESTRATOR, own[0]) == [unauthorized_subscriber(own[0])]
    assert [it.subscriber for it in running(office, own[0])] == [BOB]
    others = "icrc72:stranger:sys:x", "icrc72:broadcaster:news", "icrc3:blocks"
    assert office.subscribe(BOB, *others) == [err("PublicationNotFound")] * 3
    office.publish(FIRST, "icrc72:broadcaster:news")
    assert office.subscribe(BOB, "icrc72:broadcaster:news") == [ok(4)]


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


@pytest.mark.matrix("ICRC72-57", "ICRC72-97")
@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"most_subscriptions": 2}, "the limit of 2 subscriptions is reached"),
        ({"most_subscriptions_of_a_subscriber": 2}, "the limit of 2 subscriptions of a subscriber is reached"),
    ],
)
def test_a_batch_ends_where_no_subscription_fits_any_more(limit: dict[str, Any], reason: str) -> None:
    office = office_of("a.a", "a.b", "a.c", settings=OrchestratorSettings(**limit))
    full = err("GenericBatchError", reason)
    assert office.subscribe(BOB, "a.a", "a.b", "a.c", "a.a") == [ok(1), ok(2), full]
    assert office.subscribe(BOB, "a.b", "a.a") == [ok(2), ok(1)]


def test_a_subscriber_has_one_broadcaster_and_broadcasters_share_subscribers() -> None:
    office = office_of("com.foo", "com.bar", broadcasters=(FIRST, SECOND))
    for caller in (BOB, CLEO, DAN):
        office.subscribe(caller, "com.foo", "com.bar")
    found = {it.subscriber: it.broadcaster for it in office.orchestrator.registry.subscriptions.values()}
    assert found == {BOB: FIRST, CLEO: SECOND, DAN: FIRST}
    assert [it.subscriber for it in running(office, "com.bar", SECOND)] == [CLEO]


def test_subscriptions_of_a_broadcaster_that_is_gone_go_to_the_others() -> None:
    office = office_of("com.foo", "com.bar", broadcasters=(FIRST, SECOND))
    for caller in (BOB, CLEO, DAN):
        office.subscribe(caller, "com.foo", "com.bar")
    again = RegistryOffice(office.store, (SECOND,))
    assert {it.broadcaster for it in again.orchestrator.registry.subscriptions.values()} == {SECOND}
    again.orchestrator.add_broadcaster(FIRST)
    again.orchestrator.add_broadcaster(FIRST)
    assert again.orchestrator.registry.broadcasters == [SECOND, FIRST]
    assert again.subscribe(ANN, "com.foo") == [ok(7)]
    assert registered(again, 7).broadcaster == FIRST


def test_without_a_broadcaster_nobody_can_subscribe() -> None:
    office = office_of("com.foo", broadcasters=())
    before = office.state()
    reason = {"error_code": 2, "message": "expected a broadcaster, got none that serves subscribers"}
    assert office.subscribe(BOB, "com.foo") == [err("GenericError", reason)]
    assert office.state() == before


def test_whoever_runs_an_orchestrator_places_subscribers() -> None:
    office = office_of(
        "com.foo", broadcasters=(FIRST, SECOND), place=lambda subscriber, all_, _served: all_[subscriber == CLEO]
    )
    for caller in (BOB, CLEO, DAN):
        office.subscribe(caller, "com.foo")
    assert [it.broadcaster for it in office.orchestrator.registry.subscriptions.values()] == [FIRST, SECOND, FIRST]
