"""How far the replays of a subscriber have come.

Law: an open replay is complete when the event came that ``icrc77:replay:end_id`` names; any other one, and one that
sends nothing, ends with the message ``icrc77:subscriber:replay:remove``. Source: ICRC-77, "Replay Headers".
"""

from collections.abc import Callable
from dataclasses import dataclass

from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc.system_messages import SUBSCRIBER_ADD, SystemItem


@dataclass(slots=True)
class ReplayProgress:
    """A replay as its requester sees it."""

    replay_id: int
    broadcaster: bytes | None = None
    end_id: int | None = None
    received: int = 0
    """Number of its events that came, those included that were known already."""

    is_complete: bool = False
    """Whether its last event came."""

    is_removed: bool = False
    """Whether the system said that nothing more will come."""

    @property
    def has_ended(self) -> bool:
        return self.is_complete or self.is_removed


ReplayEnded = Callable[[ReplayProgress], None]


class HeardReplays:
    """The replays that a subscriber heard of."""

    def __init__(self, ended: ReplayEnded) -> None:
        self.replays: dict[int, ReplayProgress] = {}
        self._ended = ended

    def note_event(self, event: NotifiedEvent) -> None:
        """Count an event that was handed over or known already."""
        if event.replay_id is None:
            return
        progress = self._of(event.replay_id)
        progress.broadcaster = event.broadcaster
        progress.received += 1
        if event.replay_end_id is not None:
            progress.end_id = event.replay_end_id
        if event.event_id == progress.end_id and not progress.is_complete:
            progress.is_complete = True
            if not progress.is_removed:
                self._ended(progress)

    def note_item(self, item: SystemItem) -> None:
        """Take up what a system message says of a replay."""
        progress = self._of(item.replay_id)
        if item.key == SUBSCRIBER_ADD:
            progress.broadcaster = item.broadcaster
        elif not progress.is_removed:
            had_ended, progress.is_removed = progress.has_ended, True
            if not had_ended:
                self._ended(progress)

    def _of(self, replay_id: int) -> ReplayProgress:
        return self.replays.setdefault(replay_id, ReplayProgress(replay_id))
