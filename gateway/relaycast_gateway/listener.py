"""Listening ports, and the gate that limits their connections.

Law: unknown clients cannot exhaust the server. A connection is new until its client is admitted: by a request with a
known token (by any request if no token is needed), or by the WELCOME of a WAMP session. New connections have a deadline
and limits, per address and in total; beyond a limit the oldest is dropped. File handles are always left for the
server's own files.

asyncio's own servers are not used: they have no limit, and if no file handle is left they log each connection.
"""

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from ipaddress import IPv6Address

from relaycast_gateway.clock import SECOND, Alarm, Clock, SystemClock

LISTEN_QUEUE = 1_024
"""Connections that the system keeps until they are accepted."""

OTHER_FILES = 256
"""File handles reserved for other uses: journal, log, stores, connections to sinks."""

ACCEPTED_IN_A_TURN = 64
"""Connections accepted on one port in a turn; then other tasks run, and dropped connections close."""

PAUSE_SECONDS = 1.0
"""Delay before the next accept if the system has no file handle or no memory left."""

TELLING_SECONDS = 60
"""Minimum interval between log lines about refused connections."""

MOST_ADDRESSES = 10_000
"""Number of addresses whose network is cached."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GateLimits:
    """Limits of all connections of a process together."""

    most: int = 16_384
    most_new: int = 4_096
    most_new_of_one: int = 1_024
    """New connections from one address, or from one IPv6 /64 network."""

    new_seconds: float = 10.0
    """For the TLS handshake and the first request together, or for WELCOME."""

    stalled_seconds: float = 60.0
    """After this long without reading, a client is disconnected (Linux only)."""

    def within(self, files: int) -> "GateLimits":
        """Return limits that leave ``OTHER_FILES`` of a process's file handles, or half of them."""
        most = max(files - OTHER_FILES, files // 2)
        if most >= self.most:
            return self
        return replace(
            self,
            most=most,
            most_new=min(self.most_new, most // 2),
            most_new_of_one=min(self.most_new_of_one, max(most // 8, 1)),
        )


@lru_cache(maxsize=MOST_ADDRESSES)
def caller_at(address: str) -> str:
    """Return the identity of a client without a token, by its address."""
    if ":" not in address:
        return address
    number = IPv6Address(address)
    mapped = number.ipv4_mapped
    return str(mapped or IPv6Address(int(number) >> 64 << 64))


class ConnectionGate:
    """Counts the connections of all ports."""

    def __init__(self, limits: GateLimits | None = None, clock: Clock | None = None) -> None:
        self.limits = limits or GateLimits()
        self.clock = clock or SystemClock()
        self.open = 0
        self.refused = 0
        """Number of connections beyond a limit: closed at once, or dropped for a newer one."""

        self._new: dict[int, _AcceptedSocket] = {}
        """By file handle, the oldest first."""

        self._new_of: dict[str, dict[int, None]] = {}
        self._told_ns: int | None = None
        self._refused_told = 0

    @property
    def new(self) -> int:
        """The number of connections whose clients are not admitted yet."""
        return len(self._new)

    def fit(self) -> None:
        """Lower the limits if this process may not open enough files."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files != resource.RLIM_INFINITY:
            self.limits = self.limits.within(files)

    def take(self, accepted: socket.socket, address: str) -> "socket.socket | None":
        """Count a connection and return its socket, or ``None`` if it was closed because of the limit."""
        if self.open >= self.limits.most:
            accepted.close()
            self._refuse(f"the limit of {self.limits.most:,} is reached")
            return None
        caller = caller_at(address)
        own = self._new_of.setdefault(caller, {})
        if len(own) >= self.limits.most_new_of_one:
            self._drop(next(iter(own)), f"{self.limits.most_new_of_one:,} from one address have sent no request yet")
        elif len(self._new) >= self.limits.most_new:
            self._drop(next(iter(self._new)), f"{self.limits.most_new:,} have sent no request yet")
        taken = _AcceptedSocket(accepted, caller, self._forget)
        number = taken.fileno()
        self.open += 1
        self._new[number] = taken
        self._new_of.setdefault(caller, {})[number] = None
        taken.alarm = self.clock.call_later(self.limits.new_seconds, partial(self._end, number))
        return taken

    def admit(self, transport: asyncio.BaseTransport | None) -> None:
        """Admit the client of a connection: it is no longer new. Connections of other ports are ignored."""
        own = None if transport is None else transport.get_extra_info("socket")
        if own is not None and self._new:
            self._settle(own.fileno())

    def tell(self, what: str) -> None:
        """Log why connections are not served, at most once in ``TELLING_SECONDS``."""
        now = self.clock.passed_ns()
        if self._told_ns is not None and now - self._told_ns < TELLING_SECONDS * SECOND:
            return
        self._told_ns = now
        refused, self._refused_told = self.refused - self._refused_told, self.refused
        _LOGGER.warning("connections: %s; %s refused or dropped since the last such line", what, f"{refused:,}")

    def _refuse(self, why: str) -> None:
        self.refused += 1
        self.tell(why)

    def _drop(self, number: int, why: str) -> None:
        self._end(number)
        self._refuse(f"{why}, the oldest was dropped")

    def _end(self, number: int) -> None:
        """Shut a new connection down; its transport, or the handshake of TLS, then ends and closes the socket."""
        own = self._settle(number)
        if own is not None:
            own.end()

    def _settle(self, number: int) -> "_AcceptedSocket | None":
        own = self._new.pop(number, None)
        if own is None:
            return None
        if own.alarm is not None:
            own.alarm.cancel()
        numbers = self._new_of[own.caller]
        del numbers[number]
        if not numbers:
            del self._new_of[own.caller]
        return own

    def _forget(self, number: int) -> None:
        self._settle(number)
        self.open -= 1


class _AcceptedSocket(socket.socket):
    """A connection that reports when its file handle is free again."""

    __slots__ = ("_on_close", "alarm", "caller")

    def __init__(self, accepted: socket.socket, caller: str, on_close: Callable[[int], None]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self.setblocking(False)
        self.caller = caller
        self.alarm: Alarm | None = None
        self._on_close = on_close

    def end(self) -> None:
        """Stop sending and receiving."""
        with suppress(OSError):  # the client has reset it
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        number = self.fileno()
        super().close()
        if number >= 0:
            self._on_close(number)


class Listener:
    """One port; ``factory`` makes a protocol for each connection that ``gate`` accepts."""

    def __init__(
        self,
        gate: ConnectionGate,
        factory: Callable[[], asyncio.BaseProtocol],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.gate = gate
        self._factory = factory
        self._tls = tls
        self._sockets: list[socket.socket] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarms: dict[socket.socket, Alarm] = {}

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port: int = self._sockets[0].getsockname()[1]
        return port

    async def start(self, host: str, port: int) -> None:
        """Listen on all addresses of ``host``; raises ``OSError``, or ``OverflowError`` for an invalid port number."""
        self._loop = asyncio.get_running_loop()
        self.gate.fit()
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
                self._listen(family, address)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop accepting; open connections stay."""
        for alarm in self._alarms.values():
            alarm.cancel()
        for listening in self._sockets:
            assert self._loop is not None
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        self._alarms.clear()

    def _listen(self, family: int, address: tuple[object, ...]) -> None:
        listening = socket.create_server(address, family=family, backlog=LISTEN_QUEUE)
        listening.setblocking(False)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections inherit it
            stalled = round(self.gate.limits.stalled_seconds * 1_000)
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stalled)
        self._sockets.append(listening)
        self._watch(listening)

    def _watch(self, listening: socket.socket) -> None:
        assert self._loop is not None
        self._alarms.pop(listening, None)
        self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        assert self._loop is not None
        for _ in range(min(ACCEPTED_IN_A_TURN, max(self.gate.limits.most_new_of_one // 4, 1))):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file handle or no memory is left
                self.gate.tell(f"none can be accepted ({(error.strerror or 'an error').lower()})")
                self._loop.remove_reader(listening)
                self._alarms[listening] = self.gate.clock.call_later(PAUSE_SECONDS, partial(self._watch, listening))
                return
            taken = self.gate.take(accepted, address[0])
            if taken is not None:
                task = self._loop.create_task(self._serve(taken))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _serve(self, taken: socket.socket) -> None:
        assert self._loop is not None
        try:
            await self._loop.connect_accepted_socket(self._factory, taken, ssl=self._tls)
        except OSError:  # the client has left, or its handshake of TLS went wrong
            taken.close()


def raise_file_limit() -> None:
    """Raise this process's limit of file handles as far as its connections need and the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = GateLimits().most + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
