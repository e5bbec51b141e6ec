"""The newest records of the log, read once and shared by all subscriptions that are nearly up to date."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

from relaycast_gateway.record import EventRecord

RECENT = 1_024
"""Records kept in memory."""

PAGE = 512
"""Records read from the log at a time."""

OLDER_PAGES = 16
"""Pages from before those, kept for other subscriptions that come the same way."""


class ReadableLog(Protocol):
    """What delivery asks of the event log."""

    @property
    def history_start(self) -> int: ...

    @property
    def last_seq(self) -> int: ...

    def read(self, after: int = 0, *, limit: int = 1_000) -> Sequence[EventRecord]:
        """Return durable records behind ``after`` in order."""
        ...

    def get(self, seq: int) -> EventRecord | None: ...

    def connect(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call back with ``last_seq`` after each commit, from any thread, until disconnected."""
        ...


class RecentRecords:
    """Reads the log from ``head`` on and keeps the last records.

    INVARIANT: the records kept have no gap between them and end at ``head``.
    """

    def __init__(self, log: ReadableLog, head: int) -> None:
        self._log = log
        self._records: list[EventRecord] = []
        self._older: OrderedDict[tuple[int, int], Sequence[EventRecord]] = OrderedDict()
        self.head = head

    def next_page(self) -> Sequence[EventRecord]:
        """Return the records behind ``head``, at most a page, and move ``head`` behind them."""
        page = self._log.read(self.head, limit=PAGE)
        if not page:
            return page
        if self._records and page[0].seq != self.head + 1:
            self._records.clear()  # retention dropped what lies between
        self._records.extend(page)
        if len(self._records) >= 2 * RECENT:
            del self._records[:-RECENT]
        self.head = page[-1].seq
        return page

    def read(self, after: int, limit: int) -> Sequence[EventRecord]:
        """Return kept records behind ``after``, none of them behind ``head``: from memory where they are there."""
        after = max(after, self._log.history_start - 1)  # memory may still hold records that retention dropped
        if after >= self.head:
            return ()
        if self._records and after + 1 >= self._records[0].seq:
            start = after + 1 - self._records[0].seq
            return self._records[start : start + limit]
        page = self._older.get((after, limit))
        if page is None:
            page = self._log.read(after, limit=min(limit, self.head - after))
            page = [record for record in page if record.seq <= self.head]
            self._older[after, limit] = page
            if len(self._older) > OLDER_PAGES:
                self._older.popitem(last=False)
        else:
            self._older.move_to_end((after, limit))
        return page

    def get(self, seq: int) -> EventRecord | None:
        """Return one record, ``None`` where retention dropped it."""
        if self._records and self._records[0].seq <= seq <= self.head:
            return self._records[seq - self._records[0].seq]
        return self._log.get(seq)
