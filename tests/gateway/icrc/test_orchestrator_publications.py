"""Publications: who may register, join and update them, and what a batch answers."""

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    FIRST,
    ORCHESTRATOR,
    PUBLISHERS,
    SUBSCRIBERS,
    RegistryOffice,
    config,
    err,
    ok,
    pairs,
    principals,
    stats,
    unauthorized_publisher,
)
from icrc16_values import values
from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.names import FILTER_LANGUAGE, UNORDERED
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag, array, blob, boolean, map_of, nat, text
from relaycast_gateway.principal import ANONYMOUS
from searches import examples


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


@pytest.mark.matrix("ICRC72-45")
def test_unknown_keys_are_kept_and_returned_or_refused_by_strict_orchestrators() -> None:
    odd = config(com__foo__color=map_of({"a": nat(1 << 90)}), icrc72__publication__mode=NOTHING)
    office = RegistryOffice()
    assert office.publish(ANN, "com.foo", config=odd) == [ok(1)]
    assert office.query("publications")[0]["config"] == odd
    assert office.subscribe(BOB, "com.foo", config=odd) == [ok(1)]
    assert office.subscription(1)["config"] == odd

    strict = RegistryOffice(settings=OrchestratorSettings(strict_config=True))
    strict.publish(ANN, "com.foo")
    before = strict.state()
    for (answer,) in (strict.publish(BOB, "com.bar", config=odd), strict.subscribe(BOB, "com.foo", config=odd)):
        assert answer.value.tag == "ImproperConfig"  # type: ignore[attr-defined]
        assert answer.value.value.startswith("com:foo:color: expected one of icrc72:")  # type: ignore[attr-defined]
    assert strict.state() == before


@pytest.mark.matrix("ICRC72-45", "ICRC72-100")
@settings(max_examples=examples(40))
@given(st.dictionaries(st.text(min_size=1, max_size=8), values, max_size=4))
def test_a_configuration_of_any_values_comes_back_after_a_restart(entries: dict[str, Icrc16]) -> None:
    office = RegistryOffice()
    office.publish(ANN, "com.foo", config=pairs(entries))
    office.subscribe(BOB, "com.foo", config=pairs(entries))
    again = RegistryOffice(office.store)
    assert again.query("publications")[0]["config"] == pairs(entries)
    assert again.subscription(1)["config"] == pairs(entries)


@pytest.mark.matrix("ICRC72-49")
@pytest.mark.parametrize("who", [PUBLISHERS, SUBSCRIBERS])
@pytest.mark.parametrize("verdict", ["allowed", "disallowed"])
@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("list", array(blob(ANN), blob(bytes(30))), "expected a principal as Blob of at most 29 bytes, got 30"),
        ("list", array(text("ann")), "expected a principal as Blob, got Text"),
        ("list", array(blob(ANN), Icrc16(Tag.PRINCIPAL, ANN)), "expected a principal as Blob, got Principal"),
        ("list", blob(ANN), "expected an Array of Blob, got Blob"),
        ("icrc75", array(blob(bytes(30)), text("x")), "expected a principal as Blob of at most 29 bytes, got 30"),
        (
            "icrc75",
            array(text("x"), blob(ANN)),
            "expected Array[Blob, Text], a canister and the namespace of its list, got Array of 2",
        ),
        ("icrc75", array(), "expected Array[Blob, Text], a canister and the namespace of its list, got Array of 0"),
        (
            "icrc75",
            array(array(blob(ANN), text("x")), text("y")),
            "expected Array[Blob, Text], a canister and the namespace of its list, got Text",
        ),
        ("icrc75", text("x"), "expected Array[Blob, Text], got Text"),
    ],
)
def test_a_malformed_list_is_refused_with_its_key(
    who: str, verdict: str, kind: str, value: Icrc16, reason: str
) -> None:
    office = RegistryOffice()
    office.publish(ANN, "com.foo")
    before, key = office.state(), f"{who}{verdict}:{kind}"
    expected = err("ImproperConfig", f"{key}: {reason}")
    assert office.publish(ANN, "com.bar", config=pairs({key: value})) == [expected]
    assert office.change(ANN, "publication", publicationId=1, config=pairs({key: value})) == expected
    assert office.state() == before


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({UNORDERED: nat(1)}, f"{UNORDERED}: expected Bool, got Nat"),
        ({"icrc77:pricing": nat(1)}, "icrc77:pricing: expected Class, got Nat"),
        ({FILTER_LANGUAGE: text("sql")}, f"{FILTER_LANGUAGE}: got 'sql', expected one of candypath"),
        ({"": nat(1)}, "config: expected keys of 1 to 256 characters, got 0"),
        ({"big": blob(bytes(65_536))}, "config: expected at most 65536 bytes, got 65553"),
    ],
)
def test_a_configuration_that_cannot_be_kept_is_refused(entries: dict[str, Icrc16], reason: str) -> None:
    office = RegistryOffice()
    before = office.state()
    assert office.publish(ANN, "com.foo", config=pairs(entries)) == [err("ImproperConfig", reason)]
    assert office.state() == before


def test_a_key_that_comes_twice_is_refused() -> None:
    twice = 2 * pairs({"color": text("red")})
    assert RegistryOffice().publish(ANN, "com.foo", config=twice) == [
        err("ImproperConfig", "color: expected once in a config, got it twice")
    ]


def test_a_configuration_that_nests_too_deep_is_refused() -> None:
    deep = nat(1)
    for _ in range(70):
        deep = array(deep)
    office = RegistryOffice()
    served = office.orchestrator.interface["icrc72_register_publication"]
    item = {"namespace": "com.foo", "config": [{0: "x", 1: pairs({"x": deep})[0][1]}], "memo": None}
    answer = office.subnet.ask(ANN, ORCHESTRATOR, served.name, [item])
    assert answer == [err("ImproperConfig", "expected values at most 64 deep")]


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
