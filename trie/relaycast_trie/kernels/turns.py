"""Who compiles a kernel when several processes need it: the first one, while the others wait for what it keeps.

A turn is a lock on one byte of a file beside the kept code, so that it ends with its process, however that ends.
Processes may compile different kernels at the same time. A kernel is called only by kernels whose turn was taken
before, so no two processes wait for each other. Where there are no such locks, each compiles for itself.
"""

import hashlib
import importlib
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

fcntl: Any = None if sys.platform == "win32" else importlib.import_module("fcntl")

LONGEST_WAIT_SECONDS = 120.0
"""After this a process compiles what another one seems to compile."""

PLACES = 1 << 30


class CompilerTurns:
    """The turns of this process, in the lock file of ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "compiling.lock"
        self._descriptor = -1
        self._owner = 0

    def take(self, kernel: str) -> bool:
        """Wait until no other process compiles ``kernel``, and take its turn; return whether there was one to wait for.

        The turn is given up by ``give``. The wait ends after ``LONGEST_WAIT_SECONDS``.
        """
        waited, until = False, time.monotonic() + LONGEST_WAIT_SECONDS
        with suppress(OSError):
            while not self._lock(kernel):
                waited = True
                if time.monotonic() > until:
                    break
                time.sleep(0.05)
        return waited

    def give(self, kernel: str) -> None:
        """Let other processes take the turn of ``kernel``."""
        if fcntl is not None and self._descriptor >= 0 and self._owner == os.getpid():
            with suppress(OSError):
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _place(kernel))

    def _lock(self, kernel: str) -> bool:
        if fcntl is None:
            return True
        if self._descriptor < 0 or self._owner != os.getpid():
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._owner = os.getpid()
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(kernel))
        except (BlockingIOError, PermissionError):
            return False
        return True


def _place(kernel: str) -> int:
    return int.from_bytes(hashlib.blake2b(kernel.encode(), digest_size=8).digest()) % PLACES
