"""Tables at the places that Spark's file systems reach. No PySpark is needed to import this."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, cast

from relaycast_ledger.exceptions import PlaceRefused
from relaycast_ledger.table_places import PARQUET, TablePlace, check_footer, check_local, is_read
from relaycast_spark.jobs import named
from relaycast_spark.pyspark_internals import hadoop_of
from relaycast_spark.session import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 16
"""Footers that are read at a time where each takes the time of a few requests."""


def refuse_unshared(place: TablePlace, master: str | None) -> None:
    """Raise ``PlaceRefused`` for a path of this machine where Spark runs on others: they have files of their own."""
    if not place.is_uri and not is_local(master or ""):
        raise PlaceRefused(
            place.text,
            f"a path of this machine where Spark runs on {master}",
            f"s3://, hdfs:// or another URI, or {place.uri} where all machines share that folder",
        )


def read_parquet(spark: "SparkSession", place: TablePlace, option: str) -> "DataFrame":
    """Return the table, once the footer of every file of it is checked; raises ``PlaceRefused``, ``ParquetRefused``."""
    refuse_unshared(place, spark.sparkContext.master)
    if place.is_uri:
        Store(spark).check(place, option)
    else:
        check_local(place, option)
    with named(spark, f"columns read: {place.name}"):
        return spark.read.parquet(place.pattern)


class Store:
    """The file systems of a Spark, by its own drivers: whatever it can write, this can move and remove."""

    def __init__(self, spark: "SparkSession") -> None:
        self._hadoop, self._conf = hadoop_of(spark)

    def exists(self, place: TablePlace) -> bool:
        path, files = self._at(place)
        return bool(files.exists(path))

    def delete(self, place: TablePlace) -> None:
        """Remove the place with all that is in it, if it is there."""
        path, files = self._at(place)
        files.delete(path, True)

    def make_folder(self, place: TablePlace) -> None:
        path, files = self._at(place)
        if not files.mkdirs(path):
            raise PlaceRefused(place.text, "no folder that can be made", "a place that can be written")

    def names(self, place: TablePlace) -> list[str]:
        """Return what the folder holds."""
        path, files = self._at(place)
        return sorted(status.getPath().getName() for status in files.listStatus(path))

    def sizes(self, place: TablePlace) -> dict[str, int]:
        """Return how many bytes each file in the folder has."""
        path, files = self._at(place)
        return {it.getPath().getName(): it.getLen() for it in files.listStatus(path) if it.isFile()}

    def move(self, source: TablePlace, target: TablePlace) -> None:
        """Give what is at ``source`` a new place, which is free."""
        path, files = self._at(source)
        there = self._at(target)[0]
        if files.exists(there) or not files.rename(path, there):
            raise PlaceRefused(target.text, "a place that nothing can be moved to", "a free place that can be written")

    def read(self, place: TablePlace) -> bytes | None:
        """Return the bytes of a file; ``None`` where it cannot be read."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415

        try:
            if not place.is_uri:
                return place.path.read_bytes()
            with self._open(self._at(place)[0]) as stream:
                return stream.read()
        except (OSError, Py4JJavaError):
            return None

    def write(self, place: TablePlace, data: bytes) -> None:
        if not place.is_uri:  # Hadoop would write a sum beside it
            place.path.write_bytes(data)
            return
        path, files = self._at(place)
        stream = files.create(path, True)
        try:
            stream.write(data)
        finally:
            stream.close()

    def check(self, place: TablePlace, option: str) -> None:
        """Raise ``PlaceRefused`` or ``ParquetRefused`` unless all that Spark would read at ``place`` is Parquet."""
        path, files = self._at(place)
        found = [it for status in files.globStatus(path) or [] for it in self._files(files, status)]
        if not found:
            raise PlaceRefused(f"{option} {place}", "no file there", PARQUET)

        def look(file: Any) -> None:
            with self._open(file.getPath()) as stream:
                check_footer(stream, f"{option} {file.getPath().toString()}")

        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(look, found):
                pass

    def _files(self, files: Any, status: Any) -> Iterator[Any]:
        if not status.isDirectory():
            yield status
            return
        for inside in files.listStatus(status.getPath()):
            if is_read(inside.getPath().getName()):
                yield from self._files(files, inside)

    def _at(self, place: TablePlace) -> tuple[Any, Any]:
        path = self._hadoop.fs.Path(place.uri)
        return path, path.getFileSystem(self._conf)

    @contextmanager
    def _open(self, path: Any) -> Iterator[IO[bytes]]:
        files = path.getFileSystem(self._conf)
        stream = files.open(path)
        try:
            yield cast(IO[bytes], io.BufferedReader(_Stream(stream, files.getFileStatus(path).getLen()), 1 << 16))
        finally:
            with suppress(Exception):
                stream.close()


class _Stream(io.RawIOBase):
    """A file of a Spark's file systems, to be read from here."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream = stream
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        self._stream.seek(self._at)
        data = bytes(self._stream.readNBytes(wanted))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
