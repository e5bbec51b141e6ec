"""Proofs in bulk, written one range of ids at a time: after a kill, the next process writes the missing ranges.

Law: a range is moved to its place after all of its rows were counted. When every range is there, their files are moved
into one table and the work folder is emptied. Ranges that were made for another state or other requests are deleted.
The caller keeps other writers out, see ``alone_at``.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from relaycast_ledger.file_lock import LOCK
from relaycast_ledger.progress import Progress, Unseen
from relaycast_spark.proof_jobs import put_in_place, remove_leftovers, rows_at, write_table
from relaycast_spark.table_places import Store, TablePlace, refuse_unshared

SCHEMA_VERSION = 1

IDS_A_RANGE = 1 << 18
"""Ids whose proofs are written at a time: what a kill costs is half a minute's work of two cores."""

MOST_RANGES = 1 << 8
"""Ranges are wider where there are more ids, or ids far apart."""

STAGE = "proved"
RANGE = "ids-"
"""What names of ranges begin with; their first and last id follow."""

WHOLE = "whole"
"""Where the files of all ranges are gathered: each is named by its range and its name there."""

FILE = "part-"
"""What Spark's names of files with rows begin with."""

TERMS = "terms.json"


class ProofsById(Protocol):
    """Proofs that can be made for a range of ids at a time, ``count`` of them in all."""

    count: int
    first_id: int
    last_id: int

    def terms(self) -> dict[str, object]: ...
    def rows_between(self, first: int, last: int) -> int: ...
    def between(self, first: int, last: int) -> DataFrame: ...


def write_by_ranges(
    spark: SparkSession,
    proofs: ProofsById,
    place: TablePlace,
    *,
    terms: dict[str, object],
    progress: Progress | None = None,
) -> None:
    """Write all proofs to ``place``; ``terms`` say what they depend on beside the ids. Raises ``RowsLost``."""
    store, work, shown = Store(spark), place.work, progress or Unseen()
    refuse_unshared(place, spark.sparkContext.master)
    remove_leftovers(place)
    store.make_folder(work)
    try:
        _keep_terms(store, work, {"schema": SCHEMA_VERSION, **terms, **proofs.terms()})
        _part_again(store, work)
        parts = {
            work.inside(f"{RANGE}{first}-{last}"): (first, last, proofs.rows_between(first, last))
            for first, last in ranges(proofs.first_id, proofs.last_id)
        }
        done = [part for part, (_, _, rows) in parts.items() if _is_whole(spark, part, rows)]
        shown.begin(STAGE, proofs.count, done=sum(parts[part][2] for part in done), unit="proofs")
        for part in parts.keys() - set(done):
            store.delete(part)
        for part, (first, last, rows) in parts.items():
            if part not in done:
                frame = proofs.between(first, last)
                write_table(frame, part, stage=STAGE, rows=rows, progress=_Begun(shown))
        whole = work.inside(WHOLE)
        _gather(store, list(parts), whole)
        put_in_place(store, whole, place)
        _clear(store, work)
    except BaseException:
        with suppress(Exception):  # the JVM may be gone
            if not any(name.startswith(RANGE) for name in store.names(work)):
                _clear(store, work)
        raise


def ranges(first_id: int, last_id: int) -> Iterator[tuple[int, int]]:
    """Give the ranges that ids are worked on in, in order; one where there are none."""
    width = max(IDS_A_RANGE, -(-(last_id - first_id + 1) // MOST_RANGES))
    for first in range(first_id, max(last_id, first_id) + 1, width):
        yield first, min(first + width - 1, last_id)


class _Begun:
    """Progress of a stage that has begun before."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        """Leave the stage as it is."""

    def advance(self, stage: str, rows: int) -> None:
        self._shown.advance(stage, rows)


def _clear(store: Store, work: TablePlace) -> None:
    """Remove what is in the work folder but for its lock; one without a lock goes, too."""
    if work.is_uri:
        store.delete(work)
        return
    for path in work.path.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _keep_terms(store: Store, work: TablePlace, terms: dict[str, object]) -> None:
    """Throw away what was made on other ``terms``, and write these down."""
    kept, text = work.inside(TERMS), json.dumps(terms, sort_keys=True).encode()
    if TERMS in store.names(work) and store.read(kept) == text:
        return
    _clear(store, work)
    store.make_folder(work)
    store.write(kept, text)


def _is_whole(spark: SparkSession, part: TablePlace, rows: int) -> bool:
    try:
        return rows_at(spark, part) == rows and Store(spark).exists(part)
    except (PySparkException, Py4JJavaError):  # a file of it is damaged
        return False


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
