"""When parachains build, on which relay parent, and what becomes of messages that find no room."""

from itertools import accumulate, pairwise

import pytest

from collator.networks import PUBLISHER, SUBSCRIBER, deliveries, keys, network, publish, run, told, values
from ledger.watched import Watched
from relaycast_collator import Pace
from relaycast_ledger import BlockRecord
from relaycast_pallets.parachain_system.relay_budget import Remaining
from relaycast_xcm import ParaId
from relaycast_xcm.ump import Processed


def paced(pace: Pace, *, subscriber: int = SUBSCRIBER) -> Watched:
    net = network(subscribers=())
    net.add_parachain(subscriber, pace=pace)
    net.subscribe(subscriber, PUBLISHER, keys(3))
    return net


def published_each_tick(net: Watched, ticks: int) -> list[BlockRecord]:
    records: list[BlockRecord] = []
    for tick in range(ticks):
        publish(net, PUBLISHER, values(3, version=tick))
        records += net.recorded_step()
    assert net.invariants.ok, net.invariants.violations
    return records


def test_a_parachain_builds_in_every_nth_relay_block_and_misses_what_was_overtaken() -> None:
    records = published_each_tick(paced(Pace(relay_blocks=4)), 24)
    assert {later.tick - earlier.tick for earlier, later in pairwise(records)} == {4}
    assert [record.number for record in records] == list(range(1, len(records) + 1))
    assert {record.tick - record.relay_parent for record in records} == {1}
    settled = [delivery for delivery in deliveries(records) if delivery.delivered_at > 8]
    assert {delivery.conflated for delivery in settled} == {3}
    assert {delivery.latency_blocks for delivery in settled} == {2}


def test_parachains_with_other_ids_build_in_other_relay_blocks() -> None:
    pace = Pace(relay_blocks=3)
    turns = {para_id: [tick for tick in range(1, 10) if pace.blocks_in(tick, para_id)] for para_id in (3000, 3001)}
    assert turns == {3000: [3, 6, 9], 3001: [1, 4, 7]}


def test_several_cores_build_on_one_relay_parent_and_are_told_once() -> None:
    records = published_each_tick(paced(Pace(cores=3)), 6)
    assert [record.relay_parent for record in records] == [parent for parent in range(6) for _ in range(3)]
    assert [record.number for record in records] == list(range(1, 19))
    assert {record.number % 3 for record in records if record.deliveries} == {1}
    assert len(deliveries(records)) == 3 * 4


def test_several_cores_share_out_what_one_block_cannot_hold() -> None:
    def ticks(cores: int) -> int:
        net = network(subscribers=())
        net.add_parachain(SUBSCRIBER, pace=Pace(cores=cores), budget=Remaining(100), max_pov_size=4_000)
        net.subscribe(SUBSCRIBER, PUBLISHER, keys(12))
        publish(net, PUBLISHER, values(12, 0, 1_000))
        records = run(net, 10)
        assert len(told(records)) == 12
        assert net.invariants.ok
        return max(record.tick for record in records if record.deliveries)

    assert ticks(1) - ticks(4) >= 2


def test_an_older_relay_parent_makes_every_value_later_and_loses_none() -> None:
    records = published_each_tick(paced(Pace(relay_parent_offset=5)), 20)
    assert {delivery.latency_blocks for delivery in deliveries(records)} == {7}
    assert {record.tick - record.relay_parent for record in records if record.tick > 6} == {6}
    assert len(deliveries(records)) == 3 * (20 - 7)


def test_a_publisher_sends_when_it_builds() -> None:
    net = Watched(seed=7)
    net.add_parachain(PUBLISHER, pace=Pace(relay_blocks=5))
    net.register_publisher(PUBLISHER)
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(3))
    publish(net, PUBLISHER, values(3))
    records = run(net, 12)
    assert {(delivery.published_at, delivery.delivered_at) for delivery in deliveries(records)} == {(1, 7)}


@pytest.mark.parametrize("pace", [(0, 1, 0), (1, 0, 0), (1, 1, -1)])
def test_a_pace_that_cannot_be_is_refused(pace: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Pace(*pace)


def test_no_relay_parent_is_older_than_what_can_be_proven_from() -> None:
    net = Watched(window=4)
    net.add_parachain(SUBSCRIBER, pace=Pace(relay_parent_offset=2))
    with pytest.raises(ValueError, match="only 4 relay blocks can be proven from"):
        net.add_parachain(PUBLISHER, pace=Pace(relay_parent_offset=3))
    assert ParaId(PUBLISHER) not in net.parachains
    run(net, 8)
    assert net.invariants.ok


def test_messages_without_room_wait_and_come_before_later_ones() -> None:
    """2,000 bytes arrive in each of four relay blocks, and blocks have room for 1,700: each takes one message.

    A block is given a hash for each that waits behind it, 40 bytes.
    """
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, budget=Remaining(85), max_pov_size=2_000)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    net.traffic[ParaId(SUBSCRIBER)] = lambda block: ((), (bytes(1_000),) * 2) if block <= 4 else ((), ())
    records = run(net, 10)
    waiting = [0, 1_000, 2_000, 3_000, 4_000, 3_000, 2_000, 1_000, 0, 0]
    taken = [0, *[1_000] * 8, 0]
    hashes = [left // 1_000 * 40 for left in waiting]
    assert [record.waiting_bytes for record in records] == waiting
    assert [record.hashed_bytes for record in records] == hashes
    assert [record.message_bytes - record.hashed_bytes for record in records] == taken
    assert [record.budget_bytes for record in records] == [1_700 - record.message_bytes for record in records]
    assert net.invariants.ok


def test_a_parachain_that_builds_rarely_finds_all_messages_that_came_meanwhile() -> None:
    """Its blocks at ticks 3, 6 and 9 stand on relay blocks 2, 5 and 8."""
    net = paced(Pace(relay_blocks=3))
    net.traffic[ParaId(SUBSCRIBER)] = lambda block: ((bytes(block),), ())
    records = run(net, 9)
    assert [record.message_bytes for record in records] == [1 + 2, 3 + 4 + 5, 6 + 7 + 8]


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_a_parachain_on_older_relay_parents_takes_messages_as_much_later(offset: int) -> None:
    net = paced(Pace(relay_parent_offset=offset))
    net.traffic[ParaId(SUBSCRIBER)] = lambda block: ((bytes(block),), ())
    records = run(net, 8)
    assert [record.relay_parent for record in records] == [max(0, tick - 1 - offset) for tick in range(1, 9)]
    taken = accumulate(record.message_bytes for record in records)
    assert list(taken) == [sum(range(1, record.relay_parent + 1)) for record in records]
    assert records[-1].waiting_bytes == sum(range(8 - offset, 8))
    assert net.invariants.ok


def test_what_is_wanted_no_more_is_not_asked_for() -> None:
    net = paced(Pace())
    publish(net, PUBLISHER, values(3))
    run(net, 4)
    net.unsubscribe(SUBSCRIBER, PUBLISHER, keys(2))
    publish(net, PUBLISHER, values(3, version=1))
    records = run(net, 4)
    assert {bytes(delivery.key) for delivery in deliveries(records)} == {keys(3)[2]}
    net.unsubscribe(SUBSCRIBER, PUBLISHER, keys(3))
    assert run(net, 2) == []
    assert net.invariants.ok


def test_a_manager_deregisters_and_nothing_is_left() -> None:
    net = paced(Pace())
    publish(net, PUBLISHER, values(3))
    run(net, 3)
    storage = net.relay_chain.broadcaster.storage
    assert len(storage.keys_of(PUBLISHER)) == 3
    net.deregister_publisher(PUBLISHER)
    publish(net, PUBLISHER, values(3, version=1))
    records = run(net, 4)
    assert not storage.keys_of(PUBLISHER)
    assert PUBLISHER not in storage.registered_publishers
    assert all(record.complete for record in records)
    assert net.invariants.ok


def test_several_blocks_of_a_publisher_send_more_than_one_and_no_more_than_the_queue_holds() -> None:
    def arrived(cores: int) -> int:
        net = Watched(seed=7)
        net.add_parachain(PUBLISHER, pace=Pace(cores=cores))
        net.register_publisher(PUBLISHER)
        publish(net, PUBLISHER, values(900, 0, 2_000))
        run(net, 2)
        assert all(isinstance(message, Processed) for message in net.relay_chain.head.messages)
        return len(net.relay_chain.broadcaster.storage.keys_of(PUBLISHER))

    assert 0 < arrived(1) < arrived(2) <= arrived(4) < 3 * arrived(1)
