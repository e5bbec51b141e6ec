"""The connections of a router over both transports: how many there may be, and what becomes of bad ones.

Law: what a client does to its connection ends at most that connection. Memory is bounded for each one: bytes that the
client has not taken by ``most_waiting_bytes``, a message that is still coming by ``most_message_bytes``.
"""

from dataclasses import dataclass
from typing import Protocol

from relaycast_gateway.clock import Clock, SystemClock
from relaycast_gateway.listener import ConnectionGate
from relaycast_gateway.wamp.link import Link

MOST_BYTES_BEFORE_WELCOME = 64 << 10
"""The longest message of a client that has proved nothing yet."""

SPARE_CONNECTIONS = 256
"""Connections beyond the limit that get a refusal; further ones are dropped at once."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds of the connections of one router."""

    most_sessions: int = 10_000
    most_waiting_bytes: int = 8 << 20
    """Bytes that a client has not taken; if there are more, it is too slow and its session ends."""

    most_message_bytes: int = 1 << 20
    """The longest message that a client may send."""

    handshake_seconds: float = 10.0
    """For the handshake of the transport; the session counts from there."""

    ping_seconds: float = 20.0
    """A client that is silent so long is sent a ping; if it stays silent as long again, it is gone."""

    closing_seconds: float = 2.0
    """For a client to take what was sent before its connection closes."""


class ReceivingSession(Protocol):
    """What a connection tells."""

    @property
    def is_open(self) -> bool:
        """Whether the client has been welcomed."""
        ...

    def receive(self, data: bytes) -> None:
        """Take one message."""
        ...

    def lost(self) -> None:
        """End the session: its connection is gone."""
        ...

    def abort(self, reason: str, message: str) -> None:
        """End the session with ABORT and close its link."""
        ...


class SessionSource(Protocol):
    """What connections need of a router."""

    def attach(self, link: Link) -> ReceivingSession:
        """Return the session of a new connection."""
        ...

    def count_dropped(self) -> None:
        """Count a session that ended because its client was too slow."""
        ...


class Connection(Protocol):
    """A connection, whatever its transport."""

    def look_after(self) -> None:
        """Find out whether the client is still there; called every ``ping_seconds``."""
        ...

    def abandon(self) -> None:
        """End the connection now."""
        ...


class Connections:
    """What both transports of a router share."""

    def __init__(
        self,
        router: SessionSource,
        limits: ConnectionLimits | None = None,
        clock: Clock | None = None,
        gate: ConnectionGate | None = None,
    ) -> None:
        self.router = router
        self.limits = limits or ConnectionLimits()
        self.clock = clock or SystemClock()
        self.gate = gate or ConnectionGate(clock=self.clock)
        self.open: set[Connection] = set()
        self.refused = 0
        """Connections beyond the limit, and those whose handshake went wrong."""

        self.too_slow = 0
        """Sessions that ended because more than ``most_waiting_bytes`` waited for their client."""

        self.too_long = 0
        """Messages that were not sent: the client has announced that it takes only shorter ones."""

    @property
    def is_full(self) -> bool:
        """Tell whether another connection is refused."""
        return len(self.open) >= self.limits.most_sessions

    @property
    def is_overrun(self) -> bool:
        """Tell whether another connection is dropped without a refusal."""
        return len(self.open) >= self.limits.most_sessions + SPARE_CONNECTIONS

    def most_bytes_from(self, session: ReceivingSession | None) -> int:
        """Return the length of the longest message that a session takes now; ``None`` before the handshake."""
        most = self.limits.most_message_bytes
        return most if session is not None and session.is_open else min(most, MOST_BYTES_BEFORE_WELCOME)

    def count_slow(self) -> None:
        """Count a session whose client took too little."""
        self.too_slow += 1
        self.router.count_dropped()

    def abandon_all(self) -> None:
        """End every connection now."""
        for connection in list(self.open):
            connection.abandon()
