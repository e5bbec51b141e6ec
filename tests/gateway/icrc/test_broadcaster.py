"""The broadcaster, from a publisher's call to the confirmations of subscribers."""

from typing import Any

import pytest

from gateway.icrc.stage import NAMESPACE, PUBLISHER, Stage, header
from relaycast_gateway import crockford
from relaycast_gateway.candid import Principal, Variant, decode, encode
from relaycast_gateway.icrc.broadcaster import BroadcastPolicy
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.event_id import blob_of_id, id_of_blob
from relaycast_gateway.icrc.interface import CanisterRole, methods_of
from relaycast_gateway.icrc.names import (
    BROADCASTER_PRIORITY,
    BROADCASTER_RECEIVED,
    BROADCASTER_SENT,
    EVENT_TIMESTAMP,
    HASH,
    ICRC3_ONLY,
    RELAY_RECEIVED,
    RELAY_SENT,
    TRUSTED,
    UNORDERED,
)
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc.variants import headers_of, icrc16_of, pairs_of, variant_of
from relaycast_gateway.icrc16 import Icrc16, Tag, array, blob, boolean, from_json, nat, option, text

SUBSCRIBER = methods_of(CanisterRole.SUBSCRIBER)
BROADCASTER = methods_of(CanisterRole.BROADCASTER)

RICH = from_json(
    {
        "n": {"$Nat8": 7},
        "f": 1.5,
        "list": [None, "a", {"$Set": ["b", True]}],
        "blob": "0xff00",
        "deep": {"x": {"y": []}},
    }
)


def error(result: Any) -> Any:
    """Return the error of a result, its name alone where it has no content."""
    assert result.tag == "Err", result
    return result.value.tag if result.value.value is None else result.value


def first(arguments: list[Any]) -> Any:
    """Return the only item of the only argument."""
    ((item,),) = arguments
    return item


@pytest.mark.matrix("ICRC72-01")
@pytest.mark.parametrize("event_id", [0, 1 << 64, (1 << 200) + 1])
def test_ids_of_any_size_arrive_as_they_are(event_id: int) -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.publish(stage.event(event_id, prev_id=event_id + 1))
        (message,) = stage.subscribers[b"alice"].messages
        wire = SUBSCRIBER["icrc72_handle_notification"]
        arrived = first(wire.decode_arguments(wire.encode_arguments([[message]])))
        assert (arrived["eventId"], arrived["prevEventId"]) == (event_id, event_id + 1)


@pytest.mark.matrix("ICRC72-02")
@pytest.mark.parametrize(
    ("given", "number"), [(b"", 0), (b"\x01", 1), (b"\x01\x00", 256), (b"\xff" * 33, (1 << 264) - 1)]
)
def test_ids_as_bytes_are_big_endian_numbers(given: bytes, number: int) -> None:
    assert id_of_blob(given) == number
    assert blob_of_id(number) == given
    with pytest.raises(ValueError, match="expected a natural number"):
        blob_of_id(-1)


@pytest.mark.matrix("ICRC72-05")
def test_the_id_of_the_event_before_is_kept() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.publish(stage.event(5), stage.event(9, prev_id=5), {**stage.event(10), "prevId": 9})
        assert [it["prevEventId"] for it in stage.subscribers[b"alice"].messages] == [None, 5, 9]
        (refused,) = stage.publish({**stage.event(11, prev_id=9), "prevId": 10})
        assert "expected one id, got two" in error(refused).value["message"]


@pytest.mark.matrix("ICRC72-06")
def test_unordered_publications_have_no_event_before() -> None:
    with Stage() as stage:
        stage.register(config={UNORDERED: boolean(True)})
        stage.subscribe(b"alice")
        stage.publish(stage.event(5), stage.event(9, prev_id=5))
        assert [it["prevEventId"] for it in stage.subscribers[b"alice"].messages] == [None, None]


@pytest.mark.matrix("ICRC72-11")
def test_events_of_one_block_share_its_time_and_notifications_have_their_own() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        block_ns = stage.now_ns - 6_000_000_000
        stage.run(2)
        stage.publish(stage.event(timestamp=block_ns), stage.event(timestamp=block_ns))
        now_ns = stage.now_ns
        messages = stage.subscribers[b"alice"].messages
        assert [header(it, EVENT_TIMESTAMP) for it in messages] == [block_ns] * 2
        assert [it["timestamp"] for it in messages] == [now_ns] * 2


@pytest.mark.matrix("ICRC72-13")
def test_notification_ids_have_a_text_in_crockfords_base32() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.publish(*(stage.event() for _ in range(40)))
        ids = [it["id"] for it in stage.subscribers[b"alice"].messages]
        texts = [crockford.encode(it) for it in ids]
        assert texts[9] == "A"
        assert texts[31] == "10"
        assert [crockford.decode(it.lower()) for it in texts] == ids


@pytest.mark.matrix("ICRC72-12")
def test_notification_ids_increase_and_are_those_of_one_broadcaster() -> None:
    with Stage(broadcasters=2) as stage:
        stage.register()
        for name in (b"alice", b"bob", b"carol", b"dave"):
            stage.subscribe(name)
        for number in range(20):
            stage.publish(stage.event(), broadcaster=number % 2)
        stage.run(1)
        of: dict[bytes, list[int]] = {}
        for subscriber in stage.subscribers.values():
            ids = [it["id"] for it in subscriber.messages]
            assert len(ids) == 20
            assert ids == sorted(ids)
            of.setdefault(subscriber.calls[0][0], []).extend(ids)
        assert sorted(of) == stage.principals
        for ids in of.values():
            assert sorted(ids) == list(range(1, 41))


@pytest.mark.matrix("ICRC72-20")
def test_data_arrive_byte_for_byte() -> None:
    with Stage(broadcasters=2) as stage:
        stage.register()
        for name in (b"alice", b"bob"):
            stage.subscribe(name)
        sent = stage.event(data=RICH)
        stage.publish(sent)
        stage.run(1)
        as_bytes = encode(_DATA, [sent["data"]])
        for name in (b"alice", b"bob"):
            (message,) = stage.subscribers[name].messages
            assert encode(_DATA, [message["data"]]) == as_bytes
            assert icrc16_of(message["data"]) == RICH
        assert {it.calls[0][0] for it in stage.subscribers.values()} == set(stage.principals)


@pytest.mark.matrix("ICRC72-21", "ICRC72-23", "ICRC72-24", "ICRC72-26")
def test_headers_are_only_appended() -> None:
    right = blob(eventdata_hash(nat(1)))
    given = (("color", text("red")), ("color", text("blue")), (HASH, right), (EVENT_TIMESTAMP, nat(1)))
    with Stage() as stage:
        stage.register()
        names = [b"alice", b"bob", b"carol"]
        for name in names:
            stage.subscribe(name)
        stage.publish(stage.event(headers=given))
        places = []
        for name in names:
            (message,) = stage.subscribers[name].messages
            headers = headers_of(message["headers"])
            assert headers[: len(given)] == given
            assert header(message, EVENT_TIMESTAMP) == stage.now_ns
            assert header(message, BROADCASTER_RECEIVED) <= header(message, BROADCASTER_SENT)
            assert header(message, RELAY_SENT) is header(message, RELAY_RECEIVED) is None
            places.append([it.content for it in header(message, BROADCASTER_PRIORITY)])
        assert places == [[1, 3], [2, 3], [3, 3]]
        assert all(it.tag is Tag.NAT for it in array(*header(message, BROADCASTER_PRIORITY)).content)


@pytest.mark.matrix("ICRC72-108")
@pytest.mark.parametrize(
    "name",
    [BROADCASTER_RECEIVED, RELAY_SENT, "icrc72:broadcaster:x", "relaycast:broadcaster", "wamp:realm", "icrc77:replay"],
)
def test_headers_of_the_gateway_are_refused_from_publishers(name: str) -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        refused, taken = stage.publish(stage.event(headers=((name, nat(1)),)), stage.event())
        assert error(refused).value["message"] == f"header {name}: only broadcasters give it"
        assert taken == Variant("Ok", [1])
        assert stage.log.last_seq == 1


@pytest.mark.matrix("ICRC72-27", "ICRC72-28")
def test_source_is_the_publisher_and_the_caller_the_broadcaster() -> None:
    with Stage(broadcasters=2) as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.subscribe(b"bob", config={TRUSTED: boolean(True)})
        stage.publish(stage.event(source=PUBLISHER), stage.event())
        stage.run(1)
        methods = set()
        for name in (b"alice", b"bob"):
            subscriber = stage.subscribers[name]
            assert [it["source"] for it in subscriber.messages] == [Principal(PUBLISHER)] * 2
            assert {caller for caller, _, _ in subscriber.calls} == {_broadcaster_of(stage, name)}
            methods.add(subscriber.calls[0][1])
        assert methods == {"one-shot", "trusted"}


@pytest.mark.matrix("ICRC72-29", "ICRC72-103")
def test_a_notification_tells_the_filter_that_selected_it() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice", filter="category: [sports, technology]")
        stage.subscribe(b"bob")
        for category in ("sports", "finance", "technology"):
            stage.publish(stage.event(data=from_json({"category": category})))
        assert stage.subscribers[b"alice"].event_ids == [1, 3]
        assert [it["filter"] for it in stage.subscribers[b"alice"].messages] == ["category: [sports, technology]"] * 2
        assert [it["filter"] for it in stage.subscribers[b"bob"].messages] == [None] * 3


@pytest.mark.matrix("ICRC72-30")
@pytest.mark.parametrize("missing", ["id", "timestamp", "namespace", "data"])
def test_a_missing_field_refuses_the_whole_call(missing: str) -> None:
    with Stage() as stage:
        stage.register()
        lacking = stage.event()
        del lacking[missing]
        with pytest.raises(CallRefused, match=f"expected records with the field {missing}"):
            stage.publish(stage.event(), lacking)
        assert stage.log.last_seq == 0
        fields = {"id": "nat", "timestamp": "nat", "namespace": "text", "data": "variant {Nat : nat}"}
        types = "; ".join(f"{name} : {kind}" for name, kind in fields.items() if name != missing)
        body = encode(f"(vec record {{{types}}})", [[{name: lacking[name] for name in fields if name != missing}]])
        with pytest.raises(ValueError, match=missing):
            BROADCASTER["icrc72_publish"].decode_arguments(body)


@pytest.mark.matrix("ICRC72-31")
def test_relays_and_notifications_have_the_fields_of_the_text() -> None:
    values = {
        "id": (1, "nat"),
        "eventId": (2, "nat"),
        "prev_id": (3, "opt nat"),
        "prevEventId": (3, "opt nat"),
        "timestamp": (4, "nat"),
        "namespace": ("a.b", "text"),
        "data": (variant_of(nat(5)), "variant {Nat : nat}"),
        "headers": (pairs_of([("h", nat(6))]), "opt vec record {text; variant {Nat : nat}}"),
        "source": (Principal(b"p"), "principal"),
        "filter": ("x == 1", "opt text"),
    }
    relay = "id prev_id timestamp namespace source data headers"
    notification = "id eventId prevEventId timestamp namespace data headers source filter"
    for wire, names in (
        (BROADCASTER["icrc72_publish_relay"], relay.split()),
        (SUBSCRIBER["icrc72_handle_notification"], notification.split()),
    ):
        item = {name: values[name][0] for name in names}
        types = "; ".join(f"{name} : {values[name][1]}" for name in names)
        assert first(decode(wire.encode_arguments([[item]]), f"(vec record {{{types}}})")) == item


@pytest.mark.matrix("ICRC72-77")
def test_each_event_gets_the_ids_of_its_notifications() -> None:
    with Stage() as stage:
        stage.register(NAMESPACE, "com.example.other")
        stage.subscribe(b"alice")
        stage.subscribe(b"bob")
        results = stage.publish(stage.event(), stage.event(namespace="com.example.other"), stage.event())
        assert results == [Variant("Ok", [1, 2]), Variant("Ok", []), Variant("Ok", [3, 4])]
        assert stage.publish() == []
        body = BROADCASTER["icrc72_publish"].encode_results([results])
        assert BROADCASTER["icrc72_publish"].decode_results(body) == [results]


@pytest.mark.matrix("ICRC72-78")
def test_errors_stand_in_the_places_of_their_events() -> None:
    with Stage() as stage:
        stage.register(NAMESPACE)
        stage.register("com.example.theirs", publisher=b"somebody")
        stage.subscribe(b"alice")
        results = stage.publish(
            stage.event(namespace="com.example.theirs"),
            stage.event(1),
            stage.event(namespace="com.example.unknown"),
            stage.event(source=b"somebody"),
            stage.event(2),
        )
        assert [error(results[at]) for at in (0, 2, 3)] == ["Unauthorized", "PublicationNotFound", "Unauthorized"]
        assert [results[at] for at in (1, 4)] == [Variant("Ok", [1]), Variant("Ok", [2])]
        assert [error(it) for it in stage.publish(stage.event(), publisher=b"stranger")] == ["Unauthorized"]
        assert stage.subscribers[b"alice"].event_ids == [1, 2]


@pytest.mark.matrix("ICRC72-19")
def test_a_publication_of_icrc3_values_takes_no_others() -> None:
    with Stage() as stage:
        stage.register(config={ICRC3_ONLY: boolean(True)})
        refused, taken = stage.publish(stage.event(data=option(None)), stage.event(data=array(nat(1))))
        assert error(refused).value["message"] == f"data: {NAMESPACE} takes the types of ICRC-3 alone"
        assert taken == Variant("Ok", [])


@pytest.mark.matrix("ICRC72-97")
def test_batches_payloads_and_depth_are_bounded() -> None:
    deep = nat(1)
    for _ in range(80):
        deep = array(deep)
    with Stage(policy=BroadcastPolicy(most_events=3, most_event_bytes=1_000)) as stage:
        stage.register()
        stage.subscribe(b"alice")
        (whole,) = stage.publish(*(stage.event() for _ in range(4)))
        assert error(whole) == Variant("GenericBatchError", "got 4 events, expected at most 3")
        large, too_deep, far = stage.publish(
            stage.event(data=blob(bytes(1_000))), stage.event(data=deep), stage.event(timestamp=1 << 70)
        )
        assert "bytes, expected at most 1000" in error(large).value["message"]
        assert "at most 64 deep" in error(too_deep).value["message"]
        assert "timestamp: got" in error(far).value["message"]
        assert stage.log.last_seq == 0
        assert stage.subscribers[b"alice"].messages == []
        stage.publish(stage.event(data=Icrc16(Tag.BLOB, bytes(500))))
        assert len(stage.subscribers[b"alice"].messages) == 1


_DATA = BROADCASTER["icrc72_publish"].arguments.rsplit("(", 1)[0] + "(ICRC16)"


def _broadcaster_of(stage: Stage, subscriber: bytes) -> bytes:
    return next(
        it.broadcaster for it in stage.orchestrator.registry.subscriptions.values() if it.subscriber == subscriber
    )
