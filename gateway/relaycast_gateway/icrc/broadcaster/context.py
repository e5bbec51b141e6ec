"""What the broadcasters of a process share."""

from dataclasses import dataclass, field

from relaycast_gateway.icrc.broadcaster.event_ids import EventIds
from relaycast_gateway.icrc.broadcaster.policy import BroadcastPolicy
from relaycast_gateway.icrc.orchestrator.orchestrator import Orchestrator
from relaycast_gateway.icrc.orchestrator.statistics import Statistics
from relaycast_gateway.icrc.registry import Registry
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.log import EventLog


@dataclass(slots=True)
class BroadcasterContext:
    """The log, and the orchestrator with its registry, its store and its statistics."""

    log: EventLog
    orchestrator: Orchestrator
    policy: BroadcastPolicy = field(default_factory=BroadcastPolicy)
    ids: EventIds = field(init=False)

    def __post_init__(self) -> None:
        self.ids = EventIds(self.log, self.store)

    @property
    def store(self) -> IcrcStore:
        return self.orchestrator.store

    @property
    def registry(self) -> Registry:
        return self.orchestrator.registry

    @property
    def statistics(self) -> Statistics:
        return self.orchestrator.statistics
