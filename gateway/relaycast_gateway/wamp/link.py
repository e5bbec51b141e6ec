"""What a session needs of the connection under it, whichever it is."""

from typing import Protocol


class Link(Protocol):
    """A connection that carries whole messages, already serialized. All calls are made in the event loop's thread."""

    @property
    def serializer(self) -> str:
        """``json``, ``msgpack`` or ``cbor``."""
        ...

    @property
    def transport(self) -> dict[str, object]:
        """What others may learn of the connection: its kind and serializer, never an address."""
        ...

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were sent and that the peer has not taken yet."""
        ...

    @property
    def most_message_bytes(self) -> int:
        """The largest message that the peer takes."""
        ...

    def send(self, data: bytes) -> None:
        """Send one message; never blocks. Nothing happens after ``close``."""
        ...

    async def drain(self) -> None:
        """Return when the peer has taken most of what was sent; raises ``ConnectionResetError`` when it is gone."""
        ...

    def pause_reading(self) -> None:
        """Take no more messages from the client until ``resume_reading``; those that were read already still come."""
        ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """End the connection behind what was sent; ``abandon`` is for a peer that takes nothing."""
        ...

    def abandon(self) -> None:
        """End the connection now."""
        ...
