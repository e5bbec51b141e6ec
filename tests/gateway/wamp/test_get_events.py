"""Clients read the history of subscriptions: records, permissions, and the shape of old applications."""

from typing import Any

import pytest

from gateway.wamp.dealt_sessions import DealtClient, allowing, in_loop, refusing
from gateway.wamp.historic_realm import (
    SERIALIZERS,
    HistoricRealm,
    arguments,
    events,
    numbers,
    refusal,
    subscribe,
    unsubscribe,
)
from relaycast_gateway.record import EventRecord, Visibility
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.errors import (
    HISTORY_UNAVAILABLE,
    INVALID_ARGUMENT,
    NO_SUCH_SUBSCRIPTION,
    NOT_AUTHORIZED,
)
from relaycast_gateway.wamp.messages import ResultMessage
from relaycast_gateway.wamp.meta.get_events import GET_EVENTS, AnswerForm


@pytest.mark.matrix("WAMP-36")
@pytest.mark.parametrize("serializer", SERIALIZERS)
@in_loop
async def test_a_record_has_what_the_text_says_and_nothing_else(serializer: str) -> None:
    with HistoricRealm() as realm:
        client = realm.client(serializer=serializer)
        subscription = subscribe(client, "com.shop.price")
        both = realm.publish("com.shop.price", b"\x00\xff", 1.5, None, unit={"deep": [b"\x01"]})
        neither = realm.publish("com.shop.price")
        by_name = realm.publish("com.shop.price", unit="kg")
        disclosed = realm.publish("com.shop.price", 1, publisher={"publisher": 7, "publisher_authid": "ann"})
        ann: dict[str, Any] = {"publisher": 7, "publisher_authid": "ann"}
        nobody: dict[str, Any] = {}
        payload = {"args": [b"\x00\xff", 1.5, None], "kwargs": {"unit": {"deep": [b"\x01"]}}}
        expected: list[tuple[EventRecord, dict[str, Any], dict[str, Any]]] = [
            (both, nobody, payload),
            (neither, nobody, {}),
            (by_name, nobody, {"kwargs": {"unit": "kg"}}),
            (disclosed, ann, {"args": [1]}),
        ]
        assert events(client, subscription).args == [
            {
                "timestamp": format_time(record.received_ns, digits=9),
                "subscription": subscription,
                "publication": record.pub_id,
                "details": {"topic": "com.shop.price", **publisher},
                **payload,
            }
            for record, publisher, payload in expected
        ]


@in_loop
async def test_timestamps_have_the_digits_that_the_realm_is_set_to() -> None:
    with HistoricRealm(form=AnswerForm(digits=3)) as realm:
        client = realm.client()
        realm.publish("com.shop.price", 1)
        answer = events(client, realm.kept_id)
        assert arguments(answer)[0]["timestamp"] == "2023-11-14T22:13:20.000Z"
        assert answer.kwargs
        assert answer.kwargs["history_start"] == "2023-11-14T22:13:20.000Z"


@pytest.mark.matrix("WAMP-38")
@in_loop
async def test_a_history_without_events_for_the_caller_is_an_empty_list() -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        subscription = subscribe(client, "com.shop.price")
        nothing = {"count": 0, "more": False, "history_start": None}
        answer = events(client, subscription)
        assert (answer.args, answer.kwargs) == ([], nothing)
        realm.publish("com.shop.price", 1, visibility=Visibility(eligible_authrole=("admin",)))
        assert events(client, subscription).kwargs == nothing
        realm.publish("com.shop.price", 2)
        answer = events(client, subscription, topic="com.shop.stock")
        assert answer.args == []
        assert answer.kwargs
        assert answer.kwargs["count"] == 0
        assert answer.kwargs["history_start"] is not None


@pytest.mark.matrix("WAMP-39")
@pytest.mark.parametrize("count", [0, 1, 2, 3])
@in_loop
async def test_what_is_known_of_the_query_always_comes_with_the_events(count: int) -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        records = [realm.publish("com.shop.price", number) for number in range(count)]
        ids = [record.pub_id for record in records]
        told = events(client, realm.kept_id, limit=2).kwargs
        shown = ids[:2]
        assert told == {
            "count": len(shown),
            "more": count > 2,
            **({"first_publication": shown[0], "last_publication": shown[-1]} if shown else {}),
            "history_start": format_time(records[0].received_ns, digits=9) if records else None,
        }


@in_loop
async def test_a_subscription_without_a_history_says_so() -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        assert refusal(client, GET_EVENTS, subscribe(client, "com.other")) == HISTORY_UNAVAILABLE
        assert refusal(client, GET_EVENTS, subscribe(client, "org.", match="prefix")) == HISTORY_UNAVAILABLE


@pytest.mark.matrix("WAMP-43")
@in_loop
async def test_an_id_leads_to_the_same_history_however_it_was_found() -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        for topic in ("com.shop.a.price", "com.shop.b.price", "com.shop.a.stock"):
            realm.publish(topic, topic)
        patterns = [("com.shop.a.price", "exact"), ("com.shop.a.", "prefix"), ("com.shop..price", "wildcard")]
        subscribed = [subscribe(client, uri, match=match) for uri, match in patterns]
        looked_up = [events_of(client, "wamp.subscription.lookup", uri, {"match": match})[0] for uri, match in patterns]
        assert looked_up == subscribed
        matching = events_of(client, "wamp.subscription.match", "com.shop.a.price")[0]
        assert set(matching) == {*subscribed, realm.kept_id}
        histories = [
            ["com.shop.a.price"],
            ["com.shop.a.price", "com.shop.a.stock"],
            ["com.shop.a.price", "com.shop.b.price"],
        ]
        for subscription, topics in zip(subscribed, histories, strict=True):
            answer = events(client, subscription)
            assert numbers(answer) == topics
            assert [event["details"]["topic"] for event in arguments(answer)] == topics


@in_loop
async def test_an_id_is_unknown_once_its_last_session_has_gone_but_not_one_of_a_history() -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        own, kept = subscribe(client, "com.shop.price"), subscribe(client, "com.shop.", match="prefix")
        assert kept == realm.kept_id
        unsubscribe(client, own)
        unsubscribe(client, kept)
        assert refusal(client, GET_EVENTS, own) == NO_SUCH_SUBSCRIPTION
        assert events(client, kept).args == []


@pytest.mark.matrix("WAMP-46")
@in_loop
async def test_who_may_not_subscribe_gets_no_history() -> None:
    with HistoricRealm(*refusing("subscribe", "com.shop.secret")) as realm:
        realm.publish("com.shop.secret", 1)
        client = realm.client()
        assert refusal(client, GET_EVENTS, realm.kept_id) == NOT_AUTHORIZED
        assert numbers(events(client, subscribe(client, "com.shop.price"))) == []


@pytest.mark.matrix("WAMP-47")
@in_loop
async def test_a_rule_for_the_procedure_itself_gives_history_without_the_right_to_subscribe() -> None:
    rules = [*refusing("subscribe", "com.shop.secret"), allowing("call", GET_EVENTS)]
    with HistoricRealm(*rules) as realm:
        realm.publish("com.shop.secret", 1)
        realm.publish("com.shop.secret", 2, visibility=Visibility(eligible_authrole=("admin",)))
        assert numbers(events(realm.client(), realm.kept_id)) == [1], "what was for others stays hidden"


@pytest.mark.matrix("WAMP-48")
@in_loop
async def test_a_call_that_is_not_allowed_is_refused_before_anything_else() -> None:
    with HistoricRealm(*refusing("call", GET_EVENTS)) as realm:
        for args in ([realm.kept_id], [4_711], ["wrong"], []):
            assert refusal(realm.client(), GET_EVENTS, *args) == NOT_AUTHORIZED


def events_of(client: DealtClient, uri: str, *args: Any) -> list[Any]:
    answer = client.ask(uri, *args)
    assert isinstance(answer, ResultMessage), answer
    return arguments(answer)


CROSSBAR = AnswerForm(result_shape="crossbar")


@pytest.mark.matrix("WAMP-41")
@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((), {}, range(19, 9, -1)),  # ten by default
        ((1,), {}, [19]),  # call(..., [sub.id, 1]).then(history => history[0].args[0])
        ((3,), {}, [19, 18, 17]),  # await call(..., sub.id, 3)
        ((1_000,), {}, range(19, -1, -1)),  # for event in reversed(await call(..., sub.id, 1000))
        ((), {"limit": 2}, [19, 18]),  # await call(..., sub.id, limit=2)
    ],
)
@in_loop
async def test_old_applications_get_one_list_newest_first(
    args: tuple[int, ...], kwargs: dict[str, int], expected: list[int]
) -> None:
    with HistoricRealm(form=CROSSBAR) as realm:
        client = realm.client()
        subscription = subscribe(client, "com.shop.price")
        realm.publish_many("com.shop.price", [([number], None) for number in range(20)])
        answer = events(client, subscription, *args, **kwargs)
        assert answer.kwargs is None, "with arguments by name, clients would wrap the list"
        (history,) = arguments(answer)
        assert [event["args"][0] for event in history] == list(expected)


@pytest.mark.matrix("WAMP-41")
@in_loop
async def test_old_applications_find_every_member_that_they_read() -> None:
    with HistoricRealm(form=CROSSBAR) as realm:
        client = realm.client()
        for args, kwargs in (([1], None), (["2"], None), (None, {"args": True})):
            realm.publish_many("com.shop.price", [(args, kwargs)])
        answer = events(client, realm.kept_id, 3)
        (history,) = arguments(answer)
        assert {event["topic"] for event in history} == {"com.shop.price"}
        assert [event["kwargs"] for event in history] == [{"args": True}, None, None]
        assert [event["args"] for event in history] == [[], ["2"], [1]]
        assert all(event.keys() >= {"timestamp", "subscription", "publication", "details"} for event in history)


@pytest.mark.parametrize(("args", "kwargs"), [((1, 2), {}), ((1,), {"limit": 2}), ((0,), {}), (("x",), {})])
@in_loop
async def test_a_query_of_an_old_application_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with HistoricRealm(form=CROSSBAR) as realm:
        assert refusal(realm.client(), GET_EVENTS, realm.kept_id, *args, **kwargs) == INVALID_ARGUMENT
