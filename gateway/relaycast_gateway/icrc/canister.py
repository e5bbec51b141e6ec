"""Canisters, and how they call each other.

Law: a canister is called by one principal at a time and acts at once; it changes nothing when it refuses. What it
answers is a value as ``candid.decode`` gives it, or a ``Promise`` of one. Nobody but the owner calls update methods
anonymously. Source: ICRC-72, section "Ingress methods".
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Generic, NamedTuple, Protocol, TypeVar

from relaycast_gateway.clock import Alarm
from relaycast_gateway.icrc.interface import CandidMethod, CanisterRole, methods_of
from relaycast_gateway.principal import ANONYMOUS, principal_text

Handler = Callable[[bytes, object], object]
"""Takes the caller and the argument (``None`` where the method has none); returns the result or a ``Promise``."""

Settled = TypeVar("Settled")

_LOGGER = logging.getLogger(__name__)


class CallRefused(Exception):
    """A call that the canister rejects as a whole; nothing was changed."""


class Answer(NamedTuple):
    """How a call ended: with a value, or refused for a reason, or the callee could not be reached."""

    value: object = None
    refusal: str | None = None


class Promise(Generic[Settled]):
    """A value that comes later; ``then`` calls back with it, at once if it has come already."""

    __slots__ = ("_callbacks", "_value")

    def __init__(self) -> None:
        self._value: tuple[Settled] | None = None
        self._callbacks: list[Callable[[Settled], None]] = []

    def settle(self, value: Settled) -> None:
        """Give the value; only once."""
        assert self._value is None, "a promise is settled once"
        self._value = (value,)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(value)
            except Exception:  # the others wait for the value, too
                _LOGGER.exception("a callback of a promise failed")

    def then(self, callback: Callable[[Settled], None]) -> None:
        if self._value is None:
            self._callbacks.append(callback)
        else:
            callback(self._value[0])


class Wire(Protocol):
    """What carries calls between canisters, and tells them the time. All its callbacks come in one thread."""

    def now_ns(self) -> int:
        """Return nanoseconds since 1970. The clock may be set."""
        ...

    def passed_ns(self) -> int:
        """Return monotonic nanoseconds, for intervals. This clock is never set."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        """Call back when ``seconds`` have passed."""
        ...

    def call(
        self,
        caller: bytes,
        callee: bytes,
        method: str,
        argument: object = None,
        answered: Callable[[Answer], None] | None = None,
    ) -> None:
        """Call a method of another canister; ``answered`` is called later, once, however the call ends.

        Calls from one canister to another arrive in order.
        """
        ...

    def when_done(self, future: "Future[Settled]", callback: Callable[["Future[Settled]"], None]) -> None:
        """Call back in the canisters' thread once ``future`` is done, in the order of the futures given."""
        ...


class Canister(ABC):
    """A principal with the methods of one role.

    A role gives ``handlers`` for all methods of its interface; ``receive`` finds the one that is called.
    """

    role: CanisterRole

    def __init__(self, principal: bytes, wire: Wire) -> None:
        self.principal = principal
        self.wire = wire
        self._handlers = self.handlers()
        assert self._handlers.keys() == self.interface.keys(), self.interface.keys() ^ self._handlers.keys()

    @property
    def interface(self) -> Mapping[str, CandidMethod]:
        """The methods that are served."""
        return methods_of(self.role)

    @abstractmethod
    def handlers(self) -> Mapping[str, Handler]:
        """Return what handles each method of the interface."""

    def receive(self, caller: bytes, method: str, argument: object = None) -> object:
        """Handle a call and return its result or a ``Promise`` of it; raises ``CallRefused``."""
        served = self.interface.get(method)
        if served is None:
            raise CallRefused(f"{self} has no method {method}: expected one of {', '.join(self.interface)}")
        if caller == ANONYMOUS and not served.is_query:
            raise CallRefused(f"{method} refuses the anonymous principal: an update needs a caller")
        return self._handlers[method](caller, argument)

    def call(
        self,
        callee: bytes,
        method: str,
        argument: object = None,
        answered: Callable[[Answer], None] | None = None,
    ) -> None:
        """Call a method of another canister as this one."""
        self.wire.call(self.principal, callee, method, argument, answered)

    def __str__(self) -> str:
        return f"{self.role} {principal_text(self.principal)}"
