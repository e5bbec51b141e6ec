"""The sqlite file of a log: its schema, one transaction for each commit, and reading rows back.

Law: a commit is synced before it returns (WAL, ``synchronous=FULL``). One thread writes; any thread reads.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relaycast_gateway.log.columns import EventColumns
from relaycast_gateway.log.record_codec import decode_visibility, encode_visibility
from relaycast_gateway.log.rows import KEY_BYTES, Commit, EventRow, NamedRow
from relaycast_gateway.log.unusable import UnusableLog
from relaycast_gateway.record import EVERYBODY, Visibility
from relaycast_ledger.staged_file import sync

SCHEMA_VERSION = 3
"""The second one had no numbers of events in ``namespaces``."""

APPLICATION_ID = 0x72634576
"""``rcEv``, in the head of the file: SQLite has a place for it."""

EXPECTED = f"an event log of schema {SCHEMA_VERSION}"

_MAGIC = b"SQLite format 3\0"
_ROWS_A_LOAD = 50_000
_ROWS_A_STATEMENT = (512, 32, 1)
"""SQLite lets go of the interpreter's lock once a statement, and a busy thread gives it back late."""

_MOST_PARAMETERS = 500
_LARGEST_INTEGER = (1 << 63) - 1

_SCHEMA = f"""
CREATE TABLE about (log_key BLOB NOT NULL, history_start INTEGER NOT NULL);
CREATE TABLE namespaces (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last_event_id NOT NULL,
    events INTEGER NOT NULL);
CREATE TABLE topics (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE visibilities (number INTEGER PRIMARY KEY, limits BLOB NOT NULL UNIQUE);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, topic INTEGER NOT NULL, visibility INTEGER NOT NULL,
    occurred_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL, event_id NOT NULL, prev_id, body BLOB NOT NULL
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""
_MARKS = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERTS = {rows: f"INSERT INTO events VALUES {', '.join([_MARKS] * rows)}" for rows in _ROWS_A_STATEMENT}  # noqa: S608
_NAMED = """
INSERT INTO namespaces VALUES (?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET last_event_id = excluded.last_event_id, events = excluded.events
"""
_FIRST_SEQ = "UPDATE about SET history_start = ? WHERE NOT EXISTS (SELECT * FROM namespaces)"
_FROM_SCHEMA_2 = (
    "ALTER TABLE namespaces ADD COLUMN events INTEGER NOT NULL DEFAULT 0",
    """
    UPDATE namespaces SET events = kept.events
    FROM (SELECT namespace, count(*) AS events FROM events GROUP BY namespace) AS kept WHERE kept.namespace = number
    """,
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
"""Counts the events that are kept: where none was purged these are all."""

_COLUMNS = """
SELECT group_concat(seq), group_concat(namespace), group_concat(topic), group_concat(visibility),
    group_concat(occurred_ns), group_concat(received_ns), group_concat(length(body))
FROM (SELECT * FROM events WHERE seq >= ? ORDER BY seq LIMIT ?)
"""
_SELECT = "SELECT * FROM events WHERE seq"

_NUMBERED = ("namespaces", "topics", "visibilities")
"""Tables of names, in the order of the columns that hold their numbers."""

_DECODER = msgspec.json.Decoder(list[int])


@dataclass(slots=True)
class _Connection:
    database: sqlite3.Connection
    lock: Lock


class EventTable:
    """The tables of ``file``; ``first_seq`` numbers the first event of a file that never had one.

    Raises ``UnusableLog`` for a file that is damaged or not an event log.
    """

    def __init__(self, file: Path, first_seq: int = 1) -> None:
        self._place = str(file)
        _check_magic(file)
        with self._refusing():
            self._writing = _connection(file)
            self._reading = self._writing
            try:
                self._prepare()
                if first_seq > 1:
                    self._writing.database.execute(_FIRST_SEQ, (first_seq,))
                sync(file.absolute().parent)
                self._reading = _connection(file)
                self.key, self._history_start = self._about()
            except BaseException:
                self.close()
                raise

    def namespaces(self) -> list[NamedRow]:
        """Return all namespaces, by number from 0 on."""
        with self._refusing():
            return [
                NamedRow(number, name, _natural(stored), events)
                for number, name, stored, events in self._numbered("namespaces")
            ]

    def topics(self) -> list[str]:
        """Return all topics, by number from 0 on."""
        with self._refusing():
            return [name for _, name in self._numbered("topics")]

    def visibilities(self) -> list[Visibility]:
        """Return all visibilities, by number from 0 on."""
        with self._refusing():
            return [decode_visibility(limits) for _, limits in self._numbered("visibilities")]

    def _numbered(self, table: str) -> list[Any]:
        rows = self._read(f"SELECT * FROM {table} ORDER BY number")  # noqa: S608 - one of our names
        if [row[0] for row in rows] != list(range(len(rows))):
            raise UnusableLog(self._place, f"{table} with gaps between their numbers", EXPECTED)
        return rows

    def load(self) -> EventColumns:
        """Return the index of the whole table; raises ``UnusableLog`` where the order has gaps."""
        columns = EventColumns(self._history_start)
        with self._refusing():
            known = {table: self._read(f"SELECT count(*) FROM {table}")[0][0] for table in _NUMBERED}  # noqa: S608 - ours
            while rows := self._numbers_from(columns.end_seq):
                seqs, *others = rows
                expected = np.arange(columns.end_seq, columns.end_seq + len(seqs))
                if not np.array_equal(seqs, expected):
                    at = int(np.argmax(seqs != expected))
                    found = f"event {seqs[at]} in the place of {expected[at]}"
                    raise UnusableLog(self._place, found, "events without gaps")
                for (table, count), numbers in zip(known.items(), others, strict=False):
                    if int(numbers.min()) < 0 or int(numbers.max()) >= count:
                        raise UnusableLog(self._place, f"events with a number that {table} do not have", EXPECTED)
                columns.extend(*others)
            columns.count_up_to(np.array([row.events for row in self.namespaces()], np.int64))
        return columns

    def _numbers_from(self, start: int) -> list[NDArray[np.int64]]:
        """Return the index's columns of some rows from ``start`` on, ``seq`` first; nothing where there are no more.

        SQLite joins each column to one text: that is faster than a tuple for each row.
        """
        texts = self._read(_COLUMNS, (start, _ROWS_A_LOAD))[0]
        if texts[0] is None:
            return []
        return [np.array(_DECODER.decode(f"[{joined}]"), np.int64) for joined in texts]

    def write(self, commit: Commit, history_start: int) -> None:
        """Append what is new, and delete what stands before ``history_start``; all of it or nothing."""
        with self._writing.lock, _transaction(self._writing.database) as database:
            database.executemany(_NAMED, [(*row[:2], _stored(row.last_event_id), row.events) for row in commit.named])
            database.executemany("INSERT INTO topics VALUES (?, ?)", commit.topics)
            limits = [(number, encode_visibility(it)) for number, it in commit.visibilities]
            database.executemany("INSERT INTO visibilities VALUES (?, ?)", limits)
            _insert(database, commit.rows)
            if history_start != self._history_start:
                database.execute("DELETE FROM events WHERE seq < ?", (history_start,))
                database.execute("UPDATE about SET history_start = ?", (history_start,))
        self._history_start = history_start

    def range(self, start: int, end: int) -> list[EventRow]:
        """Return the rows from ``start`` on, before ``end``, in order."""
        with self._refusing():
            return [_row(row) for row in self._read(f"{_SELECT} >= ? AND seq < ? ORDER BY seq", (start, end))]

    def rows(self, seqs: Sequence[int]) -> list[EventRow]:
        """Return the rows with these numbers, in order, without those that are not there."""
        found: list[EventRow] = []
        for at in range(0, len(seqs), _MOST_PARAMETERS):
            some = seqs[at : at + _MOST_PARAMETERS]
            marks = ", ".join("?" * len(some))
            with self._refusing():
                found += map(_row, self._read(f"{_SELECT} IN ({marks}) ORDER BY seq", some))
        return found

    def close(self) -> None:
        for connection in (self._reading, self._writing):
            with connection.lock:
                connection.database.close()

    def _prepare(self) -> None:
        """Check the schema, or make it."""
        database = self._writing.database
        ((application,),) = database.execute("PRAGMA application_id")
        ((version,),) = database.execute("PRAGMA user_version")
        ((tables,),) = database.execute("SELECT count(*) FROM sqlite_master")
        if (application, version, tables) == (0, 0, 0):
            with _transaction(database):
                for statement in _SCHEMA.split(";"):
                    database.execute(statement)
                database.execute("INSERT INTO about VALUES (?, 1)", (os.urandom(KEY_BYTES),))
                database.execute("INSERT INTO visibilities VALUES (0, ?)", (encode_visibility(EVERYBODY),))
        elif application != APPLICATION_ID:
            raise UnusableLog(self._place, "an SQLite database of another program", EXPECTED)
        elif version == SCHEMA_VERSION - 1:
            with _transaction(database):
                for statement in _FROM_SCHEMA_2:
                    database.execute(statement)
        elif version != SCHEMA_VERSION:
            raise UnusableLog(self._place, f"an event log of schema {version}", EXPECTED)

    def _about(self) -> tuple[bytes, int]:
        rows = self._read("SELECT log_key, history_start FROM about")
        if len(rows) != 1 or len(rows[0][0]) != KEY_BYTES or rows[0][1] < 1:
            raise UnusableLog(self._place, "no single row about the log", EXPECTED)
        key, history_start = rows[0]
        return key, history_start

    def _read(self, statement: str, parameters: Sequence[int] = ()) -> list[Any]:
        with self._reading.lock:
            return self._reading.database.execute(statement, parameters).fetchall()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn what SQLite says of a file into ``UnusableLog``."""
        try:
            yield
        except sqlite3.Error as error:
            raise UnusableLog(self._place, str(error), EXPECTED) from None
        except OSError as error:
            got = (error.strerror or str(error)).lower()
            raise UnusableLog(error.filename or self._place, got, "a place that can be written") from None
        except (TypeError, ValueError, OverflowError) as error:  # of msgspec, too
            if isinstance(error, UnusableLog):
                raise
            raise UnusableLog(self._place, f"rows of another form ({error})", EXPECTED) from None


def _check_magic(file: Path) -> None:
    try:
        if file.exists():
            with file.open("rb") as stream:
                head = stream.read(len(_MAGIC))
            if head not in {b"", _MAGIC}:
                raise UnusableLog(str(file), f"a file that begins with {head!r}", EXPECTED)
    except OSError as error:
        got = "a folder" if isinstance(error, IsADirectoryError) else (error.strerror or "no file").lower()
        raise UnusableLog(str(file), got, EXPECTED) from None


def _connection(file: Path) -> _Connection:
    database = sqlite3.connect(str(file.absolute()), timeout=60, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
    except BaseException:
        database.close()
        raise
    return _Connection(database, Lock())


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield database
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _stored(number: int) -> int | bytes:
    """Return a natural number as SQLite holds it: beyond 63 bits as big-endian bytes."""
    return number if number <= _LARGEST_INTEGER else number.to_bytes((number.bit_length() + 7) // 8, "big")


def _natural(stored: int | bytes) -> int:
    return stored if isinstance(stored, int) else int.from_bytes(stored, "big")


def _insert(database: sqlite3.Connection, rows: Sequence[EventRow]) -> None:
    at = 0
    while at < len(rows):
        size = next(size for size in _ROWS_A_STATEMENT if size <= len(rows) - at)
        some = rows[at : at + size]
        try:
            database.execute(_INSERTS[size], tuple(chain.from_iterable(some)))
        except OverflowError:
            database.execute(_INSERTS[size], tuple(chain.from_iterable(map(_storable, some))))
        at += size


def _storable(row: EventRow) -> tuple[Any, ...]:
    *numbers, event_id, prev_id, body = row
    return (*numbers, _stored(event_id), None if prev_id is None else _stored(prev_id), body)


def _row(stored: Any) -> EventRow:
    *numbers, event_id, prev_id, body = stored
    if isinstance(event_id, bytes) or isinstance(prev_id, bytes):
        return (*numbers, _natural(event_id), None if prev_id is None else _natural(prev_id), body)
    row: EventRow = stored
    return row
