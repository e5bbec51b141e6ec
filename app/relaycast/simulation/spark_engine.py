"""``relaycast run --engine spark``: the same scenario and the same files, computed as a batch run.

Law: the files in ``out/<run-id>/`` are those of the local engine, but for the engine's name. A run is spread by
segments or by readers side by side (``run_estimate``). By segments, everything is in ``out/.<run-id>.spark`` until
the run is complete, and the next run of the same id continues from there. Side by side, no pass goes ahead: tasks build
the run itself, and a run that is stopped starts over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from msgspec.structs import replace

from relaycast.refusal import BadInput
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.alternative import with_alternative
from relaycast.simulation.alternative_aside import probed_aside
from relaycast.simulation.batch import BatchSimulation, Elsewhere
from relaycast.simulation.run_estimate import Estimate, Way, faster_way, shares_of
from relaycast.simulation.run_files import Finished, write_files
from relaycast.simulation.run_folder import OpenFiles, staged
from relaycast.simulation.side_by_side import ReaderShare, Team, build, reader_shares
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.event_lines import EventLines
from relaycast_ledger.outcome import Outcome
from relaycast_ledger.run_statistics import RunStatistics
from relaycast_ledger.segments.simulated import Progress, Unseen
from relaycast_ledger.segments.work_folder import WorkFolder
from relaycast_spark.jobs import gang_of
from relaycast_spark.replay import REPLAYED as REPLAYED_ROWS
from relaycast_spark.session import SessionSettings, require_spark, spark_session
from relaycast_trie.engine import Engine, warm_up_for
from relaycast_xcm import ParaId

if TYPE_CHECKING:
    from relaycast_spark.pipeline import BatchRun
    from relaycast_spark.session import Spark

ENGINE = "spark"

REPLAYED = "replayed.parquet"
"""The folder of a run's proofs, where they are kept."""

BUILT, ASSEMBLY = "built", "written"

TOLD = ["block", "told", "events", "publishers", "checked", "violated", "violations"]
"""Columns of a replayed block that the run's files are made of."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """How to run: ``resume`` continues what an earlier run left, ``keep_proofs`` keeps every proof.

    ``workers`` are processes side by side, one is a run by segments. Without a number the way follows from the
    ``estimate``, the cores, and what an earlier run left; ``segments_for`` is a reason for segments. No byte depends on
    the ``trie_engine``: a run may be resumed with another one.
    """

    session: SessionSettings | None = None
    segment_blocks: int | None = None
    resume: bool = True
    keep_proofs: bool = False
    fail_fast: bool = False
    per_key: bool | None = None
    trie_engine: Engine = "auto"
    workers: int | None = None
    segments_for: str = ""
    estimate: Estimate | None = None


@dataclass(frozen=True, slots=True)
class TaskShare:
    """A share of the readers on its way to a task."""

    prepare: Elsewhere
    readers: frozenset[ParaId]
    elsewhere: frozenset[ParaId]

    def __call__(self, line: Connection) -> None:
        """Build the share's blocks; ``line`` brings the heads that others built."""
        build(ReaderShare(self.prepare().simulation, self.readers, self.elsewhere, tells_of_all=False), line)


def simulate_with_spark(
    scenario: Scenario,
    *,
    out: Path,
    options: SparkOptions,
    progress: Progress | None = None,
    say: Callable[[Way], None] | None = None,
) -> Finished:
    """Run ``scenario`` on Spark and write its files into ``out``; ``say`` gets the way that the run is spread.

    Raises ``BadInput`` and ``SparkUnavailable`` before anything is written. By segments, raises ``SegmentFailed`` when
    a block could not be replayed: the rest is kept for the next run. Side by side, raises ``WorkerEnded`` when a task
    ends too soon.
    """
    if scenario.publications is not None and (options.workers or 1) > 1:
        got = f"{options.workers} with recorded publications on Spark"
        raise BadInput("--workers", got, "--engine local, or no --workers: tasks have no file of publications")
    require_spark()
    from relaycast_spark.pipeline import BatchRun, segment_length  # noqa: PLC0415 - needs PySpark

    warm_up_for(options.trie_engine)  # before any worker looks for compiled kernels
    batch = BatchSimulation.prepare(scenario, per_key=options.per_key, trie_engine=options.trie_engine)
    simulation, shown = batch.simulation, progress or Unseen()
    run_id, blocks = simulation.run_id, scenario.blocks
    terms: dict[str, object] = {"run_id": run_id, "blocks": blocks, "keep_proofs": options.keep_proofs}
    terms["per_key"] = simulation.by_key
    with (
        probed_aside(simulation) as probe,
        WorkFolder(out / f".{run_id}.spark", terms, blocks=blocks, columns=REPLAYED_ROWS) as folder,
        spark_session(options.session) as spark,
    ):
        if not options.resume:
            folder.clear()
        way = chosen_way(batch.simulation, options, cores=_cores(spark), left=folder.done_blocks)
        if say is not None:
            say(way)
        length = folder.segment_blocks or options.segment_blocks
        length = length or segment_length(blocks, spark.sparkContext.defaultParallelism)
        run = BatchRun(spark, folder, blocks, length, options.keep_proofs, options.fail_fast, shown)
        if way.resumes:
            run.run(batch)
        with staged(out, run_id) as staging:
            with (staging / "events.jsonl").open("wb") as stream, simulation.tables(staging) as tables:
                EventLines(stream, run_id)
                simulation.tally = RunStatistics()
                files = OpenFiles(stream, tables)
                if way.resumes:
                    outcome = _joined(run, batch, files)
                else:
                    outcome = _side_by_side(spark, batch, files, way.workers, run)
            if options.keep_proofs:
                _keep_proofs(run, staging / REPLAYED)
            measured = replace(outcome, engine=ENGINE)
            told = with_alternative(measured, simulation, probe)
            write_files(staging, told, simulation.echo())
        folder.remove()
    return Finished(told, out / run_id)


def chosen_way(simulation: Simulation, options: SparkOptions, *, cores: int | None, left: int = 0) -> Way:
    """Return how the run is spread over ``cores``, where an earlier run ``left`` that many blocks."""
    if options.workers is not None:
        return Way(options.workers, f"--workers {options.workers}")
    if options.segments_for:
        return Way(1, options.segments_for)
    if left:
        return Way(1, f"an earlier run left {left:,} blocks")
    if simulation.scenario.publications is not None:
        return Way(1, "tasks that build readers have no file of publications")
    if cores is None or options.estimate is None:
        return Way(1, "the number of cores or their gain is not known")
    return faster_way(options.estimate, shares_of(simulation, cores), cores)


def _cores(spark: "Spark") -> int | None:
    """Return how many tasks run at the same time; ``None`` where that changes or is set apart from the cores."""
    settings = spark.sparkContext.getConf()
    if settings.get("spark.dynamicAllocation.enabled") == "true" or settings.get("spark.default.parallelism"):
        return None
    return spark.sparkContext.defaultParallelism // int(settings.get("spark.task.cpus") or 1) or 1


def _joined(run: "BatchRun", batch: BatchSimulation, files: OpenFiles) -> Outcome:
    """Join the replayed segments to what the local engine would have written."""
    run.progress.begin(ASSEMBLY, run.blocks)
    for number in run.folder.replayed():
        with run.folder.table(number) as table:
            rows = table.select(TOLD).to_pylist()
            batch.add_rows(rows, files.tables)
            files.events.writelines(row["events"] for row in rows)
            run.progress.advance(ASSEMBLY, len(rows))
    return batch.simulation.outcome()


def _keep_proofs(run: "BatchRun", folder: Path) -> None:
    folder.mkdir()
    for number in run.folder.replayed():
        with run.folder.table(number) as table:
            kept = table.drop_columns(["segment", "told", "events"])
        pq.write_table(kept, folder / f"part-{number:06}.parquet", compression="zstd")


def _side_by_side(spark: "Spark", batch: BatchSimulation, files: OpenFiles, workers: int, run: "BatchRun") -> Outcome:
    """Build the run's blocks in this process and ``workers`` less one tasks."""
    simulation = batch.simulation
    mine, *others = reader_shares(simulation, shares_of(simulation, workers) or [[]])
    prepare = Elsewhere(simulation.scenario, simulation.sources, simulation.by_key, simulation.chains.trie_engine)
    works = [TaskShare(prepare, share.readers, share.elsewhere) for share in others]
    with gang_of(spark, works, f"readers: blocks 1-{run.blocks}") as lines:
        run.progress.begin(BUILT, run.blocks)
        mine.begin()
        return Team(mine, lines, files).run(lambda _: run.progress.advance(BUILT, 1))
