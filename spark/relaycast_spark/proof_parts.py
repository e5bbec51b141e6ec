"""Proofs in bulk, written one range of ids at a time: after a kill, the next process writes the missing ranges.

Law: a range is moved to its place after all of its rows were counted. When every range is there, their files are moved
into one table and the work folder is removed. Ranges that were made for another state or other requests are deleted.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from relaycast_ledger.file_lock import LOCK, alone_with
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
    store, shown = Store(spark), progress or Unseen()
    refuse_unshared(place, spark.sparkContext.master)
    remove_leftovers(place)
    with _work_folder(store, place) as work:
        _keep_terms(store, work, {"schema": SCHEMA_VERSION, **terms, **proofs.terms()})
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
        whole = work.inside("whole")
        _gather(store, list(parts), whole)
        put_in_place(store, whole, place)
        store.delete(work)


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


@contextmanager
def _work_folder(store: Store, place: TablePlace) -> Iterator[TablePlace]:
    """Give the folder that ranges are written in; where none is whole at the end, it goes again.

    Other processes of this machine are kept out of a folder of it: raises ``WorkFolderInUse``.
    """
    work = place.beside(f".{place.name}.parts")
    store.make_folder(work)
    try:
        with nullcontext() if work.is_uri else alone_with(work.path / LOCK, works_on=work.path):
            try:
                yield work
            except BaseException:
                with suppress(Exception):  # the JVM may be gone
                    if not any(name.startswith(RANGE) for name in store.names(work)):
                        store.delete(work)
                raise
    finally:
        if not work.is_uri:
            with suppress(OSError):  # not empty, or gone
                work.path.rmdir()


def _keep_terms(store: Store, work: TablePlace, terms: dict[str, object]) -> None:
    """Throw away what was made on other ``terms``, and write these down."""
    kept, text = work.inside(TERMS), json.dumps(terms, sort_keys=True).encode()
    if TERMS in store.names(work) and store.read(kept) == text:
        return
    for name in store.names(work):
        if name != LOCK:
            store.delete(work.inside(name))
    store.write(kept, text)


def _is_whole(spark: SparkSession, part: TablePlace, rows: int) -> bool:
    try:
        return rows_at(spark, part) == rows and Store(spark).exists(part)
    except (PySparkException, Py4JJavaError):  # a file of it is damaged
        return False


def _gather(store: Store, parts: list[TablePlace], whole: TablePlace) -> None:
    """Move the files of all parts into one folder."""
    store.delete(whole)
    store.make_folder(whole)
    for part in parts:
        for name in store.names(part):
            if name.startswith("part-"):
                store.move(part.inside(name), whole.inside(f"{part.name}-{name}"))
    store.write(whole.inside("_SUCCESS"), b"")
