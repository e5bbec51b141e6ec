"""Who may register a namespace, join a publication and publish in it."""

import pytest

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    FIRST,
    ORCHESTRATOR,
    PUBLISHERS,
    RegistryOffice,
    err,
    ok,
    pairs,
    principals,
    unauthorized_publisher,
)
from relaycast_gateway.candid import Principal
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from relaycast_gateway.icrc16 import array, blob, text


@pytest.mark.matrix("ICRC72-15")
def test_a_publisher_proves_that_a_namespace_is_its_own() -> None:
    granted = {ANN: ("com.foo", "org.bar.baz")}
    office = RegistryOffice(settings=OrchestratorSettings(prove_ownership=True, granted_prefixes=granted))
    inside = "com.foo", "com.foo.transfer", "org.bar.baz.x"
    outside = "com.food", "com", "org.bar", "org.bar.bazar"
    assert office.publish(ANN, *inside) == [ok(1), ok(2), ok(3)]
    assert office.publish(ANN, *outside) == [unauthorized_publisher(it) for it in outside]
    assert office.publish(BOB, "com.foo.other") == [unauthorized_publisher("com.foo.other")]


@pytest.mark.matrix("ICRC72-15")
def test_who_joins_a_publication_proves_it_too() -> None:
    office = RegistryOffice(
        settings=OrchestratorSettings(prove_ownership=True, granted_prefixes={ANN: ("com.foo",), BOB: ("com.foo.x",)})
    )
    both = pairs({PUBLISHERS + "allowed:list": principals(ANN, BOB, CLEO)})
    assert office.publish(ANN, "com.foo.x", config=both) == [ok(1)]
    assert office.publish(BOB, "com.foo.x") == [ok(1)]
    assert office.publish(CLEO, "com.foo.x") == [unauthorized_publisher("com.foo.x")]


@pytest.mark.matrix("ICRC72-17")
def test_the_systems_namespaces_are_for_the_system() -> None:
    office = RegistryOffice()
    reserved = "icrc72:broadcaster:sys:x", "icrc3:blocks", "icrc72:x.y"
    assert office.publish(ANN, *reserved) == [unauthorized_publisher(it) for it in reserved]
    assert office.publish(ANN, "icrc72", "icrcx:y") == [ok(1), ok(2)]
    assert office.publish(FIRST, "icrc72:broadcaster:news") == [ok(3)]
    assert office.publish(ORCHESTRATOR, "icrc72:news") == [ok(4)]
    assert not office.orchestrator.adopt("icrc72:subscriber:sys:x", ANN)


@pytest.mark.matrix("ICRC72-40")
def test_only_publishers_on_the_list_of_allowed_ones_join_and_publish() -> None:
    office = RegistryOffice()
    assert office.publish(ANN, "com.foo", config=pairs({PUBLISHERS + "allowed:list": principals(ANN, BOB)})) == [ok(1)]
    assert office.publish(BOB, "com.foo") == [ok(1)]
    assert office.publish(CLEO, "com.foo") == [err("Unauthorized")]
    authorized = office.orchestrator.is_authorized_publisher
    assert [authorized("com.foo", it) for it in (ANN, BOB, CLEO)] == [True, True, False]


@pytest.mark.matrix("ICRC72-40", "ICRC72-51")
def test_without_a_list_the_first_registrant_alone_publishes() -> None:
    office = RegistryOffice()
    assert office.publish(ANN, "com.foo") == [ok(1)]
    assert office.publish(BOB, "com.foo") == [err("Unauthorized")]
    assert office.orchestrator.is_authorized_publisher("com.foo", ANN)

    assert office.change(
        ANN, "publication", publicationId=1, config=pairs({PUBLISHERS + "allowed:list": principals(ANN, BOB)})
    ) == ok(True)
    assert not office.orchestrator.is_authorized_publisher("com.foo", BOB)  # allowed, but it has not registered
    assert office.publish(BOB, "com.foo") == [ok(1)]
    assert office.orchestrator.is_authorized_publisher("com.foo", BOB)


def test_an_empty_list_of_allowed_publishers_lets_nobody_publish() -> None:
    office = RegistryOffice()
    assert office.publish(ANN, "com.foo", config=pairs({PUBLISHERS + "allowed:list": array()})) == [ok(1)]
    assert not office.orchestrator.is_authorized_publisher("com.foo", ANN)


@pytest.mark.matrix("ICRC72-41")
def test_a_disallowed_publisher_is_refused_though_it_is_allowed_too() -> None:
    office = RegistryOffice()
    lists = {PUBLISHERS + "allowed:list": principals(ANN, BOB), PUBLISHERS + "disallowed:list": principals(BOB)}
    assert office.publish(ANN, "com.foo", config=pairs(lists)) == [ok(1)]
    assert office.publish(BOB, "com.foo") == [err("Unauthorized")]
    office.change(ANN, "publication", publicationId=1, config=pairs({PUBLISHERS + "disallowed:list": principals(ANN)}))
    assert office.publish(BOB, "com.foo") == [ok(1)]
    authorized = office.orchestrator.is_authorized_publisher
    assert [authorized("com.foo", it) for it in (ANN, BOB)] == [False, True]


@pytest.mark.matrix("ICRC72-42")
def test_lists_of_other_canisters_are_asked_at_each_use() -> None:
    office = RegistryOffice()
    lists, authorized = office.orchestrator.lists, office.orchestrator.is_authorized_publisher
    rules = {
        PUBLISHERS + "allowed:icrc75": array(blob(CLEO), text("writers")),
        PUBLISHERS + "disallowed:icrc75": array(array(blob(CLEO), text("banned")), array(blob(ANN), text("banned"))),
    }
    assert office.publish(ANN, "com.foo", config=pairs(rules)) == [ok(1)]
    assert office.publish(BOB, "com.foo") == [err("Unauthorized")]
    lists.add(CLEO, "writers", BOB)
    assert office.publish(BOB, "com.foo") == [ok(1)]
    before = office.orchestrator.registry.version
    seen = []
    for change in (lists.add, lists.remove):
        change(ANN, "banned", BOB)
        seen.append(authorized("com.foo", BOB))
    lists.remove(CLEO, "writers", BOB)
    assert [*seen, authorized("com.foo", BOB)] == [False, True, False]
    lists.add(ANN, "writers", BOB)  # a list of that name of another canister
    lists.add(CLEO, "writer", BOB)
    assert not authorized("com.foo", BOB)
    assert office.orchestrator.registry.version == before


@pytest.mark.matrix("ICRC72-92")
def test_who_may_publish_is_told_by_position() -> None:
    office = RegistryOffice()
    office.publish(ANN, "com.foo", config=pairs({PUBLISHERS + "allowed:list": principals(ANN, BOB)}))
    office.publish(BOB, "com.bar")
    asked = [("com.foo", ANN), ("com.foo", BOB), ("com.none", ANN), ("com.bar", BOB), ("com.bar", ANN)]
    answer = office.ask(
        CLEO, "is_authorized_publisher", [{"namespace": it, "principal": Principal(who)} for it, who in asked]
    )
    assert answer == [True, False, False, True, False]
