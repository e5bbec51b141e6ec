"""Readers on every face of one event log, in one process and in virtual time.

The chains, the log and all that stands between it and a reader are the real parts; a reader is a queue that takes a
fixed time for each event. A block is built at its own time, and its events are stored and handed on before time passes.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from relaycast.feed import Feed
from relaycast.network import Network
from relaycast_gateway import crockford
from relaycast_gateway.clock import SECOND, VirtualClock, settle
from relaycast_gateway.cloudevents.caller import EVERYBODY_HERE
from relaycast_gateway.delivery.sender import Accepted, SendOutcome, Target
from relaycast_gateway.delivery.wire_message import WireMessage
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc.broadcaster import Broadcaster, BroadcasterContext
from relaycast_gateway.icrc.canister import Canister, Handler, Wire
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.orchestrator import Orchestrator
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.subnet import Subnet
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.record import EventRecord
from relaycast_gateway.wamp.messages import EventMessage, HelloMessage, SubscribeMessage, WampMessage
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RouterConfig
from relaycast_gateway.wamp.serializers import serializer_named
from relaycast_gateway.wamp.session import Session
from relaycast_ledger.face_deliveries import FaceDelivery, FaceFigures, LoggedEvent, face_figures
from relaycast_pallets import Remaining

PALLET, CLOUD_EVENTS, WAMP, ICRC = "on chain", "CloudEvents", "WAMP", "ICRC-72"
FACES = (PALLET, CLOUD_EVENTS, WAMP, ICRC)
FAST, SLOW = "fast", "slow"
READERS = (FAST, SLOW)

BLOCK_SECONDS = 6
GENESIS_SECONDS = 1_735_689_600
"""The time of block 0, which the chains' own blocks count from."""

SLOW_EVENTS_A_BLOCK = 40
SERVICE_NS = {FAST: SECOND // 1_000, SLOW: BLOCK_SECONDS * SECOND // SLOW_EVENTS_A_BLOCK}
"""Nanoseconds that a reader takes for an event."""

VALUE_BYTES = 64
SLOW_BUDGET_BYTES = 12_000
"""Bytes of the slow parachain's proof of validity: enough for about ``SLOW_EVENTS_A_BLOCK`` values."""

KEPT_EVENTS = 2_000
"""Events of any kind that the log keeps."""

MOST_WAITING_BYTES = 256 << 10
"""Bytes that a WAMP client may leave waiting before its session ends."""

DRAINING_BLOCKS = 4
"""Blocks without anything new, at the end."""

PUBLISHED, UPDATED = "io.relaycast.data.published", "io.relaycast.subscriber.updated"
PUBLISHER, CHAINS = 2_000, {FAST: 3_000, SLOW: 3_001}


class ReadingQueue:
    """A reader: it handles events one after the other, and knows when it is done with each."""

    def __init__(self, service_ns: int) -> None:
        self.done: dict[str, int] = {}
        """When it was done with an event, by the event's id."""

        self._service_ns = service_ns
        self._busy_until_ns = 0

    def take(self, event_id: str, now_ns: int) -> int:
        """Queue an event that has just arrived; return when the reader is done with it."""
        self._busy_until_ns = max(self._busy_until_ns, now_ns) + self._service_ns
        return self.done.setdefault(event_id, self._busy_until_ns)

    def drop_after(self, now_ns: int) -> None:
        """Lose what the reader is not done with."""
        self.done = {event_id: done_ns for event_id, done_ns in self.done.items() if done_ns <= now_ns}
        self._busy_until_ns = now_ns


class SinkReader:
    """Behind a CloudEvents sink: acknowledges an event when it is done with it."""

    def __init__(self, target: Target, clock: VirtualClock, done: dict[str, int]) -> None:
        self._service_ns = SERVICE_NS[_reader_of(target.sink)]
        self._clock = clock
        self._done = done

    async def send(self, message: WireMessage) -> SendOutcome:
        await self._clock.sleep(self._service_ns / SECOND)
        event_id = str(dict(message.properties)["ce-id"])
        self._done.setdefault(event_id, self._clock.now_ns())
        return Accepted()

    async def close(self) -> None:
        """Do nothing: no connection is open."""


class WampReader:
    """At the end of a connection in memory: what it has not taken waits there, up to ``MOST_WAITING_BYTES``."""

    serializer = "msgpack"
    most_message_bytes = 1 << 24

    def __init__(self, router: Router, clock: VirtualClock, service_ns: int) -> None:
        self.queue = ReadingQueue(service_ns)
        self.transport: dict[str, object] = {"kind": "memory", "serializer": self.serializer}
        self._format = serializer_named(self.serializer)
        self._router = router
        self._clock = clock
        self._untaken: deque[tuple[int, int]] = deque()
        self._is_open = False
        self.session = self._connected()

    @property
    def waiting_bytes(self) -> int:
        """Bytes of events that the reader has not taken."""
        now_ns = self._clock.now_ns()
        while self._untaken and self._untaken[0][0] <= now_ns:
            self._untaken.popleft()
        return sum(size for _, size in self._untaken)

    def send(self, data: bytes) -> None:
        message = self._format.decode(data)
        if not self._is_open or not isinstance(message, EventMessage):
            return
        size = len(self._format.encode(EventMessage(1, 1, message.details, message.args, message.kwargs)))
        if self.waiting_bytes + size > MOST_WAITING_BYTES:
            self.abandon()
            asyncio.get_running_loop().call_soon(self._reconnect)
            return
        self._untaken.append((self.queue.take(message.details["_event_id"], self._clock.now_ns()), size))

    async def drain(self) -> None:
        """Return at once: nothing is held back."""

    def pause_reading(self) -> None:
        """Do nothing: the reader sends next to nothing."""

    def resume_reading(self) -> None:
        """Do nothing: the reader sends next to nothing."""

    def close(self) -> None:
        self._is_open = False

    def abandon(self) -> None:
        """End the connection: what was not taken is lost."""
        self._is_open = False
        self.queue.drop_after(self._clock.now_ns())
        self._untaken.clear()

    def _connected(self) -> Session:
        self._is_open = True
        session = self._router.attach(self)
        self._say(session, HelloMessage("relaycast", {"roles": {"subscriber": {}}}))
        self._say(session, SubscribeMessage(1, {}, f"{PUBLISHED}.p{PUBLISHER}"))
        return session

    def _reconnect(self) -> None:
        self.session.lost()
        self.session = self._connected()

    def _say(self, session: Session, message: WampMessage) -> None:
        session.receive(self._format.encode(message))


class CanisterReader(Canister):
    """A subscriber of ICRC-72: confirms a notification when it is done with the event."""

    role = CanisterRole.SUBSCRIBER

    def __init__(self, principal: bytes, wire: Wire, service_ns: int) -> None:
        self.queue = ReadingQueue(service_ns)
        super().__init__(principal, wire)

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "icrc72_handle_notification": self._take,
            "icrc72_handle_notification_trusted": self._take,
            "icrc72_get_subscriber_stats": lambda _caller, _argument: [],
        }

    def _take(self, caller: bytes, messages: Any) -> None:
        now_ns = self.wire.now_ns()
        for message in messages:
            event_id = crockford.encode(message["eventId"])
            done_ns = self.queue.done.get(event_id)
            if done_ns is None:
                done_ns = self.queue.take(event_id, now_ns)
            self.wire.call_later(max(0, done_ns - now_ns) / SECOND, partial(self._confirm, caller, message["id"]))

    def _confirm(self, broadcaster: bytes, notification_id: int) -> None:
        self.call(broadcaster, "icrc72_confirm_messages", [notification_id])


class IcrcFace:
    """An orchestrator, a broadcaster and two readers on a subnet whose time goes along with the clock."""

    def __init__(self, log: EventLog, now_ns: int) -> None:
        self.subnet = Subnet(now_ns=now_ns)
        self.orchestrator = Orchestrator(
            b"orchestrator",
            self.subnet,
            broadcasters=[b"broadcaster"],
            store=IcrcStore.open(None),
            last_seq=lambda: log.last_seq,
        )
        self.broadcaster = Broadcaster(b"broadcaster", self.subnet, BroadcasterContext(log, self.orchestrator))
        self.readers = {name: CanisterReader(name.encode(), self.subnet, SERVICE_NS[name]) for name in READERS}
        for canister in (self.orchestrator, self.broadcaster, *self.readers.values()):
            self.subnet.add(canister)
        self.broadcaster.start()
        self.orchestrator.adopt(PUBLISHED, b"relay chain")
        for reader in self.readers.values():
            item: dict[str, object] = dict.fromkeys(("memo", "filter", "skip", "stopped")) | {
                "namespace": PUBLISHED,
                "config": [],
            }
            made = self.subnet.ask(reader.principal, b"orchestrator", "icrc72_register_subscription", [item])
            assert isinstance(made, list)
            assert [it.tag for it in made] == ["Ok"], made

    def go_on(self, seconds: float) -> None:
        """Hand on what is new in the log, and let time pass."""
        self.broadcaster.catch_up()
        self.subnet.run(seconds)

    def close(self) -> None:
        self.broadcaster.close()
        self.orchestrator.store.close()


class FaceRun:
    """A publisher of ``values`` values in each of ``blocks`` blocks, and a fast and a slow reader on each face."""

    def __init__(self, values: int, *, blocks: int, seed: int) -> None:
        self._values = values
        self._blocks = blocks
        self._random = Random(seed)  # noqa: S311 - to be drawn again
        self._clock = VirtualClock(GENESIS_SECONDS * SECOND)
        self._sinks: dict[str, dict[str, int]] = {name: {} for name in READERS}
        self._arrived: dict[tuple[str, str], Mapping[str, int]] = {}
        self._on_chain: dict[str, dict[str, int]] = {name: {} for name in READERS}
        self._ids: dict[tuple[bytes, int], str] = {}
        self._events: list[EventRecord] = []
        self._cursor = 0
        self.network = Network(seed=seed)
        names = [f"price/{number}" for number in range(values)]
        self._feeds = [self.network.publisher(PUBLISHER).feed(name) for name in names]
        self.network.subscriber(CHAINS[FAST], keys=self._feeds)
        whole = Remaining(percent=100)
        self.network.subscriber(CHAINS[SLOW], keys=self._feeds, budget=whole, max_pov_bytes=SLOW_BUDGET_BYTES)

    def figures(self) -> dict[tuple[str, str], FaceFigures]:
        """Run, and return what became of all events, by reader and face."""
        asyncio.run(self._run())
        rows = [
            FaceDelivery(reader, face, reader, PUBLISHED, it.text_id, arrived.get(it.text_id))
            for (face, reader), arrived in self._arrived.items()
            for it in self._events
        ]
        events = [
            LoggedEvent(reader, it.seq, PUBLISHED, it.text_id, it.subject, it.occurred_ns)
            for reader in READERS
            for it in self._events
        ]
        return {(it.run, it.face): it for it in face_figures(events, rows)}

    async def _run(self) -> None:
        gateway = Gateway.open(
            clock=self._clock,
            retention=Retention(count=KEPT_EVENTS),
            allow_sink=["localhost"],
            senders=lambda target: SinkReader(target, self._clock, self._sinks[_reader_of(target.sink)]),
            wamp=RouterConfig.default(),
        )
        assert gateway.router is not None
        gateway.follow(self.network.chains, "feed")
        await gateway.start()
        for name in READERS:
            wanted = {"protocol": "HTTP", "sink": f"http://localhost/{name}", "types": [PUBLISHED]}
            await gateway.book.create(EVERYBODY_HERE, wanted)
        clients = {name: WampReader(gateway.router, self._clock, SERVICE_NS[name]) for name in READERS}
        icrc = IcrcFace(gateway.log, self._clock.now_ns())
        for block in range(self._blocks + DRAINING_BLOCKS):
            if block < self._blocks:
                self._publish(self._feeds)
            await self._pass(BLOCK_SECONDS, icrc)
            self.network.run(blocks=1)
            gateway.log.purge()  # returns when the events of this block are stored
            self._note(gateway.log)
            await settle()
        backlog = self._values * self._blocks * SERVICE_NS[SLOW] // SECOND
        await self._pass(BLOCK_SECONDS + 2 * backlog, icrc)
        for name in READERS:
            self._arrived[PALLET, name] = self._on_chain[name]
            self._arrived[CLOUD_EVENTS, name] = self._sinks[name]
            self._arrived[WAMP, name] = clients[name].queue.done
            self._arrived[ICRC, name] = icrc.readers[name].queue.done
        icrc.close()
        for client in clients.values():
            client.session.lost()
        await gateway.stop()

    async def _pass(self, seconds: float, icrc: IcrcFace) -> None:
        """Let time pass on all faces."""
        icrc.go_on(seconds)
        await self._clock.advance(seconds)

    def _publish(self, feeds: Sequence[Feed]) -> None:
        values = {feed.name: self._random.randbytes(VALUE_BYTES) for feed in feeds}
        self.network.publisher(PUBLISHER).publish_many(values)

    def _note(self, log: EventLog) -> None:
        """Keep what was published, and what arrived on chain."""
        while records := log.read(self._cursor):
            self._cursor = records[-1].seq
            for it in records:
                if it.namespace == PUBLISHED:
                    data = dict(it.data.content)
                    self._ids[data["key"].content, data["blockNumber"].content] = it.text_id
                    self._events.append(it)
                elif it.namespace == UPDATED:
                    self._note_update(it)

    def _note_update(self, record: EventRecord) -> None:
        data, chain = dict(record.data.content), record.header("ce:paraid")
        assert chain is not None
        (reader,) = (name for name, para_id in CHAINS.items() if para_id == chain.content)
        event_id = self._ids[data["key"].content, data["publishedAt"].content]
        self._on_chain[reader].setdefault(event_id, record.occurred_ns)


def _reader_of(sink: str) -> str:
    return sink.rpartition("/")[2]
