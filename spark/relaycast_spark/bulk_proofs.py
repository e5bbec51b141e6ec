"""Proofs in bulk as Spark's tables: the engine of ``bulk_work`` that makes, verifies and writes them in tasks."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from relaycast_ledger.bulk_work import DICTIONARY_BYTES, PROVED, VERIFIED, Part, WantedProofs, name_of, requested_proofs
from relaycast_ledger.exceptions import InputColumns
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
    total_requests,
    verified_schema,
    verify_batches,
)
from relaycast_ledger.segments.simulated import Progress
from relaycast_ledger.table_places import ROWS_A_FILE, TablePlace
from relaycast_spark.jobs import TASKS_A_CORE, named, spread, watched
from relaycast_spark.store import Store, read_parquet


@dataclass(slots=True)
class SparkEngine:
    """Works on tables of proofs in tasks of Spark's; ``rows_a_file`` bounds the rows of a Parquet file."""

    spark: SparkSession
    rows_a_file: int = ROWS_A_FILE
    files: Store = field(init=False)

    def __post_init__(self) -> None:
        self.files = Store(self.spark)

    def columns(self, place: TablePlace, option: str) -> pa.Table:
        """Return a whole table."""
        table = read_parquet(self.spark, place, option)
        with named(self.spark, f"table read: {place.name}"):
            return table.toArrow()

    def requested(self, place: TablePlace, form: Form) -> WantedProofs:
        """Return the proofs that a table of ``id`` and ``keys`` asks for; raises ``InputColumns``."""
        requests = read_parquet(self.spark, place, "--requests")
        if not {"id", "keys"} <= set(requests.columns):
            raise InputColumns("the requests", ", ".join(requests.columns), "id and keys")
        requests = requests.select(F.col("id").cast("bigint"), "keys")
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

        for part in parts:
            if wanted.requests is None:
                tasks = min(part.rows, TASKS_A_CORE * self.spark.sparkContext.defaultParallelism)
                rows = self.spark.range(part.first, part.last + 1, numPartitions=tasks)
            else:
                rows = spread(_between(wanted, part.first, part.last))
            frame = rows.mapInArrow(prove, schema)
            self._write(frame, part.staging, PROVED, part.rows, progress)
            yield part

    def write_nodes(self, table: TrieTable, whole: TablePlace) -> None:
        """Write the nodes that proofs name by number into a folder inside, which Spark does not take for rows."""
        with named(self.spark, "numbers of nodes gathered"):
            numbers = self.spark.read.parquet(whole.pattern).select(NUMBERS)
            used = numbers.mapInArrow(numbers_used, "number bigint").toArrow().column("number")
        _, trie = load_trie(lambda: table)
        nodes = self.spark.createDataFrame(node_table(trie, np.unique(used.to_numpy())))
        with named(self.spark, "nodes written"):
            nodes.coalesce(1).write.options(**_parquet_options(ROWS_A_FILE)).parquet(whole.inside(NODES_FOLDER).uri)

    def verified(self, place: TablePlace, staging: TablePlace, *, strict: bool, progress: Progress) -> int:
        """Write the verdicts on a table of proofs to ``staging``; return how many there are."""
        proofs = read_parquet(self.spark, place, "PROOFS")
        with named(self.spark, f"proofs counted: {place.name}"):
            rows = proofs.count()
        nodes = self._nodes_of(proofs, place)
        verdicts = verified_proofs(spread(proofs), strict=strict, nodes=nodes)
        progress.begin(VERIFIED, rows, unit="proofs")
        self._write(verdicts, staging, VERIFIED, rows, progress)
        return rows

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

    def _write(self, frame: DataFrame, staging: TablePlace, stage: str, rows: int, progress: Progress) -> None:
        writer = frame.write.mode("overwrite").options(**_parquet_options(self.rows_a_file))
        what = f"{stage}: {name_of(staging)}"
        watched(self.spark, lambda: writer.parquet(staging.uri), what=what, stage=stage, rows=rows, progress=progress)

    def _nodes_of(self, proofs: DataFrame, place: TablePlace) -> NodeTable | None:
        """Return the nodes that proofs read at ``place`` name by number; ``None`` where proofs hold their nodes."""
        if not is_numbered(proofs.columns):
            return None
        inside = place.inside(NODES_FOLDER)
        found = inside if self.files.exists(inside) else place.beside(NODES_FOLDER)
        return NodeTable.of(self.columns(found, "the nodes of PROOFS"))


def verified_proofs(proofs: DataFrame, *, strict: bool = False, nodes: NodeTable | None = None) -> DataFrame:
    """Add verdicts to a table of proofs, see ``proof_tables``; raises ``InputColumns``.

    ``nodes`` are those that its ``numbers`` stand for.
    """
    zone = proofs.sparkSession.conf.get("spark.sql.session.timeZone")
    schema = verified_schema(to_arrow_schema(proofs.schema, timezone=zone))
    shared = None if nodes is None else proofs.sparkSession.sparkContext.broadcast(nodes)

    def verify(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return verify_batches(batches, strict=strict, load_nodes=None if shared is None else lambda: shared.value)

    return proofs.mapInArrow(verify, from_arrow_schema(schema))


def _between(wanted: WantedProofs, first: int, last: int) -> DataFrame:
    """Return the requests with these ids; those without an id belong to the first range."""
    requests: DataFrame = wanted.requests
    found = F.col("id").between(first, last)
    return requests.where(found | F.col("id").isNull() if first == wanted.first_id else found)


def _parquet_options(rows_a_file: int) -> dict[str, str]:
    """Return how Spark writes Parquet: a column's distinct values once a file, the rest by zstd."""
    return {
        "compression": "zstd",
        "maxRecordsPerFile": str(rows_a_file),
        "parquet.dictionary.page.size": str(DICTIONARY_BYTES),
    }
