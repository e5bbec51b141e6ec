"""What the processes below this one weigh: their largest resident size while something goes on."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROC = Path("/proc")
LOOK_SECONDS = 0.2
DRIVER = "driver"


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """Give the largest resident size, in MiB, that any one process from this one down reaches, by its program's name.

    Forked workers share pages with their parent, which count for each of them. Empty where there is no ``/proc``.
    """
    seen: dict[str, int] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            for name, size in _family():
                seen[name] = max(seen.get(name, 0), size >> 20)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def _family() -> Iterator[tuple[str, int]]:
    """Yield the name and the resident bytes of this process and all below it."""
    parents: dict[int, int] = {}
    known: dict[int, tuple[str, int]] = {}
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    for folder in PROC.glob("[0-9]*"):
        try:
            head, _, rest = (folder / "stat").read_text().rpartition(")")
            pages = int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        number = int(folder.name)
        parents[number] = int(rest.split()[1])
        known[number] = head.partition("(")[2], pages * page_bytes
    own = os.getpid()
    for number, (name, size) in known.items():
        ancestor = number
        while ancestor not in {0, own}:
            ancestor = parents.get(ancestor, 0)
        if ancestor == own:
            yield (DRIVER if number == own else name), size
