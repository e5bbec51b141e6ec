"""Replays from end to end: what arrives, for whom, in which order and with which headers."""

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
from relaycast_gateway.icrc import candy_path
from relaycast_gateway.icrc import system_messages as messages
from relaycast_gateway.icrc.replay.archivist import Archivist
from relaycast_gateway.icrc.system_messages import SystemItem
from relaycast_gateway.icrc.variants import headers_of
from relaycast_gateway.icrc16 import Icrc16, Property, Tag, array, boolean, map_of, nat, text
from relaycast_gateway.principal import principal_text


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
        assert list(stage.broadcaster.outstanding()) == []
        assert system_items(reader)[-1] == SystemItem(messages.SUBSCRIBER_REMOVE, replay_id)
        after = stage.stats()
        assert after["confirmations"] - before["confirmations"] == 5


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
