"""What a client gets: replies, events, and the end of its session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaycast_gateway.wamp.messages import EventMessage, ResultMessage

CONNECTION_LOST = "wamp.close.transport_lost"


class SessionEnded(ConnectionError):
    """The session is over: ``reason`` is the router's URI, ``message`` what it said."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


class JoinRefused(SessionEnded):
    """The router did not open the session."""


@dataclass(frozen=True, slots=True)
class CallReply:
    """What a call gave, in whole or in part."""

    args: Sequence[Any] | bytes = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> Any:
        """Return the first of ``args``, ``None`` where there is none."""
        return self.args[0] if self.args else None


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event of a subscription."""

    subscription: int
    publication: int
    args: Sequence[Any] | bytes
    kwargs: Mapping[str, Any]
    details: Mapping[str, Any]


def reply_of(message: ResultMessage) -> CallReply:
    """Return what a message gives its caller."""
    return CallReply(message.args or (), message.kwargs or {}, message.details)


def event_of(message: EventMessage) -> ReceivedEvent:
    """Return what a message gives its subscriber."""
    return ReceivedEvent(
        message.subscription, message.publication, message.args or (), message.kwargs or {}, message.details
    )
