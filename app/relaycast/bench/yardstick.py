"""What everything is measured against: one ``hashlib`` call, one block of full lanes, and a clock.

Law: a yardstick is the best that was seen in the run, so that a busy moment never makes a result look better.
"""

import hashlib
import platform
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from relaycast_trie.kernels.multibuffer_hash import BLOCK, LANES, hash_messages, new_rooms


def timed(work: Callable[[], Any], *, budget: float = 0.6, least: int = 3) -> float:
    """Return the best of three medians of the seconds that ``work`` takes."""
    medians = []
    for _ in range(3):
        times: list[float] = []
        end = time.perf_counter() + budget / 3
        while len(times) < least or time.perf_counter() < end:
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return min(medians)


class Yardstick:
    """Nanoseconds of a ``hashlib.blake2b`` call for 64 bytes, digest included, and of a block in full lanes."""

    def __init__(self) -> None:
        self.hashlib_ns = self.lane_block_ns = float("inf")
        self.lanes = LANES
        self.look()

    def look(self) -> None:
        """Measure again, and keep what is better."""
        self.hashlib_ns = min(self.hashlib_ns, _hashlib_ns())
        self.lane_block_ns = min(self.lane_block_ns, _lane_block_ns())


def cpu_name() -> str:
    """Return what this machine calls its CPU."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _hashlib_ns() -> float:
    data, blake2b = b"x" * 64, hashlib.blake2b

    def many() -> None:
        for _ in range(2_000):
            blake2b(data, digest_size=32).digest()

    return timed(many, budget=0.06) / 2_000 * 1e9


def _lane_block_ns() -> float:
    count = 4_096
    data, out = np.zeros(count * BLOCK, np.uint8), np.zeros(count * 32, np.uint8)
    at, sizes, slots = np.arange(count) * BLOCK, np.full(count, BLOCK), np.arange(count) * 32
    return timed(lambda: hash_messages(new_rooms(), data, at, sizes, count, out, slots), budget=0.1) / count * 1e9
