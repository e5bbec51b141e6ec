"""A broadcaster's part in replays: what it hears from the orchestrator, and what it tells the requester.

Law: the requester hears of a replay before its first event, and of its end behind its last one. What a canceled or
failed replay had not sent yet is never sent.
"""

from collections.abc import Mapping
from typing import Any

from relaycast_gateway.icrc.broadcaster.broadcaster import Broadcaster
from relaycast_gateway.icrc.broadcaster.replaying import AssignedReplay, RelayedReplay
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.replay.replays import EventReplay, ReplayStage
from relaycast_gateway.icrc.system_messages import (
    BROADCASTER_ADD,
    BROADCASTER_REMOVE,
    RELAY_ADD,
    RELAY_REMOVE,
    SUBSCRIBER_ADD,
    SUBSCRIBER_REMOVE,
    SystemItem,
    items_of,
)
from relaycast_gateway.icrc.variants import icrc16_of

_DISCARDED = {ReplayStage.CANCELED, ReplayStage.ERRORED}


class ReplayServing:
    """Connects ``broadcaster`` with the replays of the registry."""

    def __init__(self, broadcaster: Broadcaster) -> None:
        self._broadcaster = broadcaster
        self._replays: Mapping[int, EventReplay] = broadcaster.context.registry.replays
        broadcaster.on_system_message = self._hear
        broadcaster.replays.on_over = self._over
        for replay in self._replays.values():  # their publishers may go on before the orchestrator tells of them again
            if replay.is_active:
                self._assign(replay)

    def _hear(self, message: Mapping[str, Any]) -> None:
        for item in items_of(icrc16_of(message["data"])):
            replay = self._replays.get(item.replay_id)
            if replay is not None:
                self._obey(item, replay)

    def _obey(self, item: SystemItem, replay: EventReplay) -> None:
        broadcaster = self._broadcaster
        if item.key == BROADCASTER_ADD and replay.is_active:
            is_new = replay.id not in broadcaster.replays.assigned or replay.stage is ReplayStage.PENDING
            self._assign(replay)
            if is_new:
                self._tell(replay, SystemItem(SUBSCRIBER_ADD, replay.id, broadcaster=broadcaster.principal))
        elif item.key == BROADCASTER_REMOVE:
            broadcaster.drop_replay(replay.id, discards=replay.stage in _DISCARDED)
        elif item.key == RELAY_ADD and replay.is_active:
            self._assign(replay)
        elif item.key == RELAY_REMOVE:
            broadcaster.replays.relayed.pop(replay.id, None)

    def _assign(self, replay: EventReplay) -> None:
        """Take the events of a replay, or hand them on, whichever is the broadcaster's part."""
        broadcaster = self._broadcaster
        if broadcaster.principal == replay.broadcaster:
            broadcaster.assign_replay(
                AssignedReplay(
                    replay.id,
                    replay.namespace,
                    replay.subscriber,
                    replay.publisher,
                    replay.start,
                    replay.end,
                    replay.filter,
                    replay.selects,
                    replay.skip,
                    replay.relay,
                )
            )
        elif broadcaster.principal == replay.relay:
            broadcaster.replays.relayed[replay.id] = RelayedReplay(
                replay.id, replay.namespace, replay.publisher, replay.broadcaster
            )

    def _over(self, replay_id: int) -> None:
        replay = self._replays.get(replay_id)
        if replay is not None and not replay.is_active:  # one that goes on is assigned again after a restart
            self._tell(replay, SystemItem(SUBSCRIBER_REMOVE, replay_id))

    def _tell(self, replay: EventReplay, item: SystemItem) -> None:
        self._broadcaster.tell(replay.subscriber, CanisterRole.SUBSCRIBER, item)
