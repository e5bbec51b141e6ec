"""Answers and notifications that wait until the store is durable.

Law: what waits happens after the flush that holds what it speaks of, in the order in which it came. Where the disk
refuses, all of it waits for the next attempt.
"""

from collections.abc import Callable

from relaycast_gateway.icrc.canister import Wire
from relaycast_gateway.icrc.store import IcrcStore

RETRY_SECONDS = 1.0


class Durability:
    """Flushes ``store``, at once or once for all that happens at the same moment."""

    def __init__(self, store: IcrcStore, wire: Wire) -> None:
        self._store = store
        self._wire = wire
        self._waiting: list[Callable[[], None]] = []
        self._is_scheduled = False
        self._is_closed = False
        self.failures = 0
        """Flushes that the disk refused."""

    def then(self, callback: Callable[[], None]) -> None:
        """Call back after the next flush, which comes soon."""
        self._waiting.append(callback)
        self.soon()

    def soon(self) -> None:
        """Flush when what happens now is over."""
        self._schedule(0.0)

    def flush(self) -> None:
        """Flush now, and call back all that waits; later where the disk refuses."""
        if self._is_closed:
            return
        if not self._store.try_flush():
            self.failures += 1
            self._schedule(RETRY_SECONDS)
            return
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    def close(self) -> None:
        """Flush nothing more; what waits is never called."""
        self._is_closed = True
        self._waiting.clear()

    def _schedule(self, seconds: float) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._wire.call_later(seconds, self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        self.flush()
