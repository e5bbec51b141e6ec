"""Brings the log's records to lanes: one read for all that are up to date, pages of their own for those behind.

A lane that is up to date costs nothing for records of namespaces that it does not name. One that is behind is queued
while its buffer is empty, and a step looks at a bounded number of records, so that an event loop is never held long.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from relaycast_gateway.delivery.lane import LEAST_BUFFER, Lane
from relaycast_gateway.delivery.recent_records import ReadableLog, RecentRecords
from relaycast_gateway.record import EventRecord

LARGEST_PAGE = 512
RECORDS_OF_A_STEP = 1_024


class RecordFeed:
    """Knows which lanes share the head and which are behind. ``on_fed`` is told of each lane that something came to."""

    def __init__(self, log: ReadableLog, head: int, *, on_fed: Callable[[Lane], None]) -> None:
        self._log = log
        self._on_fed = on_fed
        self._recent = RecentRecords(log, head)
        self._current: dict[str | None, dict[Lane, None]] = {}
        self._behind: deque[Lane] = deque()
        self._queued: set[Lane] = set()
        self._ahead: set[Lane] = set()

    @property
    def head(self) -> int:
        return self._recent.head

    @property
    def has_work(self) -> bool:
        return bool(self._behind) or self._log.last_seq > self.head

    def get(self, seq: int) -> EventRecord | None:
        """Return a record, ``None`` where retention dropped it."""
        return self._recent.get(seq)

    def join(self, lane: Lane) -> None:
        """Take up a lane where it stands: at the head, ahead of it, or behind."""
        if lane.scanned == self.head:
            self._share_head(lane)
        elif lane.scanned > self.head:
            self._ahead.add(lane)
        elif lane.wants_records and lane not in self._queued:
            self._queued.add(lane)
            self._behind.append(lane)

    def leave(self, lane: Lane) -> None:
        """Bring nothing more to a lane; it keeps its place."""
        self._depart(lane, self.head)
        self._ahead.discard(lane)
        if lane in self._queued:
            self._queued.remove(lane)
            self._behind.remove(lane)

    def step(self) -> None:
        """Hand out one page of new records, and bring some lanes that are behind forward.

        Raises the errors of the log; every lane keeps its place.
        """
        page = self._recent.next_page() if self._log.last_seq > self.head else ()
        if page:
            self._hand_out(page)
        room = RECORDS_OF_A_STEP
        while self._behind and room > 0:
            lane = self._behind[0]
            records = self._recent.read(lane.scanned, lane.page)
            self._behind.popleft()
            self._queued.remove(lane)
            room -= self._bring_forward(lane, records)

    def _hand_out(self, page: Sequence[EventRecord]) -> None:
        fed: dict[Lane, None] = {}
        for record in page:
            for lane in [it for it in self._ahead if it.scanned < record.seq]:
                self._ahead.remove(lane)
                self._share_head(lane)
                fed[lane] = None
            full = []
            for lane in chain(self._current.get(record.namespace, ()), self._current.get(None, ())):
                if not lane.has_room:
                    full.append(lane)
                elif lane.offer(record):
                    fed[lane] = None
            for lane in full:
                self._depart(lane, record.seq - 1)
        for lane in fed:
            self._on_fed(lane)

    def _bring_forward(self, lane: Lane, records: Sequence[EventRecord]) -> int:
        """Fill the buffer of a lane that is behind with records; return how many were read."""
        start = self._log.history_start
        if lane.scanned + 1 < start:
            lane.pass_over(min(start - 1, self.head))
        looked_at, fed = 0, False
        for record in records:
            if not lane.has_room:
                break
            if record.seq > lane.scanned + 1:
                lane.pass_over(record.seq - 1)
            fed |= lane.offer(record)
            looked_at += 1
        if not records:
            lane.pass_over(self.head)
        lane.page = LEAST_BUFFER if fed else min(2 * lane.page, LARGEST_PAGE)
        self.join(lane)
        if fed or lane.is_current:
            self._on_fed(lane)
        return looked_at + 1

    def _share_head(self, lane: Lane) -> None:
        lane.is_current = True
        for name in _names(lane):
            self._current.setdefault(name, {})[lane] = None

    def _depart(self, lane: Lane, seq: int) -> None:
        """Let a lane that shares the head stay behind at ``seq``."""
        if not lane.is_current:
            return
        lane.move_to(seq)
        lane.is_current = False
        for name in _names(lane):
            lanes = self._current[name]
            del lanes[lane]
            if not lanes:
                del self._current[name]


def _names(lane: Lane) -> Iterator[str | None]:
    return iter((None,) if lane.order.namespaces is None else lane.order.namespaces)
