"""How requests to the broker are answered, what its events say, and what it tells of subscriptions."""

import json
from typing import Any

import pytest

from gateway.wamp.broker_peers import Recorder, Town, doors, in_town, kept
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.history.rules import HistoryRules
from relaycast_gateway.wamp.messages import (
    ErrorMessage,
    PublishedMessage,
    PublishMessage,
    SubscribedMessage,
    SubscribeMessage,
    UnsubscribedMessage,
)
from shared_vectors import SHARED, shared

VECTORS = "vectors/wamp/messages.json"
NOT_HERE: dict[str, Any] = {"feature": "none here"}
SEQUENCES = json.loads((SHARED / VECTORS).read_text())["sessions"] if (SHARED / VECTORS).exists() else [NOT_HERE]


@pytest.mark.matrix("WAMP-61")
@pytest.mark.parametrize("vector", SEQUENCES, ids=[it["feature"] for it in SEQUENCES])
def test_a_sequence_of_the_protocol_goes_as_its_vector_says(vector: dict[str, Any]) -> None:
    """Ids are the router's own: each number of the vector stands for one of them."""
    shared(VECTORS)  # skips where they are not

    async def visit(town: Town) -> None:
        sessions = {it["session_id"]: town.session() for it in vector["sessions"]}
        real: dict[int, int] = {}
        for step in vector["sequence"]:
            message = step["message"]
            if step["to"] == "router":
                say(sessions[step["from"]], message)
                await town.settle()
                continue
            answer = sessions[step["to"]].got.pop(0)
            assert type(answer).__name__.removesuffix("Message").upper() == message["type"]
            for name in ("subscription_id", "publication_id"):
                if name in message:
                    number = getattr(answer, name.removesuffix("_id"))
                    assert real.setdefault(message[name], number) == number
            for name in ("details", "args", "kwargs"):
                assert name not in message or getattr(answer, name) == message[name]
        assert not any(session.got for session in sessions.values())

    in_town(visit)


def say(session: Recorder, message: dict[str, Any]) -> None:
    request, options, topic = message["request_id"], message["options"], message["topic"]
    if message["type"] == "SUBSCRIBE":
        session.broker.subscribe(session, SubscribeMessage(request, options, topic))
    else:
        assert message["type"] == "PUBLISH"
        payload = message.get("args"), message.get("kwargs")
        session.broker.publish(session, PublishMessage(request, options, topic, *payload))


def test_a_session_that_subscribes_twice_has_one_subscription() -> None:
    async def visit(town: Town) -> None:
        reader, other = town.session(), town.session()
        assert reader.subscribe("a.b") == reader.subscribe("a.b") == other.subscribe("a.b")
        assert reader.subscribe("a.b", match="prefix") != reader.subscribe("a.b")
        other.publish("a.b", [1])
        assert len(reader.events) == 2

    in_town(visit)


def test_after_unsubscribe_no_event_comes() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        subscription = reader.subscribe("a.b")
        assert isinstance(reader.unsubscribe(subscription), UnsubscribedMessage)
        writer.publish("a.b", [1])
        assert not reader.events
        for wrong in (subscription, subscription % 7 + 1):
            answer = reader.unsubscribe(wrong)
            assert isinstance(answer, ErrorMessage)
            assert (answer.request_type, answer.error) == (34, "wamp.error.no_such_subscription")
        mine = writer.subscribe("a.b")
        assert mine != subscription
        answer = reader.unsubscribe(mine)
        assert isinstance(answer, ErrorMessage), "the subscription is another session's"

    in_town(visit)


@pytest.mark.parametrize(
    ("topic", "options", "error"),
    [
        ("a..b", {}, "wamp.error.invalid_uri"),
        ("", {}, "wamp.error.invalid_uri"),
        ("a b", {}, "wamp.error.invalid_uri"),
        ("a.b#", {"match": "prefix"}, "wamp.error.invalid_uri"),
        ("x" * 1025, {}, "wamp.error.invalid_uri"),
        ("a.b", {"match": "suffix"}, "wamp.error.invalid_argument"),
        ("a.b", {"match": 1}, "wamp.error.invalid_argument"),
        ("a.b", {"match": ["exact"]}, "wamp.error.invalid_argument"),
        ("a.b", {"get_retained": "yes"}, "wamp.error.invalid_argument"),
        ("secret.a", {}, "wamp.error.not_authorized"),
        ("secret.", {"match": "prefix"}, "wamp.error.not_authorized"),
    ],
)
def test_a_wrong_subscribe_is_refused_and_changes_nothing(topic: str, options: dict[str, Any], error: str) -> None:
    async def visit(town: Town) -> None:
        reader = town.session()
        before = len(town.broker.subscriptions)
        assert reader.refused_subscribe(topic, **options) == error
        assert len(town.broker.subscriptions) == before
        assert not town.meta

    in_town(visit, roles=doors(("user", "subscribe", "secret.")))


@pytest.mark.parametrize("prefix", ["a", "kept"])
@pytest.mark.parametrize(
    ("rest", "options", "error"),
    [
        ("..b", {}, "wamp.error.invalid_uri"),
        (".b c", {}, "wamp.error.invalid_uri"),
        (".secret", {}, "wamp.error.not_authorized"),
        (".b", {"exclude_me": 0}, "wamp.error.invalid_argument"),
        (".b", {"disclose_me": "no"}, "wamp.error.invalid_argument"),
        (".b", {"retain": 1}, "wamp.error.invalid_argument"),
        (".b", {"exclude": 5}, "wamp.error.invalid_argument"),
        (".b", {"exclude": ["5"]}, "wamp.error.invalid_argument"),
        (".b", {"exclude": [True]}, "wamp.error.invalid_argument"),
        (".b", {"eligible": [0]}, "wamp.error.invalid_argument"),
        (".b", {"eligible": {"5": 1}}, "wamp.error.invalid_argument"),
        (".b", {"exclude_authid": "ann"}, "wamp.error.invalid_argument"),
        (".b", {"exclude_authrole": [1]}, "wamp.error.invalid_argument"),
        (".b", {"eligible_authid": [None]}, "wamp.error.invalid_argument"),
        (".b", {"eligible_authrole": "admin"}, "wamp.error.invalid_argument"),
        (".b", {"ppt_scheme": 1}, "wamp.error.invalid_argument"),
        (".b", {"enc_algo": 1}, "wamp.error.invalid_argument"),
        (".b", {"transaction_hash": 1}, "wamp.error.invalid_argument"),
    ],
)
def test_a_wrong_publish_reaches_nobody_and_is_answered_only_if_acknowledged(
    prefix: str, rest: str, options: dict[str, Any], error: str
) -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("", match="prefix")
        reader.take()
        writer.publish(prefix + rest, [1], acknowledge=True, **options)
        writer.publish(prefix + rest, [1], **options)
        writer.publish(prefix + rest, [1], acknowledge=False, **options)
        await town.settle()
        assert writer.errors == [error]
        assert len(writer.got) == 1
        assert not reader.got
        assert (town.log.last_seq, town.broker.refused, town.broker.accepted) == (0, 3, 0)

    in_town(visit, roles=doors(("user", "publish", "a.secret"), ("user", "publish", "kept.secret")))


def test_an_acknowledge_that_is_no_boolean_is_refused_without_an_answer() -> None:
    async def visit(town: Town) -> None:
        writer = town.session()
        writer.publish("a.b", acknowledge="yes")
        assert (writer.got, town.broker.refused) == ([], 1)

    in_town(visit)


def test_options_without_a_meaning_are_ignored() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("a.b", x_speed="high", get_retained=True)
        writer.publish("a.b", [1], x_colour=[1, 2], retain=True, rkey=3)
        assert [it.details for it in reader.events] == [{}]

    in_town(visit)


def test_a_publisher_is_named_only_where_it_is_disclosed() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session("bob", "admin")
        named = {"publisher": writer.identity.session, "publisher_authid": "bob", "publisher_authrole": "admin"}
        for topic in ("kept.a", "a"):
            reader.subscribe(topic)
            writer.publish(topic)
            writer.publish(topic, disclose_me=False)
            writer.publish(topic, disclose_me=True)
        reader.subscribe("known.", match="prefix")
        writer.publish("known.a", disclose_me=False)
        await town.settle()
        details = [it.details for it in reader.events]
        assert details == [{}, {}, named, {}, {}, named, {"topic": "known.a", **named}]

    in_town(visit, roles=doors(disclosed=["known."]))


@pytest.mark.matrix("WAMP-65")
def test_meta_events_come_in_their_order() -> None:
    async def visit(town: Town) -> None:
        watcher, first, second = (town.session() for _ in range(3))
        watcher.subscribe("wamp.subscription.", match="prefix")
        town.meta.clear()
        watcher.take()
        subscription = first.subscribe("a.b", match="prefix")
        first.subscribe("a.b", match="prefix")
        second.subscribe("a.b", match="prefix")
        first.unsubscribe(subscription)
        second.leave()
        first.unsubscribe(subscription)
        created = {"id": subscription, "uri": "a.b", "match": "prefix", "created": "2023-11-14T22:13:20Z"}
        expected = [
            ("wamp.subscription.on_create", [2, created]),
            ("wamp.subscription.on_subscribe", [2, subscription]),
            ("wamp.subscription.on_subscribe", [3, subscription]),
            ("wamp.subscription.on_unsubscribe", [2, subscription]),
            ("wamp.subscription.on_unsubscribe", [3, subscription]),
            ("wamp.subscription.on_delete", [3, subscription]),
        ]
        assert town.meta == expected
        assert [(it.details["topic"], it.args) for it in watcher.events] == expected
        assert isinstance(first.got[0], SubscribedMessage)

    in_town(visit)


@pytest.mark.matrix("WAMP-10")
@pytest.mark.matrix("WAMP-65")
def test_the_subscription_of_a_history_is_there_first_and_stays() -> None:
    async def visit(town: Town) -> None:
        registry = town.broker.subscriptions
        (kept,) = registry
        assert registry.lookup(TopicPattern("kept.", Match.PREFIX)) is kept
        assert registry.by_id(kept.id) is kept
        assert registry.matching("kept.a") == (kept,)
        assert (kept.sessions, kept.session_count, 0 < kept.id <= 1 << 53) == ((), 0, True)
        reader = town.session()
        assert reader.subscribe("kept.", match="prefix") == kept.id
        assert kept.sessions == (reader,)
        reader.leave()
        assert registry.by_id(kept.id) is kept
        assert town.meta == [
            ("wamp.subscription.on_subscribe", [1, kept.id]),
            ("wamp.subscription.on_unsubscribe", [1, kept.id]),
        ]
        again = reader.subscribe("kept.a")
        reader.leave()
        assert (registry.by_id(again), list(registry)) == (None, [kept])

    in_town(visit)


def test_a_rule_that_keeps_nothing_makes_no_subscription_and_stores_nothing() -> None:
    async def visit(town: Town) -> None:
        assert len(town.broker.subscriptions) == 1
        town.session().publish("kept.not.a", [1])
        town.session().publish("kept.a", [1])
        await town.settle()
        assert [record.namespace for record in town.log.read()] == ["kept.a"]

    rules = HistoryRules([kept("kept.not.", is_kept=False), kept("kept.")])
    in_town(visit, rules=rules)


def test_an_event_is_encoded_once_for_a_subscription_and_a_serializer() -> None:
    async def visit(town: Town) -> None:
        for number in range(30):
            reader = town.session(serializer=("json", "msgpack", "cbor")[number % 3])
            reader.subscribe("a.b")
            reader.subscribe("a", match="prefix")
        town.session().publish("a.b", [1])
        assert [it.encoded for it in town.serializers.values()] == [2, 2, 2]
        assert town.broker.events_sent == 60

    in_town(visit)


def test_payload_that_is_passed_through_keeps_its_options() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        options: dict[str, Any] = {"ppt_scheme": "x_my", "ppt_serializer": "cbor", "enc_algo": "cryptobox"}
        for topic in ("kept.a", "a"):
            reader.subscribe(topic)
            writer.publish(topic, b"\x00\xff", **options)
        await town.settle()
        assert [(it.args, it.kwargs, it.details) for it in reader.events] == [(b"\x00\xff", None, options)] * 2

    in_town(visit)


def test_a_session_has_only_so_many_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaycast_gateway.wamp.broker.MOST_SUBSCRIPTIONS_OF_A_SESSION", 3)

    async def visit(town: Town) -> None:
        reader = town.session()
        for number in range(3):
            reader.subscribe(f"a.{number}")
        assert reader.refused_subscribe("a.3") == "wamp.error.unavailable"
        assert town.session().subscribe("a.3")

    in_town(visit)


def test_ids_of_publications_that_are_not_stored_differ() -> None:
    async def visit(town: Town) -> None:
        writer = town.session()
        for _ in range(500):
            writer.publish("a.b", acknowledge=True)
        ids = writer.published
        assert len(set(ids)) == 500
        assert all(0 < it <= 1 << 53 for it in ids)
        assert all(isinstance(it, PublishedMessage) for it in writer.got)

    in_town(visit)
