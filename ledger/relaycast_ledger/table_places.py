"""Tables on this machine, or wherever Spark's file systems reach: their places, and what a file there may say.

Law: a path is a path of this machine, whatever the file system that Spark takes for its default, and so is a ``file:``
URI. Any other URI goes to Spark as it is. One process of this machine writes to a path at a time. Spark reads no file
before its footer is checked here: a file names columns and plain types, never code. Spark keeps a schema of its own in
the footer, in which a type may name a Python class. PySpark imports the module of that class, and some versions
unpickle the class.
"""

import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast_ledger.exceptions import ParquetRefused, PlaceRefused
from relaycast_ledger.staged_file import FULL_DISK, alone_in

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
            first_line = next(iter(str(error).splitlines()), type(error).__name__)[:100]
            raise ParquetRefused(place, f"a footer that does not read ({first_line})", "whole Parquet") from None
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


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_FILE = re.compile(r"file:(//(localhost)?)?(?=/(?!/))", re.IGNORECASE)
_GLOB = re.compile(r"([*?\[\]{}\\])")

ROWS_A_FILE = 1 << 18
"""Rows that a file of a table has at most by default."""

MOST_ROWS_A_FILE = 1 << 31


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A path of this machine, also as ``file:///a/table``, or a URI such as ``s3://bucket/table``."""

    text: str

    @property
    def is_uri(self) -> bool:
        """Whether other machines may have it: a URI of this machine's files is a path."""
        return _SCHEME.match(self.text) is not None and not self._prefix

    @property
    def _prefix(self) -> str:
        found = _FILE.match(self.text)
        return found[0] if found else ""

    @property
    def path(self) -> Path:
        """The path, of a place on this machine."""
        return Path(self.text.removeprefix(self._prefix))

    @property
    def uri(self) -> str:
        """The place as Spark takes it."""
        return self.text.rstrip("/") if self.is_uri else f"file://{os.path.abspath(self.path)}"

    @property
    def pattern(self) -> str:
        """The place as Spark reads it: what would be a pattern in a path of this machine stands for itself."""
        return self.text if self.is_uri else _GLOB.sub(r"\\\1", self.uri)

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    def beside(self, name: str) -> "TablePlace":
        near = f"{self.uri.rpartition('/')[0]}/{name}" if self.is_uri else f"{self._prefix}{self.path.with_name(name)}"
        return TablePlace(near)

    def inside(self, name: str) -> "TablePlace":
        return TablePlace(f"{self.uri}/{name}" if self.is_uri else f"{self._prefix}{self.path / name}")

    @property
    def work(self) -> "TablePlace":
        """The folder beside it that holds what is not whole yet."""
        return self.beside(f".{self.name}.parts")

    def __str__(self) -> str:
        return self.text


@contextmanager
def alone_at(place: TablePlace, option: str) -> Iterator[None]:
    """Keep other processes of this machine from writing the table at ``place``; nothing is locked at a URI.

    Raises ``WorkFolderInUse``, and ``PlaceRefused`` where the disk is full, now or before the end.
    """
    try:
        with nullcontext() if place.is_uri else alone_in(place.work.path, works_on=place.path):
            yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        got = os.strerror(error.errno or 0).lower()
        raise PlaceRefused(f"{option} {place}", got, "a place that can be written") from None


def check_local(place: TablePlace, option: str) -> None:
    """Raise ``PlaceRefused`` or ``ParquetRefused`` unless the path is Parquet, or a folder of it; URIs pass."""
    if place.is_uri:
        return
    if not place.path.exists():
        raise PlaceRefused(f"{option} {place}", "no such file", PARQUET)
    files = list(parquet_files(place.path)) if place.path.is_dir() else [place.path]
    if not files:
        raise PlaceRefused(f"{option} {place}", "a folder without Parquet files", PARQUET)
    for file in files:
        check_footer(file, f"{option} {file}")


class Files(Protocol):
    """File systems that tables are written to."""

    def exists(self, place: TablePlace) -> bool: ...

    def delete(self, place: TablePlace) -> None:
        """Remove the place with all that is in it, if it is there."""

    def make_folder(self, place: TablePlace) -> None: ...

    def names(self, place: TablePlace) -> list[str]:
        """Return what the folder holds."""

    def sizes(self, place: TablePlace) -> dict[str, int]:
        """Return how many bytes each file in the folder has."""

    def stamps(self, place: TablePlace) -> dict[str, list[int]]:
        """Return size and time of each file of a table: Spark's name of the file tells which it is."""

    def move(self, source: TablePlace, target: TablePlace) -> None:
        """Give what is at ``source`` a new place, which is free."""

    def read(self, place: TablePlace) -> bytes | None:
        """Return the bytes of a file; ``None`` where it cannot be read."""

    def write(self, place: TablePlace, data: bytes) -> None: ...


class LocalFiles:
    """The file systems of this machine."""

    def exists(self, place: TablePlace) -> bool:
        return place.path.exists()

    def delete(self, place: TablePlace) -> None:
        if place.path.is_dir() and not place.path.is_symlink():
            shutil.rmtree(place.path)
        else:
            place.path.unlink(missing_ok=True)

    def make_folder(self, place: TablePlace) -> None:
        place.path.mkdir(parents=True, exist_ok=True)

    def names(self, place: TablePlace) -> list[str]:
        return sorted(os.listdir(place.path))

    def sizes(self, place: TablePlace) -> dict[str, int]:
        return {it.name: it.stat().st_size for it in place.path.iterdir() if it.is_file()}

    def stamps(self, place: TablePlace) -> dict[str, list[int]]:
        files = parquet_files(place.path) if place.path.is_dir() else [place.path]
        return {TablePlace(str(it)).uri: [it.stat().st_size, it.stat().st_mtime_ns // 10**6] for it in files}

    def move(self, source: TablePlace, target: TablePlace) -> None:
        if self.exists(target):
            raise PlaceRefused(target.text, "a place that nothing can be moved to", "a free place that can be written")
        source.path.rename(target.path)

    def read(self, place: TablePlace) -> bytes | None:
        try:
            return place.path.read_bytes()
        except OSError:
            return None

    def write(self, place: TablePlace, data: bytes) -> None:
        place.path.write_bytes(data)
