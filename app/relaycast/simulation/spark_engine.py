"""``relaycast run --engine spark``: the same scenario and the same files, computed as a batch run.

Law: what stands in ``out/<run-id>/`` is what the local engine writes, but for the engine's name. Until it is complete
everything is in ``out/.<run-id>.spark``, from where the next run of the same id goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from msgspec.structs import replace

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.alternative import Probe, with_alternative
from relaycast.simulation.alternative_aside import probed_aside
from relaycast.simulation.batch import BatchSimulation
from relaycast.simulation.run_files import Finished, write_files
from relaycast.simulation.run_folder import staged
from relaycast_ledger.event_lines import EventLines
from relaycast_ledger.run_statistics import RunStatistics
from relaycast_ledger.segments.simulated import Progress, Unseen
from relaycast_ledger.segments.work_folder import WorkFolder
from relaycast_spark.session import SessionSettings, require_spark, spark_session
from relaycast_spark.tables import REPLAYED as REPLAYED_ROWS
from relaycast_trie.engine import Engine, warm_up_for

if TYPE_CHECKING:
    from relaycast_spark.pipeline import BatchRun

ENGINE = "spark"

REPLAYED = "replayed.parquet"
"""The folder of a run's proofs, where they are kept."""

ASSEMBLY = "written"

TOLD = ["block", "told", "events", "publishers", "checked", "violated", "violations"]
"""What of a replayed block the run's files are made of."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """How to run: ``resume`` goes on with what an earlier run left, ``keep_proofs`` keeps every proof.

    No byte depends on the ``trie_engine``: a run may be resumed with another one.
    """

    session: SessionSettings | None = None
    segment_blocks: int | None = None
    resume: bool = True
    keep_proofs: bool = False
    fail_fast: bool = False
    per_key: bool | None = None
    trie_engine: Engine = "auto"


def simulate_with_spark(
    scenario: Scenario, *, out: Path, options: SparkOptions, progress: Progress | None = None
) -> Finished:
    """Run ``scenario`` on Spark and write its files into ``out``.

    Raises ``BadInput`` and ``SparkUnavailable`` before anything is written, and ``SegmentFailed`` when a block could
    not be replayed: the rest is kept for the next run.
    """
    require_spark()
    from relaycast_spark.pipeline import BatchRun, segment_length  # noqa: PLC0415 - needs PySpark

    warm_up_for(options.trie_engine)  # before any worker looks for compiled kernels
    batch = BatchSimulation.prepare(scenario, per_key=options.per_key, trie_engine=options.trie_engine)
    run_id, per_key = batch.simulation.run_id, batch.simulation.by_key
    terms: dict[str, object] = {"run_id": run_id, "blocks": scenario.blocks, "keep_proofs": options.keep_proofs}
    terms["per_key"] = per_key
    with (
        probed_aside(batch.simulation, trie_engine=options.trie_engine) as probe,
        WorkFolder(out / f".{run_id}.spark", terms, blocks=scenario.blocks, columns=REPLAYED_ROWS) as folder,
        spark_session(options.session) as spark,
    ):
        if not options.resume:
            folder.clear()
        workers = spark.sparkContext.defaultParallelism
        length = folder.segment_blocks or options.segment_blocks or segment_length(scenario.blocks, workers)
        run = BatchRun(spark, folder, scenario.blocks, length, options.keep_proofs, options.fail_fast)
        run.progress, run.trie_engine = progress or Unseen(), options.trie_engine
        run.run(batch)
        finished = _write(run, batch, run_id, out, probe)
        folder.remove()
    return finished


def _write(run: "BatchRun", batch: BatchSimulation, run_id: str, out: Path, probe: Callable[[], Probe]) -> Finished:
    """Put the replayed segments together to what the local engine would have written."""
    with staged(out, run_id) as folder:
        run.progress.begin(ASSEMBLY, run.blocks)
        with (folder / "events.jsonl").open("wb") as stream, batch.simulation.tables(folder) as tables:
            EventLines(stream, run_id)
            batch.simulation.tally = RunStatistics()
            for number in run.folder.replayed():
                with run.folder.table(number) as table:
                    rows = table.select(TOLD).to_pylist()
                    batch.add_rows(rows, tables)
                    stream.writelines(row["events"] for row in rows)
                    run.progress.advance(ASSEMBLY, len(rows))
        if run.keep_proofs:
            (folder / REPLAYED).mkdir()
            for number in run.folder.replayed():
                with run.folder.table(number) as table:
                    kept = table.drop_columns(["segment", "told", "events"])
                pq.write_table(kept, folder / REPLAYED / f"part-{number:06}.parquet", compression="zstd")
        measured = replace(batch.simulation.outcome(), engine=ENGINE)
        outcome = with_alternative(measured, batch.simulation.scenario, trie_engine=run.trie_engine, probe=probe)
        write_files(folder, outcome, batch.simulation.echo())
    return Finished(outcome, out / run_id)
