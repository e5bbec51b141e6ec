"""Configurations of publications and subscriptions: what is kept, and what is refused with its key."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    ORCHESTRATOR,
    PUBLISHERS,
    SUBSCRIBERS,
    RegistryOffice,
    config,
    err,
    ok,
    pairs,
    principals,
)
from icrc16_values import values
from relaycast_gateway.icrc.names import FILTER_LANGUAGE, SUBSCRIBER_URL, UNORDERED
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag, array, blob, map_of, nat, text
from searches import examples


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
    assert answer == [err("ImproperConfig", "config: expected values at most 64 deep")]


def test_a_publisher_says_where_it_is_called_by_an_address_that_may_be_called() -> None:
    def check(url: str) -> None:
        if "10.0.0.1" in url:
            raise ValueError("10.0.0.1 may not be called")

    office = RegistryOffice(settings=OrchestratorSettings(strict_config=True, check_url=check))
    allowed = {PUBLISHERS + "allowed:list": principals(ANN, BOB)}
    assert office.publish(ANN, "com.foo", config=pairs(allowed)) == [ok(1)]
    for url, reason in (
        ("ftp://a.example", "expected a URL of http or https, got 'ftp://a.example'"),
        ("http://10.0.0.1", "10.0.0.1 may not be called"),
    ):
        refused = err("ImproperConfig", f"{SUBSCRIBER_URL}: {reason}")
        assert office.publish(BOB, "com.foo", config=pairs({SUBSCRIBER_URL: text(url)})) == [refused]
    assert office.publish(BOB, "com.foo", config=pairs({SUBSCRIBER_URL: text("http://a.example")})) == [ok(1)]
