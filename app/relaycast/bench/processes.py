"""What a process and those below it weigh: memory and processor time, by what each of them is in a run on Spark."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LOOK_SECONDS = 0.2
DRIVER, JVM, DAEMON, WORKER = "driver", "JVM", "daemon", "worker"

JAVA = "java"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


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


@dataclass(frozen=True, slots=True)
class _Seen:
    program: str
    parent: int
    resident_bytes: int
    cpu_seconds: float


def family(root: int, *, unique: bool = False) -> list[Process]:
    """Return process ``root``, the driver, and all below it; nothing where there is no ``/proc``.

    To find what is ``unique`` takes a look at every page, about 10 ms for a gigabyte.
    """
    seen = {number: it for number, it in map(_look_at, _numbers()) if it is not None}
    found = []
    for number, it in sorted(seen.items()):
        line = _ancestors(number, seen)
        if root in line:
            role = DRIVER if number == root else _role([seen[above].program for above in line])
            unique_bytes = _unique_bytes(number) if unique else 0
            found.append(Process(number, role, it.resident_bytes, unique_bytes, it.cpu_seconds))
    return found


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


def _numbers() -> Iterator[int]:
    for folder in PROC.glob("[0-9]*"):
        yield int(folder.name)


def _look_at(number: int) -> tuple[int, _Seen | None]:
    """Return what the kernel says of a process, ``None`` of one that is gone."""
    try:
        head, _, rest = (PROC / str(number) / "stat").read_text().rpartition(")")
        pages = int((PROC / str(number) / "statm").read_text().split()[1])
    except (OSError, IndexError):
        return number, None
    fields = rest.split()
    cpu_seconds = (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND
    return number, _Seen(head.partition("(")[2], int(fields[1]), pages * PAGE_BYTES, cpu_seconds)


def _ancestors(number: int, seen: dict[int, _Seen]) -> list[int]:
    """Return a process and those above it, as far as they are there."""
    line = []
    while number in seen:
        line.append(number)
        number = seen[number].parent
    return line


def _role(programs: list[str]) -> str:
    """Return what a process is below the driver, from its program and those above it: Java starts the daemon."""
    own, *above = programs
    if own == JAVA:
        return JVM
    if above[:1] == [JAVA]:
        return DAEMON
    return WORKER if above[1:2] == [JAVA] else own


def _unique_bytes(number: int) -> int:
    try:
        lines = (PROC / str(number) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))
