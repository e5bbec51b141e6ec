"""One subscription's place in the log: what it was offered, what is unfinished, what may start next.

A lane does no work by itself: it has no task, no timer and no connection. ``EventDeliveries`` drives it.

INVARIANT: a record up to ``scanned`` was selected or passed over once. A selected one is in ``_buffer`` until it
starts, then in ``unfinished`` until it is acknowledged or becomes a dead letter. All in ``_buffer`` come after all
those in ``unfinished`` that were never saved.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum, auto
from itertools import islice

from sortedcontainers import SortedDict

from relaycast_gateway.clock import Alarm
from relaycast_gateway.delivery.circuit import Circuit, CircuitLimits, CircuitPhase
from relaycast_gateway.delivery.high_water import HighWater
from relaycast_gateway.delivery.order import DeadLetter, DeliveryOrder, DeliveryState, DeliveryStatus
from relaycast_gateway.delivery.store import DEAD_LETTERS_KEPT, SavedAttempts, SavedSubscription, SaveGroup
from relaycast_gateway.record import EventRecord

LEAST_BUFFER = 16
"""Selected records that wait for their start; as many as the window where that is larger."""


def says(error: Exception) -> str:
    """Return why an event cannot be delivered; texts of other errors may contain a secret."""
    return str(error) if type(error) is ValueError else type(error).__name__


class MessagePhase(Enum):
    """State of a message that is not finished."""

    READY = auto()
    IN_FLIGHT = auto()
    WAITING = auto()


class Unfinished:
    """A message that was begun: neither acknowledged nor given up."""

    __slots__ = ("alarm", "attempts", "due_ns", "first_ns", "phase", "record", "seq")

    def __init__(self, seq: int, record: EventRecord | None = None, saved: SavedAttempts | None = None) -> None:
        self.seq = seq
        self.record = record
        self.attempts = 0 if saved is None else saved.attempts
        self.first_ns = None if saved is None else saved.first_ns
        self.due_ns = None if saved is None else saved.due_ns
        self.phase = MessagePhase.READY if self.due_ns is None else MessagePhase.WAITING
        self.alarm: Alarm | None = None


class Lane:
    """A subscription as delivery works on it."""

    def __init__(
        self,
        order: DeliveryOrder,
        saved: SavedSubscription,
        unfinished: Sequence[SavedAttempts],
        *,
        limits: CircuitLimits,
        buffered: HighWater,
        dead: int = 0,
        most_dead: int = DEAD_LETTERS_KEPT,
    ) -> None:
        self.id = order.subscription_id
        self.order = order
        assert saved.cursor is not None
        self.scanned = saved.cursor
        """The last record looked at. A lane that ``is_current`` shares the head: see ``move_to``."""

        self.is_current = False
        self.is_removed = False
        self.gone = saved.gone
        self.unfinished: SortedDict[int, Unfinished] = SortedDict(
            (each.seq, Unfinished(each.seq, saved=each)) for each in unfinished
        )
        self.in_flight = 0
        self.holds: set[Alarm] = set()
        """Nothing starts before all of them rang."""

        self.circuit = Circuit(limits)
        self.circuit_alarm: Alarm | None = None
        self.page = LEAST_BUFFER
        """Records to read at a time while behind the head: more where few are selected."""

        self._buffer: deque[EventRecord] = deque()
        self._buffered = buffered
        self.filter_failures: dict[int, str] = {}
        """Reasons by ``seq``, of records in the buffer."""

        self._settled = self.scanned
        """The highest ``seq`` that a saved line has to account for one by one."""

        self._saved_cursor = self.scanned
        self._touched: set[int] = set()
        self._dead: list[DeadLetter] = []
        self.delivered = saved.delivered
        self.retries = saved.retries
        self.skipped = saved.skipped
        self.dead = dead
        self._most_dead = most_dead
        self.last_error = saved.last_error

    # Records come in.

    @property
    def has_room(self) -> bool:
        """Whether the buffer takes another record."""
        return len(self._buffer) < max(LEAST_BUFFER, self.order.window)

    @property
    def wants_records(self) -> bool:
        """Whether the buffer is empty while the log goes on behind ``scanned``."""
        return not self._buffer and not self.is_current and self.gone is None

    def offer(self, record: EventRecord) -> bool:
        """Look at the next record; return whether it was selected. ``has_room`` must hold.

        One that the filter fails on is taken as well, to become a dead letter in its turn.
        """
        self.scanned = record.seq
        order = self.order
        if order.namespaces is not None and record.namespace not in order.namespaces:
            return False
        try:
            if not order.selects(record):
                return False
        except Exception as error:  # one broken filter must not stop the others
            self.filter_failures[record.seq] = f"the filter failed: {says(error)}"
        self._buffer.append(record)
        self._buffered.add(1)
        return True

    def move_to(self, head: int) -> None:
        """Bring ``scanned`` up to the head, if the lane shares it: nothing up to there was selected for it."""
        if self.is_current:
            self.scanned = max(self.scanned, head)

    def pass_over(self, seq: int) -> None:
        """Go on behind ``seq``: retention dropped records before they were looked at."""
        self.skipped += seq - self.scanned
        self.scanned = seq

    # Messages go out.

    def next_start(self) -> Unfinished | None:
        """Return the message to start now, ``None`` where none may start."""
        message = self._startable()
        if isinstance(message, EventRecord):
            self._buffer.popleft()
            self._buffered.add(-1)
            message = self.unfinished[message.seq] = Unfinished(message.seq, message)
        if message is not None:
            message.phase = MessagePhase.IN_FLIGHT
            self.in_flight += 1
        return message

    @property
    def may_start(self) -> bool:
        """Whether ``next_start`` has a message."""
        return self._startable() is not None

    def _startable(self) -> Unfinished | EventRecord | None:
        window = self.order.window
        if self.gone is not None or self.holds or self.in_flight >= window:
            return None
        if not self.circuit.may_start(self.in_flight):
            return None
        for message in islice(self.unfinished.values(), window):
            if message.phase is MessagePhase.READY:
                found: Unfinished = message
                return found
        return self._buffer[0] if self._buffer and len(self.unfinished) < window else None

    def accepted(self, message: Unfinished) -> None:
        """Take the sink's acknowledgement."""
        self.in_flight -= 1
        self.delivered += 1
        self.last_error = None
        self._finish(message.seq)

    def answered(self) -> None:
        """Close the circuit: the sink is there."""
        self.circuit.answered()
        if self.circuit_alarm is not None:
            self.circuit_alarm.cancel()
            self.circuit_alarm = None

    def wait_for(self, message: Unfinished, reason: str, due_ns: int) -> None:
        """Keep a message that failed for another attempt."""
        self.in_flight -= 1
        self.retries += 1
        self.last_error = reason
        message.due_ns = due_ns
        message.phase = MessagePhase.WAITING
        self._touch(message.seq)

    def _wait_no_more(self, message: Unfinished) -> None:
        if message.alarm is not None:
            message.alarm.cancel()
            message.alarm = None
        message.due_ns = None
        message.phase = MessagePhase.READY
        self._touch(message.seq)

    def put_back(self, message: Unfinished) -> None:
        """Take back a message whose attempt was broken off: it counts for nothing."""
        self.in_flight -= 1
        message.phase = MessagePhase.READY

    def give_up(self, message: Unfinished, reason: str, *, now_ns: int) -> None:
        """Turn a message in flight into a dead letter."""
        self.in_flight -= 1
        self.last_error = reason
        self.dead = min(self.dead + 1, self._most_dead)  # the store drops the oldest
        self._dead.append(DeadLetter(self.id, message.seq, reason, message.attempts, now_ns))
        self._finish(message.seq)

    def revive(self, seqs: Sequence[int]) -> None:
        """Take dead letters as messages to be tried now; the store has done so."""
        for seq in seqs:
            self.unfinished[seq] = Unfinished(seq)
        self.dead -= len(seqs)

    def replace(self, order: DeliveryOrder) -> None:
        """Go on under another order: what was selected but not begun is looked at again.

        What an old sink asked to wait for does not hold for a new one.
        """
        if self.holds and order.target != self.order.target:
            for message in self.unfinished.values():
                if message.phase is MessagePhase.WAITING:
                    self._wait_no_more(message)
        if self._buffer:
            self.scanned = self._buffer[0].seq - 1
            self.is_current = False
            self._buffered.add(-len(self._buffer))
            self._buffer.clear()
            self.filter_failures.clear()
        for alarm in self.holds:
            alarm.cancel()
        self.holds.clear()
        self.order = order
        self.gone = None
        self.answered()

    def close(self) -> None:
        """Forget what waits, so that nothing more starts."""
        self._buffered.add(-len(self._buffer))
        self._buffer.clear()
        waiting = (message.alarm for message in self.unfinished.values())
        for alarm in (self.circuit_alarm, *self.holds, *waiting):
            if alarm is not None:
                alarm.cancel()

    def _finish(self, seq: int) -> None:
        self.unfinished.pop(seq, None)
        self._touch(seq)

    def _touch(self, seq: int) -> None:
        self._touched.add(seq)
        self._settled = max(self._settled, seq)

    # What is told and saved.

    @property
    def cursor(self) -> int:
        """Everything up to here is done with but for ``unfinished``."""
        return self._buffer[0].seq - 1 if self._buffer else self.scanned

    def save(self, group: SaveGroup) -> None:
        """Add what changed since the last time. Messages that never failed at the end of the line are not saved."""
        first_fresh = self.unfinished.bisect_right(self._settled)
        cursor = self.unfinished.keys()[first_fresh] - 1 if first_fresh < len(self.unfinished) else self.cursor
        moved = self.unfinished.irange(self._saved_cursor, cursor, inclusive=(False, True))
        for seq in sorted(self._touched.union(moved)):
            message = self.unfinished.get(seq)
            if message is not None:
                kept = SavedAttempts(seq, message.attempts, message.first_ns, message.due_ns)
                group.unfinished.append((self.id, kept))
            elif seq <= self._saved_cursor:
                group.finished.append((self.id, seq))
        group.dead.extend(self._dead)
        at_head = self.is_current and cursor == self.scanned
        group.subscriptions.append(
            SavedSubscription(
                self.id,
                None if at_head else cursor,
                self.delivered,
                self.retries,
                self.skipped,
                self.last_error,
                self.gone,
            )
        )
        self._saved_cursor = cursor
        self._touched.clear()
        self._dead = []

    def state(self) -> DeliveryState:
        """Tell how the subscription fares."""
        due = [it.due_ns for it in self.unfinished.values() if it.phase is MessagePhase.WAITING and it.due_ns]
        return DeliveryState(
            self.id,
            self.status,
            self.cursor,
            len(self.unfinished),
            self.delivered,
            self.retries,
            self.dead,
            self.gone or self.last_error,
            min(due, default=None),
            self.skipped,
        )

    @property
    def status(self) -> DeliveryStatus:
        if self.gone is not None:
            return "stopped"
        if self.circuit.phase is not CircuitPhase.CLOSED:
            return "broken"
        waiting = any(message.phase is MessagePhase.WAITING for message in islice(self.unfinished.values(), 1))
        return "waiting" if self.holds or (waiting and self.in_flight == 0) else "active"
