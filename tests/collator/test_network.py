"""The network: one clock for all chains, the same bytes from the same seed, and values that arrive two ticks later."""

import gc
import os
import subprocess
import sys

import pytest

from collator.networks import (
    EVERYTHING,
    OTHER_PUBLISHER,
    OTHER_SUBSCRIBER,
    PUBLISHER,
    SUBSCRIBER,
    SYSTEM_PUBLISHER,
    deliveries,
    fingerprint,
    kept,
    key,
    keys,
    network,
    publish,
    run,
    told,
    value,
    values,
)
from ledger.watched import Watched
from relaycast_collator import LatestValues
from relaycast_pallets import BroadcasterConfig, NotRegistered
from relaycast_pallets.frame.well_known_keys import para_head
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_xcm import ParaId, Weight
from relaycast_xcm.ump import Processed


def test_a_value_takes_two_ticks() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(5))
    records = []
    for tick in range(1, 11):
        publish(net, PUBLISHER, values(5, tick))
        records += net.recorded_step()
    found = deliveries(records)
    assert len(found) == 5 * 8
    for delivery in found:
        assert delivery.delivered_at == delivery.published_at + 2 == delivery.entry.when_inserted + 1
        assert delivery.entry.value == values(5, delivery.published_at)[delivery.key]
    assert {(delivery.latency_blocks, delivery.conflated) for delivery in found} == {(2, 0)}
    assert net.invariants.ok
    assert net.invariants.checked > 100


def test_a_tick_leaves_nothing_that_only_the_collector_frees() -> None:
    """It is off while chains step: what is in a cycle would be kept until the end."""
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(5))
    for tick in range(4):
        publish(net, PUBLISHER, values(5, tick))
        net.recorded_step()
    gc.collect()
    gc.disable()
    try:
        publish(net, PUBLISHER, values(5, 9))
        net.recorded_step()
        net.recorded_step()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_tick_given_by_hand_is_when_a_value_counts_as_published() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(2))
    net.step()
    net.parachains[PUBLISHER].publish(key(0), b"by hand", tick=net.tick + 1)
    net.parachains[PUBLISHER].publish(key(1), b"by the clock")
    assert [delivery.published_at for delivery in deliveries(run(net, 3))] == [2, 2]


def test_a_step_is_done_when_it_returns() -> None:
    """Nothing waits for the records to be read: a caller who drops them has the same chains."""
    dropped, read = network(), network()
    for net in (dropped, read):
        net.subscribe(SUBSCRIBER, PUBLISHER, keys(3))
        publish(net, PUBLISHER, {name: value(1) for name in keys(3)})
    for _ in range(4):
        dropped.step()
        list(read.recorded_step())
    assert dropped.relay_chain.head == read.relay_chain.head
    assert [chain.head for chain in dropped.parachains.values()] == [chain.head for chain in read.parachains.values()]
    assert all(chain.head.number == dropped.tick == 4 for chain in dropped.parachains.values())


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    assert fingerprint(1) == fingerprint(1) != fingerprint(2)


def test_the_bytes_do_not_depend_on_the_process() -> None:
    """Python hashes ``bytes`` differently in every process: no order of a set may reach a block or a record."""
    script = "from collator.networks import fingerprint; print(fingerprint(1))"
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": hash_seed}
        said = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert said.stdout.strip() == fingerprint(1)


def test_subscribers_with_other_keys_and_publishers_are_told_what_they_want() -> None:
    net = network(publishers=(PUBLISHER, OTHER_PUBLISHER), subscribers=(SUBSCRIBER, OTHER_SUBSCRIBER))
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(6))
    net.subscribe(OTHER_SUBSCRIBER, PUBLISHER, keys(6, start=3))
    net.subscribe(OTHER_SUBSCRIBER, OTHER_PUBLISHER, keys(2))
    for tick in range(6):
        publish(net, PUBLISHER, {key((5 * tick + step) % 9): value(tick) for step in range(3)})
        publish(net, OTHER_PUBLISHER, {key(tick % 4): value(100 + tick)})
        net.step()
    run(net, 2)
    entries = net.relay_chain.broadcaster.storage.entries
    first = {name: entry.value for name, entry in entries(PUBLISHER)}
    second = {name: entry.value for name, entry in entries(OTHER_PUBLISHER)}
    assert len(first) == 9
    assert kept(net, SUBSCRIBER) == {name: first[name] for name in keys(6)}
    assert kept(net, OTHER_SUBSCRIBER) == {name: first[name] for name in keys(6, start=3)}
    assert kept(net, OTHER_SUBSCRIBER, OTHER_PUBLISHER) == {name: second[name] for name in keys(2)}
    assert net.invariants.ok


def test_a_parachain_can_publish_and_subscribe_even_to_itself() -> None:
    net = network(publishers=(PUBLISHER, OTHER_PUBLISHER), subscribers=())
    for subscriber, publisher in ((PUBLISHER, OTHER_PUBLISHER), (OTHER_PUBLISHER, PUBLISHER), (PUBLISHER, PUBLISHER)):
        net.subscribe(subscriber, publisher, keys(2))
    publish(net, PUBLISHER, {key(0): b"from the first"})
    publish(net, OTHER_PUBLISHER, {key(1): b"from the second"})
    records = run(net, 4)
    assert sorted(told(records, PUBLISHER)) == sorted([(key(0), b"from the first"), (key(1), b"from the second")])
    assert told(records, OTHER_PUBLISHER) == [(key(0), b"from the first")]
    assert net.invariants.ok


def test_a_public_parachain_that_is_not_registered_is_never_heard() -> None:
    net = Watched()
    net.add_parachain(PUBLISHER)
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    causes = []
    for tick in range(6):
        publish(net, PUBLISHER, {key(0): value(tick)})
        assert deliveries(net.recorded_step()) == []
        for message in net.relay_chain.head.messages:
            assert isinstance(message, Processed)
            assert not message.success
            causes.append(message.outcome.error.cause)  # type: ignore[union-attr]
    assert len(causes) == 5
    assert all(isinstance(cause, NotRegistered) for cause in causes)
    assert net.relay_chain.state.children() == []
    net.register_publisher(PUBLISHER)
    publish(net, PUBLISHER, {key(0): b"heard"})
    assert told(run(net, 3))[-1] == (key(0), b"heard")


def test_values_that_are_overwritten_unseen_are_counted() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    publisher = net.parachains[PUBLISHER]
    publisher.publish(key(0), b"first")
    run(net, 3)
    for data in (b"second", b"third", b"fourth"):
        publisher.publish(key(0), data)
    net.step()
    (delivery,) = deliveries(run(net, 3))
    assert (delivery.entry.value, delivery.conflated, delivery.published_at) == (b"fourth", 2, 4)


def test_a_parachain_added_later_builds_from_then_on() -> None:
    net = network(subscribers=())
    publish(net, PUBLISHER, {name: value(1) for name in keys(3)})
    run(net, 5)
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(3))
    late = net.add_parachain(SYSTEM_PUBLISHER)
    net.subscribe(SUBSCRIBER, SYSTEM_PUBLISHER, keys(1))
    late.publish(key(0), b"late")
    (record,) = net.recorded_step()
    assert (record.number, record.relay_parent) == (1, 5)
    assert len(record.deliveries) == 3, "what was there already is found at once"
    ((delivery,),) = (record.deliveries for record in run(net, 2) if record.deliveries)
    assert (delivery.published_at, delivery.delivered_at) == (6, 8)
    assert net.relay_chain.state.exists(para_head(ParaId(SYSTEM_PUBLISHER)))
    assert net.invariants.ok


def test_keys_subscribed_later_are_delivered_without_those_that_did_not_change() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(2))
    publish(net, PUBLISHER, {name: value(1) for name in keys(4)})
    assert sorted(told(run(net, 4))) == sorted((name, value(1)) for name in keys(2))
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(2, start=2))
    assert sorted(told(net.recorded_step())) == sorted((name, value(1)) for name in keys(2, start=2))
    assert told(run(net, 2)) == []
    assert net.invariants.ok


def test_off_boarding_removes_all_that_a_parachain_published() -> None:
    net = network(publishers=(PUBLISHER, OTHER_PUBLISHER))
    system = net.add_parachain(SYSTEM_PUBLISHER)
    for publisher in (PUBLISHER, OTHER_PUBLISHER, SYSTEM_PUBLISHER):
        net.subscribe(SUBSCRIBER, publisher, keys(3))
        publish(net, publisher, {name: value(publisher) for name in keys(3)}, ttl=50)
    run(net, 4)
    relay = net.relay_chain
    assert [len(list(relay.broadcaster.storage.entries(p))) for p in (PUBLISHER, SYSTEM_PUBLISHER)] == [3, 3]
    system.publish(key(0), b"too late")
    net.step()
    for leaving in (PUBLISHER, SYSTEM_PUBLISHER):
        net.offboard(leaving)
    records = run(net, 3)
    for gone in (PUBLISHER, SYSTEM_PUBLISHER):
        assert gone not in net.parachains
        assert not list(relay.broadcaster.storage.entries(gone))
        assert not relay.state.exists(para_head(gone))
        assert gone not in net.parachains[SUBSCRIBER].subscriber.storage.previous_roots()
        assert not net.parachains[SUBSCRIBER].subscriber.storage.cache_of(gone).all()
    assert [info.storage_key[-4:] for info in relay.state.children()] == [OTHER_PUBLISHER.encode()]
    assert deliveries(records) == []
    assert all(record.complete for record in records)
    publish(net, OTHER_PUBLISHER, {key(0): b"still here"})
    assert told(run(net, 3)) == [(key(0), b"still here")]
    assert net.invariants.ok


def test_a_parachain_that_comes_back_begins_anew() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    publish(net, PUBLISHER, {key(0): b"before"})
    run(net, 3)
    publish(net, PUBLISHER, {key(0): b"in the queue"})
    net.step()
    net.offboard(PUBLISHER)
    run(net, 2)
    net.add_parachain(PUBLISHER)
    net.register_publisher(PUBLISHER)
    publish(net, PUBLISHER, {key(0): b"after"})
    (delivery,) = deliveries(run(net, 4))
    assert (delivery.entry.value, delivery.latency_blocks) == (b"after", 2)
    assert net.invariants.ok


def test_messages_of_an_off_boarded_parachain_leave_the_queue_with_it() -> None:
    """The relay chain has weight for one message a block: the others wait."""
    one_message = Watched().relay_chain.broadcaster.config.weight("publish") * 20
    net = Watched(block_weight=Weight(one_message.ref_time, 1 << 20))
    net.add_parachain(SYSTEM_PUBLISHER)
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, SYSTEM_PUBLISHER, keys(64))
    publish(net, SYSTEM_PUBLISHER, values(64))
    run(net, 2)
    assert net.relay_chain.upward.count(SYSTEM_PUBLISHER) == 3
    net.offboard(SYSTEM_PUBLISHER)
    records = run(net, 3)
    assert net.relay_chain.upward.waiting == 0
    assert net.relay_chain.state.children() == []
    assert len(deliveries(records)) == 16, "what the first message brought, before it was removed"
    net.add_parachain(SYSTEM_PUBLISHER).publish(key(50), b"after", tick=2)
    (delivery,) = deliveries(run(net, 3))
    assert (delivery.entry.value, delivery.published_at, delivery.delivered_at) == (b"after", 2, 8)
    assert net.invariants.ok


def test_slips_of_the_caller_are_refused_at_once_and_change_nothing() -> None:
    net = network()
    net.add_parachain(OTHER_SUBSCRIBER, handler=LatestValues(), config=SubscriberConfig(max_publishers=1))
    single = net.add_parachain(3_002, config=SubscriberConfig(max_publishers=1))
    net.subscribe(3_002, PUBLISHER, keys(1))
    with pytest.raises(ValueError, match="there already"):
        net.add_parachain(SUBSCRIBER)
    with pytest.raises(ValueError, match="no parachain 4000"):
        net.subscribe(4_000, PUBLISHER, keys(1))
    with pytest.raises(ValueError, match="no parachain 4000"):
        net.offboard(4_000)
    with pytest.raises(ValueError, match="a handler of its own"):
        net.subscribe(OTHER_SUBSCRIBER, PUBLISHER, keys(1))
    with pytest.raises(ValueError, match="32 bytes, got 5"):
        net.subscribe(SUBSCRIBER, PUBLISHER, [key(0), b"price"])
    with pytest.raises(ValueError, match="1 publishers at most"):
        net.subscribe(3_002, OTHER_PUBLISHER, keys(1))
    with pytest.raises(ValueError, match="u32"):
        net.register_publisher(-1)
    assert net.parachains[SUBSCRIBER].kept.wanted == {}
    assert single.kept.wanted == {PUBLISHER: keys(1)}
    assert [record.para_id for record in net.recorded_step()] == [3_002]


def test_a_parachain_that_wants_nothing_leaves_no_records() -> None:
    net = network()
    assert run(net, 3) == []
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    assert len(run(net, 2)) == 2


def test_everything_has_a_repr_that_a_person_can_read() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    publish(net, PUBLISHER, {key(0): b"1"})
    net.step()
    assert repr(net) == ("<ChainSimulator at tick 1: <RelayChain at #1, 0 publishers>, 2 parachains>")
    assert repr(net.parachains[PUBLISHER]) == "<Parachain 2000 at #1>"
    assert repr(net.parachains[PUBLISHER].outbox) == "<Outbox of 0 publications>"
    assert repr(net.invariants) == f"<Invariants ok, {net.invariants.checked} checks>"
    head = net.relay_chain.head
    assert repr(head) == f"<RelayBlock #1 state 0x{head.state_root.hex()}, {len(head.events)} events>"
    assert repr(head.header) == f"<Header #1 0x{head.hash.hex()}>"


def test_a_record_adds_up() -> None:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, budget=EVERYTHING, max_pov_size=3_000)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(30))
    for tick in range(8):
        publish(net, PUBLISHER, values(30, tick, 100))
        for record in net.recorded_step():
            relay = sum(total.proof_bytes for source, total in record.reads.items() if source != "cached_node")
            read = sum(total.proof_bytes for total in record.reads.values())
            assert record.proof_bytes == record.static_bytes + relay <= record.collected_bytes
            assert record.consumed.proof_size == read <= record.budget_bytes == 3_000
            assert record.complete == (record.proof_bytes == record.collected_bytes)
            assert record.own_bytes > 0


def test_a_relay_chain_that_allows_longer_values_does_not_stall_its_subscribers() -> None:
    """A value that does not fit is left out honestly: the slack that a block is given holds the longest value."""
    net = Watched(broadcaster=BroadcasterConfig(max_value_length=9_000))
    net.add_parachain(SYSTEM_PUBLISHER)
    subscriber = net.add_parachain(SUBSCRIBER, budget=EVERYTHING, max_pov_size=8_000)
    net.subscribe(SUBSCRIBER, SYSTEM_PUBLISHER, keys(2))

    def write() -> Weight:
        for written, data in values(2, size=9_000).items():
            net.relay_chain.broadcaster.handle_publish(SYSTEM_PUBLISHER, written, data)
        return Weight.ZERO

    net.call(write, declared=Weight.ZERO)
    records = run(net, 6)
    assert [record.panic for record in records if record.panic is not None] == []
    assert {record.complete for record in records[-2:]} == {False}
    assert net.invariants.ok
    assert subscriber.subscriber.config == SubscriberConfig(max_value_length=9_000)
