"""Publications go through the log in one order, once each, and nothing is delivered that was not stored."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wamp.broker_peers import Town, in_town, kept, numbers
from relaycast_gateway.icrc16 import array, map_of, nat, text
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.principal import client_principal
from relaycast_gateway.record import EventDraft, Visibility
from relaycast_gateway.wamp import publication_flow
from relaycast_gateway.wamp.history.rules import HistoryRules
from searches import examples

KEPT = HistoryRules([kept("kept.")])


def draft(namespace: str, number: int, **more: Any) -> EventDraft:
    return EventDraft(namespace, nat(number), b"\x01", 5, **more)


@pytest.mark.matrix("WAMP-37")
@pytest.mark.matrix("WAMP-08")
def test_a_stored_publication_is_one_event_with_the_ids_that_clients_get() -> None:
    async def visit(town: Town) -> None:
        readers, writer = [town.session() for _ in range(3)], town.session("ann")
        ids = [reader.subscribe("kept.a") for reader in readers]
        pattern = readers[0].subscribe("kept.", match="prefix")
        writer.publish("kept.a", ["x"], {"a": b"\x00"}, acknowledge=True)
        await town.settle()
        (record,) = town.log.read()
        assert writer.published == [record.pub_id]
        assert {it.publication for reader in readers for it in reader.events} == {record.pub_id}
        assert [it.subscription for it in readers[0].events] == [ids[0], pattern]
        assert (record.namespace, record.source) == ("kept.a", client_principal("relaycast", "ann"))
        assert record.occurred_ns == record.received_ns == town.clock.now_ns()

    in_town(visit)


@pytest.mark.matrix("WAMP-09")
def test_a_topic_with_a_history_is_stored_with_nobody_there() -> None:
    async def visit(town: Town) -> None:
        writer = town.session()
        writer.publish("kept.a", [1])
        writer.leave()
        await town.settle()
        assert [record.data for record in town.log.read()] == [array(nat(1))]

    in_town(visit)


@pytest.mark.matrix("WAMP-11")
def test_events_of_patterns_are_stored_once_whatever_the_patterns_are() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.", match="prefix")
        reader.subscribe("kept..b", match="wildcard")
        writer.publish("kept.a.b", [1])
        await town.settle()
        assert [it.details for it in reader.events] == [{"topic": "kept.a.b"}] * 2
        assert town.log.last_seq == 1

    rules = HistoryRules([kept("kept..b", "wildcard"), kept("kept.")])
    in_town(visit, rules=rules)


@pytest.mark.matrix("WAMP-12")
def test_a_topic_without_a_history_is_not_stored() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("a.b")
        writer.publish("a.b", [1], acknowledge=True)
        assert [it.publication for it in reader.events] == writer.published
        await town.settle()
        assert town.log.last_seq == 0

    in_town(visit)


def test_nothing_is_told_before_it_is_durable() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.a")
        reader.take()
        writer.publish("kept.a", [1], acknowledge=True)
        assert (reader.got, writer.got, town.broker.waiting) == ([], [], 1)
        await town.settle()
        assert (len(reader.got), len(writer.got), town.broker.waiting) == (1, 1, 0)

    in_town(visit)


def test_publications_of_one_turn_share_one_append() -> None:
    async def visit(town: Town) -> None:
        appends = []
        append_soon = town.log.append_soon

        def counted(drafts: Sequence[EventDraft]) -> Any:
            appends.append(len(drafts))
            return append_soon(drafts)

        town.log.append_soon = counted  # type: ignore[method-assign]
        writers = [town.session() for _ in range(3)]
        for number in range(9):
            writers[number % 3].publish("kept.a", [number], acknowledge=True)
        await town.settle()
        assert appends == [9]
        assert all(len(it.published) == 3 for it in writers)

    in_town(visit)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 2)), max_size=40))
def test_the_publications_of_a_session_arrive_in_order_stored_or_not(steps: list[tuple[int, bool, int]]) -> None:
    async def visit(town: Town) -> None:
        reader, writers = town.session(), [town.session() for _ in range(3)]
        reader.subscribe("", match="prefix")
        reader.take()
        for number, (writer, is_kept, turns) in enumerate(steps):
            writers[writer].publish("kept.a" if is_kept else "a", [writer, number])
            for _ in range(turns):
                await asyncio.sleep(0)
        await town.settle()
        got = [it.args for it in reader.events]
        for writer in range(3):
            mine = [[writer, number] for number, step in enumerate(steps) if step[0] == writer]
            assert [it for it in got if it[0] == writer] == mine  # type: ignore[index]
        ids = [it.publication for it in reader.events if it.details["topic"] == "kept.a"]
        assert ids == [record.pub_id for record in town.log.read()]

    in_town(visit, rules=KEPT)


@pytest.mark.matrix("WAMP-07")
@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("oowc"), st.integers(0, 2)), max_size=30))
def test_events_of_others_are_delivered_in_the_order_of_the_log_and_once(steps: list[tuple[str, int]]) -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.", match="prefix")
        waiting = []
        for number, (who, turns) in enumerate(steps):
            if who == "w":
                writer.publish("kept.w", [number], acknowledge=True)
            else:
                topic = "kept.o" if who == "o" else "elsewhere"
                waiting.append(town.log.append_soon([draft(topic, number), draft(topic, number)]))
            for _ in range(turns):
                await asyncio.sleep(0)
        await town.settle()
        stored = [it.pub_id for it in town.log.read() if it.namespace != "elsewhere"]
        assert [it.publication for it in reader.events] == stored
        assert len(stored) == sum({"w": 1, "o": 2, "c": 0}[who] for who, _ in steps)
        assert all(it.done() for it in waiting)

    in_town(visit, rules=KEPT)


def test_events_of_others_are_seen_by_those_who_may_see_them() -> None:
    async def visit(town: Town) -> None:
        user, admin = town.session("ann"), town.session("root", "admin")
        for session in (user, admin):
            session.subscribe("chain", match="prefix")
        town.log.append(
            EventDraft(
                "chain", map_of({"a": nat(1)}), b"\x01", 5, headers=(("ce:source", text("/x")),), topic="chain.a"
            ),
            EventDraft("chain.b", text("x"), b"\x01", 5, visibility=Visibility(eligible_authrole=("admin",))),
        )
        await town.settle()
        details = {"topic": "chain.a", "_source": "/x", "_event_id": "1", "_time": "1970-01-01T00:00:00.000000005Z"}
        assert [(it.details, it.args, it.kwargs) for it in user.events] == [(details, [], {"a": 1})]
        assert [it.args for it in admin.events] == [[], ["x"]]

    in_town(visit)


def test_nothing_is_read_back_that_nobody_is_subscribed_to() -> None:
    async def visit(town: Town) -> None:
        town.log.records = _fail  # type: ignore[method-assign]
        reader, writer = town.session(), town.session()
        town.log.append(draft("chain.a", 1))
        await town.settle()
        reader.subscribe("chain.b")
        town.log.append(draft("chain.a", 1))
        writer.publish("kept.a", [1], acknowledge=True)
        await town.settle()
        assert len(writer.published) == 1

    in_town(visit)


def _fail(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("read back")


def test_own_events_are_never_read_back() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.a")
        town.log.records = _fail  # type: ignore[method-assign]
        for number in range(20):
            writer.publish("kept.a", [number])
            await asyncio.sleep(0)
        await town.settle()
        assert numbers(reader) == list(range(20))

    in_town(visit)


def test_many_events_of_others_are_delivered_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication_flow, "RECORDS_OF_A_STEP", 4)

    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.", match="prefix")
        town.log.append(*(draft("kept.o", number) for number in range(30)))
        writer.publish("kept.w", [30])
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(reader.events) < 31
        while len(reader.events) < 31:
            await asyncio.sleep(0)
        assert numbers(reader) == list(range(31))

    in_town(visit)


def test_many_publications_are_delivered_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication_flow, "BYTES_OF_A_STEP", 4 * publication_flow.LEAST_BYTES)
    log, commits, tellers = EventLog.open(), list[int](), list[Callable[[int], None]]()
    connect = log.connect

    def connect_but_hold(told: Callable[[int], None]) -> Callable[[], None]:
        tellers.append(told)
        return connect(commits.append)

    monkeypatch.setattr(log, "connect", connect_but_hold)

    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.", match="prefix")
        for number in range(30):
            writer.publish("kept.w", [number])
            if number % 3 == 2:
                await asyncio.sleep(0)
        town.log.purge()
        assert (commits[-1], reader.events) == (30, [])
        tellers[0](commits[-1])
        seen = []
        while len(reader.events) < 30:
            await asyncio.sleep(0)
            seen.append(len(reader.events))
        assert seen == [6, 12, 18, 24, 30], "the batch of three that a step begins with is delivered whole"
        assert numbers(reader) == list(range(30))

    in_town(visit, log=log)


def test_events_that_retention_has_dropped_are_passed_over() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.", match="prefix")
        town.log.append(*(draft("kept.o", number) for number in range(10)))
        writer.publish("kept.w", [10])
        await town.settle()
        assert numbers(reader)[-1] == 10
        assert numbers(reader) == sorted(numbers(reader))

    in_town(visit, log=EventLog.open(retention=Retention(count=2)))


def test_stop_stores_and_delivers_what_was_accepted_and_nothing_later() -> None:
    async def stay() -> None:
        town = Town()
        town.broker.start()
        reader, writer = town.session(), town.session()
        reader.subscribe("", match="prefix")
        reader.take()
        for number in range(5):
            writer.publish("kept.a", [number], acknowledge=True)
            if number == 2:
                await asyncio.sleep(0)
        await town.broker.stop()
        assert (numbers(reader), len(writer.published)) == ([0, 1, 2, 3, 4], 5)
        town.log.append(draft("kept.o", 9))
        writer.publish("kept.a", [6], acknowledge=True)
        await asyncio.sleep(0)
        assert (len(numbers(reader)), writer.errors) == (5, ["wamp.error.unavailable"])
        town.log.close()

    asyncio.run(stay())


def test_what_a_session_published_before_it_left_is_stored_and_delivered() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.a")
        writer.publish("kept.a", [1], acknowledge=True)
        writer.leave()
        await town.settle()
        assert numbers(reader) == [1]

    in_town(visit)


@pytest.mark.matrix("WAMP-73")
def test_a_realm_sees_no_event_of_another() -> None:
    async def stay(file: Path | None = None) -> None:
        log = EventLog.open(file)
        first, second = Town(log), Town(log, realm_name="shop", realm_prefix="shop:")
        for town in (first, second):
            town.broker.start()
        readers = [town.session() for town in (first, second)]
        writers = [town.session() for town in (first, second)]
        for reader in readers:
            reader.subscribe("", match="prefix")
            reader.take()
        for writer in writers:
            writer.publish("kept.a", [writer.broker.realm_name], acknowledge=True)
        log.append(draft("kept.chain", 1))
        await second.settle()
        await first.settle()
        assert [numbers(reader) for reader in readers] == [[1, "relaycast"], ["shop"]]
        assert {it.namespace for it in log.read()} == {"kept.a", "shop:kept.a", "kept.chain"}
        assert len({it.source for it in log.read()}) == 3
        for town in (first, second):
            await town.broker.stop()
        log.close()

    asyncio.run(stay())
