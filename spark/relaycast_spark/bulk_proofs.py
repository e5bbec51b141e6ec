"""Proofs in bulk as Spark's tables: the engine of ``bulk_work`` that makes, verifies and writes them in tasks."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from relaycast_ledger.bulk_work import (
    DICTIONARY_BYTES,
    FILE,
    MOST_FILE_BYTES,
    PROVED,
    VERIFIED,
    GivenProofs,
    Part,
    WantedProofs,
    given_proofs,
    name_of,
    requested_proofs,
    tasks_of,
)
from relaycast_ledger.parquet_files import Batches, ParquetTable, Piece, rows_of, shared_out
from relaycast_ledger.proof_tables import (
    FORMS,
    NODES_FOLDER,
    NUMBERS,
    REQUEST_TOTALS,
    Form,
    NodeTable,
    TrieTable,
    is_numbered,
    load_trie,
    node_table,
    numbers_used,
    proof_table,
    request_table,
    total_requests,
    verified_schema,
    verify_batches,
)
from relaycast_ledger.segments.simulated import Progress
from relaycast_ledger.table_places import ROWS_A_FILE, TablePlace
from relaycast_spark.jobs import TASKS_A_CORE, jobs_as_done, named, rows_done, spread
from relaycast_spark.store import Store, found_footers, read_parquet, refuse_unshared


@dataclass(slots=True)
class SparkEngine:
    """Works on tables of proofs in tasks of Spark's; ``rows_a_file`` bounds the rows of a Parquet file."""

    spark: SparkSession
    rows_a_file: int = ROWS_A_FILE
    files: Store = field(init=False)

    def __post_init__(self) -> None:
        self.files = Store(self.spark)

    def reach(self, target: TablePlace) -> None:
        """Raise ``PlaceRefused`` unless this process and all workers can write there."""
        if target.is_uri:
            self.files.reach(target)
        refuse_unshared(self.spark, target, is_written=True)

    def columns(self, place: TablePlace, option: str) -> pa.Table:
        """Return a whole table."""
        table = ParquetTable.of(found_footers(self.spark, place, option))
        if table.is_local:
            return table.whole()
        with named(self.spark, f"table read: {place.name}"):
            return read_parquet(self.spark, place, table).toArrow()

    def requested(self, place: TablePlace, form: Form) -> WantedProofs:
        """Return the proofs that a table of ``id`` and ``keys`` asks for; raises ``InputColumns``."""
        table = request_table(found_footers(self.spark, place, "--requests"))
        requests = read_parquet(self.spark, place, table).select(F.col("id").cast("bigint"), "keys")
        with named(self.spark, "requests counted"):
            totals = requests.mapInArrow(total_requests, from_arrow_schema(REQUEST_TOTALS)).toArrow()
        return requested_proofs(totals, requests, form=form)

    def rows_between(self, wanted: WantedProofs, ranges: Sequence[tuple[int, int]]) -> Sequence[int]:
        """Return how many requests have ids in each range; those without an id belong to the first one."""
        first, last = ranges[0]
        sizes = [0] * len(ranges)
        owner = F.expr(f"(cast(coalesce(id, {first}) as decimal(20, 0)) - {first}) div {last - first + 1} as owner")
        with named(self.spark, "requests counted by range"):
            for row in wanted.requests.groupBy(owner).count().collect():
                sizes[row.owner] = row["count"]
        return sizes

    def proved(
        self, wanted: WantedProofs, table: TrieTable, parts: Sequence[Part], progress: Progress
    ) -> Generator[Part]:
        """Write the proofs of each part to its staging place, and yield the part once its rows are there."""
        shared, make, schema = (
            self.spark.sparkContext.broadcast(table),
            wanted.prove,
            from_arrow_schema(FORMS[wanted.form]),
        )

        def prove(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return make(batches, lambda: shared.value)

        cores = self.spark.sparkContext.defaultParallelism
        share = -(-cores // max(1, len(parts)))

        def frame_of(part: Part) -> DataFrame:
            tasks = tasks_of(part.rows, rows_a_file=self.rows_a_file, cores=share)
            if wanted.requests is None:
                rows = self.spark.range(part.first, part.last + 1, numPartitions=tasks)
            else:
                rows = _between(wanted, part.first, part.last).repartition(tasks)
            return rows.mapInArrow(prove, schema)

        return self._written(parts, frame_of, PROVED, progress)

    def write_nodes(self, table: TrieTable, whole: TablePlace) -> None:
        """Write the nodes that proofs name by number into a folder inside, which Spark does not take for rows."""
        with named(self.spark, "numbers of nodes gathered"):
            numbers = self.spark.read.parquet(whole.pattern).select(NUMBERS)
            used = numbers.mapInArrow(numbers_used, "number bigint").toArrow().column("number")
        _, trie = load_trie(lambda: table)
        nodes = self.spark.createDataFrame(node_table(trie, np.unique(used.to_numpy())))
        with named(self.spark, "nodes written"):
            nodes.coalesce(1).write.options(**_parquet_options(ROWS_A_FILE)).parquet(whole.inside(NODES_FOLDER).uri)

    def given(self, place: TablePlace) -> GivenProofs:
        """Return a table of proofs to be verified, in groups of rows, or in files that the JVM reads."""
        table = proof_table(found_footers(self.spark, place, "PROOFS"))
        nodes = self._nodes_of(table, place)
        stamps = self.files.stamps(place) | (self.files.stamps(nodes[0]) if nodes else {})
        pieces = list(table.pieces())
        if not table.is_local:
            pieces = [Piece(0, sum(it.group_rows), it.file, folders=it.folders) for it in table.footers]
        return given_proofs(stamps, [piece.end for piece in pieces], (place, table, pieces, nodes))

    def verified(
        self, given: GivenProofs, parts: Sequence[Part], *, strict: bool, progress: Progress
    ) -> Generator[Part]:
        """Write the verdicts on each part to its staging place, and yield the part once its rows are there."""
        place, table, pieces, nodes = given.pieces
        tasks = -(-TASKS_A_CORE * self.spark.sparkContext.defaultParallelism // max(1, len(parts)))

        def frame_of(part: Part) -> DataFrame:
            some, of_numbers = pieces[part.first : part.last + 1], nodes and nodes[1]
            if table.is_local:
                shares = list(shared_out(some, -(-part.rows // tasks))) or [[]]
                return verified_files(self.spark, shares, table.schema, strict=strict, nodes=of_numbers)
            frame = read_parquet(self.spark, place, table, [it.file for it in some])
            return verified_proofs(spread(frame), strict=strict, nodes=of_numbers)

        return self._written(parts, frame_of, VERIFIED, progress)

    def rows_at(self, staging: TablePlace) -> int:
        """Return how many rows Spark finds in the files at ``staging``; 0 where there are none."""
        with named(self.spark, f"rows counted: {name_of(staging)}"):
            try:
                return self.spark.read.schema("id BIGINT").parquet(staging.pattern).count()
            except AnalysisException:
                return 0

    def verdicts_at(self, place: TablePlace) -> tuple[dict[str, int], int]:
        """Return how many proofs have each verdict, and the bytes of all nodes."""
        with named(self.spark, f"verdicts counted: {place.name}"):
            found = self.spark.read.parquet(place.pattern).groupBy("verdict")
            rows = found.agg(F.count(F.lit(1)), F.sum("proof_bytes")).collect()
        return {row[0]: row[1] for row in rows}, sum(row[2] for row in rows)

    def _written(
        self, parts: Sequence[Part], frame_of: Callable[[Part], DataFrame], stage: str, progress: Progress
    ) -> Generator[Part]:
        """Write each part in a job of its own, and yield it then; no more at a time than keep all cores busy.

        A kill loses parts under way, and Spark counts the rows of a part after the tasks of those.
        """
        tasks = min((tasks_of(part.rows, rows_a_file=self.rows_a_file, cores=1) for part in parts), default=1)
        at_once = 1 + self.spark.sparkContext.defaultParallelism // tasks
        told = done = 0

        def tell(under_way: Iterable[tuple[str, Part]]) -> None:
            nonlocal told
            now = done + sum(rows_done(self.spark, group, part.rows) for group, part in under_way)
            if now > told:
                progress.advance(stage, now - told)
                told = now

        def fit(part: Part) -> None:
            sizes = [size for name, size in self.files.sizes(part.staging).items() if name.startswith(FILE)]
            if max(sizes, default=0) > MOST_FILE_BYTES:
                self.rows_a_file = max(1, part.rows * MOST_FILE_BYTES // sum(sizes))

        def write(part: Part) -> None:
            writer = frame_of(part).write.mode("overwrite").options(**_parquet_options(self.rows_a_file))
            writer.parquet(part.staging.uri)

        def name(part: Part) -> str:
            return f"{stage}: {name_of(part.staging)}"

        with closing(jobs_as_done(self.spark, parts, write, name, at_once=at_once, shown=tell)) as jobs:
            for part, job in jobs:
                job.result()
                done += part.rows
                tell(())
                fit(part)
                yield part

    def _nodes_of(self, table: ParquetTable, place: TablePlace) -> tuple[TablePlace, NodeTable] | None:
        """Return the nodes that proofs name by number, and where they are; ``None`` where proofs hold their nodes."""
        if not is_numbered(table.schema.names):
            return None
        inside = place.inside(NODES_FOLDER)
        found = inside if self.files.exists(inside) else place.beside(NODES_FOLDER)
        return found, NodeTable.of(self.columns(found, "the nodes of PROOFS"))


def verified_proofs(proofs: DataFrame, *, strict: bool = False, nodes: NodeTable | None = None) -> DataFrame:
    """Add verdicts to a table of proofs, see ``proof_tables``; raises ``InputColumns``.

    ``nodes`` are those that its ``numbers`` stand for.
    """
    zone = proofs.sparkSession.conf.get("spark.sql.session.timeZone")
    schema = verified_schema(to_arrow_schema(proofs.schema, timezone=zone))
    return proofs.mapInArrow(_verifier(proofs.sparkSession, nodes, strict=strict), from_arrow_schema(schema))


def verified_files(
    spark: SparkSession,
    shares: Sequence[list[Piece]],
    schema: pa.Schema,
    *,
    strict: bool = False,
    nodes: NodeTable | None = None,
) -> DataFrame:
    """Return what ``verified_proofs`` returns of files that tasks read themselves, one for each of ``shares``."""
    verify = _verifier(spark, nodes, strict=strict)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column("id").to_pylist())
        return verify(batch for number in numbers for batch in rows_of(shares[number], schema))

    tasks_by_number = spark.range(len(shares), numPartitions=len(shares))
    return tasks_by_number.mapInArrow(work, from_arrow_schema(verified_schema(schema)))


def _verifier(spark: SparkSession, nodes: NodeTable | None, *, strict: bool) -> Callable[[Batches], Batches]:
    """Return the work of a task: it verifies proofs, with ``nodes`` that all tasks of a machine share."""
    shared = None if nodes is None else spark.sparkContext.broadcast(nodes)

    def verify(batches: Batches) -> Batches:
        return verify_batches(batches, strict=strict, load_nodes=None if shared is None else lambda: shared.value)

    return verify


def _between(wanted: WantedProofs, first: int, last: int) -> DataFrame:
    """Return the requests with these ids; those without an id belong to the first range."""
    requests: DataFrame = wanted.requests
    found = F.col("id").between(first, last)
    return requests.where(found | F.col("id").isNull() if first == wanted.first_id else found)


def _parquet_options(rows_a_file: int) -> dict[str, str]:
    """Return how Spark writes Parquet: a column's distinct values once a file, the rest by zstd.

    Tasks move their files out of their attempts' folders themselves: the driver would do so one by one. What a task may
    leave twice shows when the rows of a part are counted.
    """
    return {
        "mapreduce.fileoutputcommitter.algorithm.version": "2",
        "compression": "zstd",
        "maxRecordsPerFile": str(rows_a_file),
        "parquet.dictionary.page.size": str(DICTIONARY_BYTES),
    }
