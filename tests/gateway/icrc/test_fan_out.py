"""Who gets which event: filters, skips, patterns, access lists, stopped subscriptions, order."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from gateway.icrc.candypath_twin import random_filter, random_tree, selects, written
from gateway.icrc.stage import Stage
from relaycast_gateway.candid import Present
from relaycast_gateway.icrc.candypath.compiled import TreePredicate
from relaycast_gateway.icrc.names import FILTER, PRIORITY, SKIP, STOPPED
from relaycast_gateway.icrc16 import Icrc16, array, blob, boolean, from_json, map_of, nat, text

ALLOWED = "icrc72:publication:subscribers:allowed:list"
DISALLOWED = "icrc72:publication:subscribers:disallowed:list"


def principals(*raw: bytes) -> Icrc16:
    return array(*map(blob, raw))


@pytest.mark.matrix("ICRC72-34")
def test_a_filter_selects_what_brute_force_selects() -> None:
    random = Random(34)
    filters: dict[str, Any] = {}
    while len(filters) < 8:
        said = random_filter(random)
        filters[written(said)] = said
    trees = [random_tree(random, 3) for _ in range(400)]
    with Stage() as stage:
        stage.register()
        for number, name in enumerate(filters):
            stage.subscribe(b"subscriber %d" % number, filter=name)
        for at in range(0, len(trees), 200):
            stage.publish(*(stage.event(data=tree) for tree in trees[at : at + 200]))
        stage.run(1)
        chosen = 0
        for number, said in enumerate(filters.values()):
            expected = [at for at, tree in enumerate(trees, 1) if selects(said, tree)]
            assert stage.subscribers[b"subscriber %d" % number].event_ids == expected
            chosen += len(expected)
        assert 0 < chosen < 3_200


@pytest.mark.matrix("ICRC72-33")
def test_a_publication_has_a_filter_language_of_its_own() -> None:
    def parity(said: str) -> TreePredicate:
        return lambda tree: tree.content % 2 == (said == "odd")

    with Stage(orchestrator={"filter_languages": {"parity": parity}}) as stage:
        stage.register(config={"relaycast:publication:filter:language": text("parity")})
        stage.subscribe(b"alice", filter="odd")
        stage.publish(*(stage.event() for _ in range(6)))
        assert stage.subscribers[b"alice"].event_ids == [1, 3, 5]


@pytest.mark.matrix("ICRC72-36")
@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        (nat(5), [5, 10, 15, 20]),
        (array(nat(5)), [5, 10, 15, 20]),
        (array(nat(5), nat(2)), [2, 7, 12, 17]),
        (array(nat(5), nat(7)), [2, 7, 12, 17]),
        (nat(1), list(range(1, 21))),
    ],
)
def test_a_skip_takes_one_event_of_some(skip: Icrc16, expected: list[int]) -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice", config={SKIP: skip})
        stage.publish(*(stage.event(1_000 + number) for number in range(1, 21)))
        assert stage.subscribers[b"alice"].event_ids == [1_000 + number for number in expected]


@pytest.mark.matrix("ICRC72-37")
def test_five_subscribers_divide_a_thousand_events_among_themselves() -> None:
    with Stage(broadcasters=2) as stage:
        stage.register()
        names = [b"part %d" % offset for offset in range(5)]
        for offset, name in enumerate(names):
            stage.subscribe(name, skip=(5, offset))
        for part in range(4):
            stage.publish(*(stage.event() for _ in range(250)), broadcaster=part % 2)
        stage.run(5)
        parts = [stage.subscribers[name].event_ids for name in names]
        assert [len(part) for part in parts] == [200] * 5
        assert sorted(each for part in parts for each in part) == list(range(1, 1_001))


@pytest.mark.matrix("ICRC72-38")
def test_events_are_counted_before_they_are_filtered() -> None:
    with Stage() as stage:
        stage.register()
        stage.subscribe(b"alice", filter="even == true", skip=(3, 0))
        stage.subscribe(b"bob", filter="even == true", skip=(2, 1))
        stage.publish(*(stage.event(data=map_of({"even": boolean(at % 2 == 0)})) for at in range(1, 31)))
        assert stage.subscribers[b"alice"].event_ids == [6, 12, 18, 24, 30]
        assert stage.subscribers[b"bob"].event_ids == []


def test_one_filter_is_evaluated_once_for_all_its_subscriptions() -> None:
    looked: list[int] = []

    def counting(said: str) -> TreePredicate:
        def select(tree: Icrc16) -> bool:
            looked.append(tree.content)
            return said == "yes"

        return select

    with Stage(orchestrator={"filter_languages": {"counting": counting}}) as stage:
        stage.register(config={"relaycast:publication:filter:language": text("counting")})
        for number in range(30):
            stage.subscribe(b"subscriber %d" % number, filter=("yes", "no")[number % 2], skip=(1 + number % 3, 0))
        stage.publish(stage.event(), stage.event(), stage.event())
        assert looked == [1, 1, 2, 2, 3, 3]
        assert [len(it.messages) for it in stage.subscribers.values()][:3] == [3, 0, 1]


@pytest.mark.matrix("ICRC72-48")
def test_a_pattern_takes_namespaces_of_several_publishers_and_later_ones() -> None:
    with Stage() as stage:
        stage.register("com.foo.icrc1.transfer", publisher=b"foo")
        stage.subscribe(b"alice", "*.icrc1.transfer", skip=(1, 0))
        stage.register("com.bar.icrc1.transfer", publisher=b"bar")
        stage.publish(stage.event(1, namespace="com.foo.icrc1.transfer"), publisher=b"foo")
        stage.publish(stage.event(2, namespace="com.bar.icrc1.transfer"), publisher=b"bar")
        assert stage.subscribers[b"alice"].event_ids == [1, 2]


@pytest.mark.matrix("ICRC72-43")
def test_access_lists_hold_at_delivery() -> None:
    with Stage() as stage:
        (publication,) = stage.register(config={ALLOWED: principals(b"alice", b"bob")})
        stage.subscribe(b"alice")
        stage.subscribe(b"bob")
        stage.publish(stage.event())
        stage.configure(publication, {ALLOWED: principals(b"bob")})
        stage.publish(stage.event())
        stage.configure(publication, {DISALLOWED: principals(b"bob")})
        stage.publish(stage.event())
        assert stage.subscribers[b"alice"].event_ids == [1]
        assert stage.subscribers[b"bob"].event_ids == [1, 2]


def test_what_waits_is_not_sent_to_a_subscriber_that_was_shut_out_meanwhile() -> None:
    with Stage() as stage:
        (publication,) = stage.register()
        stage.subscribe(b"alice")
        stage.subnet.stop(b"alice")
        stage.publish(stage.event(), stage.event())
        stage.configure(publication, {DISALLOWED: principals(b"alice")})
        stage.subnet.restart(b"alice")
        stage.run(300)
        assert stage.subscribers[b"alice"].messages == []
        assert stage.stats()["notifications:dropped"] == 2
        assert dict(stage.stats()["resources"])["events:waiting"].content == 0


@pytest.mark.matrix("ICRC72-47")
def test_a_stopped_subscription_gets_only_what_comes_after_its_start() -> None:
    with Stage() as stage:
        stage.register()
        subscription = stage.subscribe(b"alice", config={STOPPED: boolean(True)})
        stage.publish(stage.event())
        stage.run(200)
        assert stage.subscribers[b"alice"].messages == []
        stage.update(b"alice", subscription, newStopped=False)
        stage.publish(stage.event())
        stage.run(200)
        assert stage.subscribers[b"alice"].event_ids == [2]


def test_stopping_ends_what_waits_and_what_is_repeated() -> None:
    with Stage() as stage:
        stage.register()
        subscription = stage.subscribe(b"alice")
        stage.subscribers[b"alice"].confirms = False
        stage.publish(stage.event())
        stage.subnet.stop(b"alice")
        stage.publish(stage.event())
        stage.update(b"alice", subscription, newStopped=True)
        stage.subnet.restart(b"alice")
        stage.publish(stage.event())
        stage.run(300)
        stage.update(b"alice", subscription, newStopped=False)
        stage.publish(stage.event())
        stage.run(30)
        assert stage.subscribers[b"alice"].event_ids == [1, 4]
        assert stage.stats()["outstanding:ids"] == (nat(stage.subscribers[b"alice"].messages[-1]["id"]),)


def test_what_waited_when_a_subscription_was_stopped_is_gone_when_it_starts_at_once() -> None:
    with Stage() as stage:
        stage.register()
        subscription = stage.subscribe(b"alice")
        stage.subnet.stop(b"alice")
        stage.publish(stage.event(), stage.event())
        stage.update(b"alice", subscription, newStopped=True)
        stage.update(b"alice", subscription, newStopped=False)
        stage.subnet.restart(b"alice")
        stage.publish(stage.event())
        stage.run(100)
        assert stage.subscribers[b"alice"].event_ids == [3]
        assert stage.stats()["outstanding"] == 0


def test_a_changed_filter_holds_from_the_next_event_on() -> None:
    with Stage() as stage:
        stage.register()
        subscription = stage.subscribe(b"alice", config={FILTER: text("a == 1")})
        one, two = from_json({"a": 1}), from_json({"a": 2})
        stage.publish(stage.event(data=one), stage.event(data=two))
        stage.update(b"alice", subscription, newFilter="a == 2")
        stage.publish(stage.event(data=one), stage.event(data=two))
        stage.update(b"alice", subscription, newFilter="", newSkip=Present({0: 2, 1: 1}))
        stage.publish(stage.event(data=one), stage.event(data=two))
        assert stage.subscribers[b"alice"].event_ids == [1, 4, 5]


@pytest.mark.matrix("ICRC72-85")
def test_higher_priorities_are_notified_first_and_one_priority_in_order() -> None:
    order: list[tuple[bytes, int]] = []
    with Stage() as stage:
        stage.register()
        for name, priority in ((b"low", 0), (b"high", 9), (b"middle", 5), (b"low too", 0)):
            stage.subscribe(name, config={PRIORITY: nat(priority)})

            def hear(messages: Sequence[dict[str, Any]], name: bytes = name) -> None:
                order.extend((name, it["eventId"]) for it in messages)

            stage.subscribers[name].on_call = hear
        stage.publish(stage.event(), stage.event())
        stage.publish(stage.event())
        expected = [(name, number) for name in (b"high", b"middle", b"low", b"low too") for number in (1, 2)]
        assert order == [*expected, *((name, 3) for name in (b"high", b"middle", b"low", b"low too"))]
