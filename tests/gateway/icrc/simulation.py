"""A whole pub-sub system under trouble: many subscribers, publishers, broadcasters that relay, and what goes wrong.

Law: all that happens is drawn from one seed; the same seed and the same sizes give the same run, to the last byte.
``expected`` finds by brute force over the log what each subscriber must get. That is every event behind the beginning
of its subscription whose ordinal its skip selects, counted event by event, and whose data a plain Python function
selects.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from gateway.icrc.simulated_subscriber import FILTERS, SimulatedSubscriber, is_meant
from gateway.icrc.simulation_plan import SimulationPlan
from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc.broadcaster import Broadcaster, BroadcasterContext, BroadcastPolicy
from relaycast_gateway.icrc.canister import Answer
from relaycast_gateway.icrc.names import OWN_HEADER, PUBLICATION
from relaycast_gateway.icrc.orchestrator import Orchestrator
from relaycast_gateway.icrc.publisher import EventPublisher
from relaycast_gateway.icrc.replay.archivist import Archivist
from relaycast_gateway.icrc.replay.book import ReplayBook
from relaycast_gateway.icrc.replay.serving import ReplayServing
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.subnet import Subnet
from relaycast_gateway.icrc.subscriber import EventSubscriber
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc16 import Icrc16, array, blob, map_of, nat
from relaycast_gateway.icrc16 import text as icrc16_text
from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.namespaces import NamespacePattern
from relaycast_gateway.record import EventRecord

ORCHESTRATOR, ARCHIVIST = b"orchestrator", b"archivist"

NAMESPACES = ("sim.market.prices", "sim.market.volumes")

PATTERNS = ("sim.*", "*.prices", "sim.market.*")


class _SubnetClock(VirtualClock):
    """Tells the log the subnet's time."""

    def __init__(self, subnet: Subnet) -> None:
        super().__init__()
        self._subnet = subnet

    def now_ns(self) -> int:
        return self._subnet.now_ns()


class Simulation:
    """One run; ``run`` goes through all of it."""

    def __init__(self, plan: SimulationPlan) -> None:
        self.plan = plan
        self.random = Random(plan.seed)
        self.subnet = Subnet(latency=self._latency)
        self.log = EventLog.open(clock=_SubnetClock(self.subnet))
        self.store = IcrcStore.open()
        self.broadcaster_principals = [b"broadcaster %d" % it for it in range(plan.broadcasters)]
        self._process = {ORCHESTRATOR, ARCHIVIST, *self.broadcaster_principals}
        self.broadcasters: list[Broadcaster] = []
        self.ended: Counter[str] = Counter()
        self._records: list[EventRecord] = []
        self._slow: set[bytes] = set()
        self._begin()
        publishers = [b"publisher %d" % it for it in range(plan.publishers)]
        self.publishers = [
            EventPublisher(it, self.subnet, ORCHESTRATOR, first_id=number << 64 | 1, dice=Random(number))
            for number, it in enumerate(publishers)
        ]
        allowed = array(*(blob(it) for it in publishers))
        for publisher in self.publishers:
            self.subnet.add(publisher)
            for namespace in NAMESPACES:
                config = ((f"{PUBLICATION}publishers:allowed:list", allowed),)
                publisher.register(namespace, config=config, has_hashes=publisher is self.publishers[0])
            self.subnet.run(20)
        self.subscribers = [self._subscriber(it) for it in range(plan.subscribers)]

    def run(self) -> None:
        """Let everything happen, and then let time pass until all is quiet."""
        plan, random = self.plan, self.random
        for subscriber in self.subscribers:
            moment = random.uniform(0, plan.seconds) if random.random() < plan.late else 0.0
            self._later(moment, self._start, subscriber)
        for publisher in self.publishers:
            for number in range(plan.events):
                moment = 20 + random.uniform(0, plan.seconds)
                self._later(moment, self._publish, publisher, number)
            for _ in range(plan.epochs):
                self._later(20 + random.uniform(0, plan.seconds), publisher.close_epoch, NAMESPACES[0])
        for subscriber in random.sample(self.subscribers, round(plan.replays * plan.subscribers)):
            self._later(20 + random.uniform(0, plan.seconds), self._ask_for_replay, subscriber)
        for subscriber in random.sample(self.subscribers, round(plan.crashes * plan.subscribers)):
            moment = 20 + random.uniform(0, plan.seconds)
            self._later(moment, self._crash, subscriber)
            self._later(moment + random.uniform(0, 40), self._start, subscriber)
        for _ in range(plan.outages):
            principal, moment = random.choice(self.broadcaster_principals), 20 + random.uniform(0, plan.seconds)
            self._later(moment, self.subnet.stop, principal)
            self._later(moment + random.uniform(0, 10), self.subnet.restart, principal)
        for _ in range(plan.restarts):
            self._later(20 + random.uniform(0, plan.seconds), self._restart)
        self.subnet.run(plan.seconds + 100)
        for _ in range(20):
            if all(self.counted(it) == self.expected(it) for it in self.subscribers):
                break
            self.subnet.run(100)

    def close(self) -> None:
        for broadcaster in self.broadcasters:
            broadcaster.close()
        self.store.close()
        self.log.close()

    def records(self) -> list[EventRecord]:
        """Return the whole log."""
        if len(self._records) < self.log.last_seq:
            self._records += self.log.read(len(self._records), limit=1 << 30)
        return self._records

    def expected(self, subscriber: SimulatedSubscriber) -> Counter[tuple[str, int]]:
        """Return the events that a subscriber is to get, each once."""
        assert subscriber.subscription is not None
        since = self.orchestrator.registry.subscriptions[subscriber.subscription].since
        pattern = NamespacePattern(subscriber.namespace)
        ordinals: Counter[str] = Counter()
        found: Counter[tuple[str, int]] = Counter()
        for record in self.records():
            ordinals[record.namespace] += 1
            ordinal = ordinals[record.namespace]
            skip = subscriber.skip
            is_live = (
                record.seq > since
                and pattern.matches(record.namespace)
                and (skip is None or ordinal % skip.mod == skip.offset % skip.mod)
                and (subscriber.filter is None or is_meant(subscriber.filter, record.data))
            )
            if is_live or self.is_replayed(subscriber, record):
                found[record.namespace, record.event_id] += 1
        return found

    def is_replayed(self, subscriber: SimulatedSubscriber, record: EventRecord) -> bool:
        """Return whether an event is in the replay that a subscriber asked for."""
        if subscriber.asked is None or record.seq > subscriber.last_seq:
            return False
        namespace, start, end = subscriber.asked
        return record.namespace == namespace and start <= record.event_id and (end is None or record.event_id < end)

    def counted(self, subscriber: SimulatedSubscriber) -> Counter[tuple[str, int]]:
        """Return what the handlers of a subscriber saw, and how often."""
        return Counter((event.namespace, event.event_id) for event in subscriber.seen)

    def chains(self) -> Mapping[tuple[str, bytes, bytes], list[int]]:
        """Return the events of each namespace, source and accepting broadcaster, in the order of the log."""
        found: dict[tuple[str, bytes, bytes], list[int]] = {}
        for record in self.records():
            accepted = record.header(OWN_HEADER)
            assert accepted is not None
            found.setdefault((record.namespace, record.source, accepted.content), []).append(record.event_id)
        return found

    def digest(self) -> str:
        """Return a digest of all that handlers saw and when, and of the number of messages."""
        digest = hashlib.sha256(f"{self.subnet.messages} {self.subnet.now_ns()}".encode())
        for subscriber in self.subscribers:
            digest.update(subscriber.principal)
            for event, moment_ns in zip(subscriber.seen, subscriber.seen_ns, strict=True):
                digest.update(f"{moment_ns} {event}".encode())
        return digest.hexdigest()

    def _begin(self) -> None:
        self.orchestrator = Orchestrator(
            ORCHESTRATOR,
            self.subnet,
            broadcasters=self.broadcaster_principals,
            store=self.store,
            last_seq=lambda: self.log.last_seq,
        )
        context = BroadcasterContext(
            self.log, self.orchestrator, BroadcastPolicy(notifications_a_call=self.plan.notifications_a_call)
        )
        self.broadcasters = [Broadcaster(it, self.subnet, context) for it in self.broadcaster_principals]
        for canister in (self.orchestrator, *self.broadcasters):
            self.subnet.add(canister)
        registry = self.orchestrator.registry
        self.book = ReplayBook(
            ORCHESTRATOR, self.subnet, registry, self.store, self.log, rights=self.orchestrator, archivist=ARCHIVIST
        )
        self.orchestrator.replays = self.book
        self.archivist = Archivist(ARCHIVIST, self.subnet, registry, self.store, self.log, orchestrator=ORCHESTRATOR)
        self.subnet.add(self.archivist)
        for broadcaster in self.broadcasters:
            ReplayServing(broadcaster)
            broadcaster.start()
        self.book.resume()

    def _restart(self) -> None:
        """Kill orchestrator and broadcasters: what was not flushed is lost."""
        self.ended["restarts"] += 1
        self.book.close()
        self.archivist.close()
        for broadcaster in self.broadcasters:
            broadcaster.close()
        self.store._noted.clear()
        self.store._before_flush.clear()
        self._begin()

    def _subscriber(self, number: int) -> SimulatedSubscriber:
        random = self.random
        principal = b"subscriber %d" % number
        text, skip = random.choice(list(FILTERS)), Skip(random.randint(1, 6), random.randint(0, 9))
        if random.random() < self.plan.slow:
            self._slow.add(principal)
        namespace = random.choice([*NAMESPACES, *NAMESPACES, *PATTERNS])
        selection = (
            random.choice([(text, None), (text, skip), (None, skip)])
            if random.random() < self.plan.selective
            else (None, None)
        )
        return SimulatedSubscriber(
            principal,
            namespace,
            *selection,
            random.random() < self.plan.trusted,
            IcrcStore.open(),
        )

    def _start(self, it: SimulatedSubscriber) -> None:
        """Start a subscriber from its store, unless it runs."""
        if it.canister is not None:
            return

        def handle(event: NotifiedEvent) -> Icrc16 | None:
            it.seen.append(event)
            it.seen_ns.append(self.subnet.now_ns())
            return None

        def count_gap(_gap: object) -> None:
            it.gaps += 1

        it.canister = EventSubscriber(
            it.principal,
            self.subnet,
            ORCHESTRATOR,
            store=it.store,
            gap_found=count_gap,
            replay_ended=it.ended.append,
        )
        self.subnet.add(it.canister)
        self.subnet.restart(it.principal)
        self._subscribe(it, it.canister, handle)

    def _subscribe(self, it: SimulatedSubscriber, canister: EventSubscriber, handle: Any) -> None:
        def answered(answer: Answer) -> None:
            if it.canister is not canister:
                return
            if answer.refusal is None:
                assert isinstance(answer.value, int)
                it.subscription = answer.value
            else:  # the orchestrator went away
                self.ended["subscribing again"] += 1
                self._later(1.0, self._subscribe, it, canister, handle)

        promise = canister.subscribe(it.namespace, handle, filter=it.filter, skip=it.skip, is_trusted=it.is_trusted)
        promise.then(answered)

    def _ask_for_replay(self, it: SimulatedSubscriber) -> None:
        """Ask for a part of what the log has of a namespace, up to now or to an end."""
        known = [record for record in self.records() if NamespacePattern(it.namespace).matches(record.namespace)]
        if it.canister is None or it.subscription is None or not known:
            return
        namespace = self.random.choice(known).namespace
        ids = sorted(record.event_id for record in known if record.namespace == namespace)
        start, end = self.random.choice(ids), self.random.choice([None, ids[-1] + 1, self.random.choice(ids)])

        def answered(answer: Answer) -> None:
            if answer.refusal is None:
                assert isinstance(answer.value, int)
                it.replay, it.asked = answer.value, (namespace, start, end)
                it.last_seq = self.orchestrator.registry.replays[answer.value].last_seq

        if end is None or start <= end:
            it.canister.request_replay(namespace, start, end).then(answered)

    def _crash(self, it: SimulatedSubscriber) -> None:
        if it.canister is not None:
            self.ended["crashes"] += 1
            it.has_crashed = True
            it.canister.close()
            it.canister = None
            self.subnet.stop(it.principal)

    def _publish(self, publisher: EventPublisher, number: int) -> None:
        random = self.random
        row = map_of({"price": nat(random.randrange(100)), "kind": icrc16_text(random.choice("abc")), "n": nat(number)})
        publisher.publish(random.choice(NAMESPACES), row)

    def _latency(self, sender: bytes, receiver: bytes) -> int:
        """Return how long a message takes: none between canisters of the process that is killed, but for relays."""
        if {sender, receiver} & {ORCHESTRATOR, ARCHIVIST} and not {sender, receiver} - self._process:
            return 0
        if sender in self._slow or receiver in self._slow:
            return round(self.random.uniform(0.5, 4) * SECOND)
        return round(self.random.uniform(0.001, 0.2) * SECOND)

    def _later(self, seconds: float, act: Callable[..., object], *arguments: object) -> None:
        def acts() -> None:
            act(*arguments)

        self.subnet.call_later(seconds, acts)


def in_order(seen: Sequence[NotifiedEvent], chains: Mapping[tuple[str, bytes, bytes], list[int]]) -> Iterator[str]:
    """Yield a line for each event that came before one that precedes it in its chain."""
    places = {key: {event_id: place for place, event_id in enumerate(ids)} for key, ids in chains.items()}
    last: dict[tuple[str, bytes, bytes], int] = {}
    for event in seen:
        accepted = event.header(OWN_HEADER)
        assert accepted is not None
        key = event.namespace, event.source, accepted.content
        place = places[key][event.event_id]
        if place < last.get(key, -1):
            yield f"event {event.text_id} of {key} came after the one at place {last[key]}, its own is {place}"
        last[key] = place
