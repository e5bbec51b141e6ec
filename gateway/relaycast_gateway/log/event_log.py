"""The event log: every event that came in, in one order, on disk.

Law: one thread writes, any thread appends and reads. ``seq`` is dense from the first one on and is never used twice,
whatever is purged and however the process ends. Only what is durable is returned, read or counted. An append that was
acknowledged survives the end of the process at any moment, and a loss of power as far as the disk keeps what it has
synced.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from threading import Lock
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from relaycast_gateway.clock import Clock, SystemClock
from relaycast_gateway.log.columns import ColumnSlice, RowFilter
from relaycast_gateway.log.event_table import EventTable
from relaycast_gateway.log.group_commit import Append, GroupCommit, Purge
from relaycast_gateway.log.memory_table import MemoryTable
from relaycast_gateway.log.numbering import Numbering
from relaycast_gateway.log.record_codec import encode_body
from relaycast_gateway.log.retention import Retention
from relaycast_gateway.log.rows import Table
from relaycast_gateway.log.unusable import DamagedEvent, LogClosed, UnusableLog
from relaycast_gateway.record import MOST_PUBLICATION_ID, EventDraft, EventRecord, Visibility
from relaycast_ledger.staged_file import alone_with

LOCK_SUFFIX = ".lock"

_LOGGER = logging.getLogger(__name__)


class EventLog:
    """An append-only log; ``EventLog.open`` makes one.

    >>> from relaycast_gateway.icrc16 import text
    >>> with EventLog.open() as log:
    ...     (record,) = log.append(EventDraft("com.example.hello", text("world"), b"", occurred_ns=0))
    ...     record.seq, log.read(after=0) == [record]
    (1, True)
    """

    def __init__(self, table: Table, *, place: str, clock: Clock, retention: Retention) -> None:
        self.place = place
        """The file, or ``memory``."""

        self._table = table
        self._clock = clock
        self._retention = retention
        self._held = ExitStack()
        self._numbering = Numbering(table, place)
        self._columns = table.load()
        self._last_seq = self._columns.end_seq - 1
        self._callbacks: dict[object, Callable[[int], None]] = {}
        self._closing = Lock()
        self._is_closed = False
        self._writer = GroupCommit(self._commit, clock=clock)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        clock: Clock | None = None,
        retention: Retention | None = None,
        first_seq: int = 1,
    ) -> "EventLog":
        """Open or make the log in the file ``path``; without one it is in memory and ends with ``close``.

        ``first_seq`` is the number of the first event of a log that never had one.
        Raises ``UnusableLog`` for a file that is damaged or no event log, and ``WorkFolderInUse`` where another
        process has it open.
        """
        clock, retention = clock or SystemClock(), retention or Retention()
        file = None if path is None else Path(path)
        with ExitStack() as held:
            if file is not None:
                _lock(file, held)
            table: Table = MemoryTable() if file is None else EventTable(file, first_seq)
            held.callback(table.close)
            log = cls(table, place="memory" if file is None else str(file), clock=clock, retention=retention)
            log._held = held.pop_all()
            return log

    @property
    def identity(self) -> bytes:
        """What tells this log from every other, 16 bytes."""
        return blake2b(self._table.key, digest_size=16, person=b"event log").digest()

    @property
    def clock(self) -> Clock:
        """What the log takes times of receipt from."""
        return self._clock

    @property
    def history_start(self) -> int:
        """The first event that is kept; the number after ``last_seq`` where none is."""
        return min(self._columns.first_seq, self._last_seq + 1)

    @property
    def last_seq(self) -> int:
        """The newest durable event, 0 before the first one."""
        return self._last_seq

    @property
    def index_bytes(self) -> int:
        """Bytes of memory that the columns of all events take."""
        return self._columns.memory_bytes

    def append(self, *drafts: EventDraft) -> list[EventRecord]:
        """Append events and return their records once they are durable; all of them or none.

        Callers that wait at the same time share one commit. ``ValueError`` for a draft that cannot be stored,
        ``LogClosed`` after ``close``; what the disk refuses is ``sqlite3.OperationalError``, and nothing was appended.
        """
        return self.append_soon(drafts).result()

    def append_soon(self, drafts: Sequence[EventDraft]) -> "Future[list[EventRecord]]":
        """Append events without waiting for the disk: the future has what ``append`` returns.

        Order is that of the calls. Blocks only while more than 64 MiB of events wait to be written.
        """
        future: Future[list[EventRecord]] = Future()
        future.set_running_or_notify_cancel()
        bodies = [encode_body(draft) for draft in drafts]
        if bodies:
            self._writer.submit(Append(drafts, bodies, future))
        else:
            self._check_open()
            future.set_result([])
        return future

    def read(
        self,
        after: int = 0,
        *,
        limit: int = 1_000,
        before: int | None = None,
        namespaces: Collection[str] | None = None,
        occurred_from: int | None = None,
        occurred_before: int | None = None,
        received_from: int | None = None,
        received_before: int | None = None,
    ) -> list[EventRecord]:
        """Return at most ``limit`` records in order: those with ``after < seq < before`` that are wanted.

        ``namespaces`` are exact names. Times are nanoseconds, from the first bound on and before the second. A cursor
        from before ``history_start`` reads on from there.
        """
        if limit < 0:
            raise ValueError(f"limit: got {limit}, expected 0 or more")
        known = self._numbering.numbers
        numbers = None if namespaces is None else tuple(known[it] for it in namespaces if it in known)
        wanted = RowFilter(numbers, occurred_from, occurred_before, received_from, received_before)
        self._check_open()
        while True:
            start, end = max(after + 1, self.history_start), self._last_seq + 1
            if before is not None:
                end = min(end, before)
            if wanted == RowFilter():
                end = min(end, start + limit)
                rows, expected = self._table.range(start, end), max(0, end - start)
            else:
                seqs = self._columns.select(start, end, limit, wanted)
                rows, expected = self._table.rows(seqs), len(seqs)
            if len(rows) == expected:
                return self._numbering.records(rows)
            # else a purge came between: its events are gone, and history starts later

    def read_sound(
        self, after: int = 0, *, limit: int, before: int | None = None, namespaces: Collection[str] | None = None
    ) -> list[EventRecord | DamagedEvent]:
        """Read like ``read``, with a ``DamagedEvent`` in the place of each event that cannot be decoded."""
        found: list[EventRecord | DamagedEvent] = []
        while len(found) < limit:
            try:
                found += self.read(after, limit=limit - len(found), before=before, namespaces=namespaces)
            except DamagedEvent as damaged:
                found += self.read(after, limit=limit, before=damaged.seq, namespaces=namespaces)
                found.append(damaged)
                after = damaged.seq
            else:
                break
        return found

    def get(self, seq: int) -> EventRecord | None:
        """Return the record with this number; ``None`` where there is none or retention dropped it."""
        self._check_open()
        if not self.history_start <= seq <= self._last_seq:
            return None
        return next(iter(self.records([seq])), None)

    def records(self, seqs: Sequence[int]) -> list[EventRecord]:
        """Return the records with these numbers, in the order given, without those that are not kept."""
        self._check_open()
        found = {record.seq: record for record in self._numbering.records(self._table.rows(seqs))}
        start, end = self.history_start, self._last_seq
        return [found[seq] for seq in seqs if start <= seq <= end and seq in found]

    def slice(self, start: int, end: int) -> tuple[int, ColumnSlice]:
        """Return the index's rows of durable events from ``start`` on, before ``end``, and the first one's number."""
        return self._columns.slice(max(start, self.history_start), min(end, self._last_seq + 1))

    def sizes(self, start: int, end: int) -> tuple[int, NDArray[np.int64]]:
        """Return the stored bytes of durable events from ``start`` on, before ``end``, and the first one's number."""
        return self._columns.sizes(max(start, self.history_start), min(end, self._last_seq + 1))

    @property
    def topics(self) -> Sequence[str]:
        """All topics by their number in ``slice``; it only grows, and has more than the events kept."""
        return self._numbering.topics

    @property
    def visibilities(self) -> Sequence[Visibility]:
        """All visibilities by their number in ``slice``; it only grows. The first one is ``EVERYBODY``."""
        return self._numbering.visibilities

    def topic_number(self, topic: str) -> int | None:
        """Return the number of a topic in ``slice``; ``None`` where no event ever had it."""
        return self._numbering.topic_numbers.get(topic)

    def visibility_number(self, visibility: Visibility) -> int | None:
        """Return the number of a visibility in ``slice``; ``None`` where no event ever had it."""
        return self._numbering.visibility_numbers.get(visibility)

    def by_pub_id(self, pub_id: int) -> EventRecord | None:
        """Return the record with this publication id; ``None`` where there is none or retention dropped it."""
        seq = self.seq_of(pub_id)
        return None if seq is None else self.get(seq)

    def seq_of(self, pub_id: int) -> int | None:
        """Return the number of the event with this publication id; ``None`` where there is none or it was dropped."""
        if not 0 < pub_id <= MOST_PUBLICATION_ID:
            return None
        seq = self._numbering.seq_of(pub_id)
        return seq if self.history_start <= seq <= self._last_seq else None

    def namespace_number(self, namespace: str) -> int | None:
        """Return the number of a namespace in ``slice``; ``None`` where it never had an event."""
        return self._numbering.numbers.get(namespace)

    def last_id(self, namespace: str) -> int | None:
        """Return the ``event_id`` of the newest event of a namespace, also when it was purged."""
        return self._numbering.last_ids.get(namespace)

    def count(self, namespace: str) -> int:
        """Return how many events a namespace ever had, purged ones counted."""
        return self._numbering.counts.get(namespace, 0)

    def ordinal(self, record: EventRecord) -> int | None:
        """Return the 1-based position of an event in its namespace, purged ones counted; ``None`` where it was purged.

        It is the same after each start.
        """
        return self._columns.ordinal(record.seq) if record.seq <= self._last_seq else None

    def connect(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call ``callback`` with ``last_seq`` after each commit, until what is returned is called.

        It is called in the writing thread and must not append. An exception of it is logged and goes no further.
        """
        token = object()
        self._callbacks[token] = callback
        return lambda: self._callbacks.pop(token, None) and None

    def purge(self) -> int:
        """Drop what retention does not keep, and return how many events went. Appends do so by themselves."""
        future: Future[int] = Future()
        self._writer.submit(Purge(future))
        return future.result()

    def export_parquet(self, path: str | PathLike[str]) -> int:
        """Write all durable events to a Parquet file, whose columns ``parquet_export`` lists; return their number.

        The file is there when all of it is; ``OSError`` where it cannot be written. Events that retention drops
        meanwhile may be missing.
        """
        from relaycast_gateway.log.parquet_export import write_events  # noqa: PLC0415 - loads pyarrow

        self._check_open()
        return write_events(Path(path), self._numbered_pages(self._last_seq + 1))

    def close(self) -> None:
        """Commit what was appended and give back the file; a second call does nothing."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._writer.close()
                self._held.close()

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<EventLog {self.place}: events {self.history_start} to {self._last_seq}>"

    def _numbered_pages(self, before: int) -> Iterator[list[tuple[EventRecord, int]]]:
        """Return the kept records up to ``before`` with their ordinals."""
        after = 0
        while page := self.read(after, before=before):
            ordinals = [(record, self.ordinal(record)) for record in page]
            yield [(record, ordinal) for record, ordinal in ordinals if ordinal is not None]
            after = page[-1].seq

    def _check_open(self) -> None:
        if self._is_closed:
            raise LogClosed

    def _commit(self, jobs: list[Append | Purge]) -> None:
        """Write jobs in one transaction and tell who waits; in the writing thread."""
        try:
            records, dropped = self._written([it for it in jobs if isinstance(it, Append)])
        except BaseException as error:
            for job in jobs:
                job.future.set_exception(error)
            return
        at = 0
        for job in jobs:
            if isinstance(job, Append):
                end = at + len(job.bodies)
                job.future.set_result(records[at:end])
                at = end
            else:
                job.future.set_result(dropped)
        for callback in list(self._callbacks.values()):
            try:
                callback(self._last_seq)
            except Exception:
                _LOGGER.exception("a callback of the event log failed")

    def _written(self, appends: Iterable[Append]) -> tuple[list[EventRecord], int]:
        """Return the records of the appended drafts, and how many events retention dropped."""
        columns, first = self._columns, self._columns.first_seq
        records, commit, ordinals = self._numbering.number(self._last_seq + 1, appends)
        if records:
            _, names, topics, seers, occurred_ns, received_ns, _, _, bodies = zip(*commit.rows, strict=True)
            columns.extend(names, topics, seers, occurred_ns, received_ns, list(map(len, bodies)), ordinals)
        try:
            kept_from = self._retention.first_kept(columns, self._clock.now_ns())
            if records or kept_from != first:
                self._table.write(commit, kept_from)
        except BaseException:
            columns.truncate(self._last_seq + 1)
            raise
        self._numbering.keep(commit)
        columns.drop_before(kept_from)
        self._last_seq += len(records)
        return records, kept_from - first


def _lock(file: Path, held: ExitStack) -> None:
    """Hold the file beside ``file`` that tells other processes to stay away; it is removed with ``held``."""
    lock = file.with_name(file.name + LOCK_SUFFIX)
    try:
        held.enter_context(alone_with(lock, works_on=file))
    except OSError as error:
        raise UnusableLog(str(file), (error.strerror or "no place").lower(), "a file that can be written") from None
    held.callback(lock.unlink, missing_ok=True)
