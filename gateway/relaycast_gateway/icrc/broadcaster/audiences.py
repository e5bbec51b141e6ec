"""Who is to be notified of which event: the broadcaster's list of work, in the store.

Law: the notifications of an event have consecutive ids, in the order in which subscriptions are notified; no id is used
twice. An audience is durable before its first notification is sent and is kept until each one is finished, so that a
restart goes on with the same ids. Memory holds two counters for each audience, and the newest audiences.
Source: ICRC-72, "Event Notification Identifiers".
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from relaycast_gateway.icrc.broadcaster.fan_out import EventMembers
from relaycast_gateway.icrc.store import IcrcStore, number_key
from relaycast_gateway.record import EventRecord

NEXT_ID = b"next"
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[int, str, int, tuple[int, int] | None, list[int]])


@dataclass(frozen=True, slots=True)
class Audience:
    """The notifications of an event."""

    first: int
    """The id of the first one."""

    seq: int
    """The event's place in the log."""

    namespace: str
    generated_ns: int
    """When the notifications were made."""

    relayed: tuple[int, int] | None
    """When another broadcaster sent the event to this one, and when this one received it."""

    members: EventMembers

    @property
    def end(self) -> int:
        """The id after the last one."""
        return self.first + len(self.members.ids)


@dataclass(slots=True)
class _Open:
    unsent: int
    unfinished: int


class Audiences:
    """The audiences of one broadcaster that are not finished yet."""

    def __init__(self, store: IcrcStore, name: str, *, most_in_memory: int) -> None:
        self._store = store
        self._table = f"{name}:audiences"
        self._state = f"{name}:state"
        self._most = most_in_memory
        self._recent: OrderedDict[int, Audience] = OrderedDict()
        self._open: dict[int, _Open] = {}
        self._firsts: list[int] = []
        """In order; those that are finished leave when all before them have."""

        self._start = 0
        """The place of the first one in ``_firsts`` that has not left."""

        kept = store.get(self._state, NEXT_ID)
        self.next_id = 1 if kept is None else int.from_bytes(kept, "big")
        """The id that the next notification gets."""

    def load(self) -> Iterator[Audience]:
        """Yield what the store holds, from the last run; ``sent`` and ``finished`` say what was done then."""
        for key, value in self._store.items(self._table):
            audience = _decoded(int.from_bytes(key, "big"), value)
            count = len(audience.members.ids)
            self._open[audience.first] = _Open(count, count)
            self._firsts.append(audience.first)
            yield audience

    def take_ids(self, count: int) -> int:
        """Return the first of ``count`` new ids."""
        first = self.next_id
        self.next_id += count
        self._store.put(self._state, NEXT_ID, number_key(self.next_id))
        return first

    def add(
        self,
        record: EventRecord,
        members: EventMembers,
        generated_ns: int,
        relayed: tuple[int, int] | None = None,
    ) -> Audience:
        """Note that an event goes to ``members``, of which there is at least one."""
        count = len(members.ids)
        audience = Audience(self.take_ids(count), record.seq, record.namespace, generated_ns, relayed, members)
        body = (audience.seq, audience.namespace, generated_ns, relayed, members.ids)
        self._store.put(self._table, number_key(audience.first), _ENCODER.encode(body))
        self._open[audience.first] = _Open(count, count)
        self._firsts.append(audience.first)
        self._remember(audience)
        return audience

    def get(self, first: int) -> Audience:
        """Return the audience whose first id is ``first``; it must be open."""
        found = self._recent.get(first)
        if found is None:
            stored = self._store.get(self._table, number_key(first))
            assert stored is not None, f"audience {first} is open and not in the store"
            found = _decoded(first, stored)
            self._remember(found)
        return found

    def since(self, notification_id: int, most: int) -> Iterator[Audience]:
        """Yield open audiences whose first id is ``notification_id`` or later, at most ``most`` of them.

        None may be finished meanwhile.
        """
        at = bisect_left(self._firsts, notification_id, self._start)
        while most and at < len(self._firsts):
            if self._firsts[at] in self._open:
                most -= 1
                yield self.get(self._firsts[at])
            at += 1

    def holding(self, notification_id: int) -> Audience | None:
        """Return the open audience that has a notification."""
        at = bisect_right(self._firsts, notification_id, self._start) - 1
        if at < self._start or self._firsts[at] not in self._open:
            return None
        found = self.get(self._firsts[at])
        return found if notification_id < found.end else None

    def sent(self, audience: Audience) -> bool:
        """Note that one more was sent for the first time; return whether that was the last."""
        it = self._open[audience.first]
        it.unsent -= 1
        return it.unsent == 0

    def finished(self, audience: Audience) -> bool:
        """Note that one more needs nothing further; return whether that was the last, and the audience is gone."""
        it = self._open[audience.first]
        it.unfinished -= 1
        if it.unfinished == 0:
            del self._open[audience.first]
            self._recent.pop(audience.first, None)
            self._store.delete(self._table, number_key(audience.first))
            self._leave()
        return it.unfinished == 0

    def __len__(self) -> int:
        return len(self._open)

    def _leave(self) -> None:
        while self._start < len(self._firsts) and self._firsts[self._start] not in self._open:
            self._start += 1
        if self._start * 2 > len(self._firsts):
            del self._firsts[: self._start]
            self._start = 0

    def _remember(self, audience: Audience) -> None:
        self._recent[audience.first] = audience
        if len(self._recent) > self._most:
            self._recent.popitem(last=False)


def _decoded(first: int, stored: bytes) -> Audience:
    seq, namespace, generated_ns, relayed, ids = _DECODER.decode(stored)
    return Audience(first, seq, namespace, generated_ns, relayed, EventMembers(tuple(ids)))
