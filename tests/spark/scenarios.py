"""Scenarios for batch runs, small and each with a difficulty of its own, and what two runs are compared by."""

import pickle
from pathlib import Path

import pyarrow as pa

from relaycast.scenario.message_load import MessageLoad, Poisson
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast.scenario.upgrade_tables import KeysTable, PolicyChange, RelayUpgradeTable, UpgradeTable
from relaycast.simulation.batch import BatchSimulation
from relaycast_ledger.segments.fast_forward import Segment, fast_forward
from relaycast_ledger.segments.simulated import Preparation
from relaycast_spark.replay import SEGMENTS, Replay, Row, replay_segments
from relaycast_trie.engine import Engine

BLOCKS = 17

MARKET = Scenario(
    name="market",
    blocks=BLOCKS,
    parachains=[
        ParachainTable(id=2000, publish=PublishTable(keys=9, value_bytes=[16, 400], ttl=3)),
        ParachainTable(id=1000, publish=PublishTable(keys=5, every=4, changed=2, prefix="rate")),
        ParachainTable(
            id=3000, subscribe=[SubscriptionTable(publisher=2000), SubscriptionTable(publisher=1000, keys=2)]
        ),
        ParachainTable(
            id=3001,
            publish=PublishTable(keys=1, every=3),
            subscribe=[SubscriptionTable(publisher=1000)],
            messages=MessageLoad(horizontal=2_000),
        ),
        ParachainTable(
            id=3002,
            subscribe=[
                SubscriptionTable(publisher=2000, keys=4, starts_at=4, slides_every=3, stops_at=11),
                SubscriptionTable(publisher=2000, keys=2, starts_at=13),
            ],
            relay_blocks_per_block=2,
            cores=2,
            relay_parent_offset=1,
            messages=MessageLoad(downward=Poisson(mean_messages=3), message_bytes=64),
        ),
    ],
)
"""Publishers of all kinds, entries that expire, a subscriber that publishes, and one that changes its mind."""

SCARCE = Scenario(
    name="scarce",
    blocks=BLOCKS,
    relaychain=RelayChainTable(max_pov_bytes=17_000, pov_percent=85),
    parachains=[
        ParachainTable(id=2000, publish=PublishTable(keys=24, value_bytes=600, every=3)),
        ParachainTable(id=3000, subscribe=[SubscriptionTable(publisher=2000)]),
    ],
)
"""A budget that no pass gets by with: cursors, and nodes that count."""

UPGRADED = Scenario(
    name="upgraded",
    seed=3,
    blocks=BLOCKS,
    relaychain=RelayChainTable(pov_bytes=4_000, upgrades=[RelayUpgradeTable(at=6, max_stored_keys=20)]),
    parachains=[
        ParachainTable(id=2000, publish=PublishTable(keys=14, value_bytes=[16, 300])),
        ParachainTable(
            id=3000,
            subscribe=[SubscriptionTable(publisher=2000, keys=8)],
            upgrades=[
                UpgradeTable(at=4, policies=PolicyChange(metering="carried"), max_trie_depth=9),
                UpgradeTable(at=9, subscribe=[KeysTable(publisher=2000)]),
                UpgradeTable(at=13, policies=PolicyChange(metering="every-read", order="numeric")),
            ],
        ),
        ParachainTable(
            id=3001,
            subscribe=[SubscriptionTable(publisher=2000, keys=4)],
            relay_blocks_per_block=3,
            upgrades=[UpgradeTable(at=8, policies=PolicyChange(cache="none", budget="remaining:9kB"))],
        ),
    ],
)
"""Code changes while passes are cut short, also between two segments, and on a slow chain."""

MANY_KEYS = Scenario(
    name="many keys",
    seed=5,
    blocks=9,
    parachains=[
        *(
            ParachainTable(id=para_id, publish=PublishTable(keys=160, value_bytes=[24, 60], changed=30, ttl=5))
            for para_id in range(2_000, 2_008)
        ),
        ParachainTable(
            id=3000, subscribe=[SubscriptionTable(publisher=para_id, keys=12) for para_id in range(2_000, 2_008)]
        ),
    ],
)
"""More than a thousand keys in eight child tries, hundreds of them new in a block: what the array engine is for."""


def recorded(file: Path) -> Scenario:
    """Write recorded publications and return a scenario that replays them beside a publisher with a rule."""
    rows = [
        f"{block},{2000 + number % 3},feed/{(block * number) % 5},0x{bytes([block]).hex() * (number * 7)},{number % 4}"
        for block in (1, 2, 3, 6, 7, 11, 12, 15)
        for number in range(block % 5 + 1)
    ]
    file.write_text("block,para_id,key,value,ttl\n" + "\n".join(rows) + "\n")
    reads = [SubscriptionTable(publisher=para_id) for para_id in (2000, 2001, 2002, 2005)]
    return Scenario(
        name="recorded",
        blocks=BLOCKS,
        publications=str(file),
        parachains=[
            *(ParachainTable(id=para_id) for para_id in (2000, 2001, 2002)),
            ParachainTable(id=2005, publish=PublishTable(keys=3, every=2)),
            ParachainTable(id=3000, subscribe=reads),
        ],
    )


def replayed_at_once(scenario: Scenario, *, keep_proofs: bool = False) -> list[Row]:
    """Return the rows of a run in one go: the local engine, watched."""
    replay = Replay(BatchSimulation.prepare(scenario), segment=0, keep_proofs=keep_proofs)
    return without_segment([replay.block(number) for number in range(1, scenario.blocks + 1)])


def segments_of(scenario: Scenario, *, length: int, trie_engine: Engine = "auto") -> list[Segment]:
    """Return what the spine makes of a scenario from block 2 on."""
    batch = BatchSimulation.prepare(scenario, trie_engine=trie_engine)
    batch.pass_over(1)
    return list(fast_forward(batch, done=1, blocks=scenario.blocks, segment_blocks=length))


def preparation_of(scenario: Scenario, *, trie_engine: Engine = "auto") -> Preparation:
    """Return what workers prepare a scenario with, as it comes to them."""
    prepared = BatchSimulation.prepare(scenario, trie_engine=trie_engine).preparation()
    travelled: Preparation = pickle.loads(pickle.dumps(prepared))
    return travelled


def replayed_apart(prepare: Preparation, segments: list[Segment], *, keep_proofs: bool = False) -> list[Row]:
    """Return the rows of segments, each replayed from its checkpoint."""
    rows = [
        {"segment": it.number, "first": it.first, "last": it.last, "checkpoint": it.checkpoint, "closing": it.closing}
        for it in segments
    ]
    given = iter([pa.RecordBatch.from_pylist(rows, SEGMENTS)])
    batches = replay_segments(given, prepare, keep_proofs=keep_proofs)
    return without_segment([row for batch in batches for row in batch.to_pylist()])


def without_segment(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "segment"} for row in rows]


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a run by name; the engine's name is taken out of them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        .replace(b'"engine": "spark"', b'"engine": "local"')
        .replace(b"spark engine", b"local engine")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
