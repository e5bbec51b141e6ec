"""Replays from end to end: what arrives, for whom, with which headers; slow readers, cancels, restarts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.icrc.replay_stage import (
    ARCHIVIST,
    OTHER,
    READER,
    ReplayingStage,
    event_ids,
    events,
    replayed,
    system_items,
)
from gateway.icrc.stage import NAMESPACE, ORCHESTRATOR, PUBLISHER, header
from relaycast_gateway.candid import Variant
from relaycast_gateway.clock import Alarm
from relaycast_gateway.icrc import candy_path
from relaycast_gateway.icrc import system_messages as messages
from relaycast_gateway.icrc.broadcaster import BroadcastPolicy
from relaycast_gateway.icrc.replay.archive import ParquetArchive
from relaycast_gateway.icrc.replay.archivist import Archivist
from relaycast_gateway.icrc.system_messages import SystemItem
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc.variants import headers_of, pairs_of
from relaycast_gateway.icrc16 import Icrc16, Property, Tag, array, blob, boolean, map_of, nat, text
from relaycast_gateway.log.retention import Retention
from relaycast_gateway.principal import principal_text
from relaycast_gateway.record import EventDraft, EventRecord


@pytest.mark.matrix("ICRC77-18", "ICRC77-21", "ICRC77-22", "ICRC77-37")
def test_the_requester_alone_gets_each_event_of_the_range_once_and_in_order() -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.subscribe(OTHER)
        stage.publish_many(100)
        live = events(stage.subscriber(READER))

        replay_id = stage.request(start=11, end=91)

        again = replayed(stage.subscriber(READER))
        assert event_ids(again) == list(range(11, 91))
        by_id = {it["eventId"]: it for it in live}
        for it in again:
            assert it["data"] == by_id[it["eventId"]]["data"]
            assert it["source"] == by_id[it["eventId"]]["source"]
            assert header(it, "icrc77:replay") is True
            assert header(it, "icrc77:replay:id") == replay_id
        ids = [it["id"] for it in live + again]
        assert sorted(set(ids)) == sorted(ids)
        assert min(it["id"] for it in again) > max(it["id"] for it in live)
        assert replayed(stage.subscriber(OTHER)) == []
        assert stage.state(replay_id) == Variant("completed", 80)
        assert stage.log.last_seq == 100  # a replay adds nothing to the log


@pytest.mark.matrix("ICRC77-54")
def test_no_other_face_sees_a_replay() -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(10)
        commits: list[int] = []
        stage.log.connect(commits.append)

        stage.request()

        assert (commits, stage.log.last_seq) == ([], 10)
        assert len(replayed(stage.subscriber(READER))) == 10


@pytest.mark.matrix("ICRC77-17")
def test_headers_of_a_replay_stand_behind_those_of_the_event() -> None:
    own = (("tint", text("red")), ("icrc77:note", nat(5)), ("tint", text("blue")))
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish(stage.event(headers=own))
        stage.request()
        (again,) = replayed(stage.subscriber(READER))
        headers = headers_of(again["headers"])
        assert headers[: len(own)] == own
        assert {"icrc77:replay", "icrc77:replay:id"} <= {name for name, _ in headers[len(own) :]}


@pytest.mark.matrix("ICRC77-19")
def test_an_open_range_names_its_last_event_from_the_first_notification_on() -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(10)
        stage.request(start=4)
        again = replayed(stage.subscriber(READER))
        assert event_ids(again) == list(range(4, 11))
        assert [header(it, "icrc77:replay:end_id") for it in again] == [10] * 7
        assert [header(it, "icrc77:replay:end") for it in again] == [10] + [None] * 6

        stage.subscriber(READER).calls.clear()
        stage.request(start=4, end=11)
        again = replayed(stage.subscriber(READER))
        assert [header(it, "icrc77:replay:end_id") for it in again] == [None] * 7


@pytest.mark.matrix("ICRC77-20")
@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (3, 6, [3, 4, 5]),  # from is of the range, to is not
        (3, 3, []),
        (3, 4, [3]),
        (0, 3, [1, 2]),
        (9, None, [9, 10]),
        (9, 1 << 70, [9, 10]),
        (11, None, []),  # beyond the newest
        (1 << 70, 1 << 71, []),
    ],
)
def test_a_range_is_closed_at_its_start_and_open_at_its_end(start: int, end: int | None, expected: list[int]) -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(10)
        replay_id = stage.request(start=start, end=end)
        assert event_ids(replayed(stage.subscriber(READER))) == expected
        assert stage.state(replay_id) == Variant("completed", len(expected))


@pytest.mark.matrix("ICRC77-29", "ICRC77-30", "ICRC77-52")
def test_filter_and_skip_of_the_request_select_and_the_end_is_an_id_that_arrives() -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER, filter="v == 99")  # the subscription's own filter does not count
        for event_id in range(10, 610, 10):  # ids with gaps: the ordinal of 10 is 1
            stage.publish(stage.event(event_id, map_of({"v": nat(event_id % 4)})), settles=False)
        stage.run()

        stage.request(config={"filter": text("v == 2"), "skip": array(nat(3), nat(1))})

        again = replayed(stage.subscriber(READER))
        expected = [it for it in range(10, 610, 10) if (it // 10) % 3 == 1 and it % 4 == 2]
        assert event_ids(again) == expected
        assert {it["filter"] for it in again} == {"v == 2"}
        assert {header(it, "icrc77:replay:end_id") for it in again} == {expected[-1]}


@pytest.mark.matrix("ICRC77-31")
@pytest.mark.parametrize("filter_text", ["v", "v > 2 & v < 5", "v == 1 | v == 4", "list.-1 == 3", "kind ~= od", "*"])
def test_the_grammar_of_filters_is_that_of_subscriptions(filter_text: str) -> None:
    trees = [
        map_of({"v": nat(it), "list": array(nat(it - 1), nat(it)), "kind": text("odd" if it % 2 else "even")})
        for it in range(1, 6)
    ] + [nat(7)]
    with ReplayingStage() as stage:
        stage.register()
        stage.publish(*(stage.event(None, tree) for tree in trees))
        stage.subscribe(READER)
        stage.request(config={"filter": text(filter_text)})
        selects = candy_path(filter_text)
        expected = [it for it, tree in enumerate(trees, 1) if selects(tree)]
        assert event_ids(replayed(stage.subscriber(READER))) == expected


@pytest.mark.matrix("ICRC77-36")
def test_capabilities_and_prices_are_shown_by_the_orchestrator() -> None:
    price = Icrc16(Tag.CLASS, (Property("perEvent", nat(3), immutable=True),))
    config = {"icrc77:capable": boolean(True), "icrc77:pricing": price}
    page = {"prev": None, "take": None, "statsFilter": None}
    with ReplayingStage() as stage:
        stage.register(config=config)
        (shown,) = stage.ask(OTHER, "icrc72_get_publications", page)
        assert dict(headers_of(shown["config"])) == config
        (shown,) = stage.ask(OTHER, "icrc72_get_publication_publishers", page | {"namespace": NAMESPACE})
        assert (shown["publisher"].raw, dict(headers_of(shown["config"]))) == (PUBLISHER, config)


@pytest.mark.matrix("ICRC77-15", "ICRC77-16", "ICRC77-52")
def test_the_requester_hears_the_beginning_before_the_events_and_the_end_behind_them() -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(5)
        reader = stage.subscriber(READER)
        reader.calls.clear()
        replay_id = stage.request()
        kinds = [it["namespace"].split(":")[0] for it in reader.messages]
        assert kinds == ["icrc72", *[NAMESPACE] * 5, "icrc72"]
        broadcaster = stage.broadcaster.principal
        begin = SystemItem(messages.SUBSCRIBER_ADD, replay_id, broadcaster=broadcaster)
        assert system_items(reader) == [begin, SystemItem(messages.SUBSCRIBER_REMOVE, replay_id)]
        assert {it["namespace"] for it in reader.messages if it["namespace"] != NAMESPACE} == {
            f"icrc72:subscriber:sys:{principal_text(READER)}"
        }
        assert {caller for caller, _, _ in reader.calls} == {broadcaster}

        reader.calls.clear()
        empty = stage.request(config={"filter": text("v == 1")})
        assert [item.key for item in system_items(reader)] == [messages.SUBSCRIBER_ADD, messages.SUBSCRIBER_REMOVE]
        assert stage.state(empty) == Variant("completed", 0)


@pytest.mark.matrix("ICRC77-42")
def test_replayed_notifications_want_their_confirmation_and_are_counted() -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(5)
        reader = stage.subscriber(READER)
        reader.confirms = False
        before = stage.stats()
        replay_id = stage.request()
        again = replayed(reader)
        assert set(stage.broadcaster.outstanding()) == {it["id"] for it in again}
        assert system_items(reader)[-1].key == messages.SUBSCRIBER_ADD  # not over before it is confirmed
        stage.run(61)
        assert event_ids(replayed(reader)) == event_ids(again) * 2  # the same ids, once more
        assert [it["id"] for it in replayed(reader)] == [it["id"] for it in again] * 2
        reader.confirm(*(it["id"] for it in again))
        stage.run()
        assert stage.broadcaster.outstanding() == []
        assert system_items(reader)[-1] == SystemItem(messages.SUBSCRIBER_REMOVE, replay_id)
        after = stage.stats()
        assert after["confirmations"] - before["confirmations"] == 5


@pytest.mark.matrix("ICRC77-45")
def test_a_slow_reader_slows_its_replay_and_nothing_piles_up() -> None:
    policy = BroadcastPolicy(most_waiting_replayed=50, notifications_a_call=10, most_unconfirmed=10)
    with ReplayingStage(policy=policy) as stage:
        stage.register()
        stage.publish_many(300)
        stage.subscribe(READER)
        reader = stage.subscriber(READER)
        reader.confirms = False
        replay_id = stage.request()
        most_waited = []
        while waiting := stage.broadcaster.outstanding():
            most_waited.append(stage.broadcaster.replays.most_waited(replay_id))
            reader.confirm(*waiting, broadcaster=stage.broadcaster.principal)
            stage.run(1)
        assert max(most_waited) == 50
        assert event_ids(replayed(reader)) == list(range(1, 301))
        assert stage.state(replay_id) == Variant("completed", 300)


@pytest.mark.matrix("ICRC77-40")
def test_a_cancel_stops_what_was_not_sent_yet() -> None:
    policy = BroadcastPolicy(most_waiting_replayed=50, notifications_a_call=10, most_unconfirmed=10)
    with ReplayingStage(policy=policy) as stage:
        stage.register()
        stage.publish_many(300)
        stage.subscribe(READER)
        reader = stage.subscriber(READER)
        reader.confirms = False
        replay_id = stage.request()
        sent = len(replayed(reader))
        assert sent == 10  # the window
        assert stage.ask(READER, "icrc77_cancel_replay", [replay_id]) == [Variant("Ok", replay_id)]
        stage.run(10)
        reader.confirms = True
        reader.confirm(*(it["id"] for it in replayed(reader)), broadcaster=stage.broadcaster.principal)
        stage.run(100)
        assert len(replayed(reader)) == sent
        assert stage.state(replay_id).tag == "canceled"
        assert system_items(reader)[-1] == SystemItem(messages.SUBSCRIBER_REMOVE, replay_id)
        assert stage.archivist.jobs == {}


@pytest.mark.matrix("ICRC77-38")
def test_live_events_go_on_during_a_replay() -> None:
    policy = BroadcastPolicy(most_waiting_replayed=20, notifications_a_call=5, most_unconfirmed=5)
    with ReplayingStage(policy=policy, latency=lambda _from, _to: 10_000_000) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(100)
        stage.run(10)
        reader = stage.subscriber(READER)
        reader.calls.clear()
        stage.request(runs=0.1)
        for _ in range(20):
            stage.publish(stage.event())
            stage.run(0.05)
        stage.run(60)
        kinds = [header(it, "icrc77:replay:id") is None for it in events(reader)]
        first_live, last_live = kinds.index(True), len(kinds) - 1 - kinds[::-1].index(True)
        assert not all(kinds[first_live:last_live])  # they overlap
        live = [it["eventId"] for it, is_live in zip(events(reader), kinds, strict=True) if is_live]
        assert live == list(range(101, 121))
        assert event_ids(replayed(reader)) == list(range(1, 101))  # as of its registration


@pytest.mark.matrix("ICRC77-41")
def test_a_replay_goes_on_after_a_restart_and_loses_nothing(tmp_path: Path) -> None:
    policy = BroadcastPolicy(most_waiting_replayed=20, notifications_a_call=5, most_unconfirmed=5)
    with ReplayingStage(folder=tmp_path, policy=policy, latency=lambda _from, _to: 10_000_000) as stage:
        stage.register()
        stage.publish_many(200)
        stage.run(5)
        stage.subscribe(READER)
        reader = stage.subscriber(READER)
        replay_id = stage.request(runs=0.1)
        for _ in range(4):
            assert stage.state(replay_id).tag == "running"
            stage.restart()
            stage.run(0.1)
        stage.run(200)
        assert sorted(set(event_ids(replayed(reader)))) == list(range(1, 201))
        assert stage.state(replay_id).tag == "completed"
        numbers = [(it["id"], it["eventId"]) for it in replayed(reader)]
        assert len({number for number, _ in set(numbers)}) == len(set(numbers))  # no id stands for two events


@pytest.mark.matrix("ICRC77-21")
@pytest.mark.parametrize("relay", [None, 1])
def test_an_event_that_a_publisher_sends_twice_arrives_once(relay: int | None, tmp_path: Path) -> None:
    with ReplayingStage(broadcasters=2, folder=tmp_path) as stage:
        near, far = stage.principals
        stage.homes |= {READER: near, b"capable": near if relay is None else far}
        stage.orchestrator.registry.homes = stage.homes
        stage.register(publisher=b"capable", config={"icrc77:capable": boolean(True)})
        stage.publish(*(stage.event() for _ in range(10)), publisher=b"capable", broadcaster=relay or 0)
        stage.subscribe(READER)
        replay_id = stage.request()  # its publisher does not do anything by itself
        mark = pairs_of([("icrc77:replay", boolean(True)), ("icrc77:replay:id", nat(replay_id))])

        def send(*ids: int) -> list[bool]:
            items = [stage.event(it, nat(it)) | {"headers": mark} for it in ids]
            results = stage.publish(*items, publisher=b"capable", broadcaster=relay or 0)
            return [bool(it.value) for it in results]

        assert send(1, 2, 2, 5) == [True, True, False, True]
        assert send(5, 1, 6) == [False, False, True]
        stage.restart()
        stage.run(1)
        assert send(6, 4, 2) == [False, True, False]
        assert event_ids(replayed(stage.subscriber(READER))) == [1, 2, 5, 6, 4]


@pytest.mark.parametrize("given", [{"config": {"filter": text("v == 1")}}, {"start": 1 << 60, "end": 1 << 61}])
def test_a_replay_that_finds_nothing_lets_others_have_their_turn(given: dict[str, Any]) -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.log.append(*(EventDraft(NAMESPACE, nat(it), PUBLISHER, 0) for it in range(5_000)))
        stage.broadcaster.catch_up()
        stage.subscribe(READER)
        read, turns = stage.log.read, [0]
        later = stage.subnet.call_later

        def counted(*args: Any, **options: Any) -> list[EventRecord]:
            found = read(*args, **options)
            turns[-1] += len(found)
            return found

        def next_turn(seconds: float, callback: Callable[[], None]) -> Alarm:
            turns.append(0)
            return later(seconds, callback)

        stage.log.read, stage.subnet.call_later = counted, next_turn  # type: ignore[method-assign]
        replay_id = stage.request(**given)
        assert stage.state(replay_id) == Variant("completed", 0)
        assert max(turns) <= 2 * 1_024


@pytest.mark.matrix("ICRC77-53")
def test_a_right_that_is_revoked_ends_the_replay() -> None:
    policy = BroadcastPolicy(most_waiting_replayed=20, notifications_a_call=5, most_unconfirmed=5)
    with ReplayingStage(policy=policy) as stage:
        (publication_id,) = stage.register()
        stage.publish_many(200)
        stage.subscribe(READER)
        reader = stage.subscriber(READER)
        reader.confirms = False
        replay_id = stage.request()
        stage.configure(publication_id, {"icrc72:publication:subscribers:disallowed:list": array(blob(READER))})
        sent = len(replayed(reader))
        reader.confirms = True
        reader.confirm(*(it["id"] for it in replayed(reader)), broadcaster=stage.broadcaster.principal)
        stage.run(100)
        assert len(replayed(reader)) == sent
        assert stage.state(replay_id).tag == "errored"


@pytest.mark.matrix("ICRC77-55")
def test_an_event_of_a_replay_is_refused_from_others_outside_the_range_and_with_other_data() -> None:
    policy = BroadcastPolicy(notifications_a_call=2, most_unconfirmed=2, most_waiting_replayed=2)
    with ReplayingStage(policy=policy) as stage:
        stage.register()
        stage.publish_many(20)
        stage.subscribe(READER)
        stage.subscriber(READER).confirms = False
        replay_id = stage.request(start=3, end=9)
        assert stage.state(replay_id).tag == "running"
        mark = pairs_of([("icrc77:replay", boolean(True)), ("icrc77:replay:id", nat(replay_id))])

        def attempt(event_id: int, value: int, publisher: bytes) -> object:
            item = stage.event(event_id, nat(value)) | {"headers": mark}
            return stage.subnet.ask(publisher, stage.broadcaster.principal, "icrc72_publish", [item])[0]  # type: ignore[index]

        for event_id, value, publisher in (
            (4, 4, PUBLISHER),  # not the one that was chosen
            (2, 2, ARCHIVIST),  # before the range
            (9, 9, ARCHIVIST),  # its end
            (4, 5, ARCHIVIST),  # other data
            (99, 99, ARCHIVIST),
        ):
            result = attempt(event_id, value, publisher)
            assert result.tag == "Err"  # type: ignore[attr-defined]
            assert result.value.tag == "ImproperId", (event_id, publisher)  # type: ignore[attr-defined]
        assert set(event_ids(replayed(stage.subscriber(READER)))) <= set(range(3, 9))


@pytest.mark.matrix("ICRC77-50")
def test_a_replayed_event_is_an_event_of_the_plain_interface() -> None:
    with ReplayingStage() as stage:
        stage.register()
        stage.publish_many(3)
        stage.subscribe(READER)
        sent: list[object] = []
        publish = stage.broadcaster.receive

        def watched(caller: bytes, method: str, argument: object = None) -> object:
            if caller == ARCHIVIST:
                sent.append(argument)
            return publish(caller, method, argument)

        stage.broadcaster.receive = watched  # type: ignore[method-assign]
        stage.request()
        method = stage.broadcaster.interface["icrc72_publish"]
        assert sent
        for argument in sent:
            assert method.decode_arguments(method.encode_arguments([argument])) == [argument]


@pytest.mark.matrix("ICRC77-08", "ICRC77-09", "ICRC77-11", "ICRC77-12")
def test_a_relay_hands_the_events_of_a_distant_publisher_on() -> None:
    with ReplayingStage(broadcasters=2) as stage:
        near, far = stage.principals
        stage.orchestrator.registry.homes |= {READER: near, b"capable": far}
        stage.register(publisher=b"capable", config={"icrc77:capable": boolean(True)})
        stage.subscribe(READER)
        capable = Archivist(
            b"capable", stage.subnet, stage.orchestrator.registry, stage.store, stage.log, orchestrator=ORCHESTRATOR
        )
        stage.subnet.add(capable)
        stage.publish(*(stage.event() for _ in range(50)), publisher=b"capable", broadcaster=1)
        reader = stage.subscriber(READER)
        reader.calls.clear()

        replay_id = stage.request(start=5, end=46, config={"skip": array(nat(2))})

        again = replayed(reader)
        assert event_ids(again) == list(range(6, 46, 2))
        for it in again:
            sent, received = header(it, "icrc72:relay:sent"), header(it, "icrc72:relay:received")
            assert sent is not None
            assert sent <= received
        assert stage.state(replay_id) == Variant("completed", 20)
        assert [replays.relayed for replays in (it.replays for it in stage.broadcasters)] == [{}, {}]
        assert all(not it.replays.assigned for it in stage.broadcasters)
        assert {caller for caller, _, _ in reader.calls} == {near}


@pytest.mark.matrix("ICRC77-46")
def test_an_event_that_does_not_fit_its_hash_ends_the_replay_before_it_is_sent() -> None:
    wrong = (("icrc72:eventData:hash", blob(bytes(32))),)
    right = (("icrc72:eventData:hash", blob(eventdata_hash(nat(1)))),)
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.log.append(EventDraft(NAMESPACE, nat(1), PUBLISHER, 0, event_id=1, headers=right))
        stage.broadcaster.catch_up()
        good = stage.request()
        assert stage.state(good) == Variant("completed", 1)
        stage.log.append(EventDraft(NAMESPACE, nat(2), PUBLISHER, 0, event_id=2, headers=wrong))
        stage.broadcaster.catch_up()
        stage.run()
        bad = stage.request(start=2)
        assert stage.state(bad) == Variant("errored", f"the event 2 of {NAMESPACE} does not fit its hash")
        assert event_ids(replayed(stage.subscriber(READER), bad)) == []


@pytest.mark.matrix("ICRC77-20")
def test_a_range_from_before_retention_begins_at_the_first_event_kept_and_says_so() -> None:
    with ReplayingStage(retention=Retention(count=4)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(10)
        stage.request(start=2)
        again = replayed(stage.subscriber(READER))
        assert event_ids(again) == [7, 8, 9, 10]
        assert {header(it, "icrc77:replay:start_id") for it in again} == {7}
        stage.subscriber(READER).calls.clear()
        stage.request(start=8)
        assert {header(it, "icrc77:replay:start_id") for it in replayed(stage.subscriber(READER))} == {None}


@pytest.mark.matrix("ICRC77-49")
def test_an_archive_serves_what_the_log_has_dropped(tmp_path: Path) -> None:
    archive = tmp_path / "events.parquet"
    with ReplayingStage(retention=Retention(count=30), archive=ParquetArchive(archive)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(25)
        stage.log.export_parquet(archive)
        stage.publish_many(25)
        assert stage.log.history_start == 21

        replay_id = stage.request(start=3, config={"skip": array(nat(4), nat(1))})

        again = replayed(stage.subscriber(READER))
        assert event_ids(again) == [it for it in range(3, 51) if it % 4 == 1]
        assert {header(it, "icrc77:replay:start_id") for it in again} == {None}
        assert {it["source"].raw for it in again} == {PUBLISHER}
        assert stage.state(replay_id) == Variant("completed", 12)


@pytest.mark.matrix("ICRC77-46", "ICRC77-49")
def test_a_damaged_archive_ends_the_replay_and_nothing_of_it_is_delivered(tmp_path: Path) -> None:
    archive = tmp_path / "events.parquet"
    with ReplayingStage(retention=Retention(count=5), archive=ParquetArchive(archive)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(5)
        stage.log.export_parquet(archive)
        table = pq.read_table(archive)
        changed = ["7" if value.as_py() == "3" else value.as_py() for value in table["data"]]
        pq.write_table(table.set_column(table.schema.get_field_index("data"), "data", pa.array(changed)), archive)
        stage.publish_many(5)
        replay_id = stage.request()
        assert stage.state(replay_id) == Variant("errored", f"the event 3 of {NAMESPACE} does not fit its hash")
        assert replayed(stage.subscriber(READER)) == []
