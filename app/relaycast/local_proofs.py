"""Proofs in bulk by processes of this machine: the engine of ``bulk_work`` that needs no Spark.

Law: rows are those that Spark's tasks write, made by the same generators, in columns of the same types. A task is a
range of ids, or rows of a table, and its files have its number: done again, it writes the same files. This process
hands out tasks, counts rows and moves tables to their places; it holds no proofs.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import lru_cache, partial
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import structs

from relaycast.simulation.worker_processes import worked
from relaycast_ledger.bulk_work import (
    DICTIONARY_BYTES,
    FILE,
    PROVED,
    SUCCESS,
    VERIFIED,
    GivenProofs,
    Part,
    WantedProofs,
    given_proofs,
    requested_proofs,
    tasks_of,
)
from relaycast_ledger.parquet_files import (
    ROWS_A_BATCH,
    Batches,
    ParquetTable,
    Piece,
    local_footers,
    rows_of,
    shared_out,
)
from relaycast_ledger.proof_tables import (
    FORMS,
    NODE_TABLE,
    NODES,
    NODES_FOLDER,
    NUMBERS,
    REQUEST_TOTALS,
    REQUESTED,
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
from relaycast_ledger.table_places import ROWS_A_FILE, LocalFiles, TablePlace
from relaycast_spark.jobs import TASKS_A_CORE
from relaycast_trie import StateVersion

GROUP_BYTES = 1 << 27
"""Bytes of rows after which a Parquet file begins its next group of rows; each distinct value counts once."""

ZSTD_LEVEL = 3
"""As Spark compresses."""

TRIE, REQUESTS = "trie.arrow", "requests-"
"""Files of the work folder: keys and values for the workers, and the requests of each range."""


class Task(msgspec.Struct, frozen=True):
    """One call of a worker: it writes these pieces into ``folder``, in files with its ``number``."""

    folder: str
    number: int
    pieces: list[Piece]


class LocalEngine:
    """Works on tables of proofs in ``workers`` processes; ``rows_a_file`` bounds the rows of a Parquet file.

    What workers share is in the folder ``work``, from which the caller removes it.
    """

    def __init__(self, work: Path, *, workers: int, rows_a_file: int = ROWS_A_FILE) -> None:
        self.files, self.rows_a_file = LocalFiles(), rows_a_file
        self._work, self._workers = work, workers

    def columns(self, place: TablePlace, option: str) -> pa.Table:
        """Return a whole table."""
        return ParquetTable.of(local_footers(place, option)).whole()

    def requested(self, place: TablePlace, form: Form) -> WantedProofs:
        """Return the proofs that a table of ``id`` and ``keys`` asks for; raises ``InputColumns``."""
        table = request_table(local_footers(place, "--requests"))
        totals = pa.Table.from_batches(total_requests(rows_of(table.pieces(), table.schema)), REQUEST_TOTALS)
        return requested_proofs(totals, table, form=form)

    def rows_between(self, wanted: WantedProofs, ranges: Sequence[tuple[int, int]]) -> Sequence[int]:
        """Part the requests by range, in files of the work folder, and return how many each has.

        Those without an id belong to the first range.
        """
        table: ParquetTable = wanted.requests
        sizes, starts = [0] * len(ranges), np.array([first for first, _ in ranges])
        with ExitStack() as opened:
            files = [opened.enter_context(pa.OSFile(self._requests_of(first), "wb")) for first, _ in ranges]
            writers = [opened.enter_context(pa.ipc.new_file(file, REQUESTED)) for file in files]
            for batch in rows_of(table.pieces(), table.schema):
                rows = batch.cast(REQUESTED)
                ids = pc.fill_null(rows.column("id"), wanted.first_id).to_numpy()
                owners = np.searchsorted(starts, ids, side="right") - 1
                for owner in np.unique(owners):
                    part = rows.filter(pa.array(owners == owner))
                    writers[owner].write_batch(part)
                    sizes[owner] += len(part)
        return sizes

    def proved(
        self, wanted: WantedProofs, table: TrieTable, parts: Sequence[Part], progress: Progress
    ) -> Generator[Part]:
        """Write the proofs of each part to its staging place, and yield the part once its rows are there."""
        trie = self._work / TRIE
        _keep_table(table, trie)
        share = -(-self._workers // max(1, len(parts)))
        shares = [[[piece] for piece in self._pieces_of(wanted, part, share)] for part in parts]
        schema = FORMS[wanted.form]
        prove = partial(prove_task, trie=str(trie), make=wanted.prove, schema=schema, rows_a_file=self.rows_a_file)
        return self._in_parts(prove, parts, shares, PROVED, progress)

    def write_nodes(self, table: TrieTable, whole: TablePlace) -> None:
        """Write the nodes that proofs name by number into a folder inside, which is not taken for rows."""
        (used,) = numbers_used(_columns_of(whole, NUMBERS))
        _, trie = load_trie(lambda: table)
        nodes = node_table(trie, used.column("number").to_numpy())
        folder = whole.path / NODES_FOLDER
        folder.mkdir()
        write_files(iter(nodes.to_batches()), folder, 0, NODE_TABLE, rows_a_file=ROWS_A_FILE)
        (folder / SUCCESS).touch()

    def given(self, place: TablePlace) -> GivenProofs:
        """Return a table of proofs to be verified, in groups of rows."""
        table = proof_table(local_footers(place, "PROOFS"))
        nodes = self._nodes_of(table.schema, place)
        pieces = list(table.pieces())
        stamps = self.files.stamps(place) | (self.files.stamps(TablePlace(nodes)) if nodes else {})
        return given_proofs(stamps, [piece.end for piece in pieces], (table.schema, pieces, nodes))

    def verified(
        self, given: GivenProofs, parts: Sequence[Part], *, strict: bool, progress: Progress
    ) -> Generator[Part]:
        """Write the verdicts on each part to its staging place, and yield the part once its rows are there."""
        schema, pieces, nodes = given.pieces
        verify = partial(verify_task, schema=schema, nodes=nodes, strict=strict, rows_a_file=self.rows_a_file)
        tasks = -(-TASKS_A_CORE * self._workers // max(1, len(parts)))
        shares = [
            list(shared_out(pieces[part.first : part.last + 1], -(-part.rows // tasks))) or [[]] for part in parts
        ]
        return self._in_parts(verify, parts, shares, VERIFIED, progress)

    def rows_at(self, staging: TablePlace) -> int:
        """Return the number of rows in the files at ``staging``; 0 if there is no file."""
        return sum(pq.read_metadata(file).num_rows for file in staging.path.glob(f"{FILE}*"))

    def verdicts_at(self, place: TablePlace) -> tuple[dict[str, int], int]:
        """Return how many proofs have each verdict, and the bytes of all nodes."""
        counts, proof_bytes = Counter[str](), 0
        for batch in _columns_of(place, "verdict", "proof_bytes"):
            for it in pc.value_counts(batch.column("verdict")).to_pylist():
                counts[it["values"]] += it["counts"]
            proof_bytes += pc.sum(batch.column("proof_bytes")).as_py() or 0
        return dict(counts), proof_bytes

    def _in_parts(
        self,
        work: Callable[[bytes], int],
        parts: Sequence[Part],
        shares: Sequence[Sequence[list[Piece]]],
        stage: str,
        progress: Progress,
    ) -> Generator[Part]:
        """Do the tasks of all parts, which are ``shares`` of pieces, and yield each part when its tasks are done."""
        items: dict[int, bytes] = {}
        owners: list[int] = []
        for owner, (part, pieces) in enumerate(zip(parts, shares, strict=True)):
            part.staging.path.mkdir()
            for number, share in enumerate(pieces):
                items[len(items)] = msgspec.msgpack.encode(Task(str(part.staging.path), number, share))
                owners.append(owner)
        left = Counter(owners)
        with closing(worked(work, items, workers=self._workers)) as done:
            for number, rows in done:
                progress.advance(stage, rows)
                left[owners[number]] -= 1
                if not left[owners[number]]:
                    part = parts[owners[number]]
                    self.files.write(part.staging.inside(SUCCESS), b"")
                    yield part

    def _requests_of(self, first: int) -> str:
        """Return the file with the requests of the range that begins with this id."""
        return str(self._work / f"{REQUESTS}{first}.arrow")

    def _pieces_of(self, wanted: WantedProofs, part: Part, share: int) -> list[Piece]:
        tasks = tasks_of(part.rows, rows_a_file=self.rows_a_file, cores=share)
        if wanted.requests is None:
            return list(_cut(Piece(part.first, part.last + 1), tasks))
        file = str(self._requests_of(part.first))
        with pa.memory_map(file) as source:
            batches = pa.ipc.open_file(source).num_record_batches
        return list(_cut(Piece(0, batches, file), max(1, min(batches, tasks))))

    def _nodes_of(self, schema: pa.Schema, place: TablePlace) -> str:
        """Return where the nodes are that proofs name by number, once they read; an empty text without numbers."""
        if not is_numbered(schema.names):
            return ""
        inside = place.inside(NODES_FOLDER)
        found = inside if self.files.exists(inside) else place.beside(NODES_FOLDER)
        NodeTable.of(self.columns(found, "the nodes of PROOFS"))
        return str(found.path)


def prove_task(
    item: bytes,
    *,
    trie: str,
    make: Callable[[Batches, Callable[[], TrieTable]], Batches],
    schema: pa.Schema,
    rows_a_file: int,
) -> int:
    """Write the proofs for a task's ids or requests, and return how many they are."""
    task = msgspec.msgpack.decode(item, type=Task)
    (piece,) = task.pieces
    made = make(_batches_of(piece), lambda: _kept_table(_written(trie)))
    return write_files(made, Path(task.folder), task.number, schema, rows_a_file=rows_a_file)


def verify_task(item: bytes, *, schema: pa.Schema, nodes: str, strict: bool, rows_a_file: int) -> int:
    """Write the verdicts on a task's proofs, which have this ``schema``, and return how many they are."""
    task = msgspec.msgpack.decode(item, type=Task)
    load = None if not nodes else lambda: _kept_nodes(_written(nodes))
    made = verify_batches(rows_of(task.pieces, schema), strict=strict, load_nodes=load)
    return write_files(made, Path(task.folder), task.number, verified_schema(schema), rows_a_file=rows_a_file)


def write_files(batches: Batches, folder: Path, number: int, schema: pa.Schema, *, rows_a_file: int) -> int:
    """Write rows as Parquet, in files of a bounded number of rows, and return how many they are.

    Without any, the file of the first task says the columns.
    """
    rows = 0
    for file, parts in groupby(_by_file(batches, rows_a_file), key=itemgetter(0)):
        rows += _write_file(_file_in(folder, number, file), (part for _, part in parts), schema)
    if not rows and number == 0:
        _write_file(_file_in(folder, number, 0), (), schema)
    return rows


def _file_in(folder: Path, number: int, file: int) -> Path:
    return folder / f"{FILE}{number:05}-c{file:03}.zstd.parquet"


def _by_file(batches: Batches, rows_a_file: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield all rows in batches with the number of the file that they belong to."""
    rows = 0
    for batch in batches:
        at = 0
        while at < len(batch):
            file, before = divmod(rows, rows_a_file)
            part = batch.slice(at, rows_a_file - before)
            yield file, part
            at, rows = at + len(part), rows + len(part)


def _write_file(place: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write one Parquet file in groups of rows, with each node once for as long as they fit, and return its rows."""
    kinds = {NODES: pa.list_(pa.dictionary(pa.int32(), pa.binary()))}  # the others are short, or seldom the same
    stored = pa.schema([(field.name, kinds.get(field.name, field.type)) for field in schema])
    rows = 0
    with pq.ParquetWriter(
        place,
        stored,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        dictionary_pagesize_limit=DICTIONARY_BYTES,
        store_schema=False,
    ) as writer:
        for group in _groups(batches, stored):
            rows += len(group)
            writer.write_table(group, row_group_size=len(group))
    return rows


def _groups(batches: Iterable[pa.RecordBatch], stored: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows in tables that become groups of rows; what is encoded by a dictionary has one in each."""
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        group.append(batch.cast(stored))
        size += group[-1].nbytes
        if size >= GROUP_BYTES:
            yield pa.Table.from_batches(group).unify_dictionaries().combine_chunks()
            group, size = [], 0
    if group:
        yield pa.Table.from_batches(group).unify_dictionaries().combine_chunks()


def _batches_of(piece: Piece) -> Batches:
    """Yield the ids or the requests of a piece."""
    if not piece.file:
        for first in range(piece.first, piece.end, ROWS_A_BATCH):
            ids = np.arange(first, min(first + ROWS_A_BATCH, piece.end))
            yield pa.RecordBatch.from_arrays([pa.array(ids, pa.int64())], ["id"])
        return
    with pa.memory_map(piece.file) as source:
        opened = pa.ipc.open_file(source)
        yield from (opened.get_batch(number) for number in range(piece.first, piece.end))


def _cut(piece: Piece, tasks: int) -> Iterator[Piece]:
    """Cut a piece into as many of about the same size."""
    ends = [piece.first + (piece.end - piece.first) * number // tasks for number in range(tasks + 1)]
    return (structs.replace(piece, first=first, end=end) for first, end in pairwise(ends))


def _keep_table(table: TrieTable, file: Path) -> None:
    """Write keys and values so that workers share them in memory."""
    columns = {}
    for name, (data, offsets) in (("key", table.keys), ("value", table.values)):
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        columns[name] = pa.Array.from_buffers(pa.large_binary(), len(table), buffers)
    kept = pa.RecordBatch.from_pydict(columns, metadata={"state_version": str(int(table.state_version))})
    with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_file(stream, kept.schema) as writer:
        writer.write_batch(kept)


Written = tuple[str, int]
"""A path, and when it was written."""


def _written(path: str) -> Written:
    return path, os.stat(path).st_mtime_ns


@lru_cache(1)
def _kept_table(kept: Written) -> TrieTable:
    opened = pa.ipc.open_file(pa.memory_map(kept[0]))
    keys, values = opened.get_batch(0).columns
    version = StateVersion(int(opened.schema.metadata[b"state_version"]))
    return TrieTable.of(keys, values, state_version=version)


@lru_cache(1)
def _kept_nodes(kept: Written) -> NodeTable:
    return NodeTable.of(ParquetTable.of(local_footers(TablePlace(kept[0]), "the nodes of PROOFS")).whole())


def _columns_of(place: TablePlace, *names: str) -> Batches:
    """Yield the rows of some columns."""
    table = ParquetTable.of(local_footers(place, "the table"), lambda _schema, _place: names)
    return rows_of(table.pieces(), table.schema)
