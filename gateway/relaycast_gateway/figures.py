"""What the gateway's figures are made of; ``metrics`` writes them for Prometheus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relaycast_gateway.delivery.order import DeliveryState

if TYPE_CHECKING:
    from relaycast_gateway.wamp.router import RouterFigures


@dataclass(frozen=True, slots=True)
class IcrcFigures:
    """What the canisters do."""

    publications: int
    subscriptions: int
    running: int
    """Subscriptions that are not stopped."""

    subscribers: int
    """Subscribers with a running subscription."""

    events: int
    """Events that the broadcaster took, ever."""

    notifications: int
    """Notifications sent, ever; repeated ones count again."""

    confirmations: int
    calls: int
    """Calls of canisters since the start."""

    waiting: int
    """Calls to subscribers elsewhere without an answer yet."""

    failed: int
    """Calls to subscribers elsewhere without a result, since the start."""


@dataclass(frozen=True, slots=True)
class IcrcNamespace:
    """A publication, with its events and notifications ever and its running subscriptions now."""

    namespace: str
    events: int
    subscriptions: int
    notifications: int
    confirmations: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The log's bounds, and how each subscription fares, with its protocol."""

    last_seq: int
    history_start: int
    states: Sequence[tuple[DeliveryState, str]]
    lost: int = 0
    """Events that the log could not take."""

    refused: int = 0
    """Requests beyond the rate of their callers."""

    listener_failures: int = 0
    """Number of failures of listeners to the chains."""

    is_ready: bool = True
    wamp: "RouterFigures | None" = None
    """What the WAMP router does, for an admin where there is one."""

    icrc: IcrcFigures | None = None
    """What the canisters do, for an admin where there are some."""
