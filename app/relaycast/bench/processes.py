"""What a process and those below it weigh: memory and processor time, by what each of them is in a run on Spark."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

LOOK_SECONDS = 0.2
DRIVER, JVM, DAEMON, WORKER = "driver", "JVM", "daemon", "worker"

JAVA = "java"


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment; ``role`` is the program's name where it is none of Spark's.

    Forked workers share pages with their daemon, which count as ``resident_bytes`` of each of them; ``unique_bytes``
    are of no other process.
    """

    number: int
    role: str
    resident_bytes: int
    unique_bytes: int
    cpu_seconds: float


def family(root: int, *, unique: bool = False) -> list[Process]:
    """Return process ``root``, the driver, and all below it, by number; nothing where it has ended.

    To find what is ``unique`` takes a look at every page, about 10 ms for a gigabyte.
    """
    try:
        driver = psutil.Process(root)
        below = driver.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    seen = (_look_at(process, root, unique=unique) for process in sorted([driver, *below], key=lambda it: it.pid))
    return [process for process in seen if process is not None]


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """Give the largest resident size, in MiB, that any one process from this one down reaches, by its role."""
    seen: dict[str, int] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            for it in family(os.getpid()):
                seen[it.role] = max(seen.get(it.role, 0), it.resident_bytes >> 20)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def _look_at(process: psutil.Process, root: int, *, unique: bool) -> Process | None:
    """Return what the system says of a process, ``None`` of one that has ended."""
    try:
        with process.oneshot():
            names = [it.name() for it in (process, *process.parents())]
            resident_bytes, times = process.memory_info().rss, process.cpu_times()
            unique_bytes = process.memory_full_info().uss if unique else 0
    except psutil.Error:
        return None
    role = DRIVER if process.pid == root else _role(names)
    return Process(process.pid, role, resident_bytes, unique_bytes, times.user + times.system)


def _role(programs: list[str]) -> str:
    """Return what a process is below the driver, from its program and those above it: Java starts the daemon."""
    own, *above = programs
    if own == JAVA:
        return JVM
    if above[:1] == [JAVA]:
        return DAEMON
    return WORKER if above[1:2] == [JAVA] else own
