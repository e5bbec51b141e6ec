"""The wire of a server: canisters of this process in its event loop, others over HTTP.

Law: everything happens in the loop that called ``begin``. A canister of this process is called in a later turn of the
loop, in the order of the calls. A handler that fails refuses its call and stops nothing else. What is called before
``begin`` waits for it; after ``close`` nothing is called and nobody is answered.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from relaycast_gateway.candid import CandidError
from relaycast_gateway.clock import Alarm, Clock
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.icrc.canister import Answer, CallRefused, Canister, Promise
from relaycast_gateway.icrc.http.remote_calls import CanisterPlace, RemoteCall, RemoteCalls
from relaycast_gateway.icrc.interface import every_method
from relaycast_gateway.principal import principal_text

Done = TypeVar("Done")

PlaceOf = Callable[[bytes], CanisterPlace | None]
"""Says where a canister outside of this process is reached."""

_LOGGER = logging.getLogger(__name__)


class _EarlyAlarm:
    """An alarm that was set before there was a loop."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback
        self.alarm: Alarm | None = None

    def cancel(self) -> None:
        self.callback = None
        if self.alarm is not None:
            self.alarm.cancel()


class HttpWire:
    """Carries calls; ``place_of`` is asked for canisters that were not given to ``add`` or ``remember``."""

    def __init__(self, guard: SinkGuard, clock: Clock, *, place_of: PlaceOf = lambda _: None) -> None:
        self._clock = clock
        self._place_of = place_of
        self._remote = RemoteCalls(guard, clock)
        self._canisters: dict[bytes, Canister] = {}
        self._places: dict[bytes, CanisterPlace] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: list[Callable[[], None]] = []
        self._is_closed = False
        self._futures: deque[tuple[Future[object], Callable[[Future[object]], None]]] = deque()
        self.calls = 0
        """Calls that reached a canister of this process, so far."""

    @property
    def waiting(self) -> int:
        """Calls to other processes that have no answer yet."""
        return self._remote.waiting

    @property
    def failed(self) -> int:
        """Calls to other processes that ended without a result, so far."""
        return self._remote.failed

    @property
    def canisters(self) -> tuple[Canister, ...]:
        """The canisters of this process."""
        return tuple(self._canisters.values())

    def canister(self, principal: bytes) -> Canister | None:
        """Return the canister of this process with a principal."""
        return self._canisters.get(principal)

    def add(self, canister: Canister) -> None:
        """Serve a canister from this process."""
        self._canisters[canister.principal] = canister

    def remove(self, principal: bytes) -> None:
        self._canisters.pop(principal, None)

    def remember(self, principal: bytes, url: str, token: str | None = None) -> None:
        """Reach a canister at ``url``, with a token where its server asks for one."""
        self._places[principal] = CanisterPlace(url.rstrip("/"), token)

    def forget(self, principal: bytes) -> None:
        self._places.pop(principal, None)

    def begin(self) -> None:
        """Carry calls from now on; in the event loop."""
        self._loop = asyncio.get_running_loop()
        early, self._early = self._early, []
        for work in early:
            work()

    async def close(self) -> None:
        """Carry nothing more."""
        self._is_closed = True
        self._early.clear()
        await self._remote.close()

    def now_ns(self) -> int:
        return self._clock.now_ns()

    def passed_ns(self) -> int:
        return self._clock.passed_ns()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        """Have the loop call back when ``seconds`` have passed, counted from ``begin`` at the earliest."""

        def ring() -> None:
            if not self._is_closed:
                callback()

        if self._loop is not None:
            return self._clock.call_later(seconds, ring)
        early = _EarlyAlarm(ring)

        def set_alarm() -> None:
            if early.callback is not None:
                early.alarm = self._clock.call_later(seconds, early.callback)

        self._early.append(set_alarm)
        return early

    def call(
        self,
        caller: bytes,
        callee: bytes,
        method: str,
        argument: object = None,
        answered: Callable[[Answer], None] | None = None,
    ) -> None:
        """Call a canister of this process or of another one."""

        def back(answer: Answer) -> None:
            if answered is not None:
                self._soon(lambda: answered(answer))

        if callee in self._canisters:
            self._soon(lambda: self._arrive(caller, callee, method, argument, back))
        else:
            self._soon(lambda: self._send(caller, callee, method, argument, back))

    def when_done(self, future: "Future[Done]", callback: Callable[["Future[Done]"], None]) -> None:
        """Call back in the loop once ``future`` is done, in the order of the futures given."""
        self._futures.append((future, callback))  # type: ignore[arg-type]

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                if self._loop is not None:
                    self._loop.call_soon_threadsafe(self._take_done)

        if self._loop is None:
            self._early.append(lambda: future.add_done_callback(tell))
        else:
            future.add_done_callback(tell)

    def received(self, caller: bytes, callee: bytes, method: str, argument: object) -> object:
        """Have a canister of this process handle a call at once; returns its result or a ``Promise`` of it.

        Raises ``CallRefused``; what else goes wrong in a handler is logged, and refuses the call, too.
        """
        canister = self._canisters.get(callee)
        if canister is None or self._is_closed:
            raise CallRefused(f"{principal_text(callee)} cannot be reached")
        self.calls += 1
        try:
            return canister.receive(caller, method, argument)
        except CallRefused:
            raise
        except Exception:
            _LOGGER.exception("%s failed at %s", canister, method)
            raise CallRefused(f"{method} failed at {canister}") from None

    def _soon(self, work: Callable[[], None]) -> None:
        def run() -> None:
            if not self._is_closed:
                work()

        if self._loop is None:
            self._early.append(lambda: self._soon(work))
        else:
            self._loop.call_soon(run)

    def _arrive(
        self, caller: bytes, callee: bytes, method: str, argument: object, back: Callable[[Answer], None]
    ) -> None:
        try:
            result = self.received(caller, callee, method, argument)
        except CallRefused as refused:
            back(Answer(refusal=str(refused)))
            return
        if isinstance(result, Promise):
            result.then(lambda value: back(Answer(value)))
        else:
            back(Answer(result))

    def _send(self, caller: bytes, callee: bytes, name: str, argument: object, back: Callable[[Answer], None]) -> None:
        place, method = self._places.get(callee) or self._place_of(callee), every_method().get(name)
        if place is None or method is None:
            back(Answer(refusal=f"{principal_text(callee)} cannot be reached"))
            return
        try:
            body = method.encode_argument(argument)
        except CandidError as error:
            back(Answer(refusal=f"{name} cannot be sent: {error}"))
            return
        reason = self._remote.send(RemoteCall(caller, callee, place, method, body, back))
        if reason is not None:
            back(Answer(refusal=reason))

    def _take_done(self) -> None:
        for _ in range(len(self._futures)):  # calls made meanwhile get their own turn
            if not self._futures[0][0].done():
                break
            future, callback = self._futures.popleft()
            if not self._is_closed:
                callback(future)
