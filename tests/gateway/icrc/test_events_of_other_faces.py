"""Events that chains and other faces bring into the log, as ICRC-72 events."""

from collections import Counter
from typing import Any

import pytest

from gateway.heard_chains import Heard
from gateway.icrc.stage import Stage, header
from relaycast.serve.network import living
from relaycast_gateway.chain_feed import block_time
from relaycast_gateway.icrc.broadcaster.relaying import home_of
from relaycast_gateway.icrc.names import BROADCASTER_RECEIVED, BROADCASTER_SENT, EVENT_TIMESTAMP
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from relaycast_gateway.icrc16 import nat, text
from relaycast_gateway.record import REALM_HEADER, EventDraft, Visibility

CLIENT = b"a client of WAMP"


def bring(stage: Stage, *namespaces: str, **changes: Any) -> None:
    """Append events as another face does, and let the broadcasters know."""
    stage.log.append(*(EventDraft(it, nat(1), CLIENT, occurred_ns=5, **changes) for it in namespaces))
    for broadcaster in stage.broadcasters:
        broadcaster.catch_up()
    stage.run(1)


@pytest.mark.matrix("ICRC72-98")
def test_each_event_of_the_chains_arrives_once_with_the_time_of_its_block() -> None:
    live = living("oracle", "manual").clock
    with Stage(broadcasters=2) as stage:
        heard = Heard(live.chains, stage.log)
        for name in (b"near", b"far"):
            stage.subscribe(name, "io.relaycast.*")
        times: dict[str, int] = {}
        for _ in range(6):
            live.new_block(1)
            relay = live.chains.relay_chain
            times[f"0x{relay.head.hash.hex()}"] = block_time(relay.system, relay.head.number)
            stage.log.purge()  # when this is done, all that was appended before is durable
            for broadcaster in stage.broadcasters:
                broadcaster.catch_up()
            stage.run(1)
        told = heard.told()
        assert len(told) > 20
        for name in (b"near", b"far"):
            messages = stage.subscribers[name].messages
            found = [(it["namespace"], header(it, "ce:source"), header(it, "ce:blockhash")) for it in messages]
            assert found == told
            newest: dict[str, int] = {}
            for message, record in zip(messages, stage.log.read(), strict=True):
                namespace = message["namespace"]
                assert message["prevEventId"] == newest.get(namespace)
                newest[namespace] = message["eventId"]
                assert (message["eventId"], message["source"].raw) == (record.event_id, record.source)
                assert header(message, EVENT_TIMESTAMP) == record.occurred_ns
                of_relay = times.get(header(message, "ce:blockhash"))
                assert of_relay is None or of_relay == record.occurred_ns
        assert set(times) <= {header(it, "ce:blockhash") for it in stage.subscribers[b"near"].messages}
        names = Counter(name for name, _, _ in told)
        assert all(stage.orchestrator.registry.publications[name].owner for name in names)


def test_events_of_other_faces_have_their_headers_from_the_first_broadcaster() -> None:
    with Stage(broadcasters=2) as stage:
        stage.subscribe(b"alice", "com.example.*")
        bring(stage, "com.example.one", "com.example.two")
        messages = stage.subscribers[b"alice"].messages
        assert [it["namespace"] for it in messages] == ["com.example.one", "com.example.two"]
        for message in messages:
            assert header(message, EVENT_TIMESTAMP) == 5
            assert header(message, BROADCASTER_RECEIVED) <= header(message, BROADCASTER_SENT)
            assert message["source"].raw == CLIENT
        assert stage.stats(0)["events"] == 2
        assert stage.orchestrator.is_authorized_publisher("com.example.one", CLIENT)


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": ((REALM_HEADER, text("theirs")),)},  # of a WAMP realm of its own
        {"visibility": Visibility(eligible_authrole=("admin",))},  # not for everybody
    ],
)
def test_what_is_not_for_all_is_not_sent(changes: dict[str, Any]) -> None:
    with Stage() as stage:
        stage.subscribe(b"alice", "com.example.*")
        bring(stage, "com.example.one", **changes)
        bring(stage, "com.example.two")
        assert [it["namespace"] for it in stage.subscribers[b"alice"].messages] == ["com.example.two"]


def test_what_was_in_the_log_before_a_subscription_is_not_its_event() -> None:
    with Stage() as stage:
        stage.subscribe(b"alice", "com.example.*")
        stage.log.append(EventDraft("com.example.one", nat(1), CLIENT, occurred_ns=5))
        stage.subscribe(b"bob", "com.example.*")
        bring(stage, "com.example.one")
        assert stage.subscribers[b"alice"].event_ids == [1, 2]
        assert stage.subscribers[b"bob"].event_ids == [2]


def test_a_broadcaster_does_not_append_what_it_reads() -> None:
    with Stage(broadcasters=2) as stage:
        for name in (b"alice", b"bob"):
            stage.subscribe(name, "*.one")
        bring(stage, "com.example.one")
        stage.publish(stage.event(9, namespace="com.example.one"), publisher=CLIENT)
        stage.run(10)
        assert stage.log.last_seq == 2
        assert all(it.event_ids == [1, 9] for it in stage.subscribers.values())


def test_an_event_of_a_broadcaster_that_is_gone_belongs_to_the_first_one() -> None:
    with Stage(broadcasters=2) as stage:
        stage.register()
        stage.publish(stage.event(), broadcaster=1)
        (record,) = stage.log.read()
        first, second = stage.principals
        assert home_of(record, [first, second]) == second
        assert home_of(record, [first]) == first
        assert home_of(record, []) is None


def test_publishers_that_a_namespace_has_no_room_for_are_counted_together() -> None:
    with Stage(orchestrator={"settings": OrchestratorSettings(most_publishers_of_a_publication=2)}) as stage:
        stage.subscribe(b"alice", "com.example.*")
        sources = [b"client %d" % number for number in range(50)]
        stage.log.append(*(EventDraft("com.example.one", nat(1), it, occurred_ns=5) for it in sources))
        stage.broadcaster.catch_up()
        stage.run(1)
        assert len(stage.subscribers[b"alice"].messages) == 50
        counted = {table: len(stage.store.items(f"statistics:{table}")) for table in ("publisher", "pair")}
        assert counted == {"publisher": 2, "pair": 2}
        statistics = stage.orchestrator.statistics
        found = dict(statistics.of_publication("com.example.one", publishers=2))
        assert found["icrc72:publication:stats:events"] == nat(50)
