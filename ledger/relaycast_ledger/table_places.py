"""Tables on this machine, or wherever Spark's file systems reach: their places.

Law: a path is a path of this machine, whatever the file system that Spark takes for its default, and so is a ``file:``
URI. Any other URI goes to Spark as it is. One process of this machine writes to a path at a time.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from relaycast_ledger.exceptions import PlaceRefused
from relaycast_ledger.staged_file import FULL_DISK, alone_in

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_FILE = re.compile(r"file:(//(localhost)?)?(?=/(?!/))", re.IGNORECASE)
_GLOB = re.compile(r"([*?\[\]{}\\])")

SUMMARIES = ("_metadata", "_common_metadata")
"""Files that repeat the footers of others: they are checked like those, and have no rows."""

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


def parquet_files(folder: Path) -> Iterator[Path]:
    """Give the files of a folder as Spark reads them: all but hidden ones, those of its partitions, and summaries."""
    for path in sorted(folder.iterdir()):
        if is_read(path.name):
            yield from parquet_files(path) if path.is_dir() else (path,)


def is_read(name: str) -> bool:
    """Return whether Spark reads what has this name inside of a table, or takes a schema from it."""
    return not name.startswith((".", "_")) or name.startswith(SUMMARIES) or (name.startswith("_") and "=" in name)


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
