"""Processes that a command leaves behind: all that it starts inherit a mark."""

import time

import psutil

MARK = "RELAYCAST_TEST_MARK"

PATIENCE = 60
"""Seconds until whatever is left must have ended: a loaded machine takes its time."""


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes that have inherited a mark, and still run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def ends(mark: str) -> bool:
    """Wait until nothing with the mark runs; what does not end by itself is ended, and told."""
    deadline = time.monotonic() + PATIENCE
    while left := marked(mark):
        if time.monotonic() > deadline:
            for process in left:
                process.kill()
            return False
        time.sleep(0.1)
    return True
