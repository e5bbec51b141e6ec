"""Which sender serves which protocol.

A protocol's library is imported when a sink first needs it: HTTP works without any other, and an install names only
the extras that it uses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from relaycast_gateway.clock import Clock
from relaycast_gateway.delivery.sender import Sender, Target
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_trie.extras import install_command


@dataclass(frozen=True, slots=True)
class SenderPlace:
    """Where a protocol's sender is found, and the extra of the package that brings its library."""

    module: str
    name: str
    extra: str | None = None
    takes_clock: bool = False


_CLOSET = "relaycast_gateway.delivery"
SENDERS: Mapping[str, SenderPlace] = {
    "HTTP": SenderPlace(f"{_CLOSET}.http_sender", "HttpSender", takes_clock=True),
    "MQTT3": SenderPlace(f"{_CLOSET}.mqtt_sender", "MqttSender", "mqtt"),
    "MQTT5": SenderPlace(f"{_CLOSET}.mqtt_sender", "MqttSender", "mqtt"),
    "AMQP": SenderPlace(f"{_CLOSET}.amqp_sender", "AmqpSender", "amqp"),
    "KAFKA": SenderPlace(f"{_CLOSET}.kafka_sender", "KafkaSender", "kafka"),
    "NATS": SenderPlace(f"{_CLOSET}.nats_sender", "NatsSender", "nats", takes_clock=True),
}


def sender_of(guard: SinkGuard, clock: Clock) -> Callable[[Target], Sender]:
    """Return what makes the sender of a target.

    It raises ``ValueError`` for a protocol that has none, and where the library of one is not installed.
    """

    def make(target: Target) -> Sender:
        make_sender = sender_class(target.protocol)
        sender: Sender = make_sender(target, guard, clock) if _takes_clock(target) else make_sender(target, guard)
        return sender

    return make


def sender_class(protocol: str) -> Callable[..., Any]:
    """Return the class of a protocol's sender; ``ValueError`` says which extra to install where it cannot be had."""
    place = SENDERS.get(protocol)
    if place is None:
        raise ValueError(f"protocol: got {protocol!r}, expected one of {', '.join(SENDERS)}")
    try:
        found: Callable[..., Any] = getattr(import_module(place.module), place.name)
    except ModuleNotFoundError as error:
        if place.extra is None or (error.name or "").startswith("relaycast"):
            raise
        raise ValueError(f"{protocol} sinks need the library {error.name}: {install_command(place.extra)}") from error
    return found


def _takes_clock(target: Target) -> bool:
    return SENDERS[target.protocol].takes_clock
