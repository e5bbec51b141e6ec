"""A replay and its life: ``pending``, ``running``, then ``completed``, ``canceled`` or ``errored``.

Law: an ended replay stays as it is. Source: ICRC-77, "Replay Life Cycle".
"""

from dataclasses import dataclass, field
from enum import StrEnum

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.candypath.compiled import TreePredicate
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.record import Headers


class ReplayStage(StrEnum):
    """Where a replay is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    CANCELED = "canceled"
    ERRORED = "errored"


_NEXT = {
    ReplayStage.PENDING: frozenset(ReplayStage) - {ReplayStage.PENDING},
    ReplayStage.RUNNING: frozenset(ReplayStage) - {ReplayStage.PENDING},
}


def is_active(stage: ReplayStage) -> bool:
    """Return whether a replay may still send."""
    return stage in _NEXT


@dataclass(frozen=True, slots=True)
class EventReplay:
    """What a subscriber asked for, who serves it, and how far it is."""

    id: int
    subscriber: bytes
    namespace: str
    start: int
    """The first event id that is asked for."""

    end: int | None
    """The first one that is not; ``None``: all there are when the replay begins."""

    publisher: bytes
    broadcaster: bytes
    """The subscriber's."""

    relay: bytes | None
    """The broadcaster that the publisher publishes to, where that is another one."""

    registered_ns: int
    config: Headers = ()
    memo: bytes = b""
    filter: str | None = None
    selects: TreePredicate | None = field(default=None, compare=False)
    skip: Skip | None = None
    last_seq: int = 0
    """The newest event of the log when it was registered: the replay sends none after it."""

    stage: ReplayStage = ReplayStage.PENDING
    sent: int = 0
    """Number of events sent, as the publisher reports at completion."""

    error: str = ""
    skipped: int = 0
    """Number of events left out, as the publisher reports."""

    @property
    def is_active(self) -> bool:
        return is_active(self.stage)

    @property
    def publishes_to(self) -> bytes:
        """The broadcaster that the publisher publishes to."""
        return self.broadcaster if self.relay is None else self.relay

    def may_become(self, stage: ReplayStage) -> bool:
        return stage in _NEXT.get(self.stage, frozenset())

    def takes(self, event_id: int) -> bool:
        """Return whether the range has an event."""
        return self.start <= event_id and (self.end is None or event_id < self.end)

    def state(self, sent: int) -> Variant:
        """Return its ``ReplayState``; ``sent`` is the number of notifications sent to the subscriber."""
        match self.stage:
            case ReplayStage.COMPLETED:
                return Variant(str(self.stage), self.sent)
            case ReplayStage.CANCELED:
                return Variant(str(self.stage), sent)
            case ReplayStage.ERRORED:
                return Variant(str(self.stage), self.error)
        return Variant(str(self.stage))
