"""The JVM that this process starts: it ends when this process ends, whatever the moment.

PySpark's JVM ends when its standard input does, but it looks there only once its gateway runs. Until then the kernel
watches: on Linux a child may ask for a signal for when its parent is gone, and keeps that wish when it becomes the JVM.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PR_SET_PDEATHSIG = 1


@contextmanager
def ends_with_us() -> Iterator[None]:
    """Let a JVM that PySpark starts meanwhile get SIGTERM when the thread that starts it ends, as processes do last.

    Elsewhere than on Linux nothing is changed.
    """
    import pyspark.java_gateway  # noqa: PLC0415

    gateway: Any = pyspark.java_gateway
    if not sys.platform.startswith("linux"):
        yield
        return
    kept = gateway.Popen
    gateway.Popen = _started
    try:
        yield
    finally:
        gateway.Popen = kept


def _started(
    command: list[str], *, preexec_fn: Callable[[], None] | None = None, **options: Any
) -> "subprocess.Popen[bytes]":
    parent, libc = os.getpid(), ctypes.CDLL(None, use_errno=True)

    def before() -> None:
        if preexec_fn is not None:
            preexec_fn()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the wish was heard
            os._exit(1)

    return subprocess.Popen(command, preexec_fn=before, **options)  # noqa: PLW1509, S603 - PySpark has one, too
