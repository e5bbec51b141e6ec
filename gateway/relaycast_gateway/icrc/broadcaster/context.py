"""What the broadcasters of a process share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from relaycast_gateway.icrc.broadcaster.event_ids import EventIds
from relaycast_gateway.icrc.broadcaster.policy import BroadcastPolicy
from relaycast_gateway.icrc.registry import Registry
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.orchestrator.statistics import Statistics
from relaycast_gateway.log import EventLog


class Access(Protocol):
    """Says who may do what now."""

    def may_publish(self, namespace: str, publisher: bytes) -> bool: ...

    def may_receive(self, namespace: str, subscriber: bytes) -> bool: ...


def _adopt_nothing(namespace: str, publisher: bytes) -> None:
    """Leave a namespace that nobody registered as it is."""


@dataclass(slots=True)
class BroadcasterContext:
    """The log, the registry, and what the orchestrator offers to its broadcasters."""

    log: EventLog
    store: IcrcStore
    registry: Registry
    statistics: Statistics
    access: Access
    orchestrator: bytes
    """Its principal."""

    adopt: Callable[[str, bytes], None] = _adopt_nothing
    """Called with the namespace and the source of an event from another face that nobody registered."""

    policy: BroadcastPolicy = field(default_factory=BroadcastPolicy)
    ids: EventIds = field(init=False)

    def __post_init__(self) -> None:
        self.ids = EventIds(self.log, self.store)
