"""Where subscriptions stand: sqlite in a file beside the log, or in memory.

Law: what ``put`` and ``delete`` return from is durable, whole or not at all. The file holds secrets: nobody but its
owner may read it.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Iterable
from os import PathLike, fspath

from relaycast_gateway.cloudevents.subscription import EventSubscription
from relaycast_gateway.log import UnusableLog

OWNER_ONLY = 0o600

MARKS_KEPT = 8
"""Marks stored for each subscription; a mark is a place in the log and the number of events generated up to it."""

VERSION = 1

REALIZED = frozenset({"config", "delivery", "protocol", "protocolsettings", "sink"})
"""Members that every subscription has."""

_SCHEMA = f"""
PRAGMA user_version = {VERSION};
CREATE TABLE IF NOT EXISTS subscriptions (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, revision INTEGER NOT NULL, created_ns INTEGER NOT NULL,
    start_seq INTEGER NOT NULL, counted_from INTEGER NOT NULL, members TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (
    id TEXT NOT NULL, seq INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (id, seq)
) WITHOUT ROWID;
"""


class SubscriptionStore:
    """Subscriptions by id; ``path`` of ``None`` keeps them in memory alone. Safe to call from several threads."""

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self.is_durable = path is not None
        if path is not None:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY))
        self._place = "memory" if path is None else fspath(path)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:" if path is None else path, check_same_thread=False)
        self._check_version()
        if path is not None:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_SCHEMA)

    def _check_version(self) -> None:
        """Raise ``UnusableLog`` for a database of another program or another version, before anything is written."""
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        tables = frozenset(
            name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        )
        if (version, tables) not in {(0, frozenset()), (VERSION, frozenset({"subscriptions", "marks"}))}:
            self._connection.close()
            raise UnusableLog(
                self._place, "another program's database, or another version", f"subscriptions of version {VERSION}"
            )

    def all(self) -> list[EventSubscription]:
        """Return every subscription in the order of ids, which is that of their creation; raises ``UnusableLog``."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT id, owner, revision, created_ns, start_seq, counted_from, members"
                " FROM subscriptions ORDER BY id"
            ).fetchall()
        found = []
        for name, owner, revision, created_ns, start_seq, counted_from, text in rows:
            try:
                members = json.loads(text)
            except ValueError:
                members = None
            if not isinstance(members, dict) or not members.keys() >= REALIZED:
                raise UnusableLog(self._place, f"subscription {name!r} without its members", "subscriptions as stored")
            found.append(EventSubscription(name, owner, revision, created_ns, start_seq, counted_from, members))
        return found

    def put(self, subscription: EventSubscription, *, forgets_marks: bool = False) -> None:
        """Store a subscription, in place of the one with its id."""
        it = subscription
        members = json.dumps(dict(it.members), separators=(",", ":"))
        row = (it.id, it.owner, it.revision, it.created_ns, it.start_seq, it.counted_from, members)
        with self._lock, self._connection:
            self._connection.execute("INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            if forgets_marks:
                self._connection.execute("DELETE FROM marks WHERE id = ?", (it.id,))

    def delete(self, subscription_id: str) -> None:
        """Remove a subscription and all that was noted about it."""
        with self._lock, self._connection:
            self._connection.execute("DELETE FROM subscriptions WHERE id = ?", (subscription_id,))
            self._connection.execute("DELETE FROM marks WHERE id = ?", (subscription_id,))

    def marks(self, subscription_id: str) -> list[tuple[int, int]]:
        """Return places in the log, each with the number of events that were generated up to it."""
        with self._lock:
            return self._connection.execute(
                "SELECT seq, count FROM marks WHERE id = ? ORDER BY seq", (subscription_id,)
            ).fetchall()

    def note_marks(self, subscription_id: str, marks: Iterable[tuple[int, int]]) -> None:
        """Replace the places of a subscription by ``marks``."""
        rows = [(subscription_id, seq, count) for seq, count in marks]
        with self._lock, self._connection:
            self._connection.execute("DELETE FROM marks WHERE id = ?", (subscription_id,))
            self._connection.executemany("INSERT INTO marks VALUES (?, ?, ?)", rows[-MARKS_KEPT:])

    def close(self) -> None:
        with self._lock:
            self._connection.close()
