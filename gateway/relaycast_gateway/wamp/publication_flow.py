"""Publications on their way: into the log where their topic has a history, then to their receivers.

Law: what is stored is delivered after it is durable, in the log's order, and each event once, whether a client, a
chain or another face has appended it. The publications of one session are delivered in the order in which they came,
stored or not. Events that the log refuses are delivered to nobody.

The publications of one turn of the event loop share one append. While ``PAUSE_AT`` bytes of them wait for the disk, the
router stops reading from sessions that go on publishing. What it has already read waits too, up to ``MOST_WAITING``,
and is refused beyond that. A turn of the event loop delivers a bounded number of bytes.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol

import numpy as np

from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventDraft, EventRecord
from relaycast_gateway.wamp.client.session import ClientSession
from relaycast_gateway.wamp.errors import UNAVAILABLE, WampError
from relaycast_gateway.wamp.messages import Arguments, Details
from relaycast_gateway.wamp.publication_options import PublicationOptions

LEAST_BYTES = 512
"""Smallest number of bytes that a publication counts as; a longer one counts as its message."""

PAUSE_AT = 4 << 20
MOST_WAITING = 32 << 20
"""Bytes; below the 64 MiB at which the log makes writers wait, because the event loop must not wait."""

BYTES_OF_A_STEP = 512 << 10
"""Bytes of publications delivered in one turn of the event loop, plus the rest of a batch."""

RECORDS_OF_A_STEP = 512
"""Events of other faces read in one turn of the event loop, at most ``BYTES_OF_A_STEP`` of them."""

ROWS_A_LOOK = 65_536
"""Events of others whose topics are looked at together."""

_LOGGER = logging.getLogger(__name__)


class ClientPublication:
    """A publication that was accepted."""

    __slots__ = ("args", "bytes", "details", "draft", "kwargs", "options", "request", "session", "topic")

    def __init__(
        self,
        session: ClientSession,
        request: int,
        topic: str,
        args: Arguments,
        kwargs: Details | None,
        options: PublicationOptions,
        details: Details,
        draft: EventDraft | None,
    ) -> None:
        self.session = session
        self.request = request
        self.topic = topic
        self.args = args
        self.kwargs = kwargs
        self.options = options
        self.details = details
        self.draft = draft
        """How it is stored; ``None`` where it is not."""

        self.bytes = max(LEAST_BYTES, session.message_bytes)


class PublicationOutlet(Protocol):
    """Where publications come out."""

    @property
    def is_heard(self) -> bool:
        """Whether anybody is subscribed to anything."""
        ...

    def is_wanted(self, topic: str, /) -> bool:
        """Return whether anybody is subscribed to what the log knows as ``topic``."""
        ...

    def deliver(self, publication: ClientPublication, pub_id: int | None, /) -> None:
        """Send a publication to its receivers and acknowledge it; without ``pub_id`` it was not stored."""
        ...

    def deliver_record(self, record: EventRecord, /) -> None:
        """Send an event that did not come through this flow."""
        ...

    def reject(self, publication: ClientPublication, error: WampError, /) -> None:
        """Tell that a publication could not be stored."""
        ...


class _Batch:
    """The publications of one append, and those of the same sessions that must not overtake them."""

    __slots__ = ("bytes", "future", "items")

    def __init__(self, items: list[ClientPublication]) -> None:
        self.items = items
        self.bytes = sum(item.bytes for item in items)
        self.future: Future[list[EventRecord]] = Future()


class PublicationFlow:
    """The way of one realm's publications through ``log``, between ``start`` and ``stop``."""

    def __init__(self, log: EventLog, outlet: PublicationOutlet) -> None:
        self._log = log
        self._outlet = outlet
        self._loop: asyncio.AbstractEventLoop | None = None
        self._disconnect: Callable[[], None] = lambda: None
        self._open: _Batch | None = None
        self._in_flight: deque[_Batch] = deque()
        self._last_of: dict[ClientSession, _Batch] = {}
        self._paused: dict[ClientSession, None] = {}
        self._waiting = self._waiting_bytes = 0
        self._seen = log.last_seq
        self._durable = self._seen
        self._is_woken = False

    @property
    def waiting(self) -> int:
        """Publications that wait for the disk, or for one before them that does."""
        return self._waiting

    def start(self) -> None:
        """Deliver what the log gets from now on."""
        self._loop = asyncio.get_running_loop()
        self._seen = self._durable = self._log.last_seq
        self._disconnect = self._log.connect(self._told)

    async def stop(self) -> None:
        """Store and deliver what was accepted, and nothing after that."""
        self._flush()
        while self._in_flight:
            with suppress(Exception):
                await asyncio.wrap_future(self._in_flight[-1].future)
            self._walk()
        self._disconnect()
        self._loop = None

    def publish(self, publication: ClientPublication) -> None:
        """Take a publication; ``WampError`` where too many wait already."""
        session = publication.session
        batch = self._open
        if publication.draft is None:
            batch = self._last_of.get(session)
            if batch is None:
                self._outlet.deliver(publication, None)
                return
        elif self._loop is None:
            raise WampError(UNAVAILABLE, "the router stores nothing now")
        if self._waiting_bytes + publication.bytes > PAUSE_AT:
            self._hold_back(session, publication.bytes)
        if batch is None:
            batch = self._open = _Batch([])
            assert self._loop is not None
            self._loop.call_soon(self._flush)
        batch.items.append(publication)
        batch.bytes += publication.bytes
        self._last_of[session] = batch
        self._waiting += 1
        self._waiting_bytes += publication.bytes

    def forget(self, session: ClientSession) -> None:
        """Hold a session back no more that has ended; what it published before is still delivered."""
        self._paused.pop(session, None)

    def _hold_back(self, session: ClientSession, more_bytes: int) -> None:
        if self._waiting and self._waiting_bytes + more_bytes > MOST_WAITING:
            raise WampError(UNAVAILABLE, f"publications of {MOST_WAITING:,} bytes wait to be stored")
        if session not in self._paused:
            self._paused[session] = None
            session.pause_reading()

    def _flush(self) -> None:
        """Hand what was published in this turn to the log."""
        batch, self._open = self._open, None
        if batch is not None:
            self._append(batch)

    def _append(self, batch: _Batch) -> None:
        try:
            batch.future = self._log.append_soon([it.draft for it in batch.items if it.draft is not None])
        except ValueError as error:
            if len(batch.items) > 1:  # one of them cannot be stored: the others can
                for item in batch.items:
                    alone = self._last_of[item.session] = _Batch([item])
                    self._append(alone)
                return
            batch.future.set_exception(error)
        except Exception as error:
            batch.future.set_exception(error)
        self._in_flight.append(batch)
        batch.future.add_done_callback(self._wake_on_failure)

    def _told(self, last_seq: int) -> None:
        """Take note of a commit; in the log's writing thread, after the commit's futures are done."""
        self._durable = last_seq
        self._wake()

    def _wake_on_failure(self, future: "Future[list[EventRecord]]") -> None:
        if future.exception() is not None or not future.result():
            self._wake()

    def _wake(self) -> None:
        loop = self._loop
        if not self._is_woken and loop is not None:
            self._is_woken = True
            loop.call_soon_threadsafe(self._walk)

    def _walk(self) -> None:
        """Deliver what has become durable, in the log's order."""
        self._is_woken = False
        if self._loop is None:
            return
        durable = self._durable  # INVARIANT: all own events up to here are in futures that are done
        room = BYTES_OF_A_STEP
        while self._in_flight and self._in_flight[0].future.done():
            if room <= 0:
                self._wake()
                return
            batch = self._in_flight[0]
            room -= batch.bytes
            error = batch.future.exception()
            records = [] if error is not None else batch.future.result()
            if records:
                if not self._deliver_others(records[0].seq):
                    return
                self._seen = records[-1].seq
            self._in_flight.popleft()
            if error is None:
                self._deliver(batch, iter(records))
            else:
                self._reject(batch, error)
        if durable > self._seen:
            self._deliver_others(durable + 1)
        if self._paused and self._waiting_bytes <= PAUSE_AT // 2:
            paused, self._paused = self._paused, {}
            for session in paused:
                session.resume_reading()

    def _deliver(self, batch: _Batch, records: Iterator[EventRecord]) -> None:
        for item in batch.items:  # may grow meanwhile
            self._deliver_one(item, None if item.draft is None else next(records).pub_id)
        self._let_go(batch)

    def _deliver_one(self, item: ClientPublication, pub_id: int | None) -> None:
        try:
            self._outlet.deliver(item, pub_id)
        except Exception:
            _LOGGER.exception("an event of %s could not be delivered", item.topic)

    def _reject(self, batch: _Batch, error: BaseException) -> None:
        _LOGGER.error("publications could not be stored: %s", error)
        refusal = WampError(UNAVAILABLE, f"the event could not be stored: {error}")
        for item in batch.items:
            if item.draft is None:
                self._deliver_one(item, None)
            else:
                self._outlet.reject(item, refusal)
        self._let_go(batch)

    def _let_go(self, batch: _Batch) -> None:
        """Let later publications of the batch's sessions go their own way."""
        self._waiting -= len(batch.items)
        self._waiting_bytes -= batch.bytes
        for session in {item.session for item in batch.items}:
            if self._last_of.get(session) is batch:
                del self._last_of[session]

    def _deliver_others(self, before: int) -> bool:
        """Deliver the events of others before an event; return whether that is done, or goes on in the next turn."""
        room = RECORDS_OF_A_STEP
        while (start := self._seen + 1) < before:
            if not self._outlet.is_heard:
                self._seen = before - 1
                break
            if not room:
                self._wake()
                return False
            end = min(before, start + ROWS_A_LOOK)
            wanted = self._wanted(start, end)
            few = min(room, self._fitting(wanted))
            self._seen = wanted[few - 1] if len(wanted) > few else end - 1
            records = self._log.records(wanted[:few])
            room = 0 if len(wanted) > few else room - len(records)
            for record in records:
                try:
                    self._outlet.deliver_record(record)
                except Exception:
                    _LOGGER.exception("event %d could not be delivered", record.seq)
        return True

    def _fitting(self, wanted: Sequence[int]) -> int:
        """Return how many of these events one turn of the event loop reads, at least one."""
        if not wanted:
            return 0
        first, sizes = self._log.sizes(wanted[0], wanted[-1] + 1)
        sums = np.cumsum(sizes[[max(0, seq - first) for seq in wanted]] + LEAST_BYTES) if len(sizes) else sizes
        return max(1, int(np.searchsorted(sums, BYTES_OF_A_STEP, side="right")))

    def _wanted(self, start: int, end: int) -> list[int]:
        """Return the events from ``start`` on, before ``end``, whose topic somebody is subscribed to."""
        first, rows = self._log.slice(start, end)
        topics = self._log.topics
        wanted = [number for number in np.unique(rows.topic).tolist() if self._outlet.is_wanted(topics[number])]
        if not wanted:
            return []
        found: list[int] = (np.flatnonzero(np.isin(rows.topic, wanted)) + first).tolist()
        return found
