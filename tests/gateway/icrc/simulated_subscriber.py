"""A subscriber of the simulation: what it asks for, and all that its handlers saw.

Law: ``FILTERS`` says what a filter means as a plain Python function, for events and close-outs alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.subscriber import EventSubscriber
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc.subscriber.replay_progress import ReplayProgress
from relaycast_gateway.icrc16 import Icrc16

Row = Mapping[str, Any]

FILTERS: Mapping[str, Callable[[Row], bool]] = {
    "price > 50": lambda row: "price" in row and row["price"] > 50,
    "price <= 20 | kind == b": lambda row: ("price" in row and row["price"] <= 20) or row.get("kind") == "b",
    "kind != a & price != 7": lambda row: row.get("kind") != "a" and row.get("price") != 7,
    "price < 0": lambda _row: False,
}
"""Filters and what they mean; close-outs have neither price nor kind."""


@dataclass
class SimulatedSubscriber:
    """A subscriber and all that its handlers saw, over all its lives."""

    principal: bytes
    namespace: str
    filter: str | None
    skip: Skip | None
    is_trusted: bool
    store: IcrcStore
    seen: list[NotifiedEvent] = field(default_factory=list)
    seen_ns: list[int] = field(default_factory=list)
    subscription: int | None = None
    canister: EventSubscriber | None = None
    gaps: int = 0
    asked: tuple[str, int, int | None] | None = None
    """The replay that it asked for and was granted: namespace, start and end."""

    replay: int | None = None
    last_seq: int = 0
    """The newest event when the replay was registered."""

    ended: list[ReplayProgress] = field(default_factory=list)
    has_crashed: bool = False

    @property
    def live(self) -> list[NotifiedEvent]:
        """What came by itself."""
        return [event for event in self.seen if event.replay_id is None]

    @property
    def replayed(self) -> list[NotifiedEvent]:
        """What a replay brought that was not known."""
        return [event for event in self.seen if event.replay_id is not None]


def is_meant(filter_text: str, data: Icrc16) -> bool:
    return FILTERS[filter_text]({key: value.content for key, value in data.content})
