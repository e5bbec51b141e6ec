"""Relays between broadcasters."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.icrc.stage import NAMESPACE, PUBLISHER, Stage, header
from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.broadcaster import BroadcastPolicy
from relaycast_gateway.icrc.broadcaster.relaying import relay_of
from relaycast_gateway.icrc.names import (
    BROADCASTER_PRIORITY,
    BROADCASTER_RECEIVED,
    BROADCASTER_SENT,
    EVENT_TIMESTAMP,
    RELAY_RECEIVED,
    RELAY_SENT,
)
from relaycast_gateway.icrc.variants import headers_of, pairs_of, variant_of
from relaycast_gateway.icrc16 import from_json, nat, text
from relaycast_gateway.log import Retention


def relayed_stage(**options: Any) -> Stage:
    """Return a stage on which the first broadcaster serves ``near``, and the second one ``far``."""
    stage = Stage(broadcasters=2, latency=lambda _from, _to: 1_000_000, **options)
    stage.register()
    return stage


def calls_to(stage: Stage, method: str) -> list[Any]:
    """Record the calls of a method at the second broadcaster from now on."""
    seen: list[Any] = []
    served = stage.broadcasters[1]._handlers[method]

    def heard(caller: bytes, argument: Any) -> object:
        seen.extend(argument)
        return served(caller, argument)

    stage.broadcasters[1]._handlers = {**stage.broadcasters[1]._handlers, method: heard}
    return seen


@pytest.mark.matrix("ICRC72-20", "ICRC72-21", "ICRC72-25", "ICRC72-27", "ICRC72-28", "ICRC72-99")
def test_a_relayed_event_arrives_with_its_ids_headers_and_source() -> None:
    given = (("color", text("red")),)
    with relayed_stage() as stage:
        stage.subscribe(b"near")
        stage.subscribe(b"far")
        relays = calls_to(stage, "icrc72_publish_relay")
        before_ns = stage.now_ns - 5
        data = from_json({"deep": [1, {"$Nat8": 2}]})
        stage.publish(stage.event(77, data, prev_id=70, timestamp=before_ns, headers=given))
        stage.run(1)
        (near,), (far,) = (stage.subscribers[name].messages for name in (b"near", b"far"))
        (relay,) = relays
        assert (relay["id"], relay["source"], relay["data"]) == (77, Principal(PUBLISHER), variant_of(data))
        assert relay["timestamp"] > before_ns
        assert header(relay, EVENT_TIMESTAMP) == before_ns
        assert (far["eventId"], far["prevEventId"], far["source"]) == (77, 70, Principal(PUBLISHER))
        assert (far["data"], header(far, EVENT_TIMESTAMP)) == (near["data"], before_ns)
        assert headers_of(far["headers"])[:1] == headers_of(near["headers"])[:1] == given
        sent, received = header(far, RELAY_SENT), header(far, RELAY_RECEIVED)
        assert header(far, BROADCASTER_RECEIVED) <= sent < received <= header(far, BROADCASTER_SENT)
        assert header(near, RELAY_SENT) is header(near, RELAY_RECEIVED) is None
        assert [it.content for it in header(far, BROADCASTER_PRIORITY)] == [1, 1]
        assert stage.subscribers[b"near"].calls[0][0] == stage.principals[0]
        assert stage.subscribers[b"far"].calls[0][0] == stage.principals[1]
        assert stage.log.last_seq == 1
        assert stage.stats(0)["relays:sent"] == stage.stats(1)["relays:received"] == 1


@pytest.mark.matrix("ICRC72-81")
def test_an_event_is_relayed_iff_a_filter_there_selects_it() -> None:
    def place(subscriber: bytes, broadcasters: Sequence[bytes], _served: object) -> bytes:
        return broadcasters[subscriber != b"near"]

    with relayed_stage(orchestrator={"place": place}) as stage:
        stage.subscribe(b"near")
        for number, said in enumerate(("a == 2", "a == 3", "a == 3 & b == 1")):
            stage.subscribe(b"far %d" % number, filter=said)
        relays = calls_to(stage, "icrc72_publish_relay")
        for value in range(1, 6):
            stage.publish(stage.event(data=from_json({"a": value})))
        stage.run(1)
        assert [it["id"] for it in relays] == [2, 3]
        assert [stage.subscribers[b"far %d" % number].event_ids for number in range(3)] == [[2], [3], []]


@pytest.mark.matrix("ICRC72-80")
def test_relays_of_strangers_second_relays_and_false_relays_are_refused() -> None:
    with relayed_stage() as stage:
        stage.subscribe(b"near")
        stage.subscribe(b"far")
        stage.publish(stage.event(), stage.event())
        stage.run(1)
        record = stage.log.read()[0]
        relay = relay_of(record, stage.now_ns)
        first, second = stage.principals

        def told(caller: bytes, *items: dict[str, Any]) -> list[Any]:
            results = stage.subnet.ask(caller, second, "icrc72_publish_relay", list(items))
            assert isinstance(results, list)
            return [it.value if it.tag == "Ok" else it.value.tag for it in results]

        assert told(b"stranger", relay) == ["Unauthorized"]
        assert told(second, relay) == ["Unauthorized"]
        assert told(first, relay) == [[]]  # it came before
        again = {**relay, "headers": [*relay["headers"], *pairs_of([(RELAY_RECEIVED, nat(1))])]}
        assert told(first, again) == ["GenericError"]
        assert told(first, {**relay, "data": variant_of(nat(9))}) == ["ImproperId"]
        assert told(first, {**relay, "source": Principal(b"other")}) == ["ImproperId"]
        assert told(first, {**relay, "id": 99}) == ["ImproperId"]
        assert told(first, {**relay, "headers": None}) == ["GenericError"]
        stage.run(1)
        assert stage.subscribers[b"far"].event_ids == [1, 2]


@pytest.mark.matrix("ICRC72-80")
def test_relays_keep_their_order_while_the_other_broadcaster_is_away(tmp_path: Any) -> None:
    with relayed_stage(folder=tmp_path) as stage:
        stage.subscribe(b"near")
        stage.subscribe(b"far")
        stage.publish(stage.event())
        stage.run(1)
        stage.subnet.stop(stage.principals[1])
        for _ in range(5):
            stage.publish(*(stage.event() for _ in range(40)))
            stage.run(1)
        stage.restart()
        stage.publish(stage.event())
        stage.run(1)
        assert stage.subscribers[b"far"].event_ids == [1]
        stage.subnet.restart(stage.principals[1])
        stage.run(120)
        assert stage.subscribers[b"far"].event_ids == list(range(1, 203))
        assert stage.subscribers[b"near"].event_ids == list(range(1, 203))
        ids = [it["id"] for it in stage.subscribers[b"far"].messages]
        assert ids == sorted(set(ids))


@pytest.mark.matrix("ICRC72-08", "ICRC72-09")
@pytest.mark.parametrize("publishers", [1, 3])
def test_each_partition_is_a_chain_and_their_union_is_complete(publishers: int) -> None:
    with Stage(broadcasters=2) as stage:
        names = [b"publisher %d" % number for number in range(publishers)]
        for name in names:
            stage.register(f"{NAMESPACE}.{name[-1] - 48}", publisher=name)
        for name in (b"near", b"far"):
            stage.subscribe(name, f"{NAMESPACE}.*")
        newest: dict[tuple[bytes, int], int] = {}
        for event_id in range(120):
            for number, name in enumerate(names):
                part = event_id % 2
                event = stage.event(event_id, namespace=f"{NAMESPACE}.{number}", prev_id=newest.get((name, part)))
                newest[name, part] = event_id
                stage.publish(event, publisher=name, broadcaster=part)
        stage.run(1)
        for subscriber in stage.subscribers.values():
            previous = {(it["namespace"], it["eventId"]): it["prevEventId"] for it in subscriber.messages}
            assert len(subscriber.messages) == len(previous) == 120 * publishers
            for (name, _), last in newest.items():
                namespace, length = f"{NAMESPACE}.{name[-1] - 48}", 0
                at: int | None = last
                while at is not None:
                    at, length = previous[namespace, at], length + 1
                assert length == 60


@pytest.mark.matrix("ICRC72-12")
def test_two_broadcasters_may_use_the_same_number() -> None:
    with relayed_stage() as stage:
        stage.subscribe(b"near")
        stage.subscribe(b"far")
        stage.publish(stage.event())
        stage.run(1)
        assert [it.messages[0]["id"] for it in stage.subscribers.values()] == [1, 1]
        assert stage.subnet.ask(b"far", stage.principals[0], "icrc72_confirm_messages", [1]) == Variant(
            "itemized", [Variant("Err", Variant("Unauthorized"))]
        )


@pytest.mark.matrix("ICRC72-80")
def test_only_the_broadcaster_that_took_an_event_relays_it() -> None:
    with Stage(broadcasters=3) as stage:
        stage.register()
        stage.publish(stage.event())
        first, second, third = stage.principals
        relay = relay_of(stage.log.read()[0], stage.now_ns)
        for caller, expected in ((third, "Unauthorized"), (first, [])):
            results: Any = stage.subnet.ask(caller, second, "icrc72_publish_relay", [relay])
            assert [it.value.tag if it.tag == "Err" else it.value for it in results] == [expected]


def test_any_number_of_relays_that_retention_has_dropped_are_passed_over() -> None:
    policy = BroadcastPolicy(notifications_a_call=1)
    with relayed_stage(policy=policy, retention=Retention(count=10)) as stage:
        stage.subscribe(b"near")
        stage.subscribe(b"far")
        stage.subnet.stop(stage.principals[1])
        for _ in range(200):
            stage.publish(*(stage.event() for _ in range(10)), settles=False)
        stage.log.purge()
        assert stage.broadcasters[0].relays.waiting == 2_000
        stage.subnet.restart(stage.principals[1])
        stage.run(100)
        assert [it["eventId"] for it in stage.subscribers[b"far"].messages] == list(range(1_991, 2_001))
        assert stage.broadcasters[0].relays.waiting == 0
