"""Answers and notifications that wait until the store is durable.

Law: what waits happens after the flush that holds what it speaks of, in the order in which it came. Where the disk
refuses, all of it waits for the next attempt. The canisters' thread does not wait for the disk.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from relaycast_gateway.icrc.canister import Wire
from relaycast_gateway.icrc.store import IcrcStore

RETRY_SECONDS = 1.0

_LOGGER = logging.getLogger(__name__)


class Durability:
    """Flushes ``store``, at once or batched per turn; one flush at a time."""

    def __init__(self, store: IcrcStore, wire: Wire) -> None:
        self._store = store
        self._wire = wire
        self._waiting: list[Callable[[], None]] = []
        self._is_scheduled = False
        self._is_flushing = False
        self._is_due = False
        """Whether a flush was asked for while one was under way."""

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
        """Start a flush, and call the waiting callbacks when it is done; if the disk refuses, after a later flush."""
        if self._is_closed:
            return
        if self._is_flushing:
            self._is_due = True
            return
        self._is_flushing = True
        waiting, self._waiting = self._waiting, []
        self._wire.when_done(self._store.flush_soon(), partial(self._flushed, waiting))

    def close(self) -> None:
        """Flush nothing more; what waits is never called."""
        self._is_closed = True
        self._waiting.clear()

    def _flushed(self, waiting: list[Callable[[], None]], future: "Future[None]") -> None:
        self._is_flushing = False
        if self._is_closed:
            return
        error = future.exception()
        if error is not None:
            _LOGGER.error("cannot write the store of the canisters: %s", error)
            self.failures += 1
            self._waiting = waiting + self._waiting
            self._schedule(RETRY_SECONDS)
            return
        for callback in waiting:
            callback()
        if self._is_due:
            self._is_due = False
            self.flush()

    def _schedule(self, seconds: float) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._wire.call_later(seconds, self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        self.flush()
