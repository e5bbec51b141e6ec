"""What delivery remembers: for each subscription a cursor and the exceptions to it.

Everything up to a cursor is acknowledged but for what stands in ``attempt`` (in flight or to be tried again) and in
``dead_letter``. A cursor of NULL is that of the head: a subscription that is up to date costs no write. The file is
SQLite in WAL mode, written in groups. A process that is killed loses at most the last group: what that said was
acknowledged is delivered again, nothing is skipped.
"""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from threading import RLock
from typing import Self

from relaycast_gateway.delivery.order import DeadLetter
from relaycast_gateway.log import UnusableLog

VERSION = 1

DEAD_LETTERS_KEPT = 100_000
"""For each subscription; the oldest events go first."""

_SCHEMA = """
CREATE TABLE head (only INTEGER PRIMARY KEY CHECK (only = 1), seq INTEGER NOT NULL) STRICT;
INSERT INTO head VALUES (1, 0);
CREATE TABLE subscription (
    id TEXT PRIMARY KEY, cursor INTEGER, delivered INTEGER NOT NULL, retries INTEGER NOT NULL,
    skipped INTEGER NOT NULL, last_error TEXT, gone TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE attempt (
    id TEXT NOT NULL, seq INTEGER NOT NULL, attempts INTEGER NOT NULL, first_ns INTEGER, due_ns INTEGER,
    PRIMARY KEY (id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE dead_letter (
    id TEXT NOT NULL, seq INTEGER NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL,
    given_up_ns INTEGER NOT NULL, PRIMARY KEY (id, seq)
) STRICT, WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class SavedAttempts:
    """An unfinished message: attempts that failed so far, the first one's time, and when the next is due."""

    seq: int
    attempts: int
    first_ns: int | None
    due_ns: int | None


@dataclass(frozen=True, slots=True)
class SavedSubscription:
    """A subscription's line; a ``cursor`` of ``None`` is the head's. ``gone`` is why it stopped."""

    id: str
    cursor: int | None
    delivered: int = 0
    retries: int = 0
    skipped: int = 0
    last_error: str | None = None
    gone: str | None = None


@dataclass(slots=True)
class SaveGroup:
    """What is written together."""

    head: int | None = None
    subscriptions: list[SavedSubscription] = field(default_factory=list)
    unfinished: list[tuple[str, SavedAttempts]] = field(default_factory=list)
    finished: list[tuple[str, int]] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)


class DeliveryStore:
    """The tables, in a file or in memory. Safe to use from several threads; one process at a time."""

    def __init__(self, connection: sqlite3.Connection, *, in_memory: bool, dead_letters_kept: int) -> None:
        self._connection = connection
        self._lock = RLock()
        self.dead_letters_kept = dead_letters_kept
        self._dead: dict[str, int] = dict(connection.execute("SELECT id, COUNT(*) FROM dead_letter GROUP BY id"))
        self.in_memory = in_memory

    @classmethod
    def open(cls, path: str | PathLike[str] | None = None, *, dead_letters_kept: int = DEAD_LETTERS_KEPT) -> Self:
        """Open or create the file; ``None`` is memory. ``ValueError`` for a file that cannot be one."""
        name = ":memory:" if path is None else fspath(path)
        try:
            connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False, timeout=0.2)
        except sqlite3.Error as error:
            raise ValueError(f"{name}: cannot be opened: {error}") from error
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _SCHEMA.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={VERSION}")
                version = VERSION
            connection.execute("COMMIT")
            if version != VERSION:
                raise UnusableLog(name, f"a database of version {version}", f"a delivery store of version {VERSION}")
            return cls(connection, in_memory=path is None, dead_letters_kept=dead_letters_kept)
        except sqlite3.OperationalError as error:
            connection.close()
            raise ValueError(f"{name}: cannot be used, another process may have it open: {error}") from error
        except sqlite3.DatabaseError as error:
            connection.close()
            raise ValueError(f"{name}: expected a delivery store: {error}") from error
        except ValueError:
            connection.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def leave_head(self) -> int | None:
        """Give the subscriptions that were up to date cursors of their own; return it, ``None`` where none was."""
        with self._lock, _Transaction(self._connection):
            (head,) = self._connection.execute("SELECT seq FROM head").fetchone()
            changed = self._connection.execute("UPDATE subscription SET cursor = ? WHERE cursor IS NULL", (head,))
        return int(head) if changed.rowcount else None

    def newest(self) -> int:
        """Return the highest cursor, 0 where there is none."""
        with self._lock:
            (newest,) = self._connection.execute("SELECT MAX(cursor) FROM subscription").fetchone()
        return newest or 0

    def ids(self) -> list[str]:
        """Return the subscriptions that something is known of."""
        with self._lock:
            return [row[0] for row in self._connection.execute("SELECT id FROM subscription ORDER BY id")]

    def load(self, subscription_id: str) -> tuple[SavedSubscription, list[SavedAttempts]] | None:
        """Return a subscription's line and its unfinished messages in order, ``None`` for an unknown one."""
        with self._lock:
            row = self._connection.execute(
                "SELECT id, cursor, delivered, retries, skipped, last_error, gone FROM subscription WHERE id = ?",
                (subscription_id,),
            ).fetchone()
            attempts = self._connection.execute(
                "SELECT seq, attempts, first_ns, due_ns FROM attempt WHERE id = ? ORDER BY seq", (subscription_id,)
            ).fetchall()
        return None if row is None else (SavedSubscription(*row), [SavedAttempts(*each) for each in attempts])

    def save(self, group: SaveGroup) -> None:
        """Write a group, all of it or nothing."""
        with self._lock, _Transaction(self._connection):
            execute = self._connection.executemany
            if group.head is not None:
                self._connection.execute("UPDATE head SET seq = ?", (group.head,))
            execute(
                "INSERT OR REPLACE INTO subscription VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (it.id, it.cursor, it.delivered, it.retries, it.skipped, it.last_error, it.gone)
                    for it in group.subscriptions
                ],
            )
            execute("DELETE FROM attempt WHERE id = ? AND seq = ?", group.finished)
            execute(
                "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?, ?)",
                [(id_, it.seq, it.attempts, it.first_ns, it.due_ns) for id_, it in group.unfinished],
            )
            self._bury(group.dead)

    def forget(self, subscription_ids: Iterable[str]) -> None:
        """Drop all that is known of subscriptions."""
        ids = [(each,) for each in subscription_ids]
        with self._lock, _Transaction(self._connection):
            for table in ("subscription", "attempt", "dead_letter"):
                self._connection.executemany(f"DELETE FROM {table} WHERE id = ?", ids)  # noqa: S608 - our own names
        for (each,) in ids:
            self._dead.pop(each, None)

    def dead_letters(self, subscription_id: str, *, after: int = 0, limit: int = 1_000) -> list[DeadLetter]:
        """Return dead letters in order of ``seq``, those behind ``after``, at most ``limit``."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT id, seq, reason, attempts, given_up_ns FROM dead_letter WHERE id = ? AND seq > ?"
                " ORDER BY seq LIMIT ?",
                (subscription_id, after, limit),
            ).fetchall()
        return [DeadLetter(*row) for row in rows]

    def dead_count(self, subscription_id: str) -> int:
        """Return the number of dead letters that are kept."""
        return self._dead.get(subscription_id, 0)

    def revive(self, subscription_id: str, seqs: Collection[int]) -> None:
        """Turn dead letters into messages to be tried now, as if for the first time."""
        rows = [(subscription_id, seq) for seq in seqs]
        with self._lock, _Transaction(self._connection):
            self._connection.executemany("DELETE FROM dead_letter WHERE id = ? AND seq = ?", rows)
            self._connection.executemany("INSERT OR REPLACE INTO attempt VALUES (?, ?, 0, NULL, NULL)", rows)
            self._count(subscription_id)

    def _bury(self, letters: Sequence[DeadLetter]) -> None:
        self._connection.executemany(
            "INSERT OR REPLACE INTO dead_letter VALUES (?, ?, ?, ?, ?)",
            [(it.subscription_id, it.seq, it.reason, it.attempts, it.given_up_ns) for it in letters],
        )
        self._connection.executemany(
            "DELETE FROM attempt WHERE id = ? AND seq = ?", [(it.subscription_id, it.seq) for it in letters]
        )
        for each in {it.subscription_id for it in letters}:
            too_many = self._count(each) - self.dead_letters_kept
            if too_many > 0:
                self._connection.execute(
                    "DELETE FROM dead_letter WHERE id = ?1 AND seq IN"
                    " (SELECT seq FROM dead_letter WHERE id = ?1 ORDER BY seq LIMIT ?2)",
                    (each, too_many),
                )
                self._dead[each] -= too_many

    def _count(self, subscription_id: str) -> int:
        (count,) = self._connection.execute(
            "SELECT COUNT(*) FROM dead_letter WHERE id = ?", (subscription_id,)
        ).fetchone()
        self._dead[subscription_id] = count
        return int(count)


class _Transaction:
    """Commits, or rolls back where an error came."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._roll_back()
            return
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Undo, where SQLite has not done so by itself, as it does on a full disk."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
