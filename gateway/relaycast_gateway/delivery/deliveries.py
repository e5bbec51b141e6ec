"""Delivery of all subscriptions: takes records from the log, has senders send them, decides what becomes of each.

Law: every event that an order selects is acknowledged by its sink at least once, or becomes a dead letter with its
reason. That holds also when the process is killed in between. Runs in one event loop; only ``_appended`` is called from
elsewhere. A subscription without work has no task and no timer.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from random import SystemRandom

from relaycast_gateway.clock import SECOND, Clock, SystemClock
from relaycast_gateway.delivery.high_water import HighWater
from relaycast_gateway.delivery.lane import Lane, MessagePhase, Unfinished, says
from relaycast_gateway.delivery.limits import DeliveryGauges, DeliveryLimits
from relaycast_gateway.delivery.order import DeadLetter, DeliveryOrder, DeliveryState
from relaycast_gateway.delivery.recent_records import ReadableLog
from relaycast_gateway.delivery.record_feed import RecordFeed
from relaycast_gateway.delivery.saver import GroupSaver
from relaycast_gateway.delivery.schedule import MOST_RETRY_AFTER, Dice, given_up, wait_seconds
from relaycast_gateway.delivery.sender import Accepted, Gone, Refused, Retryable, Sender, SendOutcome, Target
from relaycast_gateway.delivery.sender_use import SendersInUse, Tasks
from relaycast_gateway.delivery.store import DeliveryStore, SavedSubscription, SaveGroup
from relaycast_gateway.log import UnusableLog

_LOGGER = logging.getLogger(__name__)

GRACE_SECONDS = 5.0
"""Attempts in flight have this long to end when delivery stops."""

READ_AGAIN_SECONDS = 1
"""Delay after the log could not be read."""

_LETTERS_AT_A_TIME = 1_000


class EventDeliveries:
    """The subscriptions by id, and what they do.

    ``on_change`` is told the ids of subscriptions whose state changed, a few milliseconds' worth at a time.
    ``ValueError`` where the store says that more was delivered than the log holds: it belongs to another log.
    """

    def __init__(
        self,
        log: ReadableLog,
        store: DeliveryStore,
        *,
        sender_of: Callable[[Target], Sender],
        clock: Clock | None = None,
        dice: Dice | None = None,
        limits: DeliveryLimits | None = None,
        on_change: Callable[[frozenset[str]], None] = lambda _: None,
    ) -> None:
        head = store.leave_head()
        if store.newest() > log.last_seq:
            raise ValueError(
                f"deliveries up to event {store.newest():,}, and a log that ends at event {log.last_seq:,}"
            )
        self._log = log
        self._store = store
        self._clock = SystemClock() if clock is None else clock
        self._dice = SystemRandom() if dice is None else dice
        self._limits = DeliveryLimits() if limits is None else limits
        self._senders = SendersInUse(sender_of)
        self._on_change = on_change
        self._lanes: dict[str, Lane] = {}
        self._dirty: dict[Lane, None] = {}
        self._starved: dict[Lane, None] = {}
        self._in_flight, self._buffered = HighWater(), HighWater()
        start = log.last_seq if head is None else head
        self._feed = RecordFeed(log, start, on_fed=self._fed)
        self._saver = GroupSaver(store, self._clock, self._collect)
        self._attempts, self._saving = Tasks(), Tasks()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_running = False
        self._is_working = False
        self._is_told = False
        self._disconnect: Callable[[], None] = lambda: None

    # Starting and stopping.

    async def start(self) -> None:
        """Begin to deliver, where the store says it ended."""
        self._loop = asyncio.get_running_loop()
        self._is_running = True
        self._disconnect = self._log.connect(self._appended)
        self._saving.add(asyncio.create_task(self._saver.run()))
        for lane in list(self._lanes.values()):
            self._begin(lane)
        self._work_soon()

    async def stop(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """Start nothing more, let attempts end for a while, break off the rest, save, close the senders.

        What the disk does not take is delivered again after the next start.
        """
        self._is_running = False
        self._disconnect()
        alarm = self._clock.call_later(grace_seconds, self._attempts.cancel)
        await self._attempts.ended()
        alarm.cancel()
        self._saving.cancel()
        await self._saving.ended()
        self._saver.flush_if_possible()
        self._saver.close()
        for lane in self._lanes.values():
            self._feed.leave(lane)
            lane.close()
            self._senders.retire(lane.id)
        await self._senders.closed()

    # Subscriptions.

    def add(self, order: DeliveryOrder, after: int) -> None:
        """Deliver for a subscription what comes behind ``after``, or go on where it was if the store knows it.

        ``ValueError`` for an id that exists.
        """
        name = order.subscription_id
        if name in self._lanes:
            raise ValueError(f"subscription {name} is being delivered already")
        known = self._store.load(name)
        if known is None:
            known = SavedSubscription(name, after), []
            with suppress(sqlite3.Error):  # the saver tries it again; until then a restart begins here, too
                self._store.save(SaveGroup(subscriptions=[known[0]]))
        lane = self._lanes[name] = Lane(
            order,
            *known,
            limits=self._limits.circuit,
            buffered=self._buffered,
            dead=self._store.dead_count(name),
            most_dead=self._store.dead_letters_kept,
        )
        if self._is_running:
            self._begin(lane)

    def replace(self, order: DeliveryOrder) -> None:
        """Go on under another order, also where the sink was gone. ``KeyError`` for an unknown subscription.

        Attempts in flight end under the old order. Messages that were begun are tried again under the new one, others
        are selected by it.
        """
        lane = self._lanes[order.subscription_id]
        self._feed.leave(lane)
        lane.replace(order)
        self._senders.retire(lane.id)
        self._mark(lane)
        self._saver.flush_if_possible()
        if self._is_running:
            self._feed.join(lane)
            self._pump(lane)

    def remove(self, subscription_id: str) -> None:
        """Forget a subscription: when this returns no attempt starts. ``KeyError`` for an unknown one."""
        lane = self._lanes.pop(subscription_id)
        lane.is_removed = True
        self._feed.leave(lane)
        lane.close()
        self._senders.retire(lane.id)
        self._dirty.pop(lane, None)
        self._starved.pop(lane, None)
        self._saver.flush_if_possible()
        with suppress(sqlite3.Error):  # the next start forgets it
            self._store.forget([subscription_id])

    def forget_others(self) -> list[str]:
        """Drop what the store knows of subscriptions that were not added; return their ids."""
        others = [name for name in self._store.ids() if name not in self._lanes]
        self._store.forget(others)
        return others

    def state(self, subscription_id: str) -> DeliveryState:
        """Tell how a subscription fares. ``KeyError`` for an unknown one."""
        lane = self._lanes[subscription_id]
        lane.move_to(self._feed.head)
        return lane.state()

    def states(self) -> list[DeliveryState]:
        """Tell how all subscriptions fare, in the order in which they were added."""
        return [self.state(name) for name in self._lanes]

    @property
    def gauges(self) -> DeliveryGauges:
        return DeliveryGauges(
            len(self._lanes),
            self._in_flight.now,
            self._in_flight.high,
            self._buffered.now,
            self._buffered.high,
            len(self._starved),
            self._saver.error,
        )

    # Dead letters.

    def dead_letters(self, subscription_id: str, *, after: int = 0, limit: int = 1_000) -> list[DeadLetter]:
        """Return dead letters in order of ``seq``, those behind ``after``. ``KeyError`` for an unknown subscription."""
        if self._lanes[subscription_id] in self._dirty:
            self._saver.flush()
        return self._store.dead_letters(subscription_id, after=after, limit=limit)

    def redeliver(self, subscription_id: str, seqs: Collection[int] | None = None) -> int:
        """Try dead letters again, those of ``seqs`` or all, as if for the first time; return how many.

        They go before messages that were not begun. One whose event retention dropped stays a dead letter. ``KeyError``
        for an unknown subscription.
        """
        lane = self._lanes[subscription_id]
        self._saver.flush()
        wanted = None if seqs is None else frozenset(seqs)
        found: list[int] = []
        after = self._log.history_start - 1
        while letters := self._store.dead_letters(subscription_id, after=after, limit=_LETTERS_AT_A_TIME):
            found += [it.seq for it in letters if wanted is None or it.seq in wanted]
            after = letters[-1].seq
        self._store.revive(subscription_id, found)
        lane.revive(found)
        self._mark(lane)
        self._pump(lane)
        return len(found)

    # Records come in.

    def _appended(self, _last_seq: int) -> None:
        """Take word of new records, from the thread of the log's writer."""
        if self._loop is not None and not self._is_told:
            self._is_told = True
            with suppress(RuntimeError):  # the loop was closed just now
                self._loop.call_soon_threadsafe(self._heard)

    def _heard(self) -> None:
        self._is_told = False
        self._work_soon()

    def _work_soon(self) -> None:
        if self._is_running and not self._is_working and self._loop is not None:
            self._is_working = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        self._is_working = False
        if not self._is_running:
            return
        head = self._feed.head
        try:
            self._feed.step()
        except (sqlite3.Error, OSError, UnusableLog) as error:
            _LOGGER.error("cannot read events, next try in %d s: %s", READ_AGAIN_SECONDS, error)
            self._is_working = True
            self._clock.call_later(READ_AGAIN_SECONDS, self._work)
            return
        if self._feed.head != head:
            self._saver.changed()
        if self._feed.has_work:
            self._work_soon()

    def _fed(self, lane: Lane) -> None:
        self._mark(lane)
        self._pump(lane)

    def _begin(self, lane: Lane) -> None:
        now_ns, longest = self._clock.now_ns(), lane.order.retry.longest_seconds
        for message in lane.unfinished.values():
            if message.phase is MessagePhase.WAITING:
                was_set_back = message.first_ns is not None and message.first_ns > now_ns
                wait = min((message.due_ns - now_ns) / SECOND, longest if was_set_back else MOST_RETRY_AFTER)
                self._wake_later(lane, message, max(wait, 0.0))
                if wait > longest:  # the sink asked for it
                    self._hold(lane, wait)
        self._mark(lane)
        if lane.gone is None:
            self._feed.join(lane)
            self._pump(lane)

    # Messages go out.

    def _pump(self, lane: Lane) -> None:
        """Start what may start now."""
        if not self._is_running or lane.is_removed:
            return
        while lane.may_start:
            if self._in_flight.now >= self._limits.in_flight:
                self._starved[lane] = None
                return
            wait = self._senders.turn(lane.id, lane.order.target)
            if wait > 0:
                self._hold(lane, wait)
                break
            message = lane.next_start()
            assert message is not None
            self._in_flight.add(1)
            self._attempts.add(asyncio.create_task(self._attempt(lane, message)))
        if lane.wants_records:
            self._feed.join(lane)
            if self._feed.has_work:
                self._work_soon()

    async def _attempt(self, lane: Lane, message: Unfinished) -> None:
        order, outcome = lane.order, None
        try:
            if not lane.is_removed and self._is_running:
                outcome = await self._outcome(lane, message)
        finally:
            self._in_flight.add(-1)
            self._senders.turn_ended(lane.id)
            if outcome is None:
                lane.put_back(message)
        if outcome is not None and not lane.is_removed:
            self._decide(lane, message, order, outcome)
            self._mark(lane)
            if self._starved:
                self._starved[lane] = None  # after those that wait longer
            else:
                self._pump(lane)
        while self._starved and self._in_flight.now < self._limits.in_flight:
            starved = next(iter(self._starved))
            del self._starved[starved]
            self._pump(starved)

    async def _outcome(self, lane: Lane, message: Unfinished) -> SendOutcome:
        order = lane.order
        record = message.record or self._feed.get(message.seq)
        if record is None:
            return Refused("the log no longer holds the event")
        if message.seq in lane.filter_failures:
            return Refused(lane.filter_failures.pop(message.seq))
        message.record = record
        if message.first_ns is None:
            message.first_ns = self._clock.now_ns()
        try:
            wire = order.encode(record)
        except Exception as error:  # what an encoder cannot carry must not stop the others
            return Refused(f"the event cannot be encoded: {says(error)}")
        try:
            use = self._senders.use(lane.id, order.target)
        except ValueError as error:
            return Retryable(str(error))
        return await use.send(wire, timeout_seconds=order.retry.timeout_seconds, clock=self._clock)

    def _decide(self, lane: Lane, message: Unfinished, order: DeliveryOrder, outcome: SendOutcome) -> None:
        """Make of an outcome what becomes of the message."""
        if order.target != lane.order.target and (
            isinstance(outcome, Gone) or (isinstance(outcome, Retryable) and outcome.after_seconds is not None)
        ):
            outcome = Retryable(outcome.reason, 0.0)  # the old sink is gone or asks to wait, not the new one
        match outcome:
            case Accepted():
                lane.accepted(message)
                lane.answered()
            case Refused(reason):
                message.attempts += 1
                lane.give_up(message, reason, now_ns=self._clock.now_ns())
                lane.answered()
            case Gone(reason):
                lane.put_back(message)
                self._feed.leave(lane)
                lane.gone = reason
                self._senders.retire(lane.id)
            case Retryable():
                self._try_again(lane, message, outcome)

    def _try_again(self, lane: Lane, message: Unfinished, outcome: Retryable) -> None:
        policy, now_ns = lane.order.retry, self._clock.now_ns()
        message.attempts += 1
        assert message.first_ns is not None
        wait = wait_seconds(policy, message.attempts, self._dice, retry_after=outcome.after_seconds)
        age = (now_ns - message.first_ns) / SECOND
        why = given_up(policy, message.attempts, age_seconds=age, wait=wait if outcome.after_seconds is None else 0.0)
        if why is None:
            lane.wait_for(message, outcome.reason, now_ns + round(wait * SECOND))
            self._wake_later(lane, message, wait)
        else:
            lane.give_up(message, f"{why}: {outcome.reason}", now_ns=now_ns)
        if outcome.after_seconds is not None:
            self._hold(lane, wait)
        opened = lane.circuit.failed()
        if opened is not None:
            lane.circuit_alarm = self._clock.call_later(opened, partial(self._probe, lane))

    def _wake_later(self, lane: Lane, message: Unfinished, wait: float) -> None:
        def due() -> None:
            message.alarm = None
            message.phase = MessagePhase.READY
            self._pump(lane)

        message.alarm = self._clock.call_later(wait, due)

    def _hold(self, lane: Lane, seconds: float) -> None:
        def ring() -> None:
            lane.holds.discard(alarm)
            self._pump(lane)

        alarm = self._clock.call_later(seconds, ring)
        lane.holds.add(alarm)

    def _probe(self, lane: Lane) -> None:
        lane.circuit.probe()
        self._pump(lane)

    # Saving.

    def _mark(self, lane: Lane) -> None:
        self._dirty[lane] = None
        self._saver.changed()

    def _collect(self) -> SaveGroup:
        group = SaveGroup(head=self._feed.head)
        for lane in self._dirty:
            lane.move_to(self._feed.head)
            lane.save(group)
        changed = frozenset(lane.id for lane in self._dirty)
        self._dirty.clear()
        if changed:
            try:
                self._on_change(changed)
            except Exception:
                _LOGGER.exception("a listener to the state of deliveries failed")
        return group
