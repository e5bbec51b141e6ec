"""The publisher canister: it registers publications, numbers events, and sends them until they are acknowledged.

Law: an event is sent with the same id and content until a broadcaster accepts or refuses it, also after a restart from
``dump``. Broadcasters recognise it, so it is delivered once. Source: ICRC-72, "Event Identifiers".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, cast

import msgspec

from relaycast_gateway import crockford
from relaycast_gateway.candid import decode, encode
from relaycast_gateway.delivery.schedule import Dice
from relaycast_gateway.icrc.broadcaster_list import ask_for_broadcasters
from relaycast_gateway.icrc.canister import Answer, CallRefused, Canister, Handler, Promise, Wire
from relaycast_gateway.icrc.interface import CanisterRole, definitions
from relaycast_gateway.icrc.names import HASH, UNORDERED
from relaycast_gateway.icrc.publisher.outgoing import OutgoingEvent, OutgoingQueue
from relaycast_gateway.icrc.publisher.partitioned import PartitionedDump, PartitionedEvents
from relaycast_gateway.icrc.registered import registered_id
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc.variants import pairs_of, variant_of
from relaycast_gateway.icrc16 import NOTHING, Icrc16, blob, boolean
from relaycast_gateway.principal import principal_text
from relaycast_gateway.record import Headers

MOST_WAITING = 100_000
"""Events of a publisher that are not acknowledged: more are refused at once."""

_EVENT = definitions() + "(Event)"


class UnacknowledgedEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event on its way, in plain form."""

    event: bytes
    """Candid, as the type ``Event``."""

    is_linked: bool
    closes_epoch: bool
    before: str | None


class PublisherDump(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a publisher goes on with after a restart."""

    namespaces: list[PartitionedDump]
    unacknowledged: list[UnacknowledgedEvent]


class EventPublisher(Canister):
    """A publisher with its own principal, for any number of namespaces."""

    role = CanisterRole.PUBLISHER

    def __init__(
        self,
        principal: bytes,
        wire: Wire,
        orchestrator: bytes,
        *,
        broadcasters: Sequence[bytes] | None = None,
        first_id: int = 1,
        dice: Dice | None = None,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        super().__init__(principal, wire)
        self.orchestrator = orchestrator
        self._given = None if broadcasters is None else list(broadcasters)
        self._first_id = first_id
        self._dice = dice or Random(int.from_bytes(principal))  # noqa: S311 - jitter
        self._most_waiting = most_waiting
        self._queues: dict[bytes, OutgoingQueue] = {}
        self._namespaces: dict[str, PartitionedEvents] = {}

    def handlers(self) -> Mapping[str, Handler]:
        return {"icrc72_handle_notification": self._handle}

    def register(
        self, namespace: str, *, config: Headers = (), is_ordered: bool = True, has_hashes: bool = False
    ) -> Promise[Answer]:
        """Register a publication; the promised answer has its id, or why it was refused.

        ``is_ordered`` links each event to the one before it in its partition; ``has_hashes`` gives each event the
        header ``icrc72:eventData:hash``.
        """
        more = () if is_ordered else ((UNORDERED, boolean(True)),)
        registration = {"namespace": namespace, "config": pairs_of((*config, *more)), "memo": None}
        promise: Promise[Answer] = Promise()

        def registered(answer: Answer) -> None:
            result = registered_id(answer)
            if result.refusal is not None:
                promise.settle(result)
            elif self._given is not None:
                begin(self._given, result)
            else:
                ask_for_broadcasters(self._ask, lambda it: found(it, result))

        def found(answer: Answer, result: Answer) -> None:
            if answer.refusal is not None:
                promise.settle(answer)
            elif answer.value:
                begin(cast("list[bytes]", answer.value), result)
            else:
                promise.settle(Answer(refusal="the orchestrator names no broadcaster"))

        def begin(broadcasters: Sequence[bytes], result: Answer) -> None:
            if namespace not in self._namespaces:
                self._namespaces[namespace] = PartitionedEvents(
                    namespace,
                    [self._queue(it) for it in broadcasters],
                    next_id=self._first_id,
                    is_ordered=is_ordered,
                    has_hashes=has_hashes,
                )
            promise.settle(result)

        self._ask("icrc72_register_publication", [registration], registered)
        return promise

    def publish(
        self, namespace: str, data: Icrc16, *, headers: Headers = (), timestamp_ns: int | None = None
    ) -> Promise[Answer]:
        """Send an event; the promised answer has an ``AcceptedEvent``, or why the event was refused.

        ``ValueError`` for a namespace that is not registered, and where ``most_waiting`` events wait.
        """
        place = self._place(namespace)
        hashes = ((HASH, blob(eventdata_hash(data))),) if place.has_hashes else ()
        event = self._event(namespace, data, (*headers, *hashes), timestamp_ns)
        return place.new_event(event).promise

    def close_epoch(self, namespace: str) -> Promise[Answer]:
        """End the epoch of a namespace behind all events so far: its close-out names the last one of each partition."""
        event = self._event(namespace, NOTHING, (), None)
        return self._place(namespace).new_event(event, closes_epoch=True).promise

    @property
    def waiting(self) -> int:
        """Number of events that are not acknowledged."""
        return sum(map(len, self._queues.values())) + sum(len(it.awaiting) for it in self._namespaces.values())

    @property
    def retries(self) -> int:
        """Number of calls after which something had to be sent again."""
        return sum(queue.retries for queue in self._queues.values())

    def dump(self) -> PublisherDump:
        """Return what a new object goes on with, after ``load``."""
        return PublisherDump(
            [it.dump() for it in self._namespaces.values()],
            [
                UnacknowledgedEvent(encode(_EVENT, [it.event]), it.is_linked, it.closes_epoch, _text(it.before))
                for it in sorted(self._unacknowledged(), key=lambda it: it.event_id)
            ],
        )

    def load(self, dump: PublisherDump) -> None:
        """Go on where another object ended: what it had not seen acknowledged is sent again."""
        assert not self._namespaces, "a publisher is loaded before anything else"
        for each in dump.namespaces:
            queues = [self._queue(it) for it in each.broadcasters]
            self._namespaces[each.namespace] = PartitionedEvents.load(each, queues)
        for it in sorted(dump.unacknowledged, key=lambda it: not it.is_linked):
            (event,) = cast("list[dict[str, Any]]", decode(it.event, _EVENT))
            place = self._namespaces[event["namespace"]]
            before = None if it.before is None else crockford.decode(it.before)
            place.add(OutgoingEvent(place, event, it.closes_epoch, it.is_linked, before))

    def close(self) -> None:
        """End this object: ``dump`` has what it had not seen acknowledged."""
        for queue in self._queues.values():
            queue.close()

    def _unacknowledged(self) -> Iterator[OutgoingEvent]:
        for queue in self._queues.values():
            yield from queue
        for place in self._namespaces.values():
            yield from place.awaiting

    def _place(self, namespace: str) -> PartitionedEvents:
        place = self._namespaces.get(namespace)
        if place is None:
            raise ValueError(f"namespace: got {namespace!r}, expected one that is registered")
        if self.waiting >= self._most_waiting:
            raise ValueError(f"events: got one more, expected at most {self._most_waiting} that are not acknowledged")
        return place

    def _event(self, namespace: str, data: Icrc16, headers: Headers, timestamp_ns: int | None) -> dict[str, Any]:
        return {
            "id": 0,
            "prev_id": None,
            "prevId": None,
            "timestamp": self.wire.now_ns() if timestamp_ns is None else timestamp_ns,
            "namespace": namespace,
            "source": None,
            "data": variant_of(data),
            "headers": pairs_of(headers) or None,
        }

    def _queue(self, broadcaster: bytes) -> OutgoingQueue:
        queue = self._queues.get(broadcaster)
        if queue is None:

            def publish(callee: bytes, events: list[dict[str, Any]], answered: Callable[[Answer], None]) -> None:
                self.call(callee, "icrc72_publish", events, answered)

            queue = self._queues[broadcaster] = OutgoingQueue(broadcaster, publish, self.wire, self._dice)
        return queue

    def _handle(self, caller: bytes, _argument: object) -> None:
        """Take a system message; what it asks is done by those that are capable of replays."""
        if caller != self.orchestrator and caller not in self._queues:
            raise CallRefused(f"{principal_text(caller)} is neither the orchestrator nor a broadcaster")

    def _ask(self, method: str, argument: object, answered: Callable[[Answer], None]) -> None:
        self.call(self.orchestrator, method, argument, answered)


def _text(number: int | None) -> str | None:
    return None if number is None else crockford.encode(number)
