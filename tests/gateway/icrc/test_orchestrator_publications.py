"""Publications: how they are registered, joined and updated, and what a batch answers."""

import logging
from typing import Any

import pytest

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    PUBLISHERS,
    SUBSCRIBERS,
    RegistryOffice,
    config,
    err,
    ok,
    pairs,
    principals,
    stats,
)
from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.names import FILTER_LANGUAGE
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from relaycast_gateway.icrc16 import NOTHING, array, boolean, nat, text
from relaycast_gateway.principal import ANONYMOUS


@pytest.mark.matrix("ICRC72-50")
def test_a_batch_of_three_gets_three_results_in_its_order() -> None:
    office = RegistryOffice()
    assert office.publish(ANN, "com.foo.a", "com foo", "com.foo.b") == [
        ok(1),
        err("ImproperConfig", "namespace: got 'com foo', expected words between dots, without spaces and *"),
        ok(2),
    ]
    assert [it["namespace"] for it in office.query("publications")] == ["com.foo.a", "com.foo.b"]


@pytest.mark.matrix("ICRC72-14")
def test_a_single_word_is_warned_of_and_refused_by_strict_orchestrators(caplog: pytest.LogCaptureFixture) -> None:
    office = RegistryOffice()
    with caplog.at_level(logging.WARNING):
        assert office.publish(ANN, "transfer", "com.foo.transfer") == [ok(1), ok(2)]
    warning = "namespace transfer: others may use a single word too, expected one such as com.foo.transfer"
    assert [record.getMessage() for record in caplog.records] == [warning]
    bare, reverse = office.query("publications")
    assert stats(bare)["relaycast:publication:stats:warning"] == warning
    assert "relaycast:publication:stats:warning" not in stats(reverse)

    strict = RegistryOffice(settings=OrchestratorSettings(strict_namespaces=True))
    assert strict.publish(ANN, "transfer", "com.foo.transfer") == [err("ImproperConfig", warning), ok(1)]


@pytest.mark.matrix("ICRC72-51")
def test_another_publisher_joins_with_a_configuration_of_its_own() -> None:
    office = RegistryOffice()
    open_to_all = pairs({PUBLISHERS + "disallowed:list": array(), PUBLISHERS + "allowed:list": principals(ANN, BOB)})
    assert office.publish(ANN, "com.foo", config=open_to_all) == [ok(1)]
    own = config(icrc77__capable=boolean(True))
    assert office.publish(BOB, "com.foo", config=own) == [ok(1)]
    assert office.publish(CLEO, "com.foo") == [err("Unauthorized")]
    (info,) = office.query("publications")
    assert info["config"] == open_to_all
    found = office.query("publication_publishers", namespace="com.foo")
    assert [it["config"] for it in found] == [open_to_all, own]


def test_who_joins_sets_nothing_that_holds_for_all() -> None:
    office = RegistryOffice()
    both = {PUBLISHERS + "allowed:list": principals(ANN, BOB)}
    office.publish(ANN, "com.foo", config=pairs(both))
    wider = pairs({PUBLISHERS + "allowed:list": principals(ANN, BOB, CLEO)})
    expected = err("ImproperConfig", f"{PUBLISHERS}allowed:list: only the owner of a publication sets it")
    assert office.publish(BOB, "com.foo", config=wider) == [expected]
    assert office.publish(BOB, "com.foo", config=pairs(both)) == [ok(1)]  # the same as the owner's changes nothing
    before = office.state()
    assert office.change(BOB, "publication", publicationId=1, config=wider) == err("Unauthorized")
    assert office.state() == before
    assert office.change(BOB, "publication", publicationId=1, config=config(icrc77__capable=boolean(True))) == ok(True)


@pytest.mark.matrix("ICRC72-53")
def test_the_same_registration_again_gives_the_same_id_and_changes_nothing() -> None:
    office = RegistryOffice()
    some = config(a=nat(1), b=nat(2))
    assert office.publish(ANN, "com.foo", config=some) == [ok(1)]
    before = office.state()
    assert office.publish(ANN, "com.foo", "com.foo", config=some) == [ok(1), ok(1)]
    assert office.publish(ANN, "com.foo", config=some[::-1]) == [ok(1)]
    assert office.publish(ANN, "com.foo") == [err("Exists", 1)]  # it asks for something else: update does that
    assert office.state() == before


@pytest.mark.matrix("ICRC72-54")
def test_an_update_merges_by_key_and_takes_effect_at_once() -> None:
    office = RegistryOffice()
    office.publish(ANN, "com.foo", config=config(a=nat(1), b=nat(2), c=nat(3)))
    version = office.orchestrator.registry.version
    change = pairs({"b": text("new"), "a": NOTHING, SUBSCRIBERS + "disallowed:list": principals(BOB)})
    assert office.orchestrator.may_receive("com.foo", BOB)
    assert office.change(ANN, "publication", publicationId=1, config=change) == ok(True)
    assert not office.orchestrator.may_receive("com.foo", BOB)
    assert office.orchestrator.registry.version > version
    assert office.query("publications")[0]["config"] == pairs(
        {"b": text("new"), "c": nat(3), SUBSCRIBERS + "disallowed:list": principals(BOB)}
    )


@pytest.mark.matrix("ICRC72-54")
def test_nobody_but_the_owner_updates_and_unknown_publications_are_not_found() -> None:
    office = RegistryOffice()
    office.publish(ANN, "com.foo")
    before = office.state()
    known: list[dict[str, Any]] = [{"publicationId": 1}, {"publication": Variant("namespace", "com.foo")}]
    for named in known:
        assert office.change(BOB, "publication", config=config(a=nat(1)), **named) == err("Unauthorized")
    unknown: list[dict[str, Any]] = [
        {"publicationId": 2},
        {"publicationId": 10**5000},
        {"publication": Variant("namespace", "com.bar")},
        {"publication": Variant("publicationId", 0)},
        {"namespace": "com.bar"},
    ]
    for named in unknown:
        assert office.change(ANN, "publication", config=config(a=nat(1)), **named) == err("NotFound")
    assert office.state() == before


@pytest.mark.parametrize(
    "named",
    [
        {"publicationId": 2},
        {"publication": Variant("publicationId", 2)},
        {"publication": Variant("namespace", "com.bar")},
        {"namespace": "com.bar"},
        {"publicationId": 2, "publication": Variant("namespace", "com.bar"), "namespace": "com.bar"},
    ],
)
def test_an_update_names_the_publication_in_either_spelling(named: dict[str, object]) -> None:
    office = RegistryOffice()
    office.publish(ANN, "com.foo", "com.bar")
    assert office.change(ANN, "publication", config=config(a=nat(1)), **named) == ok(True)
    assert [it["config"] for it in office.query("publications")] == [[], config(a=nat(1))]


@pytest.mark.matrix("ICRC72-106")
def test_a_namespace_never_changes() -> None:
    office = RegistryOffice()
    office.publish(ANN, "com.foo", "com.bar")
    before = office.state()
    for namespace in ("com.baz", "com.bar"):
        assert office.change(ANN, "publication", publicationId=1, namespace=namespace) == err(
            "ImproperConfig", "namespace: expected com.foo, which never changes"
        )
    assert office.change(ANN, "publication", publicationId=1, publication=Variant("namespace", "com.bar")) == err(
        "ImproperConfig", "publicationId and publication: expected one publication, got two"
    )
    assert office.change(ANN, "publication", config=[]) == err(
        "ImproperConfig", "publicationId: expected the id of a publication"
    )
    assert office.state() == before


@pytest.mark.matrix("ICRC72-33")
def test_the_language_of_filters_stays() -> None:
    office = RegistryOffice(filter_languages={"word": lambda word: lambda tree: tree == text(word)})
    language = pairs({FILTER_LANGUAGE: text("word")})
    office.publish(ANN, "com.foo", config=language)
    expected = f"{FILTER_LANGUAGE}: expected no change, filters of subscriptions are written in it"
    for other in (text("candypath"), NOTHING):
        change = pairs({FILTER_LANGUAGE: other})
        assert office.change(ANN, "publication", publicationId=1, config=change) == err("ImproperConfig", expected)
    assert office.change(ANN, "publication", publicationId=1, config=language) == ok(True)


@pytest.mark.matrix("ICRC72-56")
def test_a_memo_has_at_most_32_bytes() -> None:
    office = RegistryOffice()
    error = err("GenericError", {"error_code": 1, "message": "memo: got 33 bytes, expected at most 32"})
    before = office.state()
    assert office.publish(ANN, "com.foo", memo=bytes(33)) == [error]
    assert office.state() == before
    assert office.publish(ANN, "com.foo", memo=b"m" * 32) == [ok(1)]
    assert office.subscribe(BOB, "com.foo", memo=bytes(33)) == [error]
    assert office.subscribe(BOB, "com.foo", memo=b"") == [ok(1)]
    before = office.state()
    assert office.change(ANN, "publication", publicationId=1, memo=bytes(33)) == error
    assert office.change(BOB, "subscription", subscriptionId=1, memo=bytes(33)) == error
    assert office.state() == before
    office.change(BOB, "subscription", subscriptionId=1, memo=b"later")
    again = RegistryOffice(office.store).orchestrator.registry
    assert again.publications["com.foo"].publishers[ANN].memo == b"m" * 32
    assert again.subscriptions[1].memo == b"later"


@pytest.mark.matrix("ICRC72-57", "ICRC72-97")
def test_a_batch_beyond_the_limit_ends_with_an_error_after_the_items_that_fit() -> None:
    office = RegistryOffice(settings=OrchestratorSettings(most_items=3))
    too_many = err("GenericBatchError", "expected at most 3 items in a batch, got 5")
    names = [f"com.foo.{number}" for number in range(5)]
    assert office.publish(ANN, *names) == [ok(1), ok(2), ok(3), too_many]
    assert office.subscribe(BOB, *names[:2], "com.none", *names[2:4]) == [
        ok(1),
        ok(2),
        err("PublicationNotFound"),
        too_many,
    ]
    for kind, caller, key in (("publication", ANN, "publicationId"), ("subscription", BOB, "subscriptionId")):
        answers = office.ask(caller, f"update_{kind}", [{key: 1}, {key: 9}, {key: 2}, {key: 1}, {key: 1}])
        assert answers == [ok(True), err("NotFound"), ok(True), too_many]
    with pytest.raises(CallRefused, match="expected at most 3 items in a batch, got 4"):
        office.ask(BOB, "get_subscription", [1] * 4)
    with pytest.raises(CallRefused, match="expected at most 3 items in a batch, got 4"):
        office.ask(BOB, "is_authorized_publisher", [{"namespace": "x", "principal": Principal(b"")}] * 4)


@pytest.mark.matrix("ICRC72-57", "ICRC72-97")
@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"most_publications": 2}, "the limit of 2 publications is reached"),
        ({"most_publications_of_a_publisher": 2}, "the limit of 2 publications of a publisher is reached"),
    ],
)
def test_a_batch_ends_where_no_publication_fits_any_more(limit: dict[str, Any], reason: str) -> None:
    office = RegistryOffice(settings=OrchestratorSettings(**limit))
    full = err("GenericBatchError", reason)
    assert office.publish(ANN, "a.a", "a.b", "a.c", "a.d", "a.a") == [ok(1), ok(2), full]
    assert office.publish(ANN, "a.b", "a.a") == [ok(2), ok(1)]


def test_a_publication_has_a_limit_of_publishers() -> None:
    office = RegistryOffice(settings=OrchestratorSettings(most_publishers_of_a_publication=2))
    office.publish(ANN, "com.foo", config=pairs({PUBLISHERS + "allowed:list": principals(ANN, BOB, CLEO)}))
    assert office.publish(BOB, "com.foo") == [ok(1)]
    assert office.publish(CLEO, "com.foo") == [
        err("GenericBatchError", "the limit of 2 publishers of a publication is reached")
    ]
    assert office.orchestrator.adopt("com.foo", CLEO)  # its events are sent all the same
    assert len(office.orchestrator.registry.publications["com.foo"].publishers) == 2


@pytest.mark.matrix("ICRC72-58")
def test_an_empty_batch_gets_an_empty_answer() -> None:
    office = RegistryOffice()
    before = office.state()
    methods = "register_publication", "register_subscription", "update_publication", "update_subscription"
    assert [office.ask(ANN, it, []) for it in methods] == [[]] * 4
    assert [office.ask(ANN, it, []) for it in ("get_subscription", "is_authorized_publisher")] == [[]] * 2
    assert office.state() == before


@pytest.mark.matrix("ICRC72-94")
@pytest.mark.parametrize(
    "method", ["register_publication", "register_subscription", "update_publication", "update_subscription"]
)
def test_nobody_updates_anonymously(method: str) -> None:
    office = RegistryOffice()
    before = office.state()
    with pytest.raises(CallRefused, match=f"icrc72_{method} refuses the anonymous principal"):
        office.ask(ANONYMOUS, method, [])
    assert office.state() == before


def test_namespaces_of_the_log_become_publications_of_who_published_there(caplog: pytest.LogCaptureFixture) -> None:
    office = RegistryOffice(settings=OrchestratorSettings(most_publications=2))
    adopt = office.orchestrator.adopt
    assert [adopt("com.foo", ANN), adopt("com.foo", BOB), adopt("com.foo", ANN), adopt("org.bar", BOB)] == [True] * 4
    assert [adopt("a b", ANN), adopt("", ANN), adopt("a..b", ANN), adopt("icrc7:x", ANN)] == [False] * 4
    assert [adopt("com.more", ANN), adopt("com.yet", ANN)] == [False] * 2
    assert caplog.text.count("events in further namespaces are not sent: the limit of 2 publications is reached") == 1
    authorized = office.orchestrator.is_authorized_publisher
    assert [authorized("com.foo", it) for it in (ANN, BOB)] == [True, False]
    office.subnet.run()
    again = RegistryOffice(office.store)
    assert again.kept() == office.kept()
    assert [list(it.publishers) for it in again.orchestrator.registry.publications.values()] == [[ANN, BOB], [BOB]]
