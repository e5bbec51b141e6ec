"""An event as one protocol carries it: the result of an encoding, the input of a sender."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

PropertyValue = str | int | bool | bytes | datetime
"""What a property may hold; every protocol but AMQP has text alone."""

ContentMode = Literal["binary", "structured"]


@dataclass(frozen=True, slots=True)
class WireMessage:
    """A body, the type of its content, and the protocol's own properties in the spelling of the protocol.

    ``properties`` are HTTP, NATS or Kafka headers, MQTT 5 user properties, AMQP application properties. The type of
    the content goes where the protocol has a place for it. ``key`` is Kafka's partition key.
    """

    body: bytes
    content_type: str | None = None
    properties: tuple[tuple[str, PropertyValue], ...] = ()
    key: bytes | None = None
