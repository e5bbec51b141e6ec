"""What the senders of all protocols with a lasting connection share: one connection, opened when it is needed.

Law: ``send`` returns an outcome whatever the peer or the network does. Only addresses that the guard returned are
connected to. A lost connection is opened again by the next ``send``; senders that wait for the same attempt share its
result. No reason shows a secret.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from relaycast_gateway.delivery.secret_names import MASK
from relaycast_gateway.delivery.sender import Refused, Retryable, SendOutcome, Target
from relaycast_gateway.delivery.sink_address import credential_of, parse_sink
from relaycast_gateway.delivery.sink_guard import SinkGuard, SinkRefused
from relaycast_gateway.delivery.wire_message import WireMessage

Opened = TypeVar("Opened")

CONNECT_SECONDS = 10.0
"""For one attempt at a connection, all addresses of the sink together."""

SEND_SECONDS = 60.0
"""For one ``send``, the connection included; a subscription's own limit is shorter as a rule."""

CLOSE_SECONDS = 3.0


class SinkPlace(NamedTuple):
    """A judged address, and the name or the text that it was resolved from."""

    host: str
    ip: str
    port: int


class CannotSend(Exception):
    """A connection that could not be opened; ``outcome`` says what follows for the message."""

    def __init__(self, outcome: SendOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class WireConnection(Protocol):
    """An open connection to a peer."""

    @property
    def is_open(self) -> bool: ...

    async def send(self, message: WireMessage) -> SendOutcome: ...

    async def close(self) -> None: ...


class ConnectedSender(ABC):
    """Sends over one connection. A protocol says how it is opened: to one address, or to all of them at once."""

    def __init__(self, target: Target, guard: SinkGuard) -> None:
        self.target = target
        self.guard = guard
        self.address = parse_sink(target.sink)
        self.user, self.password = credential_of(self.address, target.secrets)
        hidden = {name: held for name, held in target.secrets.items() if isinstance(held, Mapping)}
        self.settings: dict[str, Any] = dict(target.settings)
        """Those of the target, and the entries of their maps that stand among its secrets."""
        for name, held in hidden.items():
            self.settings[name] = {**target.settings.get(name, {}), **held}
        texts = [
            self.password or self.user,
            *target.secrets.values(),
            *(it for held in hidden.values() for it in held.values()),
        ]
        self._secrets = sorted({it for it in texts if isinstance(it, str) and it}, key=len, reverse=True)
        self._lock = asyncio.Lock()
        self._connection: WireConnection | None = None
        self._failures = 0
        self._failure: SendOutcome = Retryable("no connection")
        self._is_closed = False

    @abstractmethod
    async def open(self, places: list[SinkPlace]) -> WireConnection:
        """Connect to the sink. Raises ``CannotSend`` or ``OSError``; leaves nothing when cancelled."""

    async def send(self, message: WireMessage) -> SendOutcome:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                connection = await self._connected()
                return self._without_secrets(await connection.send(message))
        except CannotSend as error:
            return error.outcome
        except TimeoutError:
            return Retryable(f"no acknowledgement within {SEND_SECONDS:.0f} s")
        except OSError as error:
            return self._without_secrets(Retryable(f"the connection failed: {told(error)}"))

    async def close(self) -> None:
        self._is_closed = True
        async with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.close()

    async def _connected(self) -> WireConnection:
        failures = self._failures
        async with self._lock:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            if self._is_closed:
                raise CannotSend(Retryable("the sender is closed"))
            if self._failures != failures:
                raise CannotSend(self._failure)
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.close()
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    self._connection = await self.open(await self._places())
            except (CannotSend, SinkRefused, TimeoutError, OSError) as error:
                self._failures += 1
                self._failure = self._without_secrets(_outcome_of(error))
                raise CannotSend(self._failure) from error
            return self._connection

    async def _places(self) -> list[SinkPlace]:
        return [
            SinkPlace(host, ip, port)
            for host, known_port in self.address.hosts
            for ip, port in await self.guard.resolve(host, known_port)
        ]

    def _without_secrets(self, outcome: SendOutcome) -> SendOutcome:
        """Return the outcome with a mask wherever a peer's words repeat a credential."""
        if isinstance(outcome, Retryable):
            return Retryable(self._masked(outcome.reason), outcome.after_seconds)
        return Refused(self._masked(outcome.reason)) if isinstance(outcome, Refused) else outcome

    def _masked(self, reason: str) -> str:
        for secret in self._secrets:
            reason = reason.replace(secret, MASK)
        return reason


async def first_of(places: list[SinkPlace], connect: Callable[[SinkPlace], Awaitable[Opened]]) -> Opened:
    """Connect to the first place that takes a connection; ``OSError`` where none does."""
    failure = OSError("the sink has no address")
    for place in places:
        try:
            return await connect(place)
        except OSError as error:
            failure = error
    raise failure


def told(error: BaseException) -> str:
    """Return what an error says, on one line of at most 300 characters."""
    named = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, ConnectionError) and error.errno:
        named = os.strerror(error.errno)
    said = " ".join(named.split())
    return said if len(said) <= 300 else f"{said[:297]}..."


def _outcome_of(error: Exception) -> SendOutcome:
    if isinstance(error, CannotSend):
        return error.outcome
    if isinstance(error, SinkRefused):  # a name may lead elsewhere tomorrow, an operator may allow it
        return Retryable(f"the sink is refused: {error.reason}")
    if isinstance(error, TimeoutError) and not error.args:
        return Retryable(f"no connection within {CONNECT_SECONDS:.0f} s")
    return Retryable(f"no connection: {told(error)}")
