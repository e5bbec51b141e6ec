"""The footer of a Parquet file, read before anything else reads the file. Plain pyarrow, no Spark.

Law: a file names columns and plain types, never code. Spark keeps a schema of its own in the footer, in which a type
may name a Python class. PySpark imports the module of that class, and some versions unpickle the class.
"""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast_spark.exceptions import ParquetRefused

MAGIC = b"PAR1"
MAX_FOOTER_BYTES = 1 << 26

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema, as JSON."""

PARQUET = "a Parquet file or folder"
PLAIN_TYPES = "columns of plain types"

CLASS_NAMES = frozenset({"class", "pyClass", "serializedClass"})
"""Members by which Spark's schema names a class, or holds one."""


@contextmanager
def open_parquet(file: Path | bytes | IO[bytes], place: str) -> Iterator[pq.ParquetFile]:
    """Give the file, opened, once its footer is checked; raises ``ParquetRefused``, and ``OSError`` as it comes."""
    with _stream(file) as stream:
        footer = _footer(stream, place)
        stream.seek(0)
        try:
            opened = pq.ParquetFile(pa.PythonFile(stream, "r"))
            named: dict[bytes, bytes] = opened.metadata.metadata or {}
        except (pa.ArrowException, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ParquetRefused(
                place, f"a footer that does not read ({_first_line(error)})", "whole Parquet"
            ) from None
        _check_spark_schema(footer.count(SPARK_SCHEMA), named.get(SPARK_SCHEMA), place)
        yield opened


def check_footer(file: Path | IO[bytes], place: str) -> None:
    """Raise what ``open_parquet`` raises."""
    with open_parquet(file, place):
        pass


@contextmanager
def _stream(file: Path | bytes | IO[bytes]) -> Iterator[IO[bytes]]:
    if isinstance(file, Path):
        with file.open("rb") as stream:
            yield stream
    elif isinstance(file, bytes):
        yield io.BytesIO(file)
    else:
        yield file


def parquet_files(folder: Path) -> Iterator[Path]:
    """Give the files of a folder as Spark reads them: all but hidden ones, those of its partitions, and summaries."""
    for path in sorted(folder.iterdir()):
        if is_read(path.name):
            yield from parquet_files(path) if path.is_dir() else (path,)


def is_read(name: str) -> bool:
    """Return whether Spark reads what has this name inside of a table, or takes a schema from it."""
    return not name.startswith((".", "_")) or name.startswith(SUMMARIES) or (name.startswith("_") and "=" in name)


SUMMARIES = ("_metadata", "_common_metadata")


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


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:100]
