"""``--engine spark`` against ``--engine local``: the same folder, whole, resumed, and stage by stage."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from relaycast.scenario.files import load_preset
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.batch import BatchSimulation
from relaycast.simulation.run_files import simulate
from relaycast.simulation.spark_engine import REPLAYED, SparkOptions, simulate_with_spark
from relaycast_ledger.exceptions import SegmentFailed
from relaycast_ledger.segments.work_folder import WorkFolder
from spark.scenarios import MARKET, SCARCE, contents, recorded, replayed_at_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("spark")


class Watched:
    """A progress that remembers; ``stop_at`` interrupts once so many blocks were replayed."""

    def __init__(self, *, stop_at: int | None = None) -> None:
        self.done: dict[str, int] = {}
        self.totals: dict[str, int] = {}
        self.stop_at = stop_at

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        self.totals[stage], self.done[stage] = total, done

    def advance(self, stage: str, rows: int) -> None:
        self.done[stage] += rows
        if self.stop_at is not None and stage == "replayed" and self.done[stage] >= self.stop_at:
            raise KeyboardInterrupt


def on_spark(scenario: Scenario, out: Path, watched: Watched | None = None, **options: Any) -> Path:
    return simulate_with_spark(scenario, out=out, options=SparkOptions(**options), progress=watched).folder


RING_ROOTS = replace(load_preset("ring-roots"), blocks=12)


@pytest.mark.parametrize(
    "scenario",
    [MARKET, SCARCE, pytest.param(RING_ROOTS, marks=pytest.mark.spark_smoke)],
    ids=lambda scenario: scenario.name,
)
def test_both_engines_leave_the_same_folder(tmp_path: Path, scenario: Scenario) -> None:
    local = simulate(scenario, out=tmp_path / "local").folder
    batch = on_spark(scenario, tmp_path / "spark", segment_blocks=5)
    assert batch.name == local.name
    assert contents(batch) == contents(local)
    assert (batch / "keys.parquet").exists()
    assert json.loads((batch / "run.json").read_bytes())["engine"] == "spark"
    assert [path.name for path in (tmp_path / "spark").iterdir()] == [local.name]


def test_both_engines_leave_keys_out_alike(tmp_path: Path) -> None:
    local = simulate(MARKET, out=tmp_path / "local", per_key=False).folder
    batch = on_spark(MARKET, tmp_path / "spark", per_key=False)
    assert contents(batch) == contents(local)
    assert not (batch / "keys.parquet").exists()


def test_recorded_publications_replay_the_same_on_both_engines(tmp_path: Path) -> None:
    scenario = recorded(tmp_path / "feed.csv")
    local = simulate(scenario, out=tmp_path / "local").folder
    with pytest.raises(KeyboardInterrupt):
        on_spark(scenario, tmp_path / "spark", Watched(stop_at=6), segment_blocks=2)
    resumed = on_spark(scenario, tmp_path / "spark", segment_blocks=2)
    assert contents(resumed) == contents(local)
    assert json.loads((resumed / "run.json").read_bytes())["recorded"]["last_block"] == 15


def test_one_block_is_a_run_as_well(tmp_path: Path) -> None:
    scenario = replace(MARKET, blocks=1)
    local = simulate(scenario, out=tmp_path / "local").folder
    assert contents(on_spark(scenario, tmp_path / "spark")) == contents(local)


def test_progress_counts_every_block_of_every_stage(tmp_path: Path) -> None:
    watched = Watched()
    on_spark(MARKET, tmp_path, watched, segment_blocks=4)
    assert watched.done == watched.totals == dict.fromkeys(("relay chain", "replayed", "written"), MARKET.blocks)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        on_spark(MARKET, tmp_path / "resumed", Watched(stop_at=5), segment_blocks=2)
    (work,) = (tmp_path / "resumed").iterdir()
    assert work.name.startswith(".")
    kept = {file.name: file.stat().st_mtime_ns for file in work.glob("segment-*.parquet")}
    assert 2 <= len(kept) < 9

    watched = Watched()
    began = watched.begin
    seen: dict[str, int] = {}

    def begin(stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        if stage == "written":
            seen.update({file.name: file.stat().st_mtime_ns for file in work.glob("segment-*.parquet")})
        began(stage, total, done=done, unit=unit)

    watched.begin = begin  # type: ignore[method-assign]
    resumed = on_spark(MARKET, tmp_path / "resumed", watched)
    assert kept.items() <= seen.items(), "what was there was not done again"
    assert contents(resumed) == contents(simulate(MARKET, out=tmp_path / "local").folder)


def test_a_run_that_starts_over_gives_the_same(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        on_spark(SCARCE, tmp_path / "again", Watched(stop_at=5), segment_blocks=3)
    again = on_spark(SCARCE, tmp_path / "again", resume=False, segment_blocks=7)
    assert contents(again) == contents(simulate(SCARCE, out=tmp_path / "local").folder)


@pytest.fixture
def damaged(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A spine whose second segment cannot be replayed."""
    genuine = WorkFolder.note

    def damage(self: WorkFolder, segment: Any) -> None:
        genuine(self, segment)
        if segment.number == 2:
            object.__setattr__(segment, "closing", bytes(32))

    monkeypatch.setattr(WorkFolder, "note", damage)
    return monkeypatch


def test_a_block_that_fails_is_named_and_the_rest_is_kept(tmp_path: Path, damaged: pytest.MonkeyPatch) -> None:
    with pytest.raises(SegmentFailed, match=r"^block 9: SpineDiverged: the replay up to block 9"):
        on_spark(MARKET, tmp_path / "out", segment_blocks=4)
    (work,) = (tmp_path / "out").iterdir()
    assert sorted(file.name for file in work.glob("segment-*.parquet")) == [
        f"segment-{number:06}.parquet" for number in (0, 1, 3, 4)
    ]
    damaged.undo()
    completed = on_spark(MARKET, tmp_path / "out")
    assert contents(completed) == contents(simulate(MARKET, out=tmp_path / "local").folder)


@pytest.mark.usefixtures("damaged")
def test_a_run_gives_up_at_the_first_failure_when_asked_to(tmp_path: Path) -> None:
    with pytest.raises(SegmentFailed, match=r"^block 5: SpineDiverged"):
        on_spark(MARKET, tmp_path, segment_blocks=2, fail_fast=True)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that keeps its proofs."""
    return on_spark(SCARCE, tmp_path_factory.mktemp("kept"), keep_proofs=True, segment_blocks=6)


def test_kept_proofs_are_those_of_the_local_engine(kept: Path) -> None:
    local = replayed_at_once(SCARCE, keep_proofs=True)
    rows = pq.read_table(kept / REPLAYED).sort_by("block").to_pylist()
    assert [row["subscribers"][0]["collected"] for row in rows] == [row["subscribers"][0]["collected"] for row in local]
    assert [row["subscribers"][0]["pruned"] for row in rows] == [row["subscribers"][0]["pruned"] for row in local]
    assert [row["state_root"] for row in rows] == [row["state_root"] for row in local]


@pytest.fixture(scope="module")
def blocks(spark: "SparkSession", kept: Path) -> "DataFrame":
    return spark.read.parquet(str(kept / REPLAYED))


def test_the_relay_chains_blocks_are_a_stage(blocks: "DataFrame") -> None:
    from relaycast_spark import stages  # noqa: PLC0415

    batch = BatchSimulation.prepare(SCARCE)
    expected = []
    for number in range(1, SCARCE.blocks + 1):
        batch.pass_over(number)
        head = batch.chains.relay_chain.head
        expected.append((number, head.state_root, head.hash))
    rows = blocks.transform(stages.relay_blocks).orderBy("block").collect()
    assert [(row.block, bytes(row.state_root), bytes(row.header_hash)) for row in rows] == expected
    changed = blocks.transform(stages.publisher_roots).orderBy("block").collect()
    assert [row.block for row in changed] == [2, 5, 8, 11, 14, 17]
    assert {row.para_id for row in changed} == {2000}


def test_the_stages_compose_to_a_summary(blocks: "DataFrame", kept: Path) -> None:
    from relaycast_spark import stages  # noqa: PLC0415

    figures = json.loads((kept / "run.json").read_bytes())["subscribers"][0]
    (row,) = blocks.transform(stages.verified).transform(stages.summary).collect()
    assert (row.subscriber, row.blocks, row.callbacks) == (3000, figures["blocks"], figures["callbacks"])
    largest = max(figures["first_proof_bytes"], figures["proof_bytes"]["max"])  # the stage leaves out no block
    assert (row.proof_bytes, row.proof_bytes_max) == (figures["proof_bytes"]["total"], largest)
    assert (row.incomplete_blocks, row.panics) == (figures["incomplete_blocks"], 0)
    assert row.incomplete_blocks > 0
    told = blocks.transform(stages.deliveries)
    assert told.count() == figures["callbacks"]
    assert told.agg({"latency_blocks": "max"}).collect()[0][0] == figures["latency_blocks"]["max"]


def test_what_is_pruned_is_a_part_of_what_was_proved(blocks: "DataFrame") -> None:
    from relaycast_spark import stages  # noqa: PLC0415
    from relaycast_trie import StorageProof  # noqa: PLC0415

    keys = ["block", "subscriber"]
    rows = blocks.transform(stages.proved).join(blocks.transform(stages.pruned), keys).collect()
    assert len(rows) == SCARCE.blocks
    for row in rows:
        collected, pruned = StorageProof.decode(bytes(row.collected)), StorageProof.decode(bytes(row.pruned))
        assert pruned.nodes <= collected.nodes
        assert (collected.proof_bytes, pruned.proof_bytes) == (row.collected_bytes, row.proof_bytes)
