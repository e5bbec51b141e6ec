"""Publications that are not taken: an error to who asked, no event to anybody, and the others go on."""

import asyncio
import sqlite3
from itertools import pairwise
from typing import Any

import pytest

from gateway.wamp.broker_peers import Town, in_town, kept, numbers
from relaycast_gateway.icrc16 import text
from relaycast_gateway.record import EventDraft
from relaycast_gateway.wamp import broker, publication_flow
from relaycast_gateway.wamp.history.rules import HistoryRules
from relaycast_gateway.wamp.publication_flow import LEAST_BYTES


def test_what_the_disk_refuses_is_an_error_to_who_asked_and_no_event() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("", match="prefix")
        reader.take()
        write = town.log._table.write
        town.log._table.write = _full  # type: ignore[method-assign, assignment]
        writer.publish("kept.a", [1], acknowledge=True)
        writer.publish("kept.a", [2])
        writer.publish("a", [3], acknowledge=True)
        while town.broker.waiting:
            await asyncio.sleep(0)
        assert numbers(reader) == [3], "what is not stored anyway is not held back"
        assert writer.errors == ["wamp.error.unavailable"]
        assert len(writer.published) == 1
        town.log._table.write = write  # type: ignore[method-assign]
        writer.publish("kept.a", [4], acknowledge=True)
        await town.settle()
        assert numbers(reader) == [3, 4]
        assert town.log.last_seq == 1

    in_town(visit)


def _full(*args: Any) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_one_event_that_cannot_be_stored_leaves_the_others_alone() -> None:
    async def visit(town: Town) -> None:
        reader, writer, other = town.session(), town.session(), town.session()
        reader.subscribe("", match="prefix")
        reader.take()
        writer.publish("kept.a", [1], acknowledge=True)
        writer.publish("kept.a", ["\ud800"], acknowledge=True)
        writer.publish("a", [2], acknowledge=True)
        other.publish("kept.a", [3], acknowledge=True)
        writer.publish("kept.a", [4], acknowledge=True)
        await town.settle()
        assert numbers(reader) == [1, 2, 3, 4]
        assert writer.errors == ["wamp.error.unavailable"]
        assert len(writer.published) == 3

    in_town(visit)


def test_a_closed_log_refuses_and_unstored_topics_go_on() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("", match="prefix")
        reader.take()
        town.log.close()
        writer.publish("kept.a", [1], acknowledge=True)
        writer.publish("a", [2])
        for _ in range(5):
            await asyncio.sleep(0)
        assert (writer.errors, numbers(reader)) == (["wamp.error.unavailable"], [2])

    in_town(visit)


def test_a_publisher_that_outruns_the_disk_is_read_no_more_until_it_has_caught_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publication_flow, "PAUSE_AT", 4 * LEAST_BYTES)
    monkeypatch.setattr(publication_flow, "MOST_WAITING", 8 * LEAST_BYTES)

    async def visit(town: Town) -> None:
        writer, quiet = town.session(), town.session()
        for number in range(10):
            writer.publish("kept.a", [number], acknowledge=True)
            assert writer.is_paused == (number >= 4)
        writer.publish("a", [10], acknowledge=True)
        quiet.publish("a", [1], acknowledge=True)
        assert (len(quiet.published), quiet.is_paused) == (1, False)
        assert writer.errors == ["wamp.error.unavailable"] * 3
        await town.settle()
        assert (len(writer.published), writer.is_paused) == (8, False)
        writer.publish("kept.a", [11], acknowledge=True)
        await town.settle()
        assert len(writer.published) == 9

    in_town(visit)


def test_a_publisher_of_large_events_is_paused_and_refused_by_their_bytes() -> None:
    async def visit(town: Town) -> None:
        writer, quiet = town.session(), town.session()
        payload = "x" * (1 << 20)
        writer.message_bytes = len(payload)
        for number in range(40):
            writer.publish("kept.a", [payload], acknowledge=True)
            assert writer.is_paused == (number >= 4)
        quiet.publish("a", [1], acknowledge=True)
        assert (len(quiet.published), quiet.is_paused) == (1, False)
        assert writer.errors == ["wamp.error.unavailable"] * 8
        await town.settle()
        assert (len(writer.published), writer.is_paused) == (32, False)

    in_town(visit)


def test_large_events_are_delivered_a_few_a_turn() -> None:
    async def visit(town: Town) -> None:
        reader, writer = town.session(), town.session()
        reader.subscribe("kept.", match="prefix")
        payload = "x" * (400 << 10)
        seen = []
        town.log.append(*(EventDraft("kept.o", text(payload), b"", 5) for _ in range(6)))
        while len(reader.events) < 6:
            await asyncio.sleep(0)
            seen.append(len(reader.events))
        writer.message_bytes = len(payload)
        for _ in range(6):
            writer.publish("kept.w", [payload])
            await asyncio.sleep(0)
            seen.append(len(reader.events))
        town.log.purge()
        while len(reader.events) < 12:
            await asyncio.sleep(0)
            seen.append(len(reader.events))
        assert max(later - earlier for earlier, later in pairwise([0, *seen])) <= 2

    in_town(visit)


@pytest.mark.matrix("WAMP-73")
def test_a_client_cannot_publish_into_another_realm() -> None:
    async def visit(town: Town) -> None:
        writer = town.session()
        writer.publish("shop:kept.a", [1], acknowledge=True)
        await town.settle()
        assert (writer.errors, town.log.last_seq) == (["wamp.error.invalid_uri"], 0)

    in_town(visit, rules=HistoryRules([kept("")]))


def test_a_topic_that_is_too_long_for_the_log_is_refused() -> None:
    async def visit(town: Town) -> None:
        writer = town.session()
        writer.publish("kept." + "x" * 1015, [1], acknowledge=True)
        writer.publish("kept." + "x" * 1014, [1], acknowledge=True)
        await town.settle()
        assert (writer.errors, len(writer.published)) == (["wamp.error.invalid_uri"], 1)

    in_town(visit, realm_name="shop", realm_prefix="shop:")


@pytest.mark.parametrize(
    ("bound", "value", "first", "second"),
    [
        ("MOST_TOPICS", 1, ("kept.a", {}), ("kept.b", {})),
        ("MOST_VISIBILITIES", 2, ("kept.a", {"eligible_authid": ["ann"]}), ("kept.a", {"eligible_authid": ["bob"]})),
    ],
)
def test_a_log_that_has_had_too_many_names_takes_those_that_it_knows(
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    value: int,
    first: tuple[str, dict[str, Any]],
    second: tuple[str, dict[str, Any]],
) -> None:
    async def visit(town: Town) -> None:
        writer = town.session()
        for topic, options in (first, second, first):
            writer.publish(topic, [1], acknowledge=True, **options)
            await town.settle()
        assert (writer.errors, len(writer.published)) == (["wamp.error.unavailable"], 2)

    monkeypatch.setattr(broker, bound, value)
    in_town(visit)
