"""What delivery expects of a protocol: a sender, and what came of sending.

Law: a sender does not raise for what a peer or the network does: it returns an outcome. It is told to stop by
cancellation, and then leaves nothing running.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from relaycast_gateway.delivery.wire_message import WireMessage


@dataclass(frozen=True, slots=True)
class Accepted:
    """The peer acknowledged the message in the protocol's own way."""


@dataclass(frozen=True, slots=True)
class Retryable:
    """The message may be taken another time; ``after_seconds`` where the peer says when."""

    reason: str
    after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The peer will never take this message."""

    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The peer wants nothing more: the subscription stops."""

    reason: str


SendOutcome = Accepted | Retryable | Refused | Gone


@dataclass(frozen=True, slots=True)
class Target:
    """Where to deliver: ``settings`` are the realized protocol settings, defaults filled in.

    ``secrets`` (credentials, headers that hold them) are never shown: not by ``repr``, in logs, or in reasons. Neither
    is ``sink``, whose query may hold some.
    """

    protocol: str
    sink: str = field(repr=False)
    settings: Mapping[str, Any]
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)


class Sender(Protocol):
    """Sends to one target. ``send`` may be called again before it returned: the window is the caller's."""

    async def send(self, message: WireMessage) -> SendOutcome: ...

    async def close(self) -> None:
        """Give back connections; afterwards nothing of this sender runs."""
        ...


@runtime_checkable
class PacedSender(Sender, Protocol):
    """A sender whose peer set a rate."""

    def take_turn(self) -> float:
        """Take the turn for one message and return 0, or return the seconds until there is one."""
        ...

    def turn_ended(self) -> None:
        """Record that an attempt ended, sent or not."""
        ...
