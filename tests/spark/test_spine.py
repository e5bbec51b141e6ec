"""The spine and the segments behind it: what is replayed apart is what runs at once, to the byte."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.batch import BatchSimulation
from relaycast_ledger.run_part import RunPart
from relaycast_ledger.run_statistics import RunStatistics, SubscriberStatistics
from relaycast_ledger.run_tables import RunTables
from relaycast_ledger.segments.fast_forward import Segment, StaticReads, fast_forward
from relaycast_ledger.segments.simulated import Advanced
from relaycast_spark.replay import REPLAYED, Row
from relaycast_trie import node_codec
from relaycast_xcm.checkpoint import CheckpointRefused, decoded
from spark.scenarios import (
    MARKET,
    SCARCE,
    UPGRADED,
    preparation_of,
    recorded,
    replayed_apart,
    replayed_at_once,
    segments_of,
)

_AT_ONCE: dict[str, list[Row]] = {}
"""By scenario: the rows of one run, with which several ways to cut it are compared."""


@pytest.mark.parametrize("scenario", [MARKET, SCARCE, UPGRADED], ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("length", [1, 5, 16])
def test_segments_replayed_apart_equal_one_run(scenario: Scenario, length: int) -> None:
    if scenario.name not in _AT_ONCE:
        _AT_ONCE[scenario.name] = replayed_at_once(scenario, keep_proofs=True)
    at_once = _AT_ONCE[scenario.name]
    apart = replayed_apart(preparation_of(scenario), segments_of(scenario, length=length), keep_proofs=True)
    assert [row["block"] for row in apart] == list(range(2, scenario.blocks + 1))
    assert _as_table(apart) == _as_table(at_once[1:])


def test_rows_do_not_depend_on_what_the_process_has_decoded_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal hashes may be one object or several: that must not show."""
    remembering = replayed_at_once(MARKET)
    monkeypatch.setattr(node_codec, "CACHED_NODE_BYTES", 0)
    node_codec.KNOWN_NODES.clear()
    assert replayed_at_once(MARKET) == remembering


def _as_table(rows: list[Row]) -> tuple[list[Row], dict[str, list[Row]], dict[int, SubscriberStatistics]]:
    """Return the rows, and what they tell, in whatever parts they tell it."""
    table: list[Row] = pa.Table.from_pylist(rows, REPLAYED).to_pylist()
    tables, tally = dict[str, list[Row]](), RunStatistics()
    for row in table:
        if (told := row.pop("told")) is not None:
            part = decoded(told, RunPart)
            for name, batch in part.batches().items():
                tables.setdefault(name, []).extend(batch.to_pylist())
            for para_id, score in part.tallies.items():
                tally.of(para_id).extend(score)
    return table, tables, tally.subscribers


def test_segments_carry_the_recorded_publications_that_they_replay(tmp_path: Path) -> None:
    scenario = recorded(tmp_path / "feed.csv")
    at_once, segments = replayed_at_once(scenario), segments_of(scenario, length=4)
    prepare = preparation_of(scenario)
    (tmp_path / "feed.csv").unlink()
    apart = replayed_apart(prepare, segments)
    assert not [row["error"] for row in apart if row["error"]]
    assert _as_table(apart) == _as_table(at_once[1:])


def test_a_scarce_budget_leaves_blocks_incomplete() -> None:
    subscribers = [row["subscribers"][0] for row in replayed_at_once(SCARCE)]
    assert any(not subscriber["complete"] for subscriber in subscribers)


def test_segments_cover_every_block_once() -> None:
    segments = segments_of(MARKET, length=5)
    assert [(it.number, it.first, it.last) for it in segments] == [(1, 2, 6), (2, 7, 11), (3, 12, 16), (4, 17, 17)]


def test_the_spine_leaves_the_simulation_as_a_run_would() -> None:
    passed, run = BatchSimulation.prepare(MARKET), BatchSimulation.prepare(MARKET)
    passed.pass_over(1)
    list(fast_forward(passed, done=1, blocks=MARKET.blocks, segment_blocks=6))
    for block in range(1, MARKET.blocks + 1):
        run.advance(block)
    assert passed.chains.relay_chain.head.header == run.chains.relay_chain.head.header
    for para_id, parachain in run.chains.parachains.items():
        assert passed.chains.parachains[para_id].state.snapshot() == parachain.state.snapshot()
        assert type(passed.chains.collators[para_id]) is type(run.chains.collators[para_id])


def test_the_spine_begins_after_block_1() -> None:
    with pytest.raises(ValueError, match="after block 1"):
        next(fast_forward(BatchSimulation.prepare(MARKET), done=0, blocks=3, segment_blocks=1))


def test_a_replay_that_ends_elsewhere_says_so() -> None:
    rows = replayed_apart(preparation_of(MARKET), [replace(segments_of(MARKET, length=3)[0], closing=bytes(32))])
    assert [row["error"] is None for row in rows] == [True, True, True, False]
    assert rows[-1]["block"] == 4
    assert rows[-1]["error"].startswith("SpineDiverged: the replay up to block 4 ends in another state")


def test_a_block_that_fails_names_itself_and_spares_other_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    segments = segments_of(MARKET, length=4)

    def fails(self: BatchSimulation, block: int) -> Advanced:
        if block == 7:
            raise OverflowError("too much")
        return advance(self, block)

    advance = BatchSimulation.advance
    monkeypatch.setattr(BatchSimulation, "advance", fails)
    errors = {row["block"]: row["error"] for row in replayed_apart(preparation_of(MARKET), segments)}
    assert errors[7] == "OverflowError: too much"
    assert set(errors) == {*range(2, 8), *range(10, MARKET.blocks + 1)}
    assert [block for block, error in errors.items() if error] == [7]


def test_a_mutant_spine_that_forgets_the_static_keys_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StaticReads, "trie", lambda self, relay_root, _para_id: self.bare_trie(relay_root))
    errors = [
        row["error"] for row in replayed_apart(preparation_of(SCARCE), segments_of(SCARCE, length=8)) if row["error"]
    ]
    assert errors


def test_what_is_told_comes_back_from_the_rows(tmp_path: Path) -> None:
    batch, again = BatchSimulation.prepare(SCARCE), BatchSimulation.prepare(SCARCE)
    table = pa.Table.from_pylist(replayed_at_once(SCARCE), REPLAYED).to_pylist()
    for row in table:
        records = batch.advance(row["block"]).records
        assert decoded(row["told"], RunPart) == batch.part.take()
        assert [subscriber["para_id"] for subscriber in row["subscribers"]] == [it.para_id for it in records]
    with RunTables(tmp_path, "run", again.simulation.rows()) as tables:
        again.add_rows(table, tables)
    assert sum(it.sent for it in again.simulation.published.values()) == 24 * 6


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows[-1].update(told=None), f"nothing is told of block {SCARCE.blocks}"),
        (lambda rows: rows[4].update(told=rows[5]["told"]), r"got block 6, expected \[5\]"),
    ],
    ids=["nothing", "another block"],
)
def test_rows_that_tell_too_little_are_refused(change: Callable[[list[Row]], object], why: str, tmp_path: Path) -> None:
    batch, rows = BatchSimulation.prepare(SCARCE), replayed_at_once(SCARCE)
    change(rows)
    with (
        RunTables(tmp_path, "run", batch.simulation.rows()) as tables,
        pytest.raises(CheckpointRefused, match=why),
    ):
        batch.add_rows(rows, tables)


def test_a_segment_is_a_value() -> None:
    assert Segment(1, 2, 3, b"", b"") == Segment(1, 2, 3, b"", b"")


def test_blocks_on_one_relay_parent_have_rows_of_their_own() -> None:
    rows = [it for row in replayed_at_once(MARKET) for it in row["subscribers"] if it["para_id"] == 3_002]
    assert len({it["relay_parent"] for it in rows}) < len(rows)
    assert len({it["head_hash"] for it in rows}) == len({it["number"] for it in rows}) == len(rows)
