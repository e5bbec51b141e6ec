"""Jobs of many rows on Spark: watched, and written all or not at all."""

import glob
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import psutil
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from relaycast_ledger.segments.simulated import Progress, Unseen
from relaycast_ledger.staged_file import sync, sync_all
from relaycast_spark.exceptions import RowsLost
from relaycast_spark.table_places import Store, TablePlace, refuse_unshared

TASKS_A_CORE = 4
"""Tasks that a stage is cut into for each core: enough that a slow one does not hold up the end."""

POLL_SECONDS = 0.25

ROWS_A_FILE = 1 << 18
"""Rows that a file of a table has at most, unless told."""

MOST_ROWS_A_FILE = 1 << 31

DICTIONARY_BYTES = 1 << 25
"""Bytes of distinct values that a file keeps once for each column: proofs have most of their nodes in common."""

STAGING, OLD = "staging", "old"
"""How names of what is not whole yet end, and of what stood at a place before."""


def spread(frame: DataFrame) -> DataFrame:
    """Return the rows in as many partitions as keep every core busy; large inputs have them already."""
    wanted = TASKS_A_CORE * frame.sparkSession.sparkContext.defaultParallelism
    return frame if frame.rdd.getNumPartitions() * 2 >= wanted else frame.repartition(wanted)


def verdicts_at(spark: SparkSession, place: TablePlace) -> dict[str, Any]:
    """Return how many proofs of a table got each verdict, the most frequent first, and the bytes of all nodes."""
    found = spark.read.parquet(place.pattern).groupBy("verdict")
    with named(spark, f"verdicts counted: {place.name}"):
        rows = found.agg(F.count(F.lit(1)), F.sum("proof_bytes")).collect()
    ordered = sorted(rows, key=lambda row: (-row[1], row[0]))
    return {"verdicts": {row[0]: row[1] for row in ordered}, "proof_bytes": sum(row[2] for row in rows)}


def write_table(
    frame: DataFrame,
    place: TablePlace,
    *,
    stage: str,
    rows: int,
    rows_a_file: int = ROWS_A_FILE,
    progress: Progress | None = None,
) -> None:
    """Write ``frame`` as the Parquet folder at ``place``, which appears when all of its ``rows`` are there.

    What stood there before goes then; what a killed run left beside it goes now. The caller keeps other writers out,
    see ``alone_at``. Raises ``RowsLost``.
    """
    store = Store(frame.sparkSession)
    refuse_unshared(place, frame.sparkSession.sparkContext.master)
    remove_leftovers(place)
    staging = place.beside(f".{place.name}.{os.getpid()}.{STAGING}")
    try:
        watched(
            frame.sparkSession,
            lambda: frame.write.mode("overwrite").options(**parquet_options(rows_a_file)).parquet(staging.uri),
            stage=stage,
            rows=rows,
            progress=progress or Unseen(),
            what=f"{stage}: {place.name}",
        )
        with named(frame.sparkSession, f"rows counted: {place.name}"):
            found = rows_at(frame.sparkSession, staging)
        if found != rows:
            raise RowsLost(place.text, found, rows)
        put_in_place(store, staging, place)
    finally:
        store.delete(staging)


def parquet_options(rows_a_file: int) -> dict[str, str]:
    """Return how Spark writes Parquet: a column's distinct values once a file, the rest by zstd."""
    return {
        "compression": "zstd",
        "maxRecordsPerFile": str(rows_a_file),
        "parquet.dictionary.page.size": str(DICTIONARY_BYTES),
    }


def rows_at(spark: SparkSession, place: TablePlace) -> int:
    """Return how many rows the files at ``place`` hold, as Spark finds them there; 0 where there are none."""
    try:
        return spark.read.schema("id BIGINT").parquet(place.pattern).count()
    except AnalysisException:
        return 0


def put_in_place(store: Store, staging: TablePlace, place: TablePlace) -> None:
    """Move a whole table to its place, once it is on the disk of this machine, and remove the old one."""
    if not staging.is_uri:
        sync_all(staging.path)
    old = place.beside(f".{place.name}.{os.getpid()}.{OLD}")
    if store.exists(place):
        store.move(place, old)
    try:
        store.move(staging, place)
    except BaseException:
        if store.exists(old):
            store.move(old, place)
        raise
    if not place.is_uri:
        sync(place.path.parent)
    store.delete(old)


def remove_leftovers(place: TablePlace) -> None:
    """Remove what killed processes of this machine left beside a path of it; what they had moved away comes back."""
    if place.is_uri:
        return
    for left in place.path.parent.glob(f".{glob.escape(place.name)}.*.*"):
        beside, pid, kind = left.name.rsplit(".", 2)
        if (
            beside != f".{place.name}"
            or kind not in {STAGING, OLD}
            or not pid.isdecimal()
            or psutil.pid_exists(int(pid))
        ):
            continue
        if kind == OLD and not place.path.exists():
            left.rename(place.path)
        else:
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def named(spark: SparkSession, what: str) -> Iterator[str]:
    """Let Spark's pages and its event log call the jobs of this thread ``what``; give the name of their group."""
    context, group = spark.sparkContext, f"relaycast: {what} ({uuid4().hex[:8]})"
    context.setJobGroup(group, what, interruptOnCancel=True)
    try:
        yield group
    finally:
        with suppress(Exception):  # the JVM may be gone already
            for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
                context.setLocalProperty(name, None)  # type: ignore[arg-type]


def watched(
    spark: SparkSession,
    job: Callable[[], None],
    *,
    stage: str,
    rows: int,
    progress: Progress,
    unit: str = "proofs",
    what: str = "",
) -> None:
    """Do ``job`` while its tasks are counted; an interrupt cancels it. Spark calls it ``what``, or as its ``stage``."""
    context, group = spark.sparkContext, f"relaycast: {what or stage} ({uuid4().hex[:8]})"
    raised: list[BaseException] = []

    def work() -> None:
        context.setJobGroup(group, what or stage, interruptOnCancel=True)
        try:
            job()
        except BaseException as error:
            raised.append(error)

    worker = threading.Thread(target=work, name=stage)
    worker.start()
    seen = _Tasks(stage, rows, unit, progress)
    try:
        while worker.is_alive():
            worker.join(POLL_SECONDS)
            seen.look(spark, group)
    except BaseException:
        with suppress(Exception):  # Spark may be gone already
            context.cancelJobGroup(group)
        worker.join()
        raise
    if raised:
        raise raised[0]
    seen.end()


class _Tasks:
    """What the status tracker says of a job's last stage, in rows."""

    def __init__(self, stage: str, rows: int, unit: str, progress: Progress) -> None:
        self._stage, self._rows, self._progress = stage, rows, progress
        self._told = 0
        progress.begin(stage, rows, unit=unit)

    def look(self, spark: SparkSession, group: str) -> None:
        """Tell how far the job is."""
        tracker = spark.sparkContext.statusTracker()
        stages = [
            info
            for job in tracker.getJobIdsForGroup(group)
            if (found := tracker.getJobInfo(job)) is not None
            for number in found.stageIds
            if (info := tracker.getStageInfo(number)) is not None
        ]
        if not stages:
            return
        last = max(stages, key=lambda info: info.stageId)
        self._advance_to(last.numCompletedTasks * self._rows // max(1, last.numTasks))

    def end(self) -> None:
        """Tell that all is done."""
        self._advance_to(self._rows)

    def _advance_to(self, done: int) -> None:
        if done > self._told:
            self._progress.advance(self._stage, done - self._told)
            self._told = done
