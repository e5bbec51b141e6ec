"""How much of a history comes at once: pages, parts, their bounds, and what happens meanwhile."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wamp.dealt_sessions import DealtClient, in_loop
from gateway.wamp.historic_realm import SERIALIZERS, HistoricRealm, arguments, events, numbers
from relaycast_gateway.clock import SECOND, settle
from relaycast_gateway.log import Retention
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.errors import PAYLOAD_SIZE_EXCEEDED
from relaycast_gateway.wamp.messages import CallMessage, CancelMessage, ErrorMessage, ResultMessage
from relaycast_gateway.wamp.meta import get_events as get_events_module
from relaycast_gateway.wamp.meta.get_events import GET_EVENTS, AnswerForm
from relaycast_gateway.wamp.serializers import serializer_named
from searches import examples


async def read(client: DealtClient, *args: Any, in_parts: bool = False, **kwargs: Any) -> list[ResultMessage]:
    """Return all RESULTs of a call that takes more than one slice."""
    client.say(CallMessage(900, {"receive_progress": True} if in_parts else {}, GET_EVENTS, list(args), kwargs))
    found: list[ResultMessage] = []
    while not found or "progress" in found[-1].details:
        while not client.waiting:
            await asyncio.sleep(0)
        found.append(client.next(ResultMessage))
    return found


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
