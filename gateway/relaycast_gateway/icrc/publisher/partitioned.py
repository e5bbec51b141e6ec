"""The events of one publisher in one namespace: their numbers, their partitions, their epochs.

Law: ids increase. The event with the id ``n`` belongs to partition ``n`` mod the number of broadcasters, and names the
event before it in its partition. A close-out is sent when all events of its epoch are acknowledged, and events of the
next one when it is; the next event of each partition names it. An event that was refused is no part of its chain.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from relaycast_gateway import crockford
from relaycast_gateway.icrc.canister import Answer
from relaycast_gateway.icrc.publisher.close_out import close_out
from relaycast_gateway.icrc.publisher.outgoing import OutgoingEvent, OutgoingQueue
from relaycast_gateway.icrc.variants import pairs_of, variant_of


class PartitionedDump(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a publisher stands in a namespace, in plain form; ids are Crockford Base32."""

    namespace: str
    next_id: str
    last_ids: list[str | None]
    """By partition."""

    broadcasters: list[bytes]
    """By partition."""

    epoch: int
    is_ordered: bool
    has_hashes: bool


class PartitionedEvents:
    """One namespace of a publisher, with the queue of each partition."""

    def __init__(
        self,
        namespace: str,
        queues: Sequence[OutgoingQueue],
        *,
        next_id: int,
        is_ordered: bool = True,
        has_hashes: bool = False,
    ) -> None:
        self.namespace = namespace
        self.next_id = next_id
        self.is_ordered = is_ordered
        self.has_hashes = has_hashes
        self.epoch = 0
        """The number of the epoch that is open."""

        self.last_ids: list[int | None] = [None] * len(queues)
        """The last event of each partition that was sent."""

        self._queues = queues
        self._awaiting: deque[OutgoingEvent] = deque()
        self._unacknowledged = 0
        self._is_closing = False

    @classmethod
    def load(cls, dump: PartitionedDump, queues: Sequence[OutgoingQueue]) -> "PartitionedEvents":
        """Return a namespace where ``dump`` left it; its events are given to ``add`` again."""
        next_id = crockford.decode(dump.next_id)
        loaded = cls(dump.namespace, queues, next_id=next_id, is_ordered=dump.is_ordered, has_hashes=dump.has_hashes)
        loaded.epoch = dump.epoch
        loaded.last_ids = [None if each is None else crockford.decode(each) for each in dump.last_ids]
        return loaded

    def dump(self) -> PartitionedDump:
        """Return where the publisher stands."""
        return PartitionedDump(
            self.namespace,
            crockford.encode(self.next_id),
            [None if each is None else crockford.encode(each) for each in self.last_ids],
            [queue.broadcaster for queue in self._queues],
            self.epoch,
            self.is_ordered,
            self.has_hashes,
        )

    @property
    def awaiting(self) -> Sequence[OutgoingEvent]:
        """The events that wait for the end of an epoch."""
        return self._awaiting

    def new_event(self, event: dict[str, Any], *, closes_epoch: bool = False) -> OutgoingEvent:
        """Give an event its number and send it, in the next epoch where one is about to end."""
        event["id"], self.next_id = self.next_id, self.next_id + 1
        outgoing = OutgoingEvent(self, event, closes_epoch)
        self.add(outgoing)
        return outgoing

    def add(self, outgoing: OutgoingEvent) -> None:
        """Send an event that has its number: one that was sent before goes first."""
        if outgoing.is_linked:
            self._is_closing |= outgoing.closes_epoch
            self._enqueue(outgoing)
        else:
            self._awaiting.append(outgoing)
            self._go_on()

    def link(self, outgoing: OutgoingEvent) -> None:
        """Give an event its place in the chain of its partition, when it is sent for the first time."""
        at = outgoing.event_id % len(self.last_ids)
        outgoing.is_linked = True
        outgoing.before, self.last_ids[at] = self.last_ids[at], outgoing.event_id
        outgoing.event["prev_id"] = outgoing.before if self.is_ordered else None

    def answered(self, outgoing: OutgoingEvent, answer: Answer) -> None:
        """Note that an event is acknowledged, or that it was refused and its chain goes on without it."""
        self._unacknowledged -= 1
        at = outgoing.event_id % len(self.last_ids)
        if answer.refusal is not None and self.last_ids[at] == outgoing.event_id:
            self.last_ids[at] = outgoing.before
        if outgoing.closes_epoch:
            self._is_closing = False
            if answer.refusal is None:
                self.epoch += 1
                self.last_ids = [outgoing.event_id] * len(self.last_ids)
        self._go_on()

    def _go_on(self) -> None:
        """Send what may be sent."""
        while self._awaiting and not self._is_closing:
            outgoing = self._awaiting[0]
            if outgoing.closes_epoch:
                if self._unacknowledged:
                    return
                self._is_closing = True
                data, headers = close_out(self.epoch, self.last_ids)
                outgoing.event |= {"data": variant_of(data), "headers": pairs_of(headers)}
            self._enqueue(self._awaiting.popleft())

    def _enqueue(self, outgoing: OutgoingEvent) -> None:
        self._unacknowledged += 1
        self._queues[outgoing.event_id % len(self._queues)].add(outgoing)
