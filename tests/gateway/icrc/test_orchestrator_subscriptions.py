"""Subscriptions: who may subscribe to what, when they run, and which broadcaster serves them."""

from typing import Any

import pytest

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    DAN,
    FIRST,
    FIVE,
    ORCHESTRATOR,
    SECOND,
    SUBSCRIBERS,
    RegistryOffice,
    err,
    office_of,
    ok,
    pairs,
    principals,
    raw,
    registered,
    running,
    unauthorized_subscriber,
)
from relaycast_gateway.icrc.names import FILTER, STOPPED
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from relaycast_gateway.icrc16 import NOTHING, array, blob, boolean, from_json, nat, text
from relaycast_gateway.principal import principal_text


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
