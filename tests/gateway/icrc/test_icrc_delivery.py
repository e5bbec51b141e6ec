"""Delivery: confirmations, repetitions, slow, absent and returning subscribers, trusted ones, statistics."""

from random import Random
from typing import Any

import pytest

from gateway.icrc.stage import NAMESPACE, PUBLISHER, Stage, header
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.broadcaster import BroadcastPolicy
from relaycast_gateway.icrc.broadcaster.subscription_source import MOST_OFFERED
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.names import BROADCASTER_PRIORITY, TRUSTED
from relaycast_gateway.icrc16 import boolean, nat
from relaycast_gateway.log import Retention

ORCHESTRATOR_STATS = "icrc72:subscription:stats:"


@pytest.mark.matrix("ICRC72-07")
@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_events_form_one_chain_through_a_restart_and_a_slow_subscriber(count: int, tmp_path: Any) -> None:
    with Stage(folder=tmp_path, latency=lambda _from, to: 20_000_000 if to == b"slow" else 0) as stage:
        stage.register()
        for name in (b"quick", b"slow"):
            stage.subscribe(name)
        newest = None
        for part in range(20):
            size = count // 20
            events = [stage.event(3 * (size * part + at) + 7) for at in range(size)]
            for event in events:
                event["prev_id"], newest = newest, event["id"]
            stage.publish(*events)
            if part == 9:
                stage.restart()
        stage.run(120)
        for name in (b"quick", b"slow"):
            seen: dict[int, int | None] = {}
            for message in stage.subscribers[name].messages:
                seen.setdefault(message["eventId"], message["prevEventId"])
            at, length = newest, 0
            while at is not None:
                at, length = seen[at], length + 1
            assert length == len(seen) == count
            firsts = list(dict.fromkeys(stage.subscribers[name].event_ids))
            assert firsts == sorted(firsts)


@pytest.mark.matrix("ICRC72-82")
def test_confirmations_are_itemized_as_soon_as_one_is_refused() -> None:
    with Stage() as stage:
        stage.register()
        alice, bob = (stage.subscriber(name) for name in (b"alice", b"bob"))
        for subscriber in (alice, bob):
            stage.subscribe(subscriber.principal)
            subscriber.confirms = False
        stage.publish(stage.event(), stage.event(), stage.event())
        mine, theirs = ([it["id"] for it in each.messages] for each in (alice, bob))
        alice.confirm(*mine[:2])
        stage.run()
        alice.confirm(mine[2], 999, theirs[0], mine[0], mine[2])
        stage.run()
        refusals = [Variant("Err", Variant(name)) for name in ("NotFound", "Unauthorized", "AlreadyConfirmed")]
        expected = [Variant("Ok"), *refusals, Variant("Err", Variant("AlreadyConfirmed"))]
        assert alice.confirmations == [Variant("allAccepted"), Variant("itemized", expected)]
        bob.confirm()
        stage.run()
        assert bob.confirmations == [Variant("allAccepted")]
        assert sorted(it.content for it in stage.stats()["outstanding:ids"]) == sorted(theirs)


def test_a_notification_that_was_not_sent_cannot_be_confirmed() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.subnet.stop(b"alice")
        stage.publish(stage.event())
        answer = stage.subnet.ask(b"alice", stage.principals[0], "icrc72_confirm_messages", [1, 2])
        assert answer == Variant("itemized", [Variant("Err", Variant("NotFound"))] * 2)
        stage.subnet.restart(b"alice")
        stage.run(120)
        assert stage.subscribers[b"alice"].event_ids == [1]


@pytest.mark.matrix("ICRC72-83")
def test_what_is_not_confirmed_comes_again_with_the_same_id_and_counts_once() -> None:
    with Stage() as stage:
        stage.register()
        subscription = stage.subscribe(b"alice")
        alice = stage.subscribers[b"alice"]
        alice.confirms = False
        stage.publish(stage.event(), stage.event())
        first, second = (it["id"] for it in alice.messages)
        alice.confirm(first)
        stage.run(59)
        assert len(alice.messages) == 2
        assert stage.stats()["outstanding:ids"] == (nat(second),)
        stage.run(2)
        assert [it["id"] for it in alice.messages] == [first, second, second]
        before, after = (alice.messages[at] for at in (1, 2))
        assert (before["timestamp"], header(before, BROADCASTER_PRIORITY)) == (
            after["timestamp"],
            header(after, BROADCASTER_PRIORITY),
        )
        alice.confirm(second)
        alice.confirm(second)
        stage.run(200)
        assert alice.confirmations[1:] == [
            Variant("allAccepted"),
            Variant("itemized", [Variant("Err", Variant("AlreadyConfirmed"))]),
        ]
        assert len(alice.messages) == 3
        assert (stage.stats()["confirmations"], stage.stats()["outstanding"]) == (2, 0)
        it = stage.orchestrator.registry.subscriptions[subscription]
        counted = dict(stage.orchestrator.statistics.of_subscription(it, of_the_subscriber=1))
        assert [counted[ORCHESTRATOR_STATS + name].content for name in ("notifications", "confirmations")] == [2, 2]


def test_what_nobody_confirms_is_given_up_and_new_events_come() -> None:
    policy = BroadcastPolicy(most_unconfirmed=2, most_repetitions=3)
    with Stage(policy=policy) as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.subscribers[b"alice"].confirms = False
        stage.publish(*(stage.event() for _ in range(3)))
        stage.run(61)
        assert stage.subscribers[b"alice"].event_ids == [1, 2] * 2
        stage.run(240)
        assert stage.subscribers[b"alice"].event_ids[:9] == [1, 2] * 4 + [3]
        assert stage.stats()["notifications:unconfirmed"] == 2
        assert stage.stats()["errors"] == 2


@pytest.mark.matrix("ICRC72-86")
def test_an_absent_subscriber_gets_all_in_order_when_it_is_back() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.subscribe(b"bob")
        stage.publish(stage.event())
        stage.subnet.stop(b"alice")
        for _ in range(50):
            stage.publish(*(stage.event() for _ in range(20)))
            stage.run(3)
        assert stage.subscribers[b"bob"].event_ids == list(range(1, 1_002))
        assert stage.subscribers[b"alice"].event_ids == [1]
        stage.subnet.restart(b"alice")
        stage.run(61)
        assert stage.subscribers[b"alice"].event_ids == list(range(1, 1_002))
        assert stage.stats()["outstanding"] == 0


def test_failures_in_between_lose_nothing_and_keep_the_order() -> None:
    random = Random(86)
    with Stage(latency=lambda _from, _to: random.randrange(5_000_000)) as stage:
        stage.register()
        stage.subscribe(b"alice")
        for _ in range(40):
            stage.publish(*(stage.event() for _ in range(random.randrange(1, 120))), settles=False)
            (stage.subnet.stop if random.random() < 0.5 else stage.subnet.restart)(b"alice")
            stage.run(random.random() * 3)
        stage.subnet.restart(b"alice")
        stage.run(400)
        got = stage.subscribers[b"alice"].event_ids
        assert list(dict.fromkeys(got)) == list(range(1, stage.log.last_seq + 1))
        assert len({it["id"] for it in stage.subscribers[b"alice"].messages}) == stage.log.last_seq


def test_memory_does_not_grow_with_what_waits() -> None:
    with Stage(policy=BroadcastPolicy(most_audiences=16, most_contents_bytes=4_000)) as stage:
        stage.register()
        subscription = stage.subscribe(b"alice")
        stage.subnet.stop(b"alice")
        for _ in range(10):
            stage.publish(*(stage.event() for _ in range(100)))
        assert len(stage.broadcaster._lanes[subscription][1]._offered) <= MOST_OFFERED + 64
        assert len(stage.broadcaster._audiences._recent) <= 16
        resources = dict(stage.stats()["resources"])
        assert resources["events:waiting"].content == 1_000
        assert resources["memory:bytes"].content <= 4_000
        stage.subnet.restart(b"alice")
        stage.run(100)
        assert stage.subscribers[b"alice"].event_ids == list(range(1, 1_001))


def test_what_retention_dropped_is_not_waited_for() -> None:
    with Stage(policy=BroadcastPolicy(most_contents_bytes=1), retention=Retention(count=5)) as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.subnet.stop(b"alice")
        for _ in range(20):
            stage.publish(stage.event())
        stage.subnet.restart(b"alice")
        stage.run(100)
        assert stage.subscribers[b"alice"].event_ids == [16, 17, 18, 19, 20]
        assert stage.stats()["notifications:dropped"] == 15
        assert dict(stage.stats()["resources"])["events:waiting"].content == 0


def test_a_call_holds_a_bounded_number_of_notifications() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.publish(*(stage.event() for _ in range(200)))
        assert [len(messages) for _, _, messages in stage.subscribers[b"alice"].calls] == [64, 64, 64, 8]


@pytest.mark.matrix("ICRC72-105", "ICRC72-88")
@pytest.mark.parametrize("reply", [Variant("Ok", Variant("Nat", 5)), Variant("Ok", None), Variant("Ok")])
def test_the_answer_of_a_trusted_subscriber_confirms(reply: Variant) -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice", config={TRUSTED: boolean(True)})
        stage.subscribers[b"alice"].trusted_reply = reply
        stage.publish(stage.event(), stage.event())
        assert (stage.stats()["confirmations"], stage.stats()["outstanding"]) == (2, 0)
        stage.run(200)
        assert stage.subscribers[b"alice"].event_ids == [1, 2]


@pytest.mark.matrix("ICRC72-88")
@pytest.mark.parametrize("reply", [Variant("Err", "no"), Variant("err", "no"), None])
def test_a_trusted_subscriber_that_fails_gets_it_again(reply: Variant | None) -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice", config={TRUSTED: boolean(True)})
        stage.subscribers[b"alice"].trusted_reply = reply
        stage.publish(stage.event())
        assert (stage.stats()["errors"], stage.stats()["outstanding"]) == (1, 1)
        stage.subscribers[b"alice"].trusted_reply = Variant("Ok", None)
        stage.run(61)
        assert stage.subscribers[b"alice"].event_ids == [1, 1]
        assert (stage.stats()["confirmations"], stage.stats()["outstanding"]) == (1, 0)


@pytest.mark.matrix("ICRC72-84")
def test_statistics_equal_independent_counts() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice", skip=(2, 0))
        stage.subscribe(b"bob")
        stage.subscribe(b"carol")
        stage.subscribers[b"carol"].confirms = False
        stage.run(30)
        stage.publish(*(stage.event() for _ in range(30)))
        stage.publish(stage.event(namespace="com.example.unknown"), publisher=PUBLISHER)
        stage.run(9)
        stats = stage.stats()
        alice, bob, carol = (stage.subscribers[name].messages for name in (b"alice", b"bob", b"carol"))
        assert stats["events"] == 30
        assert stats["notifications"] == len(alice) + len(bob) + len(carol) == 75
        assert stats["confirmations"] == len(alice) + len(bob)
        assert stats["rate:events"] == pytest.approx(30 / 39)
        assert stats["rate:notifications"] == pytest.approx(75 / 39)
        assert stats["errors"] == 1
        assert sorted(it.content for it in stats["outstanding:ids"]) == sorted(it["id"] for it in carol)
        assert dict(stats["resources"])["events:waiting"].content == 30
        stage.run(100)
        assert stage.stats()["rate:events"] == 0
        publication = stage.orchestrator.statistics.of_publication(NAMESPACE, publishers=1)
        beginning = "icrc72:publication:stats:"
        counted = {key.removeprefix(beginning): value.content for key, value in publication}
        assert [counted[name] for name in ("events", "events:sent", "notifications", "confirmations")] == [
            30,
            30,
            75,
            45,
        ]


def test_system_messages_are_the_orchestrators_alone() -> None:
    heard: list[Any] = []
    with Stage() as stage:
        stage.broadcaster.on_system_message = heard.append
        with pytest.raises(CallRefused, match="expected the orchestrator as caller"):
            stage.subnet.ask(b"stranger", stage.principals[0], "icrc72_handle_notification", [{}])
        stage.subnet.ask(b"orchestrator", stage.principals[0], "icrc72_handle_notification", [{"id": 1}])
        assert heard == [{"id": 1}]
