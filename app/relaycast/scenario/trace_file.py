"""Trace files: recorded publications in CSV or Parquet, read batch by batch.

Law: memory holds a batch, however long the file. A row that is no publication raises ``BadInput`` with file, row,
column, value and what was expected; rows are counted from 1, a CSV's header apart.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from relaycast.inputs import MAX_FILE_BYTES
from relaycast.parquet_input import parquet_input
from relaycast.refusal import BadInput, one_line, shown
from relaycast_ledger.exceptions import InputColumns
from relaycast_spark.exceptions import RowRefused
from relaycast_spark.publications import PUBLICATIONS, check_columns, decoded

ROWS_A_BATCH = 1 << 14
CSV_SUFFIXES = (".csv", ".csv.gz")

MOST_GAIN = 100
"""Bytes that one byte of a gzipped trace may unpack to, where that is more than ``MAX_FILE_BYTES``."""

MOST_NAMES = 1_000
"""Names that a mistyped one is compared with."""

Place = str
RowBatch = tuple[Place, int, pa.RecordBatch]
"""The file, how many of its rows come before, and the rows."""


def parts_of(path: str) -> list[Path]:
    """Return the files of a trace: itself, or those of a Parquet folder by name; raises ``BadInput``."""
    place = Path(path)
    if place.is_dir():
        files = sorted(place.glob("*.parquet"))
        if not files:
            raise BadInput(path, "a folder without Parquet files", "a .csv, .csv.gz or .parquet file")
        return files
    if not place.name.endswith((*CSV_SUFFIXES, ".parquet")):
        raise BadInput(path, f"a file that ends with {shown(place.suffix)}", "a .csv, .csv.gz or .parquet file")
    if not place.is_file():
        raise BadInput(path, "no such file", "recorded publications in CSV or Parquet")
    return [place]


def read_trace(path: str) -> Iterator[RowBatch]:
    """Give the rows of a trace as batches of ``PUBLICATIONS``; raises ``BadInput``."""
    for part in parts_of(path):
        place, rows = str(part), 0
        for batch in _raw_batches(part, place):
            yield place, rows, _decoded(batch, place, rows)
            rows += batch.num_rows


def key_names(path: str, publisher: int) -> list[str]:
    """Return the keys of a publisher as the file has them, names or hex: those of its first rows."""
    names: dict[str, None] = {}
    for part in parts_of(path):
        for batch in _raw_batches(part, str(part)):
            for para_id, key in zip(batch.column("para_id").to_pylist(), batch.column("key").to_pylist(), strict=True):
                if int(para_id) == publisher:
                    names[key if isinstance(key, str) else f"0x{key.hex()}"] = None
            if len(names) >= MOST_NAMES:
                break
    return list(names)


def _decoded(batch: pa.RecordBatch, place: str, before: int) -> pa.RecordBatch:
    try:
        return decoded(batch, place=place)
    except InputColumns as error:
        raise _refused_columns(error) from None
    except RowRefused as error:
        raise refused_row(place, before + error.row, error.column, error.got, error.expected) from None
    except pa.ArrowInvalid as error:
        raise BadInput(place, f"values that do not fit ({one_line(str(error))})", "recorded publications") from None


def refused_row(place: str, row: int, column: str, got: str, expected: str, *, hint: str = "") -> BadInput:
    """Return the refusal of what stands in a row, counted from 0."""
    return BadInput(f"{place} row {row + 1:,} column {column}", got, expected, hint)


def _refused_columns(error: InputColumns) -> BadInput:
    return BadInput(error.place, f"the columns {error.got or 'none'}", error.expected)


def _raw_batches(part: Path, place: str) -> Iterator[pa.RecordBatch]:
    read = _csv_batches if part.name.endswith(CSV_SUFFIXES) else _parquet_batches
    try:
        yield from read(part, place)
    except pa.ArrowInvalid as error:
        kind = "CSV" if read is _csv_batches else "Parquet"
        raise BadInput(
            place, f"what does not read as {kind} ({one_line(str(error))})", f"a whole {kind} file"
        ) from None
    except OSError as error:
        raise BadInput(place, one_line(error.strerror or str(error)), "a file that can be read") from None


def _parquet_batches(part: Path, place: str) -> Iterator[pa.RecordBatch]:
    with parquet_input(part, place) as file:
        _check_columns(file.schema_arrow.names, place)
        yield from file.iter_batches(batch_size=ROWS_A_BATCH)


def _csv_batches(part: Path, place: str) -> Iterator[pa.RecordBatch]:
    csv = pyarrow.csv
    try:
        with csv.open_csv(
            _opened(part, place),
            read_options=csv.ReadOptions(use_threads=False),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(PUBLICATIONS.names, pa.string())),
        ) as stream:
            _check_columns(stream.schema.names, place)
            for batch in stream:
                for start in range(0, batch.num_rows, ROWS_A_BATCH):
                    yield batch.slice(start, ROWS_A_BATCH)
    except pa.ArrowInvalid as error:
        row = _OTHER_COLUMNS.search(str(error))
        if row is None:
            raise
        here = place if row["number"] is None else f"{place} line {int(row['number']):,}"
        raise BadInput(
            here, f"{row['got']} columns, {shown(row['text'])}", f"the {row['wanted']} of the header"
        ) from None


_OTHER_COLUMNS = re.compile(
    r"(?:Row #(?P<number>\d+): )?Expected (?P<wanted>\d+) columns, got (?P<got>\d+): (?P<text>.*)", re.DOTALL
)
"""How Arrow tells of a row. A handler of its own for such rows would print a traceback where they are no text."""


def _opened(part: Path, place: str) -> Any:
    """Return what the CSV is read from; of a gzipped file, what it unpacks to is bounded while it is read."""
    if part.suffix != ".gz":
        return part
    return pa.PythonFile(_Unpacked(part, place), mode="r")


class _Unpacked(io.RawIOBase):
    """What a gzipped file unpacks to; raises ``BadInput`` beyond ``MAX_FILE_BYTES`` and ``MOST_GAIN``."""

    def __init__(self, part: Path, place: str) -> None:
        self._stream = pa.input_stream(str(part), compression="gzip")
        self._place = place
        self._left = self._most = max(MAX_FILE_BYTES, MOST_GAIN * part.stat().st_size)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data: bytes = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise BadInput(self._place, f"more than {self._most:,} bytes when unpacked", "a smaller file")
        return data


def _check_columns(names: list[str], place: str) -> None:
    try:
        check_columns(names, place)
    except InputColumns as error:
        raise _refused_columns(error) from None
