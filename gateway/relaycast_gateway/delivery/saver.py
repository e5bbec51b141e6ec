"""Writes what changed in groups, a few milliseconds' worth at a time, off the event loop where there is a file.

Nothing waits for a group: an acknowledgement that was not yet written is at worst followed by a second delivery.
INVARIANT: groups are written in the order in which they were collected; one that the disk refused is written before
the next. An unexpected error loses its group alone: it is logged, and the saver continues.
"""

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock

from relaycast_gateway.clock import Clock
from relaycast_gateway.delivery.store import DeliveryStore, SaveGroup

GROUP_SECONDS = 0.01
RETRY_SECONDS = 1.0
"""After a group that could not be written, for example because the disk is full."""

_log = logging.getLogger(__name__)


class GroupSaver:
    """Collects and writes groups while it runs; ``flush`` does both at once."""

    def __init__(self, store: DeliveryStore, clock: Clock, collect: Callable[[], SaveGroup]) -> None:
        self._store = store
        self._clock = clock
        self._collect = collect
        self._groups: deque[SaveGroup] = deque()
        self._writing = Lock()
        self._changed = asyncio.Event()
        self._executor = None if store.in_memory else ThreadPoolExecutor(1, "delivery-store")
        self.error: str | None = None
        """Why the last group could not be written; ``None`` where all is well."""

    def changed(self) -> None:
        """Have a group written soon."""
        self._changed.set()

    async def run(self) -> None:
        """Write groups until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._clock.sleep(GROUP_SECONDS)
            try:
                self._groups.append(self._collect())
                while not await self._written():
                    await self._clock.sleep(RETRY_SECONDS)
            except Exception:
                _log.exception("delivery store: a group was not written")

    async def _written(self) -> bool:
        try:
            if self._executor is None:
                self._write()
            else:
                await asyncio.get_running_loop().run_in_executor(self._executor, self._write)
        except sqlite3.Error as error:
            self._note(error)
            return False
        self.error = None
        return True

    def flush(self) -> None:
        """Write everything now; ``sqlite3.Error`` where that fails, and it is tried again later."""
        self._groups.append(self._collect())
        try:
            self._write()
        except sqlite3.Error as error:
            self._note(error)
            self._changed.set()
            raise
        self._changed.clear()
        self.error = None

    def flush_if_possible(self) -> None:
        """Write everything now, or later where that fails."""
        with suppress(sqlite3.Error):
            self.flush()

    def _note(self, error: sqlite3.Error) -> None:
        if self.error is None:
            _log.error("delivery store: cannot be written, will be tried again: %s", error)
        self.error = str(error)

    def close(self) -> None:
        """End the thread; call it when ``run`` was cancelled."""
        if self._executor is not None:
            self._executor.shutdown()

    def _write(self) -> None:
        with self._writing:
            while self._groups:
                try:
                    self._store.save(self._groups[0])
                except sqlite3.Error:
                    raise
                except BaseException:
                    self._groups.popleft()
                    raise
                self._groups.popleft()
