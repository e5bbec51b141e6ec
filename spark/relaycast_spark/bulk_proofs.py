"""Proofs in bulk as Spark's tables: made for a trie and verified, and written all or not at all.

Law: proofs are written one range of ids at a time. A range is moved to its place after all of its rows were counted. It
counts once its files are noted in it, with their digests on this machine and their sizes elsewhere. After a kill, the
next process writes the ranges that are missing or whose files differ. When every range is there, their files are moved
into one table and the work folder is emptied. Ranges that were made for another state or other requests are deleted.
The caller keeps other writers out, see ``alone_at``.
"""

import glob
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b, file_digest
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from relaycast_ledger.segments.simulated import Progress, Unseen
from relaycast_ledger.staged_file import LOCK, sync, sync_all
from relaycast_spark.exceptions import InputColumns, RowsLost
from relaycast_spark.jobs import TASKS_A_CORE, named, spread, watched
from relaycast_spark.proof_tables import (
    FORMS,
    NODES_FOLDER,
    NUMBERS,
    Form,
    NodeTable,
    TrieTable,
    is_numbered,
    load_trie,
    node_table,
    numbers_used,
    prove_random,
    prove_requests,
    verified_schema,
    verify_batches,
)
from relaycast_spark.table_places import ROWS_A_FILE, Store, TablePlace, read_parquet, refuse_unshared

DICTIONARY_BYTES = 1 << 25
"""Bytes of distinct values that a file keeps once for each column: proofs have most of their nodes in common."""

STAGING, OLD = "staging", "old"
"""Suffixes of a table that is not whole yet, and of the table that it replaces."""

SCHEMA_VERSION = 2

IDS_A_RANGE = 1 << 18
"""Ids whose proofs are written at a time: a kill costs half a minute's work of two cores."""

VERDICTS_WIDER = 4
"""Factor by which ranges are wider where verdicts alone are written."""

MOST_RANGES = 1 << 8
"""Ranges are wider where there are more ids, or ids far apart."""

STAGE = "proved"
RANGE = "ids-"
"""Name prefix of ranges; their first and last id follow."""

WHOLE = "whole"
"""Where the files of all ranges are gathered: each is named by its range and its name there."""

FILE = "part-"
"""Name prefix of Spark's files with rows."""

TERMS = "terms.json"

NOTED = "_files.json"
"""The files of a range, in its folder."""


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
        """Return what the rows depend on, apart from the trie."""
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
        return ids.mapInArrow(prove, from_arrow_schema(FORMS[form]))


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
        """Return what the rows depend on, apart from the trie: the requests."""
        return {"requests": [self.count, self.first_id, self.last_id, self._digest], "form": self.form}

    def rows_between(self, first: int, last: int) -> int:
        """Return how many requests have these ids; those without an id belong to the first range."""
        with named(self._requests.sparkSession, f"requests counted: {first}-{last}"):
            return self._between(first, last).count()

    def between(self, first: int, last: int) -> DataFrame:
        """Return the proofs for the requests with these ids."""
        shared, form = self._shared, self.form

        def prove(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return prove_requests(batches, lambda: shared.value, form=form)

        return spread(self._between(first, last)).mapInArrow(prove, from_arrow_schema(FORMS[form]))

    def _between(self, first: int, last: int) -> DataFrame:
        wanted = F.col("id").between(first, last)
        return self._requests.where(wanted | F.col("id").isNull() if first == self.first_id else wanted)


ProofsById = RandomProofs | RequestedProofs


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
    """Return the nodes that proofs read at ``place`` name by number; ``None`` where proofs hold their nodes.

    Raises ``PlaceRefused`` and what else ``read_parquet`` raises, and ``InputColumns``.
    """
    if not is_numbered(proofs.columns):
        return None
    inside = place.inside(NODES_FOLDER)
    found = inside if Store(proofs.sparkSession).exists(inside) else place.beside(NODES_FOLDER)
    return NodeTable.of(read_parquet(proofs.sparkSession, found, "the nodes of PROOFS").toArrow())


def verdicts_at(spark: SparkSession, place: TablePlace) -> dict[str, Any]:
    """Return the number of proofs with each verdict, the most frequent first, and the bytes of all nodes."""
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

    ``progress`` has begun with the ``stage``. The table that it replaces is removed then, the leftovers of a killed run
    are removed now. Raises ``RowsLost``.
    """
    spark = frame.sparkSession
    store = Store(spark)
    refuse_unshared(place, spark.sparkContext.master)
    remove_leftovers(place)
    staging = place.beside(f".{place.name}.{os.getpid()}.{STAGING}")
    writer = frame.write.mode("overwrite").options(**_parquet_options(rows_a_file))
    shown, what = progress or Unseen(), f"{stage}: {place.name}"
    try:
        watched(spark, lambda: writer.parquet(staging.uri), what=what, stage=stage, rows=rows, progress=shown)
        with named(spark, f"rows counted: {place.name}"):
            found = _rows_at(spark, staging)
        if found != rows:
            raise RowsLost(place.text, found, rows)
        put_in_place(store, staging, place)
    finally:
        store.delete(staging)


def _parquet_options(rows_a_file: int) -> dict[str, str]:
    """Return how Spark writes Parquet: a column's distinct values once a file, the rest by zstd."""
    return {
        "compression": "zstd",
        "maxRecordsPerFile": str(rows_a_file),
        "parquet.dictionary.page.size": str(DICTIONARY_BYTES),
    }


def _rows_at(spark: SparkSession, place: TablePlace) -> int:
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
    for left in () if place.is_uri else place.path.parent.glob(f".{glob.escape(place.name)}.*.*"):
        beside, pid, kind = left.name.rsplit(".", 2)
        is_ours = beside == f".{place.name}" and kind in {STAGING, OLD} and pid.isdecimal()
        if not is_ours or psutil.pid_exists(int(pid)):
            continue
        if kind == OLD and not place.path.exists():
            left.rename(place.path)
        else:
            shutil.rmtree(left, ignore_errors=True)


def write_by_ranges(
    spark: SparkSession,
    proofs: ProofsById,
    place: TablePlace,
    *,
    terms: dict[str, object],
    rows_a_file: int = ROWS_A_FILE,
    progress: Progress | None = None,
) -> None:
    """Write all proofs to ``place``; ``terms`` say what they depend on apart from the ids. Raises ``RowsLost``.

    Proofs that name their nodes by number have the nodes in a folder inside, which Spark does not take for rows.
    """
    store, work, shown = Store(spark), place.work, progress or Unseen()
    refuse_unshared(place, spark.sparkContext.master)
    remove_leftovers(place)
    store.make_folder(work)
    try:
        _keep_terms(store, work, {"schema": SCHEMA_VERSION, "rows_a_file": rows_a_file, **terms, **proofs.terms()})
        _part_again(store, work)
        wider = VERDICTS_WIDER if proofs.form == "verdicts" else 1
        parts = {
            work.inside(f"{RANGE}{first}-{last}"): (first, last, proofs.rows_between(first, last))
            for first, last in ranges(proofs.first_id, proofs.last_id, wider=wider)
        }
        done = {part for part in parts if _is_whole(store, part)}
        shown.begin(STAGE, proofs.count, done=sum(parts[part][2] for part in done), unit="proofs")
        for part in parts.keys() - done:
            store.delete(part)
        for part, (first, last, rows) in parts.items():
            if part not in done:
                frame = proofs.between(first, last)
                write_table(frame, part, stage=STAGE, rows=rows, rows_a_file=rows_a_file, progress=shown)
                store.write(part.inside(NOTED), _noted(store, part))
        whole = work.inside(WHOLE)
        _gather(store, list(parts), whole)
        if proofs.form == "numbers":
            _write_nodes(spark, proofs.table, whole)
        put_in_place(store, whole, place)
        _clear(store, work)
    except BaseException:
        with suppress(Exception):  # the JVM may be gone
            if not any(name.startswith(RANGE) for name in store.names(work)):
                _clear(store, work)
        raise


def ranges(first_id: int, last_id: int, *, wider: int = 1) -> Iterator[tuple[int, int]]:
    """Yield the ranges that ids are worked on in, in order; one where there are none."""
    width = max(IDS_A_RANGE * wider, -(-(last_id - first_id + 1) // MOST_RANGES))
    for first in range(first_id, max(last_id, first_id) + 1, width):
        yield first, min(first + width - 1, last_id)


def _clear(store: Store, work: TablePlace) -> None:
    """Remove all of the work folder but its lock; one without a lock is removed."""
    if work.is_uri:
        store.delete(work)
        return
    for path in work.path.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _keep_terms(store: Store, work: TablePlace, terms: dict[str, object]) -> None:
    """Remove what was made on other ``terms``, and write these down."""
    kept, text = work.inside(TERMS), json.dumps(terms, sort_keys=True).encode()
    if store.read(kept) == text:
        return
    _clear(store, work)
    store.make_folder(work)
    store.write(kept, text)


def _is_whole(store: Store, part: TablePlace) -> bool:
    """Return whether a range has the files that were noted, unchanged."""
    noted = store.read(part.inside(NOTED))
    return noted is not None and noted == _noted(store, part)


def _noted(store: Store, part: TablePlace) -> bytes:
    """Return the size of every file with rows of a range, and on this machine its digest, as JSON."""
    found: dict[str, list[int | str]] = {
        name: [size] for name, size in store.sizes(part).items() if name.startswith(FILE)
    }
    for name, about in found.items() if not part.is_uri else ():
        with (part.path / name).open("rb") as stream:
            about.append(file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest())
    return json.dumps(found, sort_keys=True).encode()


def _write_nodes(spark: SparkSession, table: TrieTable, whole: TablePlace) -> None:
    """Write the nodes that the proofs name by number into a folder inside."""
    with named(spark, "numbers of nodes gathered"):
        numbers = spark.read.parquet(whole.pattern).select(NUMBERS)
        used = numbers.mapInArrow(numbers_used, "number bigint").toArrow().column("number")
    _, trie = load_trie(lambda: table)
    nodes = spark.createDataFrame(node_table(trie, np.unique(used.to_numpy())))
    with named(spark, "nodes written"):
        nodes.coalesce(1).write.options(**_parquet_options(ROWS_A_FILE)).parquet(whole.inside(NODES_FOLDER).uri)


def _part_again(store: Store, work: TablePlace) -> None:
    """Move the files that a process gathered before it was killed back to their ranges."""
    gathered = work.inside(WHOLE)
    for name in store.names(gathered) if WHOLE in store.names(work) else ():
        part, found, file = name.partition(f"-{FILE}")
        if found:
            store.make_folder(work.inside(part))
            store.move(gathered.inside(name), work.inside(part).inside(f"{FILE}{file}"))


def _gather(store: Store, parts: list[TablePlace], whole: TablePlace) -> None:
    """Move the files of all parts into one folder."""
    store.delete(whole)
    store.make_folder(whole)
    for part in parts:
        for name in store.names(part):
            if name.startswith(FILE):
                store.move(part.inside(name), whole.inside(f"{part.name}-{name}"))
    store.write(whole.inside("_SUCCESS"), b"")
