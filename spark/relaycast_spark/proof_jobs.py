"""Proofs in bulk on Spark: made for a trie, verified from anywhere, and written all or not at all."""

import glob
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import uuid4

import psutil
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from relaycast_ledger.progress import Progress, Unseen
from relaycast_spark import proof_tables
from relaycast_spark.exceptions import InputColumns, RowsLost
from relaycast_spark.proof_tables import TrieTable, prove_requests, verified_schema, verify_batches
from relaycast_spark.table_places import Store, TablePlace, refuse_unshared

TASKS_A_CORE = 4
"""Tasks that a stage is cut into for each core: enough that a slow one does not hold up the end."""

POLL_SECONDS = 0.25

STAGING, OLD = "staging", "old"
"""How names of what is not whole yet end, and of what stood at a place before."""


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


class RandomProofs:
    """Proofs of keys drawn from a trie: those of one id are the same, whatever else is asked for."""

    def __init__(
        self,
        spark: SparkSession,
        table: TrieTable,
        count: int,
        *,
        keys_a_proof: int,
        seed: int = 0,
        absent_percent: int = 0,
    ) -> None:
        self.count = count
        self.first_id, self.last_id = 0, count - 1
        self._spark, self._shared = spark, spark.sparkContext.broadcast(table)
        self._drawn = {"keys_a_proof": keys_a_proof, "seed": seed, "absent_percent": absent_percent}

    def terms(self) -> dict[str, object]:
        """Return what the proofs depend on, beside the trie."""
        return {"random": self._drawn}

    def rows_between(self, first: int, last: int) -> int:
        """Return how many proofs have these ids."""
        return last - first + 1

    def between(self, first: int, last: int) -> DataFrame:
        """Return the proofs with these ids."""
        shared, drawn = self._shared, self._drawn

        def prove(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return proof_tables.prove_random(batches, lambda: shared.value, **drawn)

        tasks = min(last - first + 1, TASKS_A_CORE * self._spark.sparkContext.defaultParallelism)
        ids = self._spark.range(first, last + 1, numPartitions=tasks)
        return ids.mapInArrow(prove, from_arrow_schema(proof_tables.PROOFS))


class RequestedProofs:
    """A proof for every row of ``requests``: ``id``, and ``keys`` as a list of bytes; or ``InputColumns``."""

    def __init__(self, requests: DataFrame, table: TrieTable) -> None:
        if not {"id", "keys"} <= set(requests.columns):
            raise InputColumns("the requests", ", ".join(requests.columns), "id and keys")
        self._requests = requests.select(F.col("id").cast("bigint"), "keys")
        self._shared = requests.sparkSession.sparkContext.broadcast(table)
        digest = F.sum(F.xxhash64("id", "keys").cast("decimal(38,0)"))  # whatever the order of the rows
        rows = self._requests.agg(F.count(F.lit(1)), F.min("id"), F.max("id"), digest).collect()[0]
        self.count: int = rows[0]
        self.first_id: int = rows[1] or 0
        self.last_id: int = rows[2] or 0
        self._digest = str(rows[3])

    def terms(self) -> dict[str, object]:
        """Return what the proofs depend on, beside the trie: which requests there are."""
        return {"requests": [self.count, self.first_id, self.last_id, self._digest]}

    def rows_between(self, first: int, last: int) -> int:
        """Return how many requests have these ids; what has none comes first."""
        return self._between(first, last).count()

    def between(self, first: int, last: int) -> DataFrame:
        """Return the proofs for the requests with these ids."""
        shared = self._shared

        def prove(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return prove_requests(batches, lambda: shared.value)

        return spread(self._between(first, last)).mapInArrow(prove, from_arrow_schema(proof_tables.PROOFS))

    def _between(self, first: int, last: int) -> DataFrame:
        wanted = F.col("id").between(first, last)
        return self._requests.where(wanted | F.col("id").isNull() if first == self.first_id else wanted)


def verdict_counts(verdicts: DataFrame) -> dict[str, int]:
    """Return how many proofs got each verdict, the most frequent first."""
    rows = verdicts.groupBy("verdict").count().orderBy(F.desc("count"), "verdict").collect()
    return {row["verdict"]: row["count"] for row in rows}


def write_table(
    frame: DataFrame, place: TablePlace, *, stage: str, rows: int, progress: Progress | None = None
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
            lambda: frame.write.mode("overwrite").parquet(staging.uri),
            stage=stage,
            rows=rows,
            progress=progress or Unseen(),
        )
        found = rows_at(frame.sparkSession, staging)
        if found != rows:
            raise RowsLost(place.text, found, rows)
        put_in_place(store, staging, place)
    finally:
        store.delete(staging)


def rows_at(spark: SparkSession, place: TablePlace) -> int:
    """Return how many rows the files at ``place`` hold, as Spark finds them there; 0 where there are none."""
    try:
        return spark.read.schema("id BIGINT").parquet(place.pattern).count()
    except AnalysisException:
        return 0


def put_in_place(store: Store, staging: TablePlace, place: TablePlace) -> None:
    """Move a whole table to its place, and remove what stood there."""
    old = place.beside(f".{place.name}.{os.getpid()}.{OLD}")
    if store.exists(place):
        store.move(place, old)
    try:
        store.move(staging, place)
    except BaseException:
        if store.exists(old):
            store.move(old, place)
        raise
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
