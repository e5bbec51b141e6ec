"""Tables at the places that Spark's file systems reach. No PySpark is needed to import this."""

import io
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from uuid import uuid4

import pyarrow as pa

from relaycast_ledger.exceptions import PlaceRefused
from relaycast_ledger.parquet_files import PARQUET, Footer, ParquetTable, footers, local_footers
from relaycast_ledger.table_places import LocalFiles, TablePlace, is_read
from relaycast_spark.jobs import TASKS_A_CORE, named
from relaycast_spark.pyspark_internals import hadoop_of
from relaycast_spark.session import is_local, reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


LOOK_SECONDS = 0.2
"""Time that a look at a folder takes: enough that every free core takes one."""

CONNECTORS = {
    "s3": "org.apache.hadoop:hadoop-aws:{hadoop} --conf spark.hadoop.fs.s3.impl=org.apache.hadoop.fs.s3a.S3AFileSystem",
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:VERSION",
}
"""Packages with the file systems of a scheme; Spark itself brings HDFS and the files of a machine."""


def refuse_unshared(spark: "SparkSession", place: TablePlace, *, is_written: bool = False) -> None:
    """Raise ``PlaceRefused`` where a worker on another machine does not see what this one has at a path.

    A place that is written has its work folder. This process puts a file there, and workers put one beside it. Workers
    that start later are not asked: rows that they keep to themselves are missed when a range is counted.
    """
    if place.is_uri or is_local(spark.sparkContext.master or ""):
        return
    if is_written:
        probe = place.work.path.absolute() / f"probe-{uuid4().hex}"
        probe.touch()
    else:
        inside = [file for file in place.path.iterdir() if is_read(file.name)] if place.path.is_dir() else []
        probe = (inside or [place.path])[0].absolute()
    tasks = TASKS_A_CORE * spark.sparkContext.defaultParallelism
    look = partial(look_at, str(probe), probe.stat().st_size, is_written)
    try:
        with named(spark, f"looked at by workers: {place.name}"):
            looks = spark.range(tasks, numPartitions=tasks).mapInArrow(look, "number long, host string, sees boolean")
            found = looks.collect()
        unseen = [it.host for it in found if not it.sees or (is_written and not os.path.exists(f"{probe}-{it.number}"))]
    finally:
        for file in probe.parent.glob(f"{probe.name}*") if is_written else ():
            file.unlink()
    if unseen:
        got = f"a path that the worker on {unseen[0]} does not share with this machine"
        raise PlaceRefused(place.text, got, "a folder that all machines share, or s3://, hdfs:// or another URI")


def look_at(file: str, size: int, is_written: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield whether this worker sees a file of that size, and can put one beside it where a place ``is_written``."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            time.sleep(LOOK_SECONDS)
            try:
                sees = os.stat(file).st_size == size
                if sees and is_written:
                    Path(f"{file}-{number}").touch()
            except OSError:
                sees = False
            row = {"number": number, "host": socket.gethostname(), "sees": sees}
            yield pa.RecordBatch.from_pylist([row])


def found_footers(spark: "SparkSession", place: TablePlace, option: str) -> list[Footer]:
    """Return the footers of all files of a table; raises ``PlaceRefused`` and ``ParquetRefused``."""
    refuse_unshared(spark, place)
    return Store(spark).footers(place, option) if place.is_uri else local_footers(place, option)


def read_parquet(
    spark: "SparkSession", place: TablePlace, table: ParquetTable, files: Sequence[str] = ()
) -> "DataFrame":
    """Return a table as the JVM reads it, at any place: its columns are those of ``table`` and of all folders.

    Of some ``files`` of it, if they are given.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - runs without Spark import this module

    folders = {name for footer in table.footers for name in footer.folders}
    in_files = pa.schema([field for field in table.schema if field.name not in folders])
    reader = spark.read.schema(from_arrow_schema(in_files))
    if 0 < len(files) < len(table.footers):
        return reader.option("basePath", place.uri).parquet(*(TablePlace(file).pattern for file in files))
    return reader.parquet(place.pattern)


class Store:
    """The file systems of a Spark, by its own drivers: whatever it can write, this can move and remove."""

    def __init__(self, spark: "SparkSession") -> None:
        self._hadoop, self._conf = hadoop_of(spark)

    def reach(self, place: TablePlace) -> None:
        """Raise ``PlaceRefused`` where no file system answers for a URI."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415

        try:
            self.exists(place)
        except Py4JJavaError as error:
            scheme = place.text.partition(":")[0].lower()
            reason = reason_of(error)
            lacks = "No FileSystem for scheme" in str(error) or "ClassNotFoundException" in str(error)
            if not lacks:
                raise PlaceRefused(place.text, reason, "a place that Spark reaches") from None
            package = CONNECTORS.get(scheme, "the package that has it")
            package = package.format(hadoop=self._hadoop.util.VersionInfo.getVersion())
            got = "a scheme that this Spark has no connector for"
            raise PlaceRefused(place.text, got, f"--conf spark.jars.packages={package}") from None

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

    def stamps(self, place: TablePlace) -> dict[str, list[int]]:
        """Return size and time of each file of a table."""
        if not place.is_uri:
            return LocalFiles().stamps(place)
        path, files = self._at(place)
        found = [it for status in files.globStatus(path) or [] for it, _ in self._files(files, status, ())]
        return {it.getPath().toString(): [it.getLen(), it.getModificationTime()] for it in found}

    def move(self, source: TablePlace, target: TablePlace) -> None:
        """Give what is at ``source`` a new place, which is free."""
        path, files = self._at(source)
        there = self._at(target)[0]
        if files.exists(there) or not files.rename(path, there):
            raise PlaceRefused(target.text, "a place that nothing can be moved to", "a free place that can be written")

    def read(self, place: TablePlace) -> bytes | None:
        """Return the bytes of a file; ``None`` where it cannot be read."""
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415

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

    def footers(self, place: TablePlace, option: str) -> list[Footer]:
        """Return the footers of all files that Spark would read; raises ``PlaceRefused`` and ``ParquetRefused``."""
        self.reach(place)
        path, files = self._at(place)
        found = [it for status in files.globStatus(path) or [] for it in self._files(files, status, ())]
        if not found:
            raise PlaceRefused(f"{option} {place}", "no file there", PARQUET)

        def look(file: tuple[Any, tuple[str, ...]]) -> Footer:
            path, folders = file[0].getPath(), file[1]
            with self._open(path) as stream:
                return Footer.of(stream, path.toString(), f"{option} {path.toString()}", folders)

        return footers(sorted(found, key=lambda it: it[0].getPath().toString()), look, f"{option} {place}")

    def _files(self, files: Any, status: Any, folders: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
        """Yield the files in a place with the names of the folders that they are in."""
        if not status.isDirectory():
            yield status, folders
            return
        for inside in files.listStatus(status.getPath()):
            name = inside.getPath().getName()
            if is_read(name):
                yield from self._files(files, inside, (*folders, name) if inside.isDirectory() else folders)

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
