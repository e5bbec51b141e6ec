"""Clients read the history of subscriptions: records, limits, parts, permissions, and the shape of old applications."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wamp.dealt_sessions import DealtClient, allowing, in_loop, refusing
from gateway.wamp.historic_realm import HistoricRealm, arguments, events, numbers, refusal, subscribe, unsubscribe
from relaycast_gateway.clock import SECOND, settle
from relaycast_gateway.log import Retention
from relaycast_gateway.record import EventRecord, Visibility
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.errors import (
    HISTORY_UNAVAILABLE,
    INVALID_ARGUMENT,
    INVALID_URI,
    NO_SUCH_SUBSCRIPTION,
    NOT_AUTHORIZED,
    PAYLOAD_SIZE_EXCEEDED,
)
from relaycast_gateway.wamp.messages import CallMessage, CancelMessage, ErrorMessage, ResultMessage
from relaycast_gateway.wamp.meta import get_events as get_events_module
from relaycast_gateway.wamp.meta.get_events import GET_EVENTS, AnswerForm
from relaycast_gateway.wamp.serializers import serializer_named
from searches import examples

SERIALIZERS = ["json", "msgpack", "cbor"]


async def read(client: DealtClient, *args: Any, in_parts: bool = False, **kwargs: Any) -> list[ResultMessage]:
    """Return all RESULTs of a call that takes more than one slice."""
    client.say(CallMessage(900, {"receive_progress": True} if in_parts else {}, GET_EVENTS, list(args), kwargs))
    found: list[ResultMessage] = []
    while not found or "progress" in found[-1].details:
        while not client.waiting:
            await asyncio.sleep(0)
        found.append(client.next(ResultMessage))
    return found


@pytest.mark.matrix("WAMP-15")
@pytest.mark.matrix("WAMP-14")
@in_loop
async def test_a_subscription_alone_gives_all_its_events_in_order_of_occurrence() -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        subscription = subscribe(client, "com.shop.price")
        for number in range(5):
            realm.publish("com.shop.price", number)
            realm.publish("com.shop.stock", number)
        assert numbers(events(client, subscription)) == [0, 1, 2, 3, 4]
        assert numbers(events(client, subscription, limit=2)) == [0, 1]
        assert numbers(events(client, subscription, limit=2, reverse=True)) == [4, 3]
        assert len(arguments(events(client, realm.kept_id))) == 10


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


@pytest.mark.matrix("WAMP-35")
@pytest.mark.matrix("WAMP-71")
@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((), {}, INVALID_ARGUMENT),
        (("x",), {}, INVALID_ARGUMENT),
        ((1.5,), {}, INVALID_ARGUMENT),
        ((True,), {}, INVALID_ARGUMENT),
        ((None,), {}, INVALID_ARGUMENT),
        (("kept", 10), {}, INVALID_ARGUMENT),  # a second argument is for the shape of old applications
        (("kept",), {"limt": 1}, INVALID_ARGUMENT),
        (("kept",), {"limit": 0}, INVALID_ARGUMENT),
        (("kept",), {"limit": "x"}, INVALID_ARGUMENT),
        (("kept",), {"reverse": 1}, INVALID_ARGUMENT),
        (("kept",), {"topic": 5}, INVALID_ARGUMENT),
        (("kept",), {"topic": "no uri"}, INVALID_URI),
        (("kept",), {"after_time": "yesterday"}, INVALID_ARGUMENT),
        *[
            (("kept",), {f"{where}_publication": wrong}, INVALID_ARGUMENT)
            for where in ("from", "after", "before", "until")
            for wrong in (0, -1, (1 << 53) + 1, True, 4_711)
        ],
        ((4_711,), {}, NO_SUCH_SUBSCRIPTION),
    ],
)
@in_loop
async def test_a_query_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any], expected: str) -> None:
    with HistoricRealm() as realm:
        realm.publish("com.shop.price", 1)
        given = [realm.kept_id if it == "kept" else it for it in args]
        assert refusal(realm.client(), GET_EVENTS, *given, **kwargs) == expected


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


@pytest.mark.matrix("WAMP-40")
@in_loop
async def test_an_answer_has_only_so_many_events_and_the_next_pages_have_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(get_events_module, "SLICE", 7)
    with HistoricRealm(form=AnswerForm(most_events=30)) as realm:
        client = realm.client()
        realm.publish_many("com.shop.price", [([number], None) for number in range(100)])
        for reverse in (False, True):
            found: list[int] = []
            query: dict[str, Any] = {"reverse": reverse}
            more = True
            while more:
                (answer,) = await read(client, realm.kept_id, **query)
                assert answer.kwargs
                assert answer.kwargs["count"] == len(numbers(answer)) <= 30
                found += numbers(answer)
                more = answer.kwargs["more"]
                query["before_publication" if reverse else "after_publication"] = answer.kwargs["last_publication"]
            assert found == sorted(range(100), reverse=reverse)


@pytest.mark.matrix("WAMP-40")
@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("bound", ["realm", "link"])
@in_loop
async def test_an_answer_has_only_so_many_bytes(serializer: str, bound: str) -> None:
    with HistoricRealm(form=AnswerForm(most_bytes=4_000 if bound == "realm" else 1 << 20)) as realm:
        client = realm.client(serializer=serializer)
        if bound == "link":
            client.link.most_message_bytes = 4_000
        realm.publish_many("com.shop.price", [([number, "x" * (number % 50)], None) for number in range(100)])
        found: list[int] = []
        query: dict[str, Any] = {}
        sizes = []
        while len(found) < 100:
            (answer,) = await read(client, realm.kept_id, **query)
            found += numbers(answer)
            sizes.append(len(serializer_named(serializer).encode(answer)))
            assert answer.kwargs
            assert answer.kwargs["more"] is (len(found) < 100)
            query["after_publication"] = answer.kwargs["last_publication"]
        assert found == list(range(100))
        assert max(sizes) <= 4_000
        assert min(sizes[:-1]) > 3_500, "there is no room wasted"


@pytest.mark.matrix("WAMP-40")
@given(
    sizes=st.lists(st.integers(0, 900), max_size=40),
    most_bytes=st.integers(400, 3_000),
    most_events=st.integers(1, 20),
    reverse=st.booleans(),
    in_parts=st.booleans(),
    serializer=st.sampled_from(SERIALIZERS),
)
@settings(max_examples=examples(60), deadline=None)
def test_pages_and_parts_one_after_another_are_the_whole_history(
    sizes: list[int], most_bytes: int, most_events: int, reverse: bool, in_parts: bool, serializer: str
) -> None:
    async def scene() -> None:
        with HistoricRealm(form=AnswerForm(most_events=most_events, most_bytes=most_bytes)) as realm:
            client = realm.client(serializer=serializer)
            client.link.most_message_bytes = 1_500
            realm.publish_many("com.shop.price", [([at, "x" * size], None) for at, size in enumerate(sizes)])
            told: list[int] = []
            query: dict[str, Any] = {"reverse": reverse}
            more = True
            while more:
                results = await read(client, realm.kept_id, in_parts=in_parts, **query)
                for result in results:
                    size = len(serializer_named(serializer).encode(result))
                    assert size <= max(most_bytes, 1_500 if len(arguments(result)) == 1 else 0)
                told += [number for result in results for number in numbers(result)]
                last = results[-1].kwargs
                assert last is not None
                more = last["more"]
                assert not (in_parts and more), "parts leave nothing for another page"
                query["before_publication" if reverse else "after_publication"] = last.get("last_publication")
            assert told == sorted(range(len(sizes)), reverse=reverse)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(get_events_module, "SLICE", 5)
        asyncio.run(scene())


@in_loop
async def test_one_event_beyond_the_bytes_of_an_answer_comes_alone() -> None:
    with HistoricRealm(form=AnswerForm(most_bytes=2_000)) as realm:
        client = realm.client()
        records = [realm.publish("com.shop.price", text) for text in ("a", "b" * 5_000, "c")]
        behind = [events(client, realm.kept_id, after_publication=record.pub_id) for record in records[:2]]
        pages = [events(client, realm.kept_id), *behind]
        assert [[it[0] for it in numbers(page)] for page in pages] == [["a"], ["b"], ["c"]]
        assert [page.kwargs["more"] for page in pages if page.kwargs] == [True, True, False]


@pytest.mark.parametrize("in_parts", [False, True])
@in_loop
async def test_an_event_that_the_connection_cannot_take_is_named_so_that_one_can_read_on(*, in_parts: bool) -> None:
    with HistoricRealm() as realm:
        client = realm.client()
        client.link.most_message_bytes = 2_000
        first = realm.publish("com.shop.price", "a")
        large = realm.publish("com.shop.price", "b" * 5_000)
        realm.publish("com.shop.price", "c")
        anchor = {"after_publication": first.pub_id}
        if in_parts:
            client.say(CallMessage(900, {"receive_progress": True}, GET_EVENTS, [realm.kept_id]))
            await settle()
            assert numbers(client.next(ResultMessage)) == ["a"]
        else:
            answer = events(client, realm.kept_id)
            assert answer.kwargs
            assert (numbers(answer), answer.kwargs["more"]) == (["a"], True)
            client.say(CallMessage(900, {}, GET_EVENTS, [realm.kept_id], anchor))
        error = client.next(ErrorMessage)
        assert (error.error, error.kwargs) == (PAYLOAD_SIZE_EXCEEDED, {"publication": large.pub_id})
        assert numbers(events(client, realm.kept_id, after_publication=large.pub_id)) == ["c"]


@pytest.mark.matrix("WAMP-40")
@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("limit", [None, 600, 300])
@in_loop
async def test_a_caller_that_takes_parts_gets_everything_however_much_it_is(serializer: str, limit: int | None) -> None:
    with HistoricRealm(form=AnswerForm(most_events=100, most_bytes=5_000)) as realm:
        client = realm.client(serializer=serializer)
        records = realm.publish_many("com.shop.price", [([number], None) for number in range(800)])
        results = await read(client, realm.kept_id, in_parts=True, **({} if limit is None else {"limit": limit}))
        count = limit or 800
        assert [number for result in results for number in numbers(result)] == list(range(count))
        assert len(results) > 5
        for part in results[:-1]:
            assert part.kwargs
            assert part.kwargs["count"] == len(arguments(part))
            assert part.kwargs["more"] is True
            assert part.kwargs["first_publication"] == arguments(part)[0]["publication"]
        assert results[-1].kwargs == {
            "count": count,
            "more": count < 800,
            "first_publication": records[0].pub_id,
            "last_publication": records[count - 1].pub_id,
            "history_start": format_time(records[0].received_ns, digits=9),
        }
        assert all(len(serializer_named(serializer).encode(result)) <= 5_000 for result in results)


@in_loop
async def test_events_that_come_while_a_history_is_read_are_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(get_events_module, "SLICE", 4)
    for in_parts in (False, True):
        with HistoricRealm() as realm:
            client = realm.client()
            realm.publish_many("com.shop.price", [([number], None) for number in range(10)])
            client.say(CallMessage(900, {"receive_progress": in_parts}, GET_EVENTS, [realm.kept_id]))
            realm.publish_many("com.shop.price", [([number], None) for number in range(10, 20)])
            await settle()
            found = [number for result in client.waiting for number in numbers(result)]
            assert found == list(range(10))
            assert client.waiting[-1].kwargs["more"] is False


@pytest.mark.parametrize("reverse", [False, True])
@in_loop
async def test_a_history_that_is_purged_while_it_is_read_ends_there(
    monkeypatch: pytest.MonkeyPatch, *, reverse: bool
) -> None:
    monkeypatch.setattr(get_events_module, "SLICE", 4)
    with HistoricRealm(retention=Retention(age_seconds=10)) as realm:
        client = realm.client()
        realm.publish_many("com.shop.price", [([number], None) for number in range(20)])
        client.say(CallMessage(900, {}, GET_EVENTS, [realm.kept_id], {"reverse": reverse}))
        realm.clock.set(realm.clock.now_ns() + 60 * SECOND)
        realm.log.purge()
        await settle()
        answer = client.next(ResultMessage)
        assert numbers(answer) == ([19, 18, 17, 16] if reverse else [0, 1, 2, 3])
        assert answer.kwargs
        assert answer.kwargs["more"] is not reverse, "what comes behind may still be there"


@in_loop
async def test_a_cancelled_query_sends_no_more_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(get_events_module, "SLICE", 4)
    with HistoricRealm() as realm:
        client = realm.client()
        realm.publish_many("com.shop.price", [([number], None) for number in range(100)])
        client.say(CallMessage(900, {"receive_progress": True}, GET_EVENTS, [realm.kept_id]))
        await settle(4)
        client.say(CancelMessage(900, {}))
        await settle()
        assert isinstance(client.waiting[-1], ErrorMessage)
        assert 1 <= len(client.waiting) - 1 < 10


@in_loop
async def test_a_slow_reader_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(get_events_module, "SLICE", 4)
    with HistoricRealm() as realm:
        client = realm.client()
        realm.publish_many("com.shop.price", [([number], None) for number in range(100)])
        taken = asyncio.Event()

        async def drain() -> None:
            await taken.wait()

        monkeypatch.setattr(client.link, "drain", drain)
        client.say(CallMessage(900, {"receive_progress": True}, GET_EVENTS, [realm.kept_id]))
        await settle()
        assert len(client.waiting) == 1
        taken.set()
        await settle(200)
        assert sum(len(result.args) for result in client.waiting) == 100


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
