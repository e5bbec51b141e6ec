"""``relaycast run --engine spark --workers N``: readers of one relay block side by side, in tasks of Spark.

Law: the files are those of one process, but for the engine's name. No pass goes ahead of the tasks: they build the run
itself, so the largest share bounds it, and not the relay chain. What is stopped begins anew.
"""

from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from relaycast.refusal import BadInput
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.alternative import with_alternative
from relaycast.simulation.alternative_aside import probed_aside
from relaycast.simulation.batch import BatchSimulation, Elsewhere
from relaycast.simulation.run_files import Finished, write_files
from relaycast.simulation.run_folder import OpenFiles, staged
from relaycast.simulation.side_by_side import ReaderShare, Team, build, reader_shares, shares_of
from relaycast.simulation.spark_engine import ENGINE, SparkOptions
from relaycast_ledger.event_lines import EventLines
from relaycast_ledger.outcome import Outcome
from relaycast_ledger.run_statistics import RunStatistics
from relaycast_ledger.segments.simulated import Progress, Unseen
from relaycast_spark.session import require_spark, spark_session
from relaycast_spark.task_gang import gang_of
from relaycast_trie.engine import Engine, warm_up_for
from relaycast_xcm import ParaId

if TYPE_CHECKING:
    from relaycast_spark.session import Spark

BUILT = "built"


@dataclass(frozen=True, slots=True)
class TaskShare:
    """A share of the readers on its way to a task."""

    prepare: Elsewhere
    readers: frozenset[ParaId]
    elsewhere: frozenset[ParaId]
    trie_engine: Engine

    def __call__(self, line: Connection) -> None:
        """Build the share's blocks, told over ``line`` what others built."""
        simulation = self.prepare(self.trie_engine).simulation
        build(ReaderShare(simulation, self.readers, self.elsewhere, tells_of_all=False), line)


def simulate_in_tasks(
    scenario: Scenario, *, out: Path, options: SparkOptions, workers: int, progress: Progress | None = None
) -> Finished:
    """Run ``scenario`` by this process and ``workers`` less one tasks, and write its files into ``out``.

    Raises ``BadInput`` and ``SparkUnavailable`` before anything is written, ``WorkerEnded`` when a task ends too soon.
    """
    if scenario.publications is not None:
        got = f"{workers} with recorded publications on Spark"
        raise BadInput("--workers", got, "--engine local, or no --workers: tasks have no file of publications")
    require_spark()
    warm_up_for(options.trie_engine)  # before any task looks for compiled kernels
    batch = BatchSimulation.prepare(scenario, per_key=options.per_key, trie_engine=options.trie_engine)
    simulation = batch.simulation
    with (
        probed_aside(simulation, trie_engine=options.trie_engine) as probe,
        spark_session(options.session) as spark,
        staged(out, simulation.run_id) as folder,
    ):
        outcome = _built(spark, batch, folder, workers, options.trie_engine, progress or Unseen())
        measured = replace(outcome, engine=ENGINE)
        told = with_alternative(measured, simulation.scenario, trie_engine=options.trie_engine, probe=probe)
        write_files(folder, told, simulation.echo())
    return Finished(told, out / simulation.run_id)


def _built(
    spark: "Spark", batch: BatchSimulation, folder: Path, workers: int, trie_engine: Engine, progress: Progress
) -> Outcome:
    """Let all blocks pass, write their events and tables into ``folder``, and return what they came to."""
    simulation = batch.simulation
    mine, *others = reader_shares(simulation, shares_of(simulation, workers) or [[]])
    prepare = Elsewhere(simulation.scenario, simulation.sources, per_key=simulation.by_key)
    works = [TaskShare(prepare, share.readers, share.elsewhere, trie_engine) for share in others]
    with (
        (folder / "events.jsonl").open("wb") as stream,
        simulation.tables(folder) as tables,
        gang_of(spark, works, f"readers: blocks 1-{simulation.scenario.blocks}") as lines,
    ):
        simulation.tally = RunStatistics()
        EventLines(stream, simulation.run_id)
        progress.begin(BUILT, simulation.scenario.blocks)
        mine.begin()
        return Team(mine, lines, OpenFiles(stream, tables)).run(lambda _: progress.advance(BUILT, 1))
