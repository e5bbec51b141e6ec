"""A link over a transport of asyncio: what is sent in one turn of the event loop is written at once.

Law: a client that is too slow for what it is sent loses its session and nobody waits for it. Once more than
``most_waiting_bytes`` wait, the connection is dropped without a word, since the client would not take that either.
"""

import asyncio
from abc import ABC, abstractmethod
from enum import IntEnum

from relaycast_gateway.wamp.connections import Connections
from relaycast_gateway.wamp.messages import MOST_ID

WRITTEN_TOGETHER = 64 << 10
"""Bytes that wait for the end of the turn; more are written at once."""

HIGH_WATER = 256 << 10
"""Bytes in the transport's buffer at which ``drain`` waits, and at which the client's requests are no longer read."""


class Hold(IntEnum):
    """Why nothing is read from a client for now; several reasons are added up."""

    BY_SESSION = 1
    """The session has asked for it."""

    CHOKED = 2
    """The client does not take what it is sent."""

    OTHERS_TURN = 4
    """It has sent much: others are served first."""


class BufferedLink(ABC):
    """The part of a ``Link`` that is the same over RawSocket and WebSocket."""

    __slots__ = (
        "_connections",
        "_hold",
        "_is_closed",
        "_is_scheduled",
        "_loop",
        "_parts",
        "_pending_bytes",
        "_transport",
        "most_message_bytes",
        "serializer",
    )

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._pending_bytes = 0
        self._is_scheduled = False
        self._is_closed = False
        self._hold = 0
        self.serializer = ""
        self.most_message_bytes = MOST_ID

    @property
    @abstractmethod
    def transport(self) -> dict[str, object]:
        """What others may learn of the connection."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes that were sent and that the peer has not taken yet."""
        return self._pending_bytes + (self._transport.get_write_buffer_size() if self._transport else 0)

    def send(self, data: bytes) -> None:
        """Send one message; never blocks. A message that is longer than the peer takes is counted and left out."""
        if self._is_closed:
            return
        if len(data) > self.most_message_bytes:
            self._connections.too_long += 1
            return
        self._write(self._head_of(len(data)), data)

    def close(self) -> None:
        """End the connection behind what was sent."""
        if not self._is_closed:
            self._flush()
        if not self._is_closed:
            self._is_closed = True
            self._close_kindly()

    def abandon(self) -> None:
        """End the connection now."""
        self._is_closed = True
        self._parts.clear()
        self._pending_bytes = 0
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        """Take no more messages from the client until ``resume_reading``."""
        self._hold_for(Hold.BY_SESSION)

    def resume_reading(self) -> None:
        """Take messages again."""
        self._release(Hold.BY_SESSION)

    @abstractmethod
    def _head_of(self, length: int) -> bytes:
        """Return the bytes before a message of that length."""

    @abstractmethod
    def _close_kindly(self) -> None:
        """Close the transport when the peer has taken what was written, or has had time to."""

    @abstractmethod
    def _hold_for(self, reason: Hold) -> None: ...

    @abstractmethod
    def _release(self, reason: Hold) -> None: ...

    def _write(self, head: bytes, data: bytes) -> None:
        self._parts.append(head)
        self._parts.append(data)
        self._pending_bytes += len(head) + len(data)
        if self._pending_bytes > WRITTEN_TOGETHER:
            self._flush()
        elif not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush_of_turn)

    def _flush_of_turn(self) -> None:
        self._is_scheduled = False
        self._flush()

    def _flush(self) -> None:
        if not self._parts or self._transport is None:
            return
        self._transport.write(b"".join(self._parts))
        self._parts.clear()
        self._pending_bytes = 0
        if self._transport.get_write_buffer_size() > self._connections.limits.most_waiting_bytes:
            self._connections.count_slow()
            self.abandon()
