"""Proofs in bulk as Spark's tables: made for a trie, a range of ids at a time, and verified from anywhere."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from relaycast_spark.exceptions import InputColumns
from relaycast_spark.node_tables import NODES_FOLDER, NodeTable
from relaycast_spark.proof_jobs import TASKS_A_CORE, named, spread
from relaycast_spark.proof_tables import (
    FORMS,
    Form,
    TrieTable,
    is_numbered,
    prove_random,
    prove_requests,
    verified_schema,
    verify_batches,
)
from relaycast_spark.table_places import Store, TablePlace, read_parquet


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
        form: Form = "nodes",
    ) -> None:
        self.count, self.table, self.form = count, table, form
        self.first_id, self.last_id = 0, count - 1
        self._spark, self._shared = spark, spark.sparkContext.broadcast(table)
        self._drawn: dict[str, int] = {"keys_a_proof": keys_a_proof, "seed": seed, "absent_percent": absent_percent}

    def terms(self) -> dict[str, object]:
        """Return what the rows depend on, beside the trie."""
        return {"random": self._drawn, "form": self.form}

    def rows_between(self, first: int, last: int) -> int:
        """Return how many proofs have these ids."""
        return last - first + 1

    def between(self, first: int, last: int) -> DataFrame:
        """Return the proofs with these ids."""
        shared, drawn, form = self._shared, self._drawn, self.form

        def prove(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return prove_random(batches, lambda: shared.value, form=form, **drawn)

        tasks = min(last - first + 1, TASKS_A_CORE * self._spark.sparkContext.defaultParallelism)
        ids = self._spark.range(first, last + 1, numPartitions=tasks)
        return ids.mapInArrow(prove, from_arrow_schema(FORMS[form].schema))


class RequestedProofs:
    """A proof for every row of ``requests``: ``id``, and ``keys`` as a list of bytes; or ``InputColumns``."""

    def __init__(self, requests: DataFrame, table: TrieTable, *, form: Form = "nodes") -> None:
        if not {"id", "keys"} <= set(requests.columns):
            raise InputColumns("the requests", ", ".join(requests.columns), "id and keys")
        self.table, self.form = table, form
        self._requests = requests.select(F.col("id").cast("bigint"), "keys")
        self._shared = requests.sparkSession.sparkContext.broadcast(table)
        digest = F.sum(F.xxhash64("id", "keys").cast("decimal(38,0)"))  # whatever the order of the rows
        with named(requests.sparkSession, "requests counted"):
            rows = self._requests.agg(F.count(F.lit(1)), F.min("id"), F.max("id"), digest).collect()[0]
        self.count: int = rows[0]
        self.first_id: int = rows[1] or 0
        self.last_id: int = rows[2] or 0
        self._digest = str(rows[3])

    def terms(self) -> dict[str, object]:
        """Return what the rows depend on, beside the trie: which requests there are."""
        return {"requests": [self.count, self.first_id, self.last_id, self._digest], "form": self.form}

    def rows_between(self, first: int, last: int) -> int:
        """Return how many requests have these ids; what has none comes first."""
        with named(self._requests.sparkSession, f"requests counted: {first}-{last}"):
            return self._between(first, last).count()

    def between(self, first: int, last: int) -> DataFrame:
        """Return the proofs for the requests with these ids."""
        shared, form = self._shared, self.form

        def prove(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return prove_requests(batches, lambda: shared.value, form=form)

        return spread(self._between(first, last)).mapInArrow(prove, from_arrow_schema(FORMS[form].schema))

    def _between(self, first: int, last: int) -> DataFrame:
        wanted = F.col("id").between(first, last)
        return self._requests.where(wanted | F.col("id").isNull() if first == self.first_id else wanted)


def verified_proofs(proofs: DataFrame, *, strict: bool = False, nodes: NodeTable | None = None) -> DataFrame:
    """Add verdicts to a table of proofs, see ``proof_tables``; raises ``InputColumns``.

    ``nodes`` are those that its ``numbers`` stand for.
    """
    schema = verified_schema(to_arrow_schema(proofs.schema))

    shared = None if nodes is None else proofs.sparkSession.sparkContext.broadcast(nodes)

    def verify(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return verify_batches(batches, strict=strict, load_nodes=None if shared is None else lambda: shared.value)

    return proofs.mapInArrow(verify, from_arrow_schema(schema))


def nodes_of(proofs: DataFrame, place: TablePlace) -> NodeTable | None:
    """Return the nodes that proofs read at ``place`` say by number; nothing where they have them.

    Raises ``PlaceRefused`` and what else ``read_parquet`` raises, and ``InputColumns``.
    """
    if not is_numbered(proofs.columns):
        return None
    inside = place.inside(NODES_FOLDER)
    found = inside if Store(proofs.sparkSession).exists(inside) else place.beside(NODES_FOLDER)
    return NodeTable.of(read_parquet(proofs.sparkSession, found, "the nodes of PROOFS").toArrow())
