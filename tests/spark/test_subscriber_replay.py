"""Subscribers in bulk: from the proofs that a run kept, and nothing else, its blocks come out again."""

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.batch import BatchSimulation
from relaycast_ledger.exceptions import InputColumns
from relaycast_pallets import Policies
from relaycast_pallets.subscriber.variants.drafts import NoCache
from relaycast_spark.replay import REPLAYED, Row
from relaycast_spark.subscriber_replay import (
    INHERENTS,
    SUBSCRIBER_BLOCKS,
    VALID,
    Granted,
    SubscriberTerms,
    replay_subscribers,
)
from relaycast_trie import StorageProof
from relaycast_xcm.checkpoint import CheckpointRefused
from spark.scenarios import MARKET, SCARCE, UPGRADED, replayed_at_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOLD = ("wanted", "parent_head", "messages", "messages_before")

SAME = ("complete", "cursor_publisher", "cursor_key", "proof_bytes", "budget_bytes", "ref_time", "proof_size")
"""What a run says of a block in the same words."""


@pytest.fixture(scope="module", params=[MARKET, SCARCE], ids=lambda scenario: scenario.name)
def blocks(request: pytest.FixtureRequest) -> list[Row]:
    """The rows of a run that keeps its proofs, as they come back from a file."""
    scenario: Scenario = request.param
    rows: list[Row] = pa.Table.from_pylist(replayed_at_once(scenario, keep_proofs=True), REPLAYED).to_pylist()
    return rows


def inherents_of(blocks: list[Row], *, proof: str = "pruned") -> list[Row]:
    """Return what the subscribers' blocks were given, subscriber by subscriber."""
    rows = [
        {"subscriber": it["para_id"], "block": row["block"], "proof": it[proof]}
        | {name: it[name] for name in ("number", "relay_parent", "relay_root", "budget_bytes", *TOLD)}
        for row in blocks
        for it in row["subscribers"]
    ]
    return sorted(rows, key=lambda row: (row["subscriber"], row["block"], row["number"]))


def told_of(blocks: list[Row]) -> dict[tuple[int, int], Row]:
    """Return what a run says of its subscribers' blocks, by subscriber and number."""
    return {(it["para_id"], it["number"]): it for row in blocks for it in row["subscribers"]}


def replayed(rows: list[Row], terms: SubscriberTerms, *, rows_a_batch: int = 7, **more: Any) -> list[Row]:
    batches = pa.Table.from_pylist(rows, INHERENTS).to_batches(max_chunksize=rows_a_batch)
    made = replay_subscribers(iter(batches), terms, **more)
    return [row for batch in made for row in batch.cast(SUBSCRIBER_BLOCKS).to_pylist()]


@pytest.mark.parametrize("proof", ["pruned", "collected"])
def test_blocks_come_out_as_the_run_had_them(blocks: list[Row], proof: str) -> None:
    """Pruned proofs as they are, collected ones pruned again: heads are digests of all that a chain keeps."""
    told = told_of(blocks)
    found = replayed(inherents_of(blocks, proof=proof), SubscriberTerms(prune=proof == "collected"))
    assert len(found) == len(told)
    for row in found:
        expected = told[row["subscriber"], row["number"]]
        assert row["verdict"] == VALID
        assert row["head_hash"] == expected["head_hash"]
        assert row["given_bytes"] == expected["proof_bytes" if proof == "pruned" else "collected_bytes"]
        assert {name: row[name] for name in SAME} == {name: expected[name] for name in SAME}
        assert [(it["publisher"], it["key"], it["value"], it["ttl"], it["when_inserted"]) for it in row["updates"]] == [
            (it["publisher"], it["key"], it["value"], it["ttl"], it["when_inserted"]) for it in expected["deliveries"]
        ]
    assert any(row["updates"] for row in found)


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("cut", [4, 9, 14])
def test_code_changes_where_it_did_in_the_run(prune: bool, cut: int) -> None:
    """Also where the state is put away before, with or after an upgrade."""
    told = pa.Table.from_pylist(replayed_at_once(UPGRADED, keep_proofs=True), REPLAYED).to_pylist()
    chains = BatchSimulation.prepare(UPGRADED).chains.parachains
    upgrades = {int(para_id): tuple(chain.upgrades.scheduled) for para_id, chain in chains.items()}
    pov_bytes = UPGRADED.relaychain.max_pov_bytes
    terms = SubscriberTerms(prune=prune, state_every=1, upgrades=upgrades, max_pov_bytes=pov_bytes)
    rows = inherents_of(told, proof="collected" if prune else "pruned")
    before = replayed([row for row in rows if row["block"] <= cut], terms)
    states = {row["subscriber"]: row["state"] for row in before}
    after = replayed([row for row in rows if row["block"] > cut], terms, states=states)
    heads = {key: it["head_hash"] for key, it in told_of(told).items()}
    assert {(row["subscriber"], row["number"]): row["head_hash"] for row in [*before, *after]} == heads
    assert {row["verdict"] for row in [*before, *after]} == {VALID}


@pytest.mark.parametrize("cut", [1, 5, 11])
def test_a_history_can_be_cut_where_states_are_put_away(blocks: list[Row], cut: int) -> None:
    """What a subscriber wants is part of its state: rows need not say it again."""
    terms = SubscriberTerms(state_every=1)
    rows = only_changes(inherents_of(blocks))
    whole = replayed(rows, terms)
    before = replayed([row for row in rows if row["block"] <= cut], terms)
    states = {row["subscriber"]: row["state"] for row in before}
    after = replayed([row for row in rows if row["block"] > cut], terms, states=states)
    apart = sorted(before + after, key=lambda row: (row["subscriber"], row["block"], row["number"]))
    assert [without_state(row) for row in apart] == [without_state(row) for row in whole]


def only_changes(rows: list[Row]) -> list[Row]:
    """Return rows that say what is wanted only where it is not what it was."""
    wanted: dict[int, object] = {}
    sparse = []
    for row in rows:
        is_known = wanted.get(row["subscriber"]) == row["wanted"]
        wanted[row["subscriber"]] = row["wanted"]
        sparse.append(row | {"wanted": None} if is_known else row)
    assert any(row["wanted"] is None for row in sparse)
    return sparse


def without_state(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "state"}


def test_a_state_that_is_left_out_shows(blocks: list[Row]) -> None:
    """The mutant: without its state a subscriber does not know what it was told, and lacks what it keeps.

    One that subscribed to nothing for a while begins anew with a gap, and needs no state before it.
    """
    late = [row for row in inherents_of(blocks) if row["block"] > 8]
    found, told = replayed(late, SubscriberTerms()), told_of(blocks)
    other = [row for row in found if row["head_hash"] != told.get((row["subscriber"], row["number"]), {})["head_hash"]]
    assert {row["block"] for row in found if row["subscriber"] == 3_000} == set(range(9, 18))
    assert [row for row in found if row not in other] == [
        row for row in found if row["subscriber"] == 3_002 and row["block"] > 13
    ]


def test_a_gap_without_the_header_before_its_end_is_refused(blocks: list[Row]) -> None:
    rows = inherents_of(blocks)
    found = replayed([row | {"parent_head": None} for row in rows if row["block"] != 5], SubscriberTerms())
    behind = [row for row in found if row["subscriber"] == 3_000 and row["block"] > 5]
    assert behind
    expected = "GapRefused: from block 4 to block {number}: got no parent_head, expected the header of the block before"
    for row in behind:
        assert row["verdict"] == expected.format(number=row["block"])


def test_a_damaged_proof_is_named_and_the_chain_goes_on(blocks: list[Row]) -> None:
    rows = inherents_of(blocks)
    victim = max(rows, key=lambda row: len(row["proof"]))
    nodes = sorted(StorageProof.decode(victim["proof"]), key=len)
    damages = {
        "MissingNode|RootMismatch|UnusedNodes": StorageProof(nodes[:-1]).encode(),
        "UnusedNodes": StorageProof([*nodes, bytes(40)]).encode(),
        "CodecError": victim["proof"][:-1],
    }
    for reason, damaged in damages.items():
        broken = [row | {"proof": damaged} if row is victim else row for row in rows]
        by_block = {(row["subscriber"], row["block"]): row for row in replayed(broken, SubscriberTerms())}
        found = by_block[victim["subscriber"], victim["block"]]
        assert re.search(reason, found["verdict"])
        assert (found["complete"], found["proof_bytes"], found["updates"]) == (None, None, [])
        others = [row for row in by_block.values() if row["subscriber"] != victim["subscriber"]]
        assert all(row["verdict"] == VALID for row in others)
        assert len(by_block) == len({(row["subscriber"], row["block"]) for row in rows})


def test_other_policies_take_the_same_collected_proofs() -> None:
    """What a run did not try: without a node cache the same history takes more of every block."""
    rows = inherents_of(
        pa.Table.from_pylist(replayed_at_once(MARKET, keep_proofs=True), REPLAYED).to_pylist(), proof="collected"
    )
    usual = replayed(rows, SubscriberTerms(prune=True))
    bare = replayed(rows, SubscriberTerms(prune=True, policies=Policies(cache=NoCache())))
    assert {row["verdict"] for row in (*usual, *bare)} == {VALID}
    assert sum(row["proof_bytes"] for row in bare) > sum(row["proof_bytes"] for row in usual)
    unbounded = replayed(
        [row | {"budget_bytes": None} for row in rows], SubscriberTerms(prune=True, budget=Granted(1 << 30))
    )
    assert {row["budget_bytes"] for row in unbounded} == {1 << 30}


def test_a_state_of_somebody_else_is_refused(blocks: list[Row]) -> None:
    rows = inherents_of(blocks)
    (first, *_) = replayed(rows, SubscriberTerms(state_every=1))
    with pytest.raises(CheckpointRefused, match="parachain 4000, got parachain 3000"):
        replayed([row | {"subscriber": 4_000} for row in rows], SubscriberTerms(), states={4_000: first["state"]})


def test_a_history_in_segments_on_spark_is_the_whole_one(spark: "SparkSession") -> None:
    from relaycast_spark import stages  # noqa: PLC0415

    rows = pa.Table.from_pylist(replayed_at_once(MARKET, keep_proofs=True), REPLAYED)
    blocks = spark.createDataFrame(rows).repartition(3)
    terms = SubscriberTerms(state_every=2)
    given = blocks.transform(stages.inherents)
    whole = given.transform(stages.subscriber_blocks, terms).orderBy("subscriber", "block", "number").collect()
    told = told_of(rows.to_pylist())
    assert {(row.subscriber, row.number): bytes(row.head_hash) for row in whole} == {
        place: row["head_hash"] for place, row in told.items()
    }
    first = given.where("block <= 9").transform(stages.subscriber_blocks, terms)
    newest = first.transform(stages.states).collect()
    states = {row.subscriber: bytes(row.state) for row in newest}
    (reader, *_) = newest
    rest = given.where(f"subscriber = {reader.subscriber} and block > {reader.block}")
    found = rest.transform(stages.subscriber_blocks, terms, states=states).orderBy("block").collect()
    expected = [row for row in whole if row.subscriber == reader.subscriber and row.block > reader.block]
    assert [row.asDict() | {"state": None} for row in found] == [row.asDict() | {"state": None} for row in expected]
    with pytest.raises(InputColumns, match="there is no proof"):
        given.drop("proof").transform(stages.subscriber_blocks, terms)
