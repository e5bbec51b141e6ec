"""Clients ask for subscriptions: those of histories are there at once, those that they may not make are hidden."""

from typing import Any

import pytest

from gateway.wamp.dealt_sessions import DealtClient, allowing, in_loop, refusing
from gateway.wamp.historic_realm import KEPT, HistoricRealm, refusal, subscribe, unsubscribe
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, INVALID_URI, NO_SUCH_SUBSCRIPTION
from relaycast_gateway.wamp.messages import ResultMessage

PREFIX = {"match": "prefix"}


def asked(client: DealtClient, uri: str, *args: Any) -> Any:
    """Return the one thing that a procedure answers with."""
    answer = client.ask(f"wamp.subscription.{uri}", *args)
    assert isinstance(answer, ResultMessage), answer
    assert isinstance(answer.args, list)
    (found,) = answer.args
    return found


@pytest.mark.matrix("WAMP-10")
@in_loop
async def test_the_subscription_of_a_history_is_there_before_anybody_subscribes() -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        assert asked(client, "lookup", KEPT, PREFIX) == realm.kept_id
        assert asked(client, "match", "com.shop.price") == [realm.kept_id]
        assert asked(client, "list") == {"exact": [], "prefix": [realm.kept_id], "wildcard": []}
        assert asked(client, "get", realm.kept_id) == {
            "id": realm.kept_id,
            "created": "2023-11-14T22:13:20Z",
            "uri": KEPT,
            "match": "prefix",
        }


@pytest.mark.matrix("WAMP-45")
@in_loop
async def test_subscribers_are_clients_and_never_the_history() -> None:
    with HistoricRealm() as realm:
        first, second = realm.client(), realm.client()
        assert asked(first, "count_subscribers", realm.kept_id) == 0
        assert asked(first, "list_subscribers", realm.kept_id) == []
        subscribe(first, KEPT, **PREFIX)
        subscribe(second, KEPT, **PREFIX)
        realm.publish("com.shop.price", 1)
        assert asked(first, "list_subscribers", realm.kept_id) == [first.id, second.id]
        assert asked(first, "count_subscribers", realm.kept_id) == 2
        unsubscribe(first, realm.kept_id)
        assert asked(second, "list_subscribers", realm.kept_id) == [second.id]


@in_loop
async def test_subscriptions_are_found_by_pattern_and_by_topic() -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        exact, wildcard = subscribe(client, "org.a.b"), subscribe(client, "org..b", match="wildcard")
        assert asked(client, "list") == {"exact": [exact], "prefix": [realm.kept_id], "wildcard": [wildcard]}
        assert asked(client, "lookup", "org.a.b") == exact
        assert asked(client, "lookup", "org..b", {"match": "wildcard"}) == wildcard
        assert asked(client, "lookup", "org.a.b", PREFIX) is None
        assert set(asked(client, "match", "org.a.b")) == {exact, wildcard}
        assert asked(client, "match", "org.nothing") is None


@pytest.mark.matrix("WAMP-44")
@pytest.mark.parametrize("uri", ["get", "list_subscribers", "count_subscribers", "get_events"])
@in_loop
async def test_an_unknown_subscription_is_refused(uri: str) -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        gone = subscribe(client, "com.shop.price")
        unsubscribe(client, gone)
        for number in (4_711, gone):
            assert refusal(client, f"wamp.subscription.{uri}", number) == NO_SUCH_SUBSCRIPTION
        assert refusal(client, f"wamp.subscription.{uri}", "kept") == INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("uri", "args", "expected"),
    [
        ("lookup", (), INVALID_ARGUMENT),
        ("lookup", (5,), INVALID_ARGUMENT),
        ("lookup", ("com.a", {"match": "fuzzy"}), INVALID_ARGUMENT),
        ("lookup", ("com..a",), INVALID_URI),
        ("match", (), INVALID_ARGUMENT),
        ("match", ("com..a",), INVALID_URI),
    ],
)
@in_loop
async def test_a_question_is_refused(uri: str, args: tuple[Any, ...], expected: str) -> None:
    with HistoricRealm() as realm:
        assert refusal(realm.client(), f"wamp.subscription.{uri}", *args) == expected


@in_loop
async def test_a_subscription_that_a_caller_may_not_make_is_not_there_for_it() -> None:
    with HistoricRealm(*refusing("subscribe", "com.shop.secret")) as realm:
        client = realm.client()
        assert asked(client, "lookup", KEPT, PREFIX) is None, "the prefix leads to the secret"
        assert asked(client, "match", "com.shop.price") is None
        assert asked(client, "list") == {"exact": [], "prefix": [], "wildcard": []}
        for uri in ("get", "list_subscribers", "count_subscribers"):
            assert refusal(client, f"wamp.subscription.{uri}", realm.kept_id) == NO_SUCH_SUBSCRIPTION


@in_loop
async def test_a_rule_for_the_procedure_itself_shows_it() -> None:
    rules = [*refusing("subscribe", "com.shop.secret"), allowing("call", "wamp.subscription.lookup")]
    with HistoricRealm(*rules) as realm:
        client = realm.client()
        assert asked(client, "lookup", KEPT, PREFIX) == realm.kept_id
        assert asked(client, "match", "com.shop.price") is None


@pytest.mark.matrix("WAMP-65")
@in_loop
async def test_subscriptions_that_come_and_go_are_told_of_in_order() -> None:
    with HistoricRealm() as realm:
        first, second = realm.client(), realm.client()
        number = subscribe(first, "com.shop.price")
        details = asked(first, "get", number)
        subscribe(second, "com.shop.price")
        unsubscribe(first, number)
        unsubscribe(second, number)
        assert realm.told_of("subscription") == [
            ("wamp.subscription.on_create", [first.id, details]),
            ("wamp.subscription.on_subscribe", [first.id, number]),
            ("wamp.subscription.on_subscribe", [second.id, number]),
            ("wamp.subscription.on_unsubscribe", [first.id, number]),
            ("wamp.subscription.on_unsubscribe", [second.id, number]),
            ("wamp.subscription.on_delete", [second.id, number]),
        ]
