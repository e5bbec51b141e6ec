"""Proofs in bulk on Spark: made for a trie, verified from anywhere, and written all or not at all."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from relaycast_spark import proof_tables
from relaycast_spark.exceptions import InputColumns
from relaycast_spark.progress import Progress, Unseen
from relaycast_spark.proof_tables import TrieTable, prove_requests, verified_schema, verify_batches

TASKS_A_CORE = 4
"""Tasks that a stage is cut into for each core: enough that a slow one does not hold up the end."""

POLL_SECONDS = 0.25


def spread(frame: DataFrame) -> DataFrame:
    """Return the rows in as many partitions as keep every core busy; large inputs have them already."""
    wanted = TASKS_A_CORE * frame.sparkSession.sparkContext.defaultParallelism
    return frame if frame.rdd.getNumPartitions() * 2 >= wanted else frame.repartition(wanted)


def verified_proofs(proofs: DataFrame, *, strict: bool = False) -> DataFrame:
    """Add verdicts to a table of proofs, see ``proof_tables``; raises ``InputColumns``."""
    schema = verified_schema(to_arrow_schema(proofs.schema))

    def verify(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return verify_batches(batches, strict=strict)

    return proofs.mapInArrow(verify, from_arrow_schema(schema))


def random_proofs(
    spark: SparkSession, table: TrieTable, count: int, *, keys_a_proof: int, seed: int = 0, absent_percent: int = 0
) -> DataFrame:
    """Return ``count`` proofs of keys drawn from the trie."""
    shared = spark.sparkContext.broadcast(table)

    def prove(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return proof_tables.prove_random(
            batches, lambda: shared.value, keys_a_proof=keys_a_proof, seed=seed, absent_percent=absent_percent
        )

    tasks = min(count, TASKS_A_CORE * spark.sparkContext.defaultParallelism)
    return spark.range(count, numPartitions=tasks).mapInArrow(prove, from_arrow_schema(proof_tables.PROOFS))


def requested_proofs(requests: DataFrame, table: TrieTable) -> DataFrame:
    """Return a proof for every row of ``requests``: ``id``, and ``keys`` as a list of bytes; or ``InputColumns``."""
    if not {"id", "keys"} <= set(requests.columns):
        raise InputColumns("the requests", ", ".join(requests.columns), "id and keys")
    shared = requests.sparkSession.sparkContext.broadcast(table)

    def prove(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return prove_requests(batches, lambda: shared.value)

    return requests.select("id", "keys").mapInArrow(prove, from_arrow_schema(proof_tables.PROOFS))


def verdict_counts(verdicts: DataFrame) -> dict[str, int]:
    """Return how many proofs got each verdict, the most frequent first."""
    rows = verdicts.groupBy("verdict").count().orderBy(F.desc("count"), "verdict").collect()
    return {row["verdict"]: row["count"] for row in rows}


def write_once(frame: DataFrame, path: Path, *, stage: str, rows: int, progress: Progress | None = None) -> None:
    """Write ``frame`` as the Parquet folder ``path``, which appears when all of it is there.

    What stood there before goes then; what a killed run left beside it goes now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f".{path.name}.*.staging"):
        if not psutil.pid_exists(int(old.name.split(".")[-2])):
            shutil.rmtree(old, ignore_errors=True)
    staging = path.with_name(f".{path.name}.{os.getpid()}.staging")
    try:
        watched(
            frame.sparkSession,
            lambda: frame.write.mode("overwrite").parquet(str(staging)),
            stage=stage,
            rows=rows,
            progress=progress or Unseen(),
        )
        _replace(path, staging)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def watched(
    spark: SparkSession, job: Callable[[], None], *, stage: str, rows: int, progress: Progress, unit: str = "proofs"
) -> None:
    """Do ``job`` while its tasks are counted; an interrupt cancels it."""
    context, group = spark.sparkContext, f"relaycast-{uuid4()}"
    raised: list[BaseException] = []

    def work() -> None:
        context.setJobGroup(group, stage, interruptOnCancel=True)
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


def _replace(path: Path, staging: Path) -> None:
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    if path.exists():
        path.rename(old)
    staging.rename(path)
    if old.is_dir():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)
