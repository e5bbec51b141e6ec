"""The replays of a broadcaster, each with a lane of its own.

Law: a replay that was dropped takes no further events; what it took before still reaches its requester, unless it was
dropped to discard that. A lane goes when it is empty and its replay was dropped.
"""

from functools import partial

from relaycast_gateway.icrc.broadcaster.audiences import Audiences
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.broadcaster.durability import Durability
from relaycast_gateway.icrc.broadcaster.lane import Lane, LaneCounts
from relaycast_gateway.icrc.broadcaster.publish_call import PublishCall
from relaycast_gateway.icrc.broadcaster.publishing import Item, failed
from relaycast_gateway.icrc.broadcaster.replaying import (
    AssignedReplay,
    ReplayedTo,
    ReplayIntake,
    ReplaySource,
    stored_replay,
)
from relaycast_gateway.icrc.canister import Canister
from relaycast_gateway.icrc.names import REPLAY_ID

REPLAY_DISCARDED = 5
"""Code of ``GenericError``."""


def replay_id_of(item: Item) -> int | None:
    """Return the replay that an event names in its headers."""
    for pair in item.get("headers") or ():
        if pair[0] == REPLAY_ID:
            value = pair[1].value
            return value if isinstance(value, int) else -1
    return None


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
        self._context = context
        self._canister = canister
        self._table = table
        self._audiences = audiences
        self._counts = counts
        self._durability = durability
        self._intake = ReplayIntake(context)
        self._lanes: dict[int, tuple[Lane, ReplaySource]] = {}

    def load(self) -> None:
        """Take up what waited when the last run ended."""
        for key, stored in self._context.store.items(self._table):
            _, source = self._lane(stored_replay(stored))
            source.load(int.from_bytes(key, "big"), stored)

    def assign(self, replay: AssignedReplay) -> None:
        """Take events of a replay from now on."""
        self.assigned[replay.id] = replay

    def drop(self, replay_id: int, *, discards: bool) -> None:
        """Take no further events of a replay; those that wait are discarded where that is asked."""
        self.assigned.pop(replay_id, None)
        if replay_id in self._lanes:
            if discards:
                self._lanes[replay_id][1].discard(failed(REPLAY_DISCARDED, f"replay {replay_id} is over"))
                self._durability.soon()
            self._tidy(replay_id)

    def take(self, caller: bytes, item: Item, call: PublishCall, place: int) -> None:
        """Take the event at a place of a call when its replay has room; raises ``EventRefused``."""
        replay_id = replay_id_of(item)
        replay = None if replay_id is None else self.assigned.get(replay_id)
        draft = self._intake.take(replay, caller, item)
        if draft is None or replay is None:
            call.take(place, ())
            return
        lane, source = self._lane(ReplayedTo(replay.id, replay.subscriber, replay.filter, replay.namespace))
        source.offer(draft, partial(call.take, place), partial(call.refuse, place))
        self._durability.then(lane.pump)

    def confirm(self, caller: bytes, notification_id: int) -> bool:
        """Take a confirmation; ``False`` where no replay of the caller waits for it."""
        for replay_id, (lane, source) in self._lanes.items():
            if source.subscriber == caller and lane.confirm(notification_id):
                self._durability.then(lane.pump)
                self._tidy(replay_id)
                return True
        return False

    def pump(self) -> None:
        for lane, _ in list(self._lanes.values()):
            lane.pump()

    def close(self) -> None:
        for lane, _ in self._lanes.values():
            lane.close()

    @property
    def outstanding(self) -> list[int]:
        """Notifications that wait for a confirmation."""
        return [it for lane, _ in self._lanes.values() for it in lane.unconfirmed]

    @property
    def waiting(self) -> int:
        return sum(source.waiting for _, source in self._lanes.values())

    def most_waited(self, replay_id: int) -> int:
        """Return the highest number of events of a replay that waited at once."""
        return self._lanes[replay_id][1].most_waited if replay_id in self._lanes else 0

    def _lane(self, about: ReplayedTo) -> tuple[Lane, ReplaySource]:
        known = self._lanes.get(about.id)
        if known is not None:
            return known
        wire = self._canister.wire
        source = ReplaySource(
            about,
            self._context,
            table=self._table,
            now_ns=wire.now_ns,
            take_id=lambda: self._audiences.take_ids(1),
        )
        seed = self._canister.principal + b"replay %d" % about.id
        lane = Lane(source, self._canister, self._context.policy, self._counts, seed=seed)
        self._lanes[about.id] = lane, source
        return lane, source

    def _tidy(self, replay_id: int) -> None:
        if replay_id not in self.assigned and self._lanes[replay_id][1].is_empty:
            self._lanes.pop(replay_id)[0].close()
