"""The principals that may notify a subscriber: the broadcasters that the orchestrator names.

Law: a principal that is not among them is refused. The list is requested again when it is older than
``OLDEST_SECONDS``, and when a principal that is not on it notifies, at most every ``ASK_AFTER_SECONDS``. A new
broadcaster is refused at first and accepted when it comes back.
"""

from collections.abc import Callable, Iterable
from typing import cast

from relaycast_gateway.clock import SECOND
from relaycast_gateway.icrc.broadcaster_list import AskOrchestrator, ask_for_broadcasters
from relaycast_gateway.icrc.canister import Answer, Wire

ASK_AFTER_SECONDS = 1.0
OLDEST_SECONDS = 60.0


class KnownBroadcasters:
    """The list, as it was given or when it was last asked for."""

    def __init__(self, wire: Wire, ask: AskOrchestrator, given: Iterable[bytes] | None) -> None:
        self._wire = wire
        self._ask = ask
        self._is_given = given is not None
        self._principals = frozenset(given or ())
        self._asked_ns: int | None = None
        self._waiting: list[Callable[[], None]] = []
        self._is_asking = False

    def has(self, principal: bytes) -> bool:
        """Return whether a principal is a broadcaster as far as is known."""
        age = None if self._asked_ns is None else (self._wire.passed_ns() - self._asked_ns) / SECOND
        known = principal in self._principals
        if age is None or age >= (OLDEST_SECONDS if known else ASK_AFTER_SECONDS):
            self.refresh()
        return known

    def refresh(self, then: Callable[[], None] | None = None) -> None:
        """Ask for the list unless it was given, and call ``then`` when it is there or cannot be had."""
        if self._is_given:
            if then is not None:
                then()
            return
        if then is not None:
            self._waiting.append(then)
        if not self._is_asking:
            self._is_asking = True
            ask_for_broadcasters(self._ask, self._asked)

    def _asked(self, answer: Answer) -> None:
        self._asked_ns = self._wire.passed_ns()
        self._is_asking = False
        if answer.refusal is None:
            self._principals = frozenset(cast("list[bytes]", answer.value))
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()
