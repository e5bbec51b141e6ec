"""Pieces of work for worker processes, which import them by name."""

import os
import signal
import time
from pathlib import Path


def doubled(item: bytes) -> bytes:
    return item * 2


def killed_once(item: bytes) -> bytes:
    """Be killed unless somebody was before: ``item`` is a file that says so."""
    file = Path(item.decode())
    if file.suffix == ".kill" and not file.exists():
        file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return file.name.encode()


def always_killed(item: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def sleeping(item: bytes) -> bytes:
    """Leave a file with the number of the process, and sleep long."""
    (Path(item.decode()) / str(os.getpid())).touch()
    time.sleep(600)
    return item
