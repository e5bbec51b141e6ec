"""Parquet files from anywhere: what their footers may say, and their rows as those of one table.

Law: no file is read before its footer is checked here: a file names columns and plain types, never code. Spark keeps a
schema of its own in the footer, in which a type may name a Python class. PySpark imports the module of that class, and
some versions unpickle the class. That schema is checked and never used: a file has the columns that Parquet names.

Every file of a table counts. A column has the same type in all of them, one that Spark has. A file without a column
that is only kept has nulls there. A folder named ``day=3`` is a column, too.
"""

import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import structs

from relaycast_ledger.exceptions import InputColumns, ParquetRefused, PlaceRefused
from relaycast_ledger.table_places import SUMMARIES, TablePlace, parquet_files

T = TypeVar("T")
Batches = Iterator[pa.RecordBatch]

MAGIC = b"PAR1"
MAX_FOOTER_BYTES = 1 << 26

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema, as JSON."""

PARQUET = "a Parquet file or folder"
PLAIN_TYPES = "columns of plain types"

MOMENT_UNIT = "us"
"""Moments in Spark's older form, of 96 bits, are read in its unit."""

CLASS_NAMES = frozenset({"class", "pyClass", "serializedClass"})
"""Members by which Spark's schema names a class, or holds one."""


@contextmanager
def open_parquet(file: Path | bytes | IO[bytes], place: str) -> Iterator[pq.ParquetFile]:
    """Give the file, opened, once its footer is checked; raises ``ParquetRefused``, and ``OSError`` as it comes."""
    with _stream(file) as stream:
        footer = _footer(stream, place)
        stream.seek(0)
        try:
            opened = pq.ParquetFile(pa.PythonFile(stream, "r"), coerce_int96_timestamp_unit=MOMENT_UNIT)
            named: dict[bytes, bytes] = opened.metadata.metadata or {}
        except (pa.ArrowException, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            first_line = next(iter(str(error).splitlines()), type(error).__name__)[:100]
            raise ParquetRefused(place, f"a footer that does not read ({first_line})", "whole Parquet") from None
        _check_spark_schema(footer.count(SPARK_SCHEMA), named.get(SPARK_SCHEMA), place)
        yield opened


@contextmanager
def _stream(file: Path | bytes | IO[bytes]) -> Iterator[IO[bytes]]:
    if isinstance(file, Path):
        with file.open("rb") as stream:
            yield stream
    elif isinstance(file, bytes):
        yield io.BytesIO(file)
    else:
        yield file


def _footer(stream: IO[bytes], place: str) -> bytes:
    """Return the bytes of the footer; text in it stands as it is, whatever names come twice."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    head = stream.read(len(MAGIC))
    if head != MAGIC:
        raise ParquetRefused(place, f"a file that begins with 0x{head.hex()}", PARQUET)
    stream.seek(max(0, size - 8))
    tail = stream.read(8)
    length = int.from_bytes(tail[:4], "little")
    if len(tail) < 8 or tail[4:] != MAGIC or length > size - 12:
        raise ParquetRefused(place, f"{size:,} bytes without a footer at their end", "whole Parquet")
    if length > MAX_FOOTER_BYTES:
        raise ParquetRefused(place, f"a footer of {length:,} bytes", f"at most {MAX_FOOTER_BYTES:,}")
    stream.seek(size - 8 - length)
    return stream.read(length)


def _check_spark_schema(mentions: int, text: bytes | None, place: str) -> None:
    if mentions != (text is not None):
        raise ParquetRefused(place, f"a footer that names {SPARK_SCHEMA.decode()} {mentions} times", "every name once")
    if text is None:
        return
    try:
        members = list(_members(json.loads(text, object_pairs_hook=_Pairs)))
    except (ValueError, RecursionError):
        raise ParquetRefused(place, "a schema of Spark's in its footer that is not JSON", "whole Parquet") from None
    named = [f"the {name} {_shown(value)}" for name, value in members if name in CLASS_NAMES]
    if named or ("type", "udt") in members:
        got = f"a footer with the user-defined type of {(named or ['no class'])[0]}"
        raise ParquetRefused(place, got, PLAIN_TYPES)


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, those that come twice included."""


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    stack = [value]
    while stack:
        content = stack.pop()
        if isinstance(content, _Pairs):
            yield from content
            stack += [inside for _, inside in content]
        elif isinstance(content, list):
            stack += content


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


AT_ONCE = 16
"""Footers that are read at a time: at a URI each takes the time of a few requests."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Stands for null in the name of a folder."""

ROWS_A_BATCH = 1_000
"""Rows that are worked on in one call, by every engine."""

GATHERED_BYTES = 1 << 26
"""Bytes up to which rows of several pieces are gathered for one call."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself, and what the ``folders`` say that it is in."""

    file: str
    """An absolute path of this machine, or a URI."""

    place: str
    """The file in messages."""

    schema: pa.Schema
    """Its columns in the types that Spark has; a type that Spark does not have stays as it is."""

    group_rows: tuple[int, ...]
    folders: dict[str, str]

    @classmethod
    def of(cls, stream: Path | IO[bytes], file: str, place: str, folders: Sequence[str] = ()) -> "Footer":
        """Read the footer of a file below ``folders`` of a table; raises what ``open_parquet`` raises."""
        with open_parquet(stream, place) as opened:
            leaves = (opened.schema.column(number) for number in range(len(opened.schema)))
            older = {it.path.partition(".")[0] for it in leaves if it.physical_type == "INT96"}
            columns = [(it.name, plain_type(it.type, in_utc=it.name in older)) for it in opened.schema_arrow]
            groups = tuple(opened.metadata.row_group(it).num_rows for it in range(opened.num_row_groups))
        pairs = (unquote(folder).split("=", 1) for folder in folders if "=" in folder)
        return cls(file, place, pa.schema(columns), groups, dict(pairs))

    @property
    def has_rows(self) -> bool:
        """Whether it is no summary of other files."""
        return not self.file.rpartition("/")[2].startswith(SUMMARIES)


def local_footers(place: TablePlace, option: str) -> list[Footer]:
    """Return the footers of a file, or of all files in a folder; raises ``PlaceRefused`` and ``ParquetRefused``."""
    if not place.path.exists():
        raise PlaceRefused(f"{option} {place}", "no such file", PARQUET)
    folder = place.path if place.path.is_dir() else place.path.parent

    def look(file: Path) -> Footer:
        return Footer.of(file, os.path.abspath(file), f"{option} {file}", file.relative_to(folder).parts[:-1])

    return footers(parquet_files(folder) if place.path.is_dir() else [place.path], look, f"{option} {place}")


def footers(files: Iterable[T], look: Callable[[T], Footer], place: str) -> list[Footer]:
    """Return the footers of all files that hold rows, read by ``look`` and in order; raises ``PlaceRefused``."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = [footer for footer in pool.map(look, files) if footer.has_rows]
    if not found:
        raise PlaceRefused(place, "a folder without Parquet files", PARQUET)
    return found


class Piece(msgspec.Struct, frozen=True):
    """Rows ``first`` to ``end`` of something: the end is not among them."""

    first: int
    end: int
    file: str = ""
    """A Parquet file, or batches in an Arrow file; without one, rows are ids."""

    group: int = 0
    """The row group of a Parquet file."""

    folders: dict[str, str] = {}
    """The columns that the names of its folders say."""


def all_columns(schema: pa.Schema, _place: str) -> Sequence[str]:
    return list(schema.names)


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """Some columns of Parquet files, which have them in the same types."""

    schema: pa.Schema
    footers: Sequence[Footer]

    @classmethod
    def of(
        cls, footers: Sequence[Footer], wanted: Callable[[pa.Schema, str], Sequence[str]] = all_columns
    ) -> "ParquetTable":
        """Return the columns that are ``wanted`` of each file, given its schema and its place.

        Raises ``InputColumns``, and what ``wanted`` raises, for the first file that does not go with those before it.
        """
        columns, in_folders = dict[str, tuple[pa.Field, str]](), _folder_types(footers)
        for footer in footers:
            fields = {field.name: field for field in footer.schema}
            fields |= {name: pa.field(name, kind) for name, kind in in_folders.items() if name in footer.folders}
            names = [*footer.schema.names, *(name for name in footer.folders if name not in footer.schema.names)]
            twice = [name for name, times in Counter(map(str.lower, names)).items() if times > 1]
            if twice:
                raise InputColumns(footer.place, f"{', '.join(twice)} twice", "every name once, in capitals or not")
            for name in wanted(pa.schema([fields[name] for name in names]), footer.place):
                field = fields[name]
                if not _is_plain(field.type):
                    raise InputColumns(footer.place, f"{name} as {field.type}", EXPECTED_TYPES)
                known, place = columns.setdefault(name.lower(), (field, footer.place))
                if known != field:
                    said = f"{known.name} as {known.type}, as in {place}"
                    raise InputColumns(footer.place, f"{name} as {field.type}", said)
        found = [field for field, _ in columns.values()]  # as on Spark, columns that folders say are the last
        return cls(pa.schema(sorted(found, key=lambda field: field.name in in_folders)), footers)

    @property
    def num_rows(self) -> int:
        return sum(sum(it.group_rows) for it in self.footers)

    @property
    def is_local(self) -> bool:
        """Whether its files have paths."""
        return not any(TablePlace(it.file).is_uri for it in self.footers)

    def pieces(self) -> Iterator[Piece]:
        """Yield every row group."""
        for it in self.footers:
            for group, rows in enumerate(it.group_rows):
                yield Piece(0, rows, it.file, group, it.folders)

    def whole(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(rows_of(self.pieces(), self.schema), self.schema)


def shared_out(pieces: Iterable[Piece], rows_a_task: int) -> Iterator[list[Piece]]:
    """Yield pieces for tasks of at most so many rows, in order; at least one."""
    share: list[Piece] = []
    room = rows_a_task
    for piece in pieces:
        first = piece.first
        while first < piece.end:
            end = min(piece.end, first + room)
            share.append(structs.replace(piece, first=first, end=end))
            first, room = end, room - (end - first)
            if not room:
                yield share
                share, room = [], rows_a_task
    if share:
        yield share


def rows_of(pieces: Iterable[Piece], schema: pa.Schema) -> Batches:
    """Yield the rows of pieces of Parquet files in the columns of their table; raises ``ParquetRefused``.

    A batch has rows of several pieces where those are small.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in _rows_by_piece(pieces, schema):
        rows, size = rows + len(batch), size + batch.nbytes
        if waiting and (rows > ROWS_A_BATCH or size > GATHERED_BYTES):
            yield _joined(waiting)
            waiting, rows, size = [], len(batch), batch.nbytes
        waiting.append(batch)
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)  # which copies


def _rows_by_piece(pieces: Iterable[Piece], schema: pa.Schema) -> Batches:
    for file, parts in groupby(pieces, key=lambda piece: piece.file):
        try:
            with pq.ParquetFile(file, coerce_int96_timestamp_unit=MOMENT_UNIT) as opened:
                names = [name for name in opened.schema_arrow.names if name in schema.names]
                for piece in parts:
                    yield from _rows_of_group(opened, names, piece, schema)
        except (pa.ArrowException, OSError) as error:
            first_line = next(iter(str(error).splitlines()), type(error).__name__)[:100]
            raise ParquetRefused(file, f"rows that do not read ({first_line})", "whole Parquet") from None


def _rows_of_group(opened: pq.ParquetFile, names: list[str], piece: Piece, schema: pa.Schema) -> Batches:
    at = 0
    for batch in opened.iter_batches(ROWS_A_BATCH, [piece.group], names, use_threads=False):
        first, end = max(piece.first - at, 0), min(piece.end - at, len(batch))
        at += len(batch)
        if first < end:
            part = batch.slice(first, end - first)
            columns = [_column(part, field, piece.folders) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
        if at >= piece.end:
            break


def _column(batch: pa.RecordBatch, field: pa.Field, folders: dict[str, str]) -> pa.Array:
    """Return a column of the table; it has nulls where neither the file nor the names of its folders have it."""
    if field.name in folders:
        value = folders[field.name]
        return pa.repeat(pa.scalar(None if value == NO_VALUE else value, pa.string()), len(batch)).cast(field.type)
    if field.name not in batch.schema.names:
        return pa.nulls(len(batch), field.type)
    return batch.column(field.name).cast(field.type)


def _folder_types(footers: Sequence[Footer]) -> dict[str, pa.DataType]:
    """Return the columns that names of folders say: numbers or days where all of them are."""
    values: dict[str, set[str]] = {}
    for footer in footers:
        for name, value in footer.folders.items():
            values.setdefault(name, set()).add(value)
    return {name: _narrowest(pa.array(sorted(said - {NO_VALUE}), pa.string())) for name, said in values.items()}


def _narrowest(texts: pa.Array) -> pa.DataType:
    for kind in (pa.int32(), pa.int64(), pa.float64(), pa.date32()) if len(texts) else ():
        try:
            texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        return kind
    return pa.string()


def plain_type(kind: pa.DataType, *, in_utc: bool = False) -> pa.DataType:
    """Return the type that a column of Parquet has on Spark; what Spark cannot read stays as it is.

    Moments in Spark's older form are ``in_utc``, which they do not say themselves.
    """
    types, plain = pa.types, partial(plain_type, in_utc=in_utc)
    if isinstance(kind, pa.BaseExtensionType) or types.is_dictionary(kind):
        return plain(kind.value_type if types.is_dictionary(kind) else kind.storage_type)
    if types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([(field.name, plain(field.type)) for field in kind])
    if kind.num_fields == 1:
        return pa.list_(plain(kind.value_type))
    if types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", "UTC" if kind.tz or in_utc else None)
    small = types.is_decimal32(kind) or types.is_decimal64(kind)
    known = pa.decimal128(kind.precision, kind.scale) if small else PLAIN.get(kind, kind)
    return pa.binary() if types.is_fixed_size_binary(kind) else known


PLAIN = {
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.null(): pa.int32(),
    **{pa.duration(unit): pa.int64() for unit in ("s", "ms", "us", "ns")},
}
"""Spark's substitutes for types that it does not know."""

EXPECTED_TYPES = "types that Spark has, timestamp[us] among them"


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether Spark has the type."""
    if kind.num_fields:
        return all(_is_plain(kind.field(number).type) for number in range(kind.num_fields))
    types = pa.types
    if types.is_timestamp(kind):
        return bool(kind.unit == "us")
    return any(fits(kind) for fits in (types.is_integer, types.is_boolean, types.is_binary, types.is_string)) or (
        types.is_decimal128(kind) or kind in {pa.float32(), pa.float64(), pa.date32()}
    )
