"""What changes while a scenario runs: who reads what, who still publishes, and the pace of each parachain."""

from pathlib import Path
from typing import Any

import pytest

from command_line import Command, Refused, Written
from relaycast.compare.comparison import measure
from relaycast.scenario.scenario import (
    Grief,
    ParachainTable,
    PublishTable,
    RelayChainTable,
    Scenario,
    SubscriptionTable,
)
from relaycast.scenario.workload import names_of, publications, wanted, wants_change
from relaycast.simulation.simulation import Simulation
from relaycast_ledger import BlockRecord
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_xcm import ParaId

READER = ParaId(3_000)


def scenario(
    publish: PublishTable, *subscriptions: SubscriptionTable, publisher: int = 2_000, blocks: int = 16, **reader: Any
) -> Scenario:
    wanted = list(subscriptions) or [SubscriptionTable(publisher=publisher)]
    return Scenario(
        parachains=[
            ParachainTable(id=publisher, publish=publish),
            ParachainTable(id=int(READER), subscribe=wanted, **reader),
        ],
        blocks=blocks,
    )


def simulated(scenario: Scenario) -> tuple[Simulation, list[BlockRecord]]:
    simulation = Simulation.prepare(scenario)
    records = [record for passed in simulation.blocks() for record in passed.records]
    checks = simulation.network.ledger.invariants
    assert checks.ok, checks.violations
    return simulation, records


def told(records: list[BlockRecord]) -> dict[int, int]:
    """Return how many values arrived, by relay block."""
    return {record.tick: len(record.deliveries) for record in records if record.deliveries}


def test_a_late_subscriber_is_told_everything_at_once_and_no_history() -> None:
    late = SubscriptionTable(publisher=2_000, starts_at=10)
    _, records = simulated(scenario(PublishTable(keys=6), late))
    assert [record.tick for record in records] == list(range(10, 17))
    assert told(records) == dict.fromkeys(range(10, 17), 6)
    assert max(delivery.conflated for delivery in records[0].deliveries) == 0


def test_a_subscription_that_ends_leaves_blocks_without_pubsub() -> None:
    ending = SubscriptionTable(publisher=2_000, starts_at=2, stops_at=8)
    _, records = simulated(scenario(PublishTable(keys=6), ending))
    assert [record.tick for record in records] == list(range(2, 8))


def test_added_keys_are_told_and_known_ones_are_not_repeated() -> None:
    growing = (
        SubscriptionTable(publisher=2_000, keys=4, stops_at=8),
        SubscriptionTable(publisher=2_000, keys=6, starts_at=8),
    )
    _, records = simulated(scenario(PublishTable(keys=6, every=100), *growing))
    assert told(records) == {3: 4, 8: 2}


def test_a_dropped_key_makes_the_parachain_read_the_others_anew() -> None:
    shrinking = (
        SubscriptionTable(publisher=2_000, keys=6, stops_at=8),
        SubscriptionTable(publisher=2_000, keys=4, starts_at=8),
    )
    _, records = simulated(scenario(PublishTable(keys=6, every=100), *shrinking))
    assert told(records) == {3: 6, 8: 4}


def test_a_sliding_subscription_moves_on_by_a_key() -> None:
    sliding = SubscriptionTable(publisher=2_000, keys=3, starts_at=3, slides_every=2)
    plan = scenario(PublishTable(keys=4), sliding, blocks=6)
    chain = plan.subscribers()[0]
    assert [wanted(chain, block) for block in (2, 3, 5, 7)] == [[], [(sliding, 0)], [(sliding, 1)], [(sliding, 2)]]
    assert names_of(sliding, PublishTable(keys=4), 2) == ["key/2", "key/3", "key/0"]
    assert [block for block in range(1, 8) if wants_change(chain, block)] == [3, 5, 7]
    assert Simulation.prepare(plan).outcome().subscribers[0].keys == 4
    simulation, _ = simulated(scenario(PublishTable(keys=8), sliding, blocks=9))
    kept = simulation.network.chains.parachains[READER].kept
    names = ["key/3", "key/4", "key/5"]
    feeds = [simulation.network.publisher(2_000).feed(name).key for name in names]
    assert sorted(kept.wanted[ParaId(2_000)]) == sorted(feeds)


def test_a_publisher_starts_and_stops() -> None:
    counts = {
        block: len(
            list(publications(scenario(PublishTable(keys=5, every=2, changed=1, starts_at=3, stops_at=8)), block))
        )
        for block in range(1, 10)
    }
    assert counts == {1: 0, 2: 0, 3: 5, 4: 0, 5: 1, 6: 0, 7: 1, 8: 0, 9: 0}


def test_a_heartbeat_repeats_the_value_and_is_told_all_the_same() -> None:
    publish = PublishTable(keys=3, new_value_every=4)
    plan = scenario(publish, blocks=10)
    values = [{value for _, _, value, _ in publications(plan, block)} for block in range(1, 10)]
    assert values[0] == values[3] != values[4] == values[7] != values[8]
    _, records = simulated(plan)
    assert told(records) == dict.fromkeys(range(3, 11), 3)


def test_a_deregistered_publisher_leaves_nothing_and_is_refused_from_then_on() -> None:
    simulation, records = simulated(scenario(PublishTable(keys=4, deregisters_at=8)))
    relay = simulation.network.chains.relay_chain.broadcaster.storage
    assert not relay.keys_of(ParaId(2_000))
    (publisher,) = simulation.outcome().publishers
    assert (publisher.sent, publisher.published, publisher.refused_messages) == (64, 24, 9)
    assert max(told(records)) == 8
    assert all(record.complete for record in records)


def test_crafted_keys_lengthen_the_way_until_the_publisher_is_disabled() -> None:
    plan = scenario(PublishTable(keys=4, grief=Grief(keys=12, at=5)), blocks=24, max_trie_depth=8)
    simulation, records = simulated(plan)
    disabling = [record.tick for record in records if record.disabled]
    assert disabling == [5 + 8 - 1 + 2]
    assert max(told(records)) < disabling[0]
    assert simulation.outcome().subscribers[0].disabled_publishers == [2_000]
    assert not [record for _, records in [simulated(scenario(PublishTable(keys=4), blocks=24))] for record in records
                if record.disabled]  # fmt: skip


def test_copies_have_ids_and_names_of_their_own() -> None:
    plan = scenario(PublishTable(keys=2), copies=3, name="shop").with_copies()
    assert [(it.id, it.name, it.copies) for it in plan.subscribers()] == [
        (3_000, "shop-1", 1),
        (3_001, "shop-2", 1),
        (3_002, "shop-3", 1),
    ]
    assert plan.with_copies() == plan


@pytest.mark.parametrize(
    ("reader", "latency", "conflated"),
    [
        ({}, {2}, {0}),
        ({"relay_blocks_per_block": 3}, {2}, {2}),
        ({"cores": 2}, {2}, {0}),
        ({"relay_parent_offset": 4}, {6}, {0}),
    ],
)
def test_the_pace_of_a_reader_decides_what_it_hears_and_when(
    reader: dict[str, Any], latency: set[int], conflated: set[int]
) -> None:
    _, records = simulated(scenario(PublishTable(keys=3), blocks=20, **reader))
    deliveries = [it for record in records for it in record.deliveries if it.delivered_at > 10]
    assert {it.latency_blocks for it in deliveries} == latency
    assert {it.conflated for it in deliveries} == conflated


@pytest.mark.parametrize("reader", [{}, {"relay_blocks_per_block": 5}, {"relay_parent_offset": 7}, {"cores": 3}])
def test_a_comparison_waits_for_slow_readers_and_finds_nothing_lost(reader: dict[str, Any]) -> None:
    late = SubscriptionTable(publisher=2_000, starts_at=4)
    design = measure(scenario(PublishTable(keys=3, ttl=6), late, blocks=12, **reader))
    figures = design.subscribers[int(READER)]
    assert (figures.lost_updates, figures.undelivered, figures.panics, design.broken) == (0, 0, 0, [])


def test_a_comparison_knows_that_a_deregistered_publisher_owes_nothing() -> None:
    """The reader builds its first block at 10, when all has come and gone."""
    design = measure(scenario(PublishTable(keys=3, deregisters_at=5), blocks=5, relay_blocks_per_block=10))
    assert (design.subscribers[int(READER)].callbacks, design.subscribers[int(READER)].undelivered) == (0, 0)


def test_a_block_that_does_not_change_what_is_kept_has_the_same_entries() -> None:
    """The heartbeat's price: the value stands, the block of its insertion does not."""
    simulation, _ = simulated(scenario(PublishTable(keys=1, new_value_every=100), blocks=6))
    storage = simulation.network.chains.relay_chain.broadcaster.storage
    (key,) = storage.keys_of(ParaId(2_000))
    entry = storage.entry(ParaId(2_000), key)
    assert isinstance(entry, PublishedEntry)
    assert entry.when_inserted == 6


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "id = 3000\nsubscribe = [{ publisher = 2000, starts_at = 5, stops_at = 5 }]",
            "parachains[1].subscribe[0].stops_at: got 5, expected a block after starts_at = 5",
        ),
        (
            "id = 3000\nsubscribe = [{ publisher = 2000, stops_at = 5 }, { publisher = 2000, starts_at = 4 }]",
            "parachains[1].subscribe[1].publisher: got 2000 again, "
            "expected every publisher once at a time (starts_at, stops_at)",
        ),
        (
            "id = 3000\nsubscribe = [{ publisher = 2000, starts_at = 9 }, { publisher = 2000, stops_at = 12 }]",
            "parachains[1].subscribe[1].publisher: got 2000 again, "
            "expected every publisher once at a time (starts_at, stops_at)",
        ),
        (
            "id = 3000\nsubscribe = [{ publisher = 2000, slides_every = 4 }]",
            "parachains[1].subscribe[0].slides_every: got 4, expected a number of keys to slide, as keys",
        ),
        (
            "id = 3000\nsubscribe = [{ publisher = 2000, starts_ta = 4 }]",
            "parachains[1].subscribe[0]: got the name 'starts_ta', expected a known name (did you mean starts_at?)",
        ),
        (
            "id = 3000\ncopies = 2",
            "parachains[2].id: got 3001, the id of parachains[1], expected an id of its own",
        ),
        (
            "id = 4294967295\ncopies = 2\nsubscribe = [{ publisher = 2000 }]",
            "parachains[3].copies: got 2, expected ids of at most 4,294,967,295",
        ),
        (
            "id = 2000\npublish = { deregisters_at = 1 }",
            "parachains[0].publish.deregisters_at: got 1, expected a later block: in the first one publishers register",
        ),
        (
            "id = 1000\npublish = { keys = 1, deregisters_at = 9 }",
            "parachains[3].publish.deregisters_at: got 9 for parachain 1000, "
            "expected an id from 2000 on: others never registered",
        ),
        (
            "id = 2000\npublish = { keys = 3990, grief = { keys = 11, at = 3 } }",
            "parachains[0].publish.keys: got 3990 and 11 crafted ones, "
            "expected at most relaychain.max_stored_keys = 4000",
        ),
        (
            "id = 3000\nrelay_parent_offset = 33",
            "parachains[1].relay_parent_offset: got 33, expected a whole number <= 32",
        ),
        ("id = 3000\ncores = 0", "parachains[1].cores: got 0, expected a whole number >= 1"),
    ],
)
def test_a_change_that_cannot_be_is_refused_by_its_place(refused: Refused, file: Written, text: str, line: str) -> None:
    name = file(f'extends = "oracle"\n[[parachains]]\n{text}', "a.toml")
    assert refused("run", name) == f"a.toml at {line}"


def test_a_parachain_reads_a_hundred_publishers_at_a_time(refused: Refused, file: Written) -> None:
    wanted = ", ".join(f"{{ publisher = {2000 + number} }}" for number in range(101))
    text = (
        f"[[parachains]]\nid = 2000\ncopies = 101\npublish = {{ keys = 1 }}\n"
        f"[[parachains]]\nid = 3000\nsubscribe = [{wanted}]"
    )
    line = "a.toml at parachains[1].subscribe: got 101 publishers at a time, expected at most 100"
    assert refused("run", file(text, "a.toml")) == line


def test_relay_blocks_take_their_seconds() -> None:
    relay = RelayChainTable(block_seconds=2)
    plan = Scenario(parachains=scenario(PublishTable(keys=1)).parachains, relaychain=relay)
    assert Simulation.prepare(plan).outcome().block_seconds == 2


def test_a_recording_is_read_late_and_slides_too(file: Written, tmp_path: Path) -> None:
    rows = "".join(f"1,2000,feed/{number},0x0{number},0\n" for number in range(5))
    (tmp_path / "trace.csv").write_text(f"block,para_id,key,value,ttl\n{rows}")
    sliding = SubscriptionTable(publisher=2_000, keys=2, starts_at=4, slides_every=3)
    plan = Scenario(
        parachains=[ParachainTable(id=2_000), ParachainTable(id=int(READER), subscribe=[sliding])],
        publications=str(tmp_path / "trace.csv"),
        blocks=9,
    )
    simulation, records = simulated(plan)
    assert told(records) == {4: 2, 7: 2}
    assert simulation.outcome().subscribers[0].keys == 3


def test_a_summary_says_what_messages_took(relaycast: Command) -> None:
    shown = relaycast("demo", "heavy-messages", "--blocks", "6").out
    assert "3000 hub: messages went first with " in shown
    assert " bytes, 8,912,752 in the fullest block; at most " in shown
    assert "Messages go first." in shown
    assert "messages went first" not in relaycast("demo", "oracle", "--blocks", "3").out
