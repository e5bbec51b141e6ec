"""Delivery on a clock that tests move: a log in memory, sinks that answer by a plan, everything in one thread.

The log here is the twin of ``EventLog`` that commits at once, so that an event's way is the same in every run; tests
with the real one, in a thread of its own, are those with kills.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from relaycast_gateway.clock import SECOND, VirtualClock, settle
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.limits import DeliveryLimits
from relaycast_gateway.delivery.order import DeliveryOrder, RetryPolicy
from relaycast_gateway.delivery.schedule import Dice
from relaycast_gateway.delivery.sender import Accepted, Retryable, Sender, SendOutcome, Target
from relaycast_gateway.delivery.store import DeliveryStore
from relaycast_gateway.delivery.wire_message import WireMessage
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.record import EVERYBODY, EventRecord

START = 1_700_000_000
DOWN = Retryable("HTTP 503")

Plan = Callable[[int, int], SendOutcome | None]
"""Given an event's ``seq`` and the number of this attempt at it, what the sink answers; ``None``: never anything."""


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def accept(seq: int, attempt: int) -> SendOutcome:
    return Accepted()


def record(seq: int, namespace: str = "data.published") -> EventRecord:
    return EventRecord(
        seq, seq, None, seq, seq * SECOND, seq * SECOND, namespace, b"\x04", None, nat(seq), (), EVERYBODY
    )


class TwinLog:
    """What delivery reads, as a list."""

    def __init__(self) -> None:
        self.records: list[EventRecord] = []
        self.callbacks: list[Callable[[int], None]] = []
        self.reads: list[int] = []
        """How many records each read returned."""

        self.last_seq = 0

    @property
    def history_start(self) -> int:
        return self.records[0].seq if self.records else self.last_seq + 1

    def append(self, count: int = 1, *, namespace: str = "data.published") -> None:
        self.records += [record(self.last_seq + 1 + n, namespace) for n in range(count)]
        self.last_seq += count
        for callback in list(self.callbacks):
            callback(self.last_seq)

    def purge(self, before: int) -> None:
        self.records = [it for it in self.records if it.seq >= before]

    def read(self, after: int = 0, *, limit: int = 1_000) -> Sequence[EventRecord]:
        start = max(0, after + 1 - self.history_start)
        found = self.records[start : start + limit]
        self.reads.append(len(found))
        return found

    def get(self, seq: int) -> EventRecord | None:
        at = seq - self.history_start
        return self.records[at] if 0 <= at < len(self.records) else None

    def connect(self, callback: Callable[[int], None]) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)


@dataclass
class Sink:
    """A peer and all senders that lead to it."""

    clock: VirtualClock
    plan: Plan = accept
    attempts: list[tuple[float, int]] = field(default_factory=list)
    """Seconds since the start, and the event's ``seq``."""

    acknowledged: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    opened: int = 0
    closed: int = 0
    answer_seconds: float = 0.0

    def sender(self) -> Sender:
        self.opened += 1
        return _SinkSender(self)

    async def take(self, message: WireMessage) -> SendOutcome:
        seq = int(message.body.rpartition(b" ")[2])
        self.attempts.append(((self.clock.now_ns() - START * SECOND) / SECOND, seq))
        self.bodies.append(message.body)
        outcome = self.plan(seq, sum(each == seq for _, each in self.attempts))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if outcome is None:
                await asyncio.Event().wait()
                raise AssertionError
            if self.answer_seconds:
                await self.clock.sleep(self.answer_seconds)
        finally:
            self.at_once -= 1
        if isinstance(outcome, Accepted):
            self.acknowledged.append(seq)
        return outcome

    @property
    def seqs(self) -> list[int]:
        return [seq for _, seq in self.attempts]

    @property
    def times(self) -> list[float]:
        return [time for time, _ in self.attempts]


class _SinkSender:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._is_open = True

    async def send(self, message: WireMessage) -> SendOutcome:
        assert self._is_open
        return await self._sink.take(message)

    async def close(self) -> None:
        assert self._is_open
        self._is_open = False
        self._sink.closed += 1


class Longest:
    """Dice that always fall on the longest wait."""

    def uniform(self, a: float, b: float, /) -> float:
        return b


class Scene:
    """A log, a store, sinks by name, and the deliveries between them."""

    def __init__(self, *, dice: Dice | None = None, limits: DeliveryLimits | None = None) -> None:
        self.clock = VirtualClock(START * SECOND)
        self.log = TwinLog()
        self.store = DeliveryStore.open()
        self.sinks: dict[str, Sink] = {}
        self.changes: list[frozenset[str]] = []
        self._dice = Longest() if dice is None else dice
        self._limits = limits

    def sink(self, name: str = "sink", plan: Plan = accept) -> Sink:
        return self.sinks.setdefault(name, Sink(self.clock, plan))

    def order(
        self,
        name: str = "sub",
        *,
        sink: str = "sink",
        selects: Callable[[EventRecord], bool] = lambda _: True,
        window: int = 1,
        namespaces: frozenset[str] | None = None,
        prefix: str = "",
        **policy: Any,
    ) -> DeliveryOrder:
        self.sink(sink)
        return DeliveryOrder(
            name,
            Target("HTTP", sink, {}),
            selects,
            lambda it: WireMessage(f"{prefix} {it.seq}".encode()),
            RetryPolicy(**policy),
            window,
            namespaces,
        )

    def deliveries(self) -> EventDeliveries:
        return EventDeliveries(
            self.log,
            self.store,
            sender_of=lambda target: self.sinks[target.sink].sender(),
            clock=self.clock,
            dice=self._dice,
            limits=self._limits,
            on_change=self.changes.append,
        )

    @asynccontextmanager
    async def running(self, *orders: DeliveryOrder, after: int = 0) -> AsyncIterator[EventDeliveries]:
        """Deliver for these orders until the end of the block, and then stop in good order."""
        deliveries = self.deliveries()
        for order in orders:
            deliveries.add(order, after)
        await deliveries.start()
        await settle()
        try:
            yield deliveries
        finally:
            stopping = asyncio.create_task(deliveries.stop())
            await settle()
            await self.clock.advance(10)
            await stopping

    @asynccontextmanager
    async def killed(self, *orders: DeliveryOrder, after: int = 0) -> AsyncIterator[EventDeliveries]:
        """Deliver until the end of the block, and then end as a kill does: what was not saved is lost."""
        deliveries = self.deliveries()
        for order in orders:
            deliveries.add(order, after)
        before = asyncio.all_tasks()
        await deliveries.start()
        await settle()
        try:
            yield deliveries
        finally:
            await self.kill(deliveries, asyncio.all_tasks() - before)

    async def kill(self, deliveries: EventDeliveries, tasks: set[asyncio.Task[Any]]) -> None:
        """End ``tasks``, and with them all that ``deliveries`` would still save."""
        self.log.callbacks.clear()
        deliveries._is_running = False
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
