"""A network of canisters in one process: deterministic, with virtual time.

Law: messages are delivered one at a time, by the moment at which they arrive and then in the order of sending. The same
calls with the same latencies give the same run, to the last byte. A canister that is down is not reached: its callers
are told so, and also those who wait for an answer when it goes down or is replaced. What it did by then stays done.
"""

import heapq
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import TypeVar

from relaycast_gateway.clock import SECOND, Alarm
from relaycast_gateway.icrc.canister import Answer, CallRefused, Canister, Promise
from relaycast_gateway.principal import principal_text

Latency = Callable[[bytes, bytes], int]
"""Nanoseconds that a message takes from one canister to another."""

Done = TypeVar("Done")


class _Timer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Subnet:
    """Carries calls between the canisters that were added; ``run`` delivers them."""

    def __init__(self, *, now_ns: int = 1_700_000_000 * SECOND, latency: Latency = lambda _from, _to: 0) -> None:
        self._now_ns = now_ns
        self._set_by_ns = 0
        self._latency = latency
        self._order = count()
        self._due: list[tuple[int, int, _Timer]] = []
        self._canisters: dict[bytes, Canister] = {}
        self._down: set[bytes] = set()
        self._pending: dict[bytes, dict[int, Callable[[Answer], None]]] = {}
        """Calls to a canister that it has not answered yet."""

        self._last_arrival: dict[tuple[bytes, bytes], int] = {}
        self.messages = 0
        """Number of messages delivered."""

    def now_ns(self) -> int:
        return self._now_ns + self._set_by_ns

    def passed_ns(self) -> int:
        return self._now_ns

    def set_clock(self, by_ns: int) -> None:
        """Move the system time forward or back, as an operator does; alarms keep their due times."""
        self._set_by_ns += by_ns

    def add(self, canister: Canister) -> None:
        """Add a canister, or put it in the place of the one with its principal: a restart."""
        if self._canisters.get(canister.principal) is not canister:
            self._refuse_pending(canister.principal)
        self._canisters[canister.principal] = canister

    def stop(self, principal: bytes) -> None:
        """Let nobody reach a canister until ``restart``."""
        self._down.add(principal)
        self._refuse_pending(principal)

    def restart(self, principal: bytes) -> None:
        self._down.discard(principal)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        return self._at(self._now_ns + round(seconds * SECOND), callback)

    def call(
        self,
        caller: bytes,
        callee: bytes,
        method: str,
        argument: object = None,
        answered: Callable[[Answer], None] | None = None,
    ) -> None:
        """Send a call; it arrives when ``run`` comes to it."""

        def arrive() -> None:
            self.messages += 1
            answer = self._handled(caller, callee, method, argument)
            if not isinstance(answer, Promise):
                back(answer)
                return
            pending, number = self._pending.setdefault(callee, {}), next(self._order)
            pending[number] = back
            answer.then(lambda value: back(Answer(value)) if pending.pop(number, None) is not None else None)

        def back(answer: Answer) -> None:
            if answered is not None:
                self._at(self._arrival(callee, caller), lambda: answered(answer))

        self._at(self._arrival(caller, callee), arrive)

    def when_done(self, future: "Future[Done]", callback: Callable[["Future[Done]"], None]) -> None:
        future.exception()  # waits: what comes next must not depend on how fast a disk is
        self._at(self._now_ns, lambda: callback(future))

    def run(self, seconds: float = 0.0) -> None:
        """Deliver what is due from now until ``seconds`` have passed."""
        end = self._now_ns + round(seconds * SECOND)
        while self._due and self._due[0][0] <= end:
            moment, _, timer = heapq.heappop(self._due)
            self._now_ns = max(self._now_ns, moment)
            if timer.callback is not None:
                timer.callback()
        self._now_ns = max(self._now_ns, end)

    def ask(
        self, caller: bytes, callee: bytes, method: str, argument: object = None, *, seconds: float = 60.0
    ) -> object:
        """Call, run until the answer is there, and return its value; ``CallRefused`` where it was refused.

        ``TimeoutError`` where ``seconds`` pass without an answer.
        """
        answers: list[Answer] = []
        self.call(caller, callee, method, argument, answers.append)
        end = self._now_ns + round(seconds * SECOND)
        while not answers and self._due and self._due[0][0] <= end:
            self.run(max(0, self._due[0][0] - self._now_ns) / SECOND)
        if not answers:
            raise TimeoutError(f"{method}: no answer within {seconds:g} s")
        if answers[0].refusal is not None:
            raise CallRefused(answers[0].refusal)
        return answers[0].value

    def _handled(self, caller: bytes, callee: bytes, method: str, argument: object) -> "Answer | Promise[object]":
        canister = self._canisters.get(callee)
        if canister is None or callee in self._down:
            return Answer(refusal=f"{principal_text(callee)} cannot be reached")
        try:
            result = canister.receive(caller, method, argument)
        except CallRefused as refused:
            return Answer(refusal=str(refused))
        return result if isinstance(result, Promise) else Answer(result)

    def _refuse_pending(self, callee: bytes) -> None:
        pending = self._pending.get(callee, {})
        waiting = list(pending.values())
        pending.clear()
        for back in waiting:
            back(Answer(refusal=f"{principal_text(callee)} went away before it answered"))

    def _arrival(self, sender: bytes, receiver: bytes) -> int:
        """Return when a message sent now arrives: not before an earlier one between the two."""
        moment = max(self._now_ns + self._latency(sender, receiver), self._last_arrival.get((sender, receiver), 0))
        self._last_arrival[sender, receiver] = moment
        return moment

    def _at(self, moment: int, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(callback)
        heapq.heappush(self._due, (moment, next(self._order), timer))
        return timer
