"""Proofs in bulk, written one range of ids at a time: after a kill, the next process writes the missing ranges.

Law: a range is moved to its place after all of its rows were counted. It counts once its files are noted in it, with
their digests on this machine and their sizes elsewhere. A range whose files are other ones is made again. When every
range is there, their files are moved into one table and the work folder is emptied. Ranges that were made for another
state or other requests are deleted. The caller keeps other writers out, see ``alone_at``.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b, file_digest
from typing import Protocol

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from relaycast_ledger.segments.simulated import Progress, Unseen
from relaycast_ledger.staged_file import LOCK
from relaycast_spark.node_tables import NODES_FOLDER, NUMBERS, node_table, numbers_used
from relaycast_spark.proof_jobs import ROWS_A_FILE, named, parquet_options, put_in_place, remove_leftovers, write_table
from relaycast_spark.proof_tables import Form, TrieTable, load_trie
from relaycast_spark.table_places import Store, TablePlace, refuse_unshared

SCHEMA_VERSION = 2

IDS_A_RANGE = 1 << 18
"""Ids whose proofs are written at a time: what a kill costs is half a minute's work of two cores."""

VERDICTS_WIDER = 4
"""How many times as many ids a range has whose proofs are not kept: nothing but their verdicts is written."""

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

NOTED = "_files.json"
"""What a range's files are, in its folder."""


class ProofsById(Protocol):
    """Proofs of a trie that can be made for a range of ids at a time, ``count`` of them in all, in one ``form``."""

    table: TrieTable
    form: Form
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
    rows_a_file: int = ROWS_A_FILE,
    progress: Progress | None = None,
) -> None:
    """Write all proofs to ``place``; ``terms`` say what they depend on beside the ids. Raises ``RowsLost``.

    Proofs that say their nodes by number have the nodes in a folder inside, which Spark does not take for rows.
    """
    store, work, shown = Store(spark), place.work, progress or Unseen()
    refuse_unshared(place, spark.sparkContext.master)
    remove_leftovers(place)
    store.make_folder(work)
    try:
        _keep_terms(store, work, {"schema": SCHEMA_VERSION, "rows_a_file": rows_a_file, **terms, **proofs.terms()})
        _part_again(store, work)
        parts = {
            work.inside(f"{RANGE}{first}-{last}"): (first, last, proofs.rows_between(first, last))
            for first, last in ranges(
                proofs.first_id, proofs.last_id, wider=VERDICTS_WIDER if proofs.form == "verdicts" else 1
            )
        }
        done = [part for part in parts if _is_whole(store, part)]
        shown.begin(STAGE, proofs.count, done=sum(parts[part][2] for part in done), unit="proofs")
        for part in parts.keys() - set(done):
            store.delete(part)
        for part, (first, last, rows) in parts.items():
            if part not in done:
                frame = proofs.between(first, last)
                write_table(frame, part, stage=STAGE, rows=rows, rows_a_file=rows_a_file, progress=_Begun(shown))
                _note(store, part)
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
    """Give the ranges that ids are worked on in, in order; one where there are none."""
    width = max(IDS_A_RANGE * wider, -(-(last_id - first_id + 1) // MOST_RANGES))
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
    if store.read(kept) == text:
        return
    _clear(store, work)
    store.make_folder(work)
    store.write(kept, text)


def _note(store: Store, part: TablePlace) -> None:
    """Write down which files a range has."""
    store.write(part.inside(NOTED), _noted(store, part))


def _is_whole(store: Store, part: TablePlace) -> bool:
    """Return whether a range has the files that were noted, as they were."""
    noted = store.read(part.inside(NOTED))
    return noted is not None and noted == _noted(store, part)


def _noted(store: Store, part: TablePlace) -> bytes:
    return json.dumps(_files(store, part), sort_keys=True).encode()


def _files(store: Store, part: TablePlace) -> dict[str, list[int | str]]:
    """Return the size of every file with rows, and on this machine its digest."""
    found: dict[str, list[int | str]] = {name: [size] for name, size in store.sizes(part).items() if _has_rows(name)}
    for name, about in found.items() if not part.is_uri else ():
        with (part.path / name).open("rb") as stream:
            about.append(file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest())
    return found


def _has_rows(name: str) -> bool:
    return name.startswith(FILE)


def _write_nodes(spark: SparkSession, table: TrieTable, whole: TablePlace) -> None:
    """Write the nodes whose numbers stand in the proofs into a folder beside them."""
    with named(spark, "numbers of nodes gathered"):
        numbers = spark.read.parquet(whole.pattern).select(NUMBERS)
        used = numbers.mapInArrow(numbers_used, "number bigint").toArrow().column("number")
    _, trie = load_trie(lambda: table)
    nodes = spark.createDataFrame(node_table(trie, np.unique(used.to_numpy())))
    with named(spark, "nodes written"):
        nodes.coalesce(1).write.options(**parquet_options(ROWS_A_FILE)).parquet(whole.inside(NODES_FOLDER).uri)


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
            if _has_rows(name):
                store.move(part.inside(name), whole.inside(f"{part.name}-{name}"))
    store.write(whole.inside("_SUCCESS"), b"")
