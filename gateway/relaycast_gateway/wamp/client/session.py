"""What the broker needs of a session, over any transport."""

from typing import Protocol

from relaycast_gateway.wamp.errors import WampError
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.messages import WampMessage


class MessageEncoder(Protocol):
    """A serializer, as far as one-way encoding goes."""

    @property
    def name(self) -> str:
        """``json``, ``msgpack`` or ``cbor``."""
        ...

    def encode(self, message: WampMessage, /) -> bytes: ...


class ClientSession(Protocol):
    """An open session. Nothing that is sent after its end is an error."""

    @property
    def identity(self) -> Identity: ...

    @property
    def message_bytes(self) -> int:
        """Length of the current message in bytes."""
        ...

    @property
    def serializer(self) -> MessageEncoder: ...

    def send(self, message: WampMessage, /) -> None: ...

    def send_bytes(self, data: bytes, /) -> None:
        """Send a message that ``serializer`` has encoded."""
        ...

    def refuse(self, request_type: int, request: int, error: WampError, /) -> None:
        """Send ERROR."""
        ...

    def pause_reading(self) -> None:
        """Take no more messages from the client until ``resume_reading``; those that were read already still come."""
        ...

    def resume_reading(self) -> None: ...
