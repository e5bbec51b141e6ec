"""What a broadcaster relays to all the others.

Law: for each other broadcaster the store has the newest event up to which all is settled; a restart looks at the log
from there on.
"""

from collections.abc import Iterator
from functools import partial

from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.broadcaster.fan_out import EventFanOut
from relaycast_gateway.icrc.broadcaster.relaying import RelayLane, home_of
from relaycast_gateway.icrc.canister import Canister
from relaycast_gateway.icrc.durability import Durability
from relaycast_gateway.icrc.store import number_key
from relaycast_gateway.record import EventRecord


class Relays:
    """The lanes to other broadcasters."""

    def __init__(self, context: BroadcasterContext, canister: Canister, table: str, durability: Durability) -> None:
        self._context = context
        self._canister = canister
        self._table = table
        self._durability = durability
        self._fan_outs: dict[bytes, EventFanOut] = {}
        self._lanes: dict[bytes, RelayLane] = {}

    @property
    def relayed(self) -> int:
        return sum(lane.relayed for lane in self._lanes.values())

    @property
    def errors(self) -> int:
        return sum(lane.errors for lane in self._lanes.values())

    @property
    def waiting(self) -> int:
        return sum(len(lane.waiting) for lane in self._lanes.values())

    def load(self, cursor: int) -> None:
        """Relay again what the last run did not settle, of events up to ``cursor``."""
        context = self._context
        for target in self._others():
            kept = context.store.get(self._table, target)
            after = cursor if kept is None else int.from_bytes(kept, "big")
            while records := context.log.read(after, before=cursor + 1):
                for record in records:
                    ordinal = context.log.ordinal(record)
                    mine = home_of(record, context.registry.broadcasters) == self._canister.principal
                    if mine and ordinal is not None:
                        self._offer_to(target, record, ordinal, after)
                after = records[-1].seq

    def offer(self, record: EventRecord, ordinal: int, cursor: int) -> None:
        """Relay an event to each broadcaster that has a subscription for it; all up to ``cursor`` was looked at."""
        for target in self._others():
            self._offer_to(target, record, ordinal, cursor)

    def note(self, cursor: int) -> None:
        """Note that all events up to ``cursor`` were looked at."""
        for target, lane in self._lanes.items():
            if not lane.waiting:
                self._context.store.put(self._table, target, number_key(cursor))

    def pump(self) -> None:
        for lane in list(self._lanes.values()):
            lane.pump()

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()

    def _others(self) -> Iterator[bytes]:
        return (it for it in self._context.registry.broadcasters if it != self._canister.principal)

    def _offer_to(self, target: bytes, record: EventRecord, ordinal: int, cursor: int) -> None:
        fan_out = self._fan_outs.get(target)
        if fan_out is None:
            fan_out = self._fan_outs[target] = EventFanOut(self._context, target)
        if not fan_out.members(record, ordinal).ids:
            return
        lane = self._lanes.get(target)
        if lane is None:
            lane = self._lanes[target] = RelayLane(target, self._canister, self._context, partial(self.settle, target))
            self._context.store.put(self._table, target, number_key(cursor))
        lane.offer(record.seq)

    def settle(self, target: bytes, seq: int) -> None:
        """Note that a broadcaster answered all relays up to an event."""
        self._context.store.put(self._table, target, number_key(seq))
        self._durability.soon()
