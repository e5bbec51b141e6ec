"""A call while it runs: its time, what stopped it, and signals that came meanwhile.

What a Python function raises that WebAssembly called cannot go through WebAssembly: it is kept here, the call is
trapped, and it is raised again behind it. A signal's handler would raise where nothing catches it, for it runs before
the first line of such a function: handlers wait for a place where they may.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from relaycast_wasm.host.allocator import FreeingBumpAllocator
from relaycast_wasm.host.host_call import HostCall

DEFERRED = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
"""Signals whose handlers may raise."""


class TookTooLong(Exception):
    """The time of a call is over."""


class RunningCall:
    """One call; ``allocate`` and ``free`` are those of its host, which most host calls go to."""

    __slots__ = ("allocate", "deadline", "failed_in", "failure", "free", "host", "signals")

    def __init__(self, host: HostCall, *, seconds: float) -> None:
        self.host = host
        self.use(host.allocator)
        self.deadline = time.monotonic() + seconds
        self.failure: BaseException | None = None
        self.failed_in = ""
        self.signals: list[tuple[Callable[[int, FrameType | None], Any], int]] = []

    def use(self, allocator: FreeingBumpAllocator) -> None:
        """Let host functions allocate with ``allocator``."""
        self.host.allocator = allocator
        self.allocate: Callable[[int], int] = allocator.allocate
        self.free: Callable[[int], None] = allocator.free

    def fail(self, name: str, failure: BaseException) -> None:
        """Note what a host function raised."""
        if self.failure is None:
            self.failure, self.failed_in = failure, name

    def look_up(self) -> None:
        """Let signals that came be handled and look at the clock; raises ``TookTooLong`` and what handlers raise."""
        self._handle_signals()
        if time.monotonic() > self.deadline:
            raise TookTooLong

    @contextmanager
    def deferring_signals(self) -> Iterator[None]:
        """Let handlers of signals wait for ``look_up``, and for the end of the call at the latest."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        found = [(number, signal.getsignal(number)) for number in DEFERRED]
        handlers = {number: handler for number, handler in found if callable(handler)}

        def note(number: int, _frame: FrameType | None) -> None:
            self.signals.append((handlers[signal.Signals(number)], number))

        for number in handlers:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            self._handle_signals()

    def _handle_signals(self) -> None:
        while self.signals:
            handler, number = self.signals.pop(0)
            handler(number, None)


class Calls:
    """Which call of a runtime runs: the innermost, where one runs inside of another."""

    __slots__ = ("current",)

    def __init__(self) -> None:
        self.current: RunningCall | None = None

    def running(self) -> RunningCall:
        """Return the call that runs."""
        assert self.current is not None, "a host function is called while no call runs"
        return self.current
