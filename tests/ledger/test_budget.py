"""Budgets: messages go first, what they leave is never exceeded, and a subscriber that fell behind catches up."""

from itertools import pairwise

import pytest

from collator.networks import (
    EVERYTHING,
    OTHER_PUBLISHER,
    PUBLISHER,
    SUBSCRIBER,
    deliveries,
    kept,
    keys,
    network,
    publish,
    run,
    told,
    values,
)
from ledger.watched import Watched
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy, CumulusSixths, Floor, Remaining
from relaycast_xcm import ParaId

POV = 20_000


def loaded(budget: BudgetPolicy, *, wanted: int = 20, pov: int = POV) -> Watched:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, budget=budget, max_pov_size=pov)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(wanted))
    return net


@pytest.mark.upstream("e2e_budget_under_hrmp_load")
@pytest.mark.upstream("heavy_block_small_budget")
@pytest.mark.upstream("light_block_large_budget")
def test_under_message_load_a_subscriber_gets_less_and_catches_up() -> None:
    net = loaded(Remaining())
    net.traffic[SUBSCRIBER] = lambda block: ((bytes(6_000),), (bytes(4_000), bytes(5_000))) if block < 5 else ((), ())
    publish(net, PUBLISHER, values(20, 0, 500))
    records = run(net, 10)[1:]
    heavy, light = [r for r in records if r.tick < 6], [r for r in records if r.tick >= 6]
    assert {record.budget_bytes for record in heavy} == {17_000 - 15_000}
    assert {record.budget_bytes for record in light} == {17_000}
    assert any(not record.complete for record in heavy)
    assert all(0 < len(record.deliveries) < 20 for record in heavy if not record.complete)
    assert all(record.complete for record in light)
    assert len(told(records)) == 20
    assert kept(net, SUBSCRIBER) == values(20, 0, 500)
    latencies = [delivery.latency_blocks for delivery in deliveries(records)]
    assert min(latencies) == 2 < max(latencies) == 5
    assert net.invariants.ok


@pytest.mark.upstream("full_block_no_budget")
@pytest.mark.upstream("zero_budget_only_static_keys")
def test_a_full_block_proves_static_keys_alone() -> None:
    net = loaded(Remaining(percent=50))
    net.traffic[SUBSCRIBER] = lambda block: ((bytes(10_000),), ()) if block <= 3 else ((), ())
    publish(net, PUBLISHER, values(20))
    net.step()
    for record in run(net, 3):
        assert record.budget_bytes == 0
        assert record.reads == {}
        assert record.proof_bytes == record.static_bytes > 0
        assert record.complete == (record.tick < 3), "nothing is there yet, or nothing fits"
    assert len(deliveries(net.recorded_step())) == 20
    assert net.invariants.ok


@pytest.mark.upstream("budget_after_dmq_hrmp_correct")
@pytest.mark.parametrize(
    ("budget", "downward", "horizontal", "left"),
    [
        (Remaining(), (1_000, 2_000), (500,), 17_000 - 3_500),
        (Remaining(percent=50), (1_000,), (500,), 10_000 - 1_500),
        (Remaining(), (16_000, 600), (500,), 17_000 - 16_536),  # hashed: the second one takes 36 bytes
        (Remaining(), (17_001,), (500,), 0),  # more than there is room for, and each kind must move on
        (EVERYTHING, (20_000,), (1,), 0),
        (CumulusSixths(), (3_000,), (3_000,), 3_333 - 3_000 + 3_333 - 3_000),
        (Floor(5_000), (11_000, 2_000), (1,), 5_963),  # the messages get no more than 12,000
        (Floor(5_000), (12_000,), (1,), 5_000),  # or one of each kind
    ],
)
def test_messages_go_first(
    budget: BudgetPolicy, downward: tuple[int, ...], horizontal: tuple[int, ...], left: int
) -> None:
    net = loaded(budget)
    net.traffic[SUBSCRIBER] = lambda _: (tuple(map(bytes, downward)), tuple(map(bytes, horizontal)))
    net.step()
    (record,) = net.recorded_step()
    assert record.budget_bytes == left
    assert net.invariants.ok


@pytest.mark.upstream("budget_split_across_blocks")
def test_what_one_block_cannot_hold_is_split_over_many() -> None:
    """Each block has room for three values; each key comes once, and others wait their turn."""
    net = loaded(EVERYTHING, wanted=12, pov=4_000)
    publish(net, PUBLISHER, values(12, 0, 1_000))
    records = run(net, 12)
    counts = [len(record.deliveries) for record in records[2:]]
    assert sum(counts) == 12
    assert max(counts) <= 3
    assert [record.tick for record in records if not record.complete] == [3, 4, 5]
    assert sorted(told(records)) == sorted(values(12, 0, 1_000).items())
    assert all(record.consumed.proof_size <= 4_000 for record in records)
    assert net.invariants.ok


def test_a_budget_too_small_for_all_still_serves_all_publishers() -> None:
    net = loaded(EVERYTHING, wanted=6, pov=5_000)
    net.add_parachain(OTHER_PUBLISHER)
    net.register_publisher(OTHER_PUBLISHER)
    net.subscribe(SUBSCRIBER, OTHER_PUBLISHER, keys(6))
    records = []
    for tick in range(30):
        for publisher in (PUBLISHER, OTHER_PUBLISHER):
            publish(net, publisher, values(6, tick, 900))
        records += net.recorded_step()
    assert all(not record.complete for record in records[3:])
    for publisher in (PUBLISHER, OTHER_PUBLISHER):
        heard = {delivery.key for delivery in deliveries(records) if delivery.publisher == publisher}
        assert heard == set(keys(6))
        conflated = [delivery.conflated for delivery in deliveries(records) if delivery.publisher == publisher]
        assert max(conflated) > 0
    assert net.invariants.ok
    run(net, 12)
    for publisher in (PUBLISHER, OTHER_PUBLISHER):
        assert kept(net, SUBSCRIBER, publisher) == values(6, 29, 900)
    assert net.invariants.ok


@pytest.mark.parametrize(
    ("count", "blocks"),
    [(6, 27), pytest.param(10, 45, marks=pytest.mark.slow), pytest.param(20, 90, marks=pytest.mark.slow)],
)
def test_an_interrupted_pass_keeps_its_order_so_that_everyone_has_a_turn(count: int, blocks: int) -> None:
    """Publishers change faster than the budget follows: each is heard once a round, wherever the lot puts it."""
    publishers = [ParaId(2_000 + number) for number in range(count)]
    net = network(publishers=publishers, subscribers=())
    net.add_parachain(SUBSCRIBER, budget=EVERYTHING, max_pov_size=2_600)
    for publisher in publishers:
        net.subscribe(SUBSCRIBER, publisher, keys(8))
    heard: dict[ParaId, list[int]] = {publisher: [] for publisher in publishers}
    for tick in range(blocks):
        for publisher in publishers:
            publish(net, publisher, values(8, version=tick * 20 + publisher % 20))
        for record in net.recorded_step():
            for publisher in {delivery.publisher for delivery in record.deliveries}:
                heard[publisher].append(record.tick)
    gaps = {later - earlier for ticks in heard.values() for earlier, later in pairwise(ticks)}
    rounds = blocks / min(len(ticks) for ticks in heard.values())
    assert min(len(ticks) for ticks in heard.values()) > 3
    assert max(gaps) <= 2.5 * rounds
