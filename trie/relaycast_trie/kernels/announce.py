"""Messages about waiting: kernels are compiled, why cached ones are not used, and how long it took."""

import atexit
import sys
import threading
import time
from typing import Any

from numba.core import event

PACKAGE = "relaycast_trie.kernels"


class Announcer(event.Listener):
    """Listens to numba; says that kernels are being compiled when the first one is, and what it took in the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[float] = []
        self.compiled = 0
        self.seconds = 0.0
        self.said = False
        self._has_refused = False

    def refuse(self, place: str, reason: str) -> None:
        """Report, once in a process, that compiled code in ``place`` is not used, for ``reason``."""
        if not self._has_refused:
            self._has_refused = True
            _say(f"compiled code in {place} is not used: {reason}")

    def on_start(self, event: Any) -> None:
        """Note when a compilation starts."""
        if not self._is_ours(event):
            return
        with self._lock:
            self._open.append(time.perf_counter())
            if not self.said:
                self.said = True
                _say("compiling the array engine for this CPU, once; relaycast_trie.warm_up() does it ahead of time")

    def on_end(self, event: Any) -> None:
        """Add up what compilations took; one inside another counts once."""
        if not self._is_ours(event):
            return
        with self._lock:
            started = self._open.pop()
            self.compiled += 1
            if not self._open:
                self.seconds += time.perf_counter() - started

    def report(self) -> None:
        """Say what was compiled since the last report, if anything was."""
        if self.compiled:
            kernels = f"{self.compiled} kernel" + "s" * (self.compiled != 1)
            _say(f"compiled {kernels} in {self.seconds:.1f} s; later runs load them from the cache")
        self.compiled, self.seconds, self.said = 0, 0.0, False

    @staticmethod
    def _is_ours(event: Any) -> bool:
        return str(event.data["dispatcher"].py_func.__module__).startswith(PACKAGE)


def _say(what: str) -> None:
    if sys.stderr is not None:
        print(f"relaycast: {what}", file=sys.stderr)


ANNOUNCER = Announcer()
_events: Any = event
_events.register("numba:compile", ANNOUNCER)
atexit.register(ANNOUNCER.report)
