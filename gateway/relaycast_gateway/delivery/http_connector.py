"""The guard inside aiohttp: connections over HTTP go to addresses that it judged, and to no others.

Names are resolved by ``GuardedResolver``; aiohttp connects to what that returns. Addresses written as such never reach
a resolver, so ``GuardedConnector`` judges them for each request. Proxies of the environment are not used: the session
is made with ``trust_env=False``.
"""

import asyncio
import socket
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

from aiohttp import ClientRequest, ClientTimeout, DummyCookieJar, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client import ClientSession

from relaycast_gateway.delivery.sink_guard import SinkGuard

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

CONNECTIONS = 512
"""Open at a time, all sinks together, below what systems let a process open; more requests wait for one."""

IDLE_SECONDS = 15.0
"""A connection that nothing was sent on for this long is closed."""


class GuardedResolver(AbstractResolver):
    """Resolves names through the guard."""

    def __init__(self, guard: SinkGuard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=ip,
                port=port,
                family=socket.AF_INET6 if ":" in ip else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for ip, _ in await self._guard.resolve(host, port)
            if family in {socket.AF_UNSPEC, socket.AF_INET6 if ":" in ip else socket.AF_INET}
        ]

    async def close(self) -> None:
        """Nothing is held."""


class GuardedConnector(TCPConnector):
    """Connects to addresses that the guard lets pass; ``SinkRefused`` for others."""

    def __init__(self, guard: SinkGuard, *, limit: int = CONNECTIONS) -> None:
        super().__init__(resolver=GuardedResolver(guard), limit=limit, keepalive_timeout=IDLE_SECONDS)
        self._guard = guard

    async def connect(self, req: ClientRequest, traces: "list[Trace]", timeout: ClientTimeout) -> "Connection":
        self._guard.judge_literal(req.url.host or "", req.url.port or 0)
        return await super().connect(req, traces, timeout)


def guarded_session(guard: SinkGuard, *, limit: int = CONNECTIONS) -> ClientSession:
    """Return a session that reaches judged addresses only, keeps no cookies and uses no proxy of the environment.

    It has no time limit: attempts are timed by who makes them.
    """
    return ClientSession(
        connector=GuardedConnector(guard, limit=limit),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(),
        trust_env=False,
        auto_decompress=False,
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type"),
    )


class SharedSession:
    """The one session of a guard in an event loop, open while anybody has it: all senders share its connections."""

    _open: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[SinkGuard, "SharedSession"]]]

    def __init__(self, guard: SinkGuard) -> None:
        self.session = guarded_session(guard)
        self._guard = guard
        self._users = 0

    @classmethod
    def take(cls, guard: SinkGuard) -> "SharedSession":
        """Return the session, opened if nobody has it; ``give_back`` must follow."""
        sessions = cls._open.setdefault(asyncio.get_running_loop(), {})
        found = sessions.get(guard)
        if found is None:
            found = sessions[guard] = cls(guard)
        found._users += 1
        return found

    async def give_back(self) -> None:
        """Close the session if this was the last user."""
        self._users -= 1
        if self._users == 0:
            del self._open[asyncio.get_running_loop()][self._guard]
            await self.session.close()


SharedSession._open = WeakKeyDictionary()
