"""Where canisters keep their state: one sqlite file beside the log, or memory.

Law: ``put`` and ``delete`` are visible to ``get`` and ``items`` at once. When ``flush`` returns, or the future of
``flush_soon`` is done, all earlier changes of all canisters are durable; if the process dies earlier, none of them is.
So a canister that answers after a flush never loses the state behind its answer, and changes that several canisters
make together are kept together. Flushes run in the order in which they were requested. The file may hold the addresses
of subscribers: only its owner may read it.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from os import PathLike, fspath
from typing import TypeVar

from relaycast_gateway.log.unusable import UnusableLog

_LOGGER = logging.getLogger(__name__)

APPLICATION_ID = 0x72634943
"""``rcIC``, in the head of the file: SQLite has a place for it."""

SCHEMA_VERSION = 1
"""Version of the file and of the values of all tables."""

EXPECTED = f"a store of canisters of schema {SCHEMA_VERSION}"
OWNER_ONLY = 0o600
NUMBER_BYTES = 8
MEMORY = "memory"
ROWS_A_STATEMENT = 128

Notes = dict[tuple[str, bytes], bytes | None]
"""Values by table and key, ``None`` for what is deleted."""

Row = TypeVar("Row")

_SCHEMA = f"""
CREATE TABLE entries (name TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (name, key))
    STRICT, WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""


def number_key(number: int) -> bytes:
    """Return the key of a number below 2^64: keys are in the order of their numbers."""
    return number.to_bytes(NUMBER_BYTES, "big")


class IcrcStore:
    """Tables of keys and values, both bytes; ``IcrcStore.open`` makes one. One thread uses it.

    >>> store = IcrcStore.open()
    >>> store.put("seen", number_key(7), b"yes")
    >>> store.flush()
    >>> store.get("seen", number_key(7))
    b'yes'
    """

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self.place = place
        """The file, or ``memory``."""

        self._connection = connection
        self._noted: Notes = {}
        self._flushing: Notes = {}
        """Changes that the current flush writes, or that the last one failed to write."""

        self._under_way: Future[None] | None = None
        self._writer = None if place == MEMORY else ThreadPoolExecutor(1, "icrc-store")
        self._before_flush: list[Callable[[], None]] = []
        self._is_closed = False

    @classmethod
    def open(cls, path: str | PathLike[str] | None = None) -> "IcrcStore":
        """Open or make the file ``path``; without one the store is in memory and ends with ``close``.

        ``UnusableLog`` for a file that is damaged, of another program or version, or open in another process.
        """
        place = MEMORY if path is None else fspath(path)
        with _refusing(place):
            if path is not None:
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY))
            connection = sqlite3.connect(
                ":memory:" if path is None else place, isolation_level=None, check_same_thread=False, timeout=0.2
            )
            try:
                _prepare(connection, place)
            except BaseException:
                connection.close()
                raise
        return cls(connection, place)

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value of a key, ``None`` where it has none."""
        for noted in (self._noted, self._flushing):
            if (table, key) in noted:
                return noted[table, key]
        with _refusing(self.place):
            row = self._connection.execute(
                "SELECT value FROM entries WHERE name = ? AND key = ?", (table, key)
            ).fetchone()
        return None if row is None else row[0]

    def items(self, table: str) -> list[tuple[bytes, bytes]]:
        """Return the keys of a table with their values, in the order of the keys."""
        with _refusing(self.place):
            found: dict[bytes, bytes] = dict(
                self._connection.execute("SELECT key, value FROM entries WHERE name = ?", (table,)).fetchall()
            )
        for (name, key), value in (*self._flushing.items(), *self._noted.items()):
            if name == table:
                if value is None:
                    found.pop(key, None)
                else:
                    found[key] = value
        return sorted(found.items())

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._noted[table, key] = value

    def delete(self, table: str, key: bytes) -> None:
        """Remove a key; one that is not there is no error."""
        self._noted[table, key] = None

    def take_back(self, table: str) -> None:
        """Discard the changes of a table since the last flush."""
        self._settle()
        self._noted = {place: value for place, value in self._noted.items() if place[0] != table}

    def before_flush(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` note what it has gathered, at the beginning of each ``flush``."""
        self._before_flush.append(callback)

    def flush(self) -> None:
        """Make all that was noted durable, in one transaction.

        ``sqlite3.Error`` where the disk refuses: nothing was written, and the next ``flush`` tries all of it again.
        """
        self._settle()
        for callback in self._before_flush:
            callback()
        self._write(self._noted)
        self._noted.clear()

    def flush_soon(self) -> "Future[None]":
        """Make all changes durable, in another thread if the store is a file.

        Changes made meanwhile belong to the next flush. The future raises ``sqlite3.Error`` if the write fails.
        """
        self._settle()
        for callback in self._before_flush:
            callback()
        self._flushing, self._noted = self._noted, {}
        if self._writer is not None:
            self._under_way = self._writer.submit(self._write, self._flushing)
        else:
            self._under_way = Future()
            try:
                self._write(self._flushing)
                self._under_way.set_result(None)
            except sqlite3.Error as error:
                self._under_way.set_exception(error)
        return self._under_way

    def _settle(self) -> None:
        """Wait for the current flush; if it failed, its changes are still pending."""
        if self._under_way is not None:
            if self._under_way.exception() is not None:
                self._noted = self._flushing | self._noted
            self._flushing, self._under_way = {}, None

    def _write(self, noted: "Notes") -> None:
        """Write in one transaction, many rows a statement, because each statement takes the GIL again."""
        if not noted:
            return
        gone = [place for place, value in noted.items() if value is None]
        kept = [(name, key, value) for (name, key), value in noted.items() if value is not None]
        with _transaction(self._connection) as connection:
            for rows in batched(gone, ROWS_A_STATEMENT):
                marks = ", ".join(["(?, ?)"] * len(rows))
                statement = f"DELETE FROM entries WHERE (name, key) IN (VALUES {marks})"  # noqa: S608 - marks
                connection.execute(statement, tuple(chain.from_iterable(rows)))
            for entries in batched(kept, ROWS_A_STATEMENT):
                marks = ", ".join(["(?, ?, ?)"] * len(entries))
                statement = f"INSERT OR REPLACE INTO entries VALUES {marks}"  # noqa: S608 - marks
                connection.execute(statement, tuple(chain.from_iterable(entries)))

    def try_flush(self) -> bool:
        """Flush, and return whether the disk took it; where it refuses, that is logged and the next ``flush`` tries."""
        try:
            self.flush()
        except sqlite3.Error as error:
            _LOGGER.error("canisters' store: cannot be written: %s", error)
            return False
        return True

    def dump(self) -> list[tuple[str, bytes, bytes]]:
        """Return all that is durable: tables, keys and values in order."""
        self._settle()
        with _refusing(self.place):
            return self._connection.execute("SELECT name, key, value FROM entries ORDER BY name, key").fetchall()

    def close(self) -> None:
        """Flush, and give back the file; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            try:
                self.flush()
            finally:
                if self._writer is not None:
                    self._writer.shutdown()
                self._connection.close()


def _prepare(connection: sqlite3.Connection, place: str) -> None:
    """Take the file for this process and check its schema, or make it."""
    ((application,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    is_new = (application, version, tables) == (0, 0, set())
    if not is_new and application != APPLICATION_ID:
        raise UnusableLog(place, "an SQLite database of another program", EXPECTED)
    if not is_new and (version, tables) != (SCHEMA_VERSION, {"entries"}):
        raise UnusableLog(place, f"a store of schema {version} with the tables {sorted(tables)}", EXPECTED)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    with _transaction(connection):  # of a file that another process has open, too: it is refused here
        if is_new:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)


def batched(rows: Sequence[Row], most: int) -> Iterator[Sequence[Row]]:
    """Yield ``rows`` in parts of at most ``most``."""
    return (rows[at : at + most] for at in range(0, len(rows), most))


@contextmanager
def _refusing(place: str) -> Iterator[None]:
    """Turn what SQLite or the disk says of a file into ``UnusableLog``."""
    try:
        yield
    except sqlite3.Error as error:
        raise UnusableLog(place, str(error), EXPECTED) from None
    except OSError as error:
        raise UnusableLog(place, (error.strerror or "no place").lower(), "a file that can be written") from None


@contextmanager
def stored_rows(store: IcrcStore, what: str) -> Iterator[None]:
    """Turn what is wrong with values that are read into ``UnusableLog``: they were written by somebody else."""
    try:
        yield
    except (ValueError, TypeError, KeyError, OverflowError) as error:  # of msgspec, too
        if isinstance(error, UnusableLog):
            raise
        raise UnusableLog(store.place, f"{what} of another form ({error})", EXPECTED) from None


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
