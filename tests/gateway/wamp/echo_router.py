"""A router that knows nothing of WAMP: its sessions keep what comes and send it back; and a wait for them."""

import asyncio
from collections.abc import Callable

from relaycast_gateway.wamp.link import Link


class EchoSession:
    """Sends each message back; some have a meaning."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.received: list[bytes] = []
        self.is_lost = False
        self.aborted: tuple[str, str] | None = None
        self.is_silent = False
        self.is_open = True

    def receive(self, data: bytes) -> None:
        self.received.append(data)
        if data == b"bye":
            self.link.send(data)
            self.link.close()
        elif data == b"raise":
            raise RuntimeError("a defect of a session")
        elif not self.is_silent:
            self.link.send(data)

    def lost(self) -> None:
        self.is_lost = True

    def abort(self, reason: str, message: str) -> None:
        self.aborted = reason, message
        self.link.send(f"abort {reason}".encode())
        self.link.close()


class EchoRouter:
    """Keeps its sessions."""

    def __init__(self) -> None:
        self.sessions: list[EchoSession] = []
        self.dropped = 0

    def attach(self, link: Link) -> EchoSession:
        self.sessions.append(EchoSession(link))
        return self.sessions[-1]

    def count_dropped(self) -> None:
        self.dropped += 1


async def until(is_so: Callable[[], bool]) -> None:
    """Return when something that sockets bring about has happened."""
    for _ in range(20_000):
        if is_so():
            return
        await asyncio.sleep(0.0005)
    raise AssertionError("it did not happen")
