"""Updates of subscriptions: what they change, in which spelling, and by whom."""

from typing import Any

import pytest

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    FIVE,
    RegistryOffice,
    err,
    office_of,
    ok,
    pairs,
    registered,
)
from relaycast_gateway.candid import Present, Variant
from relaycast_gateway.icrc.names import FILTER, SKIP, STOPPED
from relaycast_gateway.icrc16 import NOTHING, Icrc16, blob, boolean, nat, text

CLEAR = Present(None)


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
