"""The replays of a broadcaster, each with a lane of its own.

Law: a replay that was dropped takes no further events; what it took before still reaches its requester, unless it was
dropped to discard that. A lane goes when it is empty and its replay was dropped.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import msgspec

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.broadcaster.audiences import Audiences
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.broadcaster.lane import LaneCounts, NotificationLane
from relaycast_gateway.icrc.broadcaster.publish_call import PublishCall
from relaycast_gateway.icrc.broadcaster.publishing import EventRefused, Item, failed, improper_id
from relaycast_gateway.icrc.broadcaster.replaying import (
    AssignedReplay,
    RelayedReplay,
    ReplayedTo,
    ReplayIntake,
    ReplaySource,
    replay_id_of,
    stored_replay,
)
from relaycast_gateway.icrc.canister import Answer, Canister
from relaycast_gateway.icrc.durability import Durability
from relaycast_gateway.icrc.id_runs import IdRuns, RunDump
from relaycast_gateway.icrc.names import RELAY_RECEIVED, RELAY_SENT, REPLAY_ID
from relaycast_gateway.icrc.store import number_key
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import nat

_ENCODER = msgspec.msgpack.Encoder()
_RUNS = msgspec.msgpack.Decoder(list[RunDump])

REPLAY_DISCARDED = 5
"""Code of ``GenericError``."""


class Replays:
    """What ``canister`` replays."""

    def __init__(
        self,
        context: BroadcasterContext,
        canister: Canister,
        table: str,
        audiences: Audiences,
        counts: LaneCounts,
        durability: Durability,
    ) -> None:
        self.assigned: dict[int, AssignedReplay] = {}
        self.relayed: dict[int, RelayedReplay] = {}
        """Replays whose events are handed on to another broadcaster."""

        self.on_over: Callable[[int], None] = lambda _replay_id: None
        """Called when a replay was dropped and nothing of it waits."""

        self._context = context
        self._canister = canister
        self._table = table
        self._audiences = audiences
        self._counts = counts
        self._durability = durability
        self._intake = ReplayIntake(context)
        self._taken_table = f"{table}:taken"
        self._taken: dict[int, IdRuns] = {}
        """What tells the events that were taken, by replay."""

        self._held_back: dict[int, set[int]] = {}
        """The same of those for which there is no room yet."""

        self._lanes: dict[int, tuple[NotificationLane, ReplaySource]] = {}
        self._replay_of: dict[int, int] = {}
        """Replays of the notifications that are not finished."""

    def load(self) -> None:
        """Take up what waited when the last run ended."""
        for key, stored in self._context.store.items(self._table):
            about, notification_id = stored_replay(stored), int.from_bytes(key, "big")
            _, source = self._lane(about)
            source.load(notification_id, stored)
            self._replay_of[notification_id] = about.id

    def assign(self, replay: AssignedReplay) -> None:
        """Take events of a replay from now on."""
        self.assigned[replay.id] = replay

    def drop(self, replay_id: int, *, discards: bool) -> None:
        """Take no further events of a replay; those that wait are discarded where that is asked."""
        if self.assigned.pop(replay_id, None) is None:
            return
        self._taken.pop(replay_id, None)
        self._held_back.pop(replay_id, None)
        self._context.store.delete(self._taken_table, number_key(replay_id))
        self._durability.soon()
        if replay_id not in self._lanes:
            self.on_over(replay_id)
            return
        if discards:
            self._lanes[replay_id][1].discard(failed(REPLAY_DISCARDED, f"replay {replay_id} is over"))
        self._tidy(replay_id)

    def take(self, caller: bytes, item: Item, call: PublishCall, place: int) -> None:
        """Take the event at a place of a call when its replay has room; raises ``EventRefused``."""
        replay_id = replay_id_of(item)
        if replay_id in self.relayed:
            self._hand_on(self.relayed[replay_id], caller, item, call, place)
            return
        replay = None if replay_id is None else self.assigned.get(replay_id)
        self._take_of(replay, caller, item, call, place)

    def take_relayed(self, caller: bytes, item: Item, call: PublishCall, place: int) -> None:
        """Take an event that the replay's relay hands on; raises ``EventRefused``."""
        replay_id = replay_id_of(item)
        replay = None if replay_id is None else self.assigned.get(replay_id)
        if replay is None or replay.relay != caller:
            raise EventRefused(Variant("Unauthorized"))
        received = pairs_of([(RELAY_RECEIVED, nat(self._canister.wire.now_ns()))])
        arrived = {**item, "headers": [*(item.get("headers") or ()), *received]}
        self._take_of(replay, replay.publisher, arrived, call, place)

    def _take_of(self, replay: AssignedReplay | None, caller: bytes, item: Item, call: PublishCall, place: int) -> None:
        draft = self._intake.take(replay, caller, item)
        if replay is not None and not self._context.orchestrator.may_receive(replay.namespace, replay.subscriber):
            raise EventRefused(Variant("Unauthorized"))  # the right was taken away meanwhile
        if draft is None or replay is None:
            call.take(place, ())
            return
        taken, number = self._taken_of(replay.id), self._intake.place_of(item)
        waiting = self._held_back.setdefault(replay.id, set())
        if number in waiting or taken.has(number):
            call.take(place, ())
            return
        lane, source = self._lane(ReplayedTo(replay.id, replay.subscriber, replay.filter, replay.namespace))

        def has_room(ids: Sequence[int]) -> None:
            waiting.discard(number)
            taken.add(number)
            if self._taken.get(replay.id) is taken:  # the replay was not dropped meanwhile
                self._context.store.put(self._taken_table, number_key(replay.id), _ENCODER.encode(taken.dump()))
            call.take(place, ids)

        def is_over(error: Variant) -> None:
            waiting.discard(number)
            call.refuse(place, error)

        waiting.add(number)
        try:
            source.offer(draft, has_room, is_over)
        except EventRefused:
            waiting.discard(number)
            raise
        self._durability.then(lane.pump)

    def _taken_of(self, replay_id: int) -> IdRuns:
        """Return the events of a replay that were taken: a publisher that had no answer sends them again."""
        if replay_id not in self._taken:
            kept = self._context.store.get(self._taken_table, number_key(replay_id))
            self._taken[replay_id] = IdRuns(() if kept is None else _RUNS.decode(kept))
        return self._taken[replay_id]

    def _hand_on(self, replay: RelayedReplay, caller: bytes, item: Item, call: PublishCall, place: int) -> None:
        """Send an event to the requester's broadcaster; its result is that of the publisher's call."""
        if caller != replay.publisher or replay.namespace != item["namespace"]:
            said = f"a replay of {item['namespace']} that the caller serves"
            raise improper_id(f"{REPLAY_ID}: expected {said}, got {replay.id}")
        source = Principal(caller) if item.get("source") is None else item["source"]
        sent = pairs_of([(RELAY_SENT, nat(self._canister.wire.now_ns()))])
        relay = {**item, "source": source, "headers": [*(item.get("headers") or ()), *sent]}

        def answered(answer: Answer) -> None:
            if answer.refusal is not None:
                call.refuse(place, Variant("Busy"))  # the publisher tries it again
                return
            (result,) = cast("list[Variant]", answer.value)
            if result.tag == "Ok":
                call.take(place, cast("list[int]", result.value))
            else:
                call.refuse(place, cast("Variant", result.value))

        self._canister.call(replay.target, "icrc72_publish_relay", [relay], answered)

    def confirm(self, caller: bytes, notification_id: int) -> bool:
        """Take a confirmation; ``False`` where no replay of the caller waits for it."""
        replay_id = self._replay_of.get(notification_id)
        if replay_id is None:
            return False
        lane, source = self._lanes[replay_id]
        if source.subscriber != caller or not lane.confirm(notification_id):
            return False
        self._durability.then(lane.pump)
        return True

    def pump(self) -> None:
        for lane, _ in list(self._lanes.values()):
            lane.pump()

    def close(self) -> None:
        for lane, _ in self._lanes.values():
            lane.close()

    @property
    def lanes(self) -> list[NotificationLane]:
        """The connections to the requesters of all replays."""
        return [lane for lane, _ in self._lanes.values()]

    @property
    def waiting(self) -> int:
        return sum(source.waiting for _, source in self._lanes.values())

    def most_waited(self, replay_id: int) -> int:
        """Return the highest number of events of a replay that waited at once."""
        return self._lanes[replay_id][1].most_waited if replay_id in self._lanes else 0

    def _lane(self, about: ReplayedTo) -> tuple[NotificationLane, ReplaySource]:
        known = self._lanes.get(about.id)
        if known is not None:
            return known
        wire = self._canister.wire
        source = ReplaySource(
            about,
            self._context,
            table=self._table,
            now_ns=wire.now_ns,
            take_id=partial(self._take_id, about.id),
        )
        source.on_finished = partial(self._finished, about.id)
        seed = self._canister.principal + b"replay %d" % about.id
        lane = NotificationLane(source, self._canister, self._context.policy, self._counts, seed=seed)
        self._lanes[about.id] = lane, source
        return lane, source

    def _take_id(self, replay_id: int) -> int:
        notification_id = self._audiences.take_ids(1)
        self._replay_of[notification_id] = replay_id
        return notification_id

    def _finished(self, replay_id: int, notification_id: int) -> None:
        del self._replay_of[notification_id]
        self._tidy(replay_id)

    def _tidy(self, replay_id: int) -> None:
        if replay_id in self._lanes and replay_id not in self.assigned and self._lanes[replay_id][1].is_empty:
            self._lanes.pop(replay_id)[0].close()
            self.on_over(replay_id)
