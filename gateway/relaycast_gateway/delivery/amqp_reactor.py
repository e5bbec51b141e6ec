"""The one thread in which all AMQP links of the process live.

It runs while a sender needs it. Work is handed in as functions. What an event of one connection raises ends that event,
not the thread.
"""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, Container, EventInjector

STOP_SECONDS = 5.0
LONGEST_SLEEP_SECONDS = 1.0

Work = Callable[[Any], None]
"""Gets the container."""


class AmqpReactor:
    """Starts with its first user and stops with its last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._loop: _ReactorLoop | None = None

    def enter(self) -> None:
        """Begin to use the thread."""
        with self._lock:
            self._users += 1
            if self._loop is None:
                self._loop = _ReactorLoop()

    def leave(self) -> None:
        """Cease to use it. Blocks until the thread has ended where this was the last user."""
        with self._lock:
            self._users -= 1
            if self._users or self._loop is None:
                return
            self._loop.stop()
            self._loop = None

    def do(self, work: Work) -> None:
        """Have work done in the thread, soon; between ``enter`` and ``leave`` only."""
        loop = self._loop
        assert loop is not None
        loop.do(work)


class _ReactorLoop(MessagingHandler):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._works: deque[Work] = deque()
        self._container = Container(self)
        self._container.timeout = LONGEST_SLEEP_SECONDS
        self._injector = EventInjector()
        self._container.selectable(self._injector)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relaycast-amqp", daemon=True)
        self._thread.start()

    def do(self, work: Work) -> None:
        self._works.append(work)
        self._injector.trigger(ApplicationEvent("relaycast_work"))

    def stop(self) -> None:
        self.do(lambda _: self._stopping.set())
        self._thread.join(STOP_SECONDS)
        if not self._thread.is_alive():
            for end in self._injector.pipe:
                os.close(end)

    def on_relaycast_work(self, _event: object) -> None:
        while self._works:
            work = self._works.popleft()
            with contextlib.suppress(Exception):  # its own link misses the answer, and times out
                work(self._container)

    def _run(self) -> None:
        container = self._container
        container.start()
        while not self._stopping.is_set():
            try:
                container.process()
            except Exception:
                container._collector.pop()  # the event that raised would come again


REACTOR = AmqpReactor()
"""The process's own."""
